//! macOS: POSIX shared memory, a stream of packets, and kqueue.

use std::ffi::c_void;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::{from_mut, without_provenance_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, SystemTime};

use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent, kqueue};
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketType, accept, recvmsg, sendmsg, shutdown, socket,
    sockopt,
};
use rustix::process::Uid;
use rustix::shm;

use super::connection::Peer;
use super::memory::Memory;
use crate::message::{MEMORIES_MAX, MESSAGE_BYTES_MAX};
use crate::platform::Received;

impl Memory {
    /// Makes zeroed memory of this length. Its name exists for this moment only.
    pub(crate) fn make(_: &str, bytes: usize) -> io::Result<Self> {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        loop {
            let nanos =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
            // At most 31 bytes.
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("/grebe.{:x}.{count:x}.{nanos:x}", std::process::id());
            let fd = match shm::open(&name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => continue,
                opened => opened?,
            };
            let read_only = shm::open(&name, shm::OFlags::RDONLY, Mode::empty());
            shm::unlink(&name)?;
            rustix::fs::ftruncate(&fd, bytes as u64)?;
            return Ok(Self { fd, read_only: Some(read_only?) });
        }
    }

    /// The length was fixed when it was set. With `read_only`, other processes get a descriptor that cannot write.
    pub(crate) fn seal(&mut self, read_only: bool) -> io::Result<()> {
        if !read_only {
            self.read_only = None;
        }
        Ok(())
    }

    /// Whether foreign memory has this size permanently. The kernel sets the length of a POSIX object once
    /// (`pshm_truncate`), in whole pages. Other kinds, which may shrink, have a file type, and an object has none.
    pub(crate) fn is_fixed_at(&self, bytes: usize) -> io::Result<bool> {
        let found = rustix::fs::fstat(&self.fd)?;
        Ok(found.st_mode & libc::S_IFMT == 0 && found.st_size >= bytes as i64)
    }
}

/// Non-blocking stream socket. Each packet follows its length in two bytes.
#[derive(Debug)]
pub(crate) struct Connection(pub(super) OwnedFd, Mutex<Partial>);

/// Packet that is arriving.
#[derive(Debug)]
struct Partial {
    bytes: [u8; LENGTH_BYTES + MESSAGE_BYTES_MAX],
    len: usize,
    memory: Vec<Memory>,
}

impl Connection {
    /// Opens a socket.
    pub(super) fn open() -> io::Result<Self> {
        Self::new(socket(AddressFamily::UNIX, SocketType::STREAM, None)?)
    }

    /// Next connection of a listening socket.
    pub(super) fn accept(listener: &OwnedFd) -> io::Result<Self> {
        Self::new(accept(listener)?)
    }

    fn new(socket: OwnedFd) -> io::Result<Self> {
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        ioctl_fionbio(&socket, true)?;
        sockopt::set_socket_nosigpipe(&socket, true)?;
        let partial = Partial { bytes: [0; LENGTH_BYTES + MESSAGE_BYTES_MAX], len: 0, memory: Vec::new() };
        Ok(Self(socket, Mutex::new(partial)))
    }

    /// Process at the other end.
    pub(super) fn peer(&self) -> io::Result<Peer> {
        let (mut uid, mut gid, mut pid): (libc::uid_t, libc::gid_t, libc::pid_t) = (0, 0, 0);
        let mut length = size_of::<libc::pid_t>() as libc::socklen_t;
        let fd = self.0.as_raw_fd();
        // SAFETY: the descriptor is open, the places are valid, and `length` is of `pid`.
        let results = unsafe {
            [
                libc::getpeereid(fd, &mut uid, &mut gid),
                libc::getsockopt(
                    fd,
                    libc::SOL_LOCAL,
                    libc::LOCAL_PEERPID,
                    from_mut(&mut pid).cast::<c_void>(),
                    &mut length,
                ),
            ]
        };
        if results != [0, 0] {
            return Err(io::Error::last_os_error());
        }
        Ok(Peer { user: Uid::from_raw(uid), pid: pid as u32 })
    }

    /// Sends a packet. A receiver that does not read is gone, or has enough pending packets.
    pub(crate) fn send(&self, bytes: &[u8], memory: &[&Memory]) -> io::Result<()> {
        let length = (bytes.len() as u16).to_le_bytes();
        let parts = [IoSlice::new(&length), IoSlice::new(bytes)];
        let fds: Vec<_> = memory.iter().map(|memory| memory.for_others()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MEMORIES_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let sent = sendmsg(&self.0, &parts, &mut control, SendFlags::empty())?;
        if sent < LENGTH_BYTES + bytes.len() {
            // Not expected: with less room than its low-water mark of 2 KiB the socket takes nothing. The rest would
            // look like another packet.
            let _ = shutdown(&self.0, Shutdown::Both);
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    /// Receives the next packet. Reads no byte beyond it, so that the rest is still announced.
    pub(crate) fn receive(&self, bytes: &mut [u8; MESSAGE_BYTES_MAX]) -> Received {
        let mut partial = self.1.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            let whole = partial.whole();
            if whole > partial.bytes.len() {
                return Received::TooLong;
            }
            if partial.len >= LENGTH_BYTES && partial.len == whole {
                let message = whole - LENGTH_BYTES;
                bytes[..message].copy_from_slice(&partial.bytes[LENGTH_BYTES..whole]);
                partial.len = 0;
                return Received::Packet(message, std::mem::take(&mut partial.memory));
            }
            match partial.read(&self.0, whole) {
                Ok(0) => return Received::HungUp,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::HungUp,
            }
        }
    }
}

impl Partial {
    /// Bytes to have before the next step: the length, then all.
    fn whole(&self) -> usize {
        match self.len {
            0..LENGTH_BYTES => LENGTH_BYTES,
            _ => LENGTH_BYTES + usize::from(u16::from_le_bytes([self.bytes[0], self.bytes[1]])),
        }
    }

    fn read(&mut self, socket: &OwnedFd, until: usize) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MEMORIES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let place = &mut self.bytes[self.len..until];
        let received = recvmsg(socket, &mut [IoSliceMut::new(place)], &mut control, RecvFlags::empty())?;
        self.len += received.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                for fd in rights {
                    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
                    // A hostile sender cannot pile them up.
                    if self.memory.len() < MEMORIES_MAX {
                        self.memory.push(fd.into());
                    }
                }
            }
        }
        Ok(received.bytes)
    }
}

/// Waits for several descriptors.
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let queue = kqueue()?;
        fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
        Ok(Self(queue))
    }

    /// Watches a descriptor until it is closed.
    pub(super) fn add(&self, fd: impl AsFd, id: u64) -> io::Result<()> {
        self.change(fd, EventFlags::ADD, id)
    }

    /// Watches the closer.
    pub(super) fn add_closer(&self, closer: &Closer, id: u64) -> io::Result<()> {
        self.add(&closer.read, id)
    }

    /// Stops watching the closer, which stays readable.
    pub(super) fn remove_closer(&self, closer: &Closer) {
        let _ = self.change(&closer.read, EventFlags::DELETE, 0);
    }

    fn change(&self, fd: impl AsFd, flags: EventFlags, id: u64) -> io::Result<()> {
        let filter = EventFilter::Read(fd.as_fd().as_raw_fd());
        let change = Event::new(filter, flags, without_provenance_mut(id as usize));
        let mut none: [MaybeUninit<Event>; 0] = [];
        // SAFETY: the descriptor is open; the kernel forgets it when it is closed.
        unsafe { kevent(&self.0, &[change], &mut none, Some(Duration::ZERO)) }?;
        Ok(())
    }

    /// Waits, and passes on the numbers of readable descriptors.
    pub(super) fn wait(&self, timeout: Option<Duration>, ready: impl FnMut(u64)) -> io::Result<()> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        // SAFETY: no changes, so no descriptors.
        match unsafe { kevent(&self.0, &[], &mut events, timeout) } {
            Ok((events, _)) => events.iter().map(|event| event.udata().addr() as u64).for_each(ready),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}

/// Ends the wait of a [`Listener`](super::Listener).
#[derive(Debug)]
pub(crate) struct Closer {
    read: UnixStream,
    write: UnixStream,
}

impl Closer {
    pub(crate) fn new() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        Ok(Self { read, write })
    }

    pub(crate) fn close(&self) {
        let _ = (&self.write).write(&[1]);
    }
}

const LENGTH_BYTES: usize = 2;
/// More wait for the next turn.
const EVENTS_MAX: usize = 32;
