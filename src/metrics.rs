//! The line of a call: what a person searches for, and in the same object what CloudWatch counts, in its embedded metric
//! format.
//!
//! For seeing and never for the books: CloudWatch keeps floats, may count a line twice, and knows nothing of a call whose
//! process died after the commit. Must never name a dimension whose values a caller could choose, since each value is a
//! metric that is paid for, and never hold a secret, a query or a signature. Pure: the time comes in.

use std::time::Duration;

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use serde_json::value::RawValue;

use crate::id::Currency;
use crate::ledger::{Case, CaseKind};
use crate::money::Amount;

/// The namespace of every metric.
pub const NAMESPACE: &str = "postback";

/// What stands for the network of a call that leads to none.
pub const NO_NETWORK: &str = "none";

/// A number that CloudWatch keeps.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, which is also its member in the line.
    pub name: &'static str,
    unit: &'static str,
    by: By,
}

impl Metric {
    /// The sets of dimensions that it is kept by; each combination of their values is a metric of its own.
    pub fn dimensions(&self) -> &'static [&'static [&'static str]] {
        self.by.dimensions()
    }
}

/// What a metric is kept by. The function is always among it: an account may hold more than one deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Outcome,
    Network,
    Currency,
    Function,
}

impl By {
    const ALL: [By; 4] = [By::Outcome, By::Network, By::Currency, By::Function];

    fn dimensions(self) -> &'static [&'static [&'static str]] {
        match self {
            By::Outcome => &[&["function", "network", "outcome"], &["function", "outcome"]],
            By::Network => &[&["function", "network"], &["function"]],
            By::Currency => &[&["function", "network", "currency"]],
            By::Function => &[&["function"]],
        }
    }
}

const fn count(name: &'static str, by: By) -> Metric {
    Metric { name, unit: "Count", by }
}

/// One for each call.
pub const CALLBACKS: Metric = count("callbacks", By::Outcome);
/// One for each call that was verified and read, whatever came of it: its network is sending.
pub const UNDERSTOOD: Metric = count("understood", By::Network);
/// How long a call took.
pub const DURATION: Metric = Metric { name: "duration_ms", unit: "Milliseconds", by: By::Network };
/// Postings that were tried again because another one was in their way.
pub const RETRIES: Metric = count("contention_retries", By::Network);
/// Cases of any kind; each kind has a metric of its own beside it.
pub const CASES: Metric = count("cases_opened", By::Network);
const CONFLICT: Metric = count("cases_conflict", By::Network);
const LATE_CREDIT: Metric = count("cases_late_credit", By::Network);
const OVERDRAWN: Metric = count("cases_overdrawn", By::Network);
const REVERSAL_WITHOUT_CREDIT: Metric = count("cases_reversal_without_credit", By::Network);
const OVER_CAP: Metric = count("cases_over_cap", By::Network);
const SHORTFALL: Metric = count("cases_shortfall", By::Network);
const UNKNOWN_USER: Metric = count("cases_unknown_user", By::Network);
const WIN_WITHOUT_BET: Metric = count("cases_win_without_bet", By::Network);
const WIN_AFTER_END: Metric = count("cases_win_after_end", By::Network);
const CLOSED_ACCOUNT: Metric = count("cases_closed_account", By::Network);
const CASES_SETTINGS_BROKEN: Metric = count("cases_settings_broken", By::Network);
/// Readings of the settings that found a newest version which does not read: goes on as long as it lasts.
pub const SETTINGS_BROKEN: Metric = count("settings_broken", By::Function);
/// Coins that users got.
pub const CREDITED: Metric = Metric { name: "coins_credited", unit: "None", by: By::Currency };
/// Coins that users get when their hold ends.
pub const HELD: Metric = Metric { name: "coins_held", unit: "None", by: By::Currency };
/// Coins that wait for a person.
pub const SUSPENDED: Metric = Metric { name: "coins_suspended", unit: "None", by: By::Currency };
/// Coins that were taken back.
pub const REVERSED: Metric = Metric { name: "coins_reversed", unit: "None", by: By::Currency };
/// Coins that players staked.
pub const BET: Metric = Metric { name: "coins_bet", unit: "None", by: By::Currency };
/// Coins that players won.
pub const WON: Metric = Metric { name: "coins_won", unit: "None", by: By::Currency };
/// Coins of bets and wins that were rolled back.
pub const ROLLED_BACK: Metric = Metric { name: "coins_rolled_back", unit: "None", by: By::Currency };

/// Holds that a round of the worker released.
pub const RELEASED: Metric = count("holds_released", By::Function);
/// Holds that a round could not release.
pub const UNRELEASED: Metric = count("holds_failed", By::Function);
/// For how long the oldest hold that a round left behind has been due.
pub const OLDEST_DUE: Metric = Metric { name: "oldest_due_hold_s", unit: "Seconds", by: By::Function };
/// Cases that are open.
pub const OPEN_CASES: Metric = count("open_cases", By::Function);

/// Every metric.
pub const METRICS: [&Metric; 28] = [
    &CALLBACKS,
    &UNDERSTOOD,
    &DURATION,
    &RETRIES,
    &CASES,
    &CONFLICT,
    &LATE_CREDIT,
    &OVERDRAWN,
    &REVERSAL_WITHOUT_CREDIT,
    &SHORTFALL,
    &OVER_CAP,
    &UNKNOWN_USER,
    &WIN_WITHOUT_BET,
    &WIN_AFTER_END,
    &CLOSED_ACCOUNT,
    &CASES_SETTINGS_BROKEN,
    &SETTINGS_BROKEN,
    &CREDITED,
    &HELD,
    &SUSPENDED,
    &REVERSED,
    &BET,
    &WON,
    &ROLLED_BACK,
    &RELEASED,
    &UNRELEASED,
    &OLDEST_DUE,
    &OPEN_CASES,
];

fn of_kind(kind: CaseKind) -> &'static Metric {
    match kind {
        CaseKind::Conflict(_) => &CONFLICT,
        CaseKind::LateCredit => &LATE_CREDIT,
        CaseKind::Overdrawn => &OVERDRAWN,
        CaseKind::ReversalWithoutCredit => &REVERSAL_WITHOUT_CREDIT,
        CaseKind::Shortfall => &SHORTFALL,
        CaseKind::OverCap => &OVER_CAP,
        CaseKind::UnknownUser => &UNKNOWN_USER,
        CaseKind::SettingsBroken => &CASES_SETTINGS_BROKEN,
        CaseKind::WinWithoutBet => &WIN_WITHOUT_BET,
        CaseKind::WinAfterEnd => &WIN_AFTER_END,
        CaseKind::ClosedAccount => &CLOSED_ACCOUNT,
    }
}

/// As what a call moved coins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// A user got them.
    Credited,
    /// A user gets them when their hold ends.
    Held,
    /// They wait for a person.
    Suspended,
    /// They were taken back.
    Reversed,
    /// A player staked them.
    Bet,
    /// A player won them.
    Won,
    /// A bet or a win of them was rolled back.
    RolledBack,
}

impl Flow {
    fn metric(self) -> &'static Metric {
        match self {
            Flow::Credited => &CREDITED,
            Flow::Held => &HELD,
            Flow::Suspended => &SUSPENDED,
            Flow::Reversed => &REVERSED,
            Flow::Bet => &BET,
            Flow::Won => &WON,
            Flow::RolledBack => &ROLLED_BACK,
        }
    }
}

/// What a call moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// As what.
    pub flow: Flow,
    /// How much, above zero.
    pub amount: Amount,
    /// The currency of the account.
    pub currency: Currency,
}

impl Moved {
    /// What a change of a balance moved; `None` where it moved nothing.
    pub fn of(flow: Flow, change: Amount, currency: &Currency) -> Option<Moved> {
        let amount = change.max(change.negated());
        (!amount.is_zero()).then(|| Moved { flow, amount, currency: currency.clone() })
    }
}

/// What became of a call.
#[derive(Debug)]
pub struct Line<'a> {
    /// When it was answered.
    pub at: Timestamp,
    /// The function that answered.
    pub function: &'a str,
    /// The enabled network that the call's path leads to.
    pub network: Option<&'a str>,
    /// The conversation that it is about, once it is verified and read.
    pub trans_id: Option<&'a str>,
    /// What it says happened.
    pub class: Option<&'static str>,
    pub outcome: &'static str,
    /// Why it was refused, without anything of its values.
    pub why: Option<&'a str>,
    /// Whether the network does not send again.
    pub r#final: bool,
    /// Whether it was verified and read.
    pub understood: bool,
    pub moved: Option<&'a Moved>,
    /// The cases that it opened.
    pub cases: &'a [Case],
    /// The status that the caller heard.
    pub status: u16,
    pub took: Duration,
    /// Requests to DynamoDB, each attempt for itself.
    pub requests: u32,
    /// Postings that were tried again because another one was in their way.
    pub retries: u32,
}

/// What became of a round of the worker that releases holds.
#[derive(Debug)]
pub struct Round<'a> {
    /// When it ended.
    pub at: Timestamp,
    /// The function that made it.
    pub function: &'a str,
    pub released: u64,
    /// Holds that another round released, or a reversal took, meanwhile.
    pub gone: u64,
    pub failed: u64,
    /// Whether it ended before all that is due was seen.
    pub unfinished: bool,
    /// For how long the oldest that is left has been due; zero where nothing is left.
    pub oldest_due: Duration,
    /// `None` where they could not be counted.
    pub open_cases: Option<u64>,
    pub took: Duration,
}

impl Round<'_> {
    /// The line, without its end.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }
}

impl Serialize for Round<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut measured = vec![
            (&RELEASED, Value::Count(self.released)),
            (&UNRELEASED, Value::Count(self.failed)),
            (&OLDEST_DUE, Value::Count(self.oldest_due.as_secs())),
        ];
        measured.extend(self.open_cases.map(|open| (&OPEN_CASES, Value::Count(open))));
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("timestamp", &format_args!("{:.6}", self.at))?;
        line.serialize_entry("level", "INFO")?;
        line.serialize_entry("message", "holds")?;
        line.serialize_entry("function", self.function)?;
        line.serialize_entry("gone", &self.gone)?;
        line.serialize_entry("unfinished", &self.unfinished)?;
        line.serialize_entry("took_ms", &millis(self.took))?;
        for (metric, value) in &measured {
            line.serialize_entry(metric.name, value)?;
        }
        line.serialize_entry("_aws", &Embedded { at: self.at, measured: &measured })?;
        line.end()
    }
}

/// Whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A metric's value in one line.
enum Value {
    Count(u64),
    Coins(Amount),
}

impl Line<'_> {
    /// The line, without its end.
    pub fn json(&self) -> String {
        json(self)
    }

    /// What this call adds to each metric; what is missing adds nothing.
    fn measured(&self) -> Vec<(&'static Metric, Value)> {
        let mut measured = Vec::with_capacity(6);
        measured.extend([(&CALLBACKS, Value::Count(1)), (&DURATION, Value::Count(millis(self.took)))]);
        let mut count = |metric, number: u64| {
            if number > 0 {
                measured.push((metric, Value::Count(number)));
            }
        };
        count(&UNDERSTOOD, self.understood.into());
        count(&RETRIES, self.retries.into());
        measured.extend(opened(self.cases));
        measured.extend(self.moved.map(|moved| (moved.flow.metric(), Value::Coins(moved.amount))));
        measured
    }
}

fn json(line: &impl Serialize) -> String {
    /// What a line of a credit fits into.
    const USUAL: usize = 1024;
    let mut text = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut text, line).expect("texts and numbers are JSON");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// What cases that were opened add to each metric.
fn opened(cases: &[Case]) -> impl Iterator<Item = (&'static Metric, Value)> {
    let counted = |metric: &'static Metric, number: u64| (number > 0).then_some((metric, Value::Count(number)));
    let all = counted(&CASES, cases.iter().map(|_| 1).sum());
    let of = move |metric: &'static Metric| {
        counted(metric, cases.iter().filter(|case| of_kind(case.kind) == metric).map(|_| 1).sum())
    };
    all.into_iter().chain(METRICS.into_iter().filter_map(of))
}

/// A reading that found a newest version of the settings which does not read.
#[derive(Debug)]
pub struct SettingsBroken<'a> {
    /// When.
    pub at: Timestamp,
    /// The function that read it.
    pub function: &'a str,
    /// The version.
    pub version: u64,
    /// Its case, where this reading opened it.
    pub opened: Option<&'a Case>,
}

impl SettingsBroken<'_> {
    /// The line, without its end.
    pub fn json(&self) -> String {
        json(self)
    }
}

impl Serialize for SettingsBroken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut measured = vec![(&SETTINGS_BROKEN, Value::Count(1))];
        measured.extend(opened(self.opened.map_or(&[], std::slice::from_ref)));
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("timestamp", &format_args!("{:.6}", self.at))?;
        line.serialize_entry("level", "ERROR")?;
        line.serialize_entry("message", "settings broken")?;
        line.serialize_entry("function", self.function)?;
        line.serialize_entry("network", NO_NETWORK)?;
        line.serialize_entry("version", &self.version)?;
        if let Some(case) = self.opened {
            line.serialize_entry("cases", &case.id())?;
        }
        for (metric, value) in &measured {
            line.serialize_entry(metric.name, value)?;
        }
        line.serialize_entry("_aws", &Embedded { at: self.at, measured: &measured })?;
        line.end()
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let measured = self.measured();
        let mut line = serializer.serialize_map(None)?;
        // The names that Lambda looks for.
        line.serialize_entry("timestamp", &format_args!("{:.6}", self.at))?;
        line.serialize_entry("level", "INFO")?;
        line.serialize_entry("message", "postback")?;
        line.serialize_entry("function", self.function)?;
        line.serialize_entry("network", self.network.unwrap_or(NO_NETWORK))?;
        if let Some(trans_id) = self.trans_id {
            line.serialize_entry("trans_id", trans_id)?;
        }
        if let Some(class) = self.class {
            line.serialize_entry("class", class)?;
        }
        line.serialize_entry("outcome", self.outcome)?;
        if let Some(why) = self.why {
            line.serialize_entry("why", why)?;
        }
        if self.r#final {
            line.serialize_entry("final", &true)?;
        }
        if !self.cases.is_empty() {
            line.serialize_entry("cases", &self.cases.iter().map(Case::id).collect::<Vec<_>>().join(" "))?;
        }
        line.serialize_entry("status", &self.status)?;
        line.serialize_entry("dynamodb_requests", &self.requests)?;
        if let Some(moved) = self.moved {
            line.serialize_entry("currency", moved.currency.as_str())?;
        }
        for (metric, value) in &measured {
            line.serialize_entry(metric.name, value)?;
        }
        line.serialize_entry("_aws", &Embedded { at: self.at, measured: &measured })?;
        line.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Count(number) => serializer.serialize_u64(*number),
            // The decimal as it is: no float of ours stands between it and the line.
            Value::Coins(amount) => {
                RawValue::from_string(amount.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

/// What tells CloudWatch which members of the line to count, and by what.
struct Embedded<'a> {
    at: Timestamp,
    measured: &'a [(&'static Metric, Value)],
}

impl Embedded<'_> {
    fn by(&self, by: By) -> impl Iterator<Item = &'static Metric> {
        self.measured.iter().map(|(metric, _)| *metric).filter(move |metric| metric.by == by)
    }
}

impl Serialize for Embedded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let directives = || {
            let used = By::ALL.into_iter().filter(|by| self.by(*by).next().is_some());
            used.map(|by| Directive { embedded: self, by })
        };
        let mut embedded = serializer.serialize_struct("Embedded", 2)?;
        embedded.serialize_field("Timestamp", &self.at.as_millisecond())?;
        embedded.serialize_field("CloudWatchMetrics", &List(directives))?;
        embedded.end()
    }
}

/// The metrics that are kept by the same dimensions.
struct Directive<'a> {
    embedded: &'a Embedded<'a>,
    by: By,
}

impl Serialize for Directive<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut directive = serializer.serialize_struct("Directive", 3)?;
        directive.serialize_field("Namespace", NAMESPACE)?;
        directive.serialize_field("Dimensions", self.by.dimensions())?;
        directive.serialize_field("Metrics", &List(|| self.embedded.by(self.by)))?;
        directive.end()
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut metric = serializer.serialize_struct("Metric", 2)?;
        metric.serialize_field("Name", self.name)?;
        metric.serialize_field("Unit", self.unit)?;
        metric.end()
    }
}

/// A list that is written as it is made.
struct List<F>(F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::id::{TransId, UserId};
    use crate::ledger::{About, Field, Status};

    fn case(kind: CaseKind) -> Case {
        let about = About::Entry {
            trans_id: TransId::new("net/1").unwrap(),
            status: Status::Credit,
            user: UserId::new("u").unwrap(),
            currency: Currency::new("coins").unwrap(),
            amount: Amount::ZERO,
        };
        Case { kind, about, detail: String::new(), opened_at: Timestamp::UNIX_EPOCH }
    }

    fn moved(flow: Flow, change: &str) -> Option<Moved> {
        Moved::of(flow, Amount::stored(change).unwrap(), &Currency::new("coins").unwrap())
    }

    /// A line of which nothing is known but its outcome.
    fn bare(outcome: &'static str) -> Line<'static> {
        Line {
            at: "2026-11-30T12:00:00.0015Z".parse().unwrap(),
            function: "f",
            network: None,
            trans_id: None,
            class: None,
            outcome,
            why: None,
            r#final: false,
            understood: false,
            moved: None,
            cases: &[],
            status: 404,
            took: Duration::from_micros(2999),
            requests: 0,
            retries: 0,
        }
    }

    #[test]
    fn the_line_of_a_call_that_leads_nowhere() {
        let expected = concat!(
            r#"{"timestamp":"2026-11-30T12:00:00.001500Z","level":"INFO","message":"postback","function":"f","#,
            r#""network":"none","outcome":"unknown_network","status":404,"dynamodb_requests":0,"callbacks":1,"#,
            r#""duration_ms":2,"_aws":{"Timestamp":1796040000001,"CloudWatchMetrics":[{"Namespace":"postback","#,
            r#""Dimensions":[["function","network","outcome"],["function","outcome"]],"#,
            r#""Metrics":[{"Name":"callbacks","Unit":"Count"}]},{"Namespace":"postback","#,
            r#""Dimensions":[["function","network"],["function"]],"#,
            r#""Metrics":[{"Name":"duration_ms","Unit":"Milliseconds"}]}]}}"#,
        );
        assert_eq!(bare("unknown_network").json(), expected);
    }

    #[test]
    fn the_line_of_a_credit_with_everything_in_it() {
        let moved = moved(Flow::Credited, "99999999999999999999.00000001");
        let line = Line {
            network: Some("net"),
            trans_id: Some("net/\"1\""),
            class: Some("credit"),
            why: Some("because"),
            r#final: true,
            understood: true,
            moved: moved.as_ref(),
            cases: &[case(CaseKind::Conflict(Field::User)), case(CaseKind::OverCap)],
            status: 200,
            requests: 4,
            retries: 3,
            ..bare("credited")
        };
        let expected = concat!(
            r#"{"timestamp":"2026-11-30T12:00:00.001500Z","level":"INFO","message":"postback","function":"f","#,
            r#""network":"net","trans_id":"net/\"1\"","class":"credit","outcome":"credited","why":"because","#,
            r#""final":true,"cases":"conflict/net/1/credit/user over_cap/net/1/credit","status":200,"#,
            r#""dynamodb_requests":4,"currency":"coins","callbacks":1,"duration_ms":2,"understood":1,"#,
            r#""contention_retries":3,"cases_opened":2,"cases_conflict":1,"cases_over_cap":1,"#,
            r#""coins_credited":99999999999999999999.00000001,"#,
        );
        let json = line.json();
        assert!(json.starts_with(expected), "{json}");
        let by_currency = concat!(
            r#"{"Namespace":"postback","Dimensions":[["function","network","currency"]],"#,
            r#""Metrics":[{"Name":"coins_credited","Unit":"None"}]}]}}"#,
        );
        assert!(json.ends_with(by_currency), "{json}");
    }

    #[test]
    fn settings_that_do_not_read_are_counted_by_function_and_their_case_as_any_other() {
        let at = Timestamp::UNIX_EPOCH;
        let case = Case { about: About::Settings(7), ..case(CaseKind::SettingsBroken) };
        let json = |opened| SettingsBroken { at, function: "f", version: 7, opened }.json();
        let start = concat!(
            r#"{"timestamp":"1970-01-01T00:00:00.000000Z","level":"ERROR","message":"settings broken","function":"f","#,
            r#""network":"none","version":7,"#,
        );
        let by_function = concat!(
            r#"{"Namespace":"postback","Dimensions":[["function"]],"#,
            r#""Metrics":[{"Name":"settings_broken","Unit":"Count"}]}]}}"#,
        );
        let again = json(None);
        assert!(again.starts_with(&format!("{start}\"settings_broken\":1,\"_aws\"")), "{again}");
        assert!(again.ends_with(by_function), "{again}");
        let first = json(Some(&case));
        let counted =
            "\"cases\":\"settings_broken/7\",\"settings_broken\":1,\"cases_opened\":1,\"cases_settings_broken\":1";
        assert!(first.starts_with(&format!("{start}{counted}")), "{first}");
        assert!(first.ends_with(by_function), "{first}");
    }

    #[test]
    fn coins_are_counted_for_what_happened_to_them_and_are_never_below_zero() {
        let member = |flow, change| {
            let json = Line { moved: moved(flow, change).as_ref(), ..bare("x") }.json();
            json.split(',').find(|member| member.starts_with("\"coins")).map(str::to_owned)
        };
        assert_eq!(member(Flow::Credited, "0.5").as_deref(), Some("\"coins_credited\":0.5"));
        assert_eq!(member(Flow::Held, "3").as_deref(), Some("\"coins_held\":3"));
        assert_eq!(member(Flow::Suspended, "7").as_deref(), Some("\"coins_suspended\":7"));
        assert_eq!(member(Flow::Reversed, "-0.00000001").as_deref(), Some("\"coins_reversed\":0.00000001"));
        assert_eq!(member(Flow::Credited, "0"), None, "nothing moved");
    }

    #[test]
    fn each_kind_of_case_has_a_metric_named_after_it() {
        for kind in CaseKind::ALL {
            assert_eq!(of_kind(kind).name, format!("cases_{}", kind.as_str()));
            assert!(METRICS.contains(&of_kind(kind)), "{kind:?}");
            let json = Line { cases: &[case(kind), case(kind)], ..bare("x") }.json();
            let counted = format!("\"cases_opened\":2,\"cases_{}\":2,", kind.as_str());
            assert!(json.contains(&counted), "{json}");
        }
    }

    #[test]
    fn the_line_of_a_round_says_what_is_left_of_the_queue() {
        let round = Round {
            at: "2026-11-30T12:00:00.0015Z".parse().unwrap(),
            function: "f",
            released: 2,
            gone: 1,
            failed: 0,
            unfinished: true,
            oldest_due: Duration::from_millis(90_999),
            open_cases: Some(4),
            took: Duration::from_micros(2999),
        };
        let expected = concat!(
            r#"{"timestamp":"2026-11-30T12:00:00.001500Z","level":"INFO","message":"holds","function":"f","gone":1,"#,
            r#""unfinished":true,"took_ms":2,"holds_released":2,"holds_failed":0,"oldest_due_hold_s":90,"open_cases":4,"#,
            r#""_aws":{"Timestamp":1796040000001,"CloudWatchMetrics":[{"Namespace":"postback","Dimensions":[["function"]],"#,
            r#""Metrics":[{"Name":"holds_released","Unit":"Count"},{"Name":"holds_failed","Unit":"Count"},"#,
            r#"{"Name":"oldest_due_hold_s","Unit":"Seconds"},{"Name":"open_cases","Unit":"Count"}]}]}}"#,
        );
        assert_eq!(round.json(), expected);
        assert!(!Round { open_cases: None, ..round }.json().contains("open_cases"), "what is not known is not zero");
    }

    #[test]
    fn no_metric_has_the_name_of_another_member() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.extend(["timestamp", "level", "message", "function", "network", "trans_id", "class", "outcome", "why"]);
        names.extend(["final", "cases", "status", "dynamodb_requests", "currency", "version", "_aws"]);
        names.extend(["gone", "unfinished", "took_ms"]);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
