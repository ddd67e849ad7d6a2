//! A statement as lines with an id, a kind and an amount: what a profile makes of a file that somebody else wrote.
//!
//! The file is read twice: first for what only the whole of it can settle (how amounts are written, which days it covers),
//! then line by line. What cannot be read is told with its line and never left out; what reads in two ways is refused.

use std::io::{self, BufReader, Read, Seek};

use encoding_rs_io::DecodeReaderBytesBuilder;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::money::Amount;
use crate::reconcile::number::{self, Hint, Mark, NotANumber, Notation};
use crate::reconcile::profile::{Meaning, Profile, Reversals, Unit};
use crate::reconcile::records::{Record, Records};

/// What separates cells, as far as it is looked for.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Most column names that an error lists, and most characters of a text that it quotes.
const NAMES_MAX: usize = 40;
const QUOTED_MAX: usize = 60;

/// What a line says that the network did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It paid.
    Credit,
    /// It took back.
    Reversal,
}

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it begins in the file, from 1.
    pub number: u64,
    /// The network's id of the conversion.
    pub id: String,
    /// What it says that happened.
    pub says: Says,
    /// The signed amount; of a conversion's only line that says that it was reversed, without a sign.
    pub amount: Amount,
    /// The user, where the statement names one.
    pub user: Option<String>,
    /// When, where the statement says so.
    pub time: Option<Timestamp>,
}

/// What a record of the file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A line to compare.
    Line(Line),
    /// A line whose status moves nothing.
    Other,
    /// A line with the sum of the statement, as far as it says one.
    Totals { line: u64, said: Option<Amount> },
    /// A line that cannot be read, and why.
    Unreadable { line: u64, why: String },
}

/// Why a statement cannot be compared at all: what is wrong, and what to say.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is {0}: save it as CSV in UTF-8")]
    NotText(&'static str),
    #[error("it looks like UTF-16 without its mark: say --encoding utf-16le, or utf-16be")]
    Utf16,
    #[error("its lines end with a carriage return alone: save it with another line end")]
    CarriageReturns,
    #[error("it has no line {0}, where its header should be")]
    NoHeader(u64),
    #[error("line {line} has no column `{}` for --{option}; it has {has}", column.escape_debug())]
    NoColumn { line: u64, option: &'static str, column: String, has: String },
    #[error("line {line} has the column `{}` for --{option} more than once: say which, such as --{option} '#{first}'", column.escape_debug())]
    ColumnTwice { line: u64, option: &'static str, column: String, first: usize },
    #[error("what separates its cells is not clear: say --separator")]
    Separator,
    #[error("line {line}: `{}` can be {} or {}: say --decimal . or --decimal ,", text.escape_debug(), readings[0], readings[1])]
    Ambiguous { line: u64, text: String, readings: [String; 2] },
    #[error(
        "`{}` on line {point} has a decimal point, `{}` on line {comma} a decimal comma: say --decimal . or --decimal ,",
        point_text.escape_debug(), comma_text.escape_debug()
    )]
    Contradictory { point: u64, point_text: String, comma: u64, comma_text: String },
    #[error("none of its {lines} lines can be read; line {line}: {why}")]
    NothingReadable { lines: u64, line: u64, why: String },
    #[error("which days it covers is not known: say --time COLUMN, or --from DATE and --to DATE")]
    NoPeriod,
    #[error("--from {0} is after --to {1}")]
    PeriodBackwards(Date, Date),
}

/// The days that a statement covers, in its own time-zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
    /// The first moment of the first day.
    pub from: Timestamp,
    /// The first moment after the last day.
    pub to: Timestamp,
}

/// Where the columns are, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Columns {
    id: usize,
    amount: usize,
    time: Option<usize>,
    user: Option<usize>,
    currency: Option<usize>,
    status: Option<usize>,
    /// How many cells the header has.
    width: usize,
}

/// A statement whose header and notation are known.
#[derive(Debug)]
pub struct Statement<R> {
    input: R,
    /// How it is read.
    pub profile: Profile,
    separator: u8,
    /// The line of the header; records up to it are no lines. 0 where there is none.
    header: u64,
    columns: Columns,
    notation: Notation,
    /// The earliest and the latest time of any line.
    times: Option<(Timestamp, Timestamp)>,
    /// Whether the last record ends with a line end.
    pub ended: bool,
}

impl<R: Read + Seek> Statement<R> {
    /// Finds the columns of a statement, how its amounts are written, and which times it covers.
    ///
    /// # Errors
    ///
    /// [`StatementError`] where the file is no such statement, or something in it would have to be guessed.
    pub fn open(mut input: R, profile: Profile) -> Result<Statement<R>, StatementError> {
        sniff(&mut input, &profile)?;
        let (separator, header, columns) = header(&mut input, &profile)?;
        let notation = Notation { decimal: Mark::Point, thousands: profile.thousands };
        let mut statement =
            Statement { input, profile, separator, header, columns, notation, times: None, ended: true };
        statement.survey()?;
        Ok(statement)
    }

    /// The days that it covers: those given, or else from that of its earliest to that of its latest time.
    ///
    /// # Errors
    ///
    /// [`StatementError::NoPeriod`] and [`StatementError::PeriodBackwards`].
    pub fn period(&self, first: Option<Date>, last: Option<Date>) -> Result<Period, StatementError> {
        let zone = &self.profile.time_zone;
        let day = |time: Timestamp| time.to_zoned(zone.clone()).date();
        let first = first.or_else(|| Some(day(self.times?.0))).ok_or(StatementError::NoPeriod)?;
        let last = last.or_else(|| Some(day(self.times?.1))).ok_or(StatementError::NoPeriod)?;
        if first > last {
            return Err(StatementError::PeriodBackwards(first, last));
        }
        let midnight = |date: Date| date.to_zoned(zone.clone()).map(|zoned| zoned.timestamp());
        Ok(Period {
            first,
            last,
            from: midnight(first).unwrap_or(Timestamp::MIN),
            to: last.checked_add(1.day()).and_then(midnight).unwrap_or(Timestamp::MAX),
        })
    }

    /// Reads every line behind the header, in the order of the file; empty ones are none.
    ///
    /// # Errors
    ///
    /// What reading fails with, or `each`.
    pub fn lines<E: From<io::Error>>(&mut self, mut each: impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        let mut records = records(&mut self.input, &self.profile, self.separator)?;
        while let Some(record) = records.read()? {
            if record.line > self.header && !record.is_empty() {
                each(item(&record, &self.profile, &self.columns, self.notation))?;
            }
        }
        Ok(())
    }

    /// What only the whole file can say.
    fn survey(&mut self) -> Result<(), StatementError> {
        let said = self.profile.decimal;
        let mut column = ColumnHints::default();
        let mut records = records(&mut self.input, &self.profile, self.separator)?;
        while let Some(record) = records.read()? {
            self.ended = record.ended;
            if record.line <= self.header || record.is_empty() || record.fault.is_some() {
                continue;
            }
            if said.is_none()
                && let Ok(text) = text(&record, self.columns.amount)
            {
                let hint = number::hint(text, &self.profile.currency_is, self.profile.thousands);
                column.add(record.line, text, hint);
            }
            let time = self.columns.time.and_then(|position| text(&record, position).ok());
            let time =
                time.and_then(|time| read_time(time, &self.profile)).filter(|_| !is_totals(&record, &self.profile));
            if let Some(time) = time {
                let (earliest, latest) = self.times.unwrap_or((time, time));
                self.times = Some((earliest.min(time), latest.max(time)));
            }
        }
        self.notation.decimal = match said {
            Some(mark) => mark,
            None => column.settled(&self.profile)?,
        };
        Ok(())
    }
}

/// What the amounts of a column say about how they are written: the first line for each reading.
#[derive(Debug, Default)]
struct ColumnHints {
    point: Option<(u64, String)>,
    comma: Option<(u64, String)>,
    either: Option<(u64, String)>,
}

impl ColumnHints {
    fn add(&mut self, line: u64, text: &str, hint: Hint) {
        let first = match hint {
            Hint::Nothing => return,
            Hint::Decimal(Mark::Point) => &mut self.point,
            Hint::Decimal(Mark::Comma) => &mut self.comma,
            Hint::Either => &mut self.either,
        };
        first.get_or_insert_with(|| (line, cut(text)));
    }

    fn settled(self, profile: &Profile) -> Result<Mark, StatementError> {
        match (self.point, self.comma, self.either) {
            (Some((point, point_text)), Some((comma, comma_text)), _) => {
                Err(StatementError::Contradictory { point, point_text, comma, comma_text })
            }
            (Some(_), None, _) => Ok(Mark::Point),
            (None, Some(_), _) => Ok(Mark::Comma),
            (None, None, Some((line, text))) => {
                let readings = [Mark::Point, Mark::Comma].map(|decimal| {
                    let notation = Notation { decimal, thousands: profile.thousands };
                    number::read(&text, &profile.currency_is, notation, false)
                        .map_or_else(|_| "unreadable".to_owned(), |amount| amount.to_string())
                });
                Err(StatementError::Ambiguous { line, text, readings })
            }
            (None, None, None) => Ok(Mark::Point),
        }
    }
}

/// Refuses what is no text.
fn sniff<R: Read + Seek>(input: &mut R, profile: &Profile) -> Result<(), StatementError> {
    input.rewind()?;
    let mut start = Vec::new();
    input.take(1024).read_to_end(&mut start)?;
    let known: [(&[u8], &str); 5] = [
        (b"PK\x03\x04", "a spreadsheet or a ZIP archive"),
        (b"\xd0\xcf\x11\xe0", "a spreadsheet"),
        (b"\x1f\x8b", "compressed"),
        (b"%PDF", "a PDF"),
        (b"<", "a web page or XML"),
    ];
    if let Some((_, what)) = known.into_iter().find(|(bytes, _)| start.starts_with(bytes)) {
        return Err(StatementError::NotText(what));
    }
    let marked = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    if profile.encoding.is_none() && !marked && start.contains(&0) {
        return Err(StatementError::Utf16);
    }
    Ok(())
}

/// The records of the file from its start, in UTF-8.
fn records<'a, R: Read + Seek>(
    input: &'a mut R,
    profile: &Profile,
    separator: u8,
) -> io::Result<Records<BufReader<impl Read + use<'a, R>>>> {
    input.rewind()?;
    let decoded = DecodeReaderBytesBuilder::new()
        .encoding(profile.encoding)
        .bom_override(true)
        .strip_bom(true)
        .utf8_passthru(true)
        .build(input);
    Ok(Records::new(BufReader::with_capacity(64 * 1024, decoded), separator))
}

/// The separator, the header's line, and where the columns are.
fn header<R: Read + Seek>(input: &mut R, profile: &Profile) -> Result<(u8, u64, Columns), StatementError> {
    // Spreadsheets take a first line `sep=;` as the separator and not as a line.
    let first = records(input, profile, 0)?.read()?.unwrap_or_default();
    let said = first.cell(0).and_then(|line| line.trim_ascii_end().strip_prefix(b"sep="));
    let said = said.and_then(|rest| if let [separator] = rest { Some(*separator) } else { None });
    let wanted = profile.header.max(u64::from(said.is_some()) + profile.header.min(1));
    let candidates = match profile.separator.or(said) {
        Some(separator) => vec![separator],
        None => SEPARATORS.to_vec(),
    };
    let mut found = Vec::new();
    let mut best: Option<(usize, StatementError)> = None;
    for separator in candidates {
        let mut records = records(input, profile, separator)?;
        let record = loop {
            match records.read()? {
                None => return Err(StatementError::NoHeader(wanted.max(1))),
                Some(record) if record.line < wanted || (said.is_some() && record.line == 1) || record.is_empty() => {}
                Some(record) => break record,
            }
        };
        if record.cell(0).is_some_and(|cell| cell.contains(&b'\r')) {
            return Err(StatementError::CarriageReturns);
        }
        let line = if profile.header == 0 { record.line - 1 } else { record.line };
        match columns(&record, profile) {
            Ok(columns) => found.push((separator, line, columns)),
            Err(error) => {
                if best.as_ref().is_none_or(|(cells, _)| record.len() > *cells) {
                    best = Some((record.len(), error));
                }
            }
        }
    }
    match (found.len(), best) {
        (0, Some((_, error))) => Err(error),
        (1, _) => found.pop().ok_or(StatementError::Separator),
        _ => Err(StatementError::Separator),
    }
}

/// Finds each column that the profile names, by name or by number.
fn columns(header: &Record, profile: &Profile) -> Result<Columns, StatementError> {
    let names: Vec<String> = match profile.header {
        0 => vec![String::new(); header.len()],
        _ => header.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect(),
    };
    let mut columns = Columns { width: names.len(), ..Columns::default() };
    for (option, column) in profile.columns() {
        let mut with_name = names.iter().enumerate().filter(|(_, name)| *name == column.trim() && !name.is_empty());
        let position = match (with_name.next(), with_name.next()) {
            (Some((first, _)), Some(_)) => {
                let column = column.to_owned();
                return Err(StatementError::ColumnTwice { line: header.line, option, column, first: first + 1 });
            }
            (Some((position, _)), None) => Some(position),
            (None, _) => number(column).filter(|position| *position < names.len()),
        };
        let position = position.ok_or_else(|| {
            let quoted = |(position, name): (usize, &String)| match name.as_str() {
                "" => format!("#{}", position + 1),
                name => format!("`{}`", cut(name).escape_debug()),
            };
            let mut has: Vec<_> = names.iter().enumerate().take(NAMES_MAX).map(quoted).collect();
            if names.len() > NAMES_MAX {
                has.push(format!("{} more", names.len() - NAMES_MAX));
            }
            StatementError::NoColumn { line: header.line, option, column: cut(column), has: has.join(", ") }
        })?;
        match option {
            "id" => columns.id = position,
            "amount" => columns.amount = position,
            "time" => columns.time = Some(position),
            "user" => columns.user = Some(position),
            "currency" => columns.currency = Some(position),
            _ => columns.status = Some(position),
        }
    }
    Ok(columns)
}

/// The position that `#3` counts.
fn number(column: &str) -> Option<usize> {
    column.trim().strip_prefix('#')?.parse::<usize>().ok()?.checked_sub(1)
}

/// What a record is.
fn item(record: &Record, profile: &Profile, columns: &Columns, notation: Notation) -> Item {
    if is_totals(record, profile) {
        let amount = text(record, columns.amount).ok().and_then(|text| amount(text, profile, notation).ok());
        return Item::Totals { line: record.line, said: amount };
    }
    match line(record, profile, columns, notation) {
        Ok(Some(line)) => Item::Line(line),
        Ok(None) => Item::Other,
        Err(why) => Item::Unreadable { line: record.line, why },
    }
}

/// Whether the first cell that says anything begins as a line with the sum does.
fn is_totals(record: &Record, profile: &Profile) -> bool {
    let Some(totals) = profile.totals.as_ref().filter(|_| record.fault.is_none()) else { return false };
    let first = record.iter().map(<[u8]>::trim_ascii).find(|cell| !cell.is_empty());
    let first = first.map(|cell| String::from_utf8_lossy(cell).to_lowercase());
    first.is_some_and(|first| first.starts_with(&totals.to_lowercase()))
}

/// Reads a line; `None` where its status moves nothing.
fn line(record: &Record, profile: &Profile, columns: &Columns, notation: Notation) -> Result<Option<Line>, String> {
    if let Some(fault) = record.fault {
        return Err(fault.to_string());
    }
    let surplus = (columns.width..record.len()).filter_map(|position| record.cell(position));
    if record.len() < columns.width || surplus.into_iter().any(|cell| !cell.trim_ascii().is_empty()) {
        let (has, width) = (record.len(), columns.width);
        let cut_off = if has < width && !record.ended { ": the file is cut off" } else { "" };
        let quoted = match record.last_line {
            last if last > record.line => format!(", and its quotes make one line of those to {last}"),
            _ => String::new(),
        };
        return Err(format!("it has {has} cells where the header has {width}{cut_off}{quoted}"));
    }
    let said = match (&profile.statuses, columns.status) {
        (Some(statuses), Some(position)) => {
            let text = text(record, position).map_err(|why| format!("status: {why}"))?;
            let in_no_list = || format!("status `{}` is in no list: say --credit, --reversal or --other", show(text));
            Some(statuses.meaning(text).ok_or_else(in_no_list)?)
        }
        _ => None,
    };
    if said == Some(Meaning::Other) {
        return Ok(None);
    }
    if let Some(position) = columns.currency {
        let code = text(record, position).map_err(|why| format!("currency: {why}"))?;
        if !code.eq_ignore_ascii_case(&profile.currency_is) {
            return Err(format!("its currency is `{}` and not {}", show(code), profile.currency_is));
        }
    }
    let amount_text = text(record, columns.amount).map_err(|why| format!("amount: {why}"))?;
    let amount =
        amount(amount_text, profile, notation).map_err(|why| format!("amount `{}`: {why}", show(amount_text)))?;
    let (says, amount) = kind(said, amount, profile.reversals)?;
    let id = id(record, columns.id, profile.reversal_prefix.as_deref().filter(|_| says == Says::Reversal))?;
    let user =
        columns.user.map(|position| plain(record, position).map_err(|why| format!("user: {why}"))).transpose()?;
    let time = match columns.time {
        None => None,
        Some(position) => {
            let text = text(record, position).map_err(|why| format!("time: {why}"))?;
            let unclear = || format!("time `{}` does not read in one way: say --time-format", show(text));
            Some(read_time(text, profile).ok_or_else(unclear)?)
        }
    };
    Ok(Some(Line { number: record.line, id, says, amount, user: user.map(str::to_owned), time }))
}

/// What a line says, and the amount as it counts.
fn kind(said: Option<Meaning>, amount: Amount, reversals: Reversals) -> Result<(Says, Amount), String> {
    let size = if amount < Amount::ZERO { amount.negated() } else { amount };
    let by_status = said == Some(Meaning::Reversal);
    match reversals {
        Reversals::Negative if by_status && amount >= Amount::ZERO => {
            Err("its status is a reversal and its amount is not below zero: say --reversals line, or state".to_owned())
        }
        Reversals::Negative if amount < Amount::ZERO => Ok((Says::Reversal, amount)),
        Reversals::Line if by_status => Ok((Says::Reversal, size.negated())),
        Reversals::State if by_status => Ok((Says::Reversal, size)),
        Reversals::Line | Reversals::State if amount < Amount::ZERO => {
            Err("its status is a credit and its amount is below zero".to_owned())
        }
        Reversals::Negative | Reversals::Line | Reversals::State => Ok((Says::Credit, amount)),
    }
}

fn amount(text: &str, profile: &Profile, notation: Notation) -> Result<Amount, NotANumber> {
    number::read(text, &profile.currency_is, notation, profile.unit == Unit::Cents)
}

/// The network's id, which is compared as it stands: what a spreadsheet made of it is never taken back by a guess.
fn id(record: &Record, position: usize, prefix: Option<&str>) -> Result<String, String> {
    let text = plain(record, position).map_err(|why| format!("id: {why}"))?;
    if number::looks_scientific(text) {
        return Err(format!(
            "the id `{}` was rounded by a spreadsheet: take the file as the network exports it",
            show(text)
        ));
    }
    let id = prefix.and_then(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    if id.is_empty() { Err("it has no id; if it is the sum, say --totals".to_owned()) } else { Ok(id.to_owned()) }
}

/// A cell without control characters. `="007"`, with which an export keeps a spreadsheet from cutting zeros, is 007.
fn plain(record: &Record, position: usize) -> Result<&str, String> {
    let text = text(record, position)?;
    let text = text.strip_prefix("=\"").and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    if text.chars().any(char::is_control) {
        return Err(format!("`{}` has a control character", show(text)));
    }
    Ok(text)
}

/// A cell as text, without the space around it.
fn text(record: &Record, position: usize) -> Result<&str, String> {
    let cell = record.cell(position).ok_or_else(|| "the cell is missing".to_owned())?;
    match std::str::from_utf8(cell) {
        Ok(text) if text.contains('\u{fffd}') => Err("bytes that are not of its encoding".to_owned()),
        Ok(text) => Ok(text.trim()),
        Err(_) => Err("bytes that are not UTF-8: say --encoding, such as windows-1252".to_owned()),
    }
}

/// Reads a time; `None` where it does not read in one way.
fn read_time(text: &str, profile: &Profile) -> Option<Timestamp> {
    let zone = &profile.time_zone;
    if let Some(format) = &profile.time_format {
        let time = BrokenDownTime::parse(format, text).ok()?;
        if time.offset().is_some() {
            return time.to_timestamp().ok();
        }
        let date = time.to_date().ok()?;
        return in_zone(time.to_time().map_or(date.at(0, 0, 0, 0), |time| date.to_datetime(time)), zone);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse().ok()?;
        return match text.len() {
            10 => Timestamp::from_second(number).ok(),
            13 => Timestamp::from_millisecond(number).ok(),
            _ => None,
        };
    }
    if let Some(text) = text.strip_suffix("UTC") {
        return in_zone(text.trim_end().parse().ok()?, &TimeZone::UTC);
    }
    // With an offset it is a moment, without one a local time.
    text.parse::<Timestamp>().ok().or_else(|| in_zone(text.parse::<DateTime>().ok()?, zone))
}

fn in_zone(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    time.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
}

/// A stranger's text for a message: short, and without anything that a terminal would obey.
fn show(text: &str) -> String {
    cut(text).escape_debug().to_string()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
