//! The data path: sockets, disks and clocks around the protocol's core.
//!
//! ```text
//!  reads and hashes   seals and sends        opens and gathers    checks and writes      flushes and notes
//!  [ reader ] ------> [ send's thread ] ~~~> [ receive's thread ] ----> [ writer ] ----> [ journal thread ]
//!     ^-- empty groups --'     ^--- reports, outcome ---'  ^-- empty groups --'
//! ```
//!
//! Reader and writer are functions that their neighbours call, so that a group is worked on while it lies in one core's cache.
//! They become threads where cores are idle, and as soon as a disk makes the network wait.

mod journal;
mod layout;
mod meet;
mod positioned;
mod reader;
mod receive;
mod send;
mod source;
mod target;
mod tunnel;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use receive::{Arrival, ReceiveListener, ReceiveOptions, Received, receive};
pub use send::{SendListener, SendOptions, SendReport, send};
pub use source::Source;

/// Stops a transfer from elsewhere: all clones are one.
///
/// ```
/// let cancel = grebe_transfer::Cancel::default();
/// let elsewhere = cancel.clone();
/// elsewhere.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops it: the peer is told, and what has come is kept.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a user may want to know before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Nothing was heard over UDP for two seconds; TCP is tried beside it.
    NoUdp {
        /// Who was asked.
        peer: SocketAddr,
    },
    /// The transfer goes over TCP.
    OverTcp,
}

/// Microseconds since it was made.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }

    /// This clock and the system's at the same moment.
    fn reading(&self) -> Reading {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Reading { us: self.now_us(), unix }
    }
}

struct Reading {
    us: u64,
    unix: Duration,
}

impl Reading {
    /// The time by this clock of what the system's clock gave a stamp before.
    fn us_at(&self, stamp: Duration) -> u64 {
        self.us.saturating_sub(self.unix.saturating_sub(stamp).as_micros() as u64)
    }
}

pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether threads that wait for each other are faster than one that does all: each end of a transfer needs one core, and
/// both ends may be on this machine.
fn has_cores_to_spare() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4)
}

/// How long a disk may hold up the network before it gets a thread of its own.
struct Patience(Duration);

impl Patience {
    fn new() -> Self {
        // A few times: that another process had the core for once says nothing about the disk.
        Self(5 * SLOW)
    }

    /// Takes how long one group took, and says whether the patience is over.
    fn is_over(&mut self, took: Duration) -> bool {
        if took > SLOW {
            self.0 = self.0.saturating_sub(took);
        }
        self.0.is_zero()
    }
}

/// What is sent meanwhile waits in the receiver's socket.
const SLOW: Duration = Duration::from_millis(20);

/// For how long a peer that was there may be silent.
const SILENCE_US_MAX: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::thread::scope;

    use super::*;
    use crate::{Error, Ticket};

    fn listener() -> ReceiveListener {
        ReceiveListener::bind("127.0.0.1:0".parse().unwrap(), 60).unwrap()
    }

    fn contents(bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    fn source(paths: &[PathBuf]) -> Arc<Source> {
        Arc::new(Source::open(paths).unwrap())
    }

    /// Both ends in this process, by the ticket of the receiver.
    fn transfer(
        paths: &[PathBuf],
        into: &Path,
        sends: &SendOptions,
        receives: &ReceiveOptions,
    ) -> (crate::Result<SendReport>, crate::Result<Received>) {
        let listener = listener();
        let ticket = listener.ticket().clone();
        scope(|scope| {
            let receiving = scope.spawn(|| listener.receive(into, receives, |_| {}));
            let sent = send(&source(paths), &ticket, sends, |_| {});
            (sent, receiving.join().unwrap())
        })
    }

    #[test]
    fn a_file_arrives_whole_under_its_name() {
        for bytes in [0, 1, 1_163, 3_000_000] {
            let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let file = from.path().join("sample.bin");
            fs::write(&file, contents(bytes)).unwrap();
            let (sent, received) =
                transfer(&[file], into.path(), &SendOptions::default(), &ReceiveOptions::default());
            assert_eq!(sent.unwrap().file_bytes, bytes as u64);
            let path = into.path().join("sample.bin");
            assert_eq!(received.unwrap().paths, std::slice::from_ref(&path));
            assert!(fs::read(&path).unwrap() == contents(bytes), "{bytes} bytes");
            assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
        }
    }

    #[test]
    fn the_sender_may_make_the_ticket_and_directories_come_as_they_are() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("d/empty")).unwrap();
        for number in 0..300 {
            fs::write(from.path().join(format!("d/{number}")), contents(number * 17)).unwrap();
        }
        let listener = SendListener::bind("127.0.0.1:0".parse().unwrap(), 60).unwrap();
        let ticket = listener.ticket().clone();
        let files = source(&[from.path().join("d")]);
        scope(|scope| {
            let sending = scope.spawn(|| listener.send(&files, &SendOptions::default(), |_| {}));
            receive(&ticket, into.path(), &ReceiveOptions::default(), |_| {}).unwrap();
            sending.join().unwrap().unwrap();
        });
        assert!(into.path().join("d/empty").is_dir());
        for number in 0..300 {
            assert_eq!(fs::read(into.path().join(format!("d/{number}"))).unwrap(), contents(number * 17));
        }
    }

    #[test]
    fn what_was_stopped_goes_on_where_it_was() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("sample.bin");
        fs::write(&file, contents(5_000_000)).unwrap();
        let slowly = SendOptions { limit_bits_per_s: Some(40e6), ..SendOptions::default() };
        let receives = ReceiveOptions::default();
        let (cancel, paths) = (receives.cancel.clone(), [file]);
        let (sent, received) = scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                cancel.cancel();
            });
            transfer(&paths, into.path(), &slowly, &receives)
        });
        assert!(matches!(sent, Err(Error::Ended { .. })), "{sent:?}");
        assert!(matches!(received, Err(Error::Cancelled)), "{received:?}");
        assert!(!into.path().join("sample.bin").exists());
        let (sent, received) =
            transfer(&paths, into.path(), &SendOptions::default(), &ReceiveOptions::default());
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert!(received.resumed_bytes > 0, "it went on");
        assert_eq!(sent.resumed_bytes, received.resumed_bytes);
        assert!(fs::read(into.path().join("sample.bin")).unwrap() == contents(5_000_000));
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("precious.bin");
        fs::write(&file, contents(10_000)).unwrap();
        fs::write(into.path().join("precious.bin"), b"precious").unwrap();
        let (sent, received) =
            transfer(&[file], into.path(), &SendOptions::default(), &ReceiveOptions::default());
        assert!(matches!(sent, Err(Error::Ended { .. })), "{sent:?}");
        assert!(matches!(received, Err(Error::Exists { .. })), "{received:?}");
        assert_eq!(fs::read(into.path().join("precious.bin")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_sender_that_stops_says_so() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("f");
        fs::write(&file, contents(2_000_000)).unwrap();
        let sends = SendOptions { limit_bits_per_s: Some(10e6), ..SendOptions::default() };
        let (cancel, paths) = (sends.cancel.clone(), [file]);
        let (sent, received) = scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cancel.cancel();
            });
            transfer(&paths, into.path(), &sends, &ReceiveOptions::default())
        });
        assert!(matches!(sent, Err(Error::Cancelled)), "{sent:?}");
        assert!(matches!(received, Err(Error::Ended { .. })), "{received:?}");
    }

    #[test]
    fn nobody_there_is_an_error_that_says_whom_was_asked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ticket: Ticket = listener().ticket().clone();
        let options = SendOptions { answer_within: Duration::from_millis(300), ..SendOptions::default() };
        let error = send(&source(&[file.path().into()]), &ticket, &options, |_| {}).unwrap_err();
        assert!(error.to_string().contains(&ticket.addresses[0].to_string()), "{error}");
    }

    #[test]
    fn where_no_udp_passes_tcp_does() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("f");
        fs::write(&file, contents(3_000_000)).unwrap();
        let mut listener = listener();
        // A port where only TCP is answered.
        let only_tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let _tunnel = tunnel::Tunnel::open(only_tcp, listener.ticket().addresses[0]).unwrap();
        listener.ticket_mut().addresses = vec![only_tcp];
        let ticket = listener.ticket().clone();
        scope(|scope| {
            let receiving = scope.spawn(|| listener.receive(into.path(), &ReceiveOptions::default(), |_| {}));
            send(&source(&[file]), &ticket, &SendOptions::default(), |_| {}).unwrap();
            receiving.join().unwrap().unwrap();
        });
        assert!(fs::read(into.path().join("f")).unwrap() == contents(3_000_000));
    }

    #[test]
    fn a_ticket_that_is_over_is_not_answered() {
        let listener = ReceiveListener::bind("127.0.0.1:0".parse().unwrap(), 0).unwrap();
        let into = tempfile::tempdir().unwrap();
        let received = listener.receive(into.path(), &ReceiveOptions::default(), |_| {});
        assert!(matches!(received, Err(Error::Expired)));
    }
}
