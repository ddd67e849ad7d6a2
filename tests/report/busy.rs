//! Writes the report of a busy month, with texts that want out of their place: `cargo run --example busy_month -- FILE`.
//!
//! What `tests/report/look.py` opens in a browser. The same month every time; nothing of it is real.

use std::process::ExitCode;

use fastrand::Rng;
use jiff::civil::Date;
use postback::books::{Books, Day, Row};
use postback::id::{Currency, Network, TransId, UserId};
use postback::ledger::{About, Case, CaseKind, CaseRow, Hold, Status};
use postback::money::Amount;
use postback::report::{Held, Month};
use postback::terminal;

/// Names that strangers could send; `look.py` looks for each of them as a text, and for what they would do.
const HOSTILE: [&str; 9] = [
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\"><svg onload=document.title='taken'>",
    "</td></table></section></main>",
    "</style><style>*{display:none}",
    "javascript:document.title='taken'",
    "\u{202e}drawkcab\u{202c} <b>bold</b>",
    "&lt;i&gt; &amp; 100% 'quoted' \u{7}bell",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
];

const NETWORKS: [(&str, u32); 9] = [
    ("alpha", 900),
    ("bravo", 520),
    ("charlie", 310),
    ("delta-long-network-name", 120),
    ("echo", 90),
    ("foxtrot", 45),
    ("golf", 12),
    ("hotel", 3),
    ("india", 1),
];

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else { return terminal::fail("name the file to write") };
    match std::fs::write(&file, page()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => terminal::fail(&format!("cannot write {file}: {problem}")),
    }
}

fn page() -> String {
    let mut random = Rng::with_seed(11);
    let mut books = Books::default();
    let mut holds = Held::default();
    let mut cases = Vec::new();
    for (network, most) in NETWORKS {
        for day in 1..=30 {
            // Weekends are busy, and one network falls silent in the middle of the month.
            let weekend = if matches!(day % 7, 0 | 1) { 2 } else { 1 };
            let silent = network == "charlie" && (12..19).contains(&day);
            let credits = if silent { 0 } else { random.u32(most / 3..=most) * weekend / 2 };
            for number in 0..credits {
                let id = format!("{network}/{day}-{number}");
                let cents = random.u32(50..60_000);
                add(&mut books, &mut random, &id, Status::Credit, cents, day);
                if random.u32(0..100) < 4 {
                    add(&mut books, &mut random, &id, Status::Reversal, cents, day);
                }
                if random.u32(0..400) == 0 {
                    let release = random.bool().then(|| "2026-12-04T09:30:00Z".parse().unwrap());
                    holds.add(&hold(&id, cents, release)).unwrap();
                    cases.push(case(&id, cents, &mut random));
                }
            }
        }
    }
    let month = Month {
        first: Date::constant(2026, 11, 1),
        last: Date::constant(2026, 11, 30),
        over: true,
        made_at: "2026-12-01T08:15:00Z".parse().unwrap(),
        books: &books,
        holds: &holds,
        cases: &cases,
        unreadable_cases: 0,
    };
    month.page().expect("sums in range")
}

fn coins(cents: u32) -> Amount {
    Amount::stored(&format!("{}.{:02}", cents / 100, cents % 100)).unwrap()
}

fn add(books: &mut Books, random: &mut Rng, id: &str, status: Status, cents: u32, day: i8) {
    let amount = coins(cents);
    let offer = random.usize(0..40);
    let (network, _) = id.split_once('/').unwrap();
    let row = Row {
        trans_id: id.to_owned(),
        status: status.as_str().to_owned(),
        user: UserId::stored(&format!("u{}", random.u32(0..4000))).unwrap(),
        currency: Currency::new("coins").unwrap(),
        amount: if status == Status::Credit { amount } else { amount.negated() },
        held: Amount::ZERO,
        release_at: None,
        absorbed: Amount::ZERO,
        received_at: None,
        day: Some(Day { network: Network::new(network).unwrap(), date: Date::new(2026, 11, day).unwrap() }),
        void: false,
        user_received: None,
        amount_received: None,
        payout_usd: (status == Status::Credit).then(|| coins(cents / 100)),
        offer_id: Some(offer.to_string()),
        offer_name: Some(HOSTILE.get(offer).map_or_else(|| format!("Reach level {offer}"), |name| (*name).to_owned())),
        goal_id: None,
        preset: None,
        source_ip: None,
        fingerprint: None,
        by: None,
        reason: None,
        operation: None,
    };
    books.add(Ok(row)).unwrap();
}

fn hold(id: &str, cents: u32, release_at: Option<jiff::Timestamp>) -> Hold {
    Hold {
        trans_id: TransId::new(id).unwrap(),
        user: UserId::new("u1").unwrap(),
        currency: Currency::new("coins").unwrap(),
        amount: coins(cents),
        release_at,
    }
}

fn case(id: &str, cents: u32, random: &mut Rng) -> CaseRow {
    let kinds = [CaseKind::Overdrawn, CaseKind::LateCredit, CaseKind::OverCap, CaseKind::ReversalWithoutCredit];
    let case = Case {
        kind: kinds[random.usize(0..kinds.len())],
        about: About::Entry {
            trans_id: TransId::new(id).unwrap(),
            status: Status::Credit,
            user: UserId::new("u1").unwrap(),
            currency: Currency::new("coins").unwrap(),
            amount: coins(cents),
        },
        detail: format!("what the network sent does not fit: {}", HOSTILE[random.usize(0..HOSTILE.len())]),
        opened_at: "2026-11-20T10:00:00Z".parse().unwrap(),
    };
    CaseRow { case_id: case.id(), case, closed: None }
}
