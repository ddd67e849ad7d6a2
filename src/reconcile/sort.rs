//! Sorts more records than memory holds: sorted runs in scratch files, merged.
//!
//! Memory is the size of one run and one buffer for each file that is merged, however many records there are. A record is a
//! key and a payload, both bytes; what they mean is not known here. Where scratch files come from is the caller's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// A scratch file: what is written to it is read back once, and nobody else sees it.
pub trait Scratch: Read + Write + Seek {}

impl<F: Read + Write + Seek> Scratch for F {}

/// How much a sort may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most bytes of records in memory.
    pub run_bytes: usize,
    /// Most files that are merged at once.
    pub fan_in: usize,
}

impl Limits {
    /// Some tens of megabytes, whatever the number of records.
    pub const DEFAULT: Limits = Limits { run_bytes: 16 << 20, fan_in: 64 };
}

/// Takes records in any order.
pub struct Sorter<F, M> {
    scratch: M,
    limits: Limits,
    /// The records of the current run, one behind the other.
    arena: Vec<u8>,
    /// Where each begins, and how long its key is and it is.
    index: Vec<(usize, usize, usize)>,
    runs: Vec<F>,
}

impl<F: Scratch, M: FnMut() -> io::Result<F>> Sorter<F, M> {
    /// A sort with scratch files from `scratch`.
    pub fn new(scratch: M, limits: Limits) -> Sorter<F, M> {
        Sorter { scratch, limits, arena: Vec::new(), index: Vec::new(), runs: Vec::new() }
    }

    /// Takes one record.
    ///
    /// # Errors
    ///
    /// What a scratch file fails with.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> io::Result<()> {
        let size = key.len() + payload.len();
        if !self.index.is_empty() && self.arena.len() + size > self.limits.run_bytes {
            self.write_run()?;
        }
        self.index.push((self.arena.len(), key.len(), size));
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(payload);
        Ok(())
    }

    /// All records in the order of their keys.
    ///
    /// # Errors
    ///
    /// What a scratch file fails with.
    pub fn sorted(mut self) -> io::Result<Merge<F>> {
        if !self.index.is_empty() {
            self.write_run()?;
        }
        (self.arena, self.index) = (Vec::new(), Vec::new());
        let fan_in = self.limits.fan_in.max(2);
        while self.runs.len() > fan_in {
            let mut merge = Merge::new(self.runs.drain(..fan_in).collect())?;
            let mut output = BufWriter::new((self.scratch)()?);
            while let Some((key, payload)) = merge.pop()? {
                write_record(&mut output, &key, &payload)?;
            }
            self.runs.push(rewound(output)?);
        }
        Merge::new(self.runs)
    }

    fn write_run(&mut self) -> io::Result<()> {
        let arena = &self.arena;
        let key = |at: &(usize, usize, usize)| &arena[at.0..at.0 + at.1];
        self.index.sort_unstable_by(|one, other| key(one).cmp(key(other)));
        let mut output = BufWriter::with_capacity(BUFFER, (self.scratch)()?);
        for (start, key, size) in self.index.drain(..) {
            write_record(&mut output, &arena[start..start + key], &arena[start + key..start + size])?;
        }
        self.arena.clear();
        self.runs.push(rewound(output)?);
        Ok(())
    }
}

/// Bytes that are read or written at once.
const BUFFER: usize = 64 * 1024;

fn write_record(output: &mut impl Write, key: &[u8], payload: &[u8]) -> io::Result<()> {
    for part in [key, payload] {
        let length = u32::try_from(part.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        output.write_all(&length.to_le_bytes())?;
        output.write_all(part)?;
    }
    Ok(())
}

/// The file of a writer, at its start.
pub fn rewound<F: Scratch>(output: BufWriter<F>) -> io::Result<F> {
    let mut file = output.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// A record: its key and its payload.
pub type Sorted = (Vec<u8>, Vec<u8>);

/// Sorted records out of many files.
pub struct Merge<F> {
    runs: Vec<BufReader<F>>,
    /// The next record of each file that has one, and which file that is.
    heap: BinaryHeap<Reverse<(Sorted, usize)>>,
}

impl<F: Read> Merge<F> {
    fn new(runs: Vec<F>) -> io::Result<Merge<F>> {
        let mut runs: Vec<_> = runs.into_iter().map(|run| BufReader::with_capacity(BUFFER, run)).collect();
        let mut heap = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            if let Some(record) = read_record(run)? {
                heap.push(Reverse((record, number)));
            }
        }
        Ok(Merge { runs, heap })
    }

    /// The next record; `None` behind the last.
    ///
    /// # Errors
    ///
    /// What a scratch file fails with.
    pub fn pop(&mut self) -> io::Result<Option<Sorted>> {
        let Some(Reverse((record, number))) = self.heap.pop() else { return Ok(None) };
        if let Some(next) = read_record(&mut self.runs[number])? {
            self.heap.push(Reverse((next, number)));
        }
        Ok(Some(record))
    }
}

fn read_record(input: &mut impl Read) -> io::Result<Option<Sorted>> {
    let Some(key) = read_part(input)? else { return Ok(None) };
    let payload = read_part(input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Some((key, payload)))
}

fn read_part(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut part = vec![0; length];
    input.read_exact(&mut part)?;
    Ok(Some(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Cursor;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_records_come_out_sorted_and_whole_however_little_memory_there_is(
            records in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..5), proptest::collection::vec(any::<u8>(), 0..5)), 0..60),
            run_bytes in 1usize..80,
            fan_in in 1usize..5,
        ) {
            let mut sorter = Sorter::new(|| Ok(Cursor::new(Vec::new())), Limits { run_bytes, fan_in });
            for (key, payload) in &records {
                sorter.push(key, payload).unwrap();
            }
            let mut merge = sorter.sorted().unwrap();
            let mut sorted = Vec::new();
            while let Some(record) = merge.pop().unwrap() {
                sorted.push(record);
            }
            prop_assert!(sorted.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut expected = records;
            expected.sort();
            sorted.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
