//! The bytes that are signed: the language of a message, and what a request makes of it.
//!
//! Knows no algorithm. A message is made of what was on the wire and of nothing else, and what could be read as two requests
//! is refused instead.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use super::{BadSignature, Key, Place, Recipe, Wire};
use crate::fields::{self, Carrier, Doubt, Pick, PickError, Piece, SingleBrace, Value};

/// The bytes that are signed: items, each made of parts, joined by a separator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    items: Vec<Vec<Part>>,
    separator: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// A field, and the texts that stand beside it.
    Field(Pick, Vec<String>),
    /// The secret of that name.
    Secret(String),
    /// The query, without the signature where it stands there.
    Query(Extent),
    /// Origin, path and query, the same.
    Url(Extent),
    Body,
    /// All fields but the signature, sorted by name or in the order in which they were sent.
    All {
        sorted: bool,
    },
}

/// How much of a query or a URL is signed, and in which form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Only what stands before the signature, which ends the query.
    cut: bool,
    /// Percent-decoded, a `+` left as it is.
    decoded: bool,
}

/// How all fields make a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joining {
    /// Whether names are signed, or only values.
    pub names: bool,
    /// What stands between fields.
    pub joiner: String,
    /// What stands between a name and its value.
    pub assign: String,
    /// The form of names and values.
    pub form: Form,
    /// Fields that are not signed.
    pub without: Vec<String>,
}

/// The form of a name or a value in a message of all fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it was on the wire.
    Raw,
    /// Decoded once.
    Decoded,
    /// Decoded, and encoded as PHP's `http_build_query` does.
    Php,
    /// Decoded, and encoded by RFC 3986.
    Rfc3986,
}

/// Every form by its name in a preset.
pub const FORMS: &[(&str, Form)] =
    &[("raw", Form::Raw), ("decoded", Form::Decoded), ("php", Form::Php), ("rfc3986", Form::Rfc3986)];

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What PHP's `urlencode` leaves as it is, beside making a space a `+`.
const PHP: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b' ');

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error(transparent)]
    Brace(#[from] SingleBrace),
    #[error(transparent)]
    Field(#[from] PickError),
    #[error(
        "no placeholder with a `$` that is known; there are {{$secret}}, {{$secret:name}}, {{$query}}, {{$url}}, {{$body}}, {{$sorted}}, {{$fields}}, \
         and for a query or a URL the words |cut and |decoded"
    )]
    UnknownPart,
}

impl Default for Joining {
    fn default() -> Joining {
        Joining { names: true, joiner: "&".into(), assign: "=".into(), form: Form::Decoded, without: Vec::new() }
    }
}

impl Joining {
    /// Whether a field in such a message can be no other one: its name is signed too, and nothing in a value can look like what
    /// stands between.
    pub(super) fn covers(&self, name: &str) -> bool {
        let escapes = matches!(self.form, Form::Php | Form::Rfc3986);
        let kept = |char: char| char.is_ascii_alphanumeric() || "-._~+%".contains(char);
        let apart = !self.joiner.chars().all(kept) && !self.assign.is_empty();
        self.names && escapes && apart && !self.without.iter().any(|left_out| left_out == name)
    }
}

impl Message {
    /// Reads the items of a message, each a text with placeholders.
    ///
    /// # Errors
    ///
    /// [`MessageError`] names the placeholder.
    pub fn parse(items: &[impl AsRef<str>], separator: &str) -> Result<Message, MessageError> {
        let item = |text: &str| fields::pieces(text)?.into_iter().map(Part::parse).collect();
        let mut items = items.iter().map(|text| item(text.as_ref())).collect::<Result<Vec<Vec<Part>>, _>>()?;
        let several = items.len() > 1;
        for item in &mut items {
            let neighbours: Vec<Option<String>> = item.iter().map(Part::literal).collect();
            for (at, part) in item.iter_mut().enumerate() {
                let Part::Field(_, beside) = part else { continue };
                let edge = || several.then(|| separator.to_owned());
                let before = if at == 0 { edge() } else { neighbours[at - 1].clone() };
                let after = if at + 1 == neighbours.len() { edge() } else { neighbours[at + 1].clone() };
                beside.extend([before, after].into_iter().flatten().filter(|text| !text.is_empty()));
            }
        }
        Ok(Message { items, separator: separator.to_owned() })
    }

    /// Whether more than one field is named in it.
    fn names_several(&self) -> bool {
        self.parts().filter(|part| matches!(part, Part::Field(..))).nth(1).is_some()
    }

    /// Whether the secret ends it.
    pub(super) fn ends_secret(&self) -> bool {
        matches!(self.items.last().and_then(|item| item.last()), Some(Part::Secret(_)))
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.items.iter().flatten()
    }

    /// The fields that it names, those together that nothing stands between.
    fn runs(&self) -> Vec<Vec<&Pick>> {
        let mut runs = vec![Vec::new()];
        for item in &self.items {
            for part in item {
                match part {
                    Part::Field(pick, _) => runs.last_mut().expect("one at least").push(pick),
                    _ => runs.push(Vec::new()),
                }
            }
            if !self.separator.is_empty() {
                runs.push(Vec::new());
            }
        }
        runs
    }

    /// Whether a field that it names can be no other one, see [`Recipe::covers`].
    pub(super) fn covers(&self, name: &str, is_fixed: &dyn Fn(&str) -> bool, closed: bool) -> bool {
        let fixed = |pick: &&Pick| is_fixed(&pick.name) && pick.keeps_length() && pick.is_required();
        // What can be left out together with its separator leaves its place to its neighbour.
        let moves = self.items.len() > 1
            && self.parts().any(|part| matches!(part, Part::Field(pick, _) if !pick.is_required()));
        let runs = self.runs();
        runs.iter().enumerate().any(|(number, run)| {
            // What ends a message that is not closed can be made longer.
            let closed = closed || number + 1 < runs.len() || is_fixed(name);
            closed
                && run.iter().enumerate().any(|(at, pick)| {
                    let (before, after) = (run[..at].iter().all(fixed), run[at + 1..].iter().all(fixed));
                    let ends = [before, fixed(pick), after].into_iter().filter(|known| *known).count() > 1;
                    pick.name == name && pick.is_whole() && ends && (!moves || is_fixed(name))
                })
        })
    }

    /// Whether nothing is signed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether it takes all fields.
    pub fn takes_all(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::All { .. }))
    }

    /// Whether it takes the URL.
    pub fn takes_url(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Url(_)))
    }

    /// Whether it takes the body.
    pub fn takes_body(&self) -> bool {
        self.parts().any(|part| *part == Part::Body)
    }

    /// Whether it ends where the signature begins.
    pub fn is_cut(&self) -> bool {
        self.parts().any(|part| matches!(part, Part::Query(extent) | Part::Url(extent) if extent.cut))
    }

    /// The names of the secrets in it, each once.
    pub fn secrets(&self) -> Vec<&str> {
        let mut names: Vec<_> = self
            .parts()
            .filter_map(|part| match part {
                Part::Secret(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The fields that it cannot be made without.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            Part::Field(pick, _) if pick.is_required() => Some(pick.name.as_str()),
            _ => None,
        })
    }

    /// The fields that it names one by one.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            Part::Field(pick, _) => Some(pick.name.as_str()),
            _ => None,
        })
    }
}

impl Part {
    fn literal(&self) -> Option<String> {
        match self {
            Part::Literal(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn parse(piece: Piece) -> Result<Part, MessageError> {
        let text = match piece {
            Piece::Literal(text) => return Ok(Part::Literal(text)),
            Piece::Placeholder(text) => text,
        };
        let Some(name) = text.strip_prefix('$') else { return Ok(Part::Field(Pick::parse(&text)?, Vec::new())) };
        if let Some(secret) = name.strip_prefix("secret:").filter(|secret| !secret.is_empty()) {
            return Ok(Part::Secret(secret.to_owned()));
        }
        let mut words = name.split('|');
        let (whole, mut extent) = (words.next(), Extent::default());
        for word in words {
            match word {
                "cut" if matches!(whole, Some("query" | "url")) => extent.cut = true,
                "decoded" if matches!(whole, Some("query" | "url")) => extent.decoded = true,
                _ => return Err(MessageError::UnknownPart),
            }
        }
        match whole {
            Some("secret") => Ok(Part::Secret(Key::SECRET.to_owned())),
            Some("query") => Ok(Part::Query(extent)),
            Some("url") => Ok(Part::Url(extent)),
            Some("body") => Ok(Part::Body),
            Some("sorted") => Ok(Part::All { sorted: true }),
            Some("fields") => Ok(Part::All { sorted: false }),
            _ => Err(MessageError::UnknownPart),
        }
    }
}

impl Extent {
    fn of<'a>(&self, text: &'a str) -> Cow<'a, [u8]> {
        if self.decoded { percent_decode(text.as_bytes()).into() } else { text.as_bytes().into() }
    }
}

impl Form {
    fn of(self, decoded: &[u8]) -> Vec<u8> {
        match self {
            Form::Raw | Form::Decoded => decoded.to_vec(),
            Form::Php => percent_encode(decoded, PHP).to_string().replace(' ', "+").into_bytes(),
            Form::Rfc3986 => percent_encode(decoded, UNRESERVED).to_string().into_bytes(),
        }
    }
}

/// Whether a value holds one of these texts, or would with a part of it beside the value: `x:` before `::` could end a byte
/// earlier.
fn holds_any(value: &[u8], texts: &[String]) -> bool {
    let holds = |text: &[u8]| {
        let (before, after) = ([value, text].concat(), [text, value].concat());
        let is = |window: &[u8]| window == text;
        before.windows(text.len()).take(value.len()).any(is) || after.windows(text.len()).skip(1).any(is)
    };
    texts.iter().any(|text| holds(text.as_bytes()))
}

/// Whether a query that is decoded as a whole could be another one that looks the same then.
fn is_ambiguous(query: &str) -> bool {
    let escaped = |text: &str, escape: &str| text.to_ascii_lowercase().contains(escape);
    let in_name = query.split('&').any(|segment| escaped(segment.split('=').next().unwrap_or_default(), "%3d"));
    query.contains('+') || escaped(query, "%26") || in_name
}

/// Adds a segment to a query.
fn joined(mut query: String, segment: &str) -> String {
    query.push('&');
    query.push_str(segment);
    query
}

/// What stands in a message for the secret of that name.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, BadSignature>;

impl Recipe {
    /// The message of a request, with what `secret` gives for each secret in it.
    ///
    /// # Errors
    ///
    /// [`BadSignature`] where no message can be made of it, or more than one.
    pub(super) fn message(&self, wire: &Wire<'_>, secret: Lookup<'_>) -> Result<Vec<u8>, BadSignature> {
        let several = self.message.names_several();
        let mut items = Vec::with_capacity(self.message.items.len());
        'items: for parts in &self.message.items {
            let mut item = Vec::new();
            for part in parts {
                match part {
                    Part::Literal(text) => item.extend_from_slice(text.as_bytes()),
                    Part::Secret(name) => item.extend_from_slice(&secret(name)?),
                    Part::Field(pick, beside) => {
                        let doubtful = |doubt| BadSignature::Field(pick.name.clone(), doubt);
                        match pick.of(wire.fields).map_err(doubtful)? {
                            // Where one field ends and the next begins must not be open.
                            Some(value) if pick.name != self.free && several && holds_any(&value, beside) => {
                                return Err(doubtful(Doubt::Ambiguous));
                            }
                            Some(value) => item.extend_from_slice(&value),
                            // A list loses the item with its separator.
                            None if self.message.items.len() > 1 && parts.len() == 1 => continue 'items,
                            None => {}
                        }
                    }
                    Part::Query(extent) => item.extend_from_slice(&extent.of(&self.query(wire, *extent)?)),
                    Part::Url(extent) => {
                        let query = self.query(wire, *extent)?;
                        let mark = if query.is_empty() { "" } else { "?" };
                        let url = format!("{}{}{mark}{query}", wire.request.origin, wire.request.path);
                        item.extend_from_slice(&extent.of(&url));
                    }
                    Part::Body => item.extend_from_slice(wire.body),
                    Part::All { sorted } => item.extend_from_slice(&self.all(wire, *sorted)),
                }
            }
            items.push(item);
        }
        Ok(items.join(self.message.separator.as_bytes()))
    }

    /// The query without the signature, where that stands in it.
    fn query<'a>(&self, wire: &Wire<'a>, extent: Extent) -> Result<Cow<'a, str>, BadSignature> {
        let query = wire.request.query.as_str();
        if extent.decoded && is_ambiguous(query) {
            return Err(BadSignature::Ambiguous);
        }
        let Some(Place::Field(name)) = self.place.as_ref().filter(|_| wire.carrier == Carrier::Query) else {
            return Ok(query.into());
        };
        let is = |segment: &str, name: &str| {
            Value::Encoded(segment.split_once('=').map_or(segment, |(name, _)| name)).lossy() == name
        };
        if !extent.cut {
            let mut kept = query.split('&').filter(|segment| !is(segment, name));
            return Ok(kept.next().map_or_else(String::new, |first| kept.fold(first.to_owned(), joined)).into());
        }
        let mut end = 0;
        let mut segments = query.split('&');
        for segment in segments.by_ref().take_while(|segment| !is(segment, name)) {
            end += segment.len() + 1;
        }
        // What stands behind the signature is not signed, so nothing that is read may stand there.
        let key_id = self.key_id.as_deref();
        if segments.any(|segment| !key_id.is_some_and(|key_id| is(segment, key_id))) {
            return Err(BadSignature::NotLast);
        }
        Ok(query[..end.saturating_sub(1).min(query.len())].into())
    }

    /// All fields but the signature, sorted bytewise by name or as they were sent; fields of one name stay in their order.
    fn all(&self, wire: &Wire<'_>, sorted: bool) -> Vec<u8> {
        let Joining { names, joiner, assign, form, without } = &self.joining;
        let signature = match &self.place {
            Some(Place::Field(name)) => Some(name.as_str()),
            _ => None,
        };
        let signed = |name: &str| Some(name) != signature && !without.iter().any(|left_out| left_out == name);
        let mut fields: Vec<_> = wire.fields.iter().filter(|field| signed(&field.name)).collect();
        if sorted {
            fields.sort_by_key(|field| field.name.as_ref());
        }
        let of = |text: &Value<'_>| match form {
            Form::Raw => text.raw().as_bytes().to_vec(),
            form => form.of(&text.bytes()),
        };
        let pairs = fields.into_iter().map(|field| match names {
            true => [&of(&field.written), assign.as_bytes(), &of(&field.value)].concat(),
            false => of(&field.value),
        });
        pairs.collect::<Vec<_>>().join(joiner.as_bytes())
    }
}
