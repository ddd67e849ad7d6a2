//! A network's statement against our entries: what both know, what only one of them knows, and where they differ.
//!
//! Pure: entries come in one by one, the statement as a file that can be read twice, scratch files from the caller. Memory
//! does not grow with the number of lines: both sides are sorted outside of it and then read side by side. Ids are compared
//! as they stand and never matched by a guess, and nothing of a statement vanishes: what cannot be read is a finding.
//!
//! # What is compared
//!
//! One conversion at a time: its credit and its reversal on our side, its lines on theirs. An entry outside of the
//! statement's days can match a line, but its absence is no finding, nor is it within the margin of the first and the last
//! midnight, where the neighbouring statement may have it. So entries must be given from the margin before the first day
//! on, and without an end: conversions of the last day may have come, and been reversed, later.
//!
//! A credit that was reversed is in order when the statement has both, when it has the credit and the reversal came after
//! its last day, and when it has neither: the network netted it out, and both sides count nothing.

pub mod judge; // one conversion on both sides
pub mod number; // amounts as spreadsheets write them
pub mod profile; // which column is what
pub mod records; // the records of a separated-values file
pub mod show; // the result as text, JSON, CSV and a page
pub mod sort; // more records than memory holds, in order
pub mod statement; // the lines of a file that somebody else wrote

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::books::Row;
use crate::ledger::Status;
use crate::money::Amount;
use crate::terminal::visible;
use judge::{Conversion, Ruling};
use profile::{Profile, Reversals, Unit};
use sort::{Limits, Scratch, Sorter, rewound};
use statement::{Item, Line, Period, Says, Statement, StatementError};

/// An entry of ours, as far as a network's statement can know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    /// The network's id of the conversion.
    pub id: String,
    pub kind: Kind,
    /// The user whom the network named.
    pub user: String,
    /// The signed coins, also those that a reversal could not take back.
    pub coins: Amount,
    /// What the network said that it pays, in US dollars; below zero where it takes it back.
    pub payout_usd: Option<Amount>,
    pub received_at: Timestamp,
}

/// What an entry did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Coins were given.
    Credit,
    /// They were taken back.
    Reversal,
    /// Neither: it stands where a credit would be whose reversal came first.
    Placeholder,
}

/// Why a row cannot be compared, though it is the network's: somebody put it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the entry {trans_id} {status} has no time that reads: `operator verify` says what else is wrong")]
pub struct NoTime {
    trans_id: String,
    status: String,
}

impl Ours {
    /// What a network's statement can know of a row; `None` where it is nothing of the network's, such as a release.
    ///
    /// # Errors
    ///
    /// [`NoTime`].
    pub fn of(row: &Row) -> Result<Option<Ours>, NoTime> {
        let kind = match Status::stored(&row.status) {
            Some(Status::Credit) if row.void => Kind::Placeholder,
            Some(Status::Credit) => Kind::Credit,
            Some(Status::Reversal) => Kind::Reversal,
            Some(
                Status::Release
                | Status::Assign
                | Status::Clear
                | Status::Adjust(_)
                | Status::Operation
                | Status::Rollback
                | Status::Open
                | Status::Close
                | Status::Deposit
                | Status::Withdrawal,
            )
            | None => return Ok(None),
        };
        let Some((_, id)) = row.trans_id.split_once('/') else { return Ok(None) };
        let time = row.received_at.as_ref().and_then(|time| time.parse().ok());
        let no_time = || NoTime { trans_id: visible(&row.trans_id), status: visible(&row.status) };
        // A reversal's loss that is ours is nothing to the network: it took back all of it.
        let coins = row.amount.checked_add(row.absorbed.negated()).unwrap_or(row.amount);
        Ok(Some(Ours {
            id: id.to_owned(),
            kind,
            user: row.user_received.clone().unwrap_or_else(|| row.user.as_str().to_owned()),
            coins,
            payout_usd: row.payout_usd,
            received_at: time.ok_or_else(no_time)?,
        }))
    }
}

/// What a conversion, or a line too many of it, comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Both sides say the same.
    Matched,
    /// The statement has it, and we do not.
    MissingWithUs,
    /// We have it, and the statement does not, though it covers that day.
    MissingWithThem,
    /// Both have it, with different amounts.
    AmountDiffers,
    /// One says that it was credited, the other that it was reversed.
    StatusDiffers,
    /// Both say the same of different users.
    UserDiffers,
    /// The statement has it more than once: each line beyond the one that was compared.
    Duplicated,
    /// We credited and reversed it, and the statement has neither.
    NettedOut,
    /// We have it so near to the first or last midnight that the neighbouring statement may have it.
    AtTheEdge,
    /// We have it outside of the statement's days.
    Outside,
}

impl Category {
    /// Every category, in the order in which they are shown.
    pub const ALL: [Category; 10] = [
        Category::Matched,
        Category::MissingWithUs,
        Category::MissingWithThem,
        Category::AmountDiffers,
        Category::StatusDiffers,
        Category::UserDiffers,
        Category::Duplicated,
        Category::NettedOut,
        Category::AtTheEdge,
        Category::Outside,
    ];

    /// Its name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Matched => "matched",
            Category::MissingWithUs => "missing_with_us",
            Category::MissingWithThem => "missing_with_them",
            Category::AmountDiffers => "amount_differs",
            Category::StatusDiffers => "status_differs",
            Category::UserDiffers => "user_differs",
            Category::Duplicated => "duplicated",
            Category::NettedOut => "netted_out",
            Category::AtTheEdge => "at_the_edge",
            Category::Outside => "outside",
        }
    }

    /// Its name for people.
    pub fn words(self) -> &'static str {
        match self {
            Category::Matched => "matched",
            Category::MissingWithUs => "missing with us",
            Category::MissingWithThem => "missing with them",
            Category::AmountDiffers => "amount differs",
            Category::StatusDiffers => "status differs",
            Category::UserDiffers => "user differs",
            Category::Duplicated => "duplicated in the statement",
            Category::NettedOut => "credited and reversed by us, not in the statement",
            Category::AtTheEdge => "near the first or last midnight",
            Category::Outside => "outside of the statement's days",
        }
    }

    /// Whether a person must look at it.
    pub fn is_difference(self) -> bool {
        match self {
            Category::MissingWithUs
            | Category::MissingWithThem
            | Category::AmountDiffers
            | Category::StatusDiffers
            | Category::UserDiffers
            | Category::Duplicated => true,
            Category::Matched | Category::NettedOut | Category::AtTheEdge | Category::Outside => false,
        }
    }

    /// Whether each conversion in it is listed, and not only counted.
    pub fn is_listed(self) -> bool {
        match self {
            Category::NettedOut | Category::AtTheEdge => true,
            Category::Matched | Category::Outside => false,
            Category::MissingWithUs
            | Category::MissingWithThem
            | Category::AmountDiffers
            | Category::StatusDiffers
            | Category::UserDiffers
            | Category::Duplicated => true,
        }
    }
}

/// What one side says of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was credited.
    Credited,
    /// It was credited and then reversed.
    Reversed,
    /// A reversal alone.
    ReversalOnly,
}

impl State {
    /// Its name for people.
    pub fn words(self) -> &'static str {
        match self {
            State::Credited => "credited",
            State::Reversed => "credited and reversed",
            State::ReversalOnly => "reversed",
        }
    }
}

/// One side of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub status: State,
    /// What was given; `None` where nothing was, or nothing says how much.
    #[serde(with = "optional_text")]
    pub credit: Option<Amount>,
    /// What was taken back, below zero; `None` likewise.
    #[serde(with = "optional_text")]
    pub reversal: Option<Amount>,
    /// The user, where this side names one.
    pub user: Option<String>,
    /// When it first happened, where this side says so.
    #[serde(with = "optional_text")]
    pub time: Option<Timestamp>,
    /// The lines of the statement; empty on our side.
    pub lines: Vec<u64>,
}

/// What somebody must look at, or may want to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "one is held at a time")]
pub enum Finding {
    /// A conversion that did not simply match.
    Conversion {
        category: Category,
        /// The network's id.
        id: String,
        ours: Option<Side>,
        theirs: Option<Side>,
        /// An id of the other side that differs only in what spreadsheets do to ids. It was not matched.
        like: Option<String>,
    },
    /// A line of the statement that cannot be read.
    Unreadable { line: u64, why: String },
    /// A line with the sum of the statement which is not that of its lines.
    Totals {
        line: u64,
        /// What it says; `None` where it does not read.
        #[serde(with = "optional_text")]
        said: Option<Amount>,
        /// What the lines that were read add up to.
        #[serde(with = "optional_text")]
        read: Option<Amount>,
    },
}

/// Amounts and times in JSON: as text, so that none is rounded.
mod optional_text {
    use std::fmt::Display;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// What is written as text and read back.
    pub trait Text: Sized + Display {
        fn of(text: &str) -> Option<Self>;
    }

    impl Text for super::Amount {
        fn of(text: &str) -> Option<Self> {
            super::Amount::stored(text)
        }
    }

    impl Text for super::Timestamp {
        fn of(text: &str) -> Option<Self> {
            text.parse().ok()
        }
    }

    #[allow(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub fn serialize<T: Text, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| T::of(&text).ok_or_else(|| D::Error::custom("not of its kind"))).transpose()
    }
}

/// How many, and how much in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    pub amount: Amount,
}

impl Sum {
    /// None, and nothing.
    pub const ZERO: Sum = Sum { count: 0, amount: Amount::ZERO };

    fn add(&mut self, count: u64, amount: Amount) -> Result<(), Failure> {
        self.count += count;
        self.amount = self.amount.checked_add(amount).ok_or(Failure::OutOfRange)?;
        Ok(())
    }
}

/// Entries of ours and lines of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Our entries.
    pub ours: Sum,
    /// The statement's lines.
    pub theirs: Sum,
}

impl Tally {
    const ZERO: Tally = Tally { ours: Sum::ZERO, theirs: Sum::ZERO };
}

/// What every line of the statement behind its header was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// All that are not empty.
    pub all: u64,
    /// Compared.
    pub compared: u64,
    /// Of a status that moves nothing.
    pub other: u64,
    /// With a sum.
    pub totals: u64,
    /// Not readable.
    pub unreadable: u64,
}

/// What the comparison came to, without the single findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The statement's days.
    pub period: Period,
    /// The time-zone of those days.
    pub zone_name: String,
    /// What was compared.
    pub unit: Unit,
    /// By category; one that is not there is empty.
    pub categories: BTreeMap<Category, Tally>,
    /// Everything that was given, counted apart from the categories.
    pub given: Tally,
    pub lines: Lines,
    /// Whether a line with the sum says another one.
    pub totals_differ: bool,
    /// What a person should know before believing it.
    pub remarks: Vec<Remark>,
}

/// What makes a result doubtful though nothing is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
    #[error("the statement's last line has no line end: if others of this network have one, it was cut off")]
    NoLineEnd,
    #[error("we have no entry of this network in these days or later: is its name right?")]
    NoEntries,
    #[error("no entry of ours has a payout: compare coins")]
    NoPayouts,
    #[error(
        "{0} lines say another status than another line of the same id: a reversal may have a line of its own here, so say --reversals line"
    )]
    Pairs(u64),
}

impl Summary {
    /// The tally of a category.
    pub fn of(&self, category: Category) -> Tally {
        self.categories.get(&category).copied().unwrap_or(Tally::ZERO)
    }

    /// Whether each side's categories add up to what it gave, and every line of the statement is accounted for.
    pub fn adds_up(&self) -> bool {
        let mut tallies = Tally::ZERO;
        for tally in self.categories.values() {
            let ours = tallies.ours.add(tally.ours.count, tally.ours.amount);
            if ours.and(tallies.theirs.add(tally.theirs.count, tally.theirs.amount)).is_err() {
                return false;
            }
        }
        let Lines { all, compared, other, totals, unreadable } = self.lines;
        tallies == self.given && compared == self.given.theirs.count && all == compared + other + totals + unreadable
    }

    /// Whether nothing is left for a person to look at.
    pub fn is_clean(&self) -> bool {
        let differences =
            self.categories.iter().any(|(category, tally)| category.is_difference() && *tally != Tally::ZERO);
        !differences && self.lines.unreadable == 0 && !self.totals_differ && self.adds_up()
    }
}

/// Why a comparison came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("statement: {0}")]
    Statement(#[from] StatementError),
    #[error("a temporary file: {0}; TMPDIR says where they are")]
    Scratch(io::Error),
    #[error("the sums leave the range of amounts")]
    OutOfRange,
    #[error("the entry of `{}` was given twice", .0.escape_debug())]
    OursTwice(String),
}

// Of the two things that can fail with it, the statement converts where it is read.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Statement(StatementError::Io(error))
    }
}

/// What a conversion is judged by.
#[derive(Debug, Clone)]
pub struct Terms {
    pub reversals: Reversals,
    pub tolerance: Amount,
    pub period: Period,
    /// How near to an edge of the period an entry may be in the neighbouring statement.
    pub margin: SignedDuration,
}

/// A comparison that takes our entries.
pub struct Reconciliation<R, F: Scratch, M> {
    statement: Statement<R>,
    terms: Terms,
    findings: BufWriter<F>,
    sorter: Sorter<F, M>,
    given: Tally,
    has_payout: bool,
}

impl<R: Read + Seek, F: Scratch, M: FnMut() -> io::Result<F>> Reconciliation<R, F, M> {
    /// Begins a comparison over a period, with scratch files from `scratch`.
    ///
    /// # Errors
    ///
    /// [`Failure::Scratch`].
    pub fn new(
        statement: Statement<R>,
        period: Period,
        mut scratch: M,
        limits: Limits,
    ) -> Result<Reconciliation<R, F, M>, Failure> {
        let profile = &statement.profile;
        let terms = Terms {
            reversals: profile.reversals,
            tolerance: profile.tolerance,
            period,
            margin: SignedDuration::from_mins(profile.margin_minutes.into()),
        };
        let findings = BufWriter::new(scratch().map_err(Failure::Scratch)?);
        let sorter = Sorter::new(scratch, limits);
        Ok(Reconciliation { statement, terms, findings, sorter, given: Tally::ZERO, has_payout: false })
    }

    /// From when on our entries are needed; there is no end, and what is given from before does no harm.
    pub fn needed_from(&self) -> Timestamp {
        self.terms.period.from.checked_sub(self.terms.margin).unwrap_or(Timestamp::MIN)
    }

    /// Takes an entry of ours, in any order, each once.
    ///
    /// # Errors
    ///
    /// [`Failure::Scratch`].
    pub fn ours(&mut self, ours: &Ours) -> Result<(), Failure> {
        self.has_payout |= ours.payout_usd.is_some();
        self.given.ours.count += u64::from(ours.kind != Kind::Placeholder);
        let amount = match self.statement.profile.unit {
            Unit::Coins => Some(ours.coins),
            Unit::Dollars | Unit::Cents => ours.payout_usd,
        };
        let (key, payload) = judge::pack_ours(ours, amount);
        self.sorter.push(&key, &payload).map_err(Failure::Scratch)
    }

    /// Reads the statement, compares, and counts.
    ///
    /// # Errors
    ///
    /// [`Failure`]; then nothing is known.
    pub fn finish(mut self) -> Result<Report<F>, Failure> {
        let (lines, totals, first_fault) = self.read_statement()?;
        if let Some((line, why)) = first_fault.filter(|_| lines.unreadable == lines.all) {
            return Err(StatementError::NothingReadable { lines: lines.all, line, why }.into());
        }
        let Reconciliation { statement, terms, mut findings, sorter, mut given, has_payout } = self;
        let mut totals_differ = false;
        for (line, said) in totals {
            let read = Some(given.theirs.amount);
            if said != read {
                totals_differ = true;
                write_finding(&mut findings, &Finding::Totals { line, said, read })?;
            }
        }
        let mut court = Court::new(&terms, findings);
        let mut merge = sorter.sorted().map_err(Failure::Scratch)?;
        while let Some((key, payload)) = merge.pop().map_err(Failure::Scratch)? {
            court.hear(&key, &payload)?;
        }
        court.close()?;
        let Court { categories, ours, pairs, findings, .. } = court;
        given.ours.amount = ours;
        let dollars = statement.profile.unit != Unit::Coins;
        let remarks = [
            (!statement.ended && lines.all > 0).then_some(Remark::NoLineEnd),
            (given.ours.count == 0 && lines.all > 0).then_some(Remark::NoEntries),
            (dollars && !has_payout && given.ours.count > 0).then_some(Remark::NoPayouts),
            (pairs > 0).then_some(Remark::Pairs(pairs)),
        ];
        let Profile { zone_name, unit, .. } = statement.profile;
        let summary = Summary {
            period: terms.period,
            zone_name,
            unit,
            categories,
            given,
            lines,
            totals_differ,
            remarks: remarks.into_iter().flatten().collect(),
        };
        Ok(Report { summary, findings: rewound(findings).map_err(Failure::Scratch)? })
    }

    /// Gives every line of the statement to the sort, or to the findings.
    #[allow(clippy::type_complexity, reason = "three things of one reading")]
    fn read_statement(&mut self) -> Result<(Lines, Vec<(u64, Option<Amount>)>, Option<(u64, String)>), Failure> {
        let mut lines = Lines::default();
        let mut totals = Vec::new();
        let mut first_fault = None;
        let (terms, sorter, findings) = (&self.terms, &mut self.sorter, &mut self.findings);
        let given = &mut self.given.theirs;
        self.statement.lines(|item| {
            lines.all += 1;
            match item {
                Item::Line(line) => {
                    lines.compared += 1;
                    given.add(1, counted(&line, terms.reversals))?;
                    let (key, payload) = judge::pack_line(&line);
                    sorter.push(&key, &payload).map_err(Failure::Scratch)
                }
                Item::Other => {
                    lines.other += 1;
                    Ok(())
                }
                Item::Totals { line, said } => {
                    lines.totals += 1;
                    // More of them than a person reads say nothing new.
                    if totals.len() < TOTALS_MAX {
                        totals.push((line, said));
                    }
                    Ok(())
                }
                Item::Unreadable { line, why } => {
                    lines.unreadable += 1;
                    first_fault.get_or_insert_with(|| (line, why.clone()));
                    write_finding(findings, &Finding::Unreadable { line, why })
                }
            }
        })?;
        Ok((lines, totals, first_fault))
    }
}

/// Most lines with a sum that are compared with it.
const TOTALS_MAX: usize = 100;

/// What a line counts into the statement's sum.
fn counted(line: &Line, reversals: Reversals) -> Amount {
    match (line.says, reversals) {
        (Says::Reversal, Reversals::State) => Amount::ZERO,
        (Says::Credit | Says::Reversal, Reversals::Negative | Reversals::Line | Reversals::State) => line.amount,
    }
}

fn write_finding(output: &mut impl Write, finding: &Finding) -> Result<(), Failure> {
    let written = serde_json::to_writer(&mut *output, finding).map_err(io::Error::from);
    written.and_then(|()| output.write_all(b"\n")).map_err(Failure::Scratch)
}

/// Hears both sides of each conversion, in the order of their ids.
struct Court<'a, F: Write> {
    terms: &'a Terms,
    findings: BufWriter<F>,
    categories: BTreeMap<Category, Tally>,
    /// The sum of our entries.
    ours: Amount,
    /// Lines that say another status than the one of the same conversion that was compared, where there should be one.
    pairs: u64,
    conversion: Option<Conversion>,
    /// What to list, until it is known whether the other side has something like it.
    waiting: Waiting,
}

/// Conversions that one side lacks and whose ids a spreadsheet could have made of each other.
#[derive(Default)]
struct Waiting {
    /// What those ids come to.
    form: String,
    findings: Vec<Finding>,
    only_ours: Vec<String>,
    only_theirs: Vec<String>,
}

/// Most that wait; of more, some are listed without an id of the other side.
const WAITING_MAX: usize = 64;

impl<'a, F: Scratch> Court<'a, F> {
    fn new(terms: &'a Terms, findings: BufWriter<F>) -> Court<'a, F> {
        Court {
            terms,
            findings,
            categories: BTreeMap::new(),
            ours: Amount::ZERO,
            pairs: 0,
            conversion: None,
            waiting: Waiting::default(),
        }
    }

    /// Hears one entry or line.
    fn hear(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Failure> {
        let (id, heard) =
            judge::unpack(key, payload).ok_or_else(|| Failure::Scratch(io::ErrorKind::InvalidData.into()))?;
        if self.conversion.as_ref().is_none_or(|conversion| conversion.id != id) {
            self.settle()?;
            self.conversion = Some(Conversion::new(id));
        }
        let Some(conversion) = &mut self.conversion else { return Ok(()) };
        let Some(surplus) = conversion.hear(heard, self.terms)? else { return Ok(()) };
        self.pairs += u64::from(conversion.is_contradicted_by(&surplus, self.terms));
        let ruling = conversion.surplus(&surplus, self.terms);
        self.enter(ruling)
    }

    /// Settles the conversion that was heard last.
    fn settle(&mut self) -> Result<(), Failure> {
        let Some(conversion) = self.conversion.take() else { return Ok(()) };
        self.ours = self.ours.checked_add(conversion.ours_net()?).ok_or(Failure::OutOfRange)?;
        for ruling in conversion.settle(self.terms)? {
            self.enter(ruling)?;
        }
        Ok(())
    }

    /// Counts a ruling, and lists it.
    fn enter(&mut self, ruling: Ruling) -> Result<(), Failure> {
        let Ruling { category, id, ours, theirs, tally } = ruling;
        let sums = self.categories.entry(category).or_insert(Tally::ZERO);
        sums.ours.add(tally.ours.count, tally.ours.amount)?;
        sums.theirs.add(tally.theirs.count, tally.theirs.amount)?;
        let form = judge::form(&id);
        if form != self.waiting.form || self.waiting.findings.len() >= WAITING_MAX {
            self.release()?;
            self.waiting.form = form;
        }
        let one_side = match (&ours, &theirs) {
            (Some(_), None) => Some(&mut self.waiting.only_ours),
            (None, Some(_)) => Some(&mut self.waiting.only_theirs),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some(ids) = one_side.filter(|ids| ids.len() < WAITING_MAX) {
            ids.push(id.clone());
        }
        if category.is_listed() {
            self.waiting.findings.push(Finding::Conversion { category, id, ours, theirs, like: None });
        }
        Ok(())
    }

    /// Lists what waits.
    fn release(&mut self) -> Result<(), Failure> {
        let Waiting { findings, only_ours, only_theirs, .. } = std::mem::take(&mut self.waiting);
        for mut finding in findings {
            if let Finding::Conversion { id, ours, theirs, like, .. } = &mut finding {
                *like = match (ours, theirs) {
                    (None, Some(_)) => only_ours.iter().find(|ours| judge::may_be(id, ours)).cloned(),
                    (Some(_), None) => only_theirs.iter().find(|theirs| judge::may_be(theirs, id)).cloned(),
                    (Some(_), Some(_)) | (None, None) => None,
                };
            }
            write_finding(&mut self.findings, &finding)?;
        }
        Ok(())
    }

    /// Settles and lists what is left.
    fn close(&mut self) -> Result<(), Failure> {
        self.settle()?;
        self.release()
    }
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Report<F> {
    pub summary: Summary,
    findings: F,
}

impl<F: Scratch> Report<F> {
    /// Every finding: what cannot be read in the order of the file, then the conversions by id.
    ///
    /// # Errors
    ///
    /// [`Failure::Scratch`], as does each finding.
    pub fn findings(&mut self) -> Result<impl Iterator<Item = Result<Finding, Failure>> + use<'_, F>, Failure> {
        self.findings.rewind().map_err(Failure::Scratch)?;
        let lines = BufReader::new(&mut self.findings).lines();
        Ok(lines.map(|line| {
            let line = line.map_err(Failure::Scratch)?;
            serde_json::from_str(&line).map_err(|error| Failure::Scratch(error.into()))
        }))
    }
}
