//! `operator reconcile`: opens the files of a comparison, and writes its results where they are wanted.
//!
//! Decides nothing about money. Writes nothing unless the whole comparison succeeded, and never half a file: each is written
//! beside its place and then put there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::books::Unreadable;
use crate::id::{IdError, Network};
use crate::operator::{CannotRun, Ledger};
use crate::preset::Identity;
use crate::reconcile::profile::{Draft, Profile, ProfileError};
use crate::reconcile::show::{self, Heading, ShowError};
use crate::reconcile::sort::Limits;
use crate::reconcile::statement::{Statement, StatementError};
use crate::reconcile::{Failure, NoTime, Ours, Reconciliation, Report};
use crate::store::DayShard;

/// A network's own report against our entries.
#[derive(Debug, Clone, Args)]
pub struct ReconcileArguments {
    /// The network's name
    pub network: String,
    /// Its statement: CSV, or cells separated by semicolons or tabs
    pub statement: PathBuf,
    #[command(flatten)]
    pub draft: Draft,
    /// A file that says how this network's statements are read; options beside it win
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Where to save how this one was read
    #[arg(long, value_name = "FILE")]
    pub save_profile: Option<PathBuf>,
    /// The first day that the statement covers; else that of its earliest line
    #[arg(long, value_name = "DATE")]
    pub from: Option<Date>,
    /// The last day that the statement covers; else that of its latest line
    #[arg(long, value_name = "DATE")]
    pub to: Option<Date>,
    /// Where to write every finding as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Where to write a page for a browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Why a comparison cannot run: one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CannotReconcile {
    #[error("{}: {problem}", file.display())]
    File { file: PathBuf, problem: io::Error },
    #[error("{} is there already, or is asked for twice: name another file, or delete it", .0.display())]
    Exists(PathBuf),
    #[error("{0}")]
    Options(ProfileError),
    #[error("{}: {problem}", file.display())]
    Profile { file: PathBuf, problem: ProfileError },
    #[error("{}: {problem}", file.display())]
    Statement { file: PathBuf, problem: StatementError },
    #[error("{0}")]
    Comparison(Failure),
    #[error("network: `{}`: {problem}", name.escape_debug())]
    Network { name: String, problem: IdError },
    #[error("`{0}` sends no id of a conversion, so none of its lines can be matched with an entry")]
    NoId(Network),
    #[error("the entry {} does not read: {}: `operator verify` says more", .0.row, .0.problem)]
    Entry(Unreadable),
    #[error("{0}")]
    NoTime(#[from] NoTime),
    #[error("{0}")]
    Output(ShowError),
}

/// Compares a statement with the entries of a ledger, and writes the result to `output`. Returns whether everything matches.
///
/// # Errors
///
/// [`CannotRun`]; see [`Job::finish`].
pub async fn reconcile(
    arguments: ReconcileArguments,
    connect: impl FnOnce() -> Result<Ledger, CannotRun>,
    now: Timestamp,
    json: bool,
    output: &mut impl Write,
) -> Result<bool, CannotRun> {
    let name = arguments.network.clone();
    let network = Network::new(&name).map_err(|problem| CannotReconcile::Network { name, problem })?;
    // What is wrong with the statement is told before DynamoDB is asked for anything.
    let mut job = Job::open(arguments)?;
    let ledger = connect()?;
    if let Ok(preset) = ledger.config.catalogue.preset(&network)
        && matches!(preset.parameters.trans_id, Identity::Fingerprint(_))
    {
        return Err(CannotReconcile::NoId(network).into());
    }
    let mut pages = ledger.store.days(job.days(now).flat_map(|day| DayShard::of(&network, day)).collect::<Vec<_>>());
    while let Some(rows) = pages.next().await? {
        for row in rows {
            let row = row.map_err(CannotReconcile::Entry)?;
            if let Some(ours) = Ours::of(&row).map_err(CannotReconcile::NoTime)? {
                job.ours(&ours)?;
            }
        }
    }
    Ok(job.finish(json, output)?)
}

/// A comparison whose statement is open, waiting for our entries.
pub struct Job {
    arguments: ReconcileArguments,
    draft: Draft,
    reconciliation: Reconciliation<File, File, fn() -> io::Result<File>>,
}

impl Job {
    /// Opens the statement, and finds its columns, its notation and its days.
    ///
    /// # Errors
    ///
    /// [`CannotReconcile`]; nothing was written.
    pub fn open(arguments: ReconcileArguments) -> Result<Job, CannotReconcile> {
        let written = [&arguments.csv, &arguments.html, &arguments.save_profile];
        let written: Vec<_> = written.into_iter().flatten().collect();
        for (place, file) in written.iter().enumerate() {
            if file.symlink_metadata().is_ok() || written[..place].contains(file) {
                return Err(CannotReconcile::Exists((*file).clone()));
            }
        }
        let draft = match &arguments.profile {
            None => arguments.draft.clone(),
            Some(file) => {
                let wrong = |problem| CannotReconcile::Profile { file: file.clone(), problem };
                let text = fs::read_to_string(file)
                    .map_err(|problem| CannotReconcile::File { file: file.clone(), problem })?;
                arguments.draft.over(&Draft::from_toml(&text).map_err(wrong)?).map_err(wrong)?
            }
        };
        let profile = Profile::of(&draft).map_err(CannotReconcile::Options)?;
        let file = &arguments.statement;
        let wrong = |problem| CannotReconcile::Statement { file: file.clone(), problem };
        let input = File::open(file).map_err(|problem| CannotReconcile::File { file: file.clone(), problem })?;
        let statement = Statement::open(input, profile).map_err(wrong)?;
        let period = statement.period(arguments.from, arguments.to).map_err(wrong)?;
        let scratch: fn() -> io::Result<File> = tempfile::tempfile;
        let reconciliation =
            Reconciliation::new(statement, period, scratch, Limits::DEFAULT).map_err(CannotReconcile::Comparison)?;
        Ok(Job { arguments, draft, reconciliation })
    }

    /// The days in UTC whose entries are needed, to the newest; what is given from before does no harm.
    pub fn days(&self, now: Timestamp) -> impl Iterator<Item = Date> + use<> {
        let day = |time: Timestamp| time.to_zoned(TimeZone::UTC).date();
        // A clock that is behind hides no entry of today.
        let (first, last) = (day(self.reconciliation.needed_from()), day(now).saturating_add(1.day()));
        first.series(1.day()).take_while(move |day| *day <= last)
    }

    /// Takes an entry of the network, in any order, each once.
    ///
    /// # Errors
    ///
    /// [`CannotReconcile::Comparison`].
    pub fn ours(&mut self, ours: &Ours) -> Result<(), CannotReconcile> {
        self.reconciliation.ours(ours).map_err(CannotReconcile::Comparison)
    }

    /// Compares, writes the files that are wanted, then the result to `output`, with `json` for a program. Returns
    /// whether everything matches.
    ///
    /// # Errors
    ///
    /// [`CannotReconcile`]; a file is there whole or not at all, and nothing went to `output` unless that itself failed.
    pub fn finish(self, json: bool, output: &mut impl Write) -> Result<bool, CannotReconcile> {
        let Job { arguments, draft, reconciliation } = self;
        let mut report = reconciliation.finish().map_err(|failure| match failure {
            Failure::Statement(problem) => CannotReconcile::Statement { file: arguments.statement.clone(), problem },
            failure => CannotReconcile::Comparison(failure),
        })?;
        let statement = arguments.statement.display().to_string();
        let heading = Heading { network: &arguments.network, statement: &statement };
        let mut ready = Vec::new();
        if let Some(file) = &arguments.csv {
            ready.push(Ready::write(file, |output| show::csv(&mut report, output))?);
        }
        if let Some(file) = &arguments.html {
            ready.push(Ready::write(file, |output| show::page(&mut report, heading, output))?);
        }
        if let Some(file) = &arguments.save_profile {
            let text = draft.to_toml().map_err(CannotReconcile::Options)?;
            ready.push(Ready::write(file, |output| Ok(output.write_all(text.as_bytes())?))?);
        }
        for file in ready {
            file.place()?;
        }
        let shown = if json { show::json(&mut report, heading, output) } else { text(&mut report, heading, output) };
        match shown {
            // A reader that has gone away, such as `| head`, is no fault.
            Err(ShowError::Output(gone)) if gone.kind() == io::ErrorKind::BrokenPipe => {}
            shown => shown.map_err(CannotReconcile::Output)?,
        }
        Ok(report.summary.is_clean())
    }
}

fn text(report: &mut Report<File>, heading: Heading<'_>, output: &mut impl Write) -> Result<(), ShowError> {
    show::text(report, heading, output)
}

/// A whole file that is not in its place yet.
struct Ready {
    written: tempfile::NamedTempFile,
    place: PathBuf,
}

impl Ready {
    fn write(
        place: &Path,
        content: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), ShowError>,
    ) -> Result<Ready, CannotReconcile> {
        let failed = |problem| CannotReconcile::File { file: place.to_owned(), problem };
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut written = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let mut output = BufWriter::new(written.as_file_mut());
        content(&mut output).and_then(|()| Ok(output.flush()?)).map_err(|error| match error {
            ShowError::Output(problem) => failed(problem),
            ShowError::Result(failure) => CannotReconcile::Comparison(failure),
        })?;
        drop(output);
        Ok(Ready { written, place: place.to_owned() })
    }

    fn place(self) -> Result<(), CannotReconcile> {
        let Ready { written, place } = self;
        written.persist(&place).map(drop).map_err(|error| CannotReconcile::File { file: place, problem: error.error })
    }
}
