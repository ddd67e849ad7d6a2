//! What our command lines have in common: arguments, what is printed, exit codes, tables.
//!
//! Exit codes: 0 all is well, 1 differences found, 2 could not run, which is told in one line on the error output. Never
//! decides anything, and never lets a control character of somebody's text reach the terminal.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use comfy_table::{CellAlignment, ContentArrangement, TableComponent};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

/// What a command says, for a person and for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// For a person, without the last line break.
    pub text: String,
    /// The same for a program: field names stay, amounts are strings.
    pub json: Value,
    /// Whether it found what should not be, such as a difference: exit code 1.
    pub differs: bool,
}

impl Reply {
    /// Says that all is well.
    pub fn fine(text: impl fmt::Display, json: Value) -> Reply {
        Reply { text: text.to_string(), json, differs: false }
    }

    /// What was printed already, since it may be larger than memory.
    pub fn printed(differs: bool) -> Reply {
        Reply { text: String::new(), json: Value::Null, differs }
    }

    /// Prints it as asked, and gives its exit code.
    pub fn print(&self, json: bool) -> ExitCode {
        if self.text.is_empty() && self.json.is_null() {
            // It was printed already.
        } else if json {
            say(&format!("{:#}", self.json))
        } else {
            say(self.text.trim_end())
        }
        if self.differs { ExitCode::from(1) } else { ExitCode::SUCCESS }
    }
}

/// Reads the arguments of a command line, called as `command` is.
///
/// # Errors
///
/// The exit code, where there is nothing to run: help was asked for and printed, or the arguments are wrong, and that is
/// said.
pub fn arguments<A: Parser>(command: &str) -> Result<A, ExitCode> {
    A::try_parse().map_err(|asked| {
        if !asked.use_stderr() {
            let _ = asked.print();
            return ExitCode::SUCCESS;
        }
        fail(&format!("{}; see `{command} --help`", one_line(&asked)))
    })
}

/// What is wrong with the arguments: clap's first paragraph.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "error: a command is missing".to_owned();
    }
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// Prints a text. A reader that has gone away, such as `| head`, is no fault.
pub fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Prints a remark that must not end up in a pipe.
pub fn remark(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says why a command cannot run, and gives the exit code for that.
pub fn fail(line: &str) -> ExitCode {
    remark(line);
    ExitCode::from(2)
}

/// A text with its control characters, and those that turn its direction, written out, so that none is overlooked and none reaches the terminal.
pub fn visible(text: &str) -> String {
    // The second turn the direction of what follows: a text could show itself as another.
    let hidden = |char: char| {
        char.is_control()
            || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let write = |char: char| if hidden(char) { char.escape_default().to_string() } else { char.to_string() };
    text.chars().map(write).collect()
}

/// How far something is whose end nobody knows: shown while it runs, on a terminal only.
pub fn spinner(of: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style(&format!("{{spinner}} {{human_pos}} {of}  {{elapsed}}")));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// How far something is that has so many parts: shown while it runs, on a terminal only.
pub fn progress(parts: u64, of: &str) -> ProgressBar {
    let bar = ProgressBar::new(parts);
    bar.set_style(style(&format!("{{wide_bar}} {{human_pos}}/{{human_len}} {of}  {{eta}} left")));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A label and what it says, line by line, as an answer about one thing is printed.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    lines: Vec<(String, String)>,
}

impl Lines {
    /// How wide the labels are.
    const LABEL: usize = 12;

    /// Says `value` under a label.
    pub fn line(&mut self, label: &str, value: impl fmt::Display) {
        self.lines.push((label.to_owned(), visible(&value.to_string())));
    }

    /// Says something without a label.
    pub fn note(&mut self, value: impl fmt::Display) {
        self.line("", value);
    }

    /// The same for a program: what has a label by its label, the rest as `notes`.
    pub fn json(&self) -> Value {
        let (notes, labelled): (Vec<_>, Vec<_>) = self.lines.iter().partition(|(label, _)| label.is_empty());
        let mut fields: Map<_, _> =
            labelled.into_iter().map(|(label, value)| (label.replace(' ', "_"), json!(value))).collect();
        fields.insert("notes".to_owned(), notes.into_iter().map(|(_, value)| json!(value)).collect());
        fields.into()
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (label, value)) in self.lines.iter().enumerate() {
            let line = format!("{label:<0$}{value}", Lines::LABEL);
            write!(f, "{}{}", if number == 0 { "" } else { "\n" }, line.trim_end())?;
        }
        Ok(())
    }
}

/// A table in columns: plain text without frames, which survives a pipe, a mail and a narrow terminal.
#[derive(Debug)]
pub struct Table(comfy_table::Table);

impl Table {
    /// A table with these heads; one that begins with `>` is of a column of numbers, to the right.
    pub fn new<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
        let heads: Vec<&str> = heads.into_iter().collect();
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.remove_style(TableComponent::HeaderLines);
        table.set_header(heads.iter().map(|head| head.trim_start_matches('>')));
        for (column, head) in table.column_iter_mut().zip(heads) {
            column.set_padding((0, 2));
            if head.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Table(table)
    }

    /// Adds a row; the texts may be anybody's.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().map(|cell| visible(&cell)));
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.row_iter().next().is_none()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_plain_text_in_columns_with_numbers_to_the_right() {
        let mut table = Table::new(["network", ">coins", "offer"]);
        assert!(table.is_empty());
        table.row(["a".into(), "10.5".into(), "Quest\n\u{1b}[31m".into()]);
        table.row(["long-name".into(), "1000".into(), String::new()]);
        let expected = "network    coins  offer\na           10.5  Quest\\n\\u{1b}[31m\nlong-name   1000";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn lines_are_aligned_for_a_person_and_named_for_a_program() {
        let mut lines = Lines::default();
        lines.line("signature", "sha\u{7}1");
        lines.line("secret 1", "verifies");
        lines.note("Not enabled yet.");
        assert_eq!(lines.to_string(), "signature   sha\\u{7}1\nsecret 1    verifies\n            Not enabled yet.");
        let expected = json!({"signature": "sha\\u{7}1", "secret_1": "verifies", "notes": ["Not enabled yet."]});
        assert_eq!(lines.json(), expected);
    }
}
