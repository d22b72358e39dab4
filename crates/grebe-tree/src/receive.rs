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
mod dispatch;
mod finishing;
mod flushing;
mod frames;
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

use crossbeam_channel::{bounded, unbounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::local::Handover;
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
use crate::receive::shared::Receiving;
use crate::receive::signing::{sign_files, tell_again};
use crate::receive::small::write_small_files;
use crate::receive::stranger::Stranger;
use crate::report::{Report, Waits};
use crate::wire::{FrameWriter, Hello, Kind, OfferedNames, Role, SenderEnd, Summary, Taken};

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
