//! Reads files into frames of content.

use std::fs::File;
use std::io;
use std::ops::Range;

use crossbeam_channel::{Receiver, Sender};
use grebe_packet::Cancel;

use crate::delta::{CHANGED_BYTES_MIN, ChunkSizes, Known, Piece, SharedIndex};
use crate::directories::Directories;
use crate::handover::Handover;
use crate::options::Options;
use crate::progress::Current;
use crate::send::job::{Ended, How, Job, Outcome, Plan, Read, Wanted};
use crate::stretch::Stretch;
use crate::system::{self, Metadata, next_stretch, read_at, reason, regular};
use crate::wire::{DataWriter, GROUP_BYTES, ShortHash, short};

/// Reason for not sending a file that would replace another one.
pub(crate) const KEPT: &str = "another file of this name exists; move it away, or replace it (--overwrite)";

/// Maximum attempts to read a file that keeps changing.
const TRIES: u32 = 3;

/// Maximum waiting frames per job.
pub(super) const READ_AHEAD: usize = 4;

/// Context for reading files.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) directories: &'a Directories,
    pub(super) options: &'a Options,
    pub(super) index: &'a SharedIndex,
    pub(super) handover: Option<&'a Handover>,
    /// The receiver keeps an existing file of the same name and length, even if it differs.
    pub(super) keeps_what_is_there: bool,
    pub(super) cancel: &'a Cancel,
}

pub(super) fn read_jobs(jobs: &Receiver<Job>, from: Source<'_>) {
    let mut buffer = vec![0; GROUP_BYTES + 1];
    for job in jobs {
        let mut reading = Reading {
            from,
            out: job.out,
            writer: DataWriter::new(GROUP_BYTES),
            ended: Vec::new(),
            copied_bytes: 0,
            buffer: &mut buffer,
        };
        let done = job.files.into_iter().try_for_each(|(file, how)| reading.file(file, how));
        // If nobody receives it, the copy is over.
        let _ = done.and_then(|()| reading.flush(None));
    }
}

struct Reading<'a> {
    from: Source<'a>,
    out: Sender<Read>,
    writer: DataWriter,
    ended: Vec<Ended>,
    copied_bytes: u64,
    buffer: &'a mut [u8],
}

/// Nobody receives the content any more.
struct Gone;

/// Result of one attempt to read a file.
enum Tried {
    /// It is in the frames.
    Done,
    /// It changed meanwhile.
    Changed,
}

impl Reading<'_> {
    fn file(&mut self, file: Wanted, how: How) -> Result<(), Gone> {
        if self.from.cancel.is_cancelled() {
            return Err(Gone);
        }
        match self.content(&file, how) {
            Ok(Ok(outcome)) => self.ended.push(Ended { file, outcome }),
            // The copy is over, and the file is not at fault.
            Ok(Err(_)) if self.from.cancel.is_cancelled() => return Err(Gone),
            Ok(Err(error)) => {
                self.writer.failed(file.id, false);
                let why = format!("it cannot be read: {}", reason(&error));
                self.ended.push(Ended { file, outcome: Outcome::LeftOut(why) });
            }
            Err(Gone) => return Err(Gone),
        }
        Ok(())
    }

    fn content(&mut self, file: &Wanted, how: How) -> Result<io::Result<Outcome>, Gone> {
        if self.from.handover.is_some() && !matches!(how, How::Unless(_)) {
            return Ok(Ok(self.hand_over(file)));
        }
        let open = match self.open(file) {
            Ok(open) => open,
            Err(error) => return Ok(Err(error)),
        };
        if let How::Unless(theirs) = how {
            match self.is_same(&open, file, theirs) {
                Ok(true) => {
                    self.writer.compared(file.id, true);
                    return Ok(Ok(Outcome::Same));
                }
                Ok(false) if self.from.options.dry_run => {
                    self.writer.compared(file.id, false);
                    return Ok(Ok(Outcome::Sent));
                }
                Ok(false) if self.sends_what_changed(file) => {
                    self.writer.compared(file.id, false);
                    return Ok(Ok(Outcome::Differs));
                }
                Ok(false) if self.from.keeps_what_is_there => {
                    self.writer.failed(file.id, false);
                    return Ok(Ok(Outcome::LeftOut(KEPT.to_owned())));
                }
                Ok(false) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        if self.from.handover.is_some() {
            return Ok(Ok(self.hand_over(file)));
        }
        let mut from = if let How::From(offset) = how { offset } else { 0 };
        let mut is_begun = from > 0 || matches!(how, How::Again | How::Anew);
        let (tried, outcome) = match &how {
            How::Changed(plan) => (self.changed(&open, file, plan)?, Outcome::SentInPieces(plan.before)),
            How::Stretches(before, stretches) => {
                (self.stretches(&open, file, before, stretches)?, Outcome::SentAgain)
            }
            _ => (Ok(Tried::Changed), Outcome::Sent),
        };
        match tried {
            Ok(Tried::Done) => return Ok(Ok(outcome)),
            Ok(Tried::Changed) => is_begun |= matches!(how, How::Changed(_) | How::Stretches(..)),
            Err(error) => return Ok(Err(error)),
        }
        let is_again = matches!(how, How::Again | How::Stretches(..));
        for _ in 0..TRIES {
            let tried = self.once(&open, file, from, is_begun)?;
            match tried {
                Ok(Tried::Done) if is_again => return Ok(Ok(Outcome::SentAgain)),
                Ok(Tried::Done) => return Ok(Ok(Outcome::Sent)),
                Ok(Tried::Changed) => is_begun = true,
                Err(error) => return Ok(Err(error)),
            }
            from = 0;
        }
        self.writer.failed(file.id, true);
        Ok(Ok(Outcome::LeftOut("it changed each time that it was read".to_owned())))
    }

    /// Whether the receiver should send a signature of a file that differs by hash. A file that was found
    /// elsewhere by length and time hardly shares anything with it.
    fn sends_what_changed(&self, file: &Wanted) -> bool {
        let is_asked =
            self.from.options.checksum && !self.from.options.whole_file && self.from.handover.is_none();
        is_asked
            && file.bytes >= CHANGED_BYTES_MIN
            && ChunkSizes::for_file(file.bytes, self.from.options.short_hashes).is_some()
    }

    /// Hands a file to the receiver in this process, which opens it itself.
    fn hand_over(&mut self, file: &Wanted) -> Outcome {
        if let Some(handover) = self.from.handover {
            handover.put(file.id, file.place, &file.name, file.follows);
        }
        self.writer.local(file.id);
        Outcome::Sent
    }

    fn open(&self, file: &Wanted) -> io::Result<File> {
        self.from.directories.read_file(file.place, &file.name, file.follows)
    }

    /// `is_begun`: an earlier attempt sent some of it, which counts if `from` is not its start.
    fn once(
        &mut self,
        open: &File,
        file: &Wanted,
        mut from: u64,
        is_begun: bool,
    ) -> Result<io::Result<Tried>, Gone> {
        let checked = regular(open).and_then(|before| {
            // It may have grown since it was opened.
            self.from.directories.check(file.place, &file.name, &before).map(|()| before)
        });
        let before = match checked {
            Ok(before) => before,
            Err(error) => return Ok(Err(error)),
        };
        let is_as_listed = before.bytes == file.bytes
            && before.modified_ns == file.modified_ns
            && before.touched() == file.touched;
        if from > 0 && !is_as_listed {
            // The receiver's part has other content.
            from = 0;
        }
        if is_begun && from == 0 {
            self.writer.restart(file.id);
        }
        let later_ns = before.modified_ns.wrapping_sub(file.modified_ns);
        let is_small = before.bytes <= GROUP_BYTES as u64 && !before.is_sparse && !is_begun && from == 0;
        if is_small {
            if self.writer.bytes() + before.bytes as usize > GROUP_BYTES {
                self.flush(None)?;
            }
            return Ok(self.small(open, file, &before, later_ns));
        }
        self.copied_bytes += from;
        self.large(open, file, &before, from, later_ns)
    }

    fn small(&mut self, open: &File, file: &Wanted, before: &Metadata, later_ns: i64) -> io::Result<Tried> {
        let mut got = 0;
        loop {
            match read_at(open, &mut self.buffer[got..], got as u64)? {
                0 => break,
                read => got += read,
            }
            if got > GROUP_BYTES {
                return Ok(Tried::Changed);
            }
        }
        if got as u64 != before.bytes || !system::metadata(open)?.is_same_content(before) {
            return Ok(Tried::Changed);
        }
        self.writer.whole(file.id, &self.buffer[..got], later_ns);
        Ok(Tried::Done)
    }

    fn large(
        &mut self,
        open: &File,
        file: &Wanted,
        before: &Metadata,
        from: u64,
        later_ns: i64,
    ) -> Result<io::Result<Tried>, Gone> {
        match self.pieces(open, file, before, from..before.bytes)? {
            Ok(Tried::Done) => Ok(self.end(open, file, before, later_ns)),
            tried => Ok(tried),
        }
    }

    /// Sends a file that the receiver has in part.
    fn changed(&mut self, open: &File, file: &Wanted, plan: &Plan) -> Result<io::Result<Tried>, Gone> {
        let before = match regular(open) {
            Ok(before) => before,
            Err(error) => return Ok(Err(error)),
        };
        if !before.is_same_content(&plan.before) {
            return Ok(Ok(Tried::Changed));
        }
        let mut at = 0;
        for piece in &plan.pieces {
            match piece {
                Piece::Copy { run, len } => {
                    if self.writer.bytes() >= GROUP_BYTES / 2 {
                        self.flush(self.part(file, at))?;
                    }
                    self.writer.copy(file.id, at, run);
                    self.copied_bytes += len;
                    at += len;
                }
                Piece::Laid { from, len, check } => {
                    if self.writer.bytes() >= GROUP_BYTES / 2 {
                        self.flush(self.part(file, at))?;
                    }
                    self.writer.laid(file.id, *from, *len, check);
                    at += len;
                }
                Piece::Data { from, len } => {
                    match self.pieces(open, file, &before, *from..from + len)? {
                        Ok(Tried::Done) => {}
                        tried => return Ok(tried),
                    }
                    at += len;
                }
            }
        }
        self.flush(self.part(file, at))?;
        Ok(self.end(open, file, &before, before.modified_ns.wrapping_sub(file.modified_ns)))
    }

    /// Sends the ranges that the receiver could not make. Holes are sent too, because it has written other
    /// bytes there.
    fn stretches(
        &mut self,
        open: &File,
        file: &Wanted,
        before: &Metadata,
        stretches: &[Range<u64>],
    ) -> Result<io::Result<Tried>, Gone> {
        match regular(open) {
            Ok(now) if now.is_same_content(before) => {}
            Ok(_) => return Ok(Ok(Tried::Changed)),
            Err(error) => return Ok(Err(error)),
        }
        let with_holes = Metadata { is_sparse: false, ..*before };
        for stretch in stretches {
            match self.pieces(open, file, &with_holes, stretch.clone())? {
                Ok(Tried::Done) => {}
                tried => return Ok(tried),
            }
        }
        Ok(self.end(open, file, before, before.modified_ns.wrapping_sub(file.modified_ns)))
    }

    /// Sends the data of a range, without holes.
    fn pieces(
        &mut self,
        open: &File,
        file: &Wanted,
        before: &Metadata,
        stretch: Range<u64>,
    ) -> Result<io::Result<Tried>, Gone> {
        let (mut at, end) = (stretch.start, stretch.end);
        loop {
            let stretch = match next_stretch(open, at, end, before) {
                Ok(Some(stretch)) => stretch,
                Ok(None) => return Ok(Ok(Tried::Done)),
                Err(error) => return Ok(Err(error)),
            };
            at = stretch.start;
            while at < stretch.end {
                let room = (GROUP_BYTES - at as usize % GROUP_BYTES).min((stretch.end - at) as usize);
                let read = match read_at(open, &mut self.buffer[..room], at) {
                    Ok(read) => read,
                    Err(error) => return Ok(Err(error)),
                };
                if read == 0 {
                    // The file was truncated.
                    return Ok(Ok(Tried::Changed));
                }
                if self.writer.content_bytes() + read > GROUP_BYTES {
                    self.flush(None)?;
                }
                self.writer.piece(file.id, at, &self.buffer[..read]);
                at += read as u64;
                if self.writer.content_bytes() >= GROUP_BYTES / 2 {
                    self.flush(self.part(file, at))?;
                }
            }
        }
    }

    /// Ends a file after its last piece.
    fn end(&mut self, open: &File, file: &Wanted, before: &Metadata, later_ns: i64) -> io::Result<Tried> {
        if !system::metadata(open)?.is_same_content(before) {
            return Ok(Tried::Changed);
        }
        self.writer.end(file.id, before.bytes, later_ns);
        Ok(Tried::Done)
    }

    /// Progress of a file; `None` for a small file, which counts when done.
    fn part(&self, file: &Wanted, done_bytes: u64) -> Option<Current> {
        (file.bytes > GROUP_BYTES as u64).then(|| Current {
            name: self.from.directories.path_of(file.place, &file.name),
            done_bytes,
            total_bytes: file.bytes,
        })
    }

    fn is_same(&self, open: &File, file: &Wanted, theirs: ShortHash) -> io::Result<bool> {
        let before = regular(open)?;
        if before.bytes != file.bytes {
            return Ok(false);
        }
        let path = self.from.directories.path_of(file.place, &file.name);
        if let Some(hash) = self.from.index.known(&path, &before).and_then(|known| known.hash) {
            return Ok(hash == theirs);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(Stretch::whole(open, || self.from.cancel.is_cancelled()))?;
        let hash = short(&hasher.finalize());
        if hasher.count() != before.bytes || !system::metadata(open)?.is_same_content(&before) {
            return Ok(false);
        }
        self.from.index.note(&path, &before, Known { hash: Some(hash), signature: None });
        Ok(hash == theirs)
    }

    fn flush(&mut self, part: Option<Current>) -> Result<(), Gone> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let writer = std::mem::replace(&mut self.writer, DataWriter::new(GROUP_BYTES));
        let content_bytes = writer.content_bytes() as u64;
        let read = Read {
            content_bytes,
            copied_bytes: std::mem::take(&mut self.copied_bytes),
            body: writer.finish(),
            ended: std::mem::take(&mut self.ended),
            part,
        };
        self.out.send(read).map_err(|_| Gone)
    }
}
