//! Amounts as spreadsheets and finance people write them: `1,234.50`, `1.234,50`, `(12.50)`, `$ 12.50`, `12,50-`.
//!
//! What can be read in two ways is never read: `1.234` is one and a bit or over a thousand, and only the person who has the
//! statement, or another amount of the same column, can say which.

use std::fmt;

use crate::money::{Amount, AmountError, Received, Scale};

/// What stands before the decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `.`
    Point,
    /// `,`
    Comma,
}

impl Mark {
    /// The character.
    pub fn character(self) -> char {
        match self {
            Mark::Point => '.',
            Mark::Comma => ',',
        }
    }

    /// Reads the character.
    pub fn read(text: &str) -> Option<Mark> {
        [Mark::Point, Mark::Comma].into_iter().find(|mark| text.chars().eq([mark.character()]))
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Mark {
        match self {
            Mark::Point => Mark::Comma,
            Mark::Comma => Mark::Point,
        }
    }
}

/// What may stand between groups of three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thousands {
    /// Nothing.
    None,
    /// The mark that does not stand before the decimals.
    Mark(Mark),
    /// A space of any width.
    Space,
    /// An apostrophe.
    Apostrophe,
}

impl Thousands {
    /// Reads `.`, `,`, `space`, `'` or `none`.
    pub fn read(text: &str) -> Option<Thousands> {
        match text {
            "none" => Some(Thousands::None),
            "space" | " " => Some(Thousands::Space),
            "'" => Some(Thousands::Apostrophe),
            other => Mark::read(other).map(Thousands::Mark),
        }
    }

    fn of(character: char) -> Option<Thousands> {
        match character {
            '.' => Some(Thousands::Mark(Mark::Point)),
            ',' => Some(Thousands::Mark(Mark::Comma)),
            ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' => Some(Thousands::Space),
            '\'' | '\u{2019}' => Some(Thousands::Apostrophe),
            _ => None,
        }
    }
}

/// How the amounts of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notation {
    /// What stands before the decimals.
    pub decimal: Mark,
    /// What alone may stand between thousands; `None` allows each that is not the decimal mark.
    pub thousands: Option<Thousands>,
}

/// Why a text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotANumber {
    #[error("empty")]
    Empty,
    #[error("in scientific notation: a spreadsheet rounded it; take the file as the network exports it")]
    Scientific,
    #[error("not in groups of three digits")]
    Groups,
    #[error("{0}")]
    Amount(#[from] AmountError),
}

/// What one amount says about its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Nothing: it reads alike either way, or not at all.
    Nothing,
    /// This is what stands before the decimals, or there is no reading.
    Decimal(Mark),
    /// It reads in two ways.
    Either,
}

/// An amount without its sign and currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bare<'a> {
    negative: bool,
    digits: &'a str,
}

/// Takes off a sign, an accountant's brackets, and the code or sign of `currency`.
fn bare<'a>(text: &'a str, currency: &str) -> Bare<'a> {
    let mut digits = text.trim();
    let mut negative = false;
    if let Some(inner) = digits.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        (digits, negative) = (inner.trim(), true);
    }
    let symbol = match currency {
        "USD" => "$",
        "EUR" => "€",
        "GBP" => "£",
        _ => currency,
    };
    // A sign stands before or behind the currency, and before or behind the digits, but once.
    for _ in 0..2 {
        for unit in [currency, symbol] {
            if !unit.is_empty() {
                digits = digits.strip_prefix(unit).unwrap_or(digits).trim_start();
                digits = digits.strip_suffix(unit).unwrap_or(digits).trim_end();
            }
        }
        if !negative {
            let signed = digits.strip_prefix(['-', '\u{2212}']).or_else(|| digits.strip_suffix(['-', '\u{2212}']));
            if let Some(rest) = signed {
                (digits, negative) = (rest.trim(), true);
            }
        }
    }
    if !negative {
        digits = digits.strip_prefix('+').unwrap_or(digits);
    }
    Bare { negative, digits }
}

/// What an amount says about how its column is written.
pub fn hint(text: &str, currency: &str, thousands: Option<Thousands>) -> Hint {
    let digits = bare(text, currency).digits;
    let known = |character: char| character.is_ascii_digit() || Thousands::of(character).is_some();
    if !digits.chars().all(known) || !digits.contains(|character: char| character.is_ascii_digit()) {
        return Hint::Nothing;
    }
    let count = |mark: Mark| digits.matches(mark.character()).count();
    let mark = match (count(Mark::Point), count(Mark::Comma)) {
        (0, 0) => return Hint::Nothing,
        (_, 0) => Mark::Point,
        (0, _) => Mark::Comma,
        _ if digits.rfind('.') > digits.rfind(',') => return Hint::Decimal(Mark::Point),
        _ => return Hint::Decimal(Mark::Comma),
    };
    if count(mark) > 1 {
        let mut groups = digits.split(mark.character());
        let first = groups.next().is_some_and(|first| matches!(first.len(), 1..=3));
        // What is in no groups of three is a date, a version or a slip, and says nothing of the column.
        return if first && groups.all(|group| group.len() == 3) { Hint::Decimal(mark.other()) } else { Hint::Nothing };
    }
    let (whole, decimals) = digits.split_once(mark.character()).unwrap_or((digits, ""));
    let like_thousands = decimals.len() == 3
        && matches!(whole.len(), 1..=3)
        && !whole.starts_with('0')
        && decimals.chars().chain(whole.chars()).all(|character| character.is_ascii_digit());
    match thousands {
        _ if !like_thousands => Hint::Decimal(mark),
        None => Hint::Either,
        Some(Thousands::Mark(said)) if said == mark => Hint::Decimal(mark.other()),
        Some(Thousands::Mark(_) | Thousands::None | Thousands::Space | Thousands::Apostrophe) => Hint::Decimal(mark),
    }
}

/// Reads an amount. Decimals beyond the eighth are cut, as they are cut from what a network sends.
///
/// # Errors
///
/// [`NotANumber`] says what is wrong with it.
pub fn read(text: &str, currency: &str, notation: Notation, cents: bool) -> Result<Amount, NotANumber> {
    let Bare { negative, digits } = bare(text, currency);
    if digits.is_empty() {
        return Err(NotANumber::Empty);
    }
    if looks_scientific(digits) {
        return Err(NotANumber::Scientific);
    }
    let (whole, decimals) = digits.split_once(notation.decimal.character()).unwrap_or((digits, ""));
    let plain = format!("{}{}.{decimals}", if negative { "-" } else { "" }, ungrouped(whole, notation)?);
    let received = Received::read(&plain)?;
    let scale = Scale::new(Scale::MAX).ok_or(AmountError::NotPlain)?;
    Ok(if cents { received.hundredth(scale) } else { received.cut(scale) }?)
}

/// The digits without what stands between their thousands.
fn ungrouped(whole: &str, notation: Notation) -> Result<String, NotANumber> {
    let Some(between) = whole.chars().find(|character| !character.is_ascii_digit()) else {
        return Ok(whole.to_owned());
    };
    let allowed = Thousands::of(between).is_some_and(|found| match notation.thousands {
        Some(said) => said == found,
        None => found != Thousands::Mark(notation.decimal),
    });
    if !allowed {
        return Err(NotANumber::Amount(AmountError::NotPlain));
    }
    let mut groups = whole.split(between);
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<_> = groups.collect();
    let whole_groups = matches!(first.len(), 1..=3) && digits(first);
    if whole_groups && rest.iter().all(|group| group.len() == 3 && digits(group)) {
        Ok(format!("{first}{}", rest.concat()))
    } else {
        Err(NotANumber::Groups)
    }
}

/// Whether a spreadsheet wrote it: `1.2E+15`, one digit before the mark and two or three behind the plus. An id in hex such
/// as `12e5` or `7e-15` is none.
pub fn looks_scientific(text: &str) -> bool {
    let Some((number, exponent)) = text.split_once("E+").or_else(|| text.split_once("e+")) else { return false };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, decimals) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    whole.len() == 1 && digits(whole) && digits(decimals) && matches!(exponent.len(), 2..=3) && digits(exponent)
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.character())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn amount(text: &str, decimal: Mark) -> Result<String, NotANumber> {
        read(text, "USD", Notation { decimal, thousands: None }, false).map(|amount| amount.to_string())
    }

    #[test]
    fn amounts_are_read_as_finance_people_write_them() {
        for (text, decimal, expected) in [
            ("12.50", Mark::Point, "12.5"),
            ("1,234.50", Mark::Point, "1234.5"),
            ("1.234,50", Mark::Comma, "1234.5"),
            ("1.234", Mark::Comma, "1234"),
            ("1.234", Mark::Point, "1.234"),
            ("1 234 567,8", Mark::Comma, "1234567.8"),
            ("1\u{202f}234,8", Mark::Comma, "1234.8"),
            ("1'234.50", Mark::Point, "1234.5"),
            ("(12.50)", Mark::Point, "-12.5"),
            ("($12.50)", Mark::Point, "-12.5"),
            ("-$12.50", Mark::Point, "-12.5"),
            ("$-12.50", Mark::Point, "-12.5"),
            ("12.50-", Mark::Point, "-12.5"),
            ("12,50- USD", Mark::Comma, "-12.5"),
            ("\u{2212}3", Mark::Point, "-3"),
            ("+3", Mark::Point, "3"),
            (" 3 ", Mark::Point, "3"),
            ("0.000000019", Mark::Point, "0.00000001"),
        ] {
            assert_eq!(amount(text, decimal).as_deref(), Ok(expected), "{text}");
        }
        let cents = read("1250", "", Notation { decimal: Mark::Point, thousands: None }, true);
        assert_eq!(cents.unwrap().to_string(), "12.5");
    }

    #[test]
    fn what_would_be_a_guess_is_no_amount() {
        for text in [
            "",
            "-",
            "--1",
            "-(1)",
            "(-1)",
            "1,23,456",
            "12,34",
            "1.2.3",
            "1,234,5.0",
            "€5",
            "5 EUR",
            "abc",
            "1e5",
            "1_000",
            "5%",
            "1.2E+3",
            ",123",
            "1,234'567",
            "१२",
            "+-1",
            "-+1",
        ] {
            assert!(amount(text, Mark::Point).is_err(), "{text:?}: {:?}", amount(text, Mark::Point));
        }
        let none = Notation { decimal: Mark::Point, thousands: Some(Thousands::None) };
        assert!(read("1,234", "", none, false).is_err());
        assert!(looks_scientific("1.2E+15") && looks_scientific("1,2e+15") && looks_scientific("3E+15"));
        for id in ["12e5", "ab1E+15", "1E+15x", "823746827364827e-5300", "1e-15", "12E+15", "1E+5", "E+15"] {
            assert!(!looks_scientific(id), "{id}");
        }
    }

    #[test]
    fn one_amount_settles_a_column_only_where_it_reads_in_one_way() {
        for (text, expected) in [
            ("12", Hint::Nothing),
            ("abc", Hint::Nothing),
            ("", Hint::Nothing),
            ("1.234", Hint::Either),
            ("-$1,234", Hint::Either),
            ("12.50", Hint::Decimal(Mark::Point)),
            ("0.123", Hint::Decimal(Mark::Point)),
            ("1234.567", Hint::Decimal(Mark::Point)),
            ("1.2345", Hint::Decimal(Mark::Point)),
            ("1.234.567", Hint::Decimal(Mark::Comma)),
            ("1.2.3", Hint::Nothing),
            ("03.11.2026", Hint::Nothing),
            ("1.234,5", Hint::Decimal(Mark::Comma)),
            ("1,234.500", Hint::Decimal(Mark::Point)),
            ("1 234,500", Hint::Decimal(Mark::Comma)),
        ] {
            assert_eq!(hint(text, "USD", None), expected, "{text}");
        }
        assert_eq!(hint("1.234", "", Some(Thousands::Mark(Mark::Point))), Hint::Decimal(Mark::Comma));
        assert_eq!(hint("1.234", "", Some(Thousands::None)), Hint::Decimal(Mark::Point));
    }

    proptest! {
        #[test]
        fn a_text_that_settles_a_column_never_reads_as_another_amount_the_other_way(text in "[0-9., ']{1,10}") {
            if let Hint::Decimal(mark) = hint(&text, "", None) {
                prop_assert!(amount(&text, mark.other()).is_err() || amount(&text, mark).is_err()
                    || amount(&text, mark) == amount(&text, mark.other()), "{} {:?}", text, mark);
            }
        }

        #[test]
        fn any_text_is_an_amount_or_not_without_panic(text in ".*") {
            let _ = hint(&text, "USD", None);
            let _ = amount(&text, Mark::Comma);
        }
    }
}
