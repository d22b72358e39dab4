//! Transfers by ticket: a tree of files over a connection, between ends without mutual login.
//!
//! ```
//! use std::thread;
//! use std::time::Duration;
//!
//! use grebe_connection::{Cancel, ConnectionListener, ConnectionOptions, Purpose, Ticket, connect};
//! use grebe_remote::{Offering, Reception, receive, send};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let (from, into) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let file = from.path().join("run7.bin");
//! std::fs::write(&file, vec![7; 300_000])?;
//!
//! // On the host that receives: listen, and hand the ticket's word to the other side.
//! let hour = Duration::from_secs(3_600);
//! let listener = ConnectionListener::bind("127.0.0.1:0".parse()?, Purpose::Transfer, hour)?;
//! let word = listener.ticket.word();
//! let reception = Reception { directory: into.path().to_path_buf(), overwrite: true, accept: None, sender_waits: false };
//! let receiving = thread::spawn(move || {
//!     let connection = listener.accept(&ConnectionOptions::default())?;
//!     receive(connection, &reception, &Cancel::default(), |progress| {
//!         eprintln!("{} of {} bytes", progress.bytes, progress.total_bytes);
//!     })
//! });
//!
//! // On the host that sends: nothing is to be set, neither a bandwidth nor a round trip nor a window.
//! let offering = Offering::look(&[file], &[], &Cancel::default())?;
//! let ticket = Ticket::from_word(&word, Purpose::Transfer)?;
//! let options = ConnectionOptions { limit_bits_per_s: Some(1e9), ..ConnectionOptions::default() };
//! let sent = send(connect(&ticket, &options)?, &offering, &Cancel::default(), |progress| {
//!     eprintln!("{} bytes, limit: {:?}", progress.bytes, progress.connection.limit);
//! })?;
//! assert_eq!(sent.file_bytes, 300_000);
//!
//! let received = receiving.join().expect("the thread does not panic")?;
//! assert_eq!(std::fs::read(&received.paths[0])?, vec![7; 300_000]);
//! # Ok(())
//! # }
//! ```
//!
//! - `send` returns when the receiver has written and verified every file, or reported it as skipped.
//! - A file gets its name when it is complete. After a crash, a [`Cancel`] or a broken path, send the same
//!   files to the same directory again with a new ticket. The transfer then resumes.
//! - A file that cannot be sent, or that keeps changing, does not stop the others. It is [reported](LeftOut).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use grebe_connection::{Cancel, Connection, ConnectionProgress, ConnectionStatus, Verdict};
use grebe_tree::{LeftOut, Offer, Offering, Progress, Reception, Report};

use crate::error::{Error, Result};

/// Progress of a transfer, at either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferProgress {
    /// Bytes of files at the receiver, including those that existed before.
    pub bytes: u64,
    /// Bytes of all files; 0 while unknown.
    pub total_bytes: u64,
    /// Bytes of files that arrived at the receiver, without those that existed before.
    pub moved_bytes: u64,
    /// Progress of the connection.
    pub connection: ConnectionProgress,
}

/// Result of a transfer, at either end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TransferReport {
    /// The offer.
    pub offer: Offer,
    /// Bytes of the files now present: received ones, and those that existed before.
    pub file_bytes: u64,
    /// Files now present.
    pub files: u64,
    /// Bytes of present files that were not transferred, because they existed from an earlier session or in
    /// files of the same content.
    pub resumed_bytes: u64,
    /// Those of them that are holes of sparse files.
    pub hole_bytes: u64,
    /// Skipped names: see [`grebe_tree::Report::left_out`].
    pub left_out: Vec<LeftOut>,
    /// Number of skipped names.
    pub left_out_count: u64,
    /// At the receiver: present paths of the offered names.
    pub paths: Vec<PathBuf>,
    /// The other end.
    pub peer: SocketAddr,
    /// Time from the connection to the receiver's last message.
    pub took: Duration,
    /// Final progress of the connection.
    pub connection: ConnectionProgress,
}

/// Sends an offer to the [receiving](receive) end of a connection. Returns when every file is written and
/// verified there, or listed in [`TransferReport::left_out`].
///
/// Calls `on_progress` ten times per second.
///
/// # Errors
/// [`Error::Tree`], or the reason for a broken connection.
pub fn send(
    connection: Connection,
    offering: &Offering,
    cancel: &Cancel,
    on_progress: impl FnMut(&TransferProgress),
) -> Result<TransferReport> {
    let offer = offering.offer();
    let Connection { reader, writer, status, peer, .. } = connection;
    let progress = Arc::new(Progress::default());
    let watched = Watched { status, peer, progress: progress.clone(), is_sender: true };
    let offered = Mutex::new(offer);
    watched.run(&offered, on_progress, || grebe_tree::send_offer(reader, writer, offering, &progress, cancel))
}

/// Receives files from the [sending](send) end of a connection.
///
/// Calls `on_progress` ten times per second.
///
/// # Errors
/// [`Error::Tree`], or the reason for a broken connection.
pub fn receive(
    connection: Connection,
    reception: &Reception,
    cancel: &Cancel,
    on_progress: impl FnMut(&TransferProgress),
) -> Result<TransferReport> {
    let Connection { reader, writer, status, peer, greeting } = connection;
    let progress = Arc::new(Progress::default());
    let watched = Watched { status, peer, progress: progress.clone(), is_sender: false };
    let offered = Arc::new(Mutex::new(Offer::default()));
    let (told, accept) = (offered.clone(), reception.accept.clone());
    let accept = move |offer: &Offer| {
        told.lock().unwrap_or_else(PoisonError::into_inner).clone_from(offer);
        accept.as_ref().is_none_or(|accept| accept(offer))
    };
    let reception = Reception { accept: Some(Arc::new(accept)), ..reception.clone() };
    watched.run(&offered, on_progress, || {
        grebe_tree::receive_offer(reader, writer, &reception, &greeting, &progress, cancel)
    })
}

/// One end of a running transfer, with its progress.
struct Watched {
    status: ConnectionStatus,
    peer: SocketAddr,
    progress: Arc<Progress>,
    is_sender: bool,
}

impl Watched {
    fn run(
        self,
        offered: &Mutex<Offer>,
        mut on_progress: impl FnMut(&TransferProgress),
        end: impl FnOnce() -> grebe_tree::Result<Report> + Send,
    ) -> Result<TransferReport> {
        let began = Instant::now();
        let offer = || offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ended = thread::scope(|scope| {
            let watcher = thread::current();
            let ended = scope.spawn(move || {
                let ended = end();
                watcher.unpark();
                ended
            });
            while !ended.is_finished() {
                thread::park_timeout(PROGRESS_EVERY);
                on_progress(&self.now(&offer()));
            }
            ended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (took, offer) = (began.elapsed(), offer());
        let report = match ended {
            Ok(report) => report,
            Err(error) => return Err(self.why(error)),
        };
        on_progress(&self.now(&offer));
        let connection = self.status.progress();
        // Lets the receiver's last message arrive. If that is impossible, the sender has left and knows it.
        let _ = if self.is_sender { self.status.leave() } else { self.status.close_within(SENDER_SILENCE) };
        let spared_bytes = report.bytes_copied.saturating_sub(report.data_bytes);
        let found_bytes = self.progress.snapshot().bytes_same.saturating_sub(report.bytes_same);
        Ok(TransferReport {
            offer,
            file_bytes: report.bytes_copied + report.bytes_same,
            files: report.files_copied + report.files_same,
            resumed_bytes: report.bytes_same + spared_bytes,
            hole_bytes: spared_bytes.saturating_sub(found_bytes),
            left_out: report.left_out,
            left_out_count: report.left_out_count,
            paths: report.paths,
            peer: self.peer,
            took,
            connection,
        })
    }

    fn now(&self, offer: &Offer) -> TransferProgress {
        let (connection, tree) = (self.status.progress(), self.progress.snapshot());
        let on_its_way = connection.written_bytes.saturating_sub(connection.confirmed_bytes);
        let arrived = |bytes: u64| if self.is_sender { bytes.saturating_sub(on_its_way) } else { bytes };
        TransferProgress {
            bytes: arrived(tree.bytes_done).min(offer.bytes),
            total_bytes: offer.bytes,
            moved_bytes: arrived(tree.data_bytes),
            connection,
        }
    }

    /// The connection's own error, which says more than the reader's.
    fn why(&self, error: grebe_tree::Error) -> Error {
        let is_broken = matches!(error, grebe_tree::Error::Stream(_) | grebe_tree::Error::Closed);
        match self.status.close() {
            // Received data is kept, as the tree's error says.
            Err(grebe_connection::Error::Cancelled) if is_broken => Error::Tree(grebe_tree::Error::Cancelled),
            Err(grebe_connection::Error::Ended { verdict: Verdict::Cancelled }) if is_broken => {
                let what = "it was interrupted, or could not read a file; received data is kept, and ";
                Error::Tree(grebe_tree::Error::Peer { what: what.to_owned() + grebe_tree::Error::RESUME })
            }
            Err(broken) if is_broken => broken.into(),
            _ => Error::Tree(error),
        }
    }
}

/// A live sender is heard every second. One that leaves says so, but that may be lost.
const SENDER_SILENCE: Duration = Duration::from_secs(5);

const PROGRESS_EVERY: Duration = Duration::from_millis(100);
