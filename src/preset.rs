//! A network as data: how its postback is signed, what its parameters and statuses mean, what it wants to hear.
//!
//! The networks themselves are the files in `presets/`. No network is ever named in code.

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::id::Network;
use crate::signature::Recipe;

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/presets");

/// One network, typed and validated.
#[derive(Debug, Clone)]
pub struct Preset {
    /// The name of its file and of its path.
    pub network: Network,
    /// What its file says.
    pub settings: Settings,
}

/// What a preset's file says. Unknown keys are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether it is enabled where a deployment names no networks.
    #[serde(default)]
    pub default: bool,
    /// How its requests are signed.
    pub signature: Recipe,
    /// What its parameters are called.
    pub parameters: Parameters,
    /// What its statuses mean.
    pub statuses: Statuses,
    /// What it wants to hear.
    pub answers: Answers,
}

/// The network's names for what we read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The app's user.
    pub user_id: String,
    /// The conversion, the same in every attempt and in its reversal.
    pub trans_id: String,
    /// What happened: one of [`Statuses`].
    pub status: String,
    /// The coins.
    pub amount: String,
    /// The offer's id.
    pub offer_id: Option<String>,
    /// The offer's name.
    pub offer_name: Option<String>,
    /// The goal's id.
    pub goal_id: Option<String>,
    /// What the network pays the app, in US dollars.
    pub payout_usd: Option<String>,
}

/// The values of the status parameter, by what they mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statuses {
    /// Coins are given.
    pub credit: Vec<String>,
    /// What was given is taken back.
    pub reversal: Vec<String>,
}

/// The bodies that the network takes as done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// For what moved coins or was recorded for the first time.
    pub applied: String,
    /// For what was known.
    pub duplicate: String,
}

/// Why there is no such preset.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    #[error("no network of that name is shipped; there are: {}", .0.join(", "))]
    Unknown(Vec<String>),
    #[error("its preset does not read: {0}")]
    Unreadable(String),
    #[error("its preset gives the status `{0}` two meanings")]
    Ambiguous(String),
}

/// The shipped preset of that name.
///
/// # Errors
///
/// [`PresetError`] says which networks there are, or what is wrong in the file and where.
pub fn shipped(network: &Network) -> Result<Preset, PresetError> {
    let Some(file) = SHIPPED.get_file(format!("{network}.toml")) else {
        return Err(PresetError::Unknown(names().map(String::from).collect()));
    };
    read(network, file.contents_utf8().unwrap_or_default())
}

/// The networks that are enabled where a deployment names none: those whose preset says so.
pub fn defaults() -> impl Iterator<Item = Preset> {
    names().filter_map(|name| shipped(&Network::new(name).ok()?).ok()).filter(|preset| preset.settings.default)
}

/// Every shipped network's name, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.files().filter_map(|file| file.path().file_name()?.to_str()?.strip_suffix(".toml"))
}

/// Reads a preset from its text.
///
/// # Errors
///
/// [`PresetError`] says what is wrong and where.
pub fn read(network: &Network, text: &str) -> Result<Preset, PresetError> {
    let settings: Settings = toml::from_str(text).map_err(|error| PresetError::Unreadable(error.to_string()))?;
    let statuses = &settings.statuses;
    if let Some(status) = statuses.credit.iter().find(|status| statuses.reversal.contains(status)) {
        return Err(PresetError::Ambiguous(status.clone()));
    }
    Ok(Preset { network: network.clone(), settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_preset_reads_and_at_least_one_is_enabled_by_default() {
        for name in names() {
            let preset = shipped(&Network::new(name).unwrap()).unwrap();
            assert_eq!(preset.network.as_str(), name);
        }
        assert!(defaults().count() > 0);
    }

    #[test]
    fn an_unknown_key_and_an_ambiguous_status_are_refused_with_their_place() {
        let network = Network::new("mine").unwrap();
        let text = SHIPPED.files().next().unwrap().contents_utf8().unwrap();
        let error = read(&network, &text.replace("[statuses]", "[statuses]\nmaybe = []")).unwrap_err().to_string();
        assert!(error.contains("maybe") && error.contains("line"), "{error}");
        let error = read(&network, &text.replace("reversal = [", "reversal = [\"1\", ")).unwrap_err().to_string();
        assert_eq!(error, "its preset gives the status `1` two meanings");
    }
}
