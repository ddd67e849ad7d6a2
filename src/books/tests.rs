//! Sums and differences, by property where there is one.

use proptest::prelude::*;

use super::*;

fn amount(text: &str) -> Amount {
    Amount::stored(text).unwrap()
}

/// An entry of a network's day in November 2026.
fn row(id: &str, status: &str, user: &str, coins: &str, held: &str, day: i8) -> Row {
    Row {
        trans_id: id.to_owned(),
        status: status.to_owned(),
        user: UserId::stored(user).unwrap(),
        currency: Currency::new("coins").unwrap(),
        amount: amount(coins),
        held: amount(held),
        release_at: None,
        absorbed: Amount::ZERO,
        received_at: Some(format!("2026-11-{day:02}T12:00:00.000Z")),
        day: Some(Day {
            network: Network::new(id.split('/').next().unwrap()).unwrap(),
            date: Date::new(2026, 11, day).unwrap(),
        }),
        void: false,
        user_received: None,
        amount_received: None,
        payout_usd: None,
        offer_id: None,
        offer_name: None,
        goal_id: None,
        preset: None,
        source_ip: None,
        fingerprint: None,
        by: None,
        reason: None,
        operation: None,
    }
}

fn stored(user: &str, available: &str, held: &str) -> Stored {
    Stored {
        user: UserId::stored(user).unwrap(),
        currency: Currency::new("coins").unwrap(),
        account: Account { available: amount(available), held: amount(held), closed: false },
    }
}

fn hold(id: &str, user: &str, coins: &str) -> Hold {
    Hold {
        trans_id: TransId::new(id).unwrap(),
        user: UserId::stored(user).unwrap(),
        currency: Currency::new("coins").unwrap(),
        amount: amount(coins),
        release_at: None,
    }
}

#[test]
fn every_kind_of_entry_is_counted_once_and_where_it_belongs() {
    let mut sums = Sums::default();
    let mut void = row("net/3", "credit", "u", "0", "0", 1);
    void.void = true;
    let mut paid = row("net/1", "credit", "u", "10.5", "0", 1);
    paid.payout_usd = Some(amount("0.7"));
    let mut absorbing = row("net/1", "reversal", "u", "-4", "0", 2);
    absorbing.absorbed = amount("6.5");
    for row in [
        paid,
        row("net/2", "credit", "u", "20", "20", 1),
        void,
        absorbing,
        row("net/2", "release", "u", "0", "-20", 2),
        row("net/4", "clear", "suspense/net", "-5", "0", 2),
        row("net/4", "assign", "u", "5", "0", 2),
        row("net/1", "adjust_shortfall", "u", "1", "0", 2),
        row("app/1", "spend", "u", "-3", "0", 2),
    ] {
        sums.add(&row).unwrap();
    }
    let total = |count, text| Total { count, amount: amount(text) };
    assert_eq!(
        sums,
        Sums {
            credits: total(2, "30.5"),
            voids: 1,
            reversals: total(1, "-4"),
            held: total(1, "20"),
            released: total(1, "20"),
            absorbed: total(1, "6.5"),
            assignments: total(2, "0"),
            adjustments: total(1, "1"),
            other: total(1, "-3"),
            net: total(9, "24.5"),
            payout_usd: total(1, "0.7"),
            ..Sums::default()
        }
    );
    assert_eq!(sums.reversed_permille(), Some(500));
    assert_eq!(Sums::default().reversed_permille(), None);
}

/// What a wallet was asked for and answered: `counterpart` is what it takes back, or what took it back.
fn asked(id: &str, kind: &str, coins: &str, answer: &str, counterpart: Option<&str>) -> Row {
    let operation = Operation {
        kind: kind.to_owned(),
        counterpart: counterpart.map(str::to_owned),
        answer_status: Some(answer.to_owned()),
        ..Operation::default()
    };
    Row { operation: Some(operation), ..row(id, "operation", "u", coins, "0", 1) }
}

/// The mark on an operation that `rollback` took it back.
fn mark(id: &str, rollback: &str) -> Row {
    Row { status: "rollback".to_owned(), ..asked(id, "bet_rollback", "0", "200", Some(rollback)) }
}

#[test]
fn what_a_wallet_moved_is_counted_by_what_it_was_asked_for_and_what_it_refused_is_not() {
    let mut sums = Sums::default();
    for row in [
        asked("net/b1", "bet", "-10", "200", None),
        asked("net/b2", "bet", "0", "402", None),
        asked("net/b3", "bet", "0", "200", None),
        asked("net/w1", "win", "25", "200", None),
        asked("net/w2", "win", "0", "409", None),
        asked("net/r1", "bet_rollback", "10", "200", Some("net/b1")),
        mark("net/b1", "net/r1"),
        asked("net/r2", "bet_rollback", "0", "200", Some("net/b1")),
        asked("net/r3", "win_rollback", "-25", "200", Some("net/w1")),
        asked("net/f1", "round_finish", "0", "200", None),
        row("cashier/p1", "open", "u", "0", "0", 1),
        row("cashier/p2", "deposit", "u", "50", "0", 1),
        row("cashier/p3", "withdrawal", "u", "-5", "0", 1),
        row("cashier/p4", "close", "u", "0", "0", 1),
        asked("net/x", "something_new", "1", "200", None),
    ] {
        sums.add(&row).unwrap();
    }
    let total = |count, text| Total { count, amount: amount(text) };
    assert_eq!(
        sums,
        Sums {
            bets: total(2, "-10"),
            wins: total(1, "25"),
            bet_rollbacks: total(1, "10"),
            win_rollbacks: total(1, "-25"),
            deposits: total(1, "50"),
            withdrawals: total(1, "-5"),
            other: total(1, "1"),
            net: total(15, "46"),
            ..Sums::default()
        }
    );
}

#[test]
fn a_rollback_and_its_mark_agree_in_either_order_and_one_alone_is_a_difference() {
    let halves = |rows: &[Row]| {
        let mut expected = Expected::default();
        rows.iter().for_each(|row| expected.add(row).unwrap());
        expected.without_other_half()
    };
    let moved = || asked("net/r1", "bet_rollback", "10", "200", Some("net/b1"));
    let second = || asked("net/r2", "bet_rollback", "0", "200", Some("net/b1"));
    assert_eq!(halves(&[moved(), second(), mark("net/b1", "net/r1")]), []);
    assert_eq!(halves(&[mark("net/b1", "net/r1"), moved()]), []);
    let alone = |wrong| Difference::Rollback { original: "net/b1".into(), rollback: "net/r1".into(), wrong };
    assert_eq!(halves(&[moved()]), [alone(RollbackWrong::NoMark)]);
    assert_eq!(halves(&[mark("net/b1", "net/r1")]), [alone(RollbackWrong::NoRollback)]);
    assert_eq!(halves(&[moved(), mark("net/b1", "net/r2")]).len(), 2, "the mark names another one");
}

proptest! {
    /// However rollbacks and marks come, only those without their other half are left.
    #[test]
    fn every_rollback_finds_its_mark_in_any_order(
        pairs in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..20),
        seed in any::<u64>(),
    ) {
        let mut rows = Vec::new();
        for (number, (rolled_back, marked)) in pairs.iter().enumerate() {
            let (original, rollback) = (format!("net/b{number}"), format!("net/r{number}"));
            rows.extend(rolled_back.then(|| asked(&rollback, "bet_rollback", "1", "200", Some(&original))));
            rows.extend(marked.then(|| mark(&original, &rollback)));
        }
        fastrand::Rng::with_seed(seed).shuffle(&mut rows);
        let mut expected = Expected::default();
        rows.iter().for_each(|row| expected.add(row).unwrap());
        let alone = pairs.iter().filter(|(rolled_back, marked)| rolled_back != marked).count();
        prop_assert_eq!(expected.without_other_half().len(), alone);
    }
}

#[test]
fn an_account_that_was_closed_is_no_difference_in_money() {
    let closed = |available: &str| Account { closed: true, ..stored("u", available, "0").account };
    assert_eq!(account_differs(Some(closed("0")), Some(Account::default())), None);
    let wrong = account_differs(Some(closed("3")), Some(Account::default()));
    assert!(matches!(wrong, Some(AccountWrong::Money { .. })), "{wrong:?}");
}

#[test]
fn two_currencies_are_never_added_and_a_row_that_does_not_read_is_told() {
    let mut books = Books::default();
    let mut gems = row("net/2", "credit", "u", "3", "0", 1);
    gems.currency = Currency::new("gems").unwrap();
    let unreadable = Unreadable { row: "trans_id net/3".into(), problem: "no amount".into() };
    for row in [Ok(row("net/1", "credit", "u", "10", "0", 1)), Ok(gems), Err(unreadable.clone())] {
        books.add(row).unwrap();
    }
    let net: Vec<_> = books.lines.iter().map(|(line, sums)| (line.currency.as_str(), sums.net.amount)).collect();
    assert_eq!(net, [("coins", amount("10")), ("gems", amount("3"))]);
    assert_eq!(books.unreadable, [unreadable]);
}

#[test]
fn a_user_of_two_networks_is_one_user_and_suspense_is_none() {
    let mut books = Books::default();
    for (id, user) in [("a/1", "u"), ("a/2", "u"), ("b/1", "u"), ("b/2", "v"), ("b/3", "suspense/b")] {
        books.add(Ok(row(id, "credit", user, "1", "0", 1))).unwrap();
    }
    let users: Vec<_> = books.lines.keys().map(|line| books.users(line)).collect();
    assert_eq!(users, [1, 2]);
    assert_eq!(books.users_of("coins"), 2);
}

#[test]
fn the_top_offers_are_those_with_the_most_coins_in_an_order_that_stays() {
    let mut books = Books::default();
    for (id, offer, coins) in
        [("a/1", "quest", "5"), ("a/2", "quest", "6"), ("a/3", "poll", "10"), ("b/1", "poll", "10")]
    {
        let offer_name = Some(offer.to_owned());
        books.add(Ok(Row { offer_name, ..row(id, "credit", "u", coins, "0", 1) })).unwrap();
    }
    let top: Vec<_> =
        books.top_offers(2).iter().map(|(line, offer, _)| format!("{} {}", line.network, offer.name)).collect();
    assert_eq!(top, ["a quest", "a poll"]);
}

#[test]
fn a_sum_out_of_range_is_said_and_not_wrapped() {
    let mut sums = Sums::default();
    let huge = row("net/1", "credit", "u", &"9".repeat(20), "0", 1);
    sums.add(&huge).unwrap();
    assert_eq!(sums.add(&huge), Err(OutOfRange));
}

#[test]
fn accounts_that_differ_are_told_with_both_sides_and_how_bad_it_is() {
    let mut expected = Expected::default();
    for row in [
        row("net/1", "credit", "right", "10", "0", 1),
        row("net/2", "credit", "wrong", "10", "4", 1),
        row("net/3", "credit", "missing", "7", "0", 1),
        row("net/4", "credit", "nothing", "0", "0", 1),
        row("net/5", "release", "below", "0", "-2", 1),
    ] {
        expected.add(&row).unwrap();
    }
    let mut compare = |account: &Stored| {
        expected
            .account(account)
            .map(|differs| format!("{} {}: {differs}", differs.severity().as_str(), differs.subject()))
    };
    assert_eq!(compare(&stored("right", "10", "0")), None);
    assert_eq!(
        compare(&stored("wrong", "6", "5")).as_deref(),
        Some("error account wrong coins: stored: available 6, held 5; summed entries: available 6, held 4")
    );
    assert_eq!(
        compare(&stored("below", "2", "-2")).as_deref(),
        Some(
            "error account below coins: stored and summed entries: available 2, held -2; more left the hold than came into it"
        )
    );
    assert_eq!(
        compare(&stored("stray", "1", "0")).as_deref(),
        Some("error account stray coins: stored: available 1, held 0; no entries")
    );
    assert_eq!(
        compare(&stored("empty", "0", "0")).as_deref(),
        Some("warning account empty coins: an account with nothing in it, and no entry")
    );
    let left: Vec<_> = expected.without_account().iter().map(ToString::to_string).collect();
    assert_eq!(left, ["no account; summed entries: available 7, held 0"]);
}

#[test]
fn holds_that_differ_are_told() {
    let mut expected = Expected::default();
    let mut due = row("net/5", "credit", "u", "9", "9", 1);
    due.release_at = Some("2026-12-01T00:00:00.000Z".into());
    for row in [
        row("net/1", "credit", "u", "10", "10", 1),
        row("net/2", "credit", "u", "10", "10", 1),
        row("net/3", "release", "u", "0", "-10", 2),
        row("net/3", "credit", "u", "10", "10", 1),
        row("net/4", "credit", "u", "10", "10", 1),
        due,
    ] {
        expected.add(&row).unwrap();
    }
    let mut compare = |row: &Hold| expected.hold(row).map(|differs| differs.to_string());
    assert_eq!(compare(&hold("net/1", "u", "10")), None);
    assert_eq!(
        compare(&hold("net/2", "u", "11")).as_deref(),
        Some("the queue holds 11 coins of user u; the entries hold 10 coins of user u")
    );
    assert_eq!(
        compare(&hold("net/3", "u", "10")).as_deref(),
        Some("the queue holds 10 coins of user u; no entry holds them")
    );
    let due = expected.hold(&hold("net/5", "u", "9")).unwrap();
    assert_eq!(due.severity(), Severity::Warning);
    assert_eq!(
        due.to_string(),
        "the queue and the credit say other times of release; the credit says 2026-12-01T00:00:00Z"
    );
    let left: Vec<_> = expected.without_hold().iter().map(Difference::subject).collect();
    assert_eq!(left, ["hold net/4"]);
}

/// Entries of a few users, networks and days.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let statuses = ["credit", "reversal", "release", "assign", "clear", "adjust_overdrawn", "spend"];
    let one = (0usize..statuses.len(), 0u8..3, 0u8..3, -5000i64..5000, -50i64..50, 1i8..=30, 0u32..2000);
    let row = one.prop_map(move |(status, network, user, cents, held, day, id)| {
        let text =
            |cents: i64| format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
        row(&format!("net{network}/{id}"), statuses[status], &format!("u{user}"), &text(cents), &text(held), day)
    });
    proptest::collection::vec(row, 0..60)
}

proptest! {
    #[test]
    fn a_month_is_the_sum_of_its_days_and_its_net_is_the_sum_of_all_amounts(rows in rows()) {
        let mut books = Books::default();
        let mut all = Amount::ZERO;
        for row in rows {
            all = all.checked_add(row.amount).unwrap();
            books.add(Ok(row)).unwrap();
        }
        let mut days: BTreeMap<Line, Sums> = BTreeMap::new();
        for ((_, line), sums) in &books.days {
            days.entry(line.clone()).or_default().merge(sums).unwrap();
        }
        prop_assert_eq!(&days, &books.lines);
        let totals = books.totals().unwrap();
        prop_assert_eq!(totals.values().map(|sums| sums.net.amount).next().unwrap_or_default(), all);
        for sums in books.lines.values() {
            let parts = [sums.credits, sums.reversals, sums.assignments, sums.adjustments, sums.other];
            // A release moves nothing by itself; here it is given an amount, which the net has too.
            let known = parts.iter().fold(Amount::ZERO, |sum, part| sum.checked_add(part.amount).unwrap());
            let releases = sums.net.count - sums.voids - parts.iter().map(|part| part.count).sum::<u64>();
            prop_assert!(releases > 0 || known == sums.net.amount);
        }
    }

    #[test]
    fn accounts_made_of_their_entries_never_differ_and_any_other_one_does(rows in rows(), off in 1i64..9) {
        let mut expected = Expected::default();
        for row in &rows {
            expected.add(row).unwrap();
        }
        let accounts: Vec<_> = expected.accounts.iter().map(|((user, currency), account)| {
            Stored { user: user.clone(), currency: currency.clone(), account: *account }
        }).collect();
        for mut account in accounts {
            let parts = rows.iter().filter(|row| row.user == account.user);
            let sum = parts.fold(Amount::ZERO, |sum, row| sum.checked_add(row.amount).unwrap());
            prop_assert_eq!(account.account.available.checked_add(account.account.held), Some(sum));
            account.account.available = account.account.available.checked_add(amount(&off.to_string())).unwrap();
            let differs = expected.account(&account);
            prop_assert_eq!(differs.map(|differs| differs.severity()), Some(Severity::Error));
        }
        prop_assert!(expected.without_account().is_empty());
    }
}
