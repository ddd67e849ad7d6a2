//! The recipe engine over everything that a signature can be. Each network here is a TOML string, and nothing else.
//!
//! What must verify was signed by another program: the constants by Python's `hashlib` and `hmac`, and where every
//! combination is tried, by the RustCrypto crates and ring on a message that the test spells out. Nothing here asks our
//! own code how to sign.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use postback::event::{Front, Request};
use postback::gate::Barred;
use postback::id::{Currency, Network};
use postback::money::Scale;
use postback::offerwall::{self, Coins, Rejection};
use postback::preset::{Catalogue, Preset};
use postback::signature::{BadSignature, Key, Place};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::world::{PATIENCE, check_with, line};

pub const SECRET: &str = "s3cret";

/// A network of which nothing is given but its requests' carrier and its table `signature`.
pub fn network(carrier: &str, signature: &str) -> Preset {
    let text = format!(
        r#"
        [networks.test]
        network = {{ name = "Test", evidence = "official" }}
        request = {{ carrier = "{carrier}" }}
        parameters = {{ user_id = "user", trans_id = "id", amount = "amount" }}
        classes = [{{ is = "credit" }}]
        answers = {{ applied = "ok" }}
        [networks.test.signature]
        {signature}"#
    );
    let catalogue = Catalogue::with("test.toml", &text).unwrap_or_else(|faults| panic!("{faults:?}{text}"));
    catalogue.preset(&Network::new("test").unwrap()).unwrap()
}

fn coins() -> Coins {
    Coins { currency: Currency::new("coins").unwrap(), scale: Scale::new(2).unwrap() }
}

/// What the recipe says of a request; what the request says beside that does not matter here.
pub fn judge(preset: &Preset, keys: &[Key], request: &Request) -> Result<(), BadSignature> {
    match offerwall::read(preset, keys, &coins(), request) {
        Err(Rejection::Barred(Barred::BadSignature(why))) => Err(why),
        Ok(_) | Err(Rejection::Parameters(_)) => Ok(()),
        Err(other) => panic!("{other:?}"),
    }
}

/// A key with the secret, and another one that goes with it.
fn key(secret: &str) -> Key {
    Key::of([("secret".to_owned(), secret.into()), ("publisher".to_owned(), "pub".into())])
}

/// A network and a request of it as it is on the wire, with `SIG` where the signature stands.
struct Case<'a> {
    carrier: &'a str,
    /// The table `signature`.
    signature: &'a str,
    sent: &'a str,
    /// The fields that are signed, a `/`, and those that are not.
    fields: &'a str,
    /// The key in force, and one that is not.
    keys: [Key; 2],
}

impl Case<'_> {
    fn request(&self, preset: &Preset, sent: &str, signature: &str) -> Request {
        let sent = sent.replace("SIG", signature);
        let headers = match &preset.signature.place {
            Some(Place::Header(name)) if !signature.is_empty() => vec![(name.clone(), signature.to_owned())],
            _ => Vec::new(),
        };
        let (query, body) = if self.carrier == "query" { (sent.as_str(), "") } else { ("", sent.as_str()) };
        let mut request = Request::default().with(&headers, body.as_bytes());
        request.method = preset.carrier.method().into();
        (request.origin, request.path, request.query) = ("https://pay.example".into(), "/a%20b".into(), query.into());
        request
    }

    /// Where a field's value begins in the request.
    fn value_of(&self, name: &str) -> (usize, usize) {
        let name = name.rsplit('.').next().unwrap();
        let mark = if self.carrier == "json" { format!("\"{name}\":") } else { format!("{name}=") };
        let begins = |at: &usize| *at == 0 || b"&{, ".contains(&self.sent.as_bytes()[at - 1]);
        let at = self.sent.match_indices(&mark).map(|(at, _)| at).find(begins).unwrap_or_else(|| panic!("no {name}"));
        let value = at + mark.len();
        (at, value + usize::from(self.sent[value..].starts_with('"')))
    }

    /// The request with that field changed, sent twice, and left out.
    fn changes(&self, name: &str) -> [String; 3] {
        let (at, value) = self.value_of(name);
        let (before, field, after) = (&self.sent[..at], &self.sent[at..value], &self.sent[value..]);
        let is_json = self.carrier == "json";
        let empty = match is_json {
            true if field.ends_with(':') => "1,",
            true => "1\",",
            false => "1&",
        };
        let kept = self.sent.split('&').filter(|segment| !segment.starts_with(field));
        let gone =
            if is_json { format!("{before}\"gone-{}{after}", &field[1..]) } else { kept.collect::<Vec<_>>().join("&") };
        [format!("{before}{field}9{after}"), format!("{before}{field}{empty}{field}{after}"), gone]
    }

    /// Checks that what the network signed verifies, and nothing near it.
    fn check(&self, digest: &[u8], write: Write) {
        let preset = network(self.carrier, self.signature);
        let in_field = matches!(preset.signature.place, Some(Place::Field(_)));
        let escape = |signature: &str| match (in_field, self.carrier) {
            (true, "query" | "form") => utf8_percent_encode(signature, NON_ALPHANUMERIC).to_string(),
            _ => signature.to_owned(),
        };
        let (what, good) = (format!("{} of {} in {}", self.signature, self.sent, self.carrier), escape(&write(digest)));
        let [right, wrong] = &self.keys;
        let with = |keys: &[&Key], sent: &str, signature: &str| {
            let keys: Vec<Key> = keys.iter().copied().cloned().collect();
            judge(&preset, &keys, &self.request(&preset, sent, signature))
        };
        for keys in [&[right][..], &[right, wrong], &[wrong, wrong, right], &[right, right]] {
            assert_eq!(with(keys, self.sent, &good), Ok(()), "{what}");
        }
        assert_eq!(with(&[right], self.sent, &write(digest)), Ok(()), "{what}, and not escaped");
        assert_eq!(with(&[], self.sent, &good), Err(BadSignature::NoKey), "{what}");
        assert_eq!(with(&[wrong, wrong], self.sent, &good), Err(BadSignature::Other), "{what}");
        let near = |at: usize| digest.iter().enumerate().map(|(i, byte)| byte ^ u8::from(i == at)).collect();
        let last = digest.len() - 1;
        let lengths =
            [digest[..last].to_vec(), digest[1..].to_vec(), [digest, &[0]].concat(), digest.repeat(2), vec![0]];
        for near in [near(0), near(last / 2), near(last)].into_iter().chain(lengths) {
            assert_eq!(with(&[right], self.sent, &escape(&write(&near))), Err(BadSignature::Other), "{what}: {near:?}");
        }
        for garbage in ["@", "%", "é", "A"] {
            let why = with(&[right], self.sent, &escape(garbage)).unwrap_err();
            assert!(matches!(why, BadSignature::NotEncoded(_)), "{what}: {garbage}: {why}");
        }
        let not_there = |sent: &str, signature: &str| {
            let why = with(&[right], sent, signature).unwrap_err();
            assert!(matches!(why, BadSignature::NotThere(_)), "{what}: {sent}: {why}");
        };
        not_there(self.sent, "");
        if in_field {
            let [_, twice, without] = self.changes("sig");
            not_there(&twice, &good);
            not_there(&without, &good);
        }
        let (signed, open) = self.fields.split_once('/').unwrap();
        for name in signed.split_whitespace() {
            for sent in self.changes(name) {
                assert!(with(&[right], &sent, &good).is_err(), "{what}: {sent}");
            }
        }
        for (name, sent) in open.split_whitespace().flat_map(|name| self.changes(name).map(|sent| (name, sent))) {
            assert_eq!(with(&[right], &sent, &good), Ok(()), "{what}: {name}: {sent}");
        }
    }
}

/// A signature by another implementation than ours.
fn sign(algorithm: &str, message: &[u8], secret: &[u8]) -> Vec<u8> {
    fn mac<M: KeyInit + Mac>(message: &[u8], secret: &[u8]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(secret).unwrap();
        mac.update(message);
        mac.finalize().into_bytes().to_vec()
    }
    match algorithm {
        "md5" => Md5::digest(message).to_vec(),
        "sha1" => Sha1::digest(message).to_vec(),
        "sha256" => Sha256::digest(message).to_vec(),
        "hmac-md5" => mac::<Hmac<Md5>>(message, secret),
        "hmac-sha1" => mac::<Hmac<Sha1>>(message, secret),
        "hmac-sha256" => mac::<Hmac<Sha256>>(message, secret),
        "hmac-sha512" => mac::<Hmac<Sha512>>(message, secret),
        _ => panic!("{algorithm}"),
    }
}

/// How a signature is written.
type Write = fn(&[u8]) -> String;

/// Every way to write one.
const WRITTEN: [(&str, Write); 6] = [
    ("hex", |bytes| hex::encode(bytes)),
    ("hex", |bytes| hex::encode_upper(bytes)),
    ("base64", |bytes| STANDARD.encode(bytes)),
    ("base64", |bytes| STANDARD_NO_PAD.encode(bytes)),
    ("base64url", |bytes| URL_SAFE.encode(bytes)),
    ("base64url", |bytes| URL_SAFE_NO_PAD.encode(bytes)),
];

/// The same fields in each carrier, and where the signature stands: in a field or in a header.
const CARRIED: [(&str, &str, &str); 6] = [
    ("query", "parameter = \"sig\"", "user=p%201&id=c-1&amount=10.50&kid=k1&x=1&sig=SIG"),
    ("query", "header = \"X-Sig\"", "user=p+1&id=c-1&amount=10.50&kid=k1&x=1"),
    ("form", "parameter = \"sig\"", "sig=SIG&user=p%201&id=c-1&amount=10.50&kid=k1&x=1"),
    ("form", "header = \"x-sig\"", "user=p+1&id=c-1&amount=10.50&kid=k1&x=1"),
    ("json", "parameter = \"sig\"", r#"{"user":"p 1","id":"c-1","amount":10.50,"sig":"SIG","kid":"k1","x":"1"}"#),
    ("json", "header = \"X-SIG\"", r#"{"user": "p\u00201","id":"c-1","amount":"10.50","kid":"k1","x":1}"#),
];

/// What each algorithm makes of `p 1:c-1:10.50`, by Python: `hashlib.new(name, b"p 1:c-1:10.50:s3cret").digest()` and
/// `hmac.new(b"s3cret", b"p 1:c-1:10.50", name).digest()`, by `hex`, `base64.b64encode`, `base64.urlsafe_b64encode`.
#[rustfmt::skip]
const ANCHORS: [(&str, &str, &str, &str); 7] = [
    ("md5", "7e0d902dbdb8cceac3939e9c73e8a46b",
     "fg2QLb24zOrDk56cc+ikaw==", "fg2QLb24zOrDk56cc-ikaw=="),
    ("sha1", "01e751141c9ba92b819d74b7a919a7f9cb3cb83c",
     "AedRFBybqSuBnXS3qRmn+cs8uDw=", "AedRFBybqSuBnXS3qRmn-cs8uDw="),
    ("sha256", "bbc2786515e779fef07d881c62ccbe319a153c6b9f82c29c831bab9640dbe5f3",
     "u8J4ZRXnef7wfYgcYsy+MZoVPGufgsKcgxurlkDb5fM=", "u8J4ZRXnef7wfYgcYsy-MZoVPGufgsKcgxurlkDb5fM="),
    ("hmac-md5", "28b15bb9552c59678733cb4eb7602540",
     "KLFbuVUsWWeHM8tOt2AlQA==", "KLFbuVUsWWeHM8tOt2AlQA=="),
    ("hmac-sha1", "46c633d404d345e35336c9887d87286882460856",
     "RsYz1ATTReNTNsmIfYcoaIJGCFY=", "RsYz1ATTReNTNsmIfYcoaIJGCFY="),
    ("hmac-sha256", "7b91f8ad6bbf06f07d370e0a6407d151915497fb3455a960050051e5fb9d8d2e",
     "e5H4rWu/BvB9Nw4KZAfRUZFUl/s0ValgBQBR5fudjS4=", "e5H4rWu_BvB9Nw4KZAfRUZFUl_s0ValgBQBR5fudjS4="),
    ("hmac-sha512", "a035b07b1b629830eb3c608c1252bcf0eea9af8a3c6338a885296882a7e9ffc1\
      4c41814cc0607cd477a230f1858fdde9cfcf15469c8bb1331fd2e7524e8d4312",
     "oDWwextimDDrPGCMElK88O6pr4o8YziohSlogqfp/8FMQYFMwGB81HeiMPGFj93pz88VRpyLsTMf0udSTo1DEg==",
     "oDWwextimDDrPGCMElK88O6pr4o8YziohSlogqfp_8FMQYFMwGB81HeiMPGFj93pz88VRpyLsTMf0udSTo1DEg=="),
];

#[test]
fn every_algorithm_verifies_in_every_carrier_place_and_encoding_and_nothing_near_it_does() {
    for (algorithm, in_hex, ..) in ANCHORS {
        let keyed = algorithm.starts_with("hmac");
        let (message, signed) = match keyed {
            true => ("{user}:{id}:{amount}", "p 1:c-1:10.50".to_owned()),
            false => ("{user}:{id}:{amount}:{$secret}", format!("p 1:c-1:10.50:{SECRET}")),
        };
        let digest = sign(algorithm, signed.as_bytes(), SECRET.as_bytes());
        assert_eq!(hex::encode(&digest), in_hex, "Python and RustCrypto agree on {algorithm}");
        for ((carrier, place, sent), (encoding, write)) in
            CARRIED.into_iter().flat_map(|row| WRITTEN.map(|how| (row, how)))
        {
            let signature =
                format!("algorithm = {algorithm:?}\nmessage = {message:?}\nencoding = {encoding:?}\n{place}");
            let (keys, fields) = ([SECRET.into(), "s3cret ".into()], "user id amount / kid x");
            Case { carrier, signature: &signature, sent, fields, keys }.check(&digest, write);
        }
    }
}

#[test]
fn every_anchor_of_python_verifies_as_python_wrote_it() {
    for (algorithm, in_hex, base64, base64url) in ANCHORS {
        let message = if algorithm.starts_with("hmac") { "" } else { ":{$secret}" };
        for (encoding, written) in [("hex", in_hex), ("base64", base64), ("base64url", base64url)] {
            let message = format!("message = \"{{user}}:{{id}}:{{amount}}{message}\"");
            let signature =
                format!("algorithm = {algorithm:?}\n{message}\nencoding = {encoding:?}\nparameter = \"sig\"");
            let preset = network("query", &signature);
            let request = get(&format!("https://a/?user=p%201&id=c-1&amount=10.50&sig={written}"));
            assert_eq!(judge(&preset, &[SECRET.into()], &request), Ok(()), "{algorithm} {encoding}");
        }
    }
}

#[test]
fn a_network_with_a_key_of_its_own_is_verified_by_the_public_key_that_the_request_names() {
    let pair = |random: &SystemRandom| {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, random).unwrap();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), random).unwrap()
    };
    // RFC 5480: SubjectPublicKeyInfo of id-ecPublicKey on secp256r1, then the point.
    let header = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
    let named = |id: &str, pair: &EcdsaKeyPair| {
        let spki = STANDARD.encode([&header, pair.public_key().as_ref()].concat());
        Key::of([("k2".to_owned(), "no key".into()), (id.to_owned(), spki.into())])
    };
    let random = SystemRandom::new();
    let (ours, theirs) = (pair(&random), pair(&random));
    let signed = ours.sign(&random, b"p 1:c-1:10.50").unwrap();
    for ((carrier, place, sent), (encoding, write)) in CARRIED.into_iter().flat_map(|row| WRITTEN.map(|how| (row, how)))
    {
        let message = "message = \"{user}:{id}:{amount}\"\nkey = \"kid\"";
        let signature = format!("algorithm = \"ecdsa-p256\"\n{message}\nencoding = {encoding:?}\n{place}");
        let keys = [named("k1", &ours), named("k1", &theirs)];
        let fields = "user id amount kid / x";
        Case { carrier, signature: &signature, sent, fields, keys }.check(signed.as_ref(), write);
    }
}

/// The message as a preset says it, items joined by `:`; the request; what is signed of it and what is not; the bytes
/// that are signed, and `hashlib.sha256(those).hexdigest()` by Python. The secret is `s3cret`, `publisher` is `pub`.
#[rustfmt::skip]
const PARTS: &[(&str, &str, &str, &[u8], &str)] = &[
    (r#""{user}{id}{$secret}""#, "user=a%20b%2B&id=C-1&x=1&sig=SIG", "user id / x",
     b"a b+C-1s3cret", "b323778b5cc2f2aaedc78381058d4cee96004e6220959c46764f7b583acae5d5"),
    (r#""{$secret}{id}{user}""#, "sig=SIG&user=a+b%2b&id=C-1", "user id /",
     b"s3cretC-1a b+", "3a1877fa804228a759a69671fcd838d3a491710b14626253afa1629580102472"),
    (r#""{user}{$secret}{id}""#, "user=a%zz%&sig=SIG&id=%FFC", "user id /",
     b"a%zz%s3cret\xffC", "838029b060e818a06f2b73427c45ca851bdcd46c3a621647ae05d7841bd40128"),
    (r#""{$secret}-{id}-{$secret}""#, "id=C-1&sig=SIG&user=1", "id / user",
     b"s3cret-C-1-s3cret", "ffda89f14f18ed7394470d19379adf4d0f3b569a76975fb9c5c445bf16e0a245"),
    (r#"["{user}", "{$secret:publisher}", "{$secret}"]"#, "user=1&sig=SIG&id=2", "user / id",
     b"1:pub:s3cret", "0aab65163af11bdef6413d02bf69257f2b9ac4bdcf8534a19267ac9bd5be64ad"),
    (r#""v1|{{{user}}}|{id}{$secret}""#, "user=1&id=2&sig=SIG", "user id /",
     b"v1|{1}|2s3cret", "dbd1c764932925f55a0bf3bbb68575edc282cd16c225765f8c3e5e2b8f559aba"),
    (r#"["{user|raw}", "{id}", "{$secret}"]"#, "user=a%20b%2b+&id=%C3%A9&sig=SIG", "user id /",
     b"a%20b%2b+:\xc3\xa9:s3cret", "afae97d9a96aca803562e7cf89c44714730348eaea352139f1e9838ac1bedba2"),
    (r#"["{amount|integer}", "{id|lower}", "{user|upper}", "{$secret}"]"#, "amount=-012.90&id=Ab-C&user=uE&sig=SIG&x=",
     "amount id user / x", b"-12:ab-c:UE:s3cret", "4f772fe8be18d2ef8dfaed30d56178a513d935522a002e07f89c6469dd17216a"),
    (r#"["{amount|absolute}", "{$secret}"]"#, "amount=-25.0&sig=SIG", "amount /",
     b"25.0:s3cret", "7a6cb9f38e3419f48d60ff66a78879acc7134291b7459c117a206fff2cd94a68"),
    (r#"["{a|optional}", "{b|optional}", "{$secret}"]"#, "b=&sig=SIG&x=1", "b / x",
     b":s3cret", "5d3e37c0bb93ef4261c21f011781f61a9ca87e6c6d678fc29e6d27d3d370cad2"),
    (r#"["{a|filled}", "{b|filled}", "{c|filled|raw}", "{$secret}"]"#, "a=&c=%31&sig=SIG", "c /",
     b"%31:s3cret", "f7df01c3ca01ebd79fb7706ceaffdc863271379784f44fd29d19102e6713dcf0"),
    (r#"["{a|or-empty}", "{b|or-empty|upper}", "{$secret}"]"#, "b=b&sig=SIG", "b /",
     b":B:s3cret", "ef8b72a477c8a69f77b9b38b0fb639d3e07e49a6bc7686d47190737e383ef00d"),
    (r#"["{a|optional}x{b|optional}", "{$secret}"]"#, "b=b&sig=SIG", "b /",
     b"xb:s3cret", "5a383a88fae6030da47be4d258befec264d4b46539d4ffd186dbf6b1257bf44c"),
    (r#"["", "{user}", "", "{$secret}"]"#, "user=1&sig=SIG", "user /",
     b":1::s3cret", "144f41a9d58983856cb687573a71b14fe9db1913a7d32f5b8f3f5a5bad01affa"),
];

#[test]
fn a_message_is_made_of_its_parts_in_their_order() {
    for (message, sent, fields, signed, hash) in PARTS {
        assert_eq!(hex::encode(sign("sha256", signed, b"")), *hash, "{message}");
        let signature = format!(
            "algorithm = \"sha256\"\nmessage = {message}\nseparator = \":\"\nencoding = \"hex\"\nparameter = \"sig\""
        );
        for carrier in ["query", "form"] {
            let case = Case { carrier, signature: &signature, sent, fields, keys: [key(SECRET), key("other")] };
            case.check(&hex::decode(hash).unwrap(), |bytes| hex::encode(bytes));
        }
    }
}

type Row = (&'static str, &'static str, &'static str, &'static str, &'static [u8], &'static str);

/// The carrier; a message, or the table `sorted` of one that is all fields; the request, with the signature in a header
/// where it holds no `SIG`; what is signed of it and what is not; the bytes that are signed, and
/// `hmac.new(b"s3cret", those, "sha256").hexdigest()` by Python. The public URL is `https://pay.example/a%20b`.
#[rustfmt::skip]
const HMAC: &[Row] = &[
    ("json", r#""{user}|{n}|{n|integer}|{b}|{z}|{data.id}""#,
     r#"{"sig":"SIG","user":"p \u00e9\/","n":12.50,"b":true,"z":null,"data":{"id":"c-1","x":[1]},"y":"1"}"#,
     "user n b data.id / y",
     b"p \xc3\xa9/|12.50|12|true||c-1", "7c0bbe370a46497127d5ba7ae0ae9a8208e5cbb1b9a76248f2b938b8812431b1"),
    ("json", r#"["{data.user|lower}", "{data.a.b|raw}", "{none|optional}", "{void|filled}", "{gone|or-empty}"]"#,
     r#"{"data":{"user":"U 1","a":{"b":"%20"}},"void":"","y":2,"sig":"SIG"}"#, "data.user data.a.b / y",
     b"u 1:%20:", "d026b72621cf260235a5c20c5def7a4f53dd42eff8885ce14de02e225b5a52e5"),
    ("query", r#"form = "pairs", joiner = "&", encoding = "raw""#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&c=&B=%C3%A9", "a b c n B /",
     b"B=%C3%A9&a=1~*%2F&b=2%20x+y&c=&n=n", "2af816275d34999a100bd1ef318af90fa6cf802787a125d2e9b498463160a152"),
    ("query", r#"form = "pairs", joiner = "&", encoding = "decoded""#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&c=&B=%C3%A9", "a b c n B /",
     b"B=\xc3\xa9&a=1~*/&b=2 x y&c=&n=n", "f4fe902674582baea1ddde46ceed52f56dc68c394b9c8cc1fd906f9b745bad05"),
    ("form", r#"form = "pairs", joiner = "&", encoding = "php""#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&c=&B=%C3%A9", "a b c n B /",
     b"B=%C3%A9&a=1%7E%2A%2F&b=2+x+y&c=&n=n", "53ef97402074ca223c66ffb5070d2f394ca9169404b7dea8969742bfef32d734"),
    ("query", r#"form = "pairs", joiner = "&", encoding = "rfc3986""#,
     "b=2%20x+y&a=1~*%2F&n=n&c=&B=%C3%A9", "a b c n B /",
     b"B=%C3%A9&a=1~%2A%2F&b=2%20x%20y&c=&n=n", "af1754705eb01fd6b5b0db9d91b26ec9f4e6d6b030b59334de9d3db1d94341d1"),
    ("form", r#"form = "pairs", joiner = ",", assign = ":", without = ["n", "B"]"#,
     "b=2%20x+y&a=1~*%2F&n=n&c=&B=%C3%A9", "a b c / n B",
     b"a:1~*/,b:2 x y,c:", "19ce348e6b8f0e0f230597f777fd91c9bcae7740bb3911524a5298dbedd3ad52"),
    ("query", r#"form = "pairs", joiner = "|", assign = "none", encoding = "decoded""#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&c=&B=%C3%A9", "a b c n B /",
     b"B\xc3\xa9|a1~*/|b2 x y|c|nn", "919d8e4e21acf7643bb6c15ecf1bf13119c6cab3e661e983bf36965c16575030"),
    ("query", r#"form = "pairs", encoding = "php""#, "b=2%20x&a=1&sig=SIG", "a b /",
     b"a=1b=2+x", "8b85bc6f5f96d23139e79b5224931036d8ab29629518eddc7e9660adfba5150c"),
    ("query", r#"form = "values", joiner = "&", encoding = "raw""#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&c=&B=%C3%A9", "a b c n B /",
     b"%C3%A9&1~*%2F&2%20x+y&&n", "825a4083d23e8356ea73577509f2feb9927ed3ed0b02c7ca19e46dcda04d94d7"),
    ("form", r#"form = "values", encoding = "decoded", without = ["n"]"#,
     "b=2%20x+y&a=1~*%2F&sig=SIG&n=n&B=%C3%A9", "a b B / n",
     b"\xc3\xa91~*/2 x y", "6e0da77b5b00e8251df71088de7ec15ea846a6466ee382f04841f7c58525c215"),
    ("query", r#"form = "values", joiner = ",", encoding = "php""#, "b=2%20x+y&a=1~*%2F&sig=SIG", "a b /",
     b"1%7E%2A%2F,2+x+y", "62462da232598a03417862e5122c28dba81b5b4f7cefd1264e50e877dafd927a"),
    ("query", r#"form = "values", joiner = ":", encoding = "rfc3986""#, "b=2%20x+y&a=1~*%2F&sig=SIG", "a b /",
     b"1~%2A%2F:2%20x%20y", "3997f8466d8f464fa70091cf3041bbf6fa0a56bcb54ab173b6616d4e579bcf35"),
    ("query", r#"form = "pairs", joiner = "&", encoding = "raw""#,
     "a%5Bx%5D=1&a%20b=2&sig=SIG&%61=3", "a%5Bx%5D a%20b %61 /",
     b"%61=3&a%20b=2&a%5Bx%5D=1", "f543ecf2f678effcafbf41576142d41acc19a285b41606771152d3b1ea414250"),
    ("query", r#"form = "pairs", joiner = "&", encoding = "php""#,
     "a%5Bx%5D=1&a%20b=2&sig=SIG&%FF=3", "a%5Bx%5D a%20b %FF /",
     b"a+b=2&a%5Bx%5D=1&%FF=3", "8219d5a24315c6f8ce0113811fcd1e97d20167de71484590384ea99177a3f196"),
    ("form", r#"form = "pairs", joiner = "&", encoding = "decoded""#, "b=1&a=2&a=1&sig=SIG", "b /",
     b"a=2&a=1&b=1", "476b9110d8d1b2ebb79a1feca55c24a68cb74be0245d24f458ad0a476fe7669b"),
    ("json", r#"form = "pairs", joiner = "&", encoding = "rfc3986""#,
     r#"{"b":"1 &","a":"x","data":{"z":3,"c":"y"},"sig":"SIG","list":[1]}"#, "b a data.z data.c /",
     b"a=x&b=1%20%26&data.c=y&data.z=3&list=", "bb4a732067505acd600f6e382279d6f7a4a8aaa9988cdcfb432fd40321ffb00d"),
    ("query", r#""{$query}""#, "b=2&a=%31+&&c", "b a /",
     b"b=2&a=%31+&&c", "905a61b9926796b58c3717d4a12893fdd5342dc529419cc6c0bd75cb01efe57c"),
    ("query", r#""{$query}""#, "sig=SIG&b=2&a=%31~", "b a /",
     b"b=2&a=%31~", "fdf1bc20fdd43bc7b503b93fa4d31a2674954dfcedf560d7f0bc9c4dcd2a4eda"),
    ("query", r#""{$query}""#, "b=2&sig=SIG&&a=%31", "b a /",
     b"b=2&&a=%31", "8ffdde6e7f03fd9d83c3eb315ec71c2665543c30aec7bdadc63561280727459c"),
    ("query", r#""{$secret}?{$query}""#, "b=2&a=%31&sig=SIG", "b a /",
     b"s3cret?b=2&a=%31", "e337a272baa1df9ccbd43a659d10738eeb90f1872d6037222dbe31f78ffd0c3e"),
    ("query", r#""{$query}""#, "sig=SIG", "/", b"", "91dfac70c5348b04e1babb8b421ac92cec08b565b49ca16130dccb72503647b7"),
    ("query", r#""{$query|decoded}""#, "b=2%20%3D&a=%2B%zz", "b a /",
     b"b=2 =&a=+%zz", "7a3b049484c43a66c175fcef6d0b6bf21e2c302998c5de38b7ec616227ae1d49"),
    ("query", r#""{$query|decoded}""#, "b=%32&sig=SIG&a=%FF", "b a /",
     b"b=2&a=\xff", "8df5ab033c84e4e6abb6fa5738b3eac4cb5e513a12501b30d242bf5085de10e6"),
    ("query", r#""{$query|cut}""#, "b=2&&a=%31&sig=SIG", "b a /",
     b"b=2&&a=%31", "8ffdde6e7f03fd9d83c3eb315ec71c2665543c30aec7bdadc63561280727459c"),
    ("query", r#""{$query|cut|decoded}""#, "b=2&a=%31%20&sig=SIG", "b a /",
     b"b=2&a=1 ", "48a092b64a586c1f0b000a12fe64dac576ed2533beef17a6361f08ab7ba2275f"),
    ("query", r#""{$query|cut}""#, "sig=SIG", "/",
     b"", "91dfac70c5348b04e1babb8b421ac92cec08b565b49ca16130dccb72503647b7"),
    ("query", r#""{$url}""#, "b=2&a=%31", "b a /",
     b"https://pay.example/a%20b?b=2&a=%31", "72ca8b36a9b1cd4aa9340002217c53873b367c6b4a26b2aea273cba97a77fa27"),
    ("query", r#""{$url}""#, "b=2&sig=SIG&a=%31", "b a /",
     b"https://pay.example/a%20b?b=2&a=%31", "72ca8b36a9b1cd4aa9340002217c53873b367c6b4a26b2aea273cba97a77fa27"),
    ("query", r#""{$url}""#, "sig=SIG", "/",
     b"https://pay.example/a%20b", "9b0bfa281fa277b073e93f18f4e45b50eb1722a3eec3c13fdbb21a9925761830"),
    ("query", r#""{$url|decoded}""#, "sig=SIG&b=%32&a=%2B", "b a /",
     b"https://pay.example/a b?b=2&a=+", "c563773e43a3718f668a5e69c1903f95032c24ec25e006c48eca3bd30bd7ece0"),
    ("query", r#""{$url|cut}""#, "b=2&a=%31&sig=SIG", "b a /",
     b"https://pay.example/a%20b?b=2&a=%31", "72ca8b36a9b1cd4aa9340002217c53873b367c6b4a26b2aea273cba97a77fa27"),
    ("query", r#""{$url|decoded|cut}""#, "b=2&a=%31&sig=SIG", "b a /",
     b"https://pay.example/a b?b=2&a=1", "461b37451538ed2ee0f0b8c33e15a05c30d5c2bf4037ea370fc9d26b8231e0ba"),
    ("form", r#""{$url}\n{$body}""#, "b=2&a=%31", "b a /",
     b"https://pay.example/a%20b\nb=2&a=%31", "bcaadaafd4bf7cfdaa4b47021cee8b76855390c1ae29255f89029b38ccd084ab"),
    ("json", r#""{$body}""#, r#"{"a" : 1.50 ,"b":"\u00e9"}"#, "b /",
     b"{\"a\" : 1.50 ,\"b\":\"\\u00e9\"}", "adc640c971ca9531d280dd2105c084f3682bf73863d8820d5b43b7610a0f5974"),
];

#[test]
fn everything_that_was_sent_is_signed_in_the_form_in_which_the_network_signs_it() {
    for (carrier, message, sent, fields, signed, hash) in HMAC {
        assert_eq!(hex::encode(sign("hmac-sha256", signed, SECRET.as_bytes())), *hash, "{message}");
        let message = match message.starts_with("form") {
            true => format!("message = \"{{$sorted}}\"\nfields = {{ {message} }}"),
            false => format!("message = {message}\nseparator = \":\""),
        };
        let place = if sent.contains("SIG") { "parameter = \"sig\"" } else { "header = \"X-Sig\"" };
        let signature = format!("algorithm = \"hmac-sha256\"\n{message}\nencoding = \"hex\"\n{place}");
        let case = Case { carrier, signature: &signature, sent, fields, keys: [key(SECRET), key("other")] };
        case.check(&hex::decode(hash).unwrap(), |bytes| hex::encode(bytes));
    }
}

#[test]
fn any_text_may_stand_between_the_items() {
    for separator in ["", ":", ".", "/", "-", "|", ",", "&", "::", " ", "é"] {
        let message = format!("message = [\"{{user}}\", \"{{$secret}}\", \"{{id}}\"]\nseparator = {separator:?}");
        let signature = format!("algorithm = \"md5\"\n{message}\nencoding = \"hex\"\nparameter = \"sig\"");
        let digest = sign("md5", format!("1{separator}{SECRET}{separator}2").as_bytes(), b"");
        let (sent, fields) = ("user=1&id=2&sig=SIG", "user id /");
        let case = Case { carrier: "form", signature: &signature, sent, fields, keys: [key(SECRET), key("other")] };
        case.check(&digest, |bytes| hex::encode(bytes));
    }
}

#[test]
fn a_word_makes_alike_what_the_network_makes_alike_and_nothing_else() {
    for (pick, signed, alike, others) in [
        ("integer", "100", ["v=100.1234", "v=0100.99", "v=100."], ["v=101", "v=-100", "v=10"]),
        ("integer", "0", ["v=-0.5", "v=0", "v=.9"], ["v=1", "v=-1", "v=0e1"]),
        ("absolute", "25.0", ["v=25.0", "v=-25.0", "v=%2D25.0"], ["v=25", "v=--25.0", "v=+25.0"]),
        ("lower", "ab", ["v=ab", "v=AB", "v=%41b"], ["v=a", "v=abc", "v="]),
        ("upper", "ß.B", ["v=ß.B", "v=ß.b", "v=%C3%9F.b"], ["v=SS.B", "v=b", "v=ß.c"]),
        ("raw", "%41", ["v=%41", "v=%41&w=1", "%76=%41"], ["v=A", "v=%2541", "v=%410"]),
        ("optional", "", ["v=", "v", "w=1"], ["v=0", "v=+", "v&v"]),
        ("filled", "", ["v=", "v", "w=1"], ["v=0", "v=+", "v=&v="]),
        ("or-empty", "", ["v=", "v", "w=1"], ["v=0", "v=+", "v=&v="]),
    ] {
        let message = format!("message = \"{{v|{pick}}}\"\nparameter = \"sig\"");
        let preset = network("query", &format!("algorithm = \"hmac-sha1\"\nencoding = \"hex\"\n{message}"));
        let signature = hex::encode(sign("hmac-sha1", signed.as_bytes(), SECRET.as_bytes()));
        let verifies = |field: &str| {
            judge(&preset, &[SECRET.into()], &get(&format!("https://a/?{field}&sig={signature}"))).is_ok()
        };
        assert!(alike.into_iter().all(verifies), "{pick}: {alike:?}");
        assert!(!others.into_iter().any(verifies), "{pick}: {others:?}");
    }
}

/// A request of a GET with this URL.
pub fn get(url: &str) -> Request {
    let (address, query) = url.split_once('?').unwrap();
    let slash = address.match_indices('/').nth(2).unwrap().0;
    let mut request = Request::default();
    (request.method, request.origin, request.path) = ("GET".into(), address[..slash].into(), address[slash..].into());
    request.query = query.into();
    request
}

#[test]
fn a_signed_url_is_the_one_that_the_network_calls_and_what_is_cut_ends_with_the_signature() {
    let preset = |message: &str| {
        let message = format!("message = {message:?}\nparameter = \"sig\"");
        network("query", &format!("algorithm = \"hmac-sha1\"\nencoding = \"hex\"\n{message}"))
    };
    // hmac.new(b"s3cret", b"https://pay.example/in?a=1&b=2", "sha1").hexdigest()
    let signed = "c414c260f30705e8fcadfa69bf8a704d4e2354c2";
    let url = format!("https://pay.example/in?a=1&b=2&sig={signed}");
    let judged = |message: &str, request: &Request| judge(&preset(message), &[SECRET.into()], request);
    for message in ["{$url}", "{$url|cut}"] {
        assert_eq!(judged(message, &get(&url)), Ok(()));
        assert_eq!(judged(message, &get(&url.replace("sig=", "%73ig="))), Ok(()));
        for (from, to) in [("https", "http"), ("pay.", "Pay."), ("/in", "/in/"), ("/in", "/IN"), ("a=1&b=2", "b=2&a=1")]
        {
            assert_eq!(judged(message, &get(&url.replace(from, to))), Err(BadSignature::Other), "{to}");
        }
        let front = Front { public_url: Some("https://pay.example".into()), source: None };
        let inner = get(&url.replace("pay.example", "x.lambda-url.example"));
        assert_eq!(judged(message, &inner), Err(BadSignature::Other), "the function's own URL is not what was signed");
        assert_eq!(judged(message, &inner.behind(&front)), Ok(()));
    }
    for behind in ["&c=3", "&", "&kid=1", "&a=1"] {
        let more = get(&format!("{url}{behind}"));
        assert_eq!(judged("{$url|cut}", &more), Err(BadSignature::NotLast), "{behind}");
        assert_eq!(judged("{$url}", &more), Err(BadSignature::Other), "{behind}");
    }
}

#[test]
fn a_query_that_could_be_another_one_once_it_is_decoded_is_refused_wherever_its_signature_stands() {
    for place in ["parameter = \"sig\"", "header = \"x-sig\""] {
        for (message, before) in [("{$query|decoded}", ""), ("{$url|decoded}", "https://pay.example/a b?")] {
            let signature = format!("algorithm = \"hmac-sha1\"\nencoding = \"hex\"\nmessage = {message:?}\n{place}");
            let preset = network("query", &signature);
            let judged = |query: &str, decoded: &str| {
                let digest = hex::encode(sign("hmac-sha1", format!("{before}{decoded}").as_bytes(), SECRET.as_bytes()));
                let sent = if place.starts_with("header") { query.to_owned() } else { format!("{query}&sig=SIG") };
                let keys = [key(SECRET), key("other")];
                let case = Case { carrier: "query", signature: &signature, sent: "", fields: "", keys };
                judge(&preset, &case.keys, &case.request(&preset, &sent, &digest))
            };
            for (query, decoded) in [
                ("user=1%26id=2", "user=1&id=2"),
                ("user=1&id=2+3", "user=1&id=2+3"),
                ("user%3D1=&id=2", "user=1=&id=2"),
                ("user%3d1", "user=1"),
            ] {
                assert_eq!(judged(query, decoded), Err(BadSignature::Ambiguous), "{message} {place} {query}");
            }
            for (query, decoded) in [("user=1&id=2", "user=1&id=2"), ("user=1%3D%2B%20%2526", "user=1=+ %26")] {
                assert_eq!(judged(query, decoded), Ok(()), "{message} {place} {query}");
            }
        }
    }
}

#[test]
fn one_message_is_read_in_one_way_also_where_a_field_begins_or_ends_with_a_part_of_what_stands_beside_it() {
    for separator in [":", "::", ":-:", "aba"] {
        let message = format!("message = [\"{{id}}\", \"{{user}}\", \"{{amount}}\"]\nseparator = {separator:?}");
        let signature = format!("algorithm = \"hmac-md5\"\nencoding = \"hex\"\n{message}\nparameter = \"sig\"");
        let preset = network("query", &signature);
        let verifies = |[id, user, amount]: [&str; 3], signed: &str| {
            let signature = hex::encode(sign("hmac-md5", signed.as_bytes(), SECRET.as_bytes()));
            let url = format!("https://a/?id={id}&user={user}&amount={amount}&sig={signature}");
            judge(&preset, &[SECRET.into()], &get(&url)).is_ok()
        };
        // The user holds what stands beside it, or nearly: every cut of that text into three is tried.
        let (start, end) = (&separator[..separator.len() - 1], &separator[1..]);
        for user in [format!("1{separator}2"), separator.to_owned(), format!("{end}1"), format!("1{start}")] {
            let signed = format!("c{separator}{user}{separator}5");
            let all: Vec<_> = (0..signed.len()).filter(|at| signed[*at..].starts_with(separator)).collect();
            let pairs = all.iter().flat_map(|one| all.iter().map(move |two| (*one, *two)));
            let read = pairs.filter(|(one, two)| one + separator.len() <= *two).filter(|(one, two)| {
                let user = &signed[one + separator.len()..*two];
                verifies([&signed[..*one], user, &signed[two + separator.len()..]], &signed)
            });
            assert_eq!(read.count(), 1, "{signed} with {separator}");
        }
    }
}

#[test]
fn a_token_is_the_secret_itself_in_a_parameter_or_a_header() {
    for (carrier, place, sent) in CARRIED {
        let preset = network(carrier, &format!("algorithm = \"token\"\n{place}"));
        let case = Case { carrier, signature: "", sent, fields: "", keys: [key(SECRET), key("other")] };
        let judged = |keys: &[Key], token: &str| judge(&preset, keys, &case.request(&preset, sent, token));
        assert_eq!(judged(&case.keys, SECRET), Ok(()), "{carrier} {place}");
        assert_eq!(judged(&case.keys, "other"), Ok(()), "{carrier} {place}");
        for token in ["S3cret", "s3cre", "s3crets", "pub", "{secret}"] {
            assert_eq!(judged(&case.keys, token), Err(BadSignature::Other), "{carrier} {place} {token}");
        }
        assert_eq!(judged(&[], SECRET), Err(BadSignature::NoKey));
        let nameless = Key::of([("publisher".to_owned(), "pub".into())]);
        assert_eq!(judged(&[nameless], "pub"), Err(BadSignature::NoSecret("secret".into())));
        assert!(matches!(judged(&case.keys, ""), Err(BadSignature::NotThere(_))));
    }
}

#[test]
fn a_secret_of_a_name_that_is_not_configured_verifies_nothing() {
    let message = "message = \"{user}{$secret:publisher}{$secret}\"\nparameter = \"sig\"";
    let preset = network("query", &format!("algorithm = \"sha1\"\nencoding = \"hex\"\n{message}"));
    // hashlib.sha1(b"1pubs3cret"), hashlib.sha1(b"1s3cret")
    let [both, one] = ["4057204454bf0739b3c16d1cd005bad6b155f631", "83ebc0cda341bfd3bbd8a8d48d8e18b5c6637fb4"]
        .map(|signed| get(&format!("https://a/?user=1&sig={signed}")));
    assert_eq!(judge(&preset, &[key(SECRET)], &both), Ok(()));
    assert_eq!(judge(&preset, &[SECRET.into(), key(SECRET)], &both), Ok(()));
    for request in [&both, &one] {
        let why = judge(&preset, &[SECRET.into()], request);
        assert_eq!(why, Err(BadSignature::NoSecret("publisher".into())));
    }
    assert_eq!(judge(&preset, &[key(SECRET)], &one), Err(BadSignature::Other));
}

#[test]
fn a_field_of_one_length_gives_nothing_to_its_neighbour_and_takes_nothing() {
    let message = "message = \"{user}:{id}:{amount}{time}{$secret}\"\nparameter = \"sig\"";
    let formats = "[networks.test.formats]\ntime = 10";
    let preset = network("query", &format!("algorithm = \"md5\"\nencoding = \"hex\"\n{message}\n{formats}"));
    // hashlib.md5(b"1:c:51764500000s3cret").hexdigest()
    let read = |fields: &str| {
        let request = get(&format!("https://a/?user=1&id=c&{fields}&sig=64dcee16f28dee1b156f8bb995f0963c"));
        offerwall::read(&preset, &[SECRET.into()], &coins(), &request).map_err(|why| why.why().unwrap())
    };
    assert!(read("amount=5&time=1764500000").is_ok() && read("amount=5&time=%3176450000%30").is_ok());
    for (amount, time, expected) in [
        ("51764500000", "", "time: missing"),
        ("51", "764500000", "time: not of the form that this network sends"),
        ("5176450000", "0", "time: not of the form that this network sends"),
        ("", "51764500000", "amount: missing; time: not of the form that this network sends"),
    ] {
        assert_eq!(read(&format!("amount={amount}&time={time}")), Err(expected.to_owned()), "{amount} {time}");
    }
    assert_eq!(read("amount=51764500000"), Err("the field time is signed, and missing".to_owned()));
}

#[tokio::test]
async fn adding_a_network_needs_a_toml_string_and_nothing_else() {
    let text = r#"
        [networks.wall]
        network = { name = "Wall", evidence = "community" }
        request = { carrier = "query" }
        signature = { algorithm = "md5", message = "{who}/{what}/{n}/{$secret}", encoding = "hex", parameter = "sig" }
        parameters = { user_id = "who", trans_id = "what", amount = "n" }
        answers = { applied = "1", duplicate = "DUP {what}" }
        reversal = { prefix = "r-" }
        classes = [{ when = { what = { prefix = "r-" } }, is = "reversal" }, { is = "credit" }]
        [networks.wall-form]
        base = "wall"
        network = { name = "Wall by form" }
        request = { carrier = "form" }
        [networks.wall-json]
        base = "wall-form"
        network = { name = "Wall by JSON" }
        request = { carrier = "json" }"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("networks.toml");
    std::fs::write(&file, text).unwrap();
    let secrets = r#"{"wall": "one", "wall-form": ["old", "one"], "wall-json": "one"}"#;
    let names = "wall, wall-form, wall-json";
    let variables = [("NETWORKS", names), ("NETWORKS_FILE", file.to_str().unwrap()), ("NETWORK_SECRETS", secrets)];
    check_with(&variables, async |world| {
        for network in names.split(", ") {
            let tell = async |what: &str, n: &str, secret: &str| {
                let signed = format!("{network}/{what}/{n}/{secret}");
                let signature = hex::encode(Md5::digest(signed));
                let pairs = format!("who={network}&what={what}&n={n}&sig={signature}");
                let (method, query, body) = match network {
                    "wall" => ("GET", pairs, String::new()),
                    "wall-form" => ("POST", String::new(), pairs),
                    _ => (
                        "POST",
                        String::new(),
                        format!("{{\"{}\"}}", pairs.replace('=', "\":\"").replace('&', "\",\"")),
                    ),
                };
                let context = json!({"http": {"method": method, "sourceIp": "192.0.2.7"}});
                let path = format!("/{network}");
                let event = json!({"rawPath": path, "rawQueryString": query, "body": body, "requestContext": context});
                line(&world.app.offerwall(&event.to_string(), PATIENCE).await)
            };
            assert_eq!(tell("c1", "10.50", "one").await, "200 1", "{network}");
            assert_eq!(tell("c1", "10.50", "one").await, "200 DUP c1", "{network}");
            assert_eq!(tell("c2", "4", "one").await, "200 1", "{network}");
            assert_eq!(tell("c3", "4", "two").await, "403 bad signature", "{network}");
            assert_eq!(world.balance(network).await, "14.5");
            assert_eq!(tell("r-c1", "10.50", "one").await, "200 1", "{network}");
            assert_eq!(tell("r-c1", "10.50", "one").await, "200 DUP r-c1", "{network}");
            assert_eq!(world.balance(network).await, "4");
        }
        assert_eq!(world.entries().await.len(), 9);
    })
    .await;
}
