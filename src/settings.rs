//! The settings: one TOML document that says which networks are enabled and what is peculiar to this deployment, and that
//! changes without a deployment.
//!
//! A document is read whole or not at all, and every fault in it is told with its line and key. Pure: where versions of it are
//! kept is the store's business, and when one comes into force is `in_force`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::cashier;
use crate::id::Network;
use crate::metrics::NO_NETWORK;
use crate::preset::document::{self, Kind, Node, Place};
use crate::preset::{Catalogue, Fault, Open, Preset, PresetError};

/// Most bytes of a document: an item of DynamoDB holds 400 KB.
pub const BYTES_MAX: usize = 300_000;

/// One version of the settings. Versions are never changed and never deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Counted from 1.
    pub number: u64,
    /// The TOML document.
    pub document: String,
    /// Who put it, at most [`crate::ledger::BY_MAX`] bytes.
    pub who: String,
    /// When.
    pub at: Timestamp,
    /// Why, at most [`crate::ledger::REASON_MAX`] bytes.
    pub why: String,
}

impl Version {
    /// What a fault calls its document.
    pub fn name(&self) -> String {
        format!("version {}", self.number)
    }

    /// What it says.
    ///
    /// # Errors
    ///
    /// Every fault in its document.
    pub fn read(&self) -> Result<Settings, Vec<Fault>> {
        Settings::read(&self.name(), &self.document)
    }
}

/// What a document says.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The networks that are enabled, in the document's order.
    pub enabled: Vec<Preset>,
    /// Every network that could be.
    pub catalogue: Catalogue,
}

impl Settings {
    /// Reads a document, which is called `file` in its faults.
    ///
    /// It holds `enabled`, a list of networks; `networks.<name>` and `defaults` mean what they mean in a file of networks.
    ///
    /// # Errors
    ///
    /// Every fault in it.
    pub fn read(file: &str, text: &str) -> Result<Settings, Vec<Fault>> {
        if text.len() > BYTES_MAX {
            let problem = format!("has {} bytes, more than the {BYTES_MAX} that a version may have", text.len());
            let place = Place { file: file.into(), line: 1 };
            return Err(vec![Fault { place, key: String::new(), problem }]);
        }
        let mut root = document::parse(file, text)?;
        let top = root.place.clone();
        let named = root.remove("enabled");
        let (catalogue, mut faults) = Catalogue::of(file, root, "`enabled`, `defaults`");
        let enabled = enabled(&catalogue, named, &top, &mut faults);
        faults.sort_by_key(|fault| fault.place.line);
        if faults.is_empty() { Ok(Settings { enabled, catalogue }) } else { Err(faults) }
    }
}

/// The presets of the networks that a document enables.
fn enabled(catalogue: &Catalogue, named: Option<Node>, top: &Place, faults: &mut Vec<Fault>) -> Vec<Preset> {
    const FORM: &str = "a list of one network or more in quotes, such as enabled = [\"<network>\"]";
    let (place, items) = match named {
        None => {
            faults.push(fault(top, format!("missing: {FORM}")));
            return Vec::new();
        }
        Some(Node { place, kind: Kind::List(items) }) => (place, items),
        Some(Node { place, .. }) => (place, Vec::new()),
    };
    if items.is_empty() {
        faults.push(fault(&place, format!("must be {FORM}")));
    }
    let mut presets: Vec<Preset> = Vec::new();
    for Node { place, kind } in items {
        let Kind::Text(name) = kind else {
            faults.push(fault(&place, format!("must be {FORM}")));
            continue;
        };
        match Network::new(&name).map(|network| catalogue.preset(&network)) {
            Ok(Ok(preset)) => {
                if presets.iter().any(|other| other.network == preset.network) {
                    faults.push(fault(&place, format!("`{name}` is named twice")));
                } else if let Some(problem) = unusable(&preset, "the settings") {
                    faults.push(fault(&place, format!("`{name}`: {problem}")));
                }
                presets.push(preset);
            }
            Ok(Err(PresetError::Faults(of_preset))) => {
                // Mostly told already, where they stand.
                for one in of_preset {
                    let told = faults.iter().any(|known| known.place == one.place && known.problem == one.problem);
                    if !told {
                        faults.push(one);
                    }
                }
            }
            Ok(Err(error @ PresetError::Unknown)) => faults.push(fault(&place, format!("`{name}`: {error}"))),
            Err(error) => faults.push(fault(&place, format!("`{name}`: {error}"))),
        }
    }
    presets
}

/// A fault of the list of networks.
fn fault(place: &Place, problem: String) -> Fault {
    Fault { place: place.clone(), key: "enabled".to_owned(), problem }
}

/// Why a network must not be enabled as it is; `document` is where the deployment can say what is missing.
pub fn unusable(preset: &Preset, document: &str) -> Option<String> {
    let name = &preset.network;
    if name.as_str() == NO_NETWORK {
        return Some("it is what the metrics call a path without a network".to_owned());
    }
    if name.as_str() == cashier::NETWORK {
        return Some("it is what the entries of players' accounts are kept under".to_owned());
    }
    if let Some(parameter) = preset.unsaid().next() {
        return Some(format!(
            "it signs for everybody with the same key: in {document}, list what is yours in `networks.{name}.yours.{parameter}`"
        ));
    }
    let open = preset.undefended();
    let open: Vec<_> = open.into_iter().map(Open::as_str).collect();
    (!open.is_empty()).then(|| {
        format!(
            "its signature leaves the {} open: whoever has seen one URL can change it. In {document}, set \
             `networks.{name}.cap`, or `networks.{name}.source` to `enforce` with its addresses, or accept it with \
             `networks.{name}.accept_weak = true`",
            open.join(" and the ")
        )
    })
}

/// What is different between two documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// In the text, key by key; nothing where only comments and order differ.
    pub document: Vec<Change>,
    /// In what counts for the networks that are enabled, with all that they build on.
    pub in_force: Vec<Change>,
}

/// One key that is different. Of the list `enabled`, each network that was added or taken away is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key with the tables that it is in.
    pub key: String,
    /// What it was; `None` where it was not there.
    pub from: Option<String>,
    /// What it is; `None` where it is not there.
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NOT_SET: &str = "not set";
        let Change { key, from, to } = self;
        match (from, to) {
            (None, Some(network)) if key == "enabled" => write!(f, "{key}: + {network}"),
            (Some(network), None) if key == "enabled" => write!(f, "{key}: - {network}"),
            (from, to) => {
                let shown = |side: &Option<String>| side.clone().unwrap_or_else(|| NOT_SET.to_owned());
                write!(f, "{key}: {} -> {}", shown(from), shown(to))
            }
        }
    }
}

/// What is different from an old document, or from none, to a new one.
///
/// # Errors
///
/// The faults of the first that does not read.
pub fn difference(old: Option<(&str, &str)>, new: (&str, &str)) -> Result<Difference, Vec<Fault>> {
    let old = old.map(|(file, text)| Sides::read(file, text)).transpose()?.unwrap_or_default();
    let new = Sides::read(new.0, new.1)?;
    let side = |there: bool, network: &String| there.then(|| network.clone());
    let switched = old.enabled.symmetric_difference(&new.enabled).map(|network| Change {
        key: "enabled".to_owned(),
        from: side(old.enabled.contains(network), network),
        to: side(new.enabled.contains(network), network),
    });
    let enabled: Vec<_> = switched.collect();
    let mut document = enabled.clone();
    document.extend(changes(&old.document, &new.document));
    let mut in_force = enabled;
    for (network, keys) in &new.in_force {
        // What is enabled for the first time is told as that.
        if let Some(before) = old.in_force.get(network) {
            in_force.extend(changes(before, keys));
        }
    }
    Ok(Difference { document, in_force })
}

type Keys = BTreeMap<String, String>;

/// A document, as it is compared.
#[derive(Default)]
struct Sides {
    enabled: BTreeSet<String>,
    /// Its keys but `enabled`.
    document: Keys,
    /// All that counts for each enabled network.
    in_force: BTreeMap<String, Keys>,
}

impl Sides {
    fn read(file: &str, text: &str) -> Result<Sides, Vec<Fault>> {
        let settings = Settings::read(file, text)?;
        let mut sides = Sides::default();
        let mut root = document::parse(file, text)?;
        root.remove("enabled");
        flatten(&root, "", &mut sides.document);
        for preset in &settings.enabled {
            let name = preset.network.as_str();
            let mut keys = Keys::new();
            if let Ok((node, _)) = settings.catalogue.whole(name) {
                flatten(&node, &format!("networks.{name}"), &mut keys);
            }
            // An empty text takes a key away: it counts as not there.
            keys.retain(|_, value| value != EMPTY);
            sides.enabled.insert(name.to_owned());
            sides.in_force.insert(name.to_owned(), keys);
        }
        Ok(sides)
    }
}

fn changes(old: &Keys, new: &Keys) -> Vec<Change> {
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let change = |key: &String| Change { key: key.clone(), from: old.get(key).cloned(), to: new.get(key).cloned() };
    keys.into_iter().map(change).filter(|change| change.from != change.to).collect()
}

/// How an empty text is shown.
const EMPTY: &str = "\"\"";

/// The values in a tree by their keys.
fn flatten(node: &Node, path: &str, keys: &mut Keys) {
    match &node.kind {
        Kind::Table(members) => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(member, &path, keys);
            }
        }
        kind => {
            keys.insert(path.to_owned(), shown(kind));
        }
    }
}

/// A value for a person: a plain text without its quotes.
fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Text(text) => {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
            if plain { text.clone() } else { format!("{text:?}") }
        }
        Kind::Number(number) => number.clone(),
        Kind::Flag(flag) => flag.to_string(),
        Kind::List(items) => {
            let items: Vec<_> = items.iter().map(|item| shown(&item.kind)).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Table(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, node)| format!("{name} = {}", shown(&node.kind))).collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// The faults of a document, each on its line.
    fn faults(text: &str) -> Vec<String> {
        Settings::read("settings.toml", text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    /// A network whose signature leaves the amount and the id open.
    const WEAK: &str = r#"
[networks.weak]
network = { name = "Weak", evidence = "community" }
request.carrier = "query"
signature = { algorithm = "md5", message = "{user}{$secret}", encoding = "hex", parameter = "sig" }
parameters = { user_id = "user", trans_id = "id", amount = "amount" }
classes = [{ is = "credit" }]
answers.applied = "ok"
"#;

    #[test]
    fn a_document_says_which_networks_are_enabled_and_what_is_peculiar_to_them() {
        let text = format!("enabled = [\"weak\", \"standard\"]\n[defaults]\ncap = \"5000\"{WEAK}hold = \"24h\"");
        let settings = Settings::read("settings.toml", &text).unwrap();
        let names: Vec<_> = settings.enabled.iter().map(|preset| preset.network.as_str()).collect();
        assert_eq!(names, ["weak", "standard"]);
        assert!(settings.enabled.iter().all(|preset| preset.cap.is_some()));
        assert!(settings.enabled[0].hold.is_some() && settings.enabled[1].hold.is_none());
        assert!(settings.catalogue.names().contains(&"weak".to_owned()));
    }

    #[test]
    fn every_fault_is_told_with_its_line_and_its_key() {
        let form = "a list of one network or more in quotes, such as enabled = [\"<network>\"]";
        for (text, expected) in [
            ("", vec![format!("line 1: enabled: missing: {form}")]),
            ("enabled = []", vec![format!("line 1: enabled: must be {form}")]),
            ("enabled = \"standard\"", vec![format!("line 1: enabled: must be {form}")]),
            ("enabled = [7]", vec![format!("line 1: enabled: must be {form}")]),
            (
                "enabled = [\n\"standard\",\n\"standard\",\n\"zzz\",\n\"A b\"]\ncolour = 7",
                vec![
                    "line 3: enabled: `standard` is named twice".into(),
                    "line 4: enabled: `zzz`: no network of that name is known; `cargo operator networks` lists them"
                        .into(),
                    "line 5: enabled: `A b`: not made of lower-case letters, digits and hyphens".into(),
                    "line 6: colour: unknown; there are `enabled`, `defaults` and, for a network, `networks.<name>` \
                     with its keys below that"
                        .into(),
                ],
            ),
            (
                "enabled = [\"standard\"]\n[networks.standard]\ncap = 5\nhold_above = \"1\"",
                vec![
                    "line 3: networks.standard.cap: must be text in quotes, and is a number".into(),
                    "line 4: networks.standard.hold_above: means nothing without `hold`".into(),
                ],
            ),
            ("enabled = [\"standard\"", vec!["line 1: no TOML: unclosed array, expected `]`".into()]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|told| format!("settings.toml, {told}")).collect();
            assert_eq!(faults(text), expected, "{text}");
        }
    }

    #[test]
    fn a_network_that_leaves_money_open_is_not_enabled_until_the_document_defends_it() {
        let told = faults(&format!("enabled = [\"weak\"]{WEAK}"));
        assert_eq!(
            told,
            ["settings.toml, line 1: enabled: `weak`: its signature leaves the amount and the id open: whoever has \
              seen one URL can change it. In the settings, set `networks.weak.cap`, or `networks.weak.source` to \
              `enforce` with its addresses, or accept it with `networks.weak.accept_weak = true`"]
        );
        for defence in ["cap = \"1\"", "accept_weak = true"] {
            assert_eq!(faults(&format!("enabled = [\"weak\"]{WEAK}{defence}")), Vec::<String>::new());
        }
        let nobody = WEAK.replace("weak", "none");
        let told = faults(&format!("enabled = [\"none\"]{nobody}accept_weak = true"));
        assert!(told[0].ends_with("`none`: it is what the metrics call a path without a network"), "{told:?}");
    }

    #[test]
    fn a_document_is_small_enough_for_an_item() {
        let text = "enabled = [\"standard\"]\n";
        let padded = |bytes: usize| format!("{text}{}", "#".repeat(bytes - text.len()));
        assert_eq!(faults(&padded(BYTES_MAX)), Vec::<String>::new());
        let expected = "settings.toml, line 1: has 300001 bytes, more than the 300000 that a version may have";
        assert_eq!(faults(&padded(BYTES_MAX + 1)), [expected]);
    }

    /// The lines of a difference: of the documents, and of what counts.
    fn lines(old: Option<&str>, new: &str) -> (Vec<String>, Vec<String>) {
        let difference = difference(old.map(|old| ("old", old)), ("new", new)).unwrap();
        let lines = |changes: Vec<Change>| changes.iter().map(ToString::to_string).collect();
        (lines(difference.document), lines(difference.in_force))
    }

    #[test]
    fn a_difference_is_told_key_by_key_and_by_the_networks_that_it_touches() {
        let old = r#"
            enabled = ["standard", "second", "third"]
            [defaults]
            cap = "5000"
            [networks.second]
            base = "standard"
            network.name = "Second"
            cap = "7"
            [networks.third]
            base = "standard"
            network.name = "Third"
            [networks.fourth]
            base = "standard"
            network.name = "Fourth"
        "#;
        let new = r#"
            enabled = ["fourth", "second", "standard"] # another order
            [defaults]
            cap = "8000"
            hold = "24h"
            [networks.second]
            base = "standard"
            network.name = "Second"
            hold = ""
            source = { mode = "warn", addresses = ["192.0.2.1", "192.0.2.2"] }
            [networks.fourth]
            base = "standard"
            network.name = "The fourth"
        "#;
        let (document, in_force) = lines(Some(old), new);
        assert_eq!(
            document,
            [
                "enabled: + fourth",
                "enabled: - third",
                "defaults.cap: 5000 -> 8000",
                "defaults.hold: not set -> 24h",
                "networks.fourth.network.name: Fourth -> \"The fourth\"",
                "networks.second.cap: 7 -> not set",
                "networks.second.hold: not set -> \"\"",
                "networks.second.source.addresses: not set -> [192.0.2.1, 192.0.2.2]",
                "networks.second.source.mode: not set -> warn",
                "networks.third.base: standard -> not set",
                "networks.third.network.name: Third -> not set",
            ]
        );
        assert_eq!(
            in_force,
            [
                "enabled: + fourth",
                "enabled: - third",
                "networks.second.cap: 7 -> 8000",
                "networks.second.source.addresses: not set -> [192.0.2.1, 192.0.2.2]",
                "networks.second.source.mode: not set -> warn",
                "networks.standard.cap: 5000 -> 8000",
                "networks.standard.hold: not set -> 24h",
            ]
        );
        assert_eq!(lines(Some(old), old), (vec![], vec![]));
        let (document, in_force) = lines(None, "enabled = [\"standard\"]\ndefaults.cap = \"7\"");
        assert_eq!(document, ["enabled: + standard", "defaults.cap: not set -> 7"]);
        assert_eq!(in_force, ["enabled: + standard"]);
    }

    #[test]
    fn what_does_not_read_is_compared_with_nothing() {
        let good = ("new", "enabled = [\"standard\"]");
        for (old, new) in [(Some(("old", "x")), good), (Some(good), ("old", "x")), (None, ("old", "x"))] {
            let told = difference(old, new).unwrap_err();
            assert!(told.iter().all(|fault| &*fault.place.file == "old"), "{told:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC*", list in "[a-z,\"\\[\\]= {}\n]*") {
            let _ = Settings::read("any.toml", &text);
            let _ = Settings::read("any.toml", &format!("enabled = {list}"));
            let _ = Settings::read("any.toml", &format!("enabled = [\"standard\"]\nnetworks.{list}"));
        }

        #[test]
        fn a_difference_leads_from_one_document_to_the_other(
            old in prop::collection::btree_map("[a-c]", "[1-9]", 0..3),
            new in prop::collection::btree_map("[a-c]", "[1-9]", 0..3),
        ) {
            let text = |caps: &BTreeMap<String, String>| {
                let network = |(name, cap): (&String, &String)| {
                    format!("[networks.{name}]\nbase = \"standard\"\nnetwork.name = \"N\"\ncap = \"{cap}\"\n")
                };
                format!("enabled = [\"standard\"]\n{}", caps.iter().map(network).collect::<String>())
            };
            let mut caps = old.clone();
            for change in difference(Some(("old", &text(&old))), ("new", &text(&new))).unwrap().document {
                let name = change.key.split('.').nth(1).unwrap().to_owned();
                if change.key.ends_with(".cap") {
                    prop_assert_eq!(caps.get(&name), change.from.as_ref());
                    match change.to {
                        Some(cap) => caps.insert(name, cap),
                        None => caps.remove(&name),
                    };
                }
            }
            prop_assert_eq!(caps, new);
        }
    }
}
