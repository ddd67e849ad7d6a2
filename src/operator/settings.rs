//! The commands about the settings that change without a deployment: what is in force, what a document would change, who put
//! which version and why, and the way back.
//!
//! Puts nothing that the function would not take, and nothing that was not compared with the newest version.

use std::fmt::Write;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{CannotRun, Ledger, deadline};
use crate::ledger::Decision;
use crate::preset::Fault;
use crate::settings::{Change, Difference, Settings, Version, difference};
use crate::store::PutSettings;
use crate::terminal::{Reply, Table, visible};

/// How the settings of a deployment stand.
#[derive(Debug)]
pub struct Standing {
    /// The newest version, whether it reads or not.
    newest: Option<Version>,
    /// The newest version that reads.
    in_force: Option<Version>,
    /// Those that are newer than that and do not read, the newest first.
    broken: Vec<(u64, Vec<Fault>)>,
}

impl Standing {
    /// Reads from the newest version on back to the first that reads.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Store`].
    pub async fn of(ledger: &Ledger) -> Result<Standing, CannotRun> {
        let newest = ledger.store.newest_settings(None, deadline()).await?;
        let (mut candidate, mut broken) = (newest.clone(), Vec::new());
        while let Some(version) = candidate {
            match version.read() {
                Ok(_) => return Ok(Standing { newest, in_force: Some(version), broken }),
                Err(faults) => broken.push((version.number, faults)),
            }
            candidate = ledger.store.newest_settings(Some(version.number), deadline()).await?;
        }
        Ok(Standing { newest, in_force: None, broken })
    }

    /// What counts now, in words.
    fn in_words(&self) -> String {
        match &self.in_force {
            Some(version) => format!("version {} is in force", version.number),
            None => "no version is in force: NETWORKS and NETWORKS_FILE count".to_owned(),
        }
    }

    /// What of the versions does not read, and is therefore not in force; a line for each fault.
    fn warnings(&self) -> Vec<String> {
        let told = |(number, faults): &(u64, Vec<Fault>)| {
            let first = format!("version {number} does not read, so {}:", self.in_words());
            std::iter::once(first).chain(faults.iter().map(|fault| format!("  {fault}"))).collect::<Vec<_>>()
        };
        self.broken.iter().flat_map(told).collect()
    }
}

/// A version with its document, and what a person should know of it beside that.
#[derive(Debug)]
pub struct Shown {
    /// The document as it was put.
    pub reply: Reply,
    /// Who put it and what is wrong, line by line: no part of the document.
    pub remarks: Vec<String>,
}

/// One version, or what is in force.
///
/// # Errors
///
/// [`CannotRun::NoVersion`], [`CannotRun::NoSettings`] and [`CannotRun::Store`].
pub async fn show(ledger: &Ledger, number: Option<u64>) -> Result<Shown, CannotRun> {
    let (version, warnings) = match number {
        Some(number) => (version(ledger, number).await?, Vec::new()),
        None => {
            let standing = Standing::of(ledger).await?;
            let warnings = standing.warnings();
            (standing.in_force.ok_or(CannotRun::NoSettings)?, warnings)
        }
    };
    let faults = version.read().err().unwrap_or_default();
    let about =
        format!("version {}, put by {} at {}: {}", version.number, version.who, moment(version.at), version.why);
    let mut remarks = vec![visible(&about)];
    remarks.extend(warnings);
    remarks.extend(faults.iter().map(|fault| format!("does not read: {fault}")));
    let json = json!({
        "version": version.number, "who": version.who, "at": moment(version.at), "why": version.why,
        "document": version.document, "faults": lines(&faults),
    });
    Ok(Shown { reply: Reply { text: version.document, json, differs: !faults.is_empty() }, remarks })
}

/// The text of a document.
///
/// # Errors
///
/// [`CannotRun::File`].
pub fn document(file: &Path) -> Result<String, CannotRun> {
    std::fs::read_to_string(file).map_err(|problem| CannotRun::File { file: file.to_owned(), problem })
}

/// Every fault of a document, a line each; `None` where it reads. Asks nothing of the ledger.
pub fn faulty(name: &str, document: &str) -> Option<Reply> {
    let faults = Settings::read(name, document).err()?;
    let json = json!({ "faults": lines(&faults) });
    Some(Reply { text: visible_lines(&lines(&faults)), json, differs: true })
}

/// A document that reads, compared with what is in force, and the number that it would get.
#[derive(Debug)]
pub struct Plan {
    standing: Standing,
    difference: Difference,
    document: String,
    number: u64,
}

impl Plan {
    /// Compares a document that reads with what is in force.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Faults`] where it does not read, and [`CannotRun::Store`].
    pub async fn of(ledger: &Ledger, name: &str, document: String) -> Result<Plan, CannotRun> {
        let standing = Standing::of(ledger).await?;
        let old = standing.in_force.as_ref().map(|version| (version.name(), version.document.as_str()));
        let old = old.as_ref().map(|(name, document)| (name.as_str(), *document));
        let difference = difference(old, (name, &document)).map_err(faults)?;
        let newest = standing.newest.as_ref().map_or(0, |newest| newest.number);
        let last = || CannotRun::argument("version", &newest.to_string(), "no version can follow it; delete that row");
        let number = newest.checked_add(1).ok_or_else(last)?;
        Ok(Plan { standing, difference, document, number })
    }

    /// That there is something to put.
    ///
    /// # Errors
    ///
    /// [`CannotRun::NoChange`] where the document is the newest version, word for word.
    pub fn must_change(&self) -> Result<(), CannotRun> {
        match &self.standing.newest {
            Some(newest) if newest.document == self.document => Err(CannotRun::NoChange { version: newest.number }),
            _ => Ok(()),
        }
    }

    /// What it would change.
    pub fn reply(&self) -> Reply {
        let mut text = self.standing.warnings();
        match self.must_change() {
            Ok(()) => {
                text.push(format!("{}; this would be version {}", self.standing.in_words(), self.number));
                text.push(in_words(&self.difference));
            }
            Err(same) => text.push(same.to_string()),
        }
        let in_force = self.standing.in_force.as_ref().map(|version| version.number);
        let json = json!({ "in_force": in_force, "version": self.number, "changes": changes(&self.difference) });
        Reply::fine(visible_lines(&text), json)
    }

    /// Puts it as the next version, unless somebody else put one since it was compared.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Overtaken`] and [`CannotRun::Store`].
    pub async fn put(self, ledger: &Ledger, decision: Decision, now: Timestamp) -> Result<Reply, CannotRun> {
        let Plan { document, number, difference, .. } = self;
        let version = Version { number, document, who: decision.by, at: now, why: decision.reason };
        match ledger.store.put_settings(&version, deadline()).await? {
            PutSettings::Done => {
                let text = format!("Put as version {number}; every process has it within a minute.");
                Ok(Reply::fine(text, json!({ "version": number, "changes": changes(&difference) })))
            }
            PutSettings::Taken(other) => Err(CannotRun::Overtaken { version: number, by: visible(&other.who) }),
        }
    }
}

/// Every version, the newest first.
///
/// # Errors
///
/// [`CannotRun::Store`].
pub async fn history(ledger: &Ledger) -> Result<Reply, CannotRun> {
    let standing = Standing::of(ledger).await?;
    let in_force = standing.in_force.as_ref().map(|version| version.number);
    let state = |number: u64| match in_force {
        Some(version) if version == number => "in force",
        Some(version) if version > number => "",
        _ => "does not read",
    };
    let (mut table, mut json) = (Table::new([">version", "when", "who", "", "why"]), Vec::new());
    let mut before = None;
    loop {
        let page = ledger.store.settings_history(before, deadline()).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.number);
        for Version { number, who, at, why, .. } in page {
            json.push(json!({
                "version": number, "at": moment(at), "who": &who, "why": &why, "in_force": in_force == Some(number),
            }));
            table.row([number.to_string(), moment(at), who, state(number).to_owned(), why]);
        }
    }
    if table.is_empty() {
        return Err(CannotRun::NoSettings);
    }
    Ok(Reply::fine(table, json.into()))
}

/// What differs between two versions: where one is not named, the newest and the one before the other.
///
/// # Errors
///
/// [`CannotRun::NoVersion`], [`CannotRun::NoSettings`], [`CannotRun::Faults`] and [`CannotRun::Store`].
pub async fn diff(ledger: &Ledger, from: Option<u64>, to: Option<u64>) -> Result<Reply, CannotRun> {
    let to = match to {
        Some(number) => version(ledger, number).await?,
        None => ledger.store.newest_settings(None, deadline()).await?.ok_or(CannotRun::NoSettings)?,
    };
    let from = match from {
        Some(number) => Some(version(ledger, number).await?),
        None => ledger.store.newest_settings(Some(to.number), deadline()).await?,
    };
    let old = from.as_ref().map(|version| (version.name(), version.document.as_str()));
    let old = old.as_ref().map(|(name, document)| (name.as_str(), *document));
    let difference = difference(old, (&to.name(), &to.document)).map_err(faults)?;
    let before = from.as_ref().map_or("nothing".to_owned(), Version::name);
    let text = format!("from {before} to {}\n{}", to.name(), in_words(&difference));
    let json = json!({
        "from": from.map(|version| version.number), "to": to.number, "changes": changes(&difference),
    });
    Ok(Reply { text, json, differs: difference != Difference::default() })
}

/// One version of the settings.
///
/// # Errors
///
/// [`CannotRun::NoVersion`] and [`CannotRun::Store`].
pub async fn version(ledger: &Ledger, number: u64) -> Result<Version, CannotRun> {
    ledger.store.settings(number, deadline()).await?.ok_or(CannotRun::NoVersion(number))
}

fn faults(faults: Vec<Fault>) -> CannotRun {
    CannotRun::Faults(visible(&lines(&faults).join("; ")))
}

fn lines(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

fn visible_lines(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().flat_map(|text| text.lines()).map(visible).collect();
    lines.join("\n")
}

/// Both halves of a difference: the document's, and what that comes to.
fn in_words(Difference { document, in_force }: &Difference) -> String {
    let mut text = String::new();
    for (title, changes, none) in
        [("in the document", document, "no key"), ("in force", in_force, "nothing, for the networks that are enabled")]
    {
        let _ = writeln!(text, "{title}:");
        for change in changes {
            let _ = writeln!(text, "  {}", visible(&change.to_string()));
        }
        if changes.is_empty() {
            let _ = writeln!(text, "  {none}");
        }
    }
    text.trim_end().to_owned()
}

fn changes(Difference { document, in_force }: &Difference) -> Value {
    let list = |changes: &[Change]| -> Vec<Value> {
        changes.iter().map(|change| json!({ "key": change.key, "from": change.from, "to": change.to })).collect()
    };
    json!({ "document": list(document), "in_force": list(in_force) })
}

fn moment(at: Timestamp) -> String {
    format!("{at:.0}")
}
