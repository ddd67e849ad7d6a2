//! A period as one file, CSV or JSON lines: in a fixed order, in constant memory, and after an interruption from where it was.
//!
//! Beside the file grows a folder `<file>.parts`: a file for each part of a day that has entries, and a journal of the parts
//! that are finished. At the end they are joined in order and the folder goes. The file itself appears whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::period::is_over;
use super::{CannotRun, Ledger, Period, chosen, row_json};
use crate::books::{Row, Unreadable};
use crate::money::Received;
use crate::store::{DayShard, Store};
use crate::terminal::{Reply, progress};

/// How many parts are read at once.
const WIDTH: usize = 16;

/// What the file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line of heads, then one for each entry. A text that a spreadsheet would take for a formula begins with `'`.
    Csv,
    /// One JSON object on a line for each entry.
    JsonLines,
}

/// What to export.
#[derive(Debug, Clone)]
pub struct Export {
    /// The days.
    pub period: Period,
    /// The networks; where none is named, every one that the deployment knows.
    pub networks: Vec<String>,
    /// What the file is made of.
    pub format: Format,
    /// The file, which must not be there yet.
    pub out: PathBuf,
}

/// Exports, or goes on with an export that was interrupted.
///
/// # Errors
///
/// [`CannotRun`] says what is in the way; the parts that are finished stay, and the same command goes on from there.
pub async fn export(ledger: &Ledger, export: &Export, now: Timestamp) -> Result<Reply, CannotRun> {
    if export.out.exists() {
        return Err(CannotRun::Exists(export.out.clone()));
    }
    let networks = chosen(ledger, &export.networks).await?;
    let shards: Vec<DayShard> =
        networks.iter().flat_map(|network| export.period.days().flat_map(|day| DayShard::of(network, day))).collect();
    let names: Vec<_> = networks.iter().map(|network| network.as_str()).collect();
    let what = json!({
        "from": export.period.first().to_string(),
        "to": export.period.last().to_string(),
        "format": export.format.as_str(),
        "networks": names,
    });
    let mut parts = Parts::open(&export.out, &what.to_string())?;
    let resumed = parts.finished.len();
    if let Err(problem) = read_parts(&ledger.store, export.format, &shards, &mut parts, now).await {
        parts.leave_if_empty();
        return Err(problem);
    }

    let (entries, unreadable) = parts.totals();
    parts.join(&export.out, export.format, &shards)?;
    let out = export.out.display().to_string();
    let mut text = format!("{entries} entries of {}, days in UTC, are in {out}", export.period);
    if resumed > 0 {
        text += &format!("\n{resumed} of {} parts were there from an interrupted run", shards.len());
    }
    if unreadable > 0 {
        text += &format!("\n{unreadable} rows do not read and are not in it: `cargo operator verify` says which");
    }
    let json = json!({
        "entries": entries,
        "from": export.period.first().to_string(),
        "to": export.period.last().to_string(),
        "time_zone": "UTC",
        "file": out,
        "resumed_parts": resumed,
        "parts": shards.len(),
        "unreadable": unreadable,
    });
    Ok(Reply { text, json, differs: unreadable > 0 })
}

/// Reads every part that is not finished.
async fn read_parts(
    store: &Store,
    format: Format,
    shards: &[DayShard],
    parts: &mut Parts,
    now: Timestamp,
) -> Result<(), CannotRun> {
    let bar = progress(shards.len() as u64, "parts of days");
    bar.set_position(parts.finished.len() as u64);
    let left: Vec<_> = shards.iter().filter(|shard| !parts.finished.contains_key(&name(shard))).collect();
    let mut waiting = left.into_iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < WIDTH
            && let Some(shard) = waiting.next()
        {
            let (store, shard, file) = (store.clone(), shard.clone(), parts.file(shard));
            running.spawn(async move { (part(&store, &shard, format, &file).await, shard) });
        }
        let (part, shard) = match running.join_next().await {
            None => break,
            Some(Ok((part, shard))) => (part?, shard),
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => continue,
            },
        };
        // What a day that is not over had is read again by whoever goes on with this.
        parts.finish(&shard, part, is_over(shard.day, now))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

impl Format {
    /// The format in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }
}

/// What is in a part that is finished.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    entries: u64,
    unreadable: u64,
}

/// Reads a part of a day into a file of its own; none where it has no entries.
async fn part(store: &Store, shard: &DayShard, format: Format, file: &Path) -> Result<Part, CannotRun> {
    let mut part = Part::default();
    let mut writer: Option<Lines> = None;
    // Entries of the same time come in no order that would stay: they wait for each other.
    let mut same: Vec<Row> = Vec::new();
    let mut from = None;
    loop {
        let page = store.day(shard, from).await?;
        for row in page.rows {
            let row = match row {
                Ok(row) => row,
                Err(Unreadable { .. }) => {
                    part.unreadable += 1;
                    continue;
                }
            };
            part.entries += 1;
            if same.first().is_some_and(|first| first.received_at != row.received_at) {
                write_sorted(&mut same, &mut writer, format, file)?;
            }
            same.push(row);
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    write_sorted(&mut same, &mut writer, format, file)?;
    if let Some(writer) = writer {
        writer.finish()?;
    }
    Ok(part)
}

fn write_sorted(rows: &mut Vec<Row>, writer: &mut Option<Lines>, format: Format, file: &Path) -> Result<(), CannotRun> {
    rows.sort_by(|one, other| (&one.trans_id, &one.status).cmp(&(&other.trans_id, &other.status)));
    for row in rows.drain(..) {
        let lines = match writer {
            Some(lines) => lines,
            None => writer.insert(Lines::create(file, format)?),
        };
        lines.write(&row)?;
    }
    Ok(())
}

/// A file that is written line by line, and renamed once it is whole.
struct Lines {
    file: PathBuf,
    growing: PathBuf,
    writer: BufWriter<File>,
    format: Format,
}

impl Lines {
    fn create(file: &Path, format: Format) -> Result<Lines, CannotRun> {
        // Behind the whole name: with another extension, the parts of a day would share one file.
        let mut growing = file.as_os_str().to_owned();
        growing.push(".tmp");
        let growing = PathBuf::from(growing);
        let writer = BufWriter::new(File::create(&growing).map_err(cannot_write(&growing))?);
        Ok(Lines { file: file.to_owned(), growing, writer, format })
    }

    fn write(&mut self, row: &Row) -> Result<(), CannotRun> {
        let written = match self.format {
            Format::Csv => csv_line(&mut self.writer, row.fields().iter().map(|(_, value)| cell(value.as_deref()))),
            Format::JsonLines => writeln!(self.writer, "{}", row_json(row)),
        };
        written.map_err(cannot_write(&self.growing))
    }

    fn finish(self) -> Result<(), CannotRun> {
        let synced = self.writer.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        synced.and_then(|()| fs::rename(&self.growing, &self.file)).map_err(cannot_write(&self.file))
    }
}

fn csv_line(writer: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let mut line = csv::Writer::from_writer(writer);
    line.write_record(cells)?;
    line.flush()
}

/// A cell that no spreadsheet takes for a formula: what could be one begins with `'`. A number is a number.
fn cell(value: Option<&str>) -> String {
    let value = value.unwrap_or_default();
    let formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']) && Received::read(value).is_err();
    if formula { format!("'{value}") } else { value.to_owned() }
}

/// The folder of the parts, locked as long as this lives.
struct Parts {
    folder: PathBuf,
    journal: File,
    /// The parts that are finished, by name.
    finished: BTreeMap<String, Part>,
    /// Those that another run reads again: they count now, and are not in the journal.
    fleeting: BTreeMap<String, Part>,
}

const JOURNAL: &str = "finished";

impl Parts {
    /// Opens the folder of an export, a new one or one that was interrupted.
    fn open(out: &Path, what: &str) -> Result<Parts, CannotRun> {
        let mut folder = out.as_os_str().to_owned();
        folder.push(".parts");
        let folder = PathBuf::from(folder);
        let path = folder.join(JOURNAL);
        if !folder.is_dir() {
            fs::create_dir(&folder).map_err(cannot_write(&folder))?;
        }
        let opened = File::options().create(true).append(true).read(true).open(&path);
        let mut journal = opened.map_err(cannot_write(&path))?;
        match journal.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CannotRun::InUse(out.to_owned())),
            Err(TryLockError::Error(problem)) => return Err(CannotRun::Write { file: path, problem }),
        }
        let lines = BufReader::new(&journal).lines().collect::<io::Result<Vec<_>>>().map_err(cannot_write(&path))?;
        let mut finished = BTreeMap::new();
        match lines.split_first() {
            None => writeln!(journal, "{what}").map_err(cannot_write(&path))?,
            Some((first, _)) if first != what => return Err(CannotRun::OtherExport(folder)),
            // A line that was cut off by the interruption is a part that is not finished.
            Some((_, parts)) => finished.extend(parts.iter().filter_map(|line| read_line(line))),
        }
        Ok(Parts { folder, journal, finished, fleeting: BTreeMap::new() })
    }

    fn file(&self, shard: &DayShard) -> PathBuf {
        self.folder.join(name(shard))
    }

    fn finish(&mut self, shard: &DayShard, part: Part, for_good: bool) -> Result<(), CannotRun> {
        if !for_good {
            self.fleeting.insert(name(shard), part);
            return Ok(());
        }
        let line = format!("{} {} {} .", name(shard), part.entries, part.unreadable);
        writeln!(self.journal, "{line}").map_err(cannot_write(&self.folder.join(JOURNAL)))?;
        self.finished.insert(name(shard), part);
        Ok(())
    }

    /// Leaves nothing behind where nothing is finished that another run could go on with.
    fn leave_if_empty(&self) {
        if self.finished.is_empty() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn totals(&self) -> (u64, u64) {
        let parts = self.finished.values().chain(self.fleeting.values());
        parts.fold((0, 0), |(entries, unreadable), part| (entries + part.entries, unreadable + part.unreadable))
    }

    /// Makes the file of the parts, and takes these away.
    fn join(self, out: &Path, format: Format, shards: &[DayShard]) -> Result<(), CannotRun> {
        let growing = self.folder.join("whole");
        let mut whole = BufWriter::new(File::create(&growing).map_err(cannot_write(&growing))?);
        let mut write = || {
            if format == Format::Csv {
                csv_line(&mut whole, HEADS.iter().map(|head| (*head).to_owned()))?;
            }
            for shard in shards {
                let entries = self.finished.get(&name(shard)).or_else(|| self.fleeting.get(&name(shard)));
                if entries.is_some_and(|part| part.entries > 0) {
                    io::copy(&mut File::open(self.file(shard))?, &mut whole)?;
                }
            }
            whole.flush()?;
            whole.get_ref().sync_all()
        };
        write().map_err(cannot_write(&growing))?;
        fs::rename(&growing, out).map_err(cannot_write(out))?;
        fs::remove_dir_all(&self.folder).map_err(cannot_write(&self.folder))
    }
}

/// The heads of a CSV file: the names of [`Row::fields`].
const HEADS: [&str; 29] = [
    "network",
    "day",
    "received_at",
    "trans_id",
    "status",
    "user_id",
    "currency",
    "amount",
    "held",
    "release_at",
    "absorbed",
    "void",
    "user_received",
    "amount_received",
    "payout_usd",
    "offer_id",
    "offer_name",
    "goal_id",
    "preset",
    "source_ip",
    "fingerprint",
    "by",
    "reason",
    "kind",
    "requested",
    "round_id",
    "game_id",
    "counterpart",
    "answer_status",
];

/// What a part is called: no network's name has a dot.
fn name(shard: &DayShard) -> String {
    format!("{}.{}.{}", shard.network, shard.day, shard.shard)
}

/// Reads a line of the journal that was written whole.
fn read_line(line: &str) -> Option<(String, Part)> {
    let mut words = line.strip_suffix(" .")?.split(' ');
    let name = words.next()?.to_owned();
    Some((name, Part { entries: words.next()?.parse().ok()?, unreadable: words.next()?.parse().ok()? }))
}

fn cannot_write(file: &Path) -> impl Fn(io::Error) -> CannotRun + use<> {
    let file = file.to_owned();
    move |problem| CannotRun::Write { file: file.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_could_be_a_formula_is_none_any_more_and_a_number_stays_one() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+31 20", "'+31 20"),
            ("-cmd", "'-cmd"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("-12.5", "-12.5"),
            ("quest", "quest"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(cell(Some(text)), expected);
        }
        assert_eq!(cell(None), "");
    }

    #[test]
    fn a_line_of_the_journal_that_was_cut_off_is_a_part_that_is_not_finished() {
        assert!(read_line("net.2026-11-30.7 12 0 .").is_some());
        for cut in ["net.2026-11-30.7 12 0", "net.2026-11-30.7 1", "net", "", "."] {
            assert!(read_line(cut).is_none(), "{cut}");
        }
    }
}
