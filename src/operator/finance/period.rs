//! Days in UTC, as the commands take and show them. The clock comes in as an argument.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::CannotRun;

/// The longest period that is taken at once, in days.
const DAYS_MAX: i32 = 3700;

/// Some days in UTC, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    first: Date,
    last: Date,
}

impl Period {
    /// A day, as `2026-11-30`.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Argument`].
    pub fn day(text: &str) -> Result<Period, CannotRun> {
        let day = date("the day", text)?;
        Ok(Period { first: day, last: day })
    }

    /// A month, as `2026-11`.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Argument`].
    pub fn month(text: &str) -> Result<Period, CannotRun> {
        let first =
            Some(text).filter(|text| text.len() == 7).and_then(|text| format!("{text}-01").parse::<Date>().ok());
        let first = first.ok_or_else(|| CannotRun::argument("the month", text, "not a month such as 2026-11"))?;
        Ok(Period { first, last: first.last_of_month() })
    }

    /// All days from one to another, both among them.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Argument`].
    pub fn between(from: &str, to: &str) -> Result<Period, CannotRun> {
        let period = Period { first: date("--from", from)?, last: date("--to", to)? };
        let problem = match period.last.since(period.first).map(|span| span.get_days()) {
            Ok(..0) => "before --from",
            Ok(..DAYS_MAX) => return Ok(period),
            Ok(_) | Err(_) => "more than ten years after --from",
        };
        Err(CannotRun::argument("--to", to, problem))
    }

    /// The first day.
    pub fn first(&self) -> Date {
        self.first
    }

    /// The last day.
    pub fn last(&self) -> Date {
        self.last
    }

    /// Whether it is one day.
    pub fn is_one_day(&self) -> bool {
        self.first == self.last
    }

    /// Every day of it.
    pub fn days(&self) -> impl Iterator<Item = Date> + use<> {
        let last = self.last;
        self.first.series(1.day()).take_while(move |day| *day <= last)
    }

    /// Whether no entry can come to it any more.
    pub fn is_over(&self, now: Timestamp) -> bool {
        is_over(self.last, now)
    }
}

/// Whether a day is over, with some minutes for what was under way and for clocks that differ.
pub fn is_over(day: Date, now: Timestamp) -> bool {
    let settled = now.checked_sub(10.minutes()).unwrap_or(now);
    settled.to_zoned(TimeZone::UTC).date() > day
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one_day() { write!(f, "{}", self.first) } else { write!(f, "{} to {}", self.first, self.last) }
    }
}

fn date(argument: &'static str, text: &str) -> Result<Date, CannotRun> {
    let date = text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    date.ok_or_else(|| CannotRun::argument(argument, text, "not a day such as 2026-11-30"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_all_its_days_and_no_other() {
        let days = |month: &str| Period::month(month).unwrap().days().count();
        assert_eq!([days("2026-11"), days("2026-02"), days("2028-02"), days("2026-12")], [30, 28, 29, 31]);
        assert_eq!(Period::month("2026-11").unwrap().to_string(), "2026-11-01 to 2026-11-30");
        assert_eq!(Period::between("2026-12-31", "2027-01-01").unwrap().days().count(), 2);
    }

    #[test]
    fn what_is_no_day_or_month_is_refused() {
        for text in ["", "2026-11-31", "2026-1-1", "20261130", "2026-11-30T00:00", "30.11.2026", "today", "-2026-11-30"]
        {
            assert!(Period::day(text).is_err(), "{text}");
        }
        for text in ["", "2026", "2026-13", "2026-1", "2026-11-01", "11-2026", "2026/11"] {
            assert!(Period::month(text).is_err(), "{text}");
        }
        assert!(Period::between("2026-11-02", "2026-11-01").is_err());
        assert!(Period::between("2000-01-01", "2026-11-01").is_err());
    }

    #[test]
    fn a_day_is_over_some_minutes_after_midnight_in_utc() {
        let over = |now: &str| Period::day("2026-11-30").unwrap().is_over(now.parse().unwrap());
        assert!(!over("2026-11-30T23:59:59Z"));
        assert!(!over("2026-12-01T00:09:59Z"));
        assert!(over("2026-12-01T00:10:00Z"));
        assert!(!over("2026-12-01T00:30:00+02:00"));
    }
}
