//! A statement of a million lines against as many entries: `cargo bench --bench reconcile --features operator --profile release`.
//!
//! Both sides are made from one seed, the entries while they are given, so that what is measured is the comparison and not
//! the lists. One in a hundred conversions differs. Prints the time, lines a second and the peak of the process's memory,
//! which must not grow with the lines: `POSTBACK_BENCH_LINES=100000` compares fewer.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use postback::money::Amount;
use postback::operator::reconcile::{Job, ReconcileArguments};
use postback::reconcile::profile::Draft;
use postback::reconcile::{Kind, Ours};

const SEED: u64 = 0x00C0_1155;

/// Which conversions differ, and which are reversed.
const DIFFERS: u64 = 100;
const REVERSED: u64 = 20;

fn main() {
    let lines: u64 =
        std::env::var("POSTBACK_BENCH_LINES").ok().map_or(1_000_000, |lines| lines.parse().expect("a number of lines"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("statement.csv");
    write_statement(&file, lines);

    let before = peak_kilobytes();
    let began = Instant::now();
    let mut job = Job::open(arguments(folder.path(), &file)).expect("the statement opens");
    for number in shuffled(lines) {
        job.ours(&ours(number)).expect("an entry is taken");
    }
    let mut output = Vec::new();
    let clean = job.finish(false, &mut output).expect("a result");
    let took = began.elapsed();
    assert!(!clean, "one in {DIFFERS} differs");

    print!("{}", String::from_utf8_lossy(&output).lines().take(10).map(|line| format!("{line}\n")).collect::<String>());
    let per_second = u128::from(lines) * 1000 / took.as_millis().max(1);
    println!("\n{lines} lines and as many entries: {} ms, {per_second} lines/s", took.as_millis());
    println!("peak memory {} kB, of which {before} kB before the comparison", peak_kilobytes());
}

fn arguments(folder: &Path, statement: &Path) -> ReconcileArguments {
    let draft =
        Draft::from_toml("id = 'Transaction ID'\namount = 'Coins'\nunit = 'coins'\ntime = 'Date'\nuser = 'User'\n");
    ReconcileArguments {
        network: "standard".to_owned(),
        statement: statement.to_owned(),
        draft: draft.expect("a profile"),
        profile: None,
        save_profile: None,
        from: None,
        to: None,
        csv: Some(folder.join("differences.csv")),
        html: Some(folder.join("differences.html")),
    }
}

/// The numbers below a limit, each once, in an order that is neither side's: steps of a prime that does not divide it.
fn shuffled(lines: u64) -> impl Iterator<Item = u64> {
    const STEP: u64 = 1_000_003;
    assert!(!lines.is_multiple_of(STEP), "each number comes once");
    (0..lines).map(move |number| number * STEP % lines)
}

/// What a number stands for: an id, a user, coins in hundredths and a moment of one month.
fn conversion(number: u64) -> (String, u64, u64, Timestamp) {
    // Two neighbours in twenty are the credit and the reversal of one conversion.
    let conversion = if number % REVERSED == 1 { number - 1 } else { number };
    let mut random = fastrand::Rng::with_seed(SEED ^ conversion);
    let id = format!("{:016x}-{conversion}", random.u64(..));
    let begin: Timestamp = "2026-11-01T00:00:00Z".parse().expect("a time");
    let seconds = i64::try_from(random.u64(..30 * 24 * 3600)).expect("a month has few seconds");
    (id, random.u64(..100_000), random.u64(1..100_000), begin + SignedDuration::from_secs(seconds))
}

fn coins(number: u64, hundredths: u64) -> Amount {
    let sign = if number % REVERSED == 1 { "-" } else { "" };
    Amount::stored(&format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)).expect("an amount")
}

fn ours(number: u64) -> Ours {
    let (id, user, hundredths, received_at) = conversion(number);
    let coins = coins(number, hundredths);
    let kind = if number % REVERSED == 1 { Kind::Reversal } else { Kind::Credit };
    Ours { id, kind, user: user.to_string(), coins, payout_usd: None, received_at }
}

fn write_statement(file: &Path, lines: u64) {
    let mut output = BufWriter::new(std::fs::File::create(file).expect("a file"));
    writeln!(output, "Date,Transaction ID,Offer,User,Coins").expect("a header");
    for number in 0..lines {
        let (id, user, hundredths, time) = conversion(number);
        let other = if number % DIFFERS == DIFFERS / 2 { 1 } else { 0 };
        let coins = coins(number, hundredths + other);
        writeln!(output, "{time},{id},\"An offer, with a name\",{user},{coins}").expect("a line");
    }
    output.flush().expect("the statement is written");
}

/// The most memory that this process ever held.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    peak.unwrap_or(0)
}
