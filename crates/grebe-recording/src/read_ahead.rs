//! Reads a file in order at the rate of the disk: threads read large pieces in advance.
//!
//! ```text
//!   thread 0   piece 0, 3, 6, ...   --filled-->  \
//!   thread 1   piece 1, 4, 7, ...   --filled-->   ReadAhead: takes them in turn, copies out, hands the memory back
//!   thread 2   piece 2, 5, 8, ...   --filled-->  /
//! ```
//!
//! On the measured machine, a thread that reads through the page cache gets 0.45 GB/s. Two or more that
//! bypass it get the disk's rate, 0.9 - 1.8 GB/s, as `fio` does with a queue of eight.

mod system;

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use system::Source;

/// A file that is read at any place, and faster where it is read in order.
#[derive(Debug)]
pub(super) struct FileReader {
    file: File,
    /// Range of the file to read.
    stretch: Range<u64>,
    /// Whether its begin follows its end.
    repeats: bool,
    /// As many files are read beside this one.
    beside: usize,
    /// End of the last read, and bytes read in order before it.
    next: u64,
    streak_bytes: u64,
    ahead: Option<ReadAhead>,
    /// Whether no thread was to be had.
    is_alone: bool,
}

impl FileReader {
    pub(super) fn new(file: File) -> Self {
        let bytes = file.metadata().map_or(0, |metadata| if metadata.is_file() { metadata.len() } else { 0 });
        Self {
            file,
            stretch: 0..bytes,
            repeats: false,
            beside: 0,
            next: 0,
            streak_bytes: 0,
            ahead: None,
            is_alone: false,
        }
    }

    /// Says which bytes will be read in order, and whether again and again; `beside` as many other files at the same time.
    pub(super) fn expect(&mut self, stretch: Range<u64>, repeats: bool, beside: usize) {
        let end = stretch.end.min(self.file.metadata().map_or(0, |metadata| metadata.len()));
        (self.stretch, self.repeats, self.beside) = (stretch.start..end, repeats, beside);
        self.ahead = None;
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    pub(super) fn try_clone(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    pub(super) fn read_exact_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let begins_again = self.repeats && self.next == self.stretch.end && offset == self.stretch.start;
        if offset != self.next && !begins_again || offset + out.len() as u64 > self.stretch.end {
            (self.ahead, self.streak_bytes) = (None, 0);
        }
        let read = self.read(offset, out);
        if read.is_err() {
            self.ahead = None;
        }
        self.next = offset + out.len() as u64;
        self.streak_bytes += out.len() as u64;
        read
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.ahead.is_none() && self.is_worthwhile(offset) {
            let stretch = offset..self.stretch.end;
            let again = self.repeats.then(|| self.stretch.clone());
            self.ahead = ReadAhead::start(&self.file, stretch, again, self.beside);
            self.is_alone = self.ahead.is_none();
        }
        match &mut self.ahead {
            Some(ahead) => ahead.read_exact(out),
            None => {
                self.file.seek(SeekFrom::Start(offset))?;
                self.file.read_exact(out)
            }
        }
    }

    /// Whether it is read in order, and much is left.
    fn is_worthwhile(&self, offset: u64) -> bool {
        let left = self.stretch.end.saturating_sub(offset);
        let lasts = self.repeats && self.stretch.end - self.stretch.start >= LEFT_BYTES_MIN;
        !self.is_alone
            && offset >= self.stretch.start
            && self.streak_bytes >= STREAK_BYTES
            && (left >= LEFT_BYTES_MIN || lasts)
    }
}

/// Threads that read.
#[derive(Debug)]
struct ReadAhead {
    workers: Vec<Worker>,
    /// Thread whose piece comes next.
    turn: usize,
    piece: Option<Piece>,
}

#[derive(Debug)]
struct Worker {
    filled: Receiver<io::Result<Piece>>,
    empty: Sender<Aligned>,
}

/// A part of the file in memory.
#[derive(Debug)]
struct Piece {
    memory: Aligned,
    /// Bytes not yet taken.
    left: Range<usize>,
}

/// Byte ranges of the pieces: those of the first stretch, then those of the second repeatedly.
#[derive(Debug, Clone)]
struct Plan {
    first: Range<u64>,
    again: Option<Range<u64>>,
    piece_bytes: u64,
}

impl ReadAhead {
    /// `None` if the system gives no thread.
    fn start(file: &File, first: Range<u64>, again: Option<Range<u64>>, beside: usize) -> Option<Self> {
        let (threads, piece_bytes) = if beside == 0 { (THREADS, PIECE_BYTES) } else { (1, PIECE_BYTES / 2) };
        let plan = Plan { first, again, piece_bytes: piece_bytes as u64 };
        let mut workers = Vec::with_capacity(threads);
        for number in 0..threads {
            let source = Source::of(file).ok()?;
            let (filled_in, filled) = sync_channel(1);
            let (empty, empty_out) = channel();
            // One is filled while the other is taken.
            for _ in 0..2 {
                empty.send(Aligned::new(piece_bytes + system::ALIGN)).ok()?;
            }
            let pieces = plan.clone().pieces(number, threads);
            let work = move || read_pieces(source, pieces, &empty_out, &filled_in);
            thread::Builder::new().name("read ahead".to_owned()).spawn(work).ok()?;
            workers.push(Worker { filled, empty });
        }
        Some(Self { workers, turn: 0, piece: None })
    }

    fn read_exact(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            let worker = &self.workers[self.turn];
            let mut piece = match self.piece.take() {
                Some(piece) => piece,
                // A thread that ended has no more pieces.
                None => worker.filled.recv().map_err(|_| ErrorKind::UnexpectedEof)??,
            };
            let count = piece.left.len().min(out.len());
            let (now, rest) = out.split_at_mut(count);
            now.copy_from_slice(&piece.memory.bytes()[piece.left.start..piece.left.start + count]);
            (piece.left.start, out) = (piece.left.start + count, rest);
            if piece.left.is_empty() {
                // The thread may have ended after its last piece.
                let _ = worker.empty.send(piece.memory);
                self.turn = (self.turn + 1) % self.workers.len();
            } else {
                self.piece = Some(piece);
            }
        }
        Ok(())
    }
}

/// A thread's loop: ends after all pieces, or when the reader is gone.
fn read_pieces(
    mut source: Source,
    pieces: impl Iterator<Item = Range<u64>>,
    empty: &Receiver<Aligned>,
    filled: &SyncSender<io::Result<Piece>>,
) {
    for bytes in pieces {
        let Ok(memory) = empty.recv() else { return };
        let piece = Piece::read(&mut source, bytes, memory);
        let has_failed = piece.is_err();
        if filled.send(piece).is_err() || has_failed {
            return;
        }
    }
}

impl Piece {
    fn read(source: &mut Source, bytes: Range<u64>, mut memory: Aligned) -> io::Result<Self> {
        let begin = bytes.start - bytes.start % system::ALIGN as u64;
        let skipped = (bytes.start - begin) as usize;
        let wanted = (bytes.end - begin) as usize;
        // To the next boundary, which may lie after the end of the file.
        let out = &mut memory.bytes_mut()[..wanted.next_multiple_of(system::ALIGN)];
        if source.read(begin, out, wanted)? < wanted {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { memory, left: skipped..wanted })
    }
}

impl Plan {
    /// The pieces of one of `threads` threads.
    fn pieces(self, number: usize, threads: usize) -> impl Iterator<Item = Range<u64>> {
        let in_first = count(&self.first, self.piece_bytes);
        (number as u64..).step_by(threads).map_while(move |piece| {
            if piece < in_first {
                return Some(part(&self.first, piece, self.piece_bytes));
            }
            let again = self.again.as_ref().filter(|again| !again.is_empty())?;
            Some(part(again, (piece - in_first) % count(again, self.piece_bytes), self.piece_bytes))
        })
    }
}

/// How many pieces a stretch has: they end at multiples of a piece, so that all but the first begin at one.
fn count(stretch: &Range<u64>, piece_bytes: u64) -> u64 {
    stretch.end.div_ceil(piece_bytes).saturating_sub(stretch.start / piece_bytes)
}

fn part(stretch: &Range<u64>, piece: u64, piece_bytes: u64) -> Range<u64> {
    let begin = (stretch.start / piece_bytes + piece) * piece_bytes;
    begin.max(stretch.start)..(begin + piece_bytes).min(stretch.end)
}

/// Memory that begins where a disk can write to.
#[derive(Debug)]
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let memory = vec![0; length + system::ALIGN];
        let start = memory.as_ptr().align_offset(system::ALIGN).min(system::ALIGN);
        Self { memory, start, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// Threads per reader. Their pieces are at least 12 MiB, which covers a stall of 10 ms at the disk's rate.
const THREADS: usize = 3;
const PIECE_BYTES: usize = 4 << 20;
/// Minimum read in order before read-ahead starts, and minimum left to read.
const STREAK_BYTES: u64 = 4 << 20;
const LEFT_BYTES_MIN: u64 = 16 << 20;

#[cfg(test)]
mod tests;
