//! The records of a separated-values file: where each begins, its cells, and what is wrong with it.
//!
//! A reader of our own, because what is broken must cost its own line and no other: a quote that is never closed would make
//! the rest of the file one cell, and neither that nor text behind a closing quote is told by a lenient reader. Knows
//! nothing of columns or money, and holds one record at a time.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// Most bytes of one record; what is longer is no line of a statement.
pub const RECORD_MAX: usize = 64 * 1024;

/// One record: the cells between separators, quotes taken off.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The line of the file that it begins on, from 1.
    pub line: u64,
    /// The line of the file that it ends on: another one where there are line ends in quotes.
    pub last_line: u64,
    /// Whether a line end closed it; only the last record of a file can lack it.
    pub ended: bool,
    /// What is wrong with it; the cells are then those before the fault.
    pub fault: Option<Fault>,
    cells: Vec<u8>,
    ends: Vec<usize>,
}

/// Why a record has no cells that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("a quote is opened and never closed")]
    OpenQuote,
    #[error("text follows a closing quote, so where its cells end would be a guess")]
    BehindQuote,
    #[error("it is longer than {RECORD_MAX} bytes")]
    TooLong,
}

impl Record {
    /// How many cells it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has nothing in any cell.
    pub fn is_empty(&self) -> bool {
        self.fault.is_none() && self.cells.iter().all(u8::is_ascii_whitespace)
    }

    /// The cell at a position from 0, as bytes.
    pub fn cell(&self, position: usize) -> Option<&[u8]> {
        let end = *self.ends.get(position)?;
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.cells[start..end])
    }

    /// All cells in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|position| self.cell(position))
    }
}

/// Where in a record the splitter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    CellStart,
    Plain,
    Quoted,
    /// Behind a quote inside of quotes: the end of the cell, or half of a quote in it.
    QuoteInQuoted,
}

/// Splits physical lines into records.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    separator: u8,
    /// Lines that were taken for the rest of a record which turned out to be broken.
    again: VecDeque<Vec<u8>>,
    line: u64,
}

impl<R: BufRead> Records<R> {
    /// The records of a text in UTF-8, or in any encoding that has ASCII's bytes for ASCII's characters.
    pub fn new(input: R, separator: u8) -> Records<R> {
        Records { input, separator, again: VecDeque::new(), line: 0 }
    }

    /// Reads the next record; `None` behind the last.
    ///
    /// # Errors
    ///
    /// What reading the input fails with.
    pub fn read(&mut self) -> io::Result<Option<Record>> {
        let Some(first) = self.physical()? else { return Ok(None) };
        let mut record = Record { line: self.line, ..Record::default() };
        let mut lines = vec![first];
        let mut at = At::CellStart;
        loop {
            let line = lines.last().map_or(&[][..], Vec::as_slice);
            let size: usize = lines.iter().map(Vec::len).sum();
            record.fault = match split(line, self.separator, at, &mut record) {
                _ if size > RECORD_MAX && lines.len() == 1 => Some(Fault::TooLong),
                // What closes a quote on another line and goes on was most likely opened there.
                Err(Fault::BehindQuote) if lines.len() > 1 => Some(Fault::OpenQuote),
                Err(fault) => Some(fault),
                Ok(At::Quoted) if size > RECORD_MAX => Some(Fault::OpenQuote),
                Ok(At::Quoted) => match self.physical()? {
                    Some(line) => {
                        at = At::Quoted;
                        lines.push(line);
                        continue;
                    }
                    None => Some(Fault::OpenQuote),
                },
                Ok(_) => None,
            };
            record.last_line = self.line;
            record.ended = lines.last().is_some_and(|line| line.ends_with(b"\n"));
            if record.fault.is_some() {
                record.ended = lines[0].ends_with(b"\n");
                for line in lines.drain(1..).rev() {
                    self.again.push_front(line);
                    self.line -= 1;
                }
                record.last_line = self.line;
            }
            return Ok(Some(record));
        }
    }

    /// The next line with its end. Of a line that is too long, only as much as shows it.
    fn physical(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(line) = self.again.pop_front() {
            self.line += 1;
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        let most = u64::try_from(RECORD_MAX).unwrap_or(u64::MAX) + 2;
        if (&mut self.input).take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            self.skip_line()?;
        }
        self.line += 1;
        Ok(Some(line))
    }

    /// Goes behind the next line end without keeping what is before it.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (skip, found) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(position) => (position + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.input.consume(skip);
            if found {
                return Ok(());
            }
        }
    }
}

/// Adds a line to a record. A quote opens a quoted cell only at the cell's start: `5" screen` is plain text.
fn split(line: &[u8], separator: u8, mut at: At, record: &mut Record) -> Result<At, Fault> {
    for (position, byte) in line.iter().copied().enumerate() {
        // A line end is CR LF or LF alone.
        let ends = matches!(&line[position..], b"\n" | b"\r\n");
        at = match at {
            At::Quoted if byte == b'"' => At::QuoteInQuoted,
            At::Quoted => {
                record.cells.push(byte);
                At::Quoted
            }
            At::QuoteInQuoted if byte == b'"' => {
                record.cells.push(byte);
                At::Quoted
            }
            At::CellStart | At::Plain | At::QuoteInQuoted if ends => break,
            At::CellStart | At::Plain | At::QuoteInQuoted if byte == separator => {
                record.ends.push(record.cells.len());
                At::CellStart
            }
            At::QuoteInQuoted => return Err(Fault::BehindQuote),
            At::CellStart if byte == b'"' => At::Quoted,
            At::CellStart | At::Plain => {
                record.cells.push(byte);
                At::Plain
            }
        };
    }
    if at != At::Quoted {
        record.ends.push(record.cells.len());
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn read(text: &[u8]) -> Vec<String> {
        let mut records = Records::new(text, b',');
        let mut shown = Vec::new();
        while let Some(record) = records.read().unwrap() {
            let cells: Vec<_> = record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
            let fault = record.fault.map(|fault| format!(" {fault:?}")).unwrap_or_default();
            let open = if record.ended { "" } else { " no line end" };
            shown.push(format!("{}: {}{fault}{open}", record.line, cells.join("|")));
        }
        shown
    }

    #[test]
    fn records_begin_on_the_line_that_a_person_sees() {
        assert_eq!(
            read(b"a,b\r\n\r\n1,\"x\ny\"\n2,\"say \"\"hi\"\"\"\n3,5\" screen\n4,"),
            ["1: a|b", "2: ", "3: 1|x\ny", "5: 2|say \"hi\"", "6: 3|5\" screen", "7: 4| no line end"]
        );
    }

    #[test]
    fn what_is_broken_costs_its_own_line_and_no_other() {
        assert_eq!(
            read(b"1,\"open\n2,b\n3,\"c\"d\n4,e\n"),
            ["1: 1 OpenQuote", "2: 2|b", "3: 3 BehindQuote", "4: 4|e"].map(str::to_owned)
        );
        assert_eq!(read(b"1,\"open\n2,\"b\",x\n"), ["1: 1 OpenQuote", "2: 2|b|x"]);
        let long = [b"1,".to_vec(), vec![b'x'; 3 * RECORD_MAX], b"\n2,b\n".to_vec()].concat();
        assert_eq!(read(&long).last().unwrap(), "2: 2|b");
        assert!(read(&long)[0].contains("TooLong"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_every_line_is_in_a_record(bytes in proptest::collection::vec(prop_oneof![
            Just(b'"'), Just(b','), Just(b'\n'), Just(b'\r'), any::<u8>()
        ], 0..200)) {
            let mut records = Records::new(&bytes[..], b',');
            let mut last = 0;
            while let Some(record) = records.read().unwrap() {
                prop_assert!(record.line > last);
                last = record.line;
            }
            prop_assert!(records.line >= u64::from(!bytes.is_empty()));
            let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
            let lines = ends + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
            prop_assert_eq!(usize::try_from(records.line).unwrap(), lines);
        }

        #[test]
        fn what_a_writer_quotes_reads_back(rows in proptest::collection::vec(proptest::collection::vec("[a-z\",\n ]{0,6}", 2..4), 1..5)) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let mut records = Records::new(&text[..], b',');
            for row in &rows {
                let record = records.read().unwrap().unwrap();
                prop_assert_eq!(record.fault, None);
                let cells: Vec<_> = record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
                prop_assert_eq!(&cells, row);
            }
            prop_assert!(records.read().unwrap().is_none());
        }
    }
}
