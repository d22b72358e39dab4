//! Sending end.
//!
//! ```text
//!  scan thread -> names ----------------+
//!                                       v
//!  frame thread -> answers ---> this thread -> frames -> stream
//!                                 |     ^
//!                           jobs  v     |  content, in the order of the jobs
//!                              reading threads
//! ```

mod blocks;
mod comparing;
mod frames;
mod job;
mod reading;
mod ready;
mod sending;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::bounded;
use grebe_packet::Cancel;

use crate::delta::SharedIndex;
use crate::directories::{Directories, Listed};
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::handover::Handover;
use crate::offering::Offering;
use crate::options::Options;
use crate::progress::Progress;
use crate::report::{LeftOutList, Report};
use crate::scan::{Scanner, means_contents};
use crate::send::blocks::{BlockFiles, read_blocks};
use crate::send::comparing::{Comparing, compare_files};
use crate::send::frames::{Frames, read_frames};
use crate::send::job::Job;
use crate::send::reading::{Source, read_jobs};
use crate::send::sending::Sending;
use crate::wire::{FrameWriter, Hello, Kind, Role};

/// Sources of a copy and its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendTree {
    /// Files and directories. A trailing slash, `.`, `..` and `/` stand for the contents.
    pub sources: Vec<PathBuf>,
    /// Options; `None` if the receiver has them.
    pub options: Option<Options>,
    /// The receiver announced an empty destination, see
    /// [`ReceiveTree::is_fresh`](crate::ReceiveTree::is_fresh). Content then leaves with the first names, one
    /// round trip earlier.
    pub is_fresh: bool,
}

/// Sends trees to the [`receive`](crate::receive) at the other end of two streams. Returns when everything is
/// written there.
///
/// # Errors
/// Errors of the whole copy. Errors of single files are in [`Report::left_out`]. After any error, the same
/// copy resumes where this one stopped.
pub fn send(
    reader: impl Read + Send + 'static,
    writer: impl Write,
    tree: &SendTree,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    run(reader, writer, &What::Tree(tree, None), progress, cancel)
}

/// Sends an offer to the [`receive_offer`](crate::receive_offer) at the other end, if it is accepted there.
///
/// # Errors
/// As those of [`send`]; [`Error::Peer`] if the offer is not accepted.
pub fn send_offer(
    reader: impl Read + Send + 'static,
    writer: impl Write,
    offering: &Offering,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    run(reader, writer, &What::Offering(offering), progress, cancel)
}

/// Contents and kind of receiver.
pub(crate) enum What<'a> {
    /// A receiver with a login. The handover replaces content if both ends are one process.
    Tree(&'a SendTree, Option<&'a Handover>),
    Offering(&'a Offering),
}

pub(crate) fn run(
    reader: impl Read + Send + 'static,
    writer: impl Write,
    what: &What<'_>,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    // Before the first message, to report invalid patterns at once.
    if let What::Tree(SendTree { options: Some(options), .. }, _) = what {
        Exclude::new(&options.exclude)?;
        Exclude::new(&options.first)?;
    }
    let mut writer = FrameWriter::new(writer);
    let left_out = Arc::new(LeftOutList::default());
    let frames = read_frames(reader, progress.clone(), left_out.clone());
    let sent = greet_and_send(&frames, &mut writer, what, progress, cancel, &left_out);
    let mut report = match sent {
        Ok(report) => report,
        Err(error) => {
            // The receiver may be gone already, after giving a reason.
            let reason = frames.reason(error);
            if reason.is_ours() {
                let _ =
                    writer.write(Kind::Failed, reason.to_string().as_bytes()).and_then(|()| writer.flush());
            }
            return Err(reason);
        }
    };
    report.read_bytes = frames.read_bytes();
    report.written_bytes = writer.written_bytes;
    (report.left_out, report.left_out_count) = left_out.take();
    Ok(report)
}

fn greet_and_send(
    frames: &Frames,
    writer: &mut FrameWriter<impl Write>,
    what: &What<'_>,
    progress: &Progress,
    cancel: &Cancel,
    left_out: &LeftOutList,
) -> Result<Report> {
    let (sources, handover) = match what {
        What::Tree(tree, handover) => (&tree.sources, *handover),
        What::Offering(offering) => (&offering.sources, None),
    };
    check_sources(sources)?;
    let Greeted { mut options, greeting, told_fresh, is_fresh, replaces } =
        greet(frames, writer, what, cancel)?;
    // When the system copies, nobody has to wait for a part of a file.
    options.progressive &= handover.is_none();
    let exclude = Exclude::new(&options.exclude)?;
    let directories = match what {
        What::Tree(..) => handover.map_or_else(Arc::default, Handover::directories),
        What::Offering(offering) => Arc::new(Directories::that_lists(Listed::Only(offering.listed.clone()))),
    };
    let index = SharedIndex::default();
    if let (true, Some(tree)) = (options.index, sources.first()) {
        // If the index is unavailable or another copy uses it, everything is read.
        let _ = index.open(tree);
    }
    let report = std::thread::scope(|scope| {
        // Small bounds, because waiting items take memory, and the window of names bounds the rest.
        let (names_in, names) = bounded(8);
        let (jobs, jobs_out) = bounded::<Job>(JOBS_AHEAD);
        let scanner = Scanner::new(&options, exclude, &directories, progress, cancel, names_in);
        scope.spawn(|| scanner.run(sources));
        for _ in 0..reading_threads() {
            let jobs = jobs_out.clone();
            let (directories, options, index) = (&*directories, &options, &index);
            let from =
                Source { directories, options, index, handover, keeps_what_is_there: !replaces, cancel };
            scope.spawn(move || read_jobs(&jobs, from));
        }
        drop(jobs_out);
        let (comparing, to_compare, compared) = Comparing::new(options.short_hashes);
        for _ in 0..COMPARING_THREADS {
            let (jobs, out, unsent) = (to_compare.clone(), compared.clone(), comparing.unsent.clone());
            let directories = &*directories;
            scope.spawn(move || compare_files(&jobs, &out, &unsent, directories, cancel));
        }
        drop((to_compare, compared));
        let (blocks, block_job) = BlockFiles::new();
        if options.progressive {
            let (directories, options) = (&*directories, &options);
            scope.spawn(move || read_blocks(block_job, directories, options, cancel));
        }
        let mut sending = Sending::new(
            writer,
            frames,
            names,
            jobs,
            comparing,
            blocks,
            &options,
            &directories,
            progress,
            left_out,
        )?;
        if is_fresh {
            sending.will_be_fresh();
        }
        sending.run(greeting, told_fresh, cancel)
    });
    // Entries that are lost are computed again.
    let _ = index.finish();
    report
}

/// Result of the greeting.
struct Greeted {
    options: Options,
    /// Message in which the receiver states whether the destination is empty.
    greeting: Kind,
    /// The statement, if the sender waited for it.
    told_fresh: Option<bool>,
    /// The destination was announced as empty.
    is_fresh: bool,
    /// Existing files are replaced.
    replaces: bool,
}

fn greet(
    frames: &Frames,
    writer: &mut FrameWriter<impl Write>,
    what: &What<'_>,
    cancel: &Cancel,
) -> Result<Greeted> {
    let mut hello = Hello::new(Role::Sender);
    match what {
        What::Tree(tree, handover) => {
            hello.options.clone_from(&tree.options);
            hello.sources = tree.sources.len() as u64;
            hello.is_contents = tree.sources.iter().any(|source| means_contents(source));
            hello.is_local = handover.is_some();
            writer.write(Kind::Hello, &hello.encode())?;
            writer.flush()?;
            // An end with the options need not wait: names leave before the first message of the other end.
            let (options, told_fresh) = match &tree.options {
                Some(options) => (options.clone(), None),
                None => {
                    let theirs = frames.hello(cancel)?;
                    (Hello::agree(None, &theirs, Role::Sender)?, Some(theirs.is_fresh))
                }
            };
            let is_fresh = tree.is_fresh;
            Ok(Greeted { options, greeting: Kind::Hello, told_fresh, is_fresh, replaces: true })
        }
        What::Offering(offering) => {
            (hello.is_offer, hello.sources) = (true, offering.sources.len() as u64);
            writer.write(Kind::Hello, &hello.encode())?;
            writer.write(Kind::Offer, &offering.names.encode())?;
            writer.flush()?;
            let theirs = frames.hello(cancel)?;
            Hello::agree_on_offer(&theirs, Role::Sender)?;
            let Hello { is_taken, is_fresh, replaces, .. } = theirs;
            let told_fresh = (!is_taken).then(|| frames.taken(cancel)).transpose()?;
            let options = offering.options.clone();
            Ok(Greeted { options, greeting: Kind::Taken, told_fresh, is_fresh, replaces })
        }
    }
}

/// Checks the sources. If some exist, missing ones are skipped later; if none exists, there is nothing to
/// copy.
///
/// # Errors
/// [`Error::Source`]: none exists.
pub fn check_sources(sources: &[PathBuf]) -> Result<()> {
    let is_missing = |source: &Path| {
        let found = source.symlink_metadata();
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    match sources {
        [only] if is_missing(only) => {
            Err(Error::Source { path: only.clone(), why: "file or directory not found" })
        }
        [first, ..] if sources.iter().all(|source| is_missing(source)) => {
            let why = "file or directory not found, nor any of the other sources";
            Err(Error::Source { path: first.clone(), why })
        }
        _ => Ok(()),
    }
}

/// At least two: one hashes while the other waits for the disk.
fn reading_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4)
}

/// Two: one cuts its file while the other waits for the rest of a signature.
const COMPARING_THREADS: usize = 2;

/// Maximum jobs that are read or wait.
const JOBS_AHEAD: usize = 8;
