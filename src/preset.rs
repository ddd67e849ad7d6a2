//! A network as data: how its postback is signed, what its parameters mean, from where it comes, what it wants to hear.
//!
//! The networks that are shipped are the files in `presets/`; a deployment's own come in one document of the same language.
//! No network is ever named in code. A preset is read whole or not at all, and every fault in it is told with its place.

pub(crate) mod document; // a TOML tree whose values know their places
mod read; // the language: from a tree to a preset

use std::collections::BTreeSet;
use std::net::IpAddr;

use include_dir::{Dir, include_dir};
use ipnet::IpNet;
use jiff::SignedDuration;

use crate::event::ContentType;
use crate::fields::{Carrier, Doubt, Fields, Pick, Piece};
use crate::id::{Currency, Network};
use crate::money::{Amount, Rate, Received};
use crate::signature::{Algorithm, Recipe};

use document::{Faults, Kind, Node};

pub use document::{Fault, Place};

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/presets");

/// One network, typed and validated.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name, which is also its path's.
    pub network: Network,
    /// What a person should know of it.
    pub about: About,
    /// What its requests are, and what is decided of that kind alone.
    pub contract: Contract,
    /// Whether it is enabled where a deployment names no networks.
    pub default: bool,
    /// Whether the deployment accepts a signature that leaves the amount or the id open.
    pub accept_weak: bool,
    /// How its requests carry their fields.
    pub carrier: Carrier,
    /// How its requests are signed.
    pub signature: Recipe,
    /// What its parameters are called.
    pub parameters: Parameters,
    /// What values of some parameters always look like.
    pub formats: Vec<(String, Format)>,
    /// What some parameters must hold to be the deployment's, where the network signs for everybody with the same key.
    pub yours: Vec<(String, Vec<String>)>,
    /// What its amounts are.
    pub unit: Unit,
    /// What happened: the first rule that fits decides.
    pub rules: Vec<Rule>,
    /// How a reversal names its credit.
    pub reversal: Original,
    /// What it wants to hear.
    pub answers: Answers,
    /// From where it sends.
    pub source: Source,
    /// Most coins of one credit that reach a user; what is above waits for a person.
    pub cap: Option<Amount>,
    /// Most coins that reach one user in one day (UTC); a credit that goes beyond waits for a person.
    pub cap_per_day: Option<Amount>,
    /// How long coins are held before they become available; `None` for not at all.
    pub hold: Option<SignedDuration>,
    /// Credits up to this many coins are not held.
    pub hold_above: Option<Amount>,
    /// What becomes of a reversal whose coins were spent.
    pub spent: Spent,
    /// What becomes of a credit for a user who has no account yet.
    pub unknown_users: UnknownUsers,
}

/// What a network's requests are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contract {
    /// Postbacks of finished offers.
    Offerwall,
    /// Calls of a game aggregator, which moves players' money by them. What is said of rules, units, caps and holds means
    /// nothing for these.
    Wallet(Wallet),
}

/// What is peculiar to a wallet's caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wallet {
    /// The currency of its players' accounts; `None` for the deployment's.
    pub currency: Option<Currency>,
    /// Its names for what only its requests have.
    pub names: WalletNames,
    /// What becomes of a rollback whose original we never saw.
    pub unseen: Unseen,
    /// What becomes of the rollback of a win that was spent.
    pub spent_win: SpentWin,
    /// What becomes of a win in a round in which its player has no bet.
    pub win_without_bet: Doubtful,
    /// What becomes of a win in a round that was rolled back or finished.
    pub win_after_end: Doubtful,
}

/// A wallet's caller's names for what only its requests have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletNames {
    /// The round of the game.
    pub round_id: String,
    /// The game; its value may be empty, and filled in when the request is repeated.
    pub game_id: String,
    /// What a rollback takes back.
    pub original: String,
    /// The currency, where a request names it.
    pub currency: String,
}

/// What becomes of a rollback whose original we never saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unseen {
    /// It succeeds and moves nothing, and the original is refused should it still come.
    #[default]
    Tombstone,
    /// It is refused, and nothing is recorded of it.
    NotFound,
}

impl Unseen {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            Unseen::Tombstone => "tombstone",
            Unseen::NotFound => "not_found",
        }
    }
}

/// What becomes of the rollback of a win that was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpentWin {
    /// The balance goes below zero, with a case.
    #[default]
    Negative,
    /// It is refused, as a bet beyond the balance is.
    Refuse,
}

impl SpentWin {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            SpentWin::Negative => "negative",
            SpentWin::Refuse => "refuse",
        }
    }
}

/// What becomes of something that may be owed and may be a mistake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doubtful {
    /// It is applied, with a case.
    #[default]
    Allow,
    /// It is refused.
    Refuse,
}

impl Doubtful {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            Doubtful::Allow => "allow",
            Doubtful::Refuse => "refuse",
        }
    }
}

/// What becomes of a reversal whose coins were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spent {
    /// The balance goes below zero, and later credits repay it.
    #[default]
    Negative,
    /// The balance goes down to zero, and the rest is our loss.
    Absorb,
}

impl Spent {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            Spent::Negative => "negative",
            Spent::Absorb => "absorb",
        }
    }
}

/// What becomes of a credit for a user who has no account yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownUsers {
    /// The account is made with it.
    #[default]
    Create,
    /// Its coins wait in suspense for a person: the app makes the accounts of its users.
    Require,
}

impl UnknownUsers {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            UnknownUsers::Create => "create",
            UnknownUsers::Require => "require",
        }
    }
}

/// What a person should know of a network.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name in the world.
    pub name: String,
    /// The page that documents its postback.
    pub docs: Option<String>,
    /// What this preset rests on.
    pub evidence: Evidence,
    /// The query to paste behind our URL in the network's dashboard, with its macros; `None` where it adds everything itself.
    pub postback: Option<String>,
    /// What must be switched on in the network's dashboard.
    pub dashboard: Option<String>,
    /// The file that it comes from.
    pub file: String,
    /// How many of its keys the deployment's own document sets.
    pub own_keys: usize,
}

/// What a preset rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The network's own documentation.
    Official,
    /// Integrations that work with it.
    Community,
    /// Contradictory or inferred: watch it before you trust it.
    Experimental,
}

impl Evidence {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Official => "official",
            Evidence::Community => "community",
            Evidence::Experimental => "experimental",
        }
    }
}

/// The network's names for what we read.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// The app's user.
    pub user_id: String,
    /// The conversion, the same in every attempt.
    pub trans_id: Identity,
    /// The coins, or the money that they are paid for.
    pub amount: String,
    /// The offer's id.
    pub offer_id: Option<String>,
    /// The offer's name.
    pub offer_name: Option<String>,
    /// The goal's id.
    pub goal_id: Option<String>,
    /// What the network pays the app.
    pub payout: Option<Payout>,
}

/// What tells one conversion from all others.
#[derive(Debug, Clone)]
pub enum Identity {
    /// An id that the network chose.
    Field(String),
    /// Where it sends none: everything that makes a conversion another one.
    Fingerprint(Vec<Pick>),
}

/// What a value always looks like. Both have one length, so that a value cannot grow by what belongs to its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// This many bytes.
    Bytes(usize),
    /// 32 hex digits in five groups.
    Uuid,
}

impl Format {
    /// Whether a value looks like it.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Format::Bytes(bytes) => text.len() == bytes,
            Format::Uuid => {
                let groups: Vec<_> = text.split('-').map(str::len).collect();
                groups == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
            }
        }
    }
}

/// What the network pays the app.
#[derive(Debug, Clone)]
pub struct Payout {
    /// The network's name of it.
    pub parameter: String,
    /// In US cents; else in dollars.
    pub cents: bool,
}

/// What a network's amounts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Coins.
    Coins,
    /// Money, paid in coins at a rate.
    Money(Rate),
}

/// What a request says happened. The class alone decides whether coins are given or taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Coins are given.
    Credit,
    /// What was given is taken back.
    Reversal,
    /// It may become a credit, and is none yet.
    Pending,
    /// Nobody did anything.
    Test,
    /// Something that pays nothing.
    Ignore,
}

/// What must hold for a class.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Conditions on parameters, all of which must hold.
    pub when: Vec<(String, Condition)>,
    /// What happened then.
    pub is: Class,
}

/// A condition on one parameter.
#[derive(Debug, Clone)]
pub enum Condition {
    /// It is exactly one of these texts.
    OneOf(Vec<String>),
    /// It begins with this.
    Prefix(String),
    /// It is a number of this sign.
    Sign(Sign),
    /// It is there and not empty, or it is not.
    Present(bool),
}

/// The sign of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Negative,
    Zero,
    Positive,
}

/// How a reversal names its credit. Where none of these say, it has the credit's id.
#[derive(Debug, Clone, Default)]
pub struct Original {
    /// A parameter that holds the credit's id.
    pub parameter: Option<String>,
    /// What a reversal's id begins with, and what the credit's begins with instead.
    pub prefix: Option<(String, String)>,
}

/// What the network wants to hear.
#[derive(Debug, Clone)]
pub struct Answers {
    /// For what moved coins or was recorded for the first time.
    pub applied: Reply,
    /// For what was known.
    pub duplicate: Reply,
    /// For what moves nothing: pending, a test, ignored.
    pub ignored: Reply,
    /// For a request that nobody we know signed.
    pub bad_signature: Reply,
    /// For a request from an address that is not the network's.
    pub bad_source: Reply,
    /// For parameters that cannot be used; `None` for a line for each.
    pub bad_parameters: Option<Reply>,
    /// For our own failure.
    pub unavailable: Reply,
    /// What the bodies are.
    pub content_type: ContentType,
    /// The statuses after which the network does not send again.
    pub final_statuses: Vec<u16>,
}

impl Answers {
    /// The fields of the request that go back to the network.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        [&self.applied, &self.duplicate, &self.ignored].into_iter().flat_map(|reply| &reply.body).filter_map(|piece| {
            match piece {
                Piece::Placeholder(name) => Some(name.as_str()),
                Piece::Literal(_) => None,
            }
        })
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Placeholders stand for the request's fields.
    pub body: Vec<Piece>,
}

/// From where a network sends.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// What is done about an address that is not on the list.
    pub mode: SourceMode,
    /// The list.
    pub addresses: Vec<IpNet>,
}

/// What is done about a source address that is not the network's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceMode {
    /// The request is refused.
    Enforce,
    /// A warning is logged.
    Warn,
    /// Nothing.
    #[default]
    Off,
}

impl SourceMode {
    /// The word for it in a preset.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceMode::Enforce => "enforce",
            SourceMode::Warn => "warn",
            SourceMode::Off => "off",
        }
    }
}

impl Source {
    /// Whether an address is on the list. One that nobody can tell is not.
    pub fn lists(&self, address: &str) -> bool {
        let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
        address.is_ok_and(|address| self.addresses.iter().any(|net| net.contains(&address)))
    }
}

/// What a signature may leave open: whoever has seen one good request can change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    User,
    Amount,
    Id,
    Status,
}

impl Open {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Open::User => "user",
            Open::Amount => "amount",
            Open::Id => "id",
            Open::Status => "status",
        }
    }
}

/// Why something is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// It is signed, with nothing between it and its neighbour: what belongs to one can be moved to the other.
    RunsTogether,
    /// It is not signed.
    NotSigned,
}

impl Preset {
    /// What is peculiar to it as a wallet's caller; `None` where it is none.
    pub fn wallet(&self) -> Option<&Wallet> {
        match &self.contract {
            Contract::Wallet(wallet) => Some(wallet),
            Contract::Offerwall => None,
        }
    }

    /// What the request says happened.
    ///
    /// # Errors
    ///
    /// The parameters that say it, and why they do not: `None` where none of the rules fits.
    pub fn class(&self, fields: &Fields<'_>) -> Result<Class, (String, Option<Doubt>)> {
        for rule in &self.rules {
            let mut fits = true;
            for (name, condition) in &rule.when {
                fits = condition.holds(fields, name).map_err(|doubt| (name.clone(), Some(doubt)))?;
                if !fits {
                    break;
                }
            }
            if fits {
                return Ok(rule.is);
            }
        }
        let names = self.class_parameters();
        let doubt = match names[..] {
            [only] => fields.strict(only).err(),
            _ => None,
        };
        Err((names.join(", "), doubt))
    }

    /// The parameters that say what happened, each once.
    pub fn class_parameters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (name, _) in self.rules.iter().flat_map(|rule| &rule.when) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// What the signature leaves open, and whether only because fields run together.
    pub fn gaps(&self) -> Vec<(Open, Gap)> {
        let fixed = |name: &str| self.formats.iter().any(|(fixed, _)| fixed == name);
        let signed = |name: &str| self.signature.covers(self.carrier, name, &fixed);
        // A key that signs for everybody proves nothing, unless what is signed with it says that it is for us.
        let shared =
            self.signature.algorithm == Algorithm::EcdsaP256 && !self.yours.iter().any(|(name, _)| signed(name));
        let gap = |name: &str| match &self.signature {
            _ if shared => Some(Gap::NotSigned),
            _ if signed(name) => None,
            signature if signature.covers(self.carrier, name, &|_| true) => Some(Gap::RunsTogether),
            _ => Some(Gap::NotSigned),
        };
        let id = match &self.parameters.trans_id {
            Identity::Field(name) => gap(name),
            Identity::Fingerprint(picks) => picks.iter().filter_map(|pick| gap(&pick.name)).max(),
        };
        // Who can change what a reversal points at can take back any credit.
        let id = id.max(self.reversal.parameter.as_deref().and_then(gap));
        let status = match &self.contract {
            Contract::Offerwall => self.class_parameters().into_iter().filter_map(gap).max(),
            // The path says it.
            Contract::Wallet(_) => (shared || !self.signature.message.takes_url()).then_some(Gap::NotSigned),
        };
        let gaps = [
            (Open::User, gap(&self.parameters.user_id)),
            (Open::Amount, gap(&self.parameters.amount)),
            (Open::Id, id),
            (Open::Status, status),
        ];
        gaps.into_iter().filter_map(|(open, gap)| Some((open, gap?))).collect()
    }

    /// What of the amount and the id is left open, where nothing else defends them.
    pub fn undefended(&self) -> Vec<Open> {
        if self.accept_weak || self.cap.is_some() || self.source.mode == SourceMode::Enforce {
            return Vec::new();
        }
        self.gaps().into_iter().map(|(open, _)| open).filter(|open| matches!(open, Open::Amount | Open::Id)).collect()
    }

    /// The parameters whose values only the deployment knows, and did not say.
    pub fn unsaid(&self) -> impl Iterator<Item = &str> {
        self.yours.iter().filter(|(_, values)| values.is_empty()).map(|(name, _)| name.as_str())
    }

    /// The macro that stands for a parameter in the postback URL.
    pub fn macro_of(&self, name: &str) -> Option<&str> {
        let pairs = self.about.postback.as_deref()?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, unreplaced)| unreplaced)
    }

    /// Whether it cannot work without a secret.
    pub fn needs_secret(&self) -> bool {
        self.signature.algorithm != Algorithm::None
    }
}

impl Condition {
    fn holds(&self, fields: &Fields<'_>, name: &str) -> Result<bool, Doubt> {
        let text = match fields.once(name) {
            Ok(value) => Some(value.strict()?),
            Err(Doubt::Missing) => None,
            Err(doubt) => return Err(doubt),
        };
        let Some(text) = text else { return Ok(matches!(self, Condition::Present(false))) };
        let holds = match self {
            Condition::OneOf(texts) => texts.iter().any(|one| *one == text),
            Condition::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Condition::Present(present) => text.is_empty() != *present,
            Condition::Sign(_) if text.is_empty() => false,
            Condition::Sign(sign) => {
                // A macro is told apart from what is no number.
                fields.strict(name)?;
                let received = Received::read(&text).map_err(|_| Doubt::NotPlain)?;
                match sign {
                    Sign::Negative => received.is_negative(),
                    Sign::Zero => received.is_zero(),
                    Sign::Positive => !received.is_negative() && !received.is_zero(),
                }
            }
        };
        if !holds && !text.is_empty() {
            fields.strict(name)?;
        }
        Ok(holds)
    }
}

/// Why there is no such preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    #[error("no network of that name is known; `cargo operator networks` lists them")]
    Unknown,
    #[error("{}", list(.0))]
    Faults(Vec<Fault>),
}

/// The network that a shipped file is about.
fn stem(file: &'static include_dir::File<'static>) -> Option<&'static str> {
    file.path().to_str()?.strip_suffix(".toml")
}

/// The text of a shipped network.
fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.files().find(|file| stem(file) == Some(name))?.contents_utf8()
}

/// Whether the text of a shipped network says that it is enabled by default, which it does before its first table.
fn is_default(text: &str) -> bool {
    text.split("\n[").next().is_some_and(|head| head.contains("\ndefault = true"))
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

/// Every network that is known: those that are shipped, and those of a deployment's own document.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    own: Vec<(String, Node)>,
    /// What counts for every network that does not say otherwise.
    defaults: Option<Node>,
}

impl Catalogue {
    /// The networks that are shipped, and those of a document with a table `networks.<name>` for each: a new network, or the
    /// keys of a shipped one that are to be others; and with a table `defaults` for all networks that do not say otherwise.
    ///
    /// # Errors
    ///
    /// Every fault in the document.
    pub fn with(file: &str, text: &str) -> Result<Catalogue, Vec<Fault>> {
        let (catalogue, faults) = Catalogue::of(file, document::parse(file, text)?, "`defaults`");
        if faults.is_empty() { Ok(catalogue) } else { Err(faults) }
    }

    /// The same of a document's tree, with every fault in it; `beside` says which keys there are beside the networks.
    pub(crate) fn of(file: &str, mut root: Node, beside: &str) -> (Catalogue, Vec<Fault>) {
        let faults = Faults::default();
        let defaults = root.remove("defaults");
        let mut own = Vec::new();
        match root.remove("networks") {
            None => {}
            Some(Node { kind: Kind::Table(networks), .. }) => own = networks,
            Some(node) => faults.add(&node.place, "networks", "must be a table with one table for each network"),
        }
        if let Kind::Table(others) = root.kind {
            for (name, node) in others {
                let problem = format!(
                    "unknown; there are {beside} and, for a network, `networks.<name>` with its keys below that"
                );
                faults.add(&node.place, &name, problem);
            }
        }
        if let Some(defaults) = &defaults {
            for only in ["base", "contract", "network", "default", "accept_weak"] {
                if let Some(node) = defaults.get(only) {
                    faults.add(&node.place, &format!("defaults.{only}"), "is said of one network, not of all");
                }
            }
        }
        let catalogue = Catalogue { own, defaults };
        let mut all = faults.into_inner();
        all.extend(catalogue.faults_of_defaults(file));
        for (name, node) in &catalogue.own {
            let path = format!("networks.{name}");
            match Network::new(name).map(|network| catalogue.preset(&network)) {
                Ok(Ok(_)) => {}
                Ok(Err(PresetError::Faults(faults))) => all.extend(faults),
                Ok(Err(error)) => all.push(Fault { place: node.place.clone(), key: path, problem: error.to_string() }),
                Err(error) => all.push(Fault { place: node.place.clone(), key: path, problem: error.to_string() }),
            }
        }
        // What several networks build on is told once.
        let mut told: Vec<Fault> = Vec::new();
        for fault in all {
            let same = |known: &Fault| known.place == fault.place && known.problem == fault.problem;
            // Without `networks.<name>`, which differs.
            let key = |fault: &Fault| fault.key.splitn(3, '.').nth(2).map(str::to_owned);
            if !told.iter().any(|known| same(known) && key(known) == key(&fault)) {
                told.push(fault);
            }
        }
        (catalogue, told)
    }

    /// What is wrong with the defaults, whatever the network: seen on a shipped one, which has no faults of its own.
    fn faults_of_defaults(&self, file: &str) -> Vec<Fault> {
        let (Some(defaults), Some(name)) = (
            &self.defaults,
            SHIPPED.files().filter(|file| file.contents_utf8().is_some_and(is_default)).find_map(stem),
        ) else {
            return Vec::new();
        };
        let shipped = Catalogue::default().tree(name, &mut Vec::new());
        let (Ok(Some((tree, _))), Ok(network)) = (shipped, Network::new(name)) else { return Vec::new() };
        let mut node = defaults.clone();
        node.merge(tree);
        let faults = read::preset(&network, node, "defaults", 0).err().unwrap_or_default();
        faults.into_iter().filter(|fault| &*fault.place.file == file).collect()
    }

    /// The network of that name.
    ///
    /// # Errors
    ///
    /// [`PresetError`] says which networks there are, or everything that is wrong with this one, and where.
    pub fn preset(&self, network: &Network) -> Result<Preset, PresetError> {
        let name = network.as_str();
        let (node, own_keys) = self.whole(name)?;
        let path = if self.own(name).is_some() { format!("networks.{name}") } else { String::new() };
        read::preset(network, node, &path, own_keys).map_err(PresetError::Faults)
    }

    /// The tree of a network with all that counts for it, and how many keys the deployment's own document sets.
    pub(crate) fn whole(&self, name: &str) -> Result<(Node, usize), PresetError> {
        let (tree, own_keys) =
            self.tree(name, &mut Vec::new()).map_err(PresetError::Faults)?.ok_or(PresetError::Unknown)?;
        // What is said for all is said of postbacks.
        let is_wallet =
            matches!(tree.get("contract"), Some(Node { kind: Kind::Text(contract), .. }) if contract == read::WALLET);
        let node = match self.defaults.clone() {
            Some(mut defaults) if !is_wallet => {
                defaults.merge(tree);
                defaults
            }
            Some(_) | None => tree,
        };
        Ok((node, own_keys))
    }

    /// The networks that are enabled where a deployment names none: those that say so.
    ///
    /// # Errors
    ///
    /// Every fault in them.
    pub fn enabled_by_default(&self) -> Result<Vec<Preset>, PresetError> {
        // Only what may say so is parsed: a start must not read every network.
        let say_so = SHIPPED.files().filter(|file| file.contents_utf8().is_some_and(is_default));
        let mut names: BTreeSet<&str> = self.own.iter().map(|(name, _)| name.as_str()).collect();
        for name in say_so.filter_map(stem) {
            names.insert(name);
        }
        let networks = names.into_iter().filter_map(|name| Network::new(name).ok());
        let presets = networks.map(|network| self.preset(&network)).collect::<Result<Vec<_>, _>>()?;
        Ok(presets.into_iter().filter(|preset| preset.default).collect())
    }

    /// Every network, in order of names.
    ///
    /// # Errors
    ///
    /// Every fault in the first that has any.
    pub fn presets(&self) -> Result<Vec<Preset>, PresetError> {
        let networks = self.names().into_iter().filter_map(|name| Network::new(&name).ok());
        networks.map(|network| self.preset(&network)).collect()
    }

    /// Every network's name, in order.
    pub fn names(&self) -> Vec<String> {
        let shipped = SHIPPED.files().filter_map(stem).map(str::to_owned);
        let mut names: Vec<_> = shipped.chain(self.own.iter().map(|(name, _)| name.clone())).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn own(&self, name: &str) -> Option<&Node> {
        self.own.iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// The tree of a network with what it builds on below it, and how many keys the deployment's own document sets.
    /// A shipped network builds on what is shipped: what a deployment says of one is not said of others.
    fn tree(&self, name: &str, above: &mut Vec<String>) -> Result<Option<(Node, usize)>, Vec<Fault>> {
        let own = self.own(name).cloned();
        let own_keys = own.as_ref().map_or(0, Node::leaves);
        let shipped = shipped(name).map(|text| document::parse(&format!("{name}.toml"), text)).transpose()?;
        let own_network = shipped.is_none();
        // A document that says what a network builds on does not also build on the shipped one of its name.
        let node = match (shipped, own) {
            (Some(mut shipped), Some(own)) if own.get("base").is_none() => {
                shipped.merge(own);
                Some(shipped)
            }
            (_, Some(own)) => Some(own),
            (shipped, None) => shipped,
        };
        let Some(mut node) = node else { return Ok(None) };
        let Some(base) = node.remove("base") else { return Ok(Some((node, own_keys))) };
        let fault = |problem: String| vec![Fault { place: base.place.clone(), key: "base".into(), problem }];
        let Kind::Text(base_name) = &base.kind else {
            return Err(fault("must be the name of a network in quotes".into()));
        };
        above.push(name.to_owned());
        if above.contains(base_name) {
            return Err(fault(format!("builds on itself: {} -> {base_name}", above.join(" -> "))));
        }
        let below =
            if own_network { self.tree(base_name, above)? } else { Catalogue::default().tree(base_name, above)? };
        let Some((mut tree, _)) = below else {
            return Err(fault(format!("no network is called `{base_name}`; `cargo operator networks` lists them")));
        };
        // What is said of one network alone is not said of those that build on it.
        for only in ["default", "accept_weak"] {
            tree.remove(only);
        }
        if let Some(network) = tree.get_mut("network") {
            network.remove("name");
            network.remove("docs");
            // A deployment's own network rests on what the deployment says.
            if own_network {
                network.remove("evidence");
            }
        }
        tree.merge(node);
        Ok(Some((tree, own_keys)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn network(name: &str) -> Network {
        Network::new(name).unwrap()
    }

    fn read(text: &str, name: &str) -> Preset {
        let catalogue = Catalogue::with("own.toml", text).unwrap_or_else(|faults| panic!("{}\n{text}", list(&faults)));
        catalogue.preset(&network(name)).unwrap()
    }

    fn faults(text: &str) -> String {
        list(&Catalogue::with("own.toml", text).unwrap_err())
    }

    /// The body of an answer.
    fn body(reply: &Reply) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Placeholder(name) => format!("<{name}>"),
        };
        reply.body.iter().map(text).collect()
    }

    /// A recipe that needs nothing of the one that it replaces.
    const SIGNATURE: &str = r#"
        request.carrier = "form"
        signature = { algorithm = "hmac-sha512", message = ["{a}", "{b}"], separator = "|", encoding = "base64",
            key = "", fields = "", parameter = "", header = "X-Own" }"#;

    #[test]
    fn a_deployment_can_change_any_key_of_any_shipped_network() {
        type Holds = fn(&Preset) -> bool;
        let changes: &[(&str, Holds)] = &[
            ("default = false", |p| !p.default),
            ("accept_weak = true", |p| p.accept_weak && p.undefended().is_empty()),
            ("cap = \"7.5\"", |p| p.cap.is_some_and(|cap| cap.to_string() == "7.5")),
            ("cap_per_day = \"7.5\"", |p| p.cap_per_day.is_some_and(|cap| cap.to_string() == "7.5")),
            ("hold = \"7d\"", |p| p.hold == Some(SignedDuration::from_hours(7 * 24)) && p.hold_above.is_none()),
            ("hold = \"24h\"\nhold_above = \"9\"", |p| p.hold_above.is_some_and(|above| above.to_string() == "9")),
            ("spent = \"absorb\"", |p| p.spent == Spent::Absorb),
            ("unknown_users = \"require\"", |p| p.unknown_users == UnknownUsers::Require),
            ("network.name = \"N\"", |p| p.about.name == "N" && p.about.own_keys == 1),
            ("network.docs = \"https://n\"", |p| p.about.docs.as_deref() == Some("https://n")),
            ("network.docs = \"\"", |p| p.about.docs.is_none()),
            ("network.evidence = \"community\"", |p| p.about.evidence == Evidence::Community),
            ("network.postback = \"a=b\"", |p| p.about.postback.as_deref() == Some("a=b")),
            ("network.dashboard = \"D\"", |p| p.about.dashboard.as_deref() == Some("D")),
            (SIGNATURE, |p| p.carrier == Carrier::Form && format!("{:?}", p.signature).contains("Header(\"x-own\")")),
            ("parameters.user_id = \"u\"", |p| p.parameters.user_id == "u"),
            ("parameters.trans_id = \"t\"", |p| matches!(&p.parameters.trans_id, Identity::Field(name) if name == "t")),
            (
                "parameters.trans_id = [\"t\", \"u\"]",
                |p| matches!(&p.parameters.trans_id, Identity::Fingerprint(picks) if picks.len() == 2),
            ),
            ("parameters.amount = \"a\"", |p| p.parameters.amount == "a"),
            ("parameters.offer_id = \"o\"", |p| p.parameters.offer_id.as_deref() == Some("o")),
            ("parameters.offer_name = \"\"", |p| p.parameters.offer_name.is_none()),
            ("parameters.goal_id = \"g\"", |p| p.parameters.goal_id.as_deref() == Some("g")),
            ("parameters = { payout_usd = \"\", payout_cents = \"c\" }", |p| {
                p.parameters.payout.as_ref().is_some_and(|payout| payout.cents && payout.parameter == "c")
            }),
            ("formats.f = 7", |p| p.formats.contains(&("f".to_owned(), Format::Bytes(7)))),
            ("amount = { unit = \"usd\", rate = \"10\" }", |p| matches!(p.unit, Unit::Money(_))),
            ("classes = [{ is = \"credit\" }]", |p| p.rules.len() == 1 && p.rules[0].when.is_empty()),
            ("reversal.original = \"o\"", |p| p.reversal.parameter.as_deref() == Some("o")),
            ("reversal = \"\"", |p| p.reversal.parameter.is_none() && p.reversal.prefix.is_none()),
            ("answers.applied = \"A {{a}}\"", |p| body(&p.answers.applied) == "A {a}"),
            ("answers = { duplicate = \"\", ignored = \"\" }", |p| {
                [&p.answers.duplicate, &p.answers.ignored].iter().all(|reply| body(reply) == body(&p.answers.applied))
            }),
            ("answers.ignored = { status = 202 }", |p| p.answers.ignored.status == 202),
            ("answers.bad_signature = { status = 401, body = \"B\" }", |p| {
                p.answers.bad_signature.status == 401 && body(&p.answers.bad_signature) == "B"
            }),
            ("answers.bad_source = \"S\"", |p| body(&p.answers.bad_source) == "S"),
            ("answers.bad_parameters = \"\"", |p| p.answers.bad_parameters.is_none()),
            ("answers.unavailable = { status = 500 }", |p| p.answers.unavailable.status == 500),
            ("answers.type = \"json\"", |p| p.answers.content_type == ContentType::Json),
            ("answers.final = [410]", |p| p.answers.final_statuses == [410]),
            ("source = { mode = \"enforce\", addresses = [\"192.0.2.0/24\"] }", |p| {
                p.source.mode == SourceMode::Enforce && p.source.lists("192.0.2.9") && p.source.addresses.len() == 1
            }),
        ];
        for Preset { network, contract, .. } in Catalogue::default().presets().unwrap() {
            let name = network.as_str();
            for (change, holds) in changes.iter().filter(|_| contract == Contract::Offerwall) {
                let preset = read(&format!("[networks.{name}]\n{change}"), name);
                assert!(holds(&preset), "{name}: {change}: {preset:?}");
            }
        }
    }

    #[test]
    fn a_deployment_can_change_what_is_decided_of_a_wallets_calls_and_its_names() {
        type Holds = fn(&Wallet) -> bool;
        let changes: &[(&str, Holds)] = &[
            ("", |w| (w.unseen, w.spent_win) == (Unseen::Tombstone, SpentWin::Negative) && w.currency.is_none()),
            ("", |w| (w.win_without_bet, w.win_after_end) == (Doubtful::Allow, Doubtful::Allow)),
            ("unseen = \"not_found\"", |w| w.unseen == Unseen::NotFound),
            ("spent_win = \"refuse\"", |w| w.spent_win == SpentWin::Refuse),
            ("win_without_bet = \"refuse\"", |w| w.win_without_bet == Doubtful::Refuse),
            ("win_after_end = \"refuse\"", |w| w.win_after_end == Doubtful::Refuse),
            ("currency = \"EUR\"", |w| w.currency.as_ref().is_some_and(|currency| currency.as_str() == "EUR")),
            ("parameters.round_id = \"r\"", |w| w.names.round_id == "r"),
        ];
        let presets = Catalogue::default().presets().unwrap();
        let wallets: Vec<_> = presets.iter().filter(|preset| preset.wallet().is_some()).collect();
        assert!(!wallets.is_empty());
        for Preset { network, .. } in wallets {
            for (change, holds) in changes {
                // What is said for all networks is said of postbacks.
                let text = format!("[networks.{network}]\n{change}\n[defaults]\ncap = \"5\"");
                let preset = read(&text, network.as_str());
                assert!(preset.wallet().is_some_and(holds) && preset.cap.is_none(), "{network}: {change}: {preset:?}");
            }
            let signed_path = format!("[networks.{network}]\nsignature.message = \"{{$url}}{{$body}}\"");
            assert!(read(&signed_path, network.as_str()).gaps().is_empty());
            assert_eq!(read("", network.as_str()).gaps(), [(Open::Status, Gap::NotSigned)]);
            let wrong = format!("[networks.{network}]\ncap = \"5\"\nunseen = \"x\"\nrequest.carrier = \"form\"");
            let faults = faults(&wrong);
            for part in
                ["cap: unknown; there are contract", "unseen: must be one of tombstone, not_found", "must be `json`"]
            {
                assert!(faults.contains(part), "{faults}");
            }
        }
    }

    #[test]
    fn what_a_network_builds_on_gives_what_it_does_not_say_itself() {
        let text = r##"
            [networks.first]
            default = true
            cap = "50"
            accept_weak = true
            network = { name = "First", docs = "https://first", evidence = "official", postback = "a=1" }
            request = { carrier = "query" }
            signature = { algorithm = "md5", message = "{u}{t}{a}{$secret}", encoding = "hex", parameter = "sig" }
            parameters = { user_id = "u", trans_id = "t", amount = "a", offer_id = "o" }
            classes = [{ when = { s = "1" }, is = "credit" }, { when = { s = "2" }, is = "reversal" }]
            answers = { applied = "1", duplicate = "DUP" }
            source = { mode = "warn", addresses = ["192.0.2.1", "192.0.2.2"] }
            [networks.second]
            base = "first"
            network = { name = "Second", evidence = "community" }
            parameters = { offer_id = "", goal_id = "g" }
            source.addresses = ["198.51.100.1"]
            [networks.third]
            base = "second"
            network = { name = "Third", docs = "https://third", evidence = "experimental" }
            classes = [{ is = "credit" }]
            answers.duplicate = ""
            source = ""
            cap = ""
        "##;
        let [first, second, third] = ["first", "second", "third"].map(|name| read(text, name));
        assert!(first.default && first.accept_weak && first.about.docs.is_some());
        assert!(!second.default && !second.accept_weak && second.about.docs.is_none(), "these are said of one alone");
        assert_eq!((second.about.name.as_str(), second.about.postback.as_deref()), ("Second", Some("a=1")));
        assert_eq!((second.parameters.offer_id, second.parameters.goal_id.as_deref()), (None, Some("g")));
        assert_eq!((second.rules.len(), second.source.addresses.len(), second.cap), (2, 1, first.cap));
        assert_eq!((third.rules.len(), third.source.mode, third.cap), (1, SourceMode::Off, None));
        assert_eq!((body(&third.answers.applied), body(&third.answers.duplicate)), ("1".into(), "1".into()));
        assert_eq!(third.about.docs.as_deref(), Some("https://third"));
        assert_eq!(
            Catalogue::with("own.toml", text).unwrap().enabled_by_default().unwrap().len(),
            Catalogue::default().enabled_by_default().unwrap().len() + 1
        );
    }

    #[test]
    fn the_networks_that_are_enabled_by_default_are_found_without_reading_all() {
        for preset in Catalogue::default().presets().unwrap() {
            assert_eq!(is_default(shipped(preset.network.as_str()).unwrap()), preset.default, "{}", preset.network);
        }
        let found = Catalogue::default().enabled_by_default().unwrap();
        assert!(!found.is_empty() && found.iter().all(|preset| preset.default));
    }

    #[test]
    fn defaults_hold_for_every_network_that_does_not_say_otherwise() {
        let text = r#"
            [defaults]
            cap = "5000"
            cap_per_day = "20000"
            hold = "90m"
            hold_above = "100"
            spent = "absorb"
            unknown_users = "require"
            [networks.first]
            base = "standard"
            network.name = "First"
            [networks.second]
            base = "standard"
            network.name = "Second"
            cap_per_day = "7"
            hold = ""
            spent = "negative"
            unknown_users = "create"
        "#;
        let [first, second] = ["first", "second"].map(|name| read(text, name));
        let shown = |amount: Option<Amount>| amount.map(|amount| amount.to_string());
        let of = |preset: &Preset| [preset.cap, preset.cap_per_day, preset.hold_above].map(shown);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&first), [some("5000"), some("20000"), some("100")]);
        assert_eq!(first.hold, Some(SignedDuration::from_mins(90)));
        assert_eq!((first.spent, first.unknown_users), (Spent::Absorb, UnknownUsers::Require));
        assert_eq!(of(&second), [some("5000"), some("7"), None], "without its hold nothing is above anything");
        assert_eq!((second.hold, second.spent, second.unknown_users), (None, Spent::Negative, UnknownUsers::Create));
        assert_eq!(
            faults("[defaults]\nhold_above = \"100\"\nspent = \"x\""),
            "own.toml, line 2: defaults.hold_above: means nothing without `hold`; own.toml, line 3: defaults.spent: \
             must be one of negative, absorb"
        );
    }

    #[test]
    fn a_base_that_leads_nowhere_or_in_a_circle_is_told() {
        for (text, expected) in [
            ("[networks.a]\nbase = \"a\"", "own.toml, line 2: base: builds on itself: a -> a".to_owned()),
            (
                "[networks.a]\nbase = \"b\"\n[networks.b]\nbase = \"c\"\n[networks.c]\nbase = \"b\"",
                "own.toml, line 6: base: builds on itself: a -> b -> c -> b".to_owned(),
            ),
            ("[networks.a]\nbase = 7", "own.toml, line 2: base: must be the name of a network in quotes".to_owned()),
            (
                "[networks.a]\nbase = \"zzz\"",
                "own.toml, line 2: base: no network is called `zzz`; `cargo operator networks` lists them".to_owned(),
            ),
            ("networks = 7", "own.toml, line 1: networks: must be a table with one table for each network".to_owned()),
            ("[networks]\na = 7", "own.toml, line 2: networks.a: must be a table, and is a number".to_owned()),
            (
                "[networks.\"A b\"]",
                "own.toml, line 1: networks.A b: not made of lower-case letters, digits and hyphens".into(),
            ),
            ("[networks.a\n", "own.toml, line 1: no TOML: unclosed table, expected `]`".into()),
        ] {
            let told = faults(text);
            assert!(told.starts_with(&expected), "{text}: {told}");
        }
        let unknown = Catalogue::default().preset(&network("zzz")).unwrap_err();
        assert_eq!(unknown, PresetError::Unknown);
    }

    /// What the signature of a network leaves open, in words.
    fn open(carrier: &str, signature: &str, more: &str) -> String {
        let place = if signature.contains("{$body}") { "header" } else { "parameter" };
        let text = format!(
            "[networks.own]
            network = {{ name = \"Own\", evidence = \"official\" }}
            request.carrier = {carrier:?}
            parameters = {{ user_id = \"user\", trans_id = \"id\", amount = \"amount\" }}
            classes = [{{ when = {{ status = \"1\" }}, is = \"credit\" }}]
            answers.applied = \"ok\"
            signature = {{ encoding = \"hex\", {place} = \"sig\", {signature} }}\n{more}"
        );
        opens(&read(&text, "own")).into_iter().map(Open::as_str).collect::<Vec<_>>().join(" ")
    }

    fn opens(preset: &Preset) -> Vec<Open> {
        preset.gaps().into_iter().map(|(open, _)| open).collect()
    }

    #[test]
    fn what_a_signature_leaves_open_is_told() {
        let sorted =
            |table: &str| format!("algorithm = \"hmac-md5\", message = \"{{$sorted}}\", fields = {{ {table} }}");
        for (signature, expected) in [
            ("algorithm = \"hmac-sha1\", message = \"{$query}\"", ""),
            ("algorithm = \"hmac-sha1\", message = \"{$url|cut|decoded}\"", ""),
            ("algorithm = \"hmac-sha1\", message = \"literal\"", "user amount id status"),
            ("algorithm = \"md5\", message = \"{$secret}\"", "user amount id status"),
            ("algorithm = \"hmac-md5\", message = \"{user}-{amount}:{id}:{status}\"", ""),
            ("algorithm = \"md5\", message = \"{user}-{amount}:{id}:{status}{$secret}\"", ""),
            // Behind a secret that only begins a plain hash, what ends the message can be made longer.
            ("algorithm = \"md5\", message = \"{user}-{amount}{$secret}{id}:{status}\"", "status"),
            ("algorithm = \"md5\", message = \"{$secret}{$query}\"", "user amount id status"),
            ("algorithm = \"md5\", message = \"{$query}{$secret}\"", ""),
            (
                "algorithm = \"md5\", message = [\"{user}\", \"{id}\", \"{$secret}\"], separator = \"/\"",
                "amount status",
            ),
            ("algorithm = \"md5\", message = [\"{user}\", \"{id}\", \"{$secret}\"]", "user amount id status"),
            (
                "algorithm = \"md5\", message = \"{amount|integer}:{id|lower}:{user|upper}{$secret}\"",
                "user amount id status",
            ),
            ("algorithm = \"md5\", message = \"{amount|absolute}:{id|raw}:{user}{$secret}\"", "amount status"),
            (&sorted("form = \"pairs\", joiner = \"&\", encoding = \"php\""), ""),
            (&sorted("form = \"pairs\", joiner = \"&\", encoding = \"rfc3986\", without = [\"id\"]"), "id"),
            // A value that holds an `&` and an `=` looks like two fields.
            (&sorted("form = \"pairs\", joiner = \"&\""), "user amount id status"),
            (&sorted("form = \"pairs\", joiner = \"&\", encoding = \"raw\""), "user amount id status"),
            (&sorted("form = \"pairs\""), "user amount id status"),
            // A dash stays a dash: `a=1-b=2` may end `a` at any of a value's own.
            (&sorted("form = \"pairs\", joiner = \"-\", encoding = \"php\""), "user amount id status"),
            // Whoever names another field `amount` makes its value the amount.
            (&sorted("form = \"values\", joiner = \"&\""), "user amount id status"),
        ] {
            assert_eq!(open("query", signature, ""), expected, "{signature}");
        }
        for (carrier, part, expected) in [
            ("json", "{$body}", ""),
            ("form", "{$body}", ""),
            ("form", "{$sorted}", ""),
            ("json", "{$url}", "user amount id status"),
            ("form", "{$query}", "user amount id status"),
        ] {
            let sorted = if part == "{$sorted}" {
                ", fields = { form = \"pairs\", joiner = \"&\", encoding = \"php\" }"
            } else {
                ""
            };
            let signature = format!("algorithm = \"hmac-sha1\", message = \"{part}\"{sorted}");
            assert_eq!(open(carrier, &signature, ""), expected, "{part} of {carrier}: a POST's URL says nothing");
        }
        for (algorithm, more) in
            [("token", ""), ("none", "source = { mode = \"enforce\", addresses = [\"192.0.2.1\"] }")]
        {
            let name = Catalogue::default().enabled_by_default().unwrap()[0].network.clone();
            let place = if algorithm == "none" { ", parameter = \"\"" } else { "" };
            let signature =
                format!("signature = {{ algorithm = \"{algorithm}\", message = \"\", encoding = \"\"{place} }}");
            let preset = read(&format!("[networks.{name}]\n{signature}\n{more}"), name.as_str());
            assert_eq!(opens(&preset), [Open::User, Open::Amount, Open::Id, Open::Status], "{algorithm} signs nothing");
        }
    }

    #[test]
    fn fields_that_run_together_are_open_unless_their_ends_are_certain() {
        let (ten, uuid) = ("formats.ten = 10", "formats.id = \"uuid\"");
        for (message, formats, expected) in [
            ("{user}{amount}", "", "user amount id status"),
            ("{user}:{amount}", "", "id status"),
            ("{user}{$secret}{amount}", "", "id status"),
            ("{ten}{amount}:{id}", ten, "user status"),
            ("{amount}{ten}:{id}", ten, "user status"),
            ("{ten}{amount}{ten}:{id}", ten, "user status"),
            ("{ten}{amount}{id}", ten, "user amount id status"),
            ("{ten|optional}{amount}:{id}", ten, "user amount status"),
            ("{ten|integer}{amount}:{id}", ten, "user amount status"),
            ("{ten|lower}{amount}:{id}", ten, "user status"),
            ("{id}{user}{amount}", uuid, "user amount status"),
            ("{user}{amount}{id}", uuid, "user amount status"),
            ("{id}{amount}", uuid, "user status"),
            // Both its neighbours could give to one side and take from the other.
            ("{user}{id}{amount}", uuid, "user amount id status"),
            ("{user}{id}{ten}", &format!("{uuid}\n{ten}"), "amount status"),
        ] {
            let signature = format!("algorithm = \"sha1\", message = \"{message}{{$secret}}\"");
            assert_eq!(open("form", &signature, formats), expected, "{message}");
        }
    }

    /// Keys and values of every kind, in any order, also where they mean nothing.
    fn any_document() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec![
            "base",
            "default",
            "cap",
            "cap_per_day",
            "hold",
            "hold_above",
            "spent",
            "unknown_users",
            "network",
            "network.name",
            "request.carrier",
            "signature",
            "signature.algorithm",
            "signature.message",
            "signature.fields",
            "signature.fields.form",
            "signature.header",
            "signature.key",
            "parameters.trans_id",
            "parameters.amount",
            "formats.id",
            "amount",
            "amount.rate",
            "classes",
            "reversal",
            "answers.applied",
            "answers.final",
            "source",
            "source.addresses",
            "zzz",
        ]);
        let value = prop::sample::select(vec![
            "\"\"",
            "\"first\"",
            "\"second\"",
            "\"md5\"",
            "\"json\"",
            "\"{$sorted}{$secret}\"",
            "\"{$url|cut}\"",
            "\"{a|integer}\"",
            "\"{\"",
            "\"7\"",
            "\"24h\"",
            "\"absorb\"",
            "7",
            "-0.5",
            "1e9",
            "0xFF",
            "inf",
            "true",
            "1979-05-27",
            "[]",
            "[[]]",
            "[\"a\", \"{b}\"]",
            "[\"::1/64\"]",
            "{}",
            "{ is = \"credit\" }",
            "[{ is = \"credit\", when = { a = { sign = \"zero\" } } }]",
            "[200, 70000]",
            "{ form = \"values\" }",
            "{ status = 418, body = \"{x}\" }",
            "{ mode = \"enforce\" }",
        ]);
        let lines = prop::collection::vec((key, value).prop_map(|(key, value)| format!("{key} = {value}\n")), 0..12);
        let base = prop::sample::select(Catalogue::default().names());
        (lines, base).prop_map(|(lines, base)| format!("[networks.first]\nbase = \"{base}\"\n{}", lines.concat()))
    }

    /// Reads a document, and whatever it gives.
    fn read_all(text: &str) {
        if let Ok(catalogue) = Catalogue::with("own.toml", text) {
            for preset in catalogue.presets().into_iter().flatten() {
                let _ = (preset.gaps(), preset.undefended(), preset.class(&Fields::encoded("a=1&status=x")));
            }
        }
    }

    proptest! {
        #[test]
        fn any_toml_is_read_or_refused_without_panic(text in any_document()) {
            read_all(&text);
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC*", name in "[a-z.\"\\[\\]= {}\n]*") {
            read_all(&text);
            read_all(&format!("[networks.own]\n{name}"));
        }
    }
}
