//! Receiving end.
//!
//! ```text
//!  stream -> frame thread -> this thread --- names ---> choosing thread ---> answers --+
//!                             |       |                   |                            v
//!                             |       +--- pieces ------> | parts thread      thread that writes -> stream
//!                             +----------- small files -> threads for small files
//! ```

mod adopting;
mod basis;
mod choosing;
mod comparing;
mod content;
mod deleting;
mod destination;
mod dispatch;
mod finishing;
mod flushing;
mod frames;
mod journal;
mod laid_file;
mod laying;
mod linking;
mod one_name;
mod part;
mod partial;
mod parts;
mod pending;
mod rates;
mod session;
mod shared;
mod signing;
mod small;
mod stranger;
mod viewed_parts;
mod volumes;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, unbounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::handover::Handover;
use crate::name::words;
use crate::options::Options;
use crate::progress::Progress;
use crate::receive::choosing::{Choosing, Chosen};
use crate::receive::destination::{Found, look};
use crate::receive::dispatch::Dispatch;
use crate::receive::finishing::finish;
use crate::receive::frames::{Frames, write_messages};
use crate::receive::parts::write_parts;
use crate::receive::rates::Measured;
use crate::receive::session::Session;
use crate::receive::shared::Receiving;
use crate::receive::signing::{sign_files, tell_again};
use crate::receive::small::write_small_files;
use crate::receive::stranger::Stranger;
use crate::report::{Report, Waits};
use crate::scan::means_contents;
use crate::wire::{FrameWriter, Hello, Kind, OfferedNames, Role, SenderEnd, Summary, Taken};

pub use crate::receive::stranger::Reception;

/// Destination of a copy and its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveTree {
    /// An existing directory receives everything. Otherwise a single source gets this name; several sources,
    /// or the contents of one, go into a new directory of this name.
    pub destination: PathBuf,
    /// Options; `None` if the sender has them.
    pub options: Option<Options>,
    /// The receiver told the sender in advance that the destination [is empty](is_fresh). It replaces files
    /// created since then without comparison.
    pub is_fresh: bool,
}

/// Whether a destination has nothing to keep and nothing of an earlier copy: an empty directory, or a new
/// name.
#[must_use]
pub fn is_fresh(destination: &Path) -> bool {
    look(destination).is_ok_and(|found| found.is_fresh())
}

/// Whether a single source keeps its name inside this destination: an existing directory, unless an
/// interrupted copy started it under its new name.
#[must_use]
pub fn nests(destination: &Path) -> bool {
    match look(destination) {
        Ok(Found::Directory { .. }) => true,
        Ok(Found::Unfinished) => means_contents(destination),
        _ => false,
    }
}

/// Receives from the [`send`](crate::send) at the other end of two streams.
///
/// # Errors
/// Errors of the whole copy. Errors of single files are in [`Report::left_out`]. After any error, the same
/// copy resumes where this one stopped.
pub fn receive(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send,
    tree: &ReceiveTree,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    run(reader, writer, &How::Tree(tree, None), progress, cancel)
}

/// Receives from the [`send_offer`](crate::send_offer) at the other end. The report lists the received names.
/// `greeting` is the result of [`Reception::greeting`] if it was sent ahead of the stream, else empty.
///
/// # Errors
/// As those of [`receive`]; [`Error::Declined`] and [`Error::TooMuch`] if the offer is not accepted.
pub fn receive_offer(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send,
    reception: &Reception,
    greeting: &[u8],
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    run(reader, writer, &How::Offer(reception, greeting), progress, cancel)
}

/// Kind of sender.
pub(crate) enum How<'a> {
    /// A sender with a login. The handover has the files if both ends are one process.
    Tree(&'a ReceiveTree, Option<Handover>),
    /// The greeting is not empty if it was sent ahead of the stream.
    Offer(&'a Reception, &'a [u8]),
}

pub(crate) fn run(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send,
    how: &How<'_>,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    let mut writer = FrameWriter::new(writer);
    let received = greet(&mut writer, how)
        .and_then(|is_fresh| receive_all(reader, &mut writer, how, is_fresh, progress, cancel));
    if let Err(error) = &received
        && error.is_ours()
    {
        // The sender may be gone already.
        let _ = writer.write(Kind::Failed, error.to_string().as_bytes()).and_then(|()| writer.flush());
    }
    received
}

/// Sends the greeting. Returns whether it says that the destination is empty.
fn greet(writer: &mut FrameWriter<impl Write>, how: &How<'_>) -> Result<bool> {
    let hello = match how {
        How::Offer(_, greeting @ [_, ..]) => return Hello::of_frame(greeting).map(|hello| hello.is_fresh),
        How::Offer(reception, _) => reception.hello()?,
        How::Tree(tree, _) => {
            if let Some(options) = &tree.options {
                Exclude::new(&options.exclude)?;
            }
            let is_fresh = look(&tree.destination)?.is_fresh() || tree.is_fresh;
            Hello { options: tree.options.clone(), is_fresh, ..Hello::new(Role::Receiver) }
        }
    };
    writer.write(Kind::Hello, &hello.encode())?;
    writer.flush()?;
    Ok(hello.is_fresh)
}

/// Result of the greeting.
struct Greeted {
    sender: Hello,
    options: Options,
    is_fresh: bool,
    stranger: Option<Stranger>,
}

fn agree(
    frames: &mut Frames,
    writer: &mut FrameWriter<impl Write>,
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
            // Content elsewhere can be used, so answers are needed.
            let is_fresh = is_fresh && options.also_look_in.is_empty();
            if sender.is_local != handover.is_some() {
                return Err(Error::Roles { what: "only one of them is in this process" });
            }
            Ok(Greeted { sender, options, is_fresh, stranger: None })
        }
        How::Offer(reception, _) => {
            Hello::agree_on_offer(&sender, Role::Receiver)?;
            let offer = frames.next(cancel, || false)?;
            let offered = match offer.kind {
                Kind::Offer => OfferedNames::decode(&offer.body)?,
                Kind::Failed => return Err(Error::Peer { what: words(&offer.body) }),
                _ => return Err(Error::Malformed { what: "something else than an offer" }),
            };
            let taken = reception.take(offered);
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (stranger, is_new) = taken?;
            let is_fresh = is_fresh || is_new;
            writer.write(Kind::Taken, &Taken { is_fresh }.encode())?;
            writer.flush()?;
            Ok(Greeted { sender, options: Reception::options(), is_fresh, stranger: Some(stranger) })
        }
    }
}

fn receive_all(
    reader: impl Read + Send + 'static,
    writer: &mut FrameWriter<impl Write + Send>,
    how: &How<'_>,
    is_fresh: bool,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    let measured = Arc::new(Measured::default());
    let mut frames = Frames::read(reader, measured.clone());
    let Greeted { sender, options, is_fresh, stranger } = agree(&mut frames, writer, how, is_fresh, cancel)?;
    let (path, handover, found) = match how {
        How::Tree(tree, handover) => (&tree.destination, handover.clone(), look(&tree.destination)?),
        // An existing directory at that name is not a part of this copy.
        How::Offer(reception, _) => (&reception.directory, None, Found::Directory { is_empty: is_fresh }),
    };
    let (destination, directories) = found.open(path, &sender, options.dry_run)?;
    let (to_sender, said) = bounded(MESSAGES_MAX);
    let session = Session::new(
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
    let receiving = Receiving::new(session);
    if receiving.flushing.is_on() && !receiving.options.dry_run {
        receiving.destination.flush_name()?;
    }
    // If the index is unavailable or another copy uses it, everything is read.
    if receiving.options.index
        && let Some(tree) = receiving.destination.there()
    {
        let _ = receiving.index.open(&tree);
    }
    let ended: Result<(Report, Waits)> = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_messages(writer, &said));
        let ended = work(&receiving, &mut frames);
        // Nothing follows this message.
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
    // Entries that are lost are computed again.
    let _ = receiving.index.finish();
    // A remaining part keeps the folder.
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

/// Processes the whole stream. Returns the report, and the sender's waits.
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
                scope.spawn(|| receiving.viewed_parts.tell(receiving));
            }
            let dispatch =
                Dispatch { receiving, listings, small, pieces, to_sign, again, large: HashSet::new() };
            let ended = dispatch.run(frames);
            receiving.bases.close();
            receiving.viewed_parts.close();
            if let Err(error) = ended {
                receiving.fail(error);
            }
            let chosen = choosing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((chosen, frames.sender_end.take()))
        })
    });
    let (chosen, end) = result?;
    if let Some(error) = receiving.failure() {
        // Reports the files that have their names.
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

/// Maximum unprocessed listings.
const LISTINGS_MAX: usize = 64;

/// Maximum unwritten batches of small files.
const BATCHES_MAX: usize = 8;

/// Maximum open requests for finer chunks, as many as there are bases.
const AGAIN_MAX: usize = 64;

/// Maximum unwritten pieces of large files.
const PIECES_MAX: usize = 16;

/// Maximum unsent messages.
const MESSAGES_MAX: usize = 4_096;
