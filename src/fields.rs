//! The named fields of a request, whichever way it carries them: query, form or JSON.
//!
//! Keeps every value as it was on the wire and decodes it once, when asked. Never guesses: what is doubtful in a field
//! is told apart from what is not there, and the reader decides what that means.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deepest nesting of a JSON body that is looked into: networks use two.
const DEPTH_MAX: usize = 8;

/// Most bytes of a field's path in a JSON body: each field has its own, which must not cost memory before the signature is
/// known.
const PATH_MAX: usize = 256;

/// How a network's requests carry their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// GET, in the query.
    Query,
    /// POST, in a body of the type `application/x-www-form-urlencoded`.
    Form,
    /// POST, in a JSON object; a nested field is named by its path, such as `data.player_id`.
    Json,
}

impl Carrier {
    /// The method of a request that carries its fields so.
    pub fn method(self) -> &'static str {
        match self {
            Carrier::Query => "GET",
            Carrier::Form | Carrier::Json => "POST",
        }
    }
}

/// A request's fields in the order in which they were sent.
#[derive(Clone, Default)]
pub struct Fields<'a>(Vec<Field<'a>>);

/// The names alone: a value may be a secret.
impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|field| &field.name)).finish()
    }
}

/// One field.
#[derive(Clone)]
pub struct Field<'a> {
    /// Its name, decoded; the path where it stands in a JSON object.
    pub name: Cow<'a, str>,
    /// The name as it was on the wire.
    pub written: Value<'a>,
    /// What it holds.
    pub value: Value<'a>,
}

/// One field's value. `Debug` shows only its kind: it may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Percent-encoded, as it was on the wire.
    Encoded(&'a str),
    /// The text of a JSON string.
    Plain(Cow<'a, str>),
    /// A JSON number, `true` or `false` as it was written.
    Literal(&'a str),
    /// What stands in a JSON body and is no value: an array, an empty object, half of a surrogate pair.
    Broken,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Value::Encoded(_) => "Encoded",
            Value::Plain(_) => "Plain",
            Value::Literal(_) => "Literal",
            Value::Broken => "Broken",
        })
    }
}

/// Why a field has no value to rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    #[error("missing")]
    Missing,
    #[error("sent more than once")]
    Repeated,
    #[error("a macro that the network did not replace")]
    Macro,
    #[error("a broken percent escape")]
    Escape,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("not a plain decimal number such as 12.50")]
    NotPlain,
    #[error("no text")]
    NoText,
    #[error("holds what stands between the signed fields")]
    Ambiguous,
}

impl<'a> Fields<'a> {
    /// The fields of a query or a form: `name=value` with `&` between, an escaped name decoded. A field without `=` is
    /// empty.
    pub fn encoded(text: &'a str) -> Fields<'a> {
        let fields = text.split('&').filter(|segment| !segment.is_empty()).map(|segment| {
            let (name, value) = segment.split_once('=').unwrap_or((segment, ""));
            let written = Value::Encoded(name);
            Field { name: written.lossy(), written, value: Value::Encoded(value) }
        });
        Fields(fields.collect())
    }

    /// The fields of a JSON object. `null` is an empty field; what stands in an array is not looked at. `None` when the
    /// text is no JSON object, or one whose names are longer than any network's.
    pub fn json(text: &'a str) -> Option<Fields<'a>> {
        let mut fields = Vec::new();
        collect(text, "", 0, &mut fields)?;
        Some(Fields(fields))
    }

    /// Every field, in the order in which it was sent.
    pub fn iter(&self) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter()
    }

    /// The one value of a field.
    ///
    /// # Errors
    ///
    /// [`Doubt::Missing`] and [`Doubt::Repeated`].
    pub fn once(&self, name: &str) -> Result<&Value<'a>, Doubt> {
        let mut values = self.0.iter().filter(|field| field.name == name).map(|field| &field.value);
        let value = values.next().ok_or(Doubt::Missing)?;
        if values.next().is_some() { Err(Doubt::Repeated) } else { Ok(value) }
    }

    /// The text of a field that money depends on: anything doubtful in it is an error.
    ///
    /// # Errors
    ///
    /// [`Doubt`]; an empty field is [`Doubt::Missing`].
    pub fn strict(&self, name: &str) -> Result<Cow<'_, str>, Doubt> {
        let value = self.once(name)?;
        match value.strict() {
            // `[%REF%]` as it stands in a dashboard looks like a broken escape.
            Err(Doubt::Escape) if holds_macro(value.raw()) => Err(Doubt::Macro),
            Ok(text) if text.is_empty() => Err(Doubt::Missing),
            Ok(text) if is_macro(&text) || holds_macro(&text) => Err(Doubt::Macro),
            result => result,
        }
    }

    /// The text of a field that no money depends on: whatever is broken in it is replaced, and a macro is nothing.
    pub fn lenient(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = self.once(name).ok()?.lossy();
        (!text.is_empty() && !is_macro(&text)).then_some(text)
    }
}

impl<'a> Value<'a> {
    /// As it was on the wire.
    pub fn raw(&self) -> &str {
        match self {
            Value::Encoded(raw) | Value::Literal(raw) => raw,
            Value::Plain(text) => text,
            Value::Broken => "",
        }
    }

    /// Decoded once, byte for byte, as a form is: `+` is a space, and what is no escape stays as it is.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Encoded(raw) if !raw.contains(['%', '+']) => raw.as_bytes().into(),
            Value::Encoded(raw) => percent_decode(raw.replace('+', " ").as_bytes()).collect::<Vec<u8>>().into(),
            Value::Plain(text) => text.as_bytes().into(),
            Value::Literal(text) => text.as_bytes().into(),
            Value::Broken => b"".into(),
        }
    }

    /// Decoded once as an escape-only text, where a `+` stands for itself: the digits of a base64 signature.
    pub fn unescaped(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Encoded(raw) => percent_decode(raw.as_bytes()).into(),
            Value::Plain(_) | Value::Literal(_) | Value::Broken => self.bytes(),
        }
    }

    /// Decoded once, or why it cannot be relied on.
    ///
    /// # Errors
    ///
    /// [`Doubt::Escape`] and [`Doubt::NotUtf8`].
    pub fn strict(&self) -> Result<Cow<'_, str>, Doubt> {
        let text = match self {
            Value::Encoded(raw) if has_broken_escape(raw) => return Err(Doubt::Escape),
            Value::Encoded(raw) if !raw.contains(['%', '+']) => Cow::from(*raw),
            Value::Encoded(_) => String::from_utf8(self.bytes().into_owned()).map_err(|_| Doubt::NotUtf8)?.into(),
            Value::Plain(text) => Cow::from(text.as_ref()),
            Value::Literal(text) => Cow::from(*text),
            Value::Broken => return Err(Doubt::NoText),
        };
        // What stands for bytes that were no text when a body was read.
        if text.contains(char::REPLACEMENT_CHARACTER) { Err(Doubt::NotUtf8) } else { Ok(text) }
    }

    /// Decoded once, with whatever is broken left standing or replaced.
    pub fn lossy(&self) -> Cow<'a, str> {
        match self {
            Value::Encoded(raw) if !raw.contains(['%', '+']) => Cow::from(*raw),
            Value::Encoded(_) | Value::Broken => String::from_utf8_lossy(&self.bytes()).into_owned().into(),
            Value::Plain(text) => text.clone(),
            Value::Literal(text) => Cow::from(*text),
        }
    }
}

/// At most `max` bytes of a text, whole characters only.
pub fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// Whether a `%` stands before anything but two hex digits.
fn has_broken_escape(raw: &str) -> bool {
    let escapes = raw.split('%').skip(1);
    escapes.map(str::as_bytes).any(|rest| !matches!(rest, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

/// Whether a value is a macro such as `{trans_id}`, `[trans_id]` or `$sid$` that a network should have replaced.
fn is_macro(text: &str) -> bool {
    [('{', '}'), ('[', ']'), ('$', '$')]
        .iter()
        .any(|(open, close)| text.len() > 1 && text.starts_with(*open) && text.ends_with(*close))
}

/// Whether a value holds a macro in braces, `[[…]]` or `[%…%]`: what should tell conversations or users apart would be
/// the same for all. Single brackets and dollars may stand in an id.
fn holds_macro(text: &str) -> bool {
    [("{", "}"), ("[[", "]]"), ("[%", "%]")]
        .iter()
        .any(|(open, close)| text.split_once(open).is_some_and(|(_, rest)| rest.contains(close)))
}

/// Adds the leaves of the JSON object in `text`, named by their path.
fn collect<'a>(text: &'a str, path: &str, depth: usize, fields: &mut Vec<Field<'a>>) -> Option<()> {
    for (name, value) in members(text)? {
        if path.len() + name.len() > PATH_MAX {
            return None;
        }
        let path = if path.is_empty() { name } else { Cow::from(format!("{path}.{name}")) };
        let value = match value.get().as_bytes().first()? {
            b'{' if depth < DEPTH_MAX => {
                let before = fields.len();
                collect(value.get(), &path, depth + 1, fields)?;
                if fields.len() > before {
                    continue;
                }
                Value::Broken
            }
            b'{' | b'[' => Value::Broken,
            b'"' => serde_json::from_str(value.get()).map_or(Value::Broken, |Text(text)| Value::Plain(text)),
            b'n' => Value::Plain("".into()),
            _ => Value::Literal(value.get()),
        };
        fields.push(Field { written: Value::Plain(path.clone()), name: path, value });
    }
    Some(())
}

/// A string, borrowed where it holds no escape.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of a JSON object in their order, also those that stand there twice, each value as it was written.
fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                members.push((name, value));
            }
            Ok(members)
        }
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let members = json.deserialize_map(Members).ok()?;
    json.end().ok()?;
    Some(members)
}

/// A field as a recipe or a fingerprint takes it: which, in which form, and what its absence means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The field's name.
    pub name: String,
    /// Whether it is taken as it was on the wire instead of decoded once.
    raw: bool,
    change: Option<Change>,
    absent: Absent,
}

/// What is made of a decoded value. Numbers are cut as text and never printed anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Cut toward zero to a whole number, as `int()` of other languages does.
    Integer,
    /// Without a minus in front.
    Absolute,
    Lower,
    Upper,
}

/// What it means that a field is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// Nothing can be made.
    Fails,
    /// It is left out, together with its separator.
    Drops,
    /// It is left out, also where it is empty.
    DropsEmpty,
    /// It counts as empty.
    Empty,
}

/// Why a text names no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    #[error("a placeholder without a name")]
    NoName,
    #[error("an unknown word after a `|`; there are raw, integer, absolute, lower, upper, optional, filled, or-empty")]
    UnknownWord,
    #[error("two words after a `|` that exclude each other")]
    Twice,
}

impl Pick {
    /// Reads `name`, with words after it: `amount|integer|optional`.
    ///
    /// # Errors
    ///
    /// [`PickError`] names the word.
    pub fn parse(text: &str) -> Result<Pick, PickError> {
        let mut words = text.split('|');
        let name = words.next().filter(|name| !name.is_empty()).ok_or(PickError::NoName)?;
        let mut pick = Pick { name: name.to_owned(), raw: false, change: None, absent: Absent::Fails };
        for word in words {
            let change = match word {
                "integer" => Some(Change::Integer),
                "absolute" => Some(Change::Absolute),
                "lower" => Some(Change::Lower),
                "upper" => Some(Change::Upper),
                _ => None,
            };
            let absent = match word {
                "optional" => Some(Absent::Drops),
                "filled" => Some(Absent::DropsEmpty),
                "or-empty" => Some(Absent::Empty),
                _ => None,
            };
            match (change, absent, word) {
                (None, None, "raw") if !pick.raw && pick.change.is_none() => pick.raw = true,
                (Some(_), _, _) if pick.change.is_none() && !pick.raw => pick.change = change,
                (_, Some(absent), _) if pick.absent == Absent::Fails => pick.absent = absent,
                (None, None, word) if word != "raw" => return Err(PickError::UnknownWord),
                _ => return Err(PickError::Twice),
            }
        }
        Ok(pick)
    }

    /// Whether the value is taken as it is, so that no other value looks the same.
    pub fn is_whole(&self) -> bool {
        self.change.is_none()
    }

    /// Whether it is taken as it was on the wire.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Whether what is taken is as long as the value.
    pub fn keeps_length(&self) -> bool {
        matches!(self.change, None | Some(Change::Lower | Change::Upper))
    }

    /// Whether nothing can be made without it.
    pub fn is_required(&self) -> bool {
        self.absent == Absent::Fails
    }

    /// The field of a request; `None` where it is left out.
    ///
    /// # Errors
    ///
    /// [`Doubt`] where it is not there and must be, is there twice, or is no number where one is cut.
    pub fn of(&self, fields: &Fields<'_>) -> Result<Option<Vec<u8>>, Doubt> {
        let value = match fields.once(&self.name) {
            Ok(value) => value,
            Err(Doubt::Missing) => {
                return match self.absent {
                    Absent::Fails => Err(Doubt::Missing),
                    Absent::Drops | Absent::DropsEmpty => Ok(None),
                    Absent::Empty => Ok(Some(Vec::new())),
                };
            }
            Err(doubt) => return Err(doubt),
        };
        if self.raw {
            return Ok((!(value.raw().is_empty() && self.absent == Absent::DropsEmpty)).then(|| value.raw().into()));
        }
        let bytes = value.bytes();
        if bytes.is_empty() && self.absent == Absent::DropsEmpty {
            return Ok(None);
        }
        Ok(Some(match self.change {
            None => bytes.into_owned(),
            Some(Change::Lower) => bytes.to_ascii_lowercase(),
            Some(Change::Upper) => bytes.to_ascii_uppercase(),
            Some(Change::Absolute) => bytes.strip_prefix(b"-").unwrap_or(&bytes).to_vec(),
            Some(Change::Integer) => integer(&bytes).ok_or(Doubt::NotPlain)?.into_bytes(),
        }))
    }
}

/// A plain decimal cut toward zero, without leading zeros or a negative zero.
fn integer(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
        return None;
    }
    Some(match whole.trim_start_matches('0') {
        "" => "0".to_owned(),
        whole => format!("{sign}{whole}"),
    })
}

/// A piece of a text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Stands for itself.
    Literal(String),
    /// What stood between `{` and `}`.
    Placeholder(String),
}

/// A brace that neither opens nor closes a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a single `{{` or `}}`: a placeholder is `{{name}}`, a brace itself is doubled")]
pub struct SingleBrace;

/// Splits a text at its placeholders; `{{` and `}}` are braces.
///
/// # Errors
///
/// [`SingleBrace`].
pub fn pieces(text: &str) -> Result<Vec<Piece>, SingleBrace> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
        } else {
            let (inside, after) = rest.split_once('}').filter(|_| brace == "{").ok_or(SingleBrace)?;
            if inside.contains('{') {
                return Err(SingleBrace);
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Placeholder(inside.to_owned()));
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn taken(pick: &str, query: &str) -> Result<Option<String>, Doubt> {
        let bytes = Pick::parse(pick).unwrap().of(&Fields::encoded(query))?;
        Ok(bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn a_field_is_taken_as_its_words_say() {
        for (pick, query, expected) in [
            ("a", "a=1%202+3", Ok(Some("1 2 3"))),
            ("a|raw", "a=1%202+3", Ok(Some("1%202+3"))),
            ("a", "b=1", Err(Doubt::Missing)),
            ("a", "a=1&a=1", Err(Doubt::Repeated)),
            ("a|optional", "a=1&a=1", Err(Doubt::Repeated)),
            ("a", "a", Ok(Some(""))),
            ("a|optional", "b=1", Ok(None)),
            ("a|optional", "a=", Ok(Some(""))),
            ("a|filled", "a=", Ok(None)),
            ("a|filled|raw", "a=", Ok(None)),
            ("a|or-empty", "b=1", Ok(Some(""))),
            ("a|integer", "a=100.1234", Ok(Some("100"))),
            ("a|integer", "a=007.9", Ok(Some("7"))),
            ("a|integer", "a=-0.9", Ok(Some("0"))),
            ("a|integer", "a=-12.9", Ok(Some("-12"))),
            ("a|integer", "a=.5", Ok(Some("0"))),
            ("a|integer", "a=1e3", Err(Doubt::NotPlain)),
            ("a|integer", "a=", Err(Doubt::NotPlain)),
            ("a|absolute", "a=-25.0", Ok(Some("25.0"))),
            ("a|lower", "a=Ab", Ok(Some("ab"))),
            ("a|upper|optional", "a=Ab", Ok(Some("AB"))),
        ] {
            assert_eq!(taken(pick, query), expected.map(|text| text.map(str::to_owned)), "{pick} of {query}");
        }
    }

    #[test]
    fn words_that_mean_nothing_or_too_much_are_refused() {
        assert_eq!(Pick::parse("|raw"), Err(PickError::NoName));
        assert_eq!(Pick::parse("a|int"), Err(PickError::UnknownWord));
        assert_eq!(Pick::parse("a|"), Err(PickError::UnknownWord));
        for text in ["a|raw|integer", "a|integer|raw", "a|lower|upper", "a|optional|filled", "a|raw|raw"] {
            assert_eq!(Pick::parse(text), Err(PickError::Twice), "{text}");
        }
    }

    #[test]
    fn a_json_body_gives_its_leaves_as_they_were_written() {
        let text =
            r#"{"a": 100.50, "b": {"c": "x\u00e9", "d": {"e": true}}, "n": null, "l": [1], "a": "2", "u": "\ud800"}"#;
        let fields = Fields::json(text).unwrap();
        let text = |name| fields.once(name).map(|value| value.lossy().into_owned());
        assert_eq!(text("a"), Err(Doubt::Repeated));
        assert_eq!(text("b.c").as_deref(), Ok("xé"));
        assert_eq!(text("b.d.e").as_deref(), Ok("true"));
        assert_eq!(text("n").as_deref(), Ok(""));
        assert_eq!(fields.strict("l"), Err(Doubt::NoText));
        assert_eq!(fields.strict("u"), Err(Doubt::NoText));
        assert_eq!(Fields::json(r#"{"a": 1.50}"#).unwrap().strict("a").as_deref(), Ok("1.50"));
        for text in ["", "[]", "7", "{", "{} {}", r#"{"a": 1e}"#] {
            assert!(Fields::json(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_body_nested_without_end_ends_nothing() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        let _ = Fields::json(&deep);
        let nested = |depth| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert_eq!(Fields::json(&nested(9)).unwrap().iter().next().unwrap().value, Value::Literal("1"));
        assert_eq!(Fields::json(&nested(10)).unwrap().iter().next().unwrap().value, Value::Broken);
    }

    #[test]
    fn a_json_body_with_longer_names_than_any_networks_is_not_read() {
        let named = |length: usize| format!(r#"{{"{}":{{"b":1}}}}"#, "a".repeat(length));
        assert!(Fields::json(&named(PATH_MAX - 1)).is_some());
        assert!(Fields::json(&named(PATH_MAX)).is_none());
    }

    #[test]
    fn a_text_is_split_at_its_placeholders() {
        let literal = |text: &str| Piece::Literal(text.into());
        let placeholder = |text: &str| Piece::Placeholder(text.into());
        assert_eq!(pieces("a{b}c{{d}}"), Ok(vec![literal("a"), placeholder("b"), literal("c{d}")]));
        assert_eq!(pieces("{a}{b}"), Ok(vec![placeholder("a"), placeholder("b")]));
        assert_eq!(pieces(r#"{{"ok": {n}}}"#), Ok(vec![literal(r#"{"ok": "#), placeholder("n"), literal("}")]));
        assert_eq!(pieces(""), Ok(vec![]));
        for text in ["{", "}", "a{b", "a}b", "{a{b}"] {
            assert_eq!(pieces(text), Err(SingleBrace), "{text}");
        }
    }

    #[test]
    fn macros_of_every_syntax_are_known() {
        let escaped = |text| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
        for text in ["{x}", "{{x}}", "[X]", "[[x]]", "[%X%]", "$x$", "a{b}c", "a[[b]]", "[%a%]b"] {
            for field in [format!("a={}", escaped(text)), format!("a={text}")] {
                assert_eq!(Fields::encoded(&field).strict("a"), Err(Doubt::Macro), "{field}");
            }
        }
        for text in ["{", "$", "[", "a[0]b", "a[%", "]]a[[", "$5"] {
            let field = format!("a={}", escaped(text));
            assert_eq!(Fields::encoded(&field).strict("a").as_deref(), Ok(text));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            for fields in [Fields::encoded(&text), Fields::json(&text).unwrap_or_default()] {
                for Field { name, written, value } in fields.iter() {
                    let _ = (fields.strict(name), fields.lenient(name), value.unescaped(), written.raw());
                }
            }
            let _ = (pieces(&text), Pick::parse(&text));
        }
    }
}
