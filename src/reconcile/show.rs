//! The result of a comparison as text for a terminal, as JSON, as CSV and as a page.
//!
//! A statement is a stranger's: no text of it is obeyed by a terminal, a spreadsheet or a browser. Findings are read one by
//! one, so memory does not grow with them. Amounts are written as they are, never rounded.

use std::fmt::Write as _;
use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::money::Amount;
use crate::reconcile::profile::Unit;
use crate::reconcile::sort::Scratch;
use crate::reconcile::{Category, Failure, Finding, Lines, Report, Side, State, Sum, Summary, Tally};

/// Most findings that a terminal shows.
pub const TEXT_MAX: usize = 20;

/// Most findings of one category that a page shows.
pub const PAGE_MAX: usize = 1000;

/// What the result is about.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    /// The network.
    pub network: &'a str,
    /// The statement's file.
    pub statement: &'a str,
}

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    #[error(transparent)]
    Result(#[from] Failure),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Ours less theirs.
fn difference(tally: Tally) -> Option<Amount> {
    tally.ours.amount.checked_add(tally.theirs.amount.negated())
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Coins => "coins",
        Unit::Dollars | Unit::Cents => "US dollars",
    }
}

/// The categories that have something, and the sum of all.
fn rows(summary: &Summary) -> Vec<(&'static str, Tally)> {
    let filled = Category::ALL.into_iter().filter(|category| summary.categories.contains_key(category));
    let mut rows: Vec<_> = filled.map(|category| (category.words(), summary.of(category))).collect();
    rows.push(("all", summary.given));
    rows
}

/// The days and the unit, in words.
fn scope(summary: &Summary) -> String {
    let period = &summary.period;
    format!("{} to {} ({}), in {}", period.first, period.last, summary.zone_name, unit(summary.unit))
}

/// What became of the statement's lines, in words.
fn lines(lines: Lines) -> String {
    let mut text = format!("{} lines of the statement: {} compared", lines.all, lines.compared);
    for (count, what) in [
        (lines.other, "of a status that moves nothing"),
        (lines.totals, "with the sum"),
        (lines.unreadable, "unreadable"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}

/// What does not add up, and what makes the result doubtful.
fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks: Vec<_> = summary.remarks.iter().map(ToString::to_string).collect();
    if !summary.adds_up() {
        remarks.push(
            "the categories do not add up to what was given: do not rely on this result, and report it".to_owned(),
        );
    }
    remarks
}

/// One side of a finding, in words.
fn side(side: Option<&Side>) -> String {
    let Some(side) = side else { return "nothing".to_owned() };
    let mut text = side.status.words().to_owned();
    let amounts: Vec<_> = [side.credit, side.reversal].into_iter().flatten().map(|amount| amount.to_string()).collect();
    match amounts.as_slice() {
        [] => text.push_str(" without an amount"),
        amounts => {
            let _ = write!(text, " {}", amounts.join(" and "));
        }
    }
    if let Some(user) = &side.user {
        let _ = write!(text, ", user {user}");
    }
    if let Some(time) = side.time {
        let _ = write!(text, ", {}", time.strftime("%Y-%m-%d %H:%M:%SZ"));
    }
    match side.lines.as_slice() {
        [] => {}
        [line] => {
            let _ = write!(text, ", line {line}");
        }
        lines => {
            let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
            let _ = write!(text, ", lines {}", lines.join(" and "));
        }
    }
    text
}

/// What is said of an id that the other side has in another form.
fn like(id: &str) -> String {
    format!("the other side has {id}: a spreadsheet may have changed it, and it was not matched")
}

fn totals(said: Option<Amount>, read: Option<Amount>) -> String {
    let said = said.map_or("does not read".to_owned(), |said| format!("says {said}"));
    let read = read.map(|read| read.to_string()).unwrap_or_default();
    format!("the sum of the statement {said}, and its lines add up to {read}")
}

/// Writes the summary and the first findings for a terminal.
///
/// # Errors
///
/// [`ShowError`], as do all of these.
pub fn text<F: Scratch>(
    report: &mut Report<F>,
    heading: Heading<'_>,
    output: &mut impl Write,
) -> Result<(), ShowError> {
    let summary = &report.summary;
    let statement = heading.statement.escape_debug();
    writeln!(output, "{}: entries against {statement}, {}\n", heading.network, scope(summary))?;
    let header = ["", "entries", "sum of entries", "lines", "sum of lines", "difference"].map(str::to_owned);
    let mut table = vec![header];
    for (name, tally) in rows(summary) {
        let difference = difference(tally).map(|amount| amount.to_string()).unwrap_or_default();
        let Tally { ours, theirs } = tally;
        let [entries, lines] = [ours.count, theirs.count].map(|count| count.to_string());
        table.push([name.to_owned(), entries, ours.amount.to_string(), lines, theirs.amount.to_string(), difference]);
    }
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..6).map(width).collect();
    for row in &table {
        write!(output, "{:<1$}", row[0], widths[0])?;
        for column in 1..6 {
            write!(output, "  {:>1$}", row[column], widths[column])?;
        }
        writeln!(output)?;
    }
    writeln!(output, "\n{}", lines(summary.lines))?;
    for remark in remarks(summary) {
        writeln!(output, "note: {remark}")?;
    }
    let mut count = 0usize;
    for finding in report.findings()? {
        let finding = finding?;
        count += 1;
        if count == 1 {
            writeln!(output)?;
        }
        if count <= TEXT_MAX {
            writeln!(output, "{}", sentence(&finding))?;
        }
    }
    if count > TEXT_MAX {
        writeln!(output, "and {} more: --csv FILE has them all", count - TEXT_MAX)?;
    }
    Ok(())
}

/// A finding in one line that a terminal only shows.
fn sentence(finding: &Finding) -> String {
    let sentence = match finding {
        Finding::Conversion { category, id, ours, theirs, like: other } => {
            let other = other.as_ref().map(|id| format!("; {}", like(id))).unwrap_or_default();
            format!(
                "{}  {id}  ours: {}; theirs: {}{other}",
                category.words(),
                side(ours.as_ref()),
                side(theirs.as_ref())
            )
        }
        Finding::Unreadable { line, why } => format!("unreadable  line {line}: {why}"),
        Finding::Totals { line, said, read } => format!("sum differs  line {line}: {}", totals(*said, *read)),
    };
    // Reasons quote with escapes already; a backslash of theirs stays one.
    sentence.chars().map(|character| if is_shown(character) { character } else { '\u{fffd}' }).collect()
}

/// Whether a terminal shows a character and does nothing else with it: no control, no change of direction.
fn is_shown(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes everything as one JSON document. Amounts are texts, so that no reader rounds them.
///
/// # Errors
///
/// See [`text`].
pub fn json<F: Scratch>(
    report: &mut Report<F>,
    heading: Heading<'_>,
    output: &mut impl Write,
) -> Result<(), ShowError> {
    let summary = &report.summary;
    let sum = |sum: Sum| json!({ "count": sum.count, "sum": sum.amount.to_string() });
    let tally = |tally: Tally| json!({ "entries": sum(tally.ours), "lines": sum(tally.theirs) });
    let categories = Category::ALL.map(|category| (category.as_str().to_owned(), tally(summary.of(category))));
    let Lines { all, compared, other, totals, unreadable } = summary.lines;
    let head = json!({
        "network": heading.network,
        "statement": heading.statement,
        "first_day": summary.period.first.to_string(),
        "last_day": summary.period.last.to_string(),
        "time_zone": summary.zone_name,
        "unit": unit(summary.unit),
        "all_matched": summary.is_clean(),
        "adds_up": summary.adds_up(),
        "categories": Value::Object(categories.into_iter().collect()),
        "all": tally(summary.given),
        "statement_lines": {
            "all": all, "compared": compared, "other": other, "totals": totals, "unreadable": unreadable,
        },
        "remarks": remarks(summary),
    });
    let head = head.to_string();
    write!(output, "{},\"findings\":[", head.strip_suffix('}').unwrap_or(&head))?;
    for (number, finding) in report.findings()?.enumerate() {
        let finding = serde_json::to_string(&finding?).map_err(io::Error::from)?;
        write!(output, "{}\n{finding}", if number == 0 { "" } else { "," })?;
    }
    writeln!(output, "]}}")?;
    Ok(())
}

/// The columns of the CSV.
const COLUMNS: [&str; 14] = [
    "finding",
    "id",
    "our_status",
    "our_credit",
    "our_reversal",
    "our_user",
    "our_time",
    "their_status",
    "their_credit",
    "their_reversal",
    "their_user",
    "their_time",
    "lines",
    "note",
];

/// A text that no spreadsheet takes for a formula.
fn inert(text: &str) -> String {
    let first = text.trim_start().chars().next();
    match first {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{text}"),
        _ if text.starts_with(['\t', '\r', '\n']) => format!("'{text}"),
        _ => text.to_owned(),
    }
}

/// Writes every finding as a row. Numbers stay numbers; a text that a spreadsheet would run begins with an apostrophe.
///
/// # Errors
///
/// See [`text`].
pub fn csv<F: Scratch>(report: &mut Report<F>, output: &mut impl Write) -> Result<(), ShowError> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(COLUMNS).map_err(io::Error::from)?;
    for finding in report.findings()? {
        let row = match finding? {
            Finding::Conversion { category, id, ours, theirs, like: other } => {
                let [our, their] = [ours.as_ref(), theirs.as_ref()].map(side_cells);
                let lines = theirs.map(|side| side.lines).unwrap_or_default();
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                let mut row = vec![category.as_str().to_owned(), inert(&id)];
                row.extend(our);
                row.extend(their);
                row.push(lines.join(" "));
                row.push(other.map(|id| like(&id)).unwrap_or_default());
                row
            }
            Finding::Unreadable { line, why } => bare_row("unreadable", line, &why),
            Finding::Totals { line, said, read } => bare_row("sum_differs", line, &totals(said, read)),
        };
        writer.write_record(&row).map_err(io::Error::from)?;
    }
    writer.flush()?;
    Ok(())
}

fn bare_row(finding: &str, line: u64, note: &str) -> Vec<String> {
    let mut row = vec![String::new(); COLUMNS.len()];
    finding.clone_into(&mut row[0]);
    row[COLUMNS.len() - 2] = line.to_string();
    row[COLUMNS.len() - 1] = inert(note);
    row
}

fn side_cells(side: Option<&Side>) -> [String; 5] {
    let Some(side) = side else { return Default::default() };
    let status = match side.status {
        State::Credited => "credited",
        State::Reversed => "credited_and_reversed",
        State::ReversalOnly => "reversed",
    };
    let amount = |amount: Option<Amount>| amount.map(|amount| amount.to_string()).unwrap_or_default();
    let time = side.time.map(|time: Timestamp| time.to_string()).unwrap_or_default();
    let user = side.user.as_deref().map(inert).unwrap_or_default();
    [status.to_owned(), amount(side.credit), amount(side.reversal), user, time]
}

/// A text for a page: nothing of it is markup, and its direction ends where it does.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character if is_shown(character) => escaped.push(character),
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

const PAGE_START: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
"#;

const STYLE: &str = "<style>
:root{color-scheme:light dark}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{padding:.35rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid #8885;overflow-wrap:anywhere}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bad{border-left:4px solid #c33;padding-left:.6rem}.good{border-left:4px solid #393;padding-left:.6rem}
@media(max-width:40rem){
thead{display:none}tr{display:block;border-bottom:2px solid #8888;padding:.4rem 0}
td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.15rem 0;text-align:right}
td::before{content:attr(data-name);opacity:.7;text-align:left;white-space:nowrap}td:empty{display:none}
}
</style>
";

fn cell(output: &mut impl Write, name: &str, class: &str, text: &str) -> io::Result<()> {
    let text = if text.is_empty() { String::new() } else { format!("<bdi>{}</bdi>", escaped(text)) };
    write!(output, "<td{class} data-name=\"{name}\">{text}</td>")
}

fn table_head(output: &mut impl Write, names: &[&str]) -> io::Result<()> {
    write!(output, "<table><thead><tr>")?;
    for name in names {
        write!(output, "<th>{name}</th>")?;
    }
    writeln!(output, "</tr></thead><tbody>")
}

/// Writes a page that needs nothing else: the summary, and the findings by category.
///
/// # Errors
///
/// See [`text`].
pub fn page<F: Scratch>(
    report: &mut Report<F>,
    heading: Heading<'_>,
    output: &mut impl Write,
) -> Result<(), ShowError> {
    let summary = &report.summary;
    let [network, statement] = [heading.network, heading.statement].map(escaped);
    write!(output, "{PAGE_START}<title>{network}: reconciliation</title>\n{STYLE}</head><body>\n<main>\n")?;
    writeln!(output, "<h1>{network}: our entries against <bdi>{statement}</bdi></h1>")?;
    writeln!(output, "<p>{}. {}.</p>", escaped(&scope(summary)), lines(summary.lines))?;
    let (class, verdict) =
        if summary.is_clean() { ("good", "Everything matches.") } else { ("bad", "There are differences.") };
    writeln!(output, "<p class=\"{class}\">{verdict}</p>")?;
    for remark in remarks(summary) {
        writeln!(output, "<p class=\"bad\">{}</p>", escaped(&remark))?;
    }
    let names = ["", "Entries", "Sum of entries", "Lines", "Sum of lines", "Difference"];
    table_head(output, &names)?;
    for (name, tally) in rows(summary) {
        let difference = difference(tally).map(|amount| amount.to_string()).unwrap_or_default();
        let Tally { ours, theirs } = tally;
        write!(output, "<tr>")?;
        cell(output, "", "", name)?;
        let numbers = [
            ours.count.to_string(),
            ours.amount.to_string(),
            theirs.count.to_string(),
            theirs.amount.to_string(),
            difference,
        ];
        for (name, number) in names[1..].iter().zip(numbers) {
            cell(output, name, " class=\"n\"", &number)?;
        }
        writeln!(output, "</tr>")?;
    }
    writeln!(output, "</tbody></table>")?;
    let listed: Vec<_> = Category::ALL
        .into_iter()
        .filter(|category| category.is_listed() && summary.categories.contains_key(category))
        .collect();
    if summary.lines.unreadable > 0 || summary.totals_differ {
        unread_lines(report, output)?;
    }
    for category in listed {
        conversions(report, category, output)?;
    }
    writeln!(output, "</main></body></html>")?;
    Ok(())
}

/// The lines of the statement that are findings by themselves.
fn unread_lines<F: Scratch>(report: &mut Report<F>, output: &mut impl Write) -> Result<(), ShowError> {
    writeln!(output, "<h2>lines that cannot be read</h2>")?;
    table_head(output, &["Line", "Why"])?;
    let mut count = 0;
    for finding in report.findings()? {
        let (line, why) = match finding? {
            Finding::Unreadable { line, why } => (line, why),
            Finding::Totals { line, said, read } => (line, totals(said, read)),
            Finding::Conversion { .. } => continue,
        };
        count += 1;
        if count <= PAGE_MAX {
            write!(output, "<tr>")?;
            cell(output, "Line", "", &line.to_string())?;
            cell(output, "Why", "", &why)?;
            writeln!(output, "</tr>")?;
        }
    }
    table_end(count, output)
}

/// The conversions of one category.
fn conversions<F: Scratch>(report: &mut Report<F>, wanted: Category, output: &mut impl Write) -> Result<(), ShowError> {
    writeln!(output, "<h2>{}</h2>", wanted.words())?;
    table_head(output, &["Id", "Ours", "Theirs", "Note"])?;
    let mut count = 0;
    for finding in report.findings()? {
        let (id, ours, theirs, other) = match finding? {
            Finding::Conversion { category, id, ours, theirs, like } if category == wanted => (id, ours, theirs, like),
            Finding::Conversion { .. } | Finding::Unreadable { .. } | Finding::Totals { .. } => continue,
        };
        count += 1;
        if count <= PAGE_MAX {
            write!(output, "<tr>")?;
            cell(output, "Id", "", &id)?;
            cell(output, "Ours", "", &side(ours.as_ref()))?;
            cell(output, "Theirs", "", &side(theirs.as_ref()))?;
            cell(output, "Note", "", &other.map(|id| like(&id)).unwrap_or_default())?;
            writeln!(output, "</tr>")?;
        }
    }
    table_end(count, output)
}

fn table_end(count: usize, output: &mut impl Write) -> Result<(), ShowError> {
    writeln!(output, "</tbody></table>")?;
    if count > PAGE_MAX {
        writeln!(output, "<p>And {} more, which the CSV has.</p>", count - PAGE_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_and_no_number_is_changed() {
        for text in ["=1+1", "+1", "-1", "@a", "\t=1", " =1", "＝1"] {
            assert!(inert(text).starts_with('\''), "{text:?}");
        }
        assert_eq!(inert("conv-7"), "conv-7");
        assert_eq!(inert(""), "");
    }

    #[test]
    fn no_text_is_markup_or_turns_a_line_around() {
        assert_eq!(
            escaped("<a href='x'>&\"\u{202e}\u{1b}[1m"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}\u{fffd}[1m"
        );
    }
}
