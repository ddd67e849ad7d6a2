//! Which settings are in force: the newest version that reads, else what the variables say.
//!
//! Read at the start, which also opens the connection to DynamoDB, and again by a call that finds them older than a minute;
//! calls beside it go on with what is in force. A version that does not read is never put in force: the last good one stays,
//! a case is opened, and a metric counts as long as it lasts. Never changes anything under a call: it keeps the snapshot
//! that it began with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{error, info};

use crate::ledger::{About, Case, CaseKind};
use crate::log;
use crate::metrics::SettingsBroken;
use crate::preset::{Catalogue, Fault, Preset};
use crate::settings::{Settings, Version};
use crate::store::{Opened, Store, StoreError};

/// How old the settings in force may become before they are read again.
pub const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// The longest that a call waits for newer settings where others are in force.
const READING_MAX: Duration = Duration::from_secs(1);

/// Most faults that a case tells.
const FAULTS_TOLD_MAX: usize = 5;

/// What counts for a call from its begin to its end.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The version of the settings; `None` for what the variables say.
    pub version: Option<u64>,
    /// The networks that are enabled.
    pub networks: Vec<Preset>,
    /// Every network that could be.
    pub catalogue: Catalogue,
}

/// What a look at the settings came to.
#[derive(Debug)]
pub struct Looked {
    /// What is in force; `None` where no reading succeeded yet, so that nobody knows.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Whether it came into force by this look.
    pub new: bool,
}

/// The settings in force, and how newer ones come into force.
#[derive(Debug)]
pub struct InForce {
    variables: Arc<Snapshot>,
    /// The function's name, for its metrics.
    function: String,
    /// Held by the one that reads.
    reading: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Option<Arc<Snapshot>>,
    /// When they were last read, or tried to be read.
    asked_at: Option<Instant>,
    /// The newest version that was seen, whether it reads or not.
    newest: Option<u64>,
    broken: Option<Broken>,
}

/// A newest version that does not read.
#[derive(Debug, Clone)]
struct Broken {
    version: u64,
    faults: Vec<Fault>,
    /// Whether its case is known to be there.
    case_is_open: bool,
}

impl InForce {
    /// Settings that were not read yet, with what counts where there is no version of them.
    pub fn new(variables: Snapshot, function: String) -> InForce {
        InForce {
            variables: Arc::new(variables),
            function,
            reading: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// What the variables say.
    pub fn variables(&self) -> &Snapshot {
        &self.variables
    }

    /// What is in force, without a look for newer settings.
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.lock().snapshot.clone()
    }

    /// What is in force for a call that begins now: reads first what is older than [`REFRESH_EVERY`], if nobody else does.
    pub async fn look(&self, store: &Store, deadline: Instant) -> Looked {
        let now = Instant::now();
        let unchanged = |snapshot| Looked { snapshot, new: false };
        let current = self.snapshot();
        let (_reading, deadline) = match &current {
            Some(_) if !self.is_due(now) => return unchanged(current),
            Some(_) => match self.reading.try_lock() {
                Ok(reading) => (reading, deadline.min(now + READING_MAX)),
                Err(_) => return unchanged(current),
            },
            // Nothing can be decided before one reading succeeded.
            None => match tokio::time::timeout_at(deadline, self.reading.lock()).await {
                Ok(reading) => (reading, deadline),
                Err(_) => return unchanged(None),
            },
        };
        // Whoever was reading until now may have been done in between.
        let current = self.snapshot();
        if current.is_some() && !self.is_due(now) {
            return unchanged(current);
        }
        self.lock().asked_at = Some(now);
        if let Err(problem) = self.refresh(store, deadline).await {
            match &current {
                Some(_) => error!(error = %problem, "newer settings cannot be read; those in force stay"),
                None => {
                    error!(error = %problem, "the settings cannot be read; calls are answered with 503 until they can")
                }
            }
        }
        let snapshot = self.snapshot();
        let version = |snapshot: &Option<Arc<Snapshot>>| snapshot.as_ref().map(|snapshot| snapshot.version);
        let new = version(&snapshot) != version(&current);
        if let (true, Some(Snapshot { version: Some(version), .. })) = (new, snapshot.as_deref()) {
            info!(version, "settings came into force");
        }
        Looked { snapshot, new }
    }

    fn is_due(&self, now: Instant) -> bool {
        let asked_at = self.lock().asked_at;
        asked_at.is_none_or(|asked_at| now.saturating_duration_since(asked_at) >= REFRESH_EVERY)
    }

    /// Puts the newest version that reads in force, and tells of a newer one that does not.
    async fn refresh(&self, store: &Store, deadline: Instant) -> Result<(), StoreError> {
        let newest = store.newest_settings(None, deadline).await?;
        let number = newest.as_ref().map(|version| version.number);
        let seen = {
            let state = self.lock();
            state.snapshot.is_some() && state.newest == number
        };
        // What was read before is not read again.
        if !seen {
            let (snapshot, broken) = self.newest_good(store, newest, deadline).await?;
            let mut state = self.lock();
            state.snapshot = Some(snapshot);
            state.newest = number;
            state.broken = broken;
        }
        self.tell_of_broken(store, deadline).await;
        Ok(())
    }

    /// The newest version that reads, looked for from the newest on back, and what is wrong with that one if it is another.
    async fn newest_good(
        &self,
        store: &Store,
        mut candidate: Option<Version>,
        deadline: Instant,
    ) -> Result<(Arc<Snapshot>, Option<Broken>), StoreError> {
        let current = self.snapshot();
        let mut broken = None;
        loop {
            let Some(version) = candidate else { return Ok((self.variables.clone(), broken)) };
            let number = Some(version.number);
            if let Some(current) = current.as_ref().filter(|current| current.version == number) {
                return Ok((current.clone(), broken));
            }
            match version.read() {
                Ok(Settings { enabled: networks, catalogue }) => {
                    return Ok((Arc::new(Snapshot { version: number, networks, catalogue }), broken));
                }
                Err(faults) => {
                    broken.get_or_insert(Broken { version: version.number, faults, case_is_open: false });
                    candidate = store.newest_settings(number, deadline).await?;
                }
            }
        }
    }

    /// Logs a newest version that does not read, opens its case once, and counts it at every reading that finds it.
    async fn tell_of_broken(&self, store: &Store, deadline: Instant) {
        let (broken, stays) = {
            let state = self.lock();
            let Some(broken) = state.broken.clone() else { return };
            (broken, state.snapshot.as_ref().and_then(|snapshot| snapshot.version))
        };
        let now = Timestamp::now();
        let stays = stays.map_or("what the variables say".to_owned(), |version| format!("version {version}"));
        let detail = format!("{}; {stays} stays in force", faults(&broken.faults));
        error!(version = broken.version, error = detail, "the newest settings do not read");
        let about = About::Settings(broken.version);
        let case = Case { kind: CaseKind::SettingsBroken, about, detail, opened_at: now };
        let mut opened = None;
        if !broken.case_is_open {
            match store.open(&case, deadline).await {
                Ok(is) => {
                    opened = (is == Opened::New).then_some(&case);
                    if let Some(broken) = &mut self.lock().broken {
                        broken.case_is_open = true;
                    }
                }
                Err(problem) => error!(error = %problem, "no case about it yet; the next reading tries again"),
            }
        }
        let line = SettingsBroken { at: now, function: &self.function, version: broken.version, opened };
        log::call(|| line.json());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first faults of a document, for a person.
fn faults(faults: &[Fault]) -> String {
    let told: Vec<_> = faults.iter().take(FAULTS_TOLD_MAX).map(Fault::to_string).collect();
    let more = match faults.len() - told.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", told.join("; "))
}
