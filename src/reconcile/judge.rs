//! One conversion on both sides: what it comes to, and what it counts.
//!
//! Knows neither files nor the other conversions. Of several lines for the same thing, the one that fits best is compared,
//! whichever stands first, so that the order of a statement changes nothing.

use jiff::Timestamp;

use crate::money::Amount;
use crate::reconcile::profile::Reversals;
use crate::reconcile::statement::{Line, Says};
use crate::reconcile::{Category, Failure, Kind, Ours, Side, State, Sum, Tally, Terms, counted};

/// Separates the parts of keys and payloads; no id, user or amount has it.
const BETWEEN: u8 = 0x1f;

/// What one record of the sort says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Entry(Kind, OurEntry),
    Line(Line),
}

/// An entry of ours in the unit of the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OurEntry {
    /// The signed amount; `None` where the entry does not say.
    amount: Option<Amount>,
    user: String,
    received_at: Timestamp,
}

/// What ids come to that a spreadsheet could have made of each other: without leading zeros, with fifteen digits, in lower
/// case. Ids with the same form are neighbours in the sort; only ids that are equal match.
pub fn form(id: &str) -> String {
    let digits = id.trim_start_matches('0');
    if id.bytes().all(|byte| byte.is_ascii_digit()) {
        let kept = &digits[..digits.len().min(SPREADSHEET_DIGITS)];
        return format!("{kept}{}", "0".repeat(digits.len() - kept.len()));
    }
    id.to_lowercase()
}

/// How many digits of a number a spreadsheet keeps.
const SPREADSHEET_DIGITS: usize = 15;

/// Whether a spreadsheet could have made the statement's id of ours, both having the same [`form`].
pub fn may_be(theirs: &str, ours: &str) -> bool {
    let digits = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(theirs) || !digits(ours) {
        return theirs.to_lowercase() == ours.to_lowercase();
    }
    let bare = theirs.trim_start_matches('0');
    bare == ours.trim_start_matches('0') || (bare == form(theirs) && bare == form(ours))
}

fn key(id: &str, order: &[u8]) -> Vec<u8> {
    [form(id).as_bytes(), &[BETWEEN], id.as_bytes(), &[BETWEEN], order].concat()
}

/// The record of an entry: our side comes before the lines.
pub fn pack_ours(ours: &Ours, amount: Option<Amount>) -> (Vec<u8>, Vec<u8>) {
    let (order, kind) = match ours.kind {
        Kind::Placeholder => (0, "p"),
        Kind::Credit => (1, "c"),
        Kind::Reversal => (2, "r"),
    };
    let amount = amount.map(|amount| amount.to_string()).unwrap_or_default();
    let payload = format!("{kind}\u{1f}{amount}\u{1f}{}\u{1f}{}", ours.received_at.as_microsecond(), ours.user);
    (key(&ours.id, &[0, order]), payload.into_bytes())
}

/// The record of a line.
pub fn pack_line(line: &Line) -> (Vec<u8>, Vec<u8>) {
    let says = match line.says {
        Says::Credit => "C",
        Says::Reversal => "R",
    };
    let time = line.time.map(|time| time.as_microsecond().to_string()).unwrap_or_default();
    // A user that is not named is another thing than one without a name.
    let user = line.user.as_ref().map(|user| format!("={user}")).unwrap_or_default();
    let payload = format!("{says}\u{1f}{}\u{1f}{time}\u{1f}{user}\u{1f}{}", line.amount, line.number);
    let order = [&[1][..], &line.number.to_be_bytes()].concat();
    (key(&line.id, &order), payload.into_bytes())
}

/// The id of a record, and what it says. `None` where it is none of ours.
pub fn unpack(key: &[u8], payload: &[u8]) -> Option<(String, Heard)> {
    let behind_form = key.iter().position(|byte| *byte == BETWEEN)? + 1;
    let id = key[behind_form..].split(|byte| *byte == BETWEEN).next()?;
    let id = String::from_utf8(id.to_vec()).ok()?;
    let mut parts = std::str::from_utf8(payload).ok()?.split('\u{1f}');
    let kind = parts.next()?;
    let amount = match parts.next()? {
        "" => None,
        text => Some(Amount::stored(text)?),
    };
    let time = match parts.next()? {
        "" => None,
        text => Some(Timestamp::from_microsecond(text.parse().ok()?).ok()?),
    };
    let user = parts.next()?;
    let entry = |kind| Some(Heard::Entry(kind, OurEntry { amount, user: user.to_owned(), received_at: time? }));
    let mut line = |says| {
        let number = parts.next()?.parse().ok()?;
        let user = user.strip_prefix('=').map(str::to_owned);
        Some(Heard::Line(Line { number, id: id.clone(), says, amount: amount?, user, time }))
    };
    let heard = match kind {
        "p" => entry(Kind::Placeholder),
        "c" => entry(Kind::Credit),
        "r" => entry(Kind::Reversal),
        "C" => line(Says::Credit),
        "R" => line(Says::Reversal),
        _ => None,
    };
    Some((id, heard?))
}

/// What a conversion came to: what to count, and both sides to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub category: Category,
    pub id: String,
    pub ours: Option<Side>,
    pub theirs: Option<Side>,
    /// What it counts, which may be less than what it shows: no entry and no line counts twice.
    pub tally: Tally,
}

/// Where an entry is, seen from the statement's days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Inside,
    AtTheEdge,
    Outside,
}

fn place(entry: &OurEntry, terms: &Terms) -> Place {
    let (from, to, at) = (terms.period.from, terms.period.to, entry.received_at);
    if at < from || at >= to {
        Place::Outside
    } else if at.duration_since(from) < terms.margin || to.duration_since(at) <= terms.margin {
        Place::AtTheEdge
    } else {
        Place::Inside
    }
}

/// Both sides of one conversion, as far as they were heard.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The network's id.
    pub id: String,
    /// Its reversal came first: whatever its entries say, nothing moved.
    void: bool,
    credit: Option<OurEntry>,
    reversal: Option<OurEntry>,
    /// The line that fits best for the credit; the only one where a conversion has one.
    their_credit: Option<Line>,
    /// The same for the reversal.
    their_reversal: Option<Line>,
}

impl Conversion {
    /// A conversion of which nothing was heard.
    pub fn new(id: String) -> Conversion {
        Conversion { id, void: false, credit: None, reversal: None, their_credit: None, their_reversal: None }
    }

    /// Hears an entry or a line, entries first. Returns the line that is now one too many.
    ///
    /// # Errors
    ///
    /// [`Failure::OursTwice`].
    pub fn hear(&mut self, heard: Heard, terms: &Terms) -> Result<Option<Line>, Failure> {
        match heard {
            Heard::Entry(Kind::Placeholder, _) => self.void = true,
            Heard::Entry(Kind::Credit, entry) if self.credit.is_none() => self.credit = Some(entry),
            Heard::Entry(Kind::Reversal, mut entry) if self.reversal.is_none() => {
                let credited = self.credit.as_ref().and_then(|credit| credit.amount);
                if self.void {
                    entry.amount = Some(Amount::ZERO);
                } else if entry.amount.is_none() {
                    // It takes back what was given, also where it does not say how much that was.
                    entry.amount = credited.map(Amount::negated);
                }
                self.reversal = Some(entry);
            }
            Heard::Entry(Kind::Credit | Kind::Reversal, _) => return Err(Failure::OursTwice(self.id.clone())),
            Heard::Line(line) => return Ok(self.keep_best(line, terms)),
        }
        Ok(None)
    }

    /// Keeps the line that fits our side best, and returns the other one.
    fn keep_best(&mut self, line: Line, terms: &Terms) -> Option<Line> {
        let alone = terms.reversals == Reversals::State;
        let kept = match (alone, line.says) {
            // Where a conversion has one line, both kinds compete for the same place.
            (true, _) => self.their_credit.take().or_else(|| self.their_reversal.take()),
            (false, Says::Credit) => self.their_credit.take(),
            (false, Says::Reversal) => self.their_reversal.take(),
        };
        let (best, surplus) = match kept {
            None => (line, None),
            Some(kept) if self.fit(&line) < self.fit(&kept) => (line, Some(kept)),
            Some(kept) => (kept, Some(line)),
        };
        match best.says {
            Says::Credit => self.their_credit = Some(best),
            Says::Reversal => self.their_reversal = Some(best),
        }
        surplus
    }

    /// How badly a line fits; only equal lines fit alike.
    fn fit<'l>(&self, line: &'l Line) -> (bool, bool, Amount, Amount, &'l Option<String>, Option<Timestamp>) {
        let ours = match line.says {
            Says::Credit => self.credit.as_ref(),
            Says::Reversal => self.reversal.as_ref(),
        };
        // A reversal makes a credit that is still there the lesser truth.
        let other_status = (line.says == Says::Reversal) != self.reversal.is_some();
        let distance = ours.and_then(|entry| entry.amount).and_then(|amount| distance(amount, line.amount));
        (other_status, distance.is_none(), distance.unwrap_or(Amount::ZERO), line.amount, &line.user, line.time)
    }

    /// Whether a line that is one too many says another status, where one line should say all.
    pub fn is_contradicted_by(&self, line: &Line, terms: &Terms) -> bool {
        let kept = match line.says {
            Says::Credit => &self.their_credit,
            Says::Reversal => &self.their_reversal,
        };
        terms.reversals == Reversals::State && kept.is_none()
    }

    /// The ruling on a line that is one too many.
    pub fn surplus(&self, line: &Line, terms: &Terms) -> Ruling {
        let theirs = Sum { count: 1, amount: counted(line, terms.reversals) };
        Ruling {
            category: Category::Duplicated,
            id: self.id.clone(),
            ours: self.our_side(self.credit.as_ref(), self.reversal.as_ref()),
            tally: Tally { ours: Sum::ZERO, theirs },
            theirs: Some(match line.says {
                Says::Credit => their_side(Some(line), None, terms),
                Says::Reversal => their_side(None, Some(line), terms),
            }),
        }
    }

    /// What our entries add up to.
    ///
    /// # Errors
    ///
    /// [`Failure::OutOfRange`].
    pub fn ours_net(&self) -> Result<Amount, Failure> {
        Ok(ours_sum([self.credit.as_ref(), self.reversal.as_ref()])?.amount)
    }

    /// What the conversion comes to: one ruling, and one for each entry that the statement need not know.
    ///
    /// # Errors
    ///
    /// [`Failure::OutOfRange`].
    pub fn settle(&self, terms: &Terms) -> Result<Vec<Ruling>, Failure> {
        let (credit, reversal) = (self.credit.as_ref(), self.reversal.as_ref());
        let inside = |entry: &&OurEntry| place(entry, terms) == Place::Inside;
        let listed = self.their_credit.is_some() || self.their_reversal.is_some();
        if !listed {
            let of_these_days = credit.filter(|credit| place(credit, terms) != Place::Outside);
            if self.void || (of_these_days.is_some() && reversal.is_some()) {
                return self.unlisted(credit, reversal, terms, Category::NettedOut);
            }
            return self.unlisted(credit, reversal, terms, Category::MissingWithThem);
        }
        let alone = terms.reversals == Reversals::State;
        let says_reversed = self.their_reversal.is_some();
        let kept_credit = credit.filter(|entry| self.their_credit.is_some() || alone || inside(entry));
        let kept_reversal = reversal.filter(|entry| says_reversed || inside(entry));
        let mut rulings = Vec::new();
        for (entry, kept, status) in
            [(credit, kept_credit, State::Credited), (reversal, kept_reversal, State::ReversalOnly)]
        {
            if let (Some(entry), None) = (entry, kept) {
                rulings.push(self.by_itself(entry, status, terms, Category::MissingWithThem)?);
            }
        }
        let tally = Tally { ours: ours_sum([kept_credit, kept_reversal])?, theirs: self.theirs_sum(terms)? };
        let category = match (kept_credit, kept_reversal) {
            (None, None) => Category::MissingWithUs,
            (credit, reversal) => self.compared(credit, reversal, terms)?,
        };
        // Of a reversal that we lack, its credit is shown, whenever it was.
        let (shown_credit, shown_reversal) = match category {
            Category::MissingWithUs => (credit, reversal),
            _ => (kept_credit, kept_reversal),
        };
        rulings.push(Ruling {
            category,
            id: self.id.clone(),
            ours: self.our_side(shown_credit, shown_reversal),
            theirs: Some(their_side(self.their_credit.as_ref(), self.their_reversal.as_ref(), terms)),
            tally,
        });
        Ok(rulings)
    }

    /// The rulings on a conversion that the statement does not have: `category` where it should.
    fn unlisted(
        &self,
        credit: Option<&OurEntry>,
        reversal: Option<&OurEntry>,
        terms: &Terms,
        category: Category,
    ) -> Result<Vec<Ruling>, Failure> {
        let together = category == Category::NettedOut
            && [credit, reversal].into_iter().flatten().any(|entry| place(entry, terms) == Place::Inside);
        if together {
            let ours = ours_sum([credit, reversal])?;
            let tally = Tally { ours, theirs: Sum::ZERO };
            let ours = self.our_side(credit, reversal);
            return Ok(vec![Ruling { category, id: self.id.clone(), ours, theirs: None, tally }]);
        }
        let entries = [(credit, State::Credited), (reversal, State::ReversalOnly)];
        let present = entries.into_iter().filter_map(|(entry, status)| Some((entry?, status)));
        present.map(|(entry, status)| self.by_itself(entry, status, terms, category)).collect()
    }

    /// The ruling on an entry that the statement does not have: `inside` where it is one of its days.
    fn by_itself(&self, entry: &OurEntry, status: State, terms: &Terms, inside: Category) -> Result<Ruling, Failure> {
        let category = match place(entry, terms) {
            Place::Inside => inside,
            Place::AtTheEdge => Category::AtTheEdge,
            Place::Outside => Category::Outside,
        };
        let ours = match status {
            State::Credited | State::Reversed => self.our_side(Some(entry), None),
            State::ReversalOnly => self.our_side(None, Some(entry)),
        };
        let tally = Tally { ours: ours_sum([Some(entry), None])?, theirs: Sum::ZERO };
        Ok(Ruling { category, id: self.id.clone(), ours, theirs: None, tally })
    }

    /// What a conversion that both sides have comes to.
    fn compared(
        &self,
        credit: Option<&OurEntry>,
        reversal: Option<&OurEntry>,
        terms: &Terms,
    ) -> Result<Category, Failure> {
        let (their_credit, their_reversal) = (self.their_credit.as_ref(), self.their_reversal.as_ref());
        let alone = terms.reversals == Reversals::State;
        let theirs = status(their_credit.is_some() || (alone && their_reversal.is_some()), their_reversal.is_some());
        let ours = match status(credit.is_some() || self.void, reversal.is_some()) {
            // Where one line says both, a reversal says it all.
            State::ReversalOnly if alone => State::Reversed,
            ours => ours,
        };
        if ours != theirs {
            return Ok(Category::StatusDiffers);
        }
        let same = |entry: Option<&OurEntry>, line: Option<&Line>| match (entry, line) {
            (Some(entry), Some(line)) => {
                let distance = entry.amount.and_then(|amount| distance(amount, line.amount));
                distance.is_some_and(|distance| distance <= terms.tolerance)
            }
            (None, _) | (_, None) => true,
        };
        let same_amounts = if self.void {
            // Nothing moved, so what they gave and took must come to nothing.
            distance(self.theirs_sum(terms)?.amount, Amount::ZERO).is_some_and(|distance| distance <= terms.tolerance)
        } else if alone && their_reversal.is_some() {
            // What a reversed line says of its amount differs between networks, and nothing was paid.
            true
        } else {
            same(credit, their_credit) && same(reversal, their_reversal)
        };
        if !same_amounts {
            return Ok(Category::AmountDiffers);
        }
        let users = [(credit, their_credit), (reversal, their_reversal)];
        let other_user = users.into_iter().any(|(entry, line)| {
            let named = line.and_then(|line| line.user.as_ref());
            entry.zip(named).is_some_and(|(entry, named)| entry.user != *named)
        });
        Ok(if other_user { Category::UserDiffers } else { Category::Matched })
    }

    /// What their lines that are compared add up to.
    fn theirs_sum(&self, terms: &Terms) -> Result<Sum, Failure> {
        let mut sum = Sum::ZERO;
        for line in [&self.their_credit, &self.their_reversal].into_iter().flatten() {
            sum.add(1, counted(line, terms.reversals))?;
        }
        Ok(sum)
    }

    fn our_side(&self, credit: Option<&OurEntry>, reversal: Option<&OurEntry>) -> Option<Side> {
        let first = credit.or(reversal)?;
        Some(Side {
            status: status(credit.is_some() || self.void, reversal.is_some()),
            credit: credit.and_then(|entry| entry.amount),
            reversal: reversal.and_then(|entry| entry.amount),
            user: Some(first.user.clone()),
            time: Some(first.received_at),
            lines: Vec::new(),
        })
    }
}

fn their_side(credit: Option<&Line>, reversal: Option<&Line>, terms: &Terms) -> Side {
    let lines = || [credit, reversal].into_iter().flatten();
    let alone = terms.reversals == Reversals::State && reversal.is_some();
    Side {
        status: status(credit.is_some() || alone, reversal.is_some()),
        credit: credit.map(|line| line.amount),
        reversal: reversal.map(|line| line.amount),
        user: lines().find_map(|line| line.user.clone()),
        time: lines().find_map(|line| line.time),
        lines: lines().map(|line| line.number).collect(),
    }
}

fn status(credit: bool, reversal: bool) -> State {
    match (credit, reversal) {
        (_, false) => State::Credited,
        (true, true) => State::Reversed,
        (false, true) => State::ReversalOnly,
    }
}

fn distance(one: Amount, other: Amount) -> Option<Amount> {
    let difference = one.checked_add(other.negated())?;
    Some(if difference < Amount::ZERO { difference.negated() } else { difference })
}

fn ours_sum(entries: [Option<&OurEntry>; 2]) -> Result<Sum, Failure> {
    let mut sum = Sum::ZERO;
    for entry in entries.into_iter().flatten() {
        sum.add(1, entry.amount.unwrap_or(Amount::ZERO))?;
    }
    Ok(sum)
}
