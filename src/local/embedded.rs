//! DynamoDB inside this process, served over HTTP: in memory, or in a folder that outlives it.
//!
//! A folder belongs to one process at a time, held by a lock that ends with the process. Never two on one folder: each has
//! caches of its own. A second one may talk to the first, which tells its endpoint inside the folder.

use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{CannotRun, bind};

/// The database in a folder.
const FILE: &str = "dynamodb.sqlite";

/// Where an embedded DynamoDB keeps its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Nowhere: it is gone with the process.
    Memory,
    Folder(PathBuf),
}

/// A DynamoDB that runs in the background until this is dropped.
#[derive(Debug)]
pub struct Embedded {
    address: SocketAddr,
    server: JoinHandle<()>,
    folder: Option<Locked>,
}

impl Embedded {
    /// An empty one in memory, at a port of its own: as many as are needed, side by side.
    ///
    /// # Errors
    ///
    /// [`CannotRun::Port`] when the machine has no free port.
    pub async fn memory() -> Result<Embedded, CannotRun> {
        Embedded::start(bind(0, "--dynamodb-port").await?, &Data::Memory)
    }

    /// Serves `data` on `listener`, inside the runtime that calls.
    ///
    /// # Errors
    ///
    /// [`CannotRun::InUse`] while another process has the folder, [`CannotRun::Folder`] when no data can be kept in it.
    pub fn start(listener: TcpListener, data: &Data) -> Result<Embedded, CannotRun> {
        let (database, folder) = match data {
            Data::Memory => (Database::memory(), None),
            Data::Folder(path) => {
                let folder = Locked::take(path)?;
                (Database::new(&path.join(FILE).to_string_lossy()), Some(folder))
            }
        };
        let database = database.map_err(|error| {
            let error = error.to_string();
            let sentence = error.split(". ").next().unwrap_or_default();
            CannotRun::Folder {
                folder: folder.as_ref().map(|folder| folder.path.clone()).unwrap_or_default(),
                problem: format!("its {FILE} does not open: {sentence}"),
            }
        })?;
        let address = listener.local_addr().map_err(CannotRun::Server)?;
        let server = tokio::spawn(dynoxide::server::serve_on(listener, database));
        Ok(Embedded { address, server, folder })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where DynamoDB's API is, such as `http://127.0.0.1:8000`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Tells the endpoint inside the folder, so that [`running`] finds it while this lives.
    pub(super) fn announce(&self) -> Result<(), CannotRun> {
        let Some(folder) = &self.folder else { return Ok(()) };
        fs::write(endpoint_file(&folder.path), self.endpoint()).map_err(|error| cannot_keep(&folder.path, &error))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The endpoint of the process that has this folder, if it told one.
pub(super) fn running(folder: &Path) -> Option<String> {
    fs::read_to_string(endpoint_file(folder)).ok()
}

fn endpoint_file(folder: &Path) -> PathBuf {
    folder.join("endpoint")
}

fn cannot_keep(folder: &Path, problem: &std::io::Error) -> CannotRun {
    CannotRun::Folder { folder: folder.to_owned(), problem: problem.to_string() }
}

/// A folder that is ours until this is dropped or the process ends, however it ends.
#[derive(Debug)]
struct Locked {
    path: PathBuf,
    _lock: File,
}

impl Locked {
    fn take(path: &Path) -> Result<Locked, CannotRun> {
        let fail = |error: std::io::Error| cannot_keep(path, &error);
        fs::create_dir_all(path).map_err(fail)?;
        let lock = File::create(path.join("lock")).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CannotRun::InUse { folder: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let folder = Locked { path: path.to_owned(), _lock: lock };
        // One that was killed could not take its word back.
        folder.forget_endpoint();
        Ok(folder)
    }

    fn forget_endpoint(&self) {
        let _ = fs::remove_file(endpoint_file(&self.path));
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.forget_endpoint();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn start(data: &Data) -> Result<Embedded, CannotRun> {
        Embedded::start(bind(0, "--dynamodb-port").await?, data)
    }

    #[tokio::test]
    async fn a_folder_belongs_to_one_at_a_time_and_tells_where_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::Folder(folder.path().join("new/folder"));
        let Data::Folder(path) = &data else { panic!() };

        let first = start(&data).await.unwrap();
        assert_eq!(running(path), None, "not before it says so");
        first.announce().unwrap();
        assert!(matches!(start(&data).await, Err(CannotRun::InUse { .. })));
        assert_eq!(running(path), Some(first.endpoint()));

        drop(first);
        assert_eq!(running(path), None);
        start(&data).await.unwrap();
    }

    #[tokio::test]
    async fn what_a_killed_process_left_behind_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(endpoint_file(folder.path()), "http://127.0.0.1:1").unwrap();
        let _embedded = start(&Data::Folder(folder.path().to_owned())).await.unwrap();
        assert_eq!(running(folder.path()), None);
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, "not a database, and longer than the header of one".repeat(9)).unwrap();
        let before = fs::read(&file).unwrap();
        let error = start(&Data::Folder(folder.path().to_owned())).await.unwrap_err();
        assert!(error.to_string().contains("dynamodb.sqlite does not open: "), "{error}");
        assert_eq!(fs::read(&file).unwrap(), before);
    }
}
