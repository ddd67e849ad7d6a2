//! A network's statement against entries: ten awkward statements (`tests/statements/`), what each difference says, what is
//! refused, and what holds for any statement.
//!
//! An entry is written as `id kind coins dollars user time`; the result as the summary's categories and one line a finding.

use std::fmt::Write as _;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use postback::books::Row;
use postback::id::{Currency, Network, UserId};
use postback::money::Amount;
use postback::operator::reconcile::{Job, ReconcileArguments};
use postback::reconcile::profile::{Draft, Profile};
use postback::reconcile::show::{self, Heading};
use postback::reconcile::sort::Limits;
use postback::reconcile::statement::{Statement, StatementError};
use postback::reconcile::{Category, Failure, Finding, Kind, Ours, Reconciliation, Report, Side};
use proptest::prelude::*;

type Memory = Cursor<Vec<u8>>;

/// So small that even a few lines need several scratch files.
const TINY: Limits = Limits { run_bytes: 100, fan_in: 2 };

fn statement(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn amount(text: &str) -> Amount {
    Amount::stored(text).unwrap()
}

/// Reads `id kind coins dollars user time`; `-` is no dollars.
fn entry(line: &str) -> Ours {
    let [id, kind, coins, dollars, user, time] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("not an entry: {line}")
    };
    let kind = match kind {
        "credit" => Kind::Credit,
        "reversal" => Kind::Reversal,
        "placeholder" => Kind::Placeholder,
        _ => panic!("not a kind: {line}"),
    };
    Ours {
        id: id.to_owned(),
        kind,
        user: user.to_owned(),
        coins: amount(coins),
        payout_usd: (dollars != "-").then(|| amount(dollars)),
        received_at: time.parse().unwrap(),
    }
}

fn entries(lines: &str) -> Vec<Ours> {
    lines.lines().filter(|line| !line.trim().is_empty()).map(entry).collect()
}

fn draft(profile: &str) -> Draft {
    Draft::from_toml(profile).unwrap()
}

/// A profile for statements with the columns `id`, `amount` and `time`.
const PLAIN: &str = "id = 'id'\namount = 'amount'\nunit = 'coins'\ntime = 'time'\n";

fn compare(profile: &str, statement: &[u8], ours: &[Ours]) -> Result<Report<Memory>, Failure> {
    let profile = Profile::of(&draft(profile)).unwrap();
    let statement = Statement::open(Cursor::new(statement.to_vec()), profile)?;
    let period = statement.period(None, None)?;
    let scratch = || -> io::Result<Memory> { Ok(Cursor::new(Vec::new())) };
    let mut reconciliation = Reconciliation::new(statement, period, scratch, TINY)?;
    for ours in ours {
        reconciliation.ours(ours)?;
    }
    reconciliation.finish()
}

fn shown(side: Option<&Side>) -> String {
    let Some(side) = side else { return "nothing".to_owned() };
    let amounts: Vec<_> = [side.credit, side.reversal].into_iter().flatten().map(|amount| amount.to_string()).collect();
    let lines: Vec<_> = side.lines.iter().map(|line| format!("@{line}")).collect();
    [vec![side.status.words().to_owned()], amounts, lines].concat().join(" ")
}

fn findings(report: &mut Report<Memory>) -> Vec<Finding> {
    report.findings().unwrap().map(Result::unwrap).collect()
}

/// The categories with their entries and lines, and the findings.
fn result(report: &mut Report<Memory>) -> String {
    assert!(report.summary.adds_up(), "{:?}", report.summary);
    let mut text = String::new();
    for (category, tally) in &report.summary.categories {
        let (ours, theirs) = (tally.ours, tally.theirs);
        writeln!(text, "{}: {} = {}, {} = {}", category.as_str(), ours.count, ours.amount, theirs.count, theirs.amount)
            .unwrap();
    }
    for finding in findings(report) {
        match finding {
            Finding::Conversion { category, id, ours, theirs, like } => {
                let like = like.map(|like| format!(" (like {like})")).unwrap_or_default();
                let (ours, theirs) = (shown(ours.as_ref()), shown(theirs.as_ref()));
                writeln!(text, "{} {id}: {ours} / {theirs}{like}", category.as_str()).unwrap();
            }
            Finding::Unreadable { line, why } => writeln!(text, "line {line}: {why}").unwrap(),
            Finding::Totals { line, said, read } => {
                writeln!(text, "line {line}: sum {} read {}", said.unwrap(), read.unwrap()).unwrap();
            }
        }
    }
    text
}

#[track_caller]
fn check(profile: &str, statement: &[u8], ours: &str, expected: &str) {
    let mut report = compare(profile, statement, &entries(ours)).unwrap();
    let lines: Vec<_> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(result(&mut report).lines().collect::<Vec<_>>(), lines);
}

#[track_caller]
fn refused(profile: &str, statement: &[u8]) -> String {
    match compare(profile, statement, &[]) {
        Err(Failure::Statement(error)) => {
            let error = error.to_string();
            assert!(!error.contains(['\n', '\u{1b}']), "{error}");
            error
        }
        Err(other) => panic!("{other}"),
        Ok(mut report) => panic!("not refused: {}", result(&mut report)),
    }
}

#[test]
fn a_mark_before_the_first_column_is_no_part_of_its_name() {
    // A UTF-8 mark, lines that end with CR LF, and columns with other names.
    check(
        "id = 'Transaction ID'\namount = 'Payout'\nunit = 'usd'\ntime = 'Date'",
        &statement("bom.csv"),
        "c-1 credit 500 0.5 42 2026-11-02T10:00:01Z
         c-2 credit 1000 1 42 2026-11-03T10:00:01Z",
        "matched: 1 = 0.5, 1 = 0.5
         amount_differs: 1 = 1, 1 = 1.25
         amount_differs c-2: credited 1 / credited 1.25 @3",
    );
}

#[test]
fn semicolons_and_decimal_commas_are_found_and_the_column_settles_what_a_point_means() {
    // `sep=;` before the header, as spreadsheets want it; `1.000` is a thousand because `0,75` is in the same column.
    check(
        "id = 'Buchung'\namount = 'Betrag'\nunit = 'coins'\ntime = 'Datum'\ntime_format = '%d.%m.%Y %H:%M'
         time_zone = 'Europe/Berlin'",
        &statement("semicolons.csv"),
        "c-1 credit 1234.5 - 42 2026-11-02T09:00:00Z
         c-2 credit 0.75 - 42 2026-11-03T10:30:00Z
         c-3 credit 1000 - 42 2026-11-04T10:30:00Z",
        "matched: 3 = 2235.25, 3 = 2235.25",
    );
}

#[test]
fn a_line_end_in_quotes_ends_no_line_and_an_inch_opens_no_quote() {
    check(
        PLAIN,
        &statement("quoted_newlines.csv"),
        "c-1 credit 10 - 42 2026-11-02T10:00:00Z
         c-2 credit 20 - 42 2026-11-02T11:00:00Z",
        // The line is the one that an editor shows, behind two lines that were one record.
        "matched: 2 = 30, 2 = 30
         missing_with_us: 0 = 0, 1 = 30
         missing_with_us c-3: nothing / credited 30 @5",
    );
    // A quote that swallows lines says how many.
    check(
        PLAIN,
        b"id,amount,time\na,\"1,2026-11-02\nb,1,2026-11-02\nc,\",1,2026-11-02\nd,1,2026-11-02\n",
        "d credit 1 - 42 2026-11-02T10:00:00Z",
        "matched: 1 = 1, 1 = 1
         line 2: it has 4 cells where the header has 3, and its quotes make one line of those to 4",
    );
}

#[test]
fn thousands_dollar_signs_and_brackets_are_read_and_odd_groups_are_not() {
    check(
        "id = 'id'\namount = 'amount'\nunit = 'usd'\ntime = 'time'",
        &statement("thousands.csv"),
        "c-1 credit 1 1234.5 42 2026-11-02T10:00:00Z
         c-2 credit 1 1234.5 42 2026-10-02T10:00:00Z
         c-2 reversal -1 - 42 2026-11-03T10:00:00Z
         c-3 credit 1 0.1 42 2026-11-03T11:00:00Z",
        // The reversal carried no payout: it takes back its credit's. That credit was in an earlier statement.
        "matched: 3 = 0.1, 3 = 0.1
         outside: 1 = 1234.5, 0 = 0
         line 5: amount `$12,34.00`: not in groups of three digits",
    );
}

#[test]
fn days_begin_at_the_statements_own_midnight_and_their_edges_belong_to_both_sides() {
    // Two days in New York, the first of 25 hours: 04:00Z to 05:00Z two days later.
    check(
        &format!("{PLAIN}time_zone = 'America/New_York'"),
        &statement("local_time.csv"),
        // `last` came after midnight and still matches; of the others, only what is well inside is missing with them.
        "first credit 1 - 42 2026-11-01T04:20:05Z
         last credit 2 - 42 2026-11-03T05:00:10Z
         before credit 3 - 42 2026-11-01T03:59:59Z
         early credit 4 - 42 2026-11-01T04:59:59Z
         inside credit 5 - 42 2026-11-01T05:00:00Z
         inside-too credit 6 - 42 2026-11-03T03:59:59Z
         late credit 7 - 42 2026-11-03T04:00:00Z
         after credit 8 - 42 2026-11-03T05:00:00Z",
        "matched: 2 = 3, 2 = 3
         missing_with_them: 2 = 11, 0 = 0
         at_the_edge: 2 = 11, 0 = 0
         outside: 2 = 11, 0 = 0
         at_the_edge early: credited 4 / nothing
         missing_with_them inside: credited 5 / nothing
         missing_with_them inside-too: credited 6 / nothing
         at_the_edge late: credited 7 / nothing",
    );
}

#[test]
fn reversals_as_negative_lines_are_compared_apart_from_their_credits() {
    check(
        PLAIN,
        &statement("negative_lines.csv"),
        "both credit 10 - 42 2026-11-02T10:00:00Z
         both reversal -10 - 42 2026-11-05T10:00:00Z
         earlier credit 3 - 42 2026-10-05T10:00:00Z
         earlier reversal -3 - 42 2026-11-06T10:00:00Z
         ours-later credit 7 - 42 2026-11-07T10:00:00Z
         ours-later reversal -7 - 42 2026-12-24T10:00:00Z
         not-reversed credit 4 - 42 2026-11-08T10:00:00Z
         not-reversed reversal -4 - 42 2026-11-08T12:00:00Z
         wrong credit 6 - 42 2026-11-08T10:00:00Z
         wrong reversal -6 - 42 2026-11-08T12:00:00Z
         netted credit 9 - 42 2026-11-08T10:00:00Z
         netted reversal -9 - 42 2026-11-20T12:00:00Z
         old credit 2 - 42 2026-10-08T10:00:00Z
         old reversal -2 - 42 2026-11-07T12:00:00Z",
        // `netted` is in neither list of theirs; `old` was paid in an earlier statement, so its reversal is missing.
        "matched: 4 = 4, 4 = 4
         missing_with_them: 1 = -2, 0 = 0
         amount_differs: 2 = 0, 2 = 1
         status_differs: 2 = 0, 1 = 4
         netted_out: 2 = 0, 0 = 0
         outside: 3 = -2, 0 = 0
         netted_out netted: credited and reversed 9 -9 / nothing
         status_differs not-reversed: credited and reversed 4 -4 / credited 4 @6
         missing_with_them old: reversed -2 / nothing
         amount_differs wrong: credited and reversed 6 -6 / credited and reversed 6 -5 @7 @8",
    );
}

const BY_STATUS: &str = "status = 'status'\ncredit = ['approved']\nreversal = ['chargeback']\nother = ['pending']\n";

#[test]
fn reversals_as_a_status_say_all_of_a_conversion_in_its_only_line() {
    check(
        &format!("{PLAIN}{BY_STATUS}reversals = 'state'"),
        &statement("status_column.csv"),
        // Nothing ever moved for `void`, whose reversal came first; theirs comes to nothing too.
        "plain credit 10 - 42 2026-11-02T10:00:00Z
         reversed credit 10 - 42 2026-11-03T10:00:00Z
         reversed reversal -10 - 42 2026-12-03T10:00:00Z
         ours-reversed credit 5 - 42 2026-11-04T10:00:00Z
         ours-reversed reversal -5 - 42 2026-11-05T10:00:00Z
         theirs-reversed credit 5 - 42 2026-11-05T10:00:00Z
         void placeholder 0 - 42 2026-11-05T10:00:00Z
         void reversal 0 - 42 2026-11-05T10:00:00Z",
        "matched: 4 = 10, 3 = 10
         status_differs: 3 = 5, 2 = 5
         line 7: status `On hold` is in no list: say --credit, --reversal or --other
         status_differs ours-reversed: credited and reversed 5 -5 / credited 5 @4
         status_differs theirs-reversed: credited 5 / credited and reversed 5 @5",
    );
}

#[test]
fn the_same_statuses_can_be_on_lines_of_their_own() {
    check(
        &format!("{PLAIN}{BY_STATUS}reversals = 'line'\nreversal_prefix = 'R-'"),
        b"id,amount,status,time\na,10,approved,2026-11-02\nR-a,10,chargeback,2026-11-03\nb,4,chargeback,2026-11-03\n",
        "a credit 10 - 42 2026-11-02T10:00:00Z
         a reversal -10 - 42 2026-11-03T10:00:00Z
         b credit 4 - 42 2026-10-02T10:00:00Z",
        // `b` was credited in an earlier month, and we lack its reversal: the credit is shown and not counted here.
        "matched: 2 = 0, 2 = 0
         missing_with_us: 0 = 0, 1 = -4
         outside: 1 = 4, 0 = 0
         missing_with_us b: credited 4 / reversed -4 @4",
    );
}

#[test]
fn a_file_that_was_cut_off_says_so_and_its_last_line_is_never_read() {
    let ours = "c-1 credit 10 - 42 2026-11-02T10:00:00Z\nc-2 credit 20 - 42 2026-11-03T10:00:00Z";
    let profile = &format!("{PLAIN}user = 'user'");
    let expected = "matched: 2 = 30, 2 = 30\nline 4: it has 2 cells where the header has 4: the file is cut off";
    check(profile, &statement("truncated.csv"), ours, expected);
    // What the cut line says of its day is not believed either, so the statement covers one day less.
    check(
        profile,
        &statement("truncated_in_quotes.csv"),
        ours,
        "matched: 1 = 10, 1 = 10
         outside: 1 = 20, 0 = 0
         line 3: a quote is opened and never closed",
    );
    let error = refused(PLAIN, b"id,amount,time\nc-1,10,2026-11-0");
    assert!(error.starts_with("which days it covers is not known"), "{error}");
}

#[test]
fn where_a_cut_leaves_every_cell_the_missing_line_end_is_remarked() {
    let ours = entries("c-1 credit 1 - 42 2026-11-02T10:00:00Z");
    for (end, remarks) in [("", 1), ("\n", 0)] {
        let file = format!("id,time,amount\nc-1,2026-11-02,1{end}");
        let mut report = compare(PLAIN, file.as_bytes(), &ours).unwrap();
        assert!(report.summary.is_clean());
        let mut text = Vec::new();
        show::text(&mut report, HEADING, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap().matches("note: the statement's last line has no line end").count(),
            remarks
        );
    }
}

#[test]
fn what_a_spreadsheet_exports_as_unicode_text_is_read_by_its_mark() {
    // UTF-16 with tabs.
    check(
        &format!("{PLAIN}user = 'user'"),
        &statement("excel_utf16.tsv"),
        "c-1 credit 10 - Jürgen 2026-11-02T10:00:00Z
         c-2 credit 20 - Ivan 2026-11-03T10:00:00Z",
        "matched: 1 = 10, 1 = 10
         user_differs: 1 = 20, 1 = 20
         user_differs c-2: credited 20 / credited 20 @3",
    );
}

#[test]
fn ids_that_a_spreadsheet_changed_are_told_and_never_matched() {
    check(
        PLAIN,
        &statement("spreadsheet_ids.csv"),
        "000123 credit 10 - 42 2026-11-02T10:00:00Z
         007 credit 20 - 42 2026-11-02T10:00:00Z
         1234567890123456789 credit 40 - 42 2026-11-02T10:00:00Z
         abc credit 50 - 42 2026-11-02T10:00:00Z
         12e5 credit 60 - 42 2026-11-02T10:00:00Z",
        "matched: 2 = 80, 2 = 80
         missing_with_us: 0 = 0, 3 = 100
         missing_with_them: 3 = 100, 0 = 0
         line 4: the id `1.2E+15` was rounded by a spreadsheet: take the file as the network exports it
         line 5: the id `1,2E+15` was rounded by a spreadsheet: take the file as the network exports it
         missing_with_them 000123: credited 10 / nothing (like 123)
         missing_with_us 123: nothing / credited 10 @2 (like 000123)
         missing_with_us 1234567890123450000: nothing / credited 40 @6 (like 1234567890123456789)
         missing_with_them 1234567890123456789: credited 40 / nothing (like 1234567890123450000)
         missing_with_us ABC: nothing / credited 50 @7 (like abc)
         missing_with_them abc: credited 50 / nothing (like ABC)",
    );
}

#[test]
fn a_column_that_is_there_twice_must_be_counted_and_a_sum_at_the_end_is_checked() {
    // A title line and an empty one before the header, an empty row before the sum.
    let file = statement("duplicate_headers_and_totals.csv");
    let profile = |amount: &str| {
        format!("id = 'id'\namount = '{amount}'\nunit = 'coins'\ntime = 'time'\nheader = 3\ntotals = 'total'")
    };
    let error = refused(&profile("amount"), &file);
    assert_eq!(error, "line 3 has the column `amount` for --amount more than once: say which, such as --amount '#2'");
    let ours = "c-1 credit 10 - 42 2026-11-02T10:00:00Z\nc-2 credit 20 - 42 2026-11-03T10:00:00Z";
    check(
        &profile("#2"),
        &file,
        ours,
        "matched: 2 = 30, 2 = 30
         duplicated: 0 = 0, 1 = 20
         duplicated c-2: credited 20 / credited 20 @6",
    );
    let other = String::from_utf8(file).unwrap().replace("Total:,50", "Total:,51");
    let mut report = compare(&profile("#2"), other.as_bytes(), &entries(ours)).unwrap();
    assert!(result(&mut report).contains("line 8: sum 51 read 50"));
}

#[test]
fn times_with_an_offset_are_moments_whatever_the_zone_of_the_days() {
    let profile = Profile::of(&draft(&format!("{PLAIN}time_zone = 'Asia/Tokyo'"))).unwrap();
    let statement = Statement::open(Cursor::new(statement("utc_offsets.csv")), profile).unwrap();
    let period = statement.period(None, None).unwrap();
    // The first is half past midnight in Tokyo, the second there the afternoon of the third; the last is in seconds.
    assert_eq!((period.first.to_string(), period.last.to_string()), ("2026-11-01".to_owned(), "2026-11-03".to_owned()));
    assert_eq!(period.from, "2026-10-31T15:00:00Z".parse::<Timestamp>().unwrap());
    assert_eq!(period.to, "2026-11-03T15:00:00Z".parse::<Timestamp>().unwrap());
}

#[test]
fn an_amount_that_reads_in_two_ways_is_refused_until_somebody_says_how() {
    let file = statement("decimal_or_thousand.csv");
    assert_eq!(refused(PLAIN, &file), "line 3: `1.234` can be 1.234 or 1234: say --decimal . or --decimal ,");
    let ours = "c-1 credit 12 - 42 2026-11-02T10:00:00Z\nc-2 credit 1234 - 42 2026-11-03T10:00:00Z";
    check(&format!("{PLAIN}decimal = ','"), &file, ours, "matched: 2 = 1246, 2 = 1246");
    check(&format!("{PLAIN}thousands = '.'"), &file, ours, "matched: 2 = 1246, 2 = 1246");
    let both = b"id;amount;time\na;1.5;2026-11-02\nb;1,5;2026-11-02\n";
    let error = "`1.5` on line 2 has a decimal point, `1,5` on line 3 a decimal comma: say --decimal . or --decimal ,";
    assert_eq!(refused(PLAIN, both), error);
}

#[test]
fn bytes_of_another_encoding_matter_only_where_they_are_compared() {
    let file = statement("windows_1252.csv");
    let ours = "c-1 credit 10 - Jürgen 2026-11-02T10:00:00Z";
    check(PLAIN, &file, ours, "matched: 1 = 10, 1 = 10");
    let error = refused(&format!("{PLAIN}user = 'user'"), &file);
    let expected =
        "none of its 1 lines can be read; line 2: user: bytes that are not UTF-8: say --encoding, such as windows-1252";
    assert_eq!(error, expected);
    check(&format!("{PLAIN}user = 'user'\nencoding = 'windows-1252'"), &file, ours, "matched: 1 = 10, 1 = 10");
}

#[test]
fn what_is_no_statement_is_refused_in_one_line_that_says_what_to_do() {
    for (file, expected) in [
        (&b""[..], "it has no line 1, where its header should be"),
        (b"PK\x03\x04rest", "it is a spreadsheet or a ZIP archive: save it as CSV in UTF-8"),
        (b"<!doctype html><p>Log in", "it is a web page or XML: save it as CSV in UTF-8"),
        (b"i\0d\0", "it looks like UTF-16 without its mark: say --encoding utf-16le, or utf-16be"),
        (
            b"id,amount,time\rx,1,2026-11-02\r",
            "its lines end with a carriage return alone: save it with another line end",
        ),
        (b"ID,\x1b[31m,amount\n", "line 1 has no column `id` for --id; it has `ID`, `\\u{1b}[31m`, `amount`"),
        (b"id,amount,time\n", "which days it covers is not known: say --time COLUMN, or --from DATE and --to DATE"),
        (b"id,amount,time\na,1,03/11/2026\nb,1,2026-11-02\n", ""),
        (
            b"id,amount,time\na,x\x1b,2026-11-02\n",
            "none of its 1 lines can be read; line 2: amount `x\\u{1b}`: not a plain decimal number such as 12.50",
        ),
    ] {
        if expected.is_empty() {
            let mut report = compare(PLAIN, file, &[]).unwrap();
            assert!(
                result(&mut report).contains("line 2: time `03/11/2026` does not read in one way: say --time-format")
            );
        } else {
            assert_eq!(refused(PLAIN, file), expected);
        }
    }
    let by_number = "id = '#1'\namount = '#2'\nunit = 'coins'\ntime = '#3'\nheader = 0";
    let ours = "a;b credit 1 - 42 2026-11-02T10:00:00Z";
    check(by_number, b"a;b,1,2026-11-02\n", ours, "matched: 1 = 1, 1 = 1");
    let unclear =
        Statement::open(Cursor::new(b"a;b;c,1,2026-11-02\n".to_vec()), Profile::of(&draft(by_number)).unwrap());
    assert!(matches!(unclear, Err(StatementError::Separator)));
}

const HEADING: Heading<'_> = Heading { network: "standard", statement: "november.csv" };

#[test]
fn a_strangers_text_is_shown_and_never_obeyed() {
    let hostile = "id,amount,time,user\n\"=HYPERLINK(\"\"http://x\"\")\",1,2026-11-02,<script>alert(1)</script>\n\
                   @SUM(A1),-2,2026-11-02,\u{202e}gpj\n<img src=x onerror=alert(1)>,x\u{1b}[31m,2026-11-02,\"'><b>\"\n";
    let mut report = compare(&format!("{PLAIN}user = 'user'"), hostile.as_bytes(), &[]).unwrap();
    let (mut csv, mut page, mut text, mut json) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    show::csv(&mut report, &mut csv).unwrap();
    show::page(&mut report, HEADING, &mut page).unwrap();
    show::text(&mut report, HEADING, &mut text).unwrap();
    show::json(&mut report, HEADING, &mut json).unwrap();

    let mut rows = csv::Reader::from_reader(&csv[..]);
    for row in rows.records().map(Result::unwrap) {
        for cell in &row {
            let number = cell.parse::<i64>().is_ok();
            assert!(number || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
        }
    }
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.contains("'=HYPERLINK") && csv.contains("'@SUM(A1)") && csv.contains(",-2,"), "{csv}");
    let page = String::from_utf8(page).unwrap();
    assert!(
        !page.contains("<script") && !page.contains("<img") && !page.contains("<b>") && page.contains("&lt;script&gt;")
    );
    assert!(page.contains("default-src 'none'") && !page.contains("href") && page.contains("width=device-width"));
    for shown in [page, String::from_utf8(text).unwrap()] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["findings"][1]["id"], "=HYPERLINK(\"http://x\")");
    assert_eq!(json["all"]["lines"]["sum"], "-1");
    assert_eq!((&json["adds_up"], &json["all_matched"]), (&true.into(), &false.into()));
}

#[test]
fn only_what_a_network_can_know_of_an_entry_is_compared() {
    let network = Network::new("standard").unwrap();
    // Coins in suspense were paid by the network all the same, for the user whom it named.
    let row = Row {
        trans_id: "standard/a/b".to_owned(),
        status: "credit".to_owned(),
        user: UserId::suspense(&network),
        currency: Currency::new("coins").unwrap(),
        amount: amount("10"),
        held: Amount::ZERO,
        release_at: None,
        absorbed: Amount::ZERO,
        received_at: Some("2026-11-02T10:00:00.000Z".to_owned()),
        day: None,
        void: false,
        user_received: Some("42".to_owned()),
        amount_received: None,
        payout_usd: Some(amount("0.01")),
        offer_id: None,
        offer_name: None,
        goal_id: None,
        preset: None,
        source_ip: None,
        fingerprint: None,
        by: None,
        reason: None,
        operation: None,
    };
    assert_eq!(Ours::of(&row).unwrap().unwrap(), entry("a/b credit 10 0.01 42 2026-11-02T10:00:00Z"));
    let placeholder = Row { void: true, ..row.clone() };
    assert_eq!(Ours::of(&placeholder).unwrap().unwrap().kind, Kind::Placeholder);
    // What was spent before it was taken back is our loss and not the network's.
    let reversal = Row { status: "reversal".to_owned(), amount: amount("-3"), absorbed: amount("7"), ..row.clone() };
    assert_eq!(Ours::of(&reversal).unwrap().unwrap().coins, amount("-10"));
    for status in ["release", "assign", "clear", "adjust_over_cap", "bet"] {
        assert_eq!(Ours::of(&Row { status: status.to_owned(), ..row.clone() }), Ok(None), "{status}");
    }
    let timeless = Ours::of(&Row { received_at: None, ..row }).unwrap_err().to_string();
    assert_eq!(
        timeless,
        "the entry standard/a/b credit has no time that reads: `operator verify` says what else is wrong"
    );
}

#[test]
fn an_entry_that_is_given_twice_is_no_result() {
    let ours = entry("a credit 1 - 42 2026-11-02T10:00:00Z");
    let twice = compare(PLAIN, b"id,amount,time\na,1,2026-11-02\n", &[ours.clone(), ours]);
    assert!(matches!(twice, Err(Failure::OursTwice(id)) if id == "a"));
}

/// The arguments of a comparison in a folder.
fn arguments(folder: &Path, statement: &str, draft: Draft) -> ReconcileArguments {
    let file = |name: &str| Some(folder.join(name));
    ReconcileArguments {
        network: "standard".to_owned(),
        statement: folder.join(statement),
        draft,
        profile: None,
        save_profile: file("profile.toml"),
        from: None,
        to: None,
        csv: file("differences.csv"),
        html: file("differences.html"),
    }
}

fn run(arguments: ReconcileArguments, ours: &str) -> Result<(bool, String), String> {
    let mut job = Job::open(arguments).map_err(|error| error.to_string())?;
    for ours in entries(ours) {
        job.ours(&ours).map_err(|error| error.to_string())?;
    }
    let mut output = Vec::new();
    let clean = job.finish(false, &mut output).map_err(|error| error.to_string())?;
    Ok((clean, String::from_utf8(output).unwrap()))
}

#[test]
fn a_month_is_closed_with_files_and_its_profile_serves_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("november.csv"), statement("negative_lines.csv")).unwrap();
    let mut first = arguments(folder.path(), "november.csv", draft(PLAIN));
    (first.from, first.to) = ("2026-11-01".parse().ok(), "2026-11-30".parse().ok());
    let ours = "both credit 10 - 42 2026-11-02T10:00:00Z\nboth reversal -10 - 42 2026-11-05T10:00:00Z";
    let (clean, text) = run(first, ours).unwrap();
    assert!(!clean && text.contains("2026-11-01 to 2026-11-30 (UTC), in coins"), "{text}");
    assert!(text.contains("missing with us  not-reversed  ours: nothing; theirs: credited 4"), "{text}");
    let written = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(written("differences.csv").lines().count(), 1 + 4);
    assert!(written("differences.html").contains("There are differences."));

    std::fs::write(folder.path().join("december.csv"), "id,amount,time\na,5,2026-12-02\n").unwrap();
    let mut second = arguments(folder.path(), "december.csv", Draft::default());
    second.profile = second.save_profile.take();
    (second.csv, second.html) = (None, None);
    let (clean, text) = run(second, "a credit 5 - 42 2026-12-02T10:00:00Z").unwrap();
    assert!(clean && text.contains("matched"), "{text}");
}

#[test]
fn what_cannot_run_says_so_in_one_line_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::write(here.join("ok.csv"), "id,amount,time\na,5,2026-12-02\n").unwrap();
    std::fs::write(here.join("bad.csv"), "id,amount,time\na,x,2026-12-02\n").unwrap();
    std::fs::write(here.join("bad.toml"), "id = 'id'\nid = 'x'\n").unwrap();
    let before = names(here);
    let plain = || draft(PLAIN);
    let mut wrong = vec![
        (arguments(here, "none.csv", plain()), "none.csv: No such file"),
        (arguments(here, "bad.csv", plain()), "bad.csv: none of its 1 lines can be read; line 2: amount `x`"),
        (arguments(here, "ok.csv", Draft::default()), "--id is missing"),
        (
            arguments(here, "ok.csv", Draft { id: Some("ID".to_owned()), ..plain() }),
            "ok.csv: line 1 has no column `ID`",
        ),
    ];
    let mut backwards = arguments(here, "ok.csv", plain());
    backwards.from = "2026-12-03".parse().ok();
    wrong.push((backwards, "ok.csv: --from 2026-12-03 is after --to 2026-12-02"));
    let mut itself = arguments(here, "ok.csv", plain());
    itself.csv = Some(here.join("ok.csv"));
    wrong.push((itself, "ok.csv is there already, or is asked for twice: name another file, or delete it"));
    let mut twice = arguments(here, "ok.csv", plain());
    twice.html.clone_from(&twice.csv);
    wrong.push((twice, "differences.csv is there already, or is asked for twice: name another file, or delete it"));
    let mut profile = arguments(here, "ok.csv", plain());
    profile.profile = Some(here.join("bad.toml"));
    wrong.push((profile, "bad.toml: line 2: duplicate key"));
    let mut nowhere = arguments(here, "ok.csv", plain());
    nowhere.html = Some(PathBuf::from("/nowhere/page.html"));
    wrong.push((nowhere, "/nowhere/page.html: "));
    for (arguments, expected) in wrong {
        let error = run(arguments, "").unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        assert_eq!(names(here), before, "{error}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An entry of one of a few conversations, at any time in and around three days.
fn any_entries() -> impl Strategy<Value = Vec<Ours>> {
    let entry = (0u8..12, any::<bool>(), 1i64..5, 0i64..(5 * 24 * 60), 0u8..2, any::<bool>()).prop_map(
        |(id, reversal, coins, minute, user, dollars)| {
            let coins = if reversal { -coins } else { coins };
            Ours {
                id: format!("{id:03}"),
                kind: if reversal { Kind::Reversal } else { Kind::Credit },
                user: user.to_string(),
                coins: amount(&coins.to_string()),
                payout_usd: dollars.then(|| amount(&format!("{coins}.5").replace("0.5", "0.05"))),
                received_at: "2026-11-01T00:00:00Z".parse::<Timestamp>().unwrap()
                    + jiff::SignedDuration::from_mins(minute),
            }
        },
    );
    proptest::collection::vec(entry, 0..20).prop_map(|mut entries| {
        entries.sort_by(|one, other| {
            (&one.id, one.kind == Kind::Reversal).cmp(&(&other.id, other.kind == Kind::Reversal))
        });
        entries.dedup_by(|one, other| one.id == other.id && one.kind == other.kind);
        entries
    })
}

/// A statement of lines that may be about the same conversions.
fn any_lines() -> impl Strategy<Value = Vec<String>> {
    let line = (
        0u8..12,
        -4i64..5,
        prop_oneof![Just("ok"), Just("back"), Just("wait"), Just("what")],
        1u8..5,
        0u8..2,
        any::<bool>(),
    );
    let line = line.prop_map(|(id, coins, status, day, user, zeros)| {
        let id = if zeros { format!("{id:03}") } else { id.to_string() };
        format!("{id},{coins},{status},2026-11-0{day} 12:00:00,{user}")
    });
    proptest::collection::vec(line, 1..20)
}

fn any_profile() -> impl Strategy<Value = String> {
    let reversals = prop_oneof![Just("negative"), Just("line"), Just("state")];
    (reversals, prop_oneof![Just("coins"), Just("usd")], any::<bool>()).prop_map(|(reversals, unit, user)| {
        let user = if user { "user = 'user'\n" } else { "" };
        format!(
            "id = 'id'\namount = 'amount'\ntime = 'time'\nunit = '{unit}'\nreversals = '{reversals}'\n{user}\
             status = 'status'\ncredit = ['ok']\nreversal = ['back']\nother = ['wait']"
        )
    })
}

fn file(lines: &[String]) -> Vec<u8> {
    format!("id,amount,status,time,user\n{}\n", lines.join("\n")).into_bytes()
}

/// Everything of a result but the numbers of lines.
fn without_numbers(report: &mut Report<Memory>) -> (String, Vec<String>) {
    let mut rest: Vec<_> = findings(report)
        .into_iter()
        .map(|mut finding| {
            match &mut finding {
                Finding::Conversion { theirs: Some(side), .. } => side.lines.clear(),
                Finding::Conversion { theirs: None, .. } => {}
                Finding::Unreadable { line, .. } | Finding::Totals { line, .. } => *line = 0,
            }
            format!("{finding:?}")
        })
        .collect();
    rest.sort();
    (format!("{:?} {:?}", report.summary.categories, report.summary.lines), rest)
}

proptest! {
    #[test]
    fn each_sides_categories_add_up_to_what_it_gave_and_no_line_vanishes(ours in any_entries(), lines in any_lines(), profile in any_profile()) {
        let Ok(mut report) = compare(&profile, &file(&lines), &ours) else { return Ok(()) };
        prop_assert!(report.summary.adds_up(), "{:?}", report.summary);
        prop_assert_eq!(report.summary.lines.all, u64::try_from(lines.len()).unwrap());
        prop_assert_eq!(report.summary.given.ours.count, u64::try_from(ours.len()).unwrap());
        // What is counted as a finding is listed, each line at most once.
        let mut listed = std::collections::BTreeSet::new();
        let mut unreadable = 0;
        for finding in findings(&mut report) {
            match finding {
                Finding::Conversion { theirs, category, .. } => {
                    prop_assert!(category.is_listed());
                    for line in theirs.map(|side| side.lines).unwrap_or_default() {
                        prop_assert!(listed.insert(line), "line {} twice", line);
                    }
                }
                Finding::Unreadable { .. } => unreadable += 1,
                Finding::Totals { .. } => {}
            }
        }
        prop_assert_eq!(unreadable, report.summary.lines.unreadable);
        let matched = report.summary.of(Category::Matched).theirs.count;
        prop_assert_eq!(u64::try_from(listed.len()).unwrap() + matched, report.summary.lines.compared);
    }

    #[test]
    fn the_order_of_a_statement_changes_nothing(ours in any_entries(), lines in any_lines(), profile in any_profile(), turn in 0usize..20) {
        let mut turned = lines.clone();
        turned.reverse();
        turned.rotate_left(turn % lines.len());
        let results = [lines, turned].map(|lines| compare(&profile, &file(&lines), &ours));
        let [Ok(mut one), Ok(mut other)] = results else { return Ok(()) };
        prop_assert_eq!(without_numbers(&mut one), without_numbers(&mut other));
    }

    #[test]
    fn a_statement_that_is_made_from_our_entries_matches(ours in any_entries(), turn in 0usize..20, separator in prop_oneof![Just(','), Just(';'), Just('\t')]) {
        // Of a reversal alone nobody knows the credit; its statement is that of an earlier month.
        let mut lines: Vec<_> = ours
            .iter()
            .map(|entry| format!("{}{separator}{}{separator}{}{separator}{}", entry.id, entry.coins, entry.received_at, entry.user))
            .collect();
        prop_assume!(!lines.is_empty());
        let turned = turn % lines.len();
        lines.rotate_left(turned);
        let header = ["id", "amount", "time", "user"].join(&separator.to_string());
        let statement = format!("\u{feff}{header}\r\n{}\r\n", lines.join("\r\n"));
        let mut report = compare(&format!("{PLAIN}user = 'user'"), statement.as_bytes(), &ours).unwrap();
        prop_assert!(report.summary.is_clean(), "{}", result(&mut report));
        prop_assert_eq!(report.summary.given.ours.amount, report.summary.given.theirs.amount);
        prop_assert_eq!(report.summary.of(Category::Matched).theirs.count, u64::try_from(lines.len()).unwrap());
    }

    #[test]
    fn any_bytes_are_a_statement_or_refused_without_panic(
        head in prop_oneof![Just(&b"id,amount,time\n"[..]), Just(&b"\xff\xfei\0d\0"[..]), Just(&b""[..])],
        bytes in proptest::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'1'), Just(b'-'), any::<u8>()], 0..300),
        profile in any_profile(),
    ) {
        let statement = [head, &bytes[..]].concat();
        for profile in [PLAIN, &profile, "id = '#1'\namount = '#2'\nunit = 'usd-cents'\nheader = 0\nencoding = 'utf-16le'"] {
            match compare(profile, &statement, &entries("1 credit 1 1 1 2026-11-02T10:00:00Z")) {
                Ok(mut report) => {
                    prop_assert!(report.summary.adds_up());
                    show::page(&mut report, HEADING, &mut Vec::new()).unwrap();
                    show::csv(&mut report, &mut Vec::new()).unwrap();
                }
                Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
            }
        }
    }
}
