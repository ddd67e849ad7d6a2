//! Whole sessions at the command line with their exact output: `tests/transcripts/*.txt`, replayed as a reader would type them.
//!
//! A `$` line is a command, a `#` line a remark, everything else is what the command printed;
//! `SNAPSHOTS=overwrite cargo test transcripts` writes what it prints now. A session runs in an empty folder with the
//! repository's `events/` and README, in a shell that is set up for an AWS account which must never be reached.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use postback::config::VARIABLES;

#[test]
fn every_session_prints_exactly_what_its_transcript_says() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sessions = fs::read_dir(repository.join("tests/transcripts")).unwrap();
    for session in sessions.map(|session| session.unwrap().path()).filter(|path| path.is_file()) {
        let folder = tempfile::tempdir().unwrap();
        copy(&repository.join("events"), &folder.path().join("events"));
        fs::copy(repository.join("README.md"), folder.path().join("README.md")).unwrap();
        assert_replays(&session, folder.path(), &BTreeMap::new());
    }
}

/// Replays a session in a folder, with these variables beside those of its lines, and compares.
pub fn assert_replays(session: &Path, folder: &Path, variables: &BTreeMap<String, String>) {
    let replayed = replay(&fs::read_to_string(session).unwrap(), folder, variables);
    snapbox::assert_data_eq!(replayed, snapbox::Data::read_from(session, None));
}

/// The transcript with what its commands print now.
fn replay(transcript: &str, folder: &Path, variables: &BTreeMap<String, String>) -> String {
    let mut replayed = String::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            writeln!(replayed, "{line}\n{}", run(command, folder, variables)).unwrap();
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
fn run(command: &str, folder: &Path, deployment: &BTreeMap<String, String>) -> String {
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
    process.envs(ANOTHER_ACCOUNT).envs(deployment).envs(variables);
    if !deployment.is_empty() {
        process.env_remove("AWS_CA_BUNDLE");
    }
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
const ANOTHER_ACCOUNT: [(&str, &str); 6] = [
    ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"),
    ("AWS_REGION", "eu-west-1"),
    ("AWS_ACCESS_KEY_ID", "AKIAREAL"),
    ("AWS_SECRET_ACCESS_KEY", "real"),
    ("AWS_CA_BUNDLE", "/nowhere.pem"),
];

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
