//! A month as one page of HTML that needs nothing else: no script, no font, no image, no other file.
//!
//! What networks and users wrote is escaped wherever it stands, and the page forbids itself to load or run anything. Every
//! number says where it comes from. Beside each chart is a table of the same numbers.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use jiff::Timestamp;
use jiff::civil::Date;

use crate::books::{Books, Line, OutOfRange, Sums};
use crate::ledger::{About, CaseRow, Hold};
use crate::money::Amount;
use crate::terminal::visible;

/// How the page looks.
const STYLE: &str = include_str!("report/page.css");

/// Most offers that are listed.
const OFFERS: usize = 15;

/// Most open cases that are listed; all are counted.
const CASES: usize = 12;

/// The unit of the charts: so many parts has the whole height.
const HEIGHT: u32 = 1000;

/// What the page of a month is made of.
#[derive(Debug)]
pub struct Month<'a> {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
    /// Whether no entry can come to it any more.
    pub over: bool,
    /// When it was read.
    pub made_at: Timestamp,
    /// The entries of the month.
    pub books: &'a Books,
    /// What is held at this moment.
    pub holds: &'a Held,
    /// The cases that are open at this moment, the longest open first, and how many rows of them do not read.
    pub cases: &'a [CaseRow],
    /// How many open cases do not read.
    pub unreadable_cases: usize,
}

/// What is held at some moment, by network and currency.
#[derive(Debug, Default)]
pub struct Held {
    lines: BTreeMap<Line, HeldLine>,
}

/// What is held of one network in one currency.
#[derive(Debug, Clone, Copy, Default)]
struct HeldLine {
    count: u64,
    amount: Amount,
    /// How many of them wait for a person.
    waiting: u64,
    /// When the next one is due.
    next: Option<Timestamp>,
}

impl Held {
    /// Adds a hold.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn add(&mut self, hold: &Hold) -> Result<(), OutOfRange> {
        let line = Line { network: hold.trans_id.network().to_owned(), currency: hold.currency.to_string() };
        let held = self.lines.entry(line).or_default();
        held.count += 1;
        held.amount = held.amount.checked_add(hold.amount).ok_or(OutOfRange)?;
        match hold.release_at {
            None => held.waiting += 1,
            Some(at) => held.next = Some(held.next.map_or(at, |next| next.min(at))),
        }
        Ok(())
    }
}

impl Month<'_> {
    /// The page.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    pub fn page(&self) -> Result<String, OutOfRange> {
        let name = self.first.strftime("%B %Y").to_string();
        let mut page = String::new();
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"robots\" content=\"noindex\">\n<title>{name}: offer networks</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n<header>\n<h1>{name}</h1>\n<p class=\"soft\">Offer networks, {} to {}, days in UTC. Made at {} UTC \
             from summed entries; holds and cases are those of that moment.{}</p>\n</header>\n<main>\n",
            self.first,
            self.last,
            self.made_at.strftime("%Y-%m-%d %H:%M"),
            if self.over { "" } else { " <strong class=\"note\">The month is not over yet.</strong>" },
        );
        self.figures(&mut page)?;
        self.networks(&mut page)?;
        self.days(&mut page)?;
        self.rates(&mut page);
        self.holds(&mut page);
        self.cases(&mut page);
        self.offers(&mut page);
        page += "</main>\n<footer>\n<p>Credited, reversed, staked, won and net are sums of the entries of these days, with their sign; nothing \
                 is rounded. Bets back and wins back are those that were rolled back. The reversal rate is the number of reversals for a hundred credits of the same month, which may be \
                 reversals of earlier ones. Payout is what the networks said that they pay for the credits: their own \
                 statement decides.</p>\n";
        if let Some(first) = self.books.unreadable.first() {
            let _ = writeln!(
                page,
                "<p class=\"note\">Without {} rows that do not read, such as {}: {}</p>",
                self.books.unreadable.len(),
                Text(&first.row),
                Text(&first.problem)
            );
        }
        page += "</footer>\n</body>\n</html>\n";
        Ok(page)
    }

    /// The month in a few numbers.
    fn figures(&self, page: &mut String) -> Result<(), OutOfRange> {
        open(page, "figures", "In short");
        let totals = self.books.totals()?;
        if totals.is_empty() {
            *page += "<p>No entries.</p>\n";
        }
        for (currency, sums) in totals {
            let mut list = String::from("<dl class=\"figures\">\n");
            let mut add = |name: &str, value: String, small: String| {
                let _ = writeln!(list, "<div><dt>{name}</dt><dd>{value}<small>{small}</small></dd></div>");
            };
            if sums.has_offers() {
                add(
                    "Credited",
                    coins(sums.credits.amount),
                    format!("{} in {}", Text(currency), many(sums.credits.count, "credit")),
                );
                add("Reversed", coins(sums.reversals.amount), many(sums.reversals.count, "reversal"));
                add("Reversal rate", rate(&sums), "of the credits".to_owned());
            }
            for (name, total, of) in [
                ("Staked", sums.bets, "bet"),
                ("Won", sums.wins, "win"),
                ("Deposited", sums.deposits, "deposit"),
                ("Withdrawn", sums.withdrawals, "withdrawal"),
            ] {
                if total.count > 0 {
                    add(name, coins(total.amount), many(total.count, of));
                }
            }
            add("Net", coins(sums.net.amount), format!("{} in all {}", Text(currency), many(sums.net.count, "entry")));
            add("Users", grouped(&self.books.users_of(currency).to_string()), "with an entry".to_owned());
            if sums.payout_usd.count > 0 {
                let (said, all) = (sums.payout_usd.count.to_string(), sums.credits.count.to_string());
                let of = format!("USD for {} of {} credits", grouped(&said), grouped(&all));
                add("Payout", coins(sums.payout_usd.amount), of);
            }
            *page += &list;
            *page += "</dl>\n";
        }
        close(page);
        Ok(())
    }

    /// The sums by network.
    fn networks(&self, page: &mut String) -> Result<(), OutOfRange> {
        open(page, "networks", "By network");
        let heads = [
            "Network",
            "#Credits",
            "#Credited",
            "#Reversals",
            "#Reversed",
            "#Rate",
            "#?Into hold",
            "#?Released",
            "#?Our loss",
            "#?Bets",
            "#?Staked",
            "#?Bets back",
            "#?Given back",
            "#?Wins",
            "#?Won",
            "#?Wins back",
            "#?Taken back",
            "#?Deposited",
            "#?Withdrawn",
            "#?Adjusted",
            "#?Other",
            "#Net",
            "#Users",
            "#?Payout USD",
        ];
        let mut table = Table::new("Sums of the month by network", &heads);
        let line = |name: String, sums: &Sums, users: usize| {
            [
                name,
                grouped(&sums.credits.count.to_string()),
                coins(sums.credits.amount),
                grouped(&sums.reversals.count.to_string()),
                coins(sums.reversals.amount),
                rate(sums),
                coins(sums.held.amount),
                coins(sums.released.amount),
                coins(sums.absorbed.amount),
                grouped(&sums.bets.count.to_string()),
                coins(sums.bets.amount),
                grouped(&sums.bet_rollbacks.count.to_string()),
                coins(sums.bet_rollbacks.amount),
                grouped(&sums.wins.count.to_string()),
                coins(sums.wins.amount),
                grouped(&sums.win_rollbacks.count.to_string()),
                coins(sums.win_rollbacks.amount),
                coins(sums.deposits.amount),
                coins(sums.withdrawals.amount),
                coins(sums.adjustments.amount),
                coins(sums.other.amount),
                coins(sums.net.amount),
                grouped(&users.to_string()),
                coins(sums.payout_usd.amount),
            ]
        };
        for (of, sums) in &self.books.lines {
            table.row("", &line(self.name(of), sums, self.books.users(of)));
        }
        for (currency, sums) in self.books.totals()? {
            let name = format!("All, {}", Text(currency));
            table.row("all", &line(name, &sums, self.books.users_of(currency)));
        }
        *page += &table.card();
        close(page);
        Ok(())
    }

    /// Credits and reversals of every day: all networks together, then each.
    fn days(&self, page: &mut String) -> Result<(), OutOfRange> {
        open(page, "days", "Day by day");
        *page += "<p class=\"soft\"><span class=\"key credit\"></span>credited, upwards\
                  <span class=\"key reversal\"></span>reversed, downwards</p>\n";
        let currencies: Vec<&str> = self.books.totals()?.into_keys().collect();
        for currency in currencies {
            let mut days: BTreeMap<Date, Sums> = BTreeMap::new();
            for ((date, line), sums) in &self.books.days {
                if line.currency == currency {
                    days.entry(*date).or_default().merge(sums)?;
                }
            }
            // What is drawn are offers: a wallet's coins go back and forth all day.
            if !days.values().any(Sums::has_offers) {
                continue;
            }
            let _ = writeln!(page, "<div class=\"card wide\">{}</div>", self.chart("All networks", currency, &days));
            let lines = self.books.lines.iter().filter(|(line, sums)| line.currency == currency && sums.has_offers());
            let lines: Vec<_> = lines.map(|(line, _)| line).collect();
            if lines.len() < 2 {
                continue;
            }
            *page += "<div class=\"charts\">\n";
            for line in lines {
                let days = self.books.days.iter().filter(|((_, of), _)| of == line);
                let days = days.map(|((date, _), sums)| (*date, *sums)).collect();
                let _ = writeln!(page, "<div class=\"card\">{}</div>", self.chart(&line.network, currency, &days));
            }
            *page += "</div>\n";
        }
        close(page);
        Ok(())
    }

    /// Two bars for each day on one scale, and a table of the same.
    fn chart(&self, name: &str, currency: &str, days: &BTreeMap<Date, Sums>) -> String {
        let all = self.every_day(days);
        let up = all.iter().map(|(_, sums)| sums.credits.amount).max().unwrap_or_default().max(Amount::ZERO);
        let down =
            all.iter().map(|(_, sums)| sums.reversals.amount.negated()).max().unwrap_or_default().max(Amount::ZERO);
        let whole = up.checked_add(down).unwrap_or(up);
        let zero = up.parts_of(whole, HEIGHT);
        let width = all.len() * 10;
        let mut bars = String::new();
        let mut table =
            Table::new(&format!("{name} by day"), &["Day", "#Credits", "#Credited", "#Reversals", "#Reversed", "#Net"]);
        for (number, (day, sums)) in all.iter().enumerate() {
            let x = number * 10 + 1;
            let title =
                format!("{day}: credited {}, reversed {}", coins(sums.credits.amount), coins(sums.reversals.amount));
            // A bar that is there is seen, however small.
            let seen = |amount: Amount| if amount > Amount::ZERO { amount.parts_of(whole, HEIGHT).max(6) } else { 0 };
            let (credit, reversal) = (seen(sums.credits.amount), seen(sums.reversals.amount.negated()));
            if credit + reversal > 0 {
                let _ = write!(bars, "<g><title>{title}</title>");
                if credit > 0 {
                    let y = zero.saturating_sub(credit);
                    let _ =
                        write!(bars, "<rect class=\"credit\" x=\"{x}\" y=\"{y}\" width=\"8\" height=\"{credit}\"/>");
                }
                if reversal > 0 {
                    let _ = write!(
                        bars,
                        "<rect class=\"reversal\" x=\"{x}\" y=\"{zero}\" width=\"8\" height=\"{reversal}\"/>"
                    );
                }
                bars += "</g>";
            }
            if sums.net.count > 0 {
                table.row(
                    "",
                    &[
                        day.to_string(),
                        grouped(&sums.credits.count.to_string()),
                        coins(sums.credits.amount),
                        grouped(&sums.reversals.count.to_string()),
                        coins(sums.reversals.amount),
                        coins(sums.net.amount),
                    ],
                );
            }
        }
        let label = format!(
            "Bars for each day: at most {} {currency} credited and {} reversed on a day.",
            coins(up),
            coins(down)
        );
        format!(
            "<figure>\n<h3>{}</h3>\n<figcaption>Most on a day: {} credited, {} reversed, in {}</figcaption>\n\
             <svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\">{bars}\
             <line class=\"zero\" x1=\"0\" x2=\"{width}\" y1=\"{zero}\" y2=\"{zero}\"/></svg>\n\
             <div class=\"axis\" aria-hidden=\"true\"><span>{}</span><span>{}</span><span>{}</span></div>\n</figure>\n\
             <details><summary>The same as a table</summary>{}</details>",
            Text(name),
            coins(up),
            coins(down),
            Text(currency),
            Text(&label),
            self.first.day(),
            (self.first.day() + self.last.day()) / 2,
            self.last.day(),
            table.scroll(),
        )
    }

    /// Every day of the month with its sums, also those without entries.
    fn every_day(&self, days: &BTreeMap<Date, Sums>) -> Vec<(Date, Sums)> {
        let dates = self.first.series(jiff::Span::new().days(1)).take_while(|day| *day <= self.last);
        dates.map(|day| (day, days.get(&day).copied().unwrap_or_default())).collect()
    }

    /// How many of a hundred credits were reversed.
    fn rates(&self, page: &mut String) {
        open(page, "rates", "Reversal rate");
        let mut lines: Vec<_> =
            self.books.lines.iter().filter_map(|(l, s)| Some((l, s, s.reversed_permille()?))).collect();
        lines.sort_by_key(|(line, _, rate)| (std::cmp::Reverse(*rate), *line));
        let most = lines.iter().map(|(_, _, rate)| *rate).max().unwrap_or(0).max(1);
        let mut table = Table::new("Reversal rate by network", &["Network", "#Reversals", "#Credits", "#Rate", " "]);
        for (line, sums, rate_of) in &lines {
            let length = rate_of.saturating_mul(100) / most;
            let bar = format!(
                "<svg class=\"bar\" aria-hidden=\"true\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">\
                 <rect class=\"reversal\" width=\"{length}\" height=\"10\"/></svg>"
            );
            table.row(
                "",
                &[
                    self.name(line),
                    grouped(&sums.reversals.count.to_string()),
                    grouped(&sums.credits.count.to_string()),
                    rate(sums),
                    bar,
                ],
            );
        }
        *page += &if lines.is_empty() { "<p>No credits.</p>\n".to_owned() } else { table.card() };
        close(page);
    }

    fn holds(&self, page: &mut String) {
        open(page, "holds", "Held at this moment");
        let mut table = Table::new(
            "Held coins by network",
            &["Network", "#Holds", "#Held", "#Waiting for a person", "Next release"],
        );
        for (line, held) in &self.holds.lines {
            table.row(
                "",
                &[
                    self.name(line),
                    grouped(&held.count.to_string()),
                    format!("{} {}", coins(held.amount), Text(&line.currency)),
                    grouped(&held.waiting.to_string()),
                    held.next.map_or_else(
                        || "none by itself".to_owned(),
                        |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
                    ),
                ],
            );
        }
        *page += &if self.holds.lines.is_empty() { "<p>Nothing is held.</p>\n".to_owned() } else { table.card() };
        close(page);
    }

    fn cases(&self, page: &mut String) {
        open(page, "cases", "Open cases");
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for row in self.cases {
            *kinds.entry(row.case.kind.as_str()).or_default() += 1;
        }
        if self.cases.is_empty() {
            *page += "<p>No case is open.</p>\n";
        } else {
            let counted: Vec<_> =
                kinds.iter().map(|(kind, count)| format!("{count} {}", kind.replace('_', " "))).collect();
            let listed =
                if self.cases.len() > CASES { format!("; the {CASES} longest open are listed") } else { String::new() };
            let _ = writeln!(page, "<p>{}: {}{listed}.</p>", many(self.cases.len() as u64, "case"), counted.join(", "));
            let mut table = Table::new("Open cases", &["Open since", "Kind", "About", "#Amount", "~What happened"]);
            for row in self.cases.iter().take(CASES) {
                let (about, amount) = match &row.case.about {
                    About::Entry { trans_id, currency, amount, .. } => {
                        (Text(trans_id.as_str()).to_string(), format!("{} {}", coins(*amount), Text(currency.as_str())))
                    }
                    About::Settings(version) => (format!("settings, version {version}"), String::new()),
                };
                table.row(
                    "",
                    &[
                        row.case.opened_at.strftime("%Y-%m-%d").to_string(),
                        row.case.kind.as_str().replace('_', " "),
                        about,
                        amount,
                        Text(&row.case.detail).to_string(),
                    ],
                );
            }
            *page += &table.card();
        }
        if self.unreadable_cases > 0 {
            let _ = writeln!(page, "<p class=\"note\">{} more do not read.</p>", self.unreadable_cases);
        }
        close(page);
    }

    fn offers(&self, page: &mut String) {
        open(page, "offers", "Top offers");
        let offers = self.books.top_offers(OFFERS);
        let heads = ["~Offer", "Network", "#Credits", "#Credited", "#Reversals", "#Rate"];
        let mut table = Table::new("Offers with the most credited coins", &heads);
        for (line, offer, sums) in &offers {
            let name = match (offer.name.as_str(), offer.id.as_str()) {
                ("", id) => format!("offer {}", Text(id)),
                (name, "") => Text(name).to_string(),
                (name, id) => format!("{} <span class=\"soft\">{}</span>", Text(name), Text(id)),
            };
            table.row(
                "",
                &[
                    name,
                    self.name(line),
                    grouped(&sums.credits.count.to_string()),
                    coins(sums.credits.amount),
                    grouped(&sums.reversals.count.to_string()),
                    rate(sums),
                ],
            );
        }
        *page += &if offers.is_empty() { "<p>No network named an offer.</p>\n".to_owned() } else { table.card() };
        close(page);
    }

    /// A network's name, with the currency where there is more than one.
    fn name(&self, line: &Line) -> String {
        let several = self.books.lines.keys().any(|other| other.currency != line.currency);
        let network = Text(&line.network).to_string();
        if several { format!("{network}, {}", Text(&line.currency)) } else { network }
    }
}

fn open(page: &mut String, id: &str, title: &str) {
    let _ = writeln!(page, "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>");
}

fn close(page: &mut String) {
    *page += "</section>\n";
}

/// A table whose cells are HTML already. A head that begins with `#` is of a column of numbers, one with `~` of texts that may
/// be long; one that begins with `?` after that is left out where it has nothing but zeros.
struct Table {
    name: String,
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    fn new(name: &str, heads: &[&str]) -> Table {
        Table { name: name.to_owned(), heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    fn row(&mut self, class: &str, cells: &[String]) {
        self.rows.push((class.to_owned(), cells.to_vec()));
    }

    /// The columns that say something: their place, their class and their head.
    fn columns(&self) -> Vec<(usize, &'static str, &str)> {
        let says = |place: usize| self.rows.iter().any(|(_, cells)| cells.get(place).is_some_and(|cell| cell != "0"));
        self.heads
            .iter()
            .enumerate()
            .filter_map(|(place, head)| {
                let (class, head) = match head.split_at_checked(1) {
                    Some(("#", head)) => ("number", head),
                    Some(("~", head)) => ("text", head),
                    _ => ("name", head.as_str()),
                };
                match head.strip_prefix('?') {
                    Some(head) => says(place).then_some((place, class, head)),
                    None => Some((place, class, head)),
                }
            })
            .collect()
    }

    /// The table in a box of its own, which scrolls where the page is narrow.
    fn card(&self) -> String {
        format!("<div class=\"card\">{}</div>\n", self.scroll())
    }

    fn scroll(&self) -> String {
        let columns = self.columns();
        let heads = columns.iter().map(|(_, class, head)| format!("<th scope=\"col\" class=\"{class}\">{head}</th>"));
        let heads: String = heads.collect();
        let mut rows = String::new();
        for (class, cells) in &self.rows {
            let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
            let _ = write!(rows, "<tr{class}>");
            for (place, class, _) in &columns {
                let cell = cells.get(*place).map_or("", String::as_str);
                let _ = match place {
                    0 => write!(rows, "<th scope=\"row\" class=\"{class}\">{cell}</th>"),
                    _ => write!(rows, "<td class=\"{class}\">{cell}</td>"),
                };
            }
            rows += "</tr>\n";
        }
        format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{rows}</tbody>\n</table></div>",
            Text(&self.name),
        )
    }
}

/// A text that anybody may have written, as HTML: escaped, its control characters written out, its direction its own.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in visible(self.0).chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // What turns the direction of the text behind it around.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                    write!(f, "{}", character.escape_unicode())?;
                }
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// An amount with its thousands apart.
fn coins(amount: Amount) -> String {
    grouped(&amount.to_string())
}

/// Digits in groups of three before the point, and a real minus.
fn grouped(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("\u{2212}", text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped += fraction;
    }
    grouped
}

fn rate(sums: &Sums) -> String {
    sums.reversed_permille().map_or_else(|| "\u{2013}".to_owned(), |rate| format!("{}.{}%", rate / 10, rate % 10))
}

fn many(count: u64, of: &str) -> String {
    let counted = grouped(&count.to_string());
    match (count, of.strip_suffix('y')) {
        (1, _) => format!("{counted} {of}"),
        (_, Some(stem)) => format!("{counted} {stem}ies"),
        (_, None) => format!("{counted} {of}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn numbers_are_grouped_and_have_a_real_minus() {
        for (text, expected) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-1234567.89", "\u{2212}1,234,567.89"),
            ("123456.7", "123,456.7"),
        ] {
            assert_eq!(grouped(text), expected);
        }
        assert_eq!([many(1, "entry"), many(2, "entry"), many(1000, "case")], ["1 entry", "2 entries", "1,000 cases"]);
    }

    #[test]
    fn a_month_without_entries_is_a_page_all_the_same() {
        let date = |day| Date::new(2026, 11, day).unwrap();
        let (books, holds) = (Books::default(), Held::default());
        let month = Month {
            first: date(1),
            last: date(30),
            over: false,
            made_at: Timestamp::UNIX_EPOCH,
            books: &books,
            holds: &holds,
            cases: &[],
            unreadable_cases: 0,
        };
        let page = month.page().unwrap();
        for text in
            ["November 2026", "No entries.", "No credits.", "Nothing is held.", "No case is open.", "not over yet"]
        {
            assert!(page.contains(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_can_leave_its_place(text in ".*") {
            let html = Text(&text).to_string();
            let leaves = html.contains(['<', '>', '"', '\'', '\n', '\u{202e}']);
            prop_assert!(!leaves, "{}", html);
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            let bare = entities.iter().fold(html, |html, entity| html.replace(entity, ""));
            prop_assert!(!bare.contains('&'));
        }
    }
}
