//! The closed set of signing recipes: which bytes a network signs, how, and whether a request carries the right
//! signature.
//!
//! Works on the bytes as they were on the wire and never on a re-encoded form. Never tells a caller, or a log, more
//! than yes or no: not the bytes, not the expected signature, not a secret.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::Sha256;

/// How a network signs, as its preset says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    algorithm: Algorithm,
    message: Message,
    encoding: Encoding,
    /// The query parameter that carries the signature.
    parameter: String,
}

/// What turns the message and a secret into a signature.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Algorithm {
    HmacSha256,
}

/// The bytes that are signed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Message {
    /// The query exactly as on the wire, the signature's parameter and its `&` taken out wherever it stands.
    RawQuery,
}

/// How the signature is written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Encoding {
    /// Hex digits of either case.
    Hex,
}

/// A request that no known secret signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSignature;

impl Recipe {
    /// Checks that one of the secrets signed this query. Without secrets nothing verifies.
    ///
    /// The comparison takes the same time wherever two signatures differ.
    ///
    /// # Errors
    ///
    /// [`BadSignature`] when the signature is missing, given more than once, not in the recipe's encoding, or not by
    /// one of the secrets.
    pub fn verify(&self, secrets: &[SecretString], query: &str) -> Result<(), BadSignature> {
        let Encoding::Hex = self.encoding;
        let (message, signature) = self.split(query)?;
        let signature = hex::decode(signature).map_err(|_| BadSignature)?;
        // Every secret is tried, so that the time does not tell which one was right.
        let matching =
            secrets.iter().filter(|secret| self.mac(secret, &message).verify_slice(&signature).is_ok()).count();
        if matching > 0 { Ok(()) } else { Err(BadSignature) }
    }

    /// The query with its signature by `secret` appended; for examples and tests.
    pub fn sign(&self, secret: &SecretString, query: &str) -> String {
        let Encoding::Hex = self.encoding;
        let signature = hex::encode(self.mac(secret, query).finalize().into_bytes());
        format!("{query}&{}={signature}", self.parameter)
    }

    fn mac(&self, secret: &SecretString, message: &str) -> Hmac<Sha256> {
        let Algorithm::HmacSha256 = self.algorithm;
        let mut mac =
            Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).expect("HMAC takes a key of any length");
        mac.update(message.as_bytes());
        mac
    }

    /// Splits a query into the signed message and its one signature.
    fn split<'a>(&self, query: &'a str) -> Result<(String, &'a str), BadSignature> {
        let Message::RawQuery = self.message;
        let (mut message, mut signatures) = (Vec::new(), Vec::new());
        for segment in query.split('&') {
            match self.signature_in(segment) {
                Some(signature) => signatures.push(signature),
                None => message.push(segment),
            }
        }
        match signatures[..] {
            [signature] => Ok((message.join("&"), signature)),
            _ => Err(BadSignature),
        }
    }

    fn signature_in<'a>(&self, segment: &'a str) -> Option<&'a str> {
        segment.strip_prefix(self.parameter.as_str())?.strip_prefix('=')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn recipe() -> Recipe {
        Recipe {
            algorithm: Algorithm::HmacSha256,
            message: Message::RawQuery,
            encoding: Encoding::Hex,
            parameter: "signature".into(),
        }
    }

    fn secrets(texts: &[&str]) -> Vec<SecretString> {
        texts.iter().map(|text| SecretString::from(*text)).collect()
    }

    /// HMAC-SHA256 of `user_id=7&trans_id=a%20b` with `local-secret`, by `openssl dgst -sha256 -hmac`.
    const BY_OPENSSL: &str = "1652ce41c4baa34e3a42d63f47e67f35900e12ca4ffea412728ec53d0e4d7648";

    #[test]
    fn the_signature_of_another_program_verifies_wherever_its_parameter_stands_and_in_either_case() {
        let (recipe, secrets) = (recipe(), secrets(&["local-secret"]));
        for query in [
            format!("user_id=7&trans_id=a%20b&signature={BY_OPENSSL}"),
            format!("signature={BY_OPENSSL}&user_id=7&trans_id=a%20b"),
            format!("user_id=7&signature={}&trans_id=a%20b", BY_OPENSSL.to_uppercase()),
        ] {
            assert_eq!(recipe.verify(&secrets, &query), Ok(()), "{query}");
        }
    }

    #[test]
    fn any_secret_in_force_verifies_and_without_one_nothing_does() {
        let recipe = recipe();
        let query = recipe.sign(&"new".into(), "a=1");
        assert_eq!(recipe.verify(&secrets(&["old", "new"]), &query), Ok(()));
        assert_eq!(recipe.verify(&secrets(&["new", "old"]), &query), Ok(()));
        assert_eq!(recipe.verify(&secrets(&["old"]), &query), Err(BadSignature));
        assert_eq!(recipe.verify(&[], &query), Err(BadSignature));
    }

    #[test]
    fn a_signature_that_is_missing_empty_cut_doubled_or_not_hex_is_bad() {
        let (recipe, secrets) = (recipe(), secrets(&["local-secret"]));
        let good = recipe.sign(&secrets[0], "a=1");
        let (_, signature) = good.split_once("signature=").unwrap();
        for query in [
            "".to_owned(),
            "a=1".to_owned(),
            "a=1&signature".to_owned(),
            "a=1&signature=".to_owned(),
            format!("a=1&signature={}", &signature[..62]),
            format!("a=1&signature={signature}00"),
            format!("a=1&signature={signature}&signature={signature}"),
            format!("a=1&signature=%{}", &signature[1..]),
            format!("a=2&signature={signature}"),
            format!("a=1&&signature={signature}"),
            format!("a=1&Signature={signature}"),
        ] {
            assert_eq!(recipe.verify(&secrets, &query), Err(BadSignature), "{query}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_and_wherever_the_signature_it_verifies_and_any_change_does_not(
            before in ".{0,40}", after in ".{0,40}", secret in ".{1,20}", flip in 0usize..64,
        ) {
            prop_assume!(!before.contains("signature=") && !after.contains("signature="));
            let recipe = recipe();
            let unsigned = format!("{before}&{after}");
            let secrets = secrets(&[&secret]);
            let signed = recipe.sign(&secrets[0], &unsigned);
            let signature = &signed[unsigned.len() + 1..];
            let moved = format!("{before}&{signature}&{after}");
            prop_assert_eq!(recipe.verify(&secrets, &signed), Ok(()));
            prop_assert_eq!(recipe.verify(&secrets, &moved), Ok(()));

            prop_assert_eq!(recipe.verify(&secrets, &format!("{before}x&{after}&{signature}")), Err(BadSignature));
            let mut forged = signed.clone().into_bytes();
            let position = forged.len() - 1 - flip;
            forged[position] = if forged[position] == b'0' { b'1' } else { b'0' };
            prop_assert_eq!(recipe.verify(&secrets, std::str::from_utf8(&forged).unwrap()), Err(BadSignature));
        }
    }
}
