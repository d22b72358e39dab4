//! Thread that writes to the stream: names as they are found, and content as the receiver wants it.

mod answers;

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use grebe_packet::Cancel;

use crate::directories::Directories;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::progress::{Done, Progress, add};
use crate::report::{LeftOutList, Report, Waits};
use crate::scan::{Found, Names, Scanned};
use crate::send::blocks::BlockFiles;
use crate::send::comparing::{Came, Comparing};
use crate::send::frames::{Frames, HeldFrame};
use crate::send::job::{Ended, How, Job, Outcome, Read, Wanted};
use crate::send::reading::READ_AHEAD;
use crate::send::ready::ReadyFiles;
use crate::wire::{
    EntryId, EntryKind, FILES_AHEAD, FrameWriter, GROUP_BYTES, Kind, Left, ListingWriter, Note, SenderEnd,
};

pub(super) struct Sending<'a, W> {
    writer: &'a mut FrameWriter<W>,
    frames: &'a Frames,
    names: Receiver<Scanned>,
    jobs: Sender<Job>,
    options: &'a Options,
    /// Recordings travel in blocks, except in a dry run or when the system copies.
    sends_blocks: bool,
    directories: &'a Directories,
    progress: &'a Progress,
    left_out: &'a LeftOutList,
    /// Known once the receiver has stated whether it will answer.
    is_fresh: Option<bool>,
    /// Message with that statement, until it arrives.
    greeting: Option<Kind>,
    scanned: Option<bool>,
    entries: u64,
    /// Listed files without an answer.
    unanswered: VecDeque<Wanted>,
    /// Files to read.
    ready: ReadyFiles,
    /// Content of jobs, in sending order.
    running: VecDeque<Receiver<Read>>,
    running_files: usize,
    /// Attribute bytes of files listed and not sent, which the receiver holds in memory.
    attribute_bytes: usize,
    /// Files that the receiver has in part.
    comparing: Comparing,
    /// Files sent in blocks.
    blocks: BlockFiles,
    /// Blocks that the receiver has, of files without an answer.
    left: HashMap<EntryId, Left>,
    left_bytes: usize,
    /// Bytes of the present large file that count as done.
    part_bytes: u64,
    stream: Duration,
    disk: Duration,
}

/// Maximum attribute bytes of such files.
const ATTRIBUTE_BYTES_AHEAD: usize = 16 << 20;

/// Minimum length of a listing before it is sent.
const LISTING_BYTES: usize = 48 << 10;

/// Maximum small files per job.
const JOB_FILES: usize = 256;

/// Maximum parts that a receiver may report before its answers.
const LEFT_MAX: usize = FILES_AHEAD;

/// Maximum bytes of their maps: 60 TB in blocks of 256 KiB.
const LEFT_BYTES_MAX: usize = 32 << 20;

/// Jobs in progress, enough for all reading threads.
const JOBS: usize = 6;

impl<'a, W: Write> Sending<'a, W> {
    #[allow(clippy::too_many_arguments, reason = "each is a part of the end that calls it, once")]
    pub(super) fn new(
        writer: &'a mut FrameWriter<W>,
        frames: &'a Frames,
        names: Receiver<Scanned>,
        jobs: Sender<Job>,
        comparing: Comparing,
        blocks: BlockFiles,
        options: &'a Options,
        directories: &'a Directories,
        progress: &'a Progress,
        left_out: &'a LeftOutList,
    ) -> Result<Self> {
        Ok(Self {
            writer,
            frames,
            names,
            jobs,
            options,
            sends_blocks: options.progressive && !options.dry_run,
            directories,
            progress,
            left_out,
            is_fresh: None,
            greeting: None,
            scanned: None,
            entries: 0,
            unanswered: VecDeque::new(),
            ready: ReadyFiles::new(options)?,
            running: VecDeque::new(),
            running_files: 0,
            attribute_bytes: 0,
            comparing,
            blocks,
            left: HashMap::new(),
            left_bytes: 0,
            part_bytes: 0,
            stream: Duration::ZERO,
            disk: Duration::ZERO,
        })
    }

    /// Notes the receiver's announcement that it will not answer, unless it is to search elsewhere.
    pub(super) fn will_be_fresh(&mut self) {
        self.is_fresh = self.options.also_look_in.is_empty().then_some(true);
    }

    /// Runs the copy and returns the receiver's report.
    pub(super) fn run(mut self, greeting: Kind, told_fresh: Option<bool>, cancel: &Cancel) -> Result<Report> {
        match told_fresh {
            Some(is_fresh) => self.greeted(is_fresh)?,
            None => self.greeting = Some(greeting),
        }
        loop {
            while !self.is_all_sent() {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                self.start_jobs();
                self.step()?;
            }
            let waits =
                Waits { stream_ms: self.stream.as_millis() as u64, disk_ms: self.disk.as_millis() as u64 };
            let end = SenderEnd { is_complete: self.scanned == Some(true), entries: self.entries, waits };
            self.write(Kind::End, &end.encode())?;
            self.writer.flush()?;
            if let Some(report) = self.receivers_end(cancel)? {
                return Ok(Report { sender: waits, ..report });
            }
        }
    }

    fn is_all_sent(&self) -> bool {
        self.scanned.is_some()
            && self.is_fresh.is_some()
            && self.unanswered.is_empty()
            && self.ready.files() == 0
            && self.running.is_empty()
            && self.comparing.is_over()
            && self.blocks.files() == 0
    }

    /// Handles one message in or out, or a short pause.
    fn step(&mut self) -> Result<()> {
        let (no_names, no_content) = (never(), never());
        let ahead = self.unanswered.len()
            + self.ready.files()
            + self.running_files
            + self.comparing.files()
            + self.blocks.files();
        let is_enough = ahead >= FILES_AHEAD || self.attribute_bytes >= ATTRIBUTE_BYTES_AHEAD;
        if self.scanned.is_some() || is_enough {
            self.ready.release();
        }
        let names = if self.scanned.is_none() && !is_enough { &self.names } else { &no_names }.clone();
        let content = self.running.front().unwrap_or(&no_content).clone();
        let frames = self.frames.frames.clone();
        let compared = self.comparing.compared.clone();
        let is_idle = self.running.is_empty() && self.ready.is_empty();
        let blocks =
            if is_idle || self.blocks.is_urgent() { &self.blocks.reads } else { &no_content }.clone();
        let waiting = Instant::now();
        let next = |within| {
            select! {
                recv(frames) -> frame => Step::Frame(frame.unwrap_or(Err(Error::Closed))),
                recv(names) -> names => Step::Names(names.ok()),
                recv(content) -> content => Step::Content(content.ok()),
                recv(compared) -> compared => Step::Compared(compared.ok()),
                recv(blocks) -> block => Step::Block(block.ok()),
                default(within) => Step::Nothing,
            }
        };
        // Pending events first. Only an idle thread flushes the stream.
        let found = match next(Duration::ZERO) {
            Step::Nothing => {
                self.writer.flush()?;
                let is_for_disk = !is_enough && self.scanned.is_none() || !self.running.is_empty();
                let found = next(Duration::from_millis(100));
                *if is_for_disk { &mut self.disk } else { &mut self.stream } += waiting.elapsed();
                found
            }
            found => found,
        };
        match found {
            Step::Frame(frame) => self.frame(&*frame?),
            Step::Names(Some(Scanned::Names(names))) => self.list(names),
            Step::Names(Some(Scanned::LeftOut { name, why })) => self.leave_out(name, why),
            Step::Names(Some(Scanned::Done { is_complete })) => {
                self.scanned = Some(is_complete);
                Ok(())
            }
            // The walking thread is gone because it was cancelled.
            Step::Names(None) => Err(Error::Cancelled),
            Step::Content(Some(read)) => self.content(read),
            Step::Content(None) => {
                self.running.pop_front();
                Ok(())
            }
            Step::Compared(Some(came)) => {
                let next = self.comparing.came(came);
                self.compared(next)
            }
            // The comparing threads are gone because they were cancelled.
            Step::Compared(None) => Err(Error::Cancelled),
            Step::Block(Some(read)) => self.block(read),
            // The block thread is gone because it was cancelled.
            Step::Block(None) => Err(Error::Cancelled),
            Step::Nothing => Ok(()),
        }
    }

    /// Hands files to the reading threads: full jobs while they are busy, smaller ones when one is idle.
    fn start_jobs(&mut self) {
        while !self.ready.is_empty() && self.running.len() < JOBS {
            let is_full = self.ready.files() >= JOB_FILES || self.ready.bytes() >= GROUP_BYTES as u64;
            if !is_full && self.running.len() >= 2 {
                return;
            }
            let (mut files, mut bytes) = (Vec::new(), 0);
            while files.len() < JOB_FILES && bytes < GROUP_BYTES as u64 {
                let Some((file, how)) = self.ready.pop() else { break };
                // A large file is a job of its own, so that the next ones are read meanwhile.
                if file.bytes > GROUP_BYTES as u64 && !files.is_empty() {
                    self.ready.put_back(file, how);
                    break;
                }
                // This also bounds the receiver's memory for a job.
                bytes += file.bytes + file.attribute_bytes as u64;
                files.push((file, how));
            }
            let (out, content) = bounded(READ_AHEAD);
            self.running_files += files.len();
            self.running.push_back(content);
            // The threads live as long as this end.
            let _ = self.jobs.send(Job { files, out });
        }
    }

    fn list(&mut self, names: Names) -> Result<()> {
        let mut writer = ListingWriter::new(names.directory);
        for found in names.found {
            writer.add(&found.entry, found.id);
            self.listed(found);
            if writer.bytes() >= LISTING_BYTES {
                let full = std::mem::replace(&mut writer, ListingWriter::new(names.directory));
                self.write(Kind::Listing, &full.finish(false, false))?;
            }
        }
        self.write(Kind::Listing, &writer.finish(names.is_last, names.is_incomplete))
    }

    fn listed(&mut self, found: Found) {
        self.entries += 1;
        let attribute_bytes = found.entry.attribute_bytes();
        let Found { id, entry, place, follows } = found;
        let EntryKind::File { bytes, touched, .. } = entry.kind else { return };
        let file = Wanted {
            id,
            place,
            name: entry.name.into(),
            follows,
            bytes,
            modified_ns: entry.modified_ns,
            touched,
            attribute_bytes,
        };
        self.attribute_bytes += attribute_bytes;
        match self.is_fresh {
            // Empty files need no content and no answer.
            _ if bytes == 0 => self.ended(&Ended { file, outcome: Outcome::Sent }),
            Some(true) => self.want_whole(file),
            _ => self.unanswered.push_back(file),
        }
    }

    fn content(&mut self, read: Read) -> Result<()> {
        self.write(Kind::Data, &read.body)?;
        add(&self.progress.data_bytes, read.content_bytes);
        if let Some(part) = read.part {
            let done_bytes = read.content_bytes + read.copied_bytes;
            add(&self.progress.bytes_done, done_bytes);
            self.part_bytes += done_bytes;
            self.progress.set_current(Some(part));
        }
        add(&self.progress.bytes_same, read.copied_bytes);
        for ended in read.ended {
            self.running_files -= 1;
            self.ended(&ended);
            match ended.outcome {
                Outcome::LeftOut(why) => {
                    self.leave_out(self.directories.path_of(ended.file.place, &ended.file.name), why)?;
                }
                Outcome::SentInPieces(before) => self.comparing.sent(ended.file, before),
                Outcome::Differs => self.comparing.begin_again(ended.file),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends a message about a file in blocks.
    fn block(&mut self, read: Read) -> Result<()> {
        self.write(Kind::Data, &read.body)?;
        add(&self.progress.data_bytes, read.content_bytes);
        add(&self.progress.bytes_same, read.copied_bytes);
        if let Some(part) = read.part {
            self.progress.set_current(Some(part));
        }
        // Several files are in progress at once, so content counts as it is sent.
        add(&self.progress.bytes_done, read.content_bytes + read.copied_bytes);
        for ended in read.ended {
            self.blocks.done();
            self.forget_attributes(&ended.file);
            match ended.outcome {
                Outcome::Changed => self.want(ended.file, How::Anew),
                Outcome::LeftOut(why) => {
                    let name = self.directories.path_of(ended.file.place, &ended.file.name);
                    self.leave_out(name, why)?;
                }
                _ => {
                    add(&self.progress.files_done, 1);
                    self.progress.set_current(None);
                    if self.progress.is_told() {
                        let name = self.directories.path_of(ended.file.place, &ended.file.name);
                        self.progress.tell(&name, Done::Copied, ended.file.bytes);
                    }
                }
            }
        }
        Ok(())
    }

    /// Frees the attributes of a file that is being sent. A file sent again does not count twice.
    fn forget_attributes(&mut self, file: &Wanted) {
        self.attribute_bytes = self.attribute_bytes.saturating_sub(file.attribute_bytes);
    }

    fn ended(&mut self, ended: &Ended) {
        let file = &ended.file;
        self.forget_attributes(file);
        let done = match &ended.outcome {
            Outcome::Sent | Outcome::SentInPieces(_) => Done::Copied,
            Outcome::Same => {
                add(&self.progress.files_same, 1);
                add(&self.progress.bytes_same, file.bytes);
                Done::Same
            }
            Outcome::LeftOut(_) | Outcome::SentAgain | Outcome::Changed | Outcome::Differs => return,
        };
        add(&self.progress.files_done, 1);
        // Holes and existing data count as done.
        add(&self.progress.bytes_done, file.bytes.saturating_sub(self.part_bytes));
        if self.part_bytes > 0 {
            self.part_bytes = 0;
            self.progress.set_current(None);
        }
        if self.progress.is_told() {
            let name = self.directories.path_of(file.place, &file.name);
            self.progress.tell(&name, done, file.bytes);
        }
    }

    fn leave_out(&mut self, name: Vec<u8>, why: String) -> Result<()> {
        let note = Note { name, words: why };
        self.write(Kind::LeftOut, &note.encode())?;
        self.left_out.add(self.progress, note.name, note.words);
        Ok(())
    }

    fn write(&mut self, kind: Kind, body: &[u8]) -> Result<()> {
        let waiting = Instant::now();
        let written = self.writer.write(kind, body);
        self.stream += waiting.elapsed();
        add(&self.progress.stream_bytes, body.len() as u64);
        written
    }
}

enum Step {
    Frame(Result<HeldFrame>),
    Names(Option<Scanned>),
    Content(Option<Read>),
    Compared(Option<Came>),
    Block(Option<Read>),
    Nothing,
}
