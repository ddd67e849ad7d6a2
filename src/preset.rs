//! A network as data: how its postback is signed, what its parameters mean, from where it comes, what it wants to hear.
//!
//! The networks that are shipped are the files in `presets/`; a deployment's own come in one document of the same language.
//! No network is ever named in code. A preset is read whole or not at all, and every fault in it is told with its place.

mod document; // a TOML tree whose values know their places
mod read; // the language: from a tree to a preset

use std::net::IpAddr;

use include_dir::{Dir, include_dir};
use ipnet::IpNet;

use crate::event::ContentType;
use crate::fields::{Carrier, Doubt, Fields, Pick, Piece};
use crate::id::Network;
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

/// One answer.
#[derive(Debug, Clone)]
pub struct Reply {
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
    fn class_parameters(&self) -> Vec<&str> {
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
        let shared = self.signature.algorithm == Algorithm::EcdsaP256 && self.yours.is_empty();
        let gap = |name: &str| match &self.signature {
            _ if shared => Some(Gap::NotSigned),
            signature if signature.covers(self.carrier, name, &fixed) => None,
            signature if signature.covers(self.carrier, name, &|_| true) => Some(Gap::RunsTogether),
            _ => Some(Gap::NotSigned),
        };
        let id = match &self.parameters.trans_id {
            Identity::Field(name) => gap(name),
            Identity::Fingerprint(picks) => picks.iter().filter_map(|pick| gap(&pick.name)).max(),
        };
        let gaps = [
            (Open::User, gap(&self.parameters.user_id)),
            (Open::Amount, gap(&self.parameters.amount)),
            (Open::Id, id),
            (Open::Status, self.class_parameters().into_iter().filter_map(gap).max()),
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
    #[error("no network of that name is known; `operator networks` lists them")]
    Unknown,
    #[error("{}", list(.0))]
    Faults(Vec<Fault>),
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
        let mut root = document::parse(file, text)?;
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
                faults.add(&node.place, &name, "unknown; there are `defaults` and, for a network, `networks.<name>`");
            }
        }
        let catalogue = Catalogue { own, defaults };
        let mut all = faults.into_inner();
        for (name, node) in &catalogue.own {
            let path = format!("networks.{name}");
            match Network::new(name).map(|network| catalogue.preset(&network)) {
                Ok(Ok(_)) => {}
                Ok(Err(PresetError::Faults(faults))) => all.extend(faults),
                Ok(Err(error)) => all.push(Fault { place: node.place.clone(), key: path, problem: error.to_string() }),
                Err(error) => all.push(Fault { place: node.place.clone(), key: path, problem: error.to_string() }),
            }
        }
        if all.is_empty() { Ok(catalogue) } else { Err(all) }
    }

    /// The network of that name.
    ///
    /// # Errors
    ///
    /// [`PresetError`] says which networks there are, or everything that is wrong with this one, and where.
    pub fn preset(&self, network: &Network) -> Result<Preset, PresetError> {
        let name = network.as_str();
        let (tree, own_keys) =
            self.tree(name, &mut Vec::new()).map_err(PresetError::Faults)?.ok_or(PresetError::Unknown)?;
        let path = if self.own(name).is_some() { format!("networks.{name}") } else { String::new() };
        let node = match self.defaults.clone() {
            Some(mut defaults) => {
                defaults.merge(tree);
                defaults
            }
            None => tree,
        };
        read::preset(network, node, &path, own_keys).map_err(PresetError::Faults)
    }

    /// The networks that are enabled where a deployment names none: those that say so.
    pub fn defaults(&self) -> Vec<Preset> {
        // Only what may say so is parsed: a start must not read every network.
        let may = |name: &String| {
            let shipped = SHIPPED.get_file(format!("{name}.toml")).and_then(include_dir::File::contents_utf8);
            shipped.is_some_and(|text| text.contains("default = true")) || self.own(name).is_some()
        };
        let networks = self.names().into_iter().filter(may).filter_map(|name| Network::new(&name).ok());
        networks.filter_map(|network| self.preset(&network).ok()).filter(|preset| preset.default).collect()
    }

    /// Every network, in order of names.
    pub fn presets(&self) -> Vec<Preset> {
        let networks = self.names().into_iter().filter_map(|name| Network::new(&name).ok());
        networks.filter_map(|network| self.preset(&network).ok()).collect()
    }

    /// Every network's name, in order.
    pub fn names(&self) -> Vec<String> {
        let shipped = SHIPPED.files().filter_map(|file| file.path().file_name()?.to_str()?.strip_suffix(".toml"));
        let mut names: Vec<_> =
            shipped.chain(self.own.iter().map(|(name, _)| name.as_str())).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn own(&self, name: &str) -> Option<&Node> {
        self.own.iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// The tree of a network with what it builds on below it, and how many keys the deployment's own document sets.
    fn tree(&self, name: &str, above: &mut Vec<String>) -> Result<Option<(Node, usize)>, Vec<Fault>> {
        let shipped = SHIPPED.get_file(format!("{name}.toml"));
        let own = self.own(name).cloned();
        let own_keys = own.as_ref().map_or(0, Node::leaves);
        let shipped = match shipped.and_then(include_dir::File::contents_utf8) {
            Some(text) => Some(document::parse(&format!("{name}.toml"), text)?),
            None => None,
        };
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
        let Some((mut tree, _)) = self.tree(base_name, above)? else {
            return Err(fault(format!("no network is called `{base_name}`; `operator networks` lists them")));
        };
        // What is said of one network alone is not said of those that build on it.
        for only in ["default", "accept_weak"] {
            tree.remove(only);
        }
        if let Some(network) = tree.get_mut("network") {
            network.remove("name");
            network.remove("docs");
        }
        tree.merge(node);
        Ok(Some((tree, own_keys)))
    }
}
