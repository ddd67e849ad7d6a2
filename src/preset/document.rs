//! A TOML document as a tree whose every value knows its place, and a way to read it that finds every fault at once.
//!
//! Knows nothing of networks. A fault never shows a value: a document may hold what a person pasted by mistake.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named to us.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

/// What is wrong in a document: where, with which key, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands, or should stand.
    pub place: Place,
    /// The key with the tables that it is in; empty for what is no TOML.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { place: Place { file, line }, key, problem } = self;
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        write!(f, "{file}, line {line}: {key}{problem}")
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    pub kind: Kind,
}

/// What a value is. Numbers and dates stay text, so that nothing is printed anew.
#[derive(Debug, Clone)]
pub enum Kind {
    Text(String),
    Number(String),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Text(_) => "text",
            Kind::Number(_) => "a number",
            Kind::Flag(_) => "true or false",
            Kind::List(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }
}

/// Most faults of a text that is no TOML at all.
const SYNTAX_FAULTS_MAX: usize = 3;

/// Reads a TOML document.
///
/// # Errors
///
/// The first places where it is no TOML: of a file that is something else, every line would be one.
pub fn parse(file: &str, text: &str) -> Result<Node, Vec<Fault>> {
    let file: Arc<str> = file.into();
    let place = |at: usize| Place {
        file: file.clone(),
        line: text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1,
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let fault = |error: toml::de::Error| Fault {
            place: place(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            problem: format!("no TOML: {}", error.message()),
        };
        return Err(errors.into_iter().take(SYNTAX_FAULTS_MAX).map(fault).collect());
    }
    Ok(node(DeValue::Table(table.into_inner()), 0, &place))
}

fn node(value: DeValue<'_>, at: usize, place: &dyn Fn(usize) -> Place) -> Node {
    let kind = match value {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        // One that is not decimal keeps a mark, so that nobody reads it as if it were.
        DeValue::Integer(number) if number.radix() == 10 => Kind::Number(number.as_str().to_owned()),
        DeValue::Integer(number) => Kind::Number(format!("radix {}", number.radix())),
        DeValue::Float(number) => Kind::Number(number.as_str().to_owned()),
        DeValue::Datetime(date) => Kind::Number(date.to_string()),
        DeValue::Boolean(flag) => Kind::Flag(flag),
        DeValue::Array(list) => {
            let items = list.into_iter().map(|item| (item.span().start, item.into_inner()));
            Kind::List(items.map(|(at, item)| node(item, at, place)).collect())
        }
        DeValue::Table(table) => {
            let members = table.into_iter().map(|(name, value)| {
                let at = name.span().start;
                (name.into_inner().into_owned(), node(value.into_inner(), at, place))
            });
            Kind::Table(members.collect())
        }
    };
    Node { place: place(at), kind }
}

impl Node {
    /// The member of a table.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Table(members) => members.iter().find(|(known, _)| known == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The member of a table, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.kind {
            Kind::Table(members) => members.iter_mut().find(|(known, _)| known == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Takes a member out of a table.
    pub fn remove(&mut self, name: &str) -> Option<Node> {
        let Kind::Table(members) = &mut self.kind else { return None };
        let at = members.iter().position(|(known, _)| known == name)?;
        Some(members.remove(at).1)
    }

    /// Puts `over` onto this: tables key by key, everything else whole.
    pub fn merge(&mut self, over: Node) {
        match (&mut self.kind, over) {
            (Kind::Table(members), Node { kind: Kind::Table(overs), place }) => {
                self.place = place;
                for (name, over) in overs {
                    match members.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, known)) => known.merge(over),
                        None => members.push((name, over)),
                    }
                }
            }
            (_, over) => *self = over,
        }
    }

    /// The values in it that are no tables, counted.
    pub fn leaves(&self) -> usize {
        match &self.kind {
            Kind::Table(members) => members.iter().map(|(_, node)| node.leaves()).sum(),
            _ => 1,
        }
    }
}

/// The faults found so far.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    pub fn add(&self, place: &Place, key: &str, problem: impl fmt::Display) {
        let fault = Fault { place: place.clone(), key: key.to_owned(), problem: problem.to_string() };
        self.0.borrow_mut().push(fault);
    }

    /// All of them, in the order of their places.
    pub fn into_inner(self) -> Vec<Fault> {
        let mut faults = self.0.into_inner();
        faults.sort_by(|a, b| (&a.place.file, a.place.line).cmp(&(&b.place.file, b.place.line)));
        faults
    }
}

/// A table being read: each key is taken once, and what is left at the end is unknown.
pub struct Section<'f> {
    path: String,
    place: Place,
    members: Vec<(String, Node)>,
    known: Vec<&'static str>,
    faults: &'f Faults,
}

impl<'f> Section<'f> {
    /// The table in a node, whose keys are below `path`. `None` and a fault where it is no table.
    pub fn new(node: Node, path: &str, faults: &'f Faults) -> Option<Section<'f>> {
        let Node { place, kind } = node;
        match kind {
            Kind::Table(members) => Some(Section { path: path.to_owned(), place, members, known: Vec::new(), faults }),
            kind => {
                faults.add(&place, path, format_args!("must be a table, and is {}", kind.name()));
                None
            }
        }
    }

    /// Where the table stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Notes a fault of a key, or of the table where it is empty.
    pub fn fault(&self, place: &Place, key: &str, problem: impl fmt::Display) {
        let path = if key.is_empty() { self.path.clone() } else { self.path(key) };
        self.faults.add(place, &path, problem);
    }

    /// Whether a key is there, also as an empty text.
    pub fn has(&self, key: &str) -> bool {
        self.members.iter().any(|(known, _)| known == key)
    }

    /// Takes a key. An empty text takes the key away, so that a document can do so to the one that it builds on.
    pub fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        let at = self.members.iter().position(|(known, _)| known == key)?;
        let (_, node) = self.members.remove(at);
        (!matches!(&node.kind, Kind::Text(text) if text.is_empty())).then_some(node)
    }

    /// A table below this one.
    pub fn section(&mut self, key: &'static str) -> Option<Section<'f>> {
        let node = self.take(key)?;
        self.below(node, key)
    }

    /// A table that was taken out of this one.
    pub fn below(&self, node: Node, key: &str) -> Option<Section<'f>> {
        Section::new(node, &self.path(key), self.faults)
    }

    /// A text and its place.
    pub fn placed(&mut self, key: &'static str) -> Option<(String, Place)> {
        let Node { place, kind } = self.take(key)?;
        match kind {
            Kind::Text(text) => Some((text, place)),
            kind => {
                self.fault(&place, key, format_args!("must be text in quotes, and is {}", kind.name()));
                None
            }
        }
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.placed(key).map(|(text, _)| text)
    }

    /// A text that must be there.
    pub fn required(&mut self, key: &'static str) -> Option<String> {
        self.must(key, |section| section.text(key))
    }

    /// One of the words of a table, which must be there.
    pub fn required_word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.must(key, |section| section.word(key, words))
    }

    /// Notes a missing key, where nothing else is wrong with it.
    pub fn must<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.faults.0.borrow().len();
        let value = read(self);
        if value.is_none() && self.faults.0.borrow().len() == before {
            self.missing(key);
        }
        value
    }

    /// Notes that a key is missing.
    pub fn missing(&self, key: &str) {
        self.fault(&self.place, key, "missing");
    }

    /// A text that means something.
    pub fn parsed<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let (text, place) = self.placed(key)?;
        parse(&text).map_err(|problem| self.fault(&place, key, problem)).ok()
    }

    /// One of the words of a table.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(key, |text| {
            let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
            let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            found.ok_or_else(|| format!("must be one of {}", all.join(", ")))
        })
    }

    /// `true` or `false`; `false` where it is not there.
    pub fn flag(&mut self, key: &'static str) -> bool {
        self.optional_flag(key).unwrap_or_default()
    }

    /// `true` or `false`.
    pub fn optional_flag(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)? {
            Node { kind: Kind::Flag(flag), .. } => Some(flag),
            Node { place, kind } => {
                self.fault(&place, key, format_args!("must be true or false, and is {}", kind.name()));
                None
            }
        }
    }

    /// A small whole number.
    pub fn number(&mut self, key: &'static str) -> Option<u16> {
        let Node { place, kind } = self.take(key)?;
        let number = match &kind {
            Kind::Number(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.fault(&place, key, "must be a whole number");
        }
        number
    }

    /// A text or a list of texts, each with its place; none where the key is not there.
    pub fn texts(&mut self, key: &'static str) -> Vec<(String, Place)> {
        self.take(key).map(|node| self.texts_in(node, key)).unwrap_or_default()
    }

    /// The texts in a value that was taken.
    pub fn texts_in(&self, node: Node, key: &str) -> Vec<(String, Place)> {
        let nodes = match node.kind {
            Kind::List(nodes) => nodes,
            kind => vec![Node { kind, place: node.place }],
        };
        let text = |Node { place, kind }| match kind {
            Kind::Text(text) => Some((text, place)),
            kind => {
                self.fault(
                    &place,
                    key,
                    format_args!("must be text in quotes or a list of such, and is {}", kind.name()),
                );
                None
            }
        };
        nodes.into_iter().filter_map(text).collect()
    }

    /// The tables of a list.
    pub fn sections(&mut self, key: &'static str) -> Vec<Section<'f>> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let path = self.path(key);
        match node.kind {
            Kind::List(nodes) => nodes.into_iter().filter_map(|node| Section::new(node, &path, self.faults)).collect(),
            kind => {
                self.fault(&node.place, key, format_args!("must be a list of tables, and is {}", kind.name()));
                Vec::new()
            }
        }
    }

    /// Every member, for a table whose keys are not ours.
    pub fn members(&mut self) -> Vec<(String, Node)> {
        std::mem::take(&mut self.members)
    }

    /// Notes every key that was not taken.
    pub fn end(self) {
        for (name, node) in &self.members {
            self.fault(&node.place, name, format_args!("unknown; there are {}", self.known.join(", ")));
        }
    }
}
