//! Whole sessions at the command line with their exact output: `tests/transcripts/*.txt`, replayed as a reader would type them.
//!
//! A `$` line is a command, a `#` line a remark, everything else is what the command printed;
//! `SNAPSHOTS=overwrite cargo test transcripts` writes what it prints now. A session runs in an empty folder with the
//! repository's `events/` and README, in a shell that is set up for an AWS account which must never be reached. A session
//! called `deployed_…` has the files of the folder of its name, and a shell that is set up for a deployment of its own; times
//! are not shown in it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use postback::config::{Config, VARIABLES};
use postback::local::{self, Embedded};

use crate::world::PATIENCE;

#[tokio::test]
async fn every_session_prints_exactly_what_its_transcript_says() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(repository.join("tests/transcripts")).unwrap().map(|entry| entry.unwrap().path());
    for session in entries.filter(|path| path.is_file()) {
        let folder = tempfile::tempdir().unwrap();
        copy(&repository.join("events"), &folder.path().join("events"));
        fs::copy(repository.join("README.md"), folder.path().join("README.md")).unwrap();
        let name = session.file_stem().unwrap().to_str().unwrap();
        let deployment = match name.starts_with("deployed_") {
            true => {
                copy(&session.with_extension(""), folder.path());
                Some(deployment().await)
            }
            false => None,
        };
        let shell = deployment.as_ref().map_or_else(another_account, |(_, shell)| shell.clone());
        let (transcript, path) = (fs::read_to_string(&session).unwrap(), folder.path().to_owned());
        // Beside the DynamoDB of the session, which serves meanwhile.
        let replayed = tokio::task::spawn_blocking(move || replay(&transcript, &path, &shell)).await.unwrap();
        let replayed = if deployment.is_some() { without_times(&replayed) } else { replayed };
        snapbox::assert_data_eq!(replayed, snapbox::Data::read_from(&session, None));
    }
}

/// The variables of a shell beside ours, which are empty unless they are among them.
pub type Shell = BTreeMap<String, String>;

/// Replays one session against a deployment that is there already, and compares.
pub async fn assert_replays(session: &Path, shell: Shell) {
    let replayed = replayed(session, shell).await;
    snapbox::assert_data_eq!(replayed, snapbox::Data::read_from(session, None));
}

/// The same where times are those of the test.
pub async fn assert_replays_without_times(session: &Path, shell: Shell) {
    let replayed = without_times(&replayed(session, shell).await);
    snapbox::assert_data_eq!(replayed, snapbox::Data::read_from(session, None));
}

/// What a session prints in a folder with the files of the folder of its name.
async fn replayed(session: &Path, shell: Shell) -> String {
    let folder = tempfile::tempdir().unwrap();
    let files = session.with_extension("");
    if files.is_dir() {
        copy(&files, folder.path());
    }
    let (transcript, path) = (fs::read_to_string(session).unwrap(), folder.path().to_owned());
    tokio::task::spawn_blocking(move || replay(&transcript, &path, &shell)).await.unwrap()
}

/// A deployment with empty tables, and the shell of somebody who works on it.
async fn deployment() -> (Embedded, Shell) {
    let embedded = Embedded::memory().await.unwrap();
    let own = [
        ("AWS_ENDPOINT_URL_DYNAMODB", embedded.endpoint()),
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKIAOWN".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "own".to_owned()),
        ("USER", "ana".to_owned()),
    ];
    let variable = |name: &str| own.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let config = Config::read(variable).unwrap();
    local::create_tables(&config.aws.dynamodb(PATIENCE), &config.tables).await.unwrap();
    (embedded, own.map(|(name, value)| (name.to_owned(), value)).into())
}

/// A text with what it says instead of each moment, which is as long.
fn without_times(text: &str) -> String {
    const SHAPES: [(&str, &str); 2] =
        [("0000-00-00T00:00:00Z", "yyyy-mm-ddThh:mm:ssZ"), ("0000-00-00T00:00:00.000Z", "yyyy-mm-ddThh:mm:ss.mmmZ")];
    let fits = |bytes: &[u8], shape: &str| {
        let one = |(byte, shape): (&u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { *byte == shape };
        bytes.len() >= shape.len() && bytes.iter().zip(shape.bytes()).all(one)
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len() {
        for (shape, shown) in SHAPES.into_iter().filter(|(shape, _)| fits(&bytes[at..], shape)).collect::<Vec<_>>() {
            bytes[at..at + shape.len()].copy_from_slice(shown.as_bytes());
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The transcript with what its commands print now.
fn replay(transcript: &str, folder: &Path, shell: &Shell) -> String {
    let mut replayed = String::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            writeln!(replayed, "{line}\n{}", run(command, folder, shell)).unwrap();
        } else if line.starts_with('#') {
            writeln!(replayed, "{line}").unwrap();
        }
    }
    format!("{}\n", replayed.trim_end())
}

/// The words of a line, as a shell sees them: apart at spaces, together in single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words
}

/// Runs `[NAME=value] cargo local …` or `… cargo operator …`: what it prints, and the exit code where that is not 0.
fn run(command: &str, folder: &Path, shell: &Shell) -> String {
    let words = shell_words(command);
    let mut words = words.iter().map(String::as_str).peekable();
    let mut variables = Vec::new();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        variables.push((name, value));
        words.next();
    }
    assert_eq!(words.next(), Some("cargo"), "{command}");
    let mut process = Command::new(match words.next() {
        Some("local") => env!("CARGO_BIN_EXE_local"),
        Some("operator") => env!("CARGO_BIN_EXE_operator"),
        _ => panic!("no command of ours: {command}"),
    });
    process.current_dir(folder).envs(VARIABLES.iter().map(|variable| (variable.name, "")));
    // What the shell of this test has set for AWS is nothing that the session's shell has.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        process.env_remove(name);
    }
    process.envs(shell).envs(variables);
    let output = process.args(words).output().unwrap();

    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (printed, errors) = (text(output.stdout), text(output.stderr));
    match output.status.code() {
        Some(0) => format!("{printed}{errors}"),
        code => {
            // A command that cannot run says so in one line and nothing else.
            let one_line = printed.is_empty() && errors.lines().count() == 1;
            assert!(code != Some(2) || one_line, "{command}: {printed}{errors}");
            format!("{printed}{errors}[exit code {}]\n", code.unwrap())
        }
    }
}

/// What a developer's shell may hold: nobody answers there, so a command that believes it fails.
fn another_account() -> Shell {
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIAREAL"),
        ("AWS_SECRET_ACCESS_KEY", "real"),
        ("AWS_CA_BUNDLE", "/nowhere.pem"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
