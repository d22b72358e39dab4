//! Files sent in blocks: one thread reads them, the most useful blocks first.
//!
//! ```text
//!  blocks that a viewer wants, ends of summaries --+--> between other content
//!  rest of summaries, samples, gaps halved --------+--> when nothing else is pending
//! ```
//! They leave through one channel, in order. The first message of a file announces blocks, and the last one
//! ends the file.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Select, Sender, bounded, unbounded};
use grebe_packet::Cancel;

use crate::blocks::{BlockMap, Blocks, Halving, ends, is_summary};
use crate::directories::Directories;
use crate::options::Options;
use crate::progress::Current;
use crate::send::job::{Ended, Outcome, Read, Wanted};
use crate::system::{self, Metadata, next_stretch, read_at, reason, regular};
use crate::wire::{DataWriter, EntryId, GROUP_BYTES, Want};

/// Handle of the thread for the sending thread.
pub(super) struct BlockFiles {
    said: Sender<Order>,
    pub(super) reads: Receiver<Read>,
    is_urgent: Arc<AtomicBool>,
    /// Files handed over and not finished.
    files: usize,
}

/// State of the thread.
pub(super) struct BlockJob {
    said: Receiver<Order>,
    out: Sender<Read>,
    /// The next message is urgent, and so is everything before it.
    is_urgent: Arc<AtomicBool>,
}

enum Order {
    File(Box<Wanted>, BlockMap),
    Want(Want),
}

impl BlockFiles {
    pub(super) fn new() -> (Self, BlockJob) {
        let (said, heard) = unbounded();
        let (out, reads) = bounded(READ_AHEAD);
        let is_urgent = Arc::new(AtomicBool::new(false));
        let job = BlockJob { said: heard, out, is_urgent: is_urgent.clone() };
        (Self { said, reads, is_urgent, files: 0 }, job)
    }

    /// Whether the next message is urgent.
    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Ordering::Acquire)
    }

    /// Sends a file, except for the blocks that the receiver has.
    pub(super) fn send(&mut self, file: Wanted, left: BlockMap) {
        self.files += 1;
        // The thread lives as long as this end.
        let _ = self.said.send(Order::File(Box::new(file), left));
    }

    /// Passes on a viewer's request. Requests that arrive faster than blocks can be read are dropped.
    pub(super) fn want(&self, want: Want) {
        if self.said.len() < SAID_MAX {
            let _ = self.said.send(Order::Want(want));
        }
    }

    pub(super) fn done(&mut self) {
        self.files -= 1;
    }

    pub(super) fn files(&self) -> usize {
        self.files
    }
}

/// Runs until nobody receives the blocks.
pub(super) fn read_blocks(job: BlockJob, directories: &Directories, options: &Options, cancel: &Cancel) {
    let mut reading = Reading {
        directories,
        only_wanted: options.only_wanted,
        waiting: VecDeque::new(),
        open: Vec::new(),
        wanted: HashMap::new(),
        turn: 0,
        buffer: vec![0; GROUP_BYTES],
    };
    while !cancel.is_cancelled() {
        while let Ok(said) = job.said.try_recv() {
            reading.take(said);
        }
        let next = reading.next();
        job.is_urgent.store(matches!(&next, Some((_, true))), Ordering::Release);
        match next {
            Some((reads, _)) => {
                if !reads.into_iter().all(|read| job.send(read, &mut reading)) {
                    return;
                }
            }
            None => match job.said.recv() {
                Ok(said) => reading.take(said),
                Err(_) => return,
            },
        }
    }
}

impl BlockJob {
    /// Sends a message and accepts requests meanwhile. Returns whether it was received.
    fn send(&self, read: Read, reading: &mut Reading<'_>) -> bool {
        loop {
            let mut select = Select::new();
            let sends = select.send(&self.out);
            let _hears = select.recv(&self.said);
            let ready = select.select();
            if ready.index() == sends {
                return ready.send(&self.out, read).is_ok();
            }
            match ready.recv(&self.said) {
                Ok(said) => reading.take(said),
                Err(_) => return false,
            }
            self.is_urgent.store(true, Ordering::Release);
        }
    }
}

struct Reading<'a> {
    directories: &'a Directories,
    only_wanted: bool,
    /// Files that wait for an open slot.
    waiting: VecDeque<(Wanted, BlockMap)>,
    open: Vec<Open>,
    /// Blocks that viewers want.
    wanted: HashMap<EntryId, VecDeque<u64>>,
    /// File whose block is next, so that all files gain resolution together.
    turn: usize,
    buffer: Vec<u8>,
}

struct Open {
    file: Wanted,
    open: File,
    before: Metadata,
    sent: BlockMap,
    is_summary: bool,
    ends: VecDeque<u64>,
    order: Halving,
    /// Bytes of it that count as done.
    done_bytes: u64,
}

impl Reading<'_> {
    fn take(&mut self, said: Order) {
        match said {
            Order::File(file, left) => self.waiting.push_back((*file, left)),
            Order::Want(want) => {
                let known = |id: EntryId| {
                    self.open.iter().any(|open| open.file.id == id)
                        || self.waiting.iter().any(|(file, _)| file.id == id)
                };
                if !known(want.id) {
                    return;
                }
                // A viewed file precedes the waiting ones.
                if let Some(at) = self.waiting.iter().position(|(file, _)| file.id == want.id)
                    && let Some(file) = self.waiting.remove(at)
                {
                    self.waiting.push_front(file);
                }
                let bytes = self.open.iter().find(|open| open.file.id == want.id).map(|open| open.file.bytes);
                let bytes = bytes.or_else(|| self.waiting.front().map(|(file, _)| file.bytes));
                let blocks = Blocks::of(bytes.unwrap_or(0));
                let wanted = want.stretches.iter().flat_map(|stretch| blocks.reached_by(stretch));
                self.wanted.insert(want.id, wanted.take(WANTED_MAX).collect());
            }
        }
    }

    /// Next message, and whether it is urgent.
    fn next(&mut self) -> Option<(VecDeque<Read>, bool)> {
        if let Some(reads) = self.next_urgent() {
            return Some((reads, true));
        }
        if self.only_wanted {
            return None;
        }
        // Summaries first: they are a hundredth of their data.
        let has_summary = self.open.iter().any(|open| open.is_summary);
        let count = self.open.len();
        let turns = (0..count).map(|step| (self.turn + step) % count);
        let at = turns.clone().find(|&at| !has_summary || self.open[at].is_summary)?;
        self.turn = at + 1;
        let number = self.open[at].next();
        Some((self.send(at, number), false))
    }

    fn next_urgent(&mut self) -> Option<VecDeque<Read>> {
        if let Some(reads) = self.begin_one() {
            return Some(reads);
        }
        for at in 0..self.open.len() {
            let id = self.open[at].file.id;
            while let Some(number) = self.wanted.get_mut(&id).and_then(VecDeque::pop_front) {
                if !self.open[at].sent.has(number) {
                    return Some(self.send(at, Some(number)));
                }
            }
            self.wanted.remove(&id);
        }
        for at in 0..self.open.len() {
            while let Some(number) = self.open[at].ends.pop_front() {
                if !self.open[at].sent.has(number) {
                    return Some(self.send(at, Some(number)));
                }
            }
        }
        None
    }

    /// Opens the next file if there is room, and returns its first messages.
    fn begin_one(&mut self) -> Option<VecDeque<Read>> {
        if self.open.len() >= OPEN_MAX {
            return None;
        }
        let (file, left) = self.waiting.pop_front()?;
        let read = match self.begin(&file) {
            Ok(Some((open, before))) => {
                let blocks = Blocks::of(file.bytes);
                let is_summary = is_summary(&file.name);
                let left_bytes = left.come_bytes();
                let mut writer = DataWriter::new(0);
                writer.blocks(file.id, blocks.log2);
                self.open.push(Open {
                    ends: if is_summary { ends(blocks).collect() } else { VecDeque::new() },
                    order: Halving::new(blocks.count()),
                    done_bytes: left_bytes,
                    sent: left,
                    is_summary,
                    file,
                    open,
                    before,
                });
                Read { copied_bytes: left_bytes, ..read_of(writer, Vec::new()) }
            }
            // The file differs from its listing, so it is sent like any other file.
            Ok(None) => ended(file, Outcome::Changed, None),
            Err(error) => {
                let why = format!("it cannot be read: {}", reason(&error));
                let mut writer = DataWriter::new(0);
                writer.failed(file.id, false);
                ended(file, Outcome::LeftOut(why), Some(writer))
            }
        };
        Some([read].into())
    }

    fn begin(&self, file: &Wanted) -> io::Result<Option<(File, Metadata)>> {
        let open = self.directories.read_file(file.place, &file.name, file.follows)?;
        let before = regular(&open)?;
        let is_as_listed = before.bytes == file.bytes
            && before.modified_ns == file.modified_ns
            && before.touched() == file.touched;
        Ok(is_as_listed.then_some((open, before)))
    }

    /// Sends a block, or the end of the file if none is left.
    fn send(&mut self, at: usize, number: Option<u64>) -> VecDeque<Read> {
        let mut reads = VecDeque::new();
        let sent = number.map_or(Ok(true), |number| self.read(at, number, &mut reads));
        if let (Ok(true), false) = (&sent, self.open[at].sent.is_whole()) {
            return reads;
        }
        let Open { file, open, before, .. } = self.open.swap_remove(at);
        self.wanted.remove(&file.id);
        let is_same = sent.and_then(|is_all| Ok(is_all && system::metadata(&open)?.is_same_content(&before)));
        let mut writer = DataWriter::new(0);
        reads.push_back(match is_same {
            Ok(true) => {
                writer.end(file.id, before.bytes, 0);
                ended(file, Outcome::Sent, Some(writer))
            }
            Ok(false) => ended(file, Outcome::Changed, None),
            Err(error) => {
                writer.failed(file.id, false);
                let why = format!("it cannot be read: {}", reason(&error));
                ended(file, Outcome::LeftOut(why), Some(writer))
            }
        });
        reads
    }

    /// Reads a block; `false` if the file was truncated.
    fn read(&mut self, at: usize, number: u64, reads: &mut VecDeque<Read>) -> io::Result<bool> {
        let open = &mut self.open[at];
        let Range { start, end } = open.sent.blocks.range(number);
        let mut writer = DataWriter::new(GROUP_BYTES);
        let mut from = start;
        // Holes are not sent.
        while let Some(stretch) = next_stretch(&open.open, from, end, &open.before)? {
            from = stretch.start;
            while from < stretch.end {
                let room = ((stretch.end - from) as usize).min(GROUP_BYTES - writer.content_bytes());
                let got = read_at(&open.open, &mut self.buffer[..room], from)?;
                if got == 0 {
                    return Ok(false);
                }
                writer.piece(open.file.id, from, &self.buffer[..got]);
                from += got as u64;
                if writer.content_bytes() >= GROUP_BYTES {
                    let full = std::mem::replace(&mut writer, DataWriter::new(GROUP_BYTES));
                    reads.push_back(read_of(full, Vec::new()));
                }
            }
        }
        writer.block(open.file.id, number);
        open.sent.add(number);
        open.done_bytes += end - start;
        let mut read = read_of(writer, Vec::new());
        read.part = Some(Current {
            name: self.directories.path_of(open.file.place, &open.file.name),
            done_bytes: open.done_bytes,
            total_bytes: open.file.bytes,
        });
        reads.push_back(read);
        Ok(true)
    }
}

impl Open {
    /// Next block in order.
    fn next(&mut self) -> Option<u64> {
        let sent = &self.sent;
        self.order.find(|&number| !sent.has(number))
    }
}

fn read_of(writer: DataWriter, ended: Vec<Ended>) -> Read {
    let content_bytes = writer.content_bytes() as u64;
    Read { content_bytes, copied_bytes: 0, body: writer.finish(), ended, part: None }
}

fn ended(file: Wanted, outcome: Outcome, writer: Option<DataWriter>) -> Read {
    // A message without content is free.
    read_of(writer.unwrap_or_else(|| DataWriter::new(0)), vec![Ended { file, outcome }])
}

/// Maximum waiting frames, because an urgent block waits for them.
const READ_AHEAD: usize = 2;
/// Maximum open files; a receiver has at most 256.
const OPEN_MAX: usize = 32;
const SAID_MAX: usize = 1_000;
/// Maximum wanted blocks: 1 GiB at once.
const WANTED_MAX: usize = 4_096;
