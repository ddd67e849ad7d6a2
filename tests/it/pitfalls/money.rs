//! What is paid and taken back: amounts, classes, reversals, ids, and what the networks hear of it.

use std::path::Path;

use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use postback::config::VARIABLES;
use postback::id::Network;
use postback::preset::{Catalogue, Class};

use super::*;
use crate::faults::Fault;
use crate::networks::{check_everything, names};

/// A survey of CPX Research with this amount.
fn survey(id: &str, amount: &str) -> Call {
    cpx(id, format!("amount={amount}&user_id=7&status=1&type=complete"))
}

/// Monlix: the secret itself stands in the URL.
fn monlix(id: &str, rest: &str) -> Call {
    get("monlix", format!("trans_id={id}&{rest}&secret={SECRET}"))
}

/// AdGate: a token of ours stands in the URL.
fn adgate(id: &str, state: &str, payout: &str) -> Call {
    get("adgate", format!("user_id=7&trans_id={id}&amount=5&payout={payout}&{state}&token={SECRET}"))
}

/// Torox: offer and user are signed.
fn torox(id: &str, amount: &str) -> Call {
    get("torox", format!("oid=9&user_id=7&id={id}&amount={amount}&sig={}", md5(format!("9-7-{SECRET}"))))
}

/// ayeT, with a query that is already as it is signed.
fn ayet_sorted(query: &str) -> Call {
    ayet(query, query)
}

#[tokio::test]
async fn an_amount_is_a_plain_decimal_with_any_number_of_decimals_cut_toward_zero() {
    check_everything(async |world| {
        for (sent, coins) in [
            ("662.6500", "662.65"),
            ("0.50", "0.5"),
            ("25.0", "25"),
            ("00012.50", "12.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("12.349999999999999999", "12.34"),
            ("0.1", "0.1"),
            ("0.2", "0.2"),
            ("0.009", "0"),
            ("0", "0"),
            ("0.0000", "0"),
            ("-0.00", "0"),
            ("999999999999999.99", "999999999999999.99"),
        ] {
            assert_eq!(survey(sent, sent).told(world).await, "credited: 200 1", "{sent}");
            assert_eq!(survey(sent, sent).told(world).await, "duplicate: 200 1", "{sent}");
            let rows = world.entries().await;
            let row = rows.iter().find(|row| row["trans_id"] == format!("cpx/{sent}")).unwrap();
            assert_eq!((row["amount"].as_str(), row["amount_received"].as_str()), (coins, sent));
        }
        assert_eq!(world.balance("7").await, "1000000000000718.78");
    })
    .await;
}

#[tokio::test]
async fn an_amount_with_commas_an_exponent_a_sign_or_nothing_in_it_is_refused_by_name() {
    const NOT_PLAIN: &str = "400 amount: not a plain decimal number such as 12.50";
    check_everything(async |world| {
        for sent in [
            "1,000", "1,000.50", "1.000,50", "12,5", "1 000", "1_000", "1e3", "1E3", "1e-3", "%2B5", "+5", "%205",
            "5%20", "--5", "-", ".", "-.", "5.5.5", "0x10", "$5", "5 coins", "null", "None", "NaN", "Infinity",
            "%D9%A5", "five",
        ] {
            assert_eq!(survey("t1", sent).heard(world).await, NOT_PLAIN, "{sent}");
        }
        for (sent, expected) in [
            ("", "400 amount: missing"),
            ("-5", "400 amount: a negative credit"),
            ("-0.001", "400 amount: a negative credit"),
            ("1234567890123456", "400 amount: more than 15 digits before the point"),
            (&format!("0.{}", "1".repeat(63)), "400 amount: longer than 64 characters"),
        ] {
            assert_eq!(survey("t1", sent).heard(world).await, expected, "{sent}");
        }
        assert!(world.proxy.requests().is_empty());
    })
    .await;
}

/// A credit of 5 coins to user 7 and its reversal, as networks of every habit send them.
fn reversals() -> Vec<(Call, Call)> {
    let points = |rest| get("adtogame", format!("user_id=7&transaction_id=t1&{rest}"));
    let pubscale = |id: &str, rest: &str| {
        get("pubscale", format!("user_id=7&value=5&token={id}{rest}&signature={}", md5(format!("{SECRET}.7.5.{id}"))))
    };
    let personaly = |amount: &str| {
        let signature = md5(format!("7:local-publisher:{SECRET}"));
        get("personaly", format!("user_id=7&offer_id=9&amount={amount}&pub_signature={signature}"))
    };
    vec![
        // A negative amount with a status, which must not be negated once more.
        (wall("wannads", ["7", "t1", "5"], "status=credited"), wall("wannads", ["7", "t1", "-5"], "status=rejected")),
        (wall("wannads", ["7", "t2", "5"], "status=credited"), wall("wannads", ["7", "t2", "5"], "status=rejected")),
        (kiwiwall("7", "5", "trans_id=t1&status=1"), kiwiwall("7", "-5", "trans_id=t1&status=2")),
        (
            gemiad("7", "t1", "reward=5&payout=0.5&status=completed"),
            gemiad("7", "t1", "reward=-5&payout=-0.5&status=rejected"),
        ),
        (timewall("7", "t1", "currencyAmount=5&type=credit"), timewall("7", "t1", "currencyAmount=-5&type=chargeback")),
        // A positive amount with a status.
        (
            wall("wannads-migrated", ["7", "t1", "5"], "status=1"),
            wall("wannads-migrated", ["7", "t1", "5"], "status=2"),
        ),
        (wall("radientwall", ["7", "t1", "5"], "status=1"), wall("radientwall", ["7", "t1", "5"], "status=2")),
        (survey("t1", "5"), cpx("t1", "amount=5&user_id=7&status=2&type=complete")),
        (survey("t2", "5"), cpx("t2", "amount=5.0000&user_id=7&status=-2")),
        (monlix("t1", "user_id=7&amount=5&status=1"), monlix("t1", "user_id=7&amount=5&status=2")),
        (adgate("t1", "state=approved", "0.5"), adgate("t1", "state=rejected", "-0.5")),
        (pubscale("t1", ""), pubscale("t1", "&status=chargeback")),
        // Nothing but a negative number.
        (torox("t1", "5"), torox("t1", "-5")),
        (points("points=5&payout=0.5"), points("points=-5&payout=-0.5")),
        (points("points=5&payout=0.5").with("t1", "t2"), points("points=5&payout=-0.5").with("t1", "t2")),
        (personaly("5"), personaly("-5")),
    ]
}

#[tokio::test]
async fn a_reversal_takes_coins_whatever_sign_its_amount_has_and_once_however_often_it_comes() {
    check_everything(async |world| {
        for (credit, reversal) in reversals() {
            let network = &credit.path;
            assert_eq!(credit.sent(world).await.outcome, "credited", "{network}");
            assert_eq!(world.balance("7").await, "5", "{network}");
            assert_eq!(reversal.sent(world).await.outcome, "reversed", "{network} {}", reversal.query);
            assert_eq!(world.balance("7").await, "0", "{network}");
            for again in [&reversal, &credit, &reversal] {
                let handled = again.sent(world).await;
                assert_eq!((handled.outcome, handled.answer.status), ("duplicate", 200), "{network}");
            }
            assert_eq!(world.balance("7").await, "0", "{network}: a repeated reversal takes nothing more");
        }
        let entries = world.entries().await;
        assert_eq!(entries.len(), reversals().len() * 2, "a reversal with its credit's id is an entry of its own");
        for row in entries.iter().filter(|row| row["status"] == "reversal") {
            assert_eq!(row["amount"], "-5", "{row:?}");
            assert!(row.get("payout_usd").is_none_or(|payout| payout == "-0.5"), "{row:?}");
        }
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_reversal_names_its_credit_by_a_prefix_by_another_prefix_or_by_another_field() {
    let offer = |rest: &str| url_sha1("bitlabs", format!("user_id=7&{rest}"));
    let chargeback = |id: &str| ayet_sorted(&format!("amount=-5&is_chargeback=1&trans_id={id}&user_id=7"));
    let conversion = |id: &str| ayet_sorted(&format!("amount=5&is_chargeback=0&trans_id={id}&user_id=7"));
    let notik = |rest: &str| url_sha1("notik", format!("user_id=7&{rest}"));
    check_everything(async |world| {
        for (credit, reversal, id) in [
            (conversion("t1"), chargeback("r-t1"), "ayet/t1"),
            (conversion("r-t2"), chargeback("r-r-t2"), "ayet/r-t2"),
            (conversion("t3"), chargeback("t3"), "ayet/t3"),
            (
                offer("trans_id=o1&amount=5&type=COMPLETE&ref="),
                offer("trans_id=or1&amount=-5&type=RECONCILIATION"),
                "bitlabs/o1",
            ),
            (offer("trans_id=o2&amount=5&type=COMPLETE"), offer("trans_id=or9&amount=-5&ref=o2"), "bitlabs/o2"),
            (
                offer("trans_id=s3&amount=5&type=COMPLETE"),
                offer("trans_id=s3&amount=-5&type=RECONCILIATION&ref"),
                "bitlabs/s3",
            ),
            (
                offer("trans_id=s4&amount=5&type=COMPLETE"),
                offer("trans_id=x4&amount=-5&type=RECONCILIATION&ref=s4"),
                "bitlabs/s4",
            ),
            (notik("txn_id=n1&amount=5"), notik("txn_id=n2&amount=-5&rewarded_txn_id=n1"), "notik/n1"),
        ] {
            assert_eq!(credit.sent(world).await.outcome, "credited", "{id}");
            assert_eq!(reversal.sent(world).await.outcome, "reversed", "{id}");
            assert_eq!(reversal.sent(world).await.outcome, "duplicate", "{id}");
            let rows = world.entries().await;
            let statuses = rows.iter().filter(|row| row["trans_id"] == id).map(|row| row["status"].as_str());
            assert_eq!(statuses.collect::<Vec<_>>(), ["credit", "reversal"], "{id}");
            assert_eq!(world.balance("7").await, "0", "{id}");
        }
        for pointer in ["rewarded_txn_id=%zz", "rewarded_txn_id=a&rewarded_txn_id=b"] {
            let handled = notik(&format!("txn_id=n3&amount=-5&{pointer}")).sent(world).await;
            assert_eq!((handled.outcome, handled.answer.status), ("bad_parameters", 400), "{pointer}");
        }
        // A macro that was not replaced points nowhere: then the prefix counts, then the same id.
        for (credit, reversal) in [
            (notik("txn_id=n4&amount=5"), notik("txn_id=n4&amount=-5&rewarded_txn_id={rewarded_txn_id}")),
            (
                offer("trans_id=o5&amount=5&type=COMPLETE&ref=[%REF%]"),
                offer("trans_id=or5&amount=-5&type=RECONCILIATION&ref=[%REF%]"),
            ),
            (
                offer("trans_id=s6&amount=5&type=COMPLETE&ref=[%REF%]"),
                offer("trans_id=s6&amount=-5&type=RECONCILIATION&ref=[%REF%]"),
            ),
        ] {
            assert_eq!(credit.sent(world).await.outcome, "credited", "{}", credit.query);
            assert_eq!(reversal.sent(world).await.outcome, "reversed", "{}", reversal.query);
            assert_eq!(world.balance("7").await, "0", "{}", reversal.query);
        }
        assert!(world.case_ids().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn no_reversal_is_lost_for_its_amount_which_is_kept_as_it_was_sent() {
    let standard = |id: &str, rest: &str| {
        let query = format!("user_id=7&trans_id={id}&{rest}");
        get("standard", format!("{query}&signature={}", hmac_sha256(&query)))
    };
    let survey = |id: &str, rest: &str| cpx(id, format!("user_id=7&{}", rest.replace("currency_amount", "amount")));
    check_everything(async |world| {
        for (number, (sent, kept)) in [
            ("", ""),
            ("&currency_amount", ""),
            ("&currency_amount=", ""),
            ("&currency_amount={x}", ""),
            ("&currency_amount=5&currency_amount=5", ""),
            ("&currency_amount=pre-{x}", "pre-{x}"),
            ("&currency_amount=1,000", "1,000"),
            ("&currency_amount=1e3", "1e3"),
            ("&currency_amount=%zz", "%zz"),
            ("&currency_amount=%FF", "\u{fffd}"),
            ("&currency_amount=-5.0000", "-5.0000"),
        ]
        .into_iter()
        .enumerate()
        {
            let id = format!("t{number}");
            for (network, credit, reversal) in [
                ("standard", standard(&id, "status=1&currency_amount=5"), standard(&id, &format!("status=2{sent}"))),
                ("cpx", survey(&id, "status=1&type=complete&amount=5"), survey(&id, &format!("status=2{sent}"))),
            ] {
                assert_eq!(credit.sent(world).await.outcome, "credited", "{}", credit.query);
                let handled = reversal.sent(world).await;
                assert_eq!((handled.outcome, handled.answer.status), ("reversed", 200), "{}", reversal.query);
                let rows = world.entries().await;
                let named = |row: &&crate::world::Row| row["trans_id"] == format!("{network}/{id}");
                let row = rows.iter().filter(named).find(|row| row["status"] == "reversal").unwrap();
                let received = row.get("amount_received").map_or("", String::as_str);
                assert_eq!((row["amount"].as_str(), received), ("-5", kept), "{}", reversal.query);
            }
        }
        assert_eq!(world.balance("7").await, "0");
    })
    .await;
}

#[tokio::test]
async fn an_id_that_begins_like_a_reversals_is_none_by_itself() {
    let offer = |rest: &str| url_sha1("bitlabs", format!("user_id=7&{rest}"));
    check_everything(async |world| {
        for (call, expected) in [
            (offer("trans_id=orchid&amount=5&type=COMPLETE"), "credited: 200 OK"),
            (offer("trans_id=orchid&amount=5&type=COMPLETE"), "duplicate: 200 OK"),
            (
                offer("trans_id=orbit&amount=5"),
                "bad_parameters: 400 trans_id, type, amount: not a status of this network",
            ),
            (offer("trans_id=or1&amount=5&type=RECONCILIATION&ref=orchid"), "reversed: 200 OK"),
            (offer("trans_id=or2&amount=-5&type=COMPLETE"), "reversed_unseen: 200 OK"),
        ] {
            assert_eq!(call.told(world).await, expected, "{}", call.query);
        }
        assert_eq!(world.balance("7").await, "0");
    })
    .await;
}

#[tokio::test]
async fn a_reversal_whose_amount_differs_takes_what_was_credited() {
    check_everything(async |world| {
        let notik = |rest: &str| url_sha1("notik", format!("user_id=7&{rest}"));
        for (id, recomputed) in [("a", "-80"), ("b", "-120.75"), ("c", "-0.01"), ("d", "-100")] {
            assert_eq!(notik(&format!("txn_id={id}&amount=100")).told(world).await, "credited: 200 1");
            let reversal = format!("txn_id=r{id}&amount={recomputed}&rewarded_txn_id={id}");
            assert_eq!(notik(&reversal).told(world).await, "reversed: 200 1", "{recomputed}");
            assert_eq!(world.balance("7").await, "0", "{recomputed}");
        }
        let rows = world.entries().await;
        let row = rows.iter().find(|row| row["trans_id"] == "notik/b" && row["status"] == "reversal").unwrap();
        assert_eq!((row["amount"].as_str(), row["amount_received"].as_str()), ("-100", "-120.75"));
    })
    .await;
}

#[tokio::test]
async fn a_rejection_with_an_id_of_its_own_becomes_a_case_and_is_never_paid_afterwards() {
    check_everything(async |world| {
        let credit = wall("wannads", ["7", "t1", "5"], "status=credited");
        let rejection = wall("wannads", ["7", "t9", "-5"], "status=rejected");
        let late = wall("wannads", ["7", "t9", "5"], "status=credited");
        for (call, expected) in [
            (&credit, "credited: 200 OK"),
            (&rejection, "reversed_unseen: 200 OK"),
            (&rejection, "duplicate: 200 DUP"),
            (&late, "late_credit: 200 OK"),
            (&late, "duplicate: 200 DUP"),
        ] {
            assert_eq!(call.told(world).await, expected);
        }
        assert_eq!(world.balance("7").await, "5");
        assert_eq!(
            world.case_ids().await,
            ["late_credit/wannads/t9/credit", "reversal_without_credit/wannads/t9/reversal"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_reversal_of_spent_coins_goes_below_zero_and_the_books_still_balance() {
    check_everything(async |world| {
        kiwiwall("7", "5", "trans_id=t1&status=1").sent(world).await;
        world.spend("7", "4").await;
        assert_eq!(kiwiwall("7", "-5", "trans_id=t1&status=2").told(world).await, "reversed: 200 1");
        assert_eq!(world.balance("7").await, "-4", "a balance is not clamped at zero");
        assert_eq!(world.case_ids().await, ["overdrawn/kiwiwall/t1/reversal"]);
    })
    .await;
}

#[tokio::test]
async fn pending_then_approved_pays_once_and_a_pending_that_comes_late_changes_nothing() {
    let stateful = |state: &str| url_sha1("bitlabs-stateful", format!("user_id=7&trans_id=t1&amount=5&state={state}"));
    check_everything(async |world| {
        for (call, expected, balance) in [
            (adgate("t1", "state=pending", "0.5"), "pending: 200 OK", "0"),
            (adgate("t1", "state=pending", "0.5"), "pending: 200 OK", "0"),
            (adgate("t1", "state=approved", "0.5"), "credited: 200 OK", "5"),
            (adgate("t1", "state=approved", "0.5"), "duplicate: 200 OK", "5"),
            (adgate("t1", "state=pending", "0.5"), "pending: 200 OK", "5"),
            (adgate("t1", "state=rejected", "0.5"), "reversed: 200 OK", "0"),
            (adgate("t1", "state=approved", "0.5"), "duplicate: 200 OK", "0"),
            (stateful("REVIEWING"), "pending: 200 OK", "0"),
            (stateful("PENDING"), "pending: 200 OK", "0"),
            (stateful("COMPLETED"), "credited: 200 OK", "5"),
            (stateful("COMPLETED"), "duplicate: 200 OK", "5"),
            (stateful("RECONCILIATION"), "reversed: 200 OK", "0"),
        ] {
            assert_eq!(call.told(world).await, expected, "{}", call.query);
            assert_eq!(world.balance("7").await, balance, "{}", call.query);
        }
        assert_eq!(world.entries().await.len(), 4, "what is pending is no entry");
    })
    .await;
}

#[tokio::test]
async fn a_hold_and_its_end_move_nothing_and_do_not_stand_in_the_way() {
    let call = |kind: &str, amount: &str| timewall("7", "t1", format!("currencyAmount={amount}&type={kind}"));
    check_everything(async |world| {
        for (kind, amount, expected, balance) in [
            ("hold", "5", "pending: 200 ok", "0"),
            ("hold_cancelled", "5", "ignored: 200 ok", "0"),
            ("hold", "-5", "pending: 200 ok", "0"),
            ("credit", "5", "credited: 200 ok", "5"),
            ("hold_cancelled", "-5", "ignored: 200 ok", "5"),
            ("chargeback", "-5", "reversed: 200 ok", "0"),
        ] {
            assert_eq!(call(kind, amount).told(world).await, expected, "{kind}");
            assert_eq!(world.balance("7").await, balance, "{kind}");
        }
        assert_eq!(call("release", "5").sent(world).await.answer.status, 400, "what nobody has heard of pays nothing");
    })
    .await;
}

#[tokio::test]
async fn status_1_with_a_type_that_does_not_pay_moves_nothing() {
    check_everything(async |world| {
        for (rest, expected) in [
            ("status=1&type=out", "ignored: 200 1"),
            ("status=1&type=return_out", "ignored: 200 1"),
            ("status=1&type=bonus", "ignored: 200 1"),
        ] {
            assert_eq!(cpx("t1", format!("amount=5&user_id=7&{rest}")).told(world).await, expected, "{rest}");
        }
        for rest in [
            "status=1",
            "status=1&type=",
            "status=1&type=Complete",
            "status=3&type=complete",
            "type=complete",
            "status=-1",
        ] {
            let handled = cpx("t1", format!("amount=5&user_id=7&{rest}")).sent(world).await;
            assert_eq!((handled.outcome, handled.answer.status), ("bad_parameters", 400), "{rest}");
        }
        assert!(world.proxy.requests().is_empty());
        assert_eq!(survey("t1", "5").told(world).await, "credited: 200 1");
    })
    .await;
}

/// What TheoremReach sends for user 7.
fn theoremreach(rest: &str) -> Call {
    let query = format!("user_id=7&{rest}");
    let url = format!("https://{HOST}/theoremreach?{query}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac::<Hmac<Sha1>>(url));
    get("theoremreach", format!("{query}&hash={signature}"))
}

#[tokio::test]
async fn a_screen_out_pays_where_the_network_pays_for_it_and_nowhere_else() {
    let survey = |number: u32, reward: &str| {
        inbrain(&uuid(number), format!(r#", "RewardType": "survey_disqualified", "Reward": {reward}"#))
    };
    check_everything(async |world| {
        for (call, expected, balance) in [
            (url_sha1("bitlabs", "user_id=7&trans_id=t1&amount=0.5&type=SCREENOUT"), "credited: 200 OK", "0.5"),
            (survey(1, "0"), "ignored: 200 OK", "0.5"),
            (survey(2, "0.5"), "credited: 200 OK", "1"),
            (theoremreach("tx_id=t1&reward=5&screenout=1"), "ignored: 200 OK", "1"),
            (pollfish_survey(["30", "noteligible", "screenout"], ""), "ignored: 200 OK", "1"),
        ] {
            assert_eq!(call.told(world).await, expected, "{call:?}");
            assert_eq!(world.balance("7").await, balance, "{call:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_event_that_pays_nothing_is_acknowledged_and_moves_nothing() {
    let mychips = |amount: &str| get("mychips", format!("user_id=7&install_id=t1&amount={amount}"));
    let v3 = r#"{"data": {"player_id": "7", "transaction_id": "t1", "amount": 0, "conversion_type": "install"}}"#;
    check_everything(async |world| {
        for call in [
            adgate("t1", "state=approved", "0"),
            adgate("t1", "state=approved", "0.00"),
            mychips("0"),
            mychips("0.00"),
            adgem("amount=5&nonpayable_install_goal=true&player_id=7&transaction_id=t1"),
            adgem("amount=&nonpayable_install_goal=true&player_id=7&transaction_id=t1"),
            adgem_v3(v3),
            adgem_v3(v3.replace("\"amount\": 0", "\"amount\": null")),
            inbrain(&uuid(1), r#", "RewardType": "offer_clicked", "Reward": 0"#),
            ayet_sorted("amount=5&callback_type=installation&is_chargeback=0&trans_id=t1&user_id=7"),
            ayet_sorted("amount=0&callback_type=conversion&is_chargeback=0&trans_id=t1&user_id=7"),
            url_sha1("bitlabs", "user_id=7&trans_id=t1&amount=5&type=START_BONUS"),
            pollfish_survey(["0", "eligible", ""], ""),
            tapjoy(["t1", "undefined", "5"]),
        ] {
            assert_eq!(call.told(world).await, "ignored: 200 OK", "{call:?}");
        }
        assert!(world.proxy.requests().is_empty());
        assert_eq!(mychips("5").told(world).await, "credited: 200 OK", "its id is not used up");
    })
    .await;
}

#[tokio::test]
async fn the_id_spaces_of_two_networks_overlap_and_nothing_is_lost_or_mixed_up() {
    check_everything(async |world| {
        let (one, other) = (survey("17", "5"), kiwiwall("7", "3", "trans_id=17&status=1"));
        assert_eq!(one.told(world).await, "credited: 200 1");
        assert_eq!(other.told(world).await, "credited: 200 1");
        assert_eq!(kiwiwall("7", "-3", "trans_id=17&status=2").told(world).await, "reversed: 200 1");
        assert_eq!(one.told(world).await, "duplicate: 200 1");
        assert_eq!(world.balance("7").await, "5");
        // An id that holds another network's name is only an id.
        assert_eq!(survey("kiwiwall/18", "2").told(world).await, "credited: 200 1");
        assert_eq!(kiwiwall("7", "1", "trans_id=18&status=1").told(world).await, "credited: 200 1");
        assert_eq!(world.balance("7").await, "8");
    })
    .await;
}

#[tokio::test]
async fn milestones_that_share_an_offer_each_pay_once_also_where_no_id_is_sent() {
    let task = |task: &str, amount: &str| {
        let signature = sha1(format!("79{task}local-app{SECRET}"));
        get("playtimeads", format!("user_id=7&offer_id=9&task_id={task}&amount={amount}&signature={signature}"))
    };
    let taskwall = |offer: &str, name: &str, more: &str| {
        let fixed = "userid=7&user_amount=5&payout=0.5&date=2026-11-30";
        get("taskwall", format!("{fixed}&offer_id={offer}&offer_name={name}{more}&password={SECRET}"))
    };
    let radientwall = |id: &str| wall("radientwall", ["7", id, "5"], "status=1&campaign_id=9&event_id=1");
    check_everything(async |world| {
        let calls = [
            task("level-1", "5"),
            task("level-2", "5"),
            taskwall("9", "Reach+level+1", ""),
            taskwall("9", "Reach+level+2", ""),
            // What runs together is still told apart.
            taskwall("1", "23", ""),
            taskwall("12", "3", ""),
            radientwall("t1"),
            radientwall("t2"),
        ];
        for call in &calls {
            assert_eq!(call.sent(world).await.outcome, "credited", "{}", call.query);
        }
        for call in &calls {
            assert_eq!(call.sent(world).await.outcome, "duplicate", "{}", call.query);
        }
        // No clock and no chance is in the id: what is not part of a conversion does not make another one.
        assert_eq!(taskwall("9", "Reach+level+1", "&ip_address=192.0.2.1").sent(world).await.outcome, "duplicate");
        assert_eq!(task("level-1", "500").sent(world).await.outcome, "conflict");
        assert_eq!(world.balance("7").await, "40");
    })
    .await;
}

#[tokio::test]
async fn leading_zeros_and_case_make_another_user_and_another_conversion() {
    let call = |id: &str, user: &str| tapjoy([id, user, "5"]);
    check_everything(async |world| {
        for (id, user) in
            [("t1", "001234"), ("t2", "1234"), ("t3", "01234"), ("t4", "ab"), ("t5", "AB"), ("T1", "1234.0")]
        {
            assert_eq!(call(id, user).told(world).await, "credited: 200 OK", "{id} {user}");
        }
        let lost = call("t6", "001234").with("snuid=001234", "snuid=1234");
        assert_eq!(lost.heard(world).await, "403 bad signature");
        let balances = world.balances().await;
        let users: Vec<_> = balances.keys().map(String::as_str).collect();
        assert_eq!(users, ["001234", "01234", "1234", "1234.0", "AB", "ab"]);
        assert!(balances.values().all(|balance| balance == "5"));
    })
    .await;
}

#[tokio::test]
async fn a_duplicate_hears_exactly_what_that_network_takes_as_done() {
    let ironsource = |event: &str, user: &str| ironsource(["202611301200", event, user, "5"], SECRET);
    check_everything(async |world| {
        for (call, first, again) in [
            (wall("wannads", ["7", "t1", "5"], "status=credited"), "200 OK", "200 DUP"),
            (wall("radientwall", ["7", "t1", "5"], "status=1"), "200 OK", "200 DUP"),
            (kiwiwall("7", "5", "trans_id=t1&status=1"), "200 1", "200 1"),
            (survey("t1", "5"), "200 1", "200 1"),
            (ironsource("e-1", "7"), "200 e-1:OK", "200 e-1:OK"),
            (gemiad("7", "t1", "reward=5&status=completed"), "200 Approved", "200 Approved"),
            (timewall("7", "t1", "currencyAmount=5&type=credit"), "200 ok", "200 ok"),
            (adgem("amount=5&player_id=7&transaction_id=t1"), "200 OK", "200 OK"),
        ] {
            assert_eq!(call.heard(world).await, first, "{}", call.path);
            for _ in 0..2 {
                assert_eq!(call.heard(world).await, again, "{}", call.path);
            }
            let answer = serde_json::to_value(call.sent(world).await.answer).unwrap();
            assert_eq!(answer["headers"]["content-type"], "text/plain; charset=utf-8", "{}", call.path);
        }
        // A duplicate that differs pays nothing, and must not be sent for ever either.
        assert_eq!(survey("t1", "500").told(world).await, "conflict: 200 1");
        assert_eq!(ironsource("e-1", "8").told(world).await, "conflict: 200 e-1:OK");
        // Nothing of a request that was refused goes back.
        assert_eq!(ironsource("e-2", "7").with("rewards=5", "rewards=9").heard(world).await, "403 bad signature");
    })
    .await;
}

#[tokio::test]
async fn copies_that_race_pay_once_and_their_reversals_take_once() {
    check_everything(async |world| {
        let credit = kiwiwall("7", "5", "trans_id=t1&status=1");
        let reversal = kiwiwall("7", "-5", "trans_id=t1&status=2");
        for (call, first, balance) in [(credit, "credited", "5"), (reversal, "reversed", "0")] {
            let copies = join_all((0..12).map(|_| call.sent(world))).await;
            assert!(copies.iter().all(|copy| line(copy) == "200 1"), "{copies:?}");
            assert_eq!(copies.iter().filter(|copy| copy.outcome == first).count(), 1);
            assert_eq!(world.balance("7").await, balance);
        }
    })
    .await;
}

#[tokio::test]
async fn a_failure_of_ours_is_never_what_any_network_takes_for_done_and_the_next_attempt_pays() {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("events/offerwall");
    check_everything(async |world| {
        for network in names() {
            let event = std::fs::read_to_string(events.join(format!("{network}-credit.json"))).unwrap();
            world.proxy.plan(|_| Fault::Error("AccessDeniedException"));
            let failed = world.app.offerwall(&event, PATIENCE).await;
            assert_eq!((failed.outcome, failed.answer.status), ("unavailable", 503), "{network}");
            assert!(!failed.r#final, "{network}");
            world.proxy.plan(|_| Fault::None);
            let paid = world.app.offerwall(&event, PATIENCE).await;
            assert_eq!((paid.outcome, paid.answer.status), ("credited", 200), "{network}");
            assert_ne!(paid.answer.body, failed.answer.body, "{network}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_reply_that_was_lost_after_the_commit_is_a_duplicate_with_its_coins() {
    check_networks(&["kiwiwall"], "", &[("TIME_BUDGET_MS", "1000")], async |world| {
        let credit = kiwiwall("7", "5", "trans_id=t1&status=1");
        world.proxy.plan(|_| Fault::LostAfterCommit);
        assert_eq!(credit.heard(world).await, "503 0");
        world.proxy.plan(|_| Fault::None);
        assert_eq!(credit.told(world).await, "duplicate: 200 1");
        assert_eq!(world.balance("7").await, "5");
    })
    .await;
}

#[test]
fn the_answer_comes_before_the_least_patient_network_gives_up() {
    let budget = VARIABLES.iter().find(|variable| variable.name == "TIME_BUDGET_MS").unwrap().default;
    assert!(budget.parse::<u64>().unwrap() < 5000, "some send again after 5 seconds");
}

#[tokio::test]
async fn without_the_macro_that_tells_a_reversal_nothing_is_guessed() {
    check_everything(async |world| {
        let fyber = get("fyber", format!("uid=7&amount=5&sid={}", sha1("local-secret75")));
        assert_eq!(fyber.heard(world).await, "403 bad signature", "two equal rewards could not be told apart");
        for call in [
            wall("wannads", ["7", "t1", "5"], "x=1"),
            wall("radientwall", ["7", "t1", "5"], "status="),
            kiwiwall("7", "5", "trans_id=t1"),
            adgate("t1", "state", "0.5"),
            adgate("t1", "x=1", "0.5"),
            monlix("t1", "user_id=7&amount=5"),
            timewall("7", "t1", "currencyAmount=5"),
            gemiad("7", "t1", "reward=5"),
            ayet_sorted("amount=5&trans_id=t1&user_id=7"),
        ] {
            let handled = call.sent(world).await;
            assert_eq!((handled.outcome, handled.answer.status), ("bad_parameters", 400), "{}", call.query);
        }
        assert!(world.proxy.requests().is_empty());
    })
    .await;
}

#[test]
fn the_url_to_paste_holds_what_tells_a_reversal_or_the_preset_says_what_to_switch_on() {
    let catalogue = Catalogue::default();
    for network in catalogue.names() {
        let preset = catalogue.preset(&Network::new(&network).unwrap()).unwrap();
        let Some(url) = &preset.about.postback else { continue };
        let holds = |name: &str| url.split('&').any(|pair| pair.split('=').next() == Some(name));
        let mut reversals = preset.rules.iter().filter(|rule| rule.is == Class::Reversal).peekable();
        let never = reversals.peek().is_none();
        let told = reversals.any(|rule| rule.when.iter().all(|(name, _)| holds(name)));
        let switch = preset.about.dashboard.as_deref().unwrap_or_default().to_lowercase();
        let said =
            ["reversal", "negative", "chargeback", "stateful", "reject"].iter().any(|word| switch.contains(word));
        assert!(never || told || said, "{network}: {switch}");
    }
}

#[tokio::test]
async fn a_credit_above_a_deployments_cap_is_held_for_a_person_and_its_reversal_takes_it_from_there() {
    check_networks(&["cpx"], "[networks.cpx]\ncap = \"500\"", &[], async |world| {
        let reversed = |id: &str| cpx(id, "amount=1&user_id=7&status=2");
        for (call, expected, available, held) in [
            (survey("a", "500"), "credited: 200 1", "500", "0"),
            (survey("b", "500.01"), "suspended: 200 1", "500", "500.01"),
            (survey("b", "500.01"), "duplicate: 200 1", "500", "500.01"),
            // A URL that leaked, with a smaller amount: the id is known.
            (survey("b", "400"), "conflict: 200 1", "500", "500.01"),
            (survey("c", "999999999999999"), "suspended: 200 1", "500", "1000000000000499.01"),
            (reversed("c"), "reversed: 200 1", "500", "500.01"),
            (reversed("b"), "reversed: 200 1", "500", "0"),
            (reversed("b"), "duplicate: 200 1", "500", "0"),
            (reversed("a"), "reversed: 200 1", "0", "0"),
            (survey("b", "500.01"), "duplicate: 200 1", "0", "0"),
        ] {
            assert_eq!(call.told(world).await, expected, "{}", call.query);
            assert_eq!(world.account("7").await, (available.to_owned(), held.to_owned()), "{}", call.query);
        }
        let named = cpx("d", "amount=5&user_id=suspense%2Fcpx&status=1&type=complete");
        assert_eq!(named.sent(world).await.answer.status, 400, "nobody is paid from there by name");
        let cases = ["conflict/cpx/b/credit/amount", "over_cap/cpx/b/credit", "over_cap/cpx/c/credit"];
        assert_eq!(world.case_ids().await, cases);
    })
    .await;
}

#[tokio::test]
async fn a_cap_for_every_network_counts_where_a_network_has_none_of_its_own() {
    let file = "[defaults]\ncap = \"10\"\n[networks.monlix]\ncap = \"20\"\n[networks.cpx]";
    check_networks(&["cpx", "monlix", "kiwiwall"], file, &[], async |world| {
        for (call, expected) in [
            (survey("a", "10"), "credited: 200 1"),
            (survey("b", "10.01"), "suspended: 200 1"),
            (kiwiwall("7", "10", "trans_id=a&status=1"), "credited: 200 1"),
            (kiwiwall("7", "11", "trans_id=b&status=1"), "suspended: 200 1"),
            (monlix("a", "user_id=7&amount=20&status=1"), "credited: 200 OK"),
            (monlix("b", "user_id=7&amount=21&status=1"), "suspended: 200 OK"),
        ] {
            assert_eq!(call.told(world).await, expected, "{}", call.query);
        }
        assert_eq!(world.balance("7").await, "40");
    })
    .await;
    assert!(configured(&["cpx"], "[defaults]").is_err(), "no cap defends nothing");
}

#[tokio::test]
async fn an_offers_name_that_tells_conversions_apart_is_any_text_but_the_macro_that_stands_for_it() {
    let taskwall = |name: &str| {
        let fixed = "userid=7&user_amount=5&payout=0.5&offer_id=9";
        get("taskwall", format!("{fixed}&offer_name={name}&password={SECRET}"))
    };
    check_everything(async |world| {
        for name in ["[Reach]+{level}", "{x}", "[[x]]", "[%x%]", "$x$", "50%+off", "%zz", "%FF", "%FE", "{offer_name}+"]
        {
            assert_eq!(taskwall(name).told(world).await, "credited: 200 OK", "{name}");
            assert_eq!(taskwall(name).told(world).await, "duplicate: 200 OK", "{name}");
        }
        for name in ["{offer_name}", "%7Boffer_name%7D"] {
            let expected = "400 offer_name: a macro that the network did not replace";
            assert_eq!(taskwall(name).heard(world).await, expected, "{name}");
        }
        assert_eq!(world.balance("7").await, "50");
    })
    .await;
}

#[tokio::test]
async fn statuses_after_which_a_network_does_not_send_again_are_marked() {
    check_everything(async |world| {
        let tapjoy = |user: &str| tapjoy(["t1", "7", "5"]).with("snuid=7", &format!("snuid={user}"));
        let cpalead = |rest: &str| get("cpalead", format!("subid=7&lead_id=t1&{rest}"));
        let paid = "virtual_currency=5&password=local-secret";
        for (call, expected, ends) in [
            (tapjoy("8"), "403 bad signature", true),
            (Call { method: "POST".into(), ..tapjoy("7") }, "405 method not allowed: send a GET", false),
            (tapjoy("7"), "200 OK", false),
            (cpalead("virtual_currency=5&password=x"), "403 bad signature", true),
            (
                cpalead("virtual_currency=1e3&password=local-secret"),
                "400 virtual_currency: not a plain decimal number such as 12.50",
                true,
            ),
            (Call { method: "POST".into(), ..cpalead(paid) }, "405 method not allowed: send a GET", true),
            // Its address moves: what comes from elsewhere must come again.
            (cpalead(paid).sender("192.0.2.7"), "503 source address not allowed", false),
            (cpalead(paid), "200 OK", false),
            (survey("t1", "x"), "400 amount: not a plain decimal number such as 12.50", false),
        ] {
            let handled = call.sent(world).await;
            assert_eq!((line(&handled).as_str(), handled.r#final), (expected, ends), "{}", call.query);
        }
    })
    .await;
}

#[test]
fn a_signature_that_leaves_the_amount_or_the_id_open_is_enabled_only_with_something_else_to_defend_it() {
    for network in [
        "adspenny",
        "cpx",
        "excentiv",
        "fyber",
        "inbrain",
        "lootably",
        "monlix",
        "offerdaddy",
        "offermaru",
        "playtimeads",
        "radientwall",
        "taskwall",
        "upwall",
        "vortexwall",
        "wannads",
    ] {
        let faults = configured(&[network], "").unwrap_err().to_string();
        assert!(faults.contains("whoever has seen one URL can change it"), "{faults}");
        for defence in
            ["cap = \"500\"", "accept_weak = true", "source = { mode = \"enforce\", addresses = [\"192.0.2.1\"] }"]
        {
            configured(&[network], &format!("[networks.{network}]\n{defence}")).unwrap();
        }
    }
    let covered = ["adgem", "adgem-v3", "ayet", "bitlabs", "notik", "pollfish", "tapjoy"];
    let by_address = [
        "adgate",
        "cpalead",
        "gemiad",
        "ironsource",
        "kiwiwall",
        "mmwall",
        "personaly",
        "pubscale",
        "timewall",
        "torox",
    ];
    configured(&covered, "").unwrap();
    configured(&by_address, "").unwrap();
}

#[tokio::test]
async fn ids_of_one_length_close_what_a_signature_without_separators_leaves_open() {
    // User 1 with conversion 23 signs like user 12 with conversion 3.
    let signature = |ids| wall("wannads", ids, "").query.rsplit('=').next().unwrap().to_owned();
    assert_eq!(signature(["1", "23", "5"]), signature(["12", "3", "5"]));
    let file = "[networks.wannads.formats]\nsubId = 4\ntransId = \"uuid\"";
    let id = "11111111-2222-4333-8444-555555555555";
    const BOTH: &str =
        "400 subId: not of the form that this network sends\ntransId: not of the form that this network sends";
    check_networks(&["wannads"], file, &[], async |world| {
        let paid = wall("wannads", ["0001", id, "5"], "status=credited");
        for (user, trans_id, reward, expected) in [
            ("00011", &id[1..], "5", BOTH),
            ("000", &format!("1{id}"), "5", BOTH),
            ("0001", &id[..35], "55", "400 transId: not of the form that this network sends"),
        ] {
            let moved = wall("wannads", [user, trans_id, reward], "status=credited");
            assert_eq!(moved.heard(world).await, expected, "{}", moved.query);
        }
        assert_eq!(paid.told(world).await, "credited: 200 OK");
    })
    .await;
}
