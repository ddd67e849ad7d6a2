//! How a network's statement is read: which column is what, and how times and amounts are written in it.
//!
//! A [`Draft`] is what a person said, on the command line or in a saved file; a [`Profile`] is what it means, checked. Nothing
//! that money depends on has a default that could be wrong without being noticed.

use clap::Args;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::money::{Amount, Received, Scale};
use crate::reconcile::number::{Mark, Thousands};

/// What a person said about a statement. Columns are named as in its header, or counted: `#1` is the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[group(skip)]
pub struct Draft {
    /// The column with the network's id of the conversion
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// The column with the amount to compare
    #[arg(long, value_name = "COLUMN")]
    pub amount: Option<String>,
    /// What that amount is: coins, usd or usd-cents
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// The column with when it happened
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// The time-zone of times without an offset, and of the days: an IANA name such as Europe/Berlin; else UTC
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// How times are written where it is not ISO 8601: '%d/%m/%Y %H:%M'
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// The column with your user
    #[arg(long, value_name = "COLUMN")]
    pub user: Option<String>,
    /// The column with the currency of the amount
    #[arg(long, value_name = "COLUMN")]
    pub currency: Option<String>,
    /// What that column must say; else USD
    #[arg(long, value_name = "CODE")]
    pub currency_is: Option<String>,
    /// The column with the status
    #[arg(long, value_name = "COLUMN")]
    pub status: Option<String>,
    /// A status of a credit; as often as needed
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit: Vec<String>,
    /// A status of a reversal; as often as needed
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reversal: Vec<String>,
    /// A status that moves no coins, such as pending; as often as needed
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other: Vec<String>,
    /// How a reversal is told: negative (a line with an amount below zero), line (a line of its own, by its status) or
    /// state (the conversion's only line, by its status)
    #[arg(long, value_name = "HOW")]
    pub reversals: Option<String>,
    /// What stands before the id on a reversal's line
    #[arg(long, value_name = "TEXT")]
    pub reversal_prefix: Option<String>,
    /// What separates cells, one character or tab; else found from the header
    #[arg(long, value_name = "CHARACTER")]
    pub separator: Option<String>,
    /// What stands before the decimals: . or ,
    #[arg(long, value_name = "MARK")]
    pub decimal: Option<String>,
    /// What stands between thousands: . , ' space or none
    #[arg(long, value_name = "MARK")]
    pub thousands: Option<String>,
    /// The encoding, where it is neither UTF-8 nor told by the file's first bytes: windows-1252, utf-16le
    #[arg(long, value_name = "ENCODING")]
    pub encoding: Option<String>,
    /// The line of the header, 0 where there is none
    #[arg(long, value_name = "LINE")]
    pub header: Option<u64>,
    /// What a line with the sum of the statement begins with, such as Total
    #[arg(long, value_name = "TEXT")]
    pub totals: Option<String>,
    /// Up to which difference two amounts are the same
    #[arg(long, value_name = "AMOUNT")]
    pub tolerance: Option<String>,
    /// How near to the first or last midnight a conversion may be in the neighbouring statement; else 60
    #[arg(long, value_name = "MINUTES")]
    pub margin_minutes: Option<u32>,
}

/// What the amounts of a statement are, and with which of our amounts they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Coins: compared with what entries moved.
    Coins,
    /// US dollars: compared with what the network said that it pays.
    Dollars,
    /// Cents of a US dollar, likewise.
    Cents,
}

/// How a statement tells a reversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reversals {
    /// A line of its own with an amount below zero.
    Negative,
    /// A line of its own, by its status; its amount counts below zero, whatever its sign.
    Line,
    /// The only line of the conversion, by its status; it counts as nothing paid, whatever its amount.
    State,
}

/// A column: by its name in the header, or by its number.
pub type Column = String;

/// The status column and what its texts mean.
#[derive(Debug, Clone)]
pub struct Statuses {
    /// The column.
    pub column: Column,
    credit: Vec<String>,
    reversal: Vec<String>,
    other: Vec<String>,
}

/// What a status text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Coins were given.
    Credit,
    /// They were taken back.
    Reversal,
    /// Nothing moved.
    Other,
}

/// What a [`Draft`] means.
#[derive(Debug, Clone)]
pub struct Profile {
    pub id: Column,
    pub amount: Column,
    pub unit: Unit,
    pub time: Option<Column>,
    pub time_zone: TimeZone,
    /// The zone's name, for whoever reads the result.
    pub zone_name: String,
    pub time_format: Option<String>,
    pub user: Option<Column>,
    pub currency: Option<Column>,
    /// The code that amounts may carry and the currency column must say; empty where coins have none.
    pub currency_is: String,
    pub statuses: Option<Statuses>,
    pub reversals: Reversals,
    pub reversal_prefix: Option<String>,
    pub separator: Option<u8>,
    pub decimal: Option<Mark>,
    pub thousands: Option<Thousands>,
    pub encoding: Option<&'static encoding_rs::Encoding>,
    pub header: u64,
    pub totals: Option<String>,
    pub tolerance: Amount,
    pub margin_minutes: u32,
}

/// Why a draft is no profile: what to say, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("--{0} is missing: say {1}")]
    Missing(&'static str, &'static str),
    #[error("--{option} `{}` is not {expected}", given.escape_debug())]
    Unknown { option: &'static str, given: String, expected: &'static str },
    #[error("--{0} needs --status, the column that it is about")]
    NeedsStatus(&'static str),
    #[error("--status needs --credit TEXT or --reversal TEXT: what its texts mean is never guessed")]
    NoTexts,
    #[error("`{}` is given for two meanings of --status", .0.escape_debug())]
    TwoMeanings(String),
    #[error("--decimal and --thousands are the same")]
    SameMarks,
    #[error("{0}")]
    Toml(String),
}

impl Draft {
    /// Reads a saved profile.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Toml`] with the line in question.
    pub fn from_toml(text: &str) -> Result<Draft, ProfileError> {
        // The parser's message is a picture of several lines; an error of ours is one.
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            ProfileError::Toml(format!("line {}: {}", before.matches('\n').count() + 1, error.message().trim()))
        })
    }

    /// The profile to save.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Toml`].
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        let text = toml::to_string(self).map_err(|error| ProfileError::Toml(error.to_string()))?;
        Ok(format!(
            "# How a statement is read: `operator reconcile <network> <statement> --profile <this file>`.\n{text}"
        ))
    }

    /// What `self` says, and where it says nothing, what `base` says.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Toml`].
    pub fn over(&self, base: &Draft) -> Result<Draft, ProfileError> {
        let table = |draft: &Draft| toml::Table::try_from(draft).map_err(|error| ProfileError::Toml(error.to_string()));
        let mut said = table(base)?;
        said.extend(table(self)?);
        said.try_into().map_err(|error: toml::de::Error| ProfileError::Toml(error.message().to_owned()))
    }
}

impl Profile {
    /// What a draft means.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] names the first option that is missing or means nothing.
    pub fn of(draft: &Draft) -> Result<Profile, ProfileError> {
        let id = draft.id.clone().ok_or(ProfileError::Missing("id", "which column has the network's id"))?;
        let amount = draft.amount.clone().ok_or(ProfileError::Missing("amount", "which column has the amount"))?;
        let unit = match draft.unit.as_deref() {
            None => return Err(ProfileError::Missing("unit", "what the amounts are: coins, usd or usd-cents")),
            Some("coins") => Unit::Coins,
            Some("usd") => Unit::Dollars,
            Some("usd-cents") => Unit::Cents,
            Some(given) => return Err(unknown("unit", given, "coins, usd or usd-cents")),
        };
        let zone_name = draft.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
        let time_zone = TimeZone::get(&zone_name)
            .map_err(|_| unknown("time-zone", &zone_name, "a time-zone's name such as Europe/Berlin"))?;
        let statuses = statuses(draft)?;
        let reversals = reversals(draft, statuses.as_ref())?;
        let (decimal, thousands) = marks(draft)?;
        let currency_is = draft.currency_is.clone().unwrap_or_else(|| match unit {
            Unit::Coins if draft.currency.is_none() => String::new(),
            Unit::Coins | Unit::Dollars | Unit::Cents => "USD".to_owned(),
        });
        if unit != Unit::Coins && currency_is != "USD" {
            return Err(unknown("currency-is", &currency_is, "USD, in which entries have their payout"));
        }
        Ok(Profile {
            id,
            amount,
            unit,
            time: draft.time.clone(),
            time_zone,
            zone_name,
            time_format: draft.time_format.clone(),
            user: draft.user.clone(),
            currency: draft.currency.clone(),
            currency_is,
            statuses,
            reversals,
            reversal_prefix: draft.reversal_prefix.clone(),
            separator: draft.separator.as_deref().map(separator).transpose()?,
            decimal,
            thousands,
            encoding: draft.encoding.as_deref().map(encoding).transpose()?,
            header: draft.header.unwrap_or(1),
            totals: draft.totals.clone(),
            tolerance: draft.tolerance.as_deref().map_or(Ok(Amount::ZERO), tolerance)?,
            margin_minutes: draft.margin_minutes.unwrap_or(60),
        })
    }

    /// The columns that it names: what is read from each, and its name.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let status = self.statuses.as_ref().map(|statuses| &statuses.column);
        [
            ("id", Some(&self.id)),
            ("amount", Some(&self.amount)),
            ("time", self.time.as_ref()),
            ("user", self.user.as_ref()),
            ("currency", self.currency.as_ref()),
            ("status", status),
        ]
        .into_iter()
        .filter_map(|(option, column)| Some((option, column?.as_str())))
    }
}

impl Statuses {
    /// What a status text means; its case and the space around it do not count. `None` where no list has it.
    pub fn meaning(&self, text: &str) -> Option<Meaning> {
        let text = text.trim().to_lowercase();
        let in_list = |list: &[String]| list.contains(&text);
        match () {
            () if in_list(&self.credit) => Some(Meaning::Credit),
            () if in_list(&self.reversal) => Some(Meaning::Reversal),
            () if in_list(&self.other) => Some(Meaning::Other),
            () => None,
        }
    }
}

fn unknown(option: &'static str, given: &str, expected: &'static str) -> ProfileError {
    ProfileError::Unknown { option, given: given.to_owned(), expected }
}

fn statuses(draft: &Draft) -> Result<Option<Statuses>, ProfileError> {
    let lists = [("credit", &draft.credit), ("reversal", &draft.reversal), ("other", &draft.other)];
    let Some(column) = draft.status.clone() else {
        let needing = lists.into_iter().find(|(_, list)| !list.is_empty());
        return needing.map_or(Ok(None), |(option, _)| Err(ProfileError::NeedsStatus(option)));
    };
    let [credit, reversal, other] =
        lists.map(|(_, list)| list.iter().map(|text| text.trim().to_lowercase()).collect::<Vec<_>>());
    if credit.is_empty() && reversal.is_empty() {
        return Err(ProfileError::NoTexts);
    }
    for (list, others) in [(&credit, [&reversal, &other]), (&reversal, [&credit, &other])] {
        if let Some(twice) = list.iter().find(|text| others.iter().any(|other| other.contains(text))) {
            return Err(ProfileError::TwoMeanings(twice.clone()));
        }
    }
    Ok(Some(Statuses { column, credit, reversal, other }))
}

fn reversals(draft: &Draft, statuses: Option<&Statuses>) -> Result<Reversals, ProfileError> {
    let by_status = statuses.is_some_and(|statuses| !statuses.reversal.is_empty());
    match draft.reversals.as_deref() {
        None if by_status => Err(ProfileError::Missing(
            "reversals",
            "`line` where a reversal has a line of its own, `state` where a conversion's only line changes its status",
        )),
        None | Some("negative") => Ok(Reversals::Negative),
        Some("line" | "state") if !by_status => {
            Err(ProfileError::Missing("reversal", "which texts of --status are a reversal"))
        }
        Some("line") => Ok(Reversals::Line),
        Some("state") => Ok(Reversals::State),
        Some(given) => Err(unknown("reversals", given, "negative, line or state")),
    }
}

/// The marks: where the one between thousands is a point or a comma, the other one stands before the decimals.
fn marks(draft: &Draft) -> Result<(Option<Mark>, Option<Thousands>), ProfileError> {
    let decimal =
        draft.decimal.as_deref().map(|given| Mark::read(given).ok_or_else(|| unknown("decimal", given, ". or ,")));
    let thousands = draft
        .thousands
        .as_deref()
        .map(|given| Thousands::read(given).ok_or_else(|| unknown("thousands", given, "one of . , ' space and none")));
    match (decimal.transpose()?, thousands.transpose()?) {
        (Some(decimal), Some(Thousands::Mark(mark))) if decimal == mark => Err(ProfileError::SameMarks),
        (None, Some(Thousands::Mark(mark))) => Ok((Some(mark.other()), Some(Thousands::Mark(mark)))),
        marks => Ok(marks),
    }
}

fn separator(given: &str) -> Result<u8, ProfileError> {
    match given.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
            Ok(*byte)
        }
        _ => Err(unknown("separator", given, "one character that is no letter, digit or quote, or `tab`")),
    }
}

fn encoding(given: &str) -> Result<&'static encoding_rs::Encoding, ProfileError> {
    let expected = "an encoding such as windows-1252 or utf-16le";
    encoding_rs::Encoding::for_label(given.as_bytes()).ok_or_else(|| unknown("encoding", given, expected))
}

fn tolerance(given: &str) -> Result<Amount, ProfileError> {
    let amount = Received::read(given).ok().filter(|received| !received.is_negative());
    let amount = amount.zip(Scale::new(Scale::MAX)).and_then(|(received, scale)| received.cut(scale).ok());
    amount.ok_or_else(|| unknown("tolerance", given, "a plain decimal such as 0.01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(text: &str) -> Result<Draft, ProfileError> {
        Draft::from_toml(text)
    }

    const FULL: &str = "id = 'i'\namount = 'a'\nunit = 'usd'\n";

    #[test]
    fn a_profile_is_saved_and_read_and_options_beside_it_win() {
        let saved = draft(&format!("{FULL}status = 's'\ncredit = ['ok', 'paid']\nheader = 3\n")).unwrap();
        assert_eq!(draft(&saved.to_toml().unwrap()), Ok(saved.clone()));
        let said = Draft { amount: Some("b".to_owned()), credit: vec!["yes".to_owned()], ..Draft::default() };
        let both = said.over(&saved).unwrap();
        assert_eq!((both.amount.as_deref(), both.id.as_deref(), both.header), (Some("b"), Some("i"), Some(3)));
        assert_eq!(both.credit, ["yes"]);
    }

    #[test]
    fn a_draft_that_would_need_a_guess_says_what_to_say() {
        for (text, expected) in [
            ("amount = 'a'", "--id is missing: say which column has the network's id"),
            ("id = 'i'\namount = 'a'", "--unit is missing: say what the amounts are: coins, usd or usd-cents"),
            ("id = 'i'\namount = 'a'\nunit = 'eur'", "--unit `eur` is not coins, usd or usd-cents"),
            ("id = 1", "line 1: invalid type: integer `1`, expected a string"),
        ] {
            assert_eq!(draft(text).and_then(|draft| Profile::of(&draft)).unwrap_err().to_string(), expected);
        }
        for (more, expected) in [
            (
                "time_zone = 'Europe/Berlln'",
                "--time-zone `Europe/Berlln` is not a time-zone's name such as Europe/Berlin",
            ),
            ("credit = ['ok']", "--credit needs --status, the column that it is about"),
            ("status = 's'", "--status needs --credit TEXT or --reversal TEXT: what its texts mean is never guessed"),
            ("status = 's'\ncredit = ['OK']\nother = ['ok ']", "`ok` is given for two meanings of --status"),
            (
                "status = 's'\nreversal = ['no']",
                "--reversals is missing: say `line` where a reversal has a line of its own, `state` where a conversion's \
                 only line changes its status",
            ),
            ("reversals = 'state'", "--reversal is missing: say which texts of --status are a reversal"),
            ("reversals = 'no'", "--reversals `no` is not negative, line or state"),
            ("decimal = '.'\nthousands = '.'", "--decimal and --thousands are the same"),
            ("decimal = ';'", "--decimal `;` is not . or ,"),
            ("thousands = 'x'", "--thousands `x` is not one of . , ' space and none"),
            ("separator = 'ab'", "--separator `ab` is not one character that is no letter, digit or quote, or `tab`"),
            ("encoding = 'latin-99'", "--encoding `latin-99` is not an encoding such as windows-1252 or utf-16le"),
            ("tolerance = '-1'", "--tolerance `-1` is not a plain decimal such as 0.01"),
            ("currency_is = 'EUR'", "--currency-is `EUR` is not USD, in which entries have their payout"),
            ("colour = 'red'", "line 4: unknown field `colour`"),
        ] {
            let error = draft(&format!("{FULL}{more}")).and_then(|draft| Profile::of(&draft)).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains('\n'), "{more}: {error}");
        }
    }
}
