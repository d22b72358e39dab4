//! The end that gets the files.
//!
//! ```text
//!  stream -> frame thread -> this thread --- names ---> choosing thread ---> answers --+
//!                             |       |                   |                            v
//!                             |       +--- pieces ------> | parts thread      thread that writes -> stream
//!                             +----------- small files -> threads for small files
//! ```

mod adopting;
mod choosing;
mod comparing;
mod content;
mod deleting;
mod destination;
mod finishing;
mod flushing;
mod journal;
mod laying;
mod linking;
mod looked_at;
mod one_name;
mod part;
mod partial;
mod parts;
mod rates;
mod shared;
mod signing;
mod small;
mod stranger;
mod volumes;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::local::Handover;
use crate::name::words;
use crate::options::Options;
use crate::progress::{Progress, add};
use crate::reading_thread::ReadingThread;
use crate::receive::choosing::{Choosing, Chosen};
use crate::receive::comparing::chunk_sizes;
use crate::receive::destination::{Found, look};
use crate::receive::finishing::finish;
use crate::receive::parts::{Piece, ToParts, is_large, write_parts};
use crate::receive::rates::{Measured, Window};
use crate::receive::shared::{Pending, Receiving};
use crate::receive::signing::{Again, ToSign, sign_files, tell_again};
use crate::receive::small::{Batch, Content, write_small_files};
use crate::receive::stranger::Stranger;
use crate::report::{Report, Waits};
use crate::wire::{
    DataFrame, EntryId, Frame, FrameReader, FrameWriter, Hello, Kind, Look, Note, OfferedNames, RecordKind,
    Refine, Role, SenderEnd, Shift, Summary, Taken,
};

pub use crate::receive::stranger::Reception;

/// What is received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveTree {
    /// A directory that is there: everything goes into it. Else what comes gets this name, if it is one thing; and several things,
    /// or what is inside one, go into a new directory of this name.
    pub destination: PathBuf,
    /// How; `None` where the sender knows.
    pub options: Option<Options>,
    /// The sender was told beforehand that [nothing is there](is_fresh). What came there since is not asked for: it is replaced.
    pub is_fresh: bool,
}

/// Whether nothing is at a destination that could be kept, and nothing of an earlier copy: a directory that is empty, or a new name.
#[must_use]
pub fn is_fresh(destination: &Path) -> bool {
    look(destination).is_ok_and(|found| found.is_fresh())
}

/// Receives what the [`send`](crate::send) at the other end of two streams sends.
///
/// # Errors
/// What ends it as a whole; what concerns a file alone is in [`Report::left_out`]. After any error the same copy, begun again, goes on
/// where this one was.
pub fn receive<R, W>(
    reader: R,
    writer: W,
    tree: &ReceiveTree,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report>
where
    R: Read + Send + 'static,
    W: Write + Send,
{
    run(reader, writer, &How::Tree(tree, None), progress, cancel)
}

/// Receives what the [`send_offer`](crate::send_offer) at the other end offers, and says which of it is there now.
///
/// # Errors
/// As those of [`receive`]; [`Error::Declined`] and [`Error::TooMuch`] for an offer that is not taken.
pub fn receive_offer<R, W>(
    reader: R,
    writer: W,
    reception: &Reception,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report>
where
    R: Read + Send + 'static,
    W: Write + Send,
{
    run(reader, writer, &How::Offer(reception), progress, cancel)
}

/// From whom it comes.
pub(crate) enum How<'a> {
    /// Who has a login; the handover has the files where both ends are one process.
    Tree(&'a ReceiveTree, Option<Handover>),
    Offer(&'a Reception),
}

pub(crate) fn run<R, W>(
    reader: R,
    writer: W,
    how: &How<'_>,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report>
where
    R: Read + Send + 'static,
    W: Write + Send,
{
    let mut writer = FrameWriter::new(writer);
    let received = greet(&mut writer, how)
        .and_then(|is_fresh| receive_all(reader, &mut writer, how, is_fresh, progress, cancel));
    if let Err(error) = &received
        && error.is_ours()
    {
        // It may be gone already.
        let _ = writer.write(Kind::Failed, error.to_string().as_bytes()).and_then(|()| writer.flush());
    }
    received
}

/// Says what is there. To a stranger, where somebody is to be asked first, only that it is here.
fn greet<W: Write>(writer: &mut FrameWriter<W>, how: &How<'_>) -> Result<bool> {
    let hello = Hello {
        role: Role::Receiver,
        options: None,
        sources: 0,
        is_contents: false,
        is_fresh: false,
        is_local: false,
        is_offer: false,
        is_taken: false,
        replaces: false,
    };
    let hello = match how {
        How::Offer(reception) => Hello {
            is_offer: true,
            is_taken: !reception.sender_waits,
            is_fresh: !reception.sender_waits && look(&reception.directory)?.is_fresh(),
            replaces: reception.overwrite,
            ..hello
        },
        How::Tree(tree, _) => {
            if let Some(options) = &tree.options {
                Exclude::new(&options.exclude)?;
            }
            let is_fresh = look(&tree.destination)?.is_fresh() || tree.is_fresh;
            Hello { options: tree.options.clone(), is_fresh, ..hello }
        }
    };
    writer.write(Kind::Hello, &hello.encode())?;
    writer.flush()?;
    Ok(hello.is_fresh)
}

/// What was agreed on before anything comes.
struct Greeted {
    sender: Hello,
    options: Options,
    is_fresh: bool,
    stranger: Option<Stranger>,
}

fn agree<W: Write>(
    frames: &mut Frames,
    writer: &mut FrameWriter<W>,
    how: &How<'_>,
    is_fresh: bool,
    cancel: &Cancel,
) -> Result<Greeted> {
    let first = frames.next(cancel, || false)?;
    if first.kind != Kind::Hello {
        return Err(match first.kind {
            Kind::Failed => Error::Peer { what: words(&first.body) },
            _ => Error::Malformed { what: "its first message is another one" },
        });
    }
    let sender = Hello::decode(&first.body)?;
    match how {
        How::Tree(tree, handover) => {
            let mut options = Hello::agree(tree.options.as_ref(), &sender, Role::Receiver)?;
            options.progressive &= handover.is_none();
            // What lies elsewhere is to be used, so that answers are to be given.
            let is_fresh = is_fresh && options.also_look_in.is_empty();
            if sender.is_local != handover.is_some() {
                return Err(Error::Roles { what: "only one of them is in this process" });
            }
            Ok(Greeted { sender, options, is_fresh, stranger: None })
        }
        How::Offer(reception) => {
            Hello::agree_on_offer(&sender, Role::Receiver)?;
            let offer = frames.next(cancel, || false)?;
            let offered = match offer.kind {
                Kind::Offer => OfferedNames::decode(&offer.body)?,
                Kind::Failed => return Err(Error::Peer { what: words(&offer.body) }),
                _ => return Err(Error::Malformed { what: "something else than an offer" }),
            };
            let (stranger, is_new) = reception.take(offered)?;
            let is_fresh = is_fresh || is_new;
            writer.write(Kind::Taken, &Taken { is_fresh }.encode())?;
            writer.flush()?;
            Ok(Greeted { sender, options: Reception::options(), is_fresh, stranger: Some(stranger) })
        }
    }
}

fn receive_all<R, W>(
    reader: R,
    writer: &mut FrameWriter<W>,
    how: &How<'_>,
    is_fresh: bool,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report>
where
    R: Read + Send + 'static,
    W: Write + Send,
{
    let measured = Arc::new(Measured::default());
    let mut frames = Frames::read(reader, measured.clone());
    let Greeted { sender, options, is_fresh, stranger } = agree(&mut frames, writer, how, is_fresh, cancel)?;
    let (path, handover, found) = match how {
        How::Tree(tree, handover) => (&tree.destination, handover.clone(), look(&tree.destination)?),
        // Whatever stands at the name of a directory that is there is not of this copy.
        How::Offer(reception) => (&reception.directory, None, Found::Directory { is_empty: is_fresh }),
    };
    let (destination, directories) = found.open(path, &sender, options.dry_run)?;
    let (to_sender, said) = bounded(MESSAGES_MAX);
    let receiving = Receiving::new(
        options,
        destination,
        directories,
        is_fresh,
        handover,
        progress.clone(),
        cancel.clone(),
        to_sender,
        measured,
        stranger,
    )?;
    if receiving.flushing.is_on() && !receiving.options.dry_run {
        receiving.destination.flush_name()?;
    }
    // Where it cannot be had, or another copy uses it, everything is read.
    if receiving.options.index
        && let Some(tree) = receiving.destination.there()
    {
        let _ = receiving.index.open(&tree);
    }
    let ended: Result<(Report, Waits)> = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_messages(writer, &said));
        let ended = work(&receiving, &mut frames);
        // Whatever comes behind this one is said by nobody any more.
        let last = match &ended {
            Ok((report, _)) => (Kind::End, Summary(report.clone()).encode()),
            Err(_) => (Kind::End, Vec::new()),
        };
        receiving.say_last(ended.is_ok().then_some(last));
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (report, waits) = ended?;
        written?;
        Ok((report, waits))
    });
    // What is not kept is read again.
    let _ = receiving.index.finish();
    // A part that is left keeps the folder.
    if receiving.options.dry_run {
        receiving.partial.close();
    } else {
        receiving.partial.clear();
    }
    let (mut report, sender_waits) = ended?;
    report.sender = sender_waits;
    report.read_bytes = frames.read_bytes;
    report.written_bytes = writer.written_bytes;
    (report.left_out, report.left_out_count) = receiving.left_out.take();
    if let Some(stranger) = &receiving.stranger {
        report.paths = stranger.paths(path, &report.left_out);
    }
    Ok(report)
}

/// Takes the stream to its end. What was done, and what the sender says of itself.
fn work(receiving: &Receiving, frames: &mut Frames) -> Result<(Report, Waits)> {
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    let result: Result<(Option<Chosen>, Option<SenderEnd>)> = receiving.flushing.during(receiving, || {
        std::thread::scope(|scope| {
            let (listings, listings_out) = bounded(LISTINGS_MAX);
            let (small, small_out) = bounded(BATCHES_MAX);
            let (pieces, pieces_out) = bounded(PIECES_MAX);
            let (to_sign, to_sign_out) = unbounded();
            let choosing = Choosing::new(receiving, small.clone(), to_sign.clone())?;
            scope.spawn(move || sign_files(receiving, &to_sign_out));
            let (again, again_out) = bounded(AGAIN_MAX);
            scope.spawn(move || tell_again(receiving, &again_out));
            let choosing = scope.spawn(move || choosing.run(&listings_out));
            for _ in 0..threads {
                let batches = small_out.clone();
                scope.spawn(move || write_small_files(receiving, &batches));
            }
            drop(small_out);
            scope.spawn(move || write_parts(receiving, &pieces_out));
            if receiving.options.progressive {
                scope.spawn(|| receiving.looked_at.tell(receiving));
            }
            let dispatch =
                Dispatch { receiving, listings, small, pieces, to_sign, again, large: HashSet::new() };
            let ended = dispatch.run(frames);
            receiving.bases.close();
            receiving.looked_at.close();
            if let Err(error) = ended {
                receiving.fail(error);
            }
            let chosen = choosing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((chosen, frames.sender_end.take()))
        })
    });
    let (chosen, end) = result?;
    if let Some(error) = receiving.failure() {
        // What has its name is told.
        receiving.flushing.finish(receiving);
        return Err(error);
    }
    let (Some(chosen), Some(end)) = (chosen, end) else { return Err(Error::Closed) };
    finish(receiving, &chosen, end.is_complete);
    if let Some(error) = receiving.failure() {
        return Err(error);
    }
    let mut report = receiving.done.report();
    let disk = Duration::from_micros(receiving.done.disk_us.load(Ordering::Relaxed)) / threads as u32;
    report.receiver = Waits {
        stream_ms: frames.waited.min(began.elapsed()).as_millis() as u64,
        disk_ms: disk.as_millis() as u64,
    };
    Ok((report, end.waits))
}

/// Hands what comes to the threads that deal with it.
struct Dispatch<'a> {
    receiving: &'a Receiving,
    listings: Sender<Vec<u8>>,
    small: Sender<Batch>,
    pieces: Sender<ToParts>,
    to_sign: Sender<ToSign>,
    again: Sender<Again>,
    /// Files that come in pieces, of which some came.
    large: HashSet<EntryId>,
}

impl Dispatch<'_> {
    fn run(mut self, frames: &mut Frames) -> Result<()> {
        let receiving = self.receiving;
        loop {
            let frame = match frames.next(&receiving.cancel, || receiving.is_stopped()) {
                Ok(frame) => frame,
                // Somebody else has said why.
                Err(Error::Cancelled) => return Ok(()),
                Err(error) => return Err(error),
            };
            receiving.progress.stream_bytes.store(frames.read_bytes, Ordering::Relaxed);
            match frame.kind {
                Kind::Listing => {
                    receiving.listing_came();
                    // It is gone only where something failed.
                    let _ = self.listings.send(frame.body);
                }
                Kind::Data => self.data(DataFrame::open(frame.body)?)?,
                Kind::Refine => {
                    let _ = self.again.send(Again::Refine(Refine::decode(&frame.body)?));
                }
                Kind::Look => {
                    let _ = self.again.send(Again::Look(Look::decode(&frame.body)?));
                }
                Kind::Shift => {
                    let Shift { id, bytes } = Shift::decode(&frame.body)?;
                    receiving.along.shift(id, bytes);
                }
                Kind::LeftOut => {
                    let note = Note::decode(&frame.body)?;
                    receiving.is_lacking.store(true, Ordering::Release);
                    receiving.left_out.add(&receiving.progress, note.name, note.words);
                }
                Kind::End => {
                    frames.sender_end = Some(SenderEnd::decode(&frame.body)?);
                    // Its sender did not wait for the word that all could be made, and says this once more.
                    if self.awaits_more() {
                        frames.go_on();
                        continue;
                    }
                    receiving.progress.is_scanned.store(true, Ordering::Release);
                    return Ok(());
                }
                Kind::Failed => return Err(Error::Peer { what: words(&frame.body) }),
                _ => return Err(Error::Malformed { what: "a message at a time at which none such is sent" }),
            }
        }
    }

    fn data(&mut self, frame: DataFrame) -> Result<()> {
        let body = Arc::new(frame.body);
        let mut files = Vec::new();
        for record in frame.records {
            let id = record.id;
            if let RecordKind::Early { offset, content } = record.kind {
                let (done, shown) = (&self.receiving.done, &self.receiving.progress);
                for counter in [&done.data_bytes, &shown.data_bytes, &shown.bytes_done] {
                    add(counter, content.len() as u64);
                }
                if !self.receiving.along.early(id, &body, content.clone(), offset) {
                    self.piece(id, None, &body, RecordKind::Early { offset, content });
                }
                continue;
            }
            if let RecordKind::Piece { content, .. } | RecordKind::Whole { content, .. } = &record.kind {
                add(&self.receiving.done.data_bytes, content.len() as u64);
                add(&self.receiving.progress.data_bytes, content.len() as u64);
                if matches!(record.kind, RecordKind::Piece { .. }) {
                    add(&self.receiving.progress.bytes_done, content.len() as u64);
                }
            }
            if self.large.contains(&id) {
                if matches!(record.kind, RecordKind::End { .. } | RecordKind::Failed { .. }) {
                    self.large.remove(&id);
                }
                self.piece(id, None, &body, record.kind);
                continue;
            }
            // What is not taken goes on to come, and is dropped.
            let Some(file) = self.receiving.take(id)? else { continue };
            let content = match record.kind {
                RecordKind::Whole { content, later_ns } => {
                    self.receiving.bases.done(id);
                    Content::Bytes { range: content, later_ns }
                }
                RecordKind::Same => Content::Same,
                RecordKind::Local if !is_large(&file) => Content::Local,
                RecordKind::Differs => {
                    self.differs(file)?;
                    continue;
                }
                kind => {
                    let is_end = matches!(
                        kind,
                        RecordKind::End { .. } | RecordKind::Failed { .. } | RecordKind::Local
                    );
                    if !is_end {
                        self.large.insert(id);
                    }
                    self.piece(id, Some(file), &body, kind);
                    continue;
                }
            };
            files.push((file, content));
        }
        if !files.is_empty() {
            let _ = self.small.send(Batch { body, files });
        }
        Ok(())
    }

    /// The sender's file is not what it was told the hash of: what of it is there it is told next.
    fn differs(&self, mut file: Pending) -> Result<()> {
        if !std::mem::take(&mut file.is_hashed) {
            return Err(Error::Malformed { what: "that a file is not what nobody has told" });
        }
        if self.receiving.options.dry_run {
            self.receiving.copied(&file, file.bytes);
            return Ok(());
        }
        file.adopted = None;
        let sizes = chunk_sizes(self.receiving, file.bytes, file.bytes);
        let Pending { id, place, bytes, mode, .. } = file;
        let to_sign = ToSign { id, place, name: file.name.clone(), elsewhere: None, bytes, mode, sizes };
        self.receiving.bases.will_be_told(id);
        self.receiving.expect(file)?;
        let _ = self.to_sign.send(to_sign);
        Ok(())
    }

    fn piece(&self, id: EntryId, begins: Option<Pending>, body: &Arc<Vec<u8>>, record: RecordKind) {
        let _ = self.pieces.send(ToParts::Piece(Piece { id, begins, body: body.clone(), record }));
    }

    /// Whether something of what has come so far is to come again. Where the thread that knows is gone, somebody else says why.
    fn awaits_more(&self) -> bool {
        let (say, said) = bounded(1);
        let _ = self.pieces.send(ToParts::Settle(say));
        loop {
            match said.recv_timeout(Duration::from_millis(100)) {
                Ok(awaits) => return awaits,
                // Who failed meanwhile answers nobody.
                Err(RecvTimeoutError::Timeout) if !self.receiving.is_stopped() => {}
                Err(_) => return false,
            }
        }
    }
}

/// What the sender says, taken from the stream by a thread of its own.
struct Frames {
    frames: Receiver<Result<Option<(Frame, u64)>>>,
    read_bytes: u64,
    waited: Duration,
    sender_end: Option<SenderEnd>,
    /// Whether the stream is read behind an end.
    resume: Sender<()>,
    /// Behind the frames, so that it is dropped after them.
    _thread: ReadingThread,
}

impl Frames {
    fn read<R: Read + Send + 'static>(reader: R, measured: Arc<Measured>) -> Self {
        let (out, frames) = bounded(FRAMES_MAX);
        let (resume, resumed) = bounded(1);
        let thread = ReadingThread::spawn(move || {
            let mut reader = FrameReader::new(reader);
            let mut window = Window::at(Instant::now());
            loop {
                let frame = reader.next();
                if let Ok(Some((_, bytes))) = &frame {
                    measured.came(&mut window, *bytes, Instant::now());
                }
                let is_last = !matches!(&frame, Ok(Some(_)));
                let is_end = matches!(&frame, Ok(Some((frame, _))) if frame.kind == Kind::End);
                if out.send(frame).is_err() || is_last || is_end && resumed.recv().is_err() {
                    return;
                }
            }
        });
        Self { frames, read_bytes: 0, waited: Duration::ZERO, sender_end: None, resume, _thread: thread }
    }

    /// An end was not the last message.
    fn go_on(&self) {
        let _ = self.resume.send(());
    }

    fn next(&mut self, cancel: &Cancel, is_stopped: impl Fn() -> bool) -> Result<Frame> {
        let began = Instant::now();
        let frame = loop {
            if cancel.is_cancelled() || is_stopped() {
                return Err(Error::Cancelled);
            }
            match self.frames.recv_timeout(Duration::from_millis(100)) {
                Ok(frame) => break frame?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
            }
        };
        self.waited += began.elapsed();
        let (frame, bytes) = frame.ok_or(Error::Closed)?;
        self.read_bytes += bytes;
        Ok(frame)
    }
}

/// Writes what the other threads say.
fn write_messages<W: Write>(
    writer: &mut FrameWriter<W>,
    said: &Receiver<Option<(Kind, Vec<u8>)>>,
) -> Result<()> {
    let written = loop {
        let message = match said.try_recv() {
            Ok(message) => message,
            Err(_) => {
                if let Err(error) = writer.flush() {
                    break Err(error);
                }
                said.recv().unwrap_or(None)
            }
        };
        // Behind this one nothing is said.
        let Some((kind, body)) = message else { return writer.flush() };
        if let Err(error) = writer.write(kind, &body) {
            break Err(error);
        }
    };
    if written.is_err() {
        // Why it is gone it may still say on the other stream; until then nobody who says something waits.
        while let Ok(Some(_)) = said.recv() {}
    }
    written
}

/// Frames of 256 KiB that were read and not looked at.
const FRAMES_MAX: usize = 8;

/// Messages of names that were not looked at.
const LISTINGS_MAX: usize = 64;

/// Messages of small files that were not written.
const BATCHES_MAX: usize = 8;

/// Stretches to be told again, of as many files as are told at once.
const AGAIN_MAX: usize = 64;

/// Pieces of large files that were not written.
const PIECES_MAX: usize = 16;

/// Messages to the sender that were not written.
const MESSAGES_MAX: usize = 4_096;
