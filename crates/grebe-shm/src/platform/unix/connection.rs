//! Unix socket between a producer and a consumer.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, connect, shutdown};
use rustix::process::{Uid, geteuid};

use super::memory::Memory;
use super::names;
use super::system::Connection;
use crate::error::Error;

/// Process at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(super) user: Uid,
    pub(crate) pid: u32,
}

impl Peer {
    /// Reason to refuse a process that is neither of this user nor of the given ones.
    pub(crate) fn refusal(&self, allow_uids: &[u32]) -> Option<String> {
        let (uid, own) = (self.user.as_raw(), rustix::process::getuid().as_raw());
        (uid != own && !allow_uids.contains(&uid))
            .then(|| format!("it is for user {own}, not for user {uid}"))
    }
}

impl Connection {
    /// Connects to the producer of this name and file.
    pub(crate) fn connect(name: &str, path: &Path, timeout: Duration) -> Result<Self, Error> {
        let absent = || Error::NoStream { name: name.to_owned(), path: path.to_owned() };
        let address = names::address(path)?;
        let until = Instant::now() + timeout;
        loop {
            let connection = Self::open().map_err(Error::tried("open a socket"))?;
            match connect(&connection.0, &address) {
                Ok(()) => return Ok(connection),
                Err(Errno::NOENT | Errno::CONNREFUSED) => return Err(absent()),
                // The listener's queue is full because others connect too.
                Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                Err(Errno::AGAIN) => return Err(Error::Silent { name: name.to_owned(), timeout }),
                Err(errno) => return Err(Error::tried("connect to the producer")(errno)),
            }
        }
    }

    /// Waits until a packet or a hang-up can be received. Returns whether one can; may return early.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = timeout.min(Duration::from_secs(3600));
        let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends nothing more, and says so. Still receives until the other side hangs up.
    pub(crate) fn hang_up(&self) {
        // Fails only if it has hung up already.
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    /// Whether this process's user both listens at the other end and made the memory. The placeholder for users
    /// of another namespace matches nobody.
    pub(crate) fn is_from_own_user(&self, memory: &Memory) -> bool {
        let own = geteuid();
        let listener = self.peer().ok().map(|peer| peer.user);
        own.as_raw() != OVERFLOW_UID && listener == Some(own) && memory.maker().ok() == Some(own)
    }
}

/// The kernel's placeholder for users unknown to this namespace (user_namespaces(7)).
const OVERFLOW_UID: u32 = 65_534;
