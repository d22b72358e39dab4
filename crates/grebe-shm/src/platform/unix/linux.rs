//! Linux: memfds, seals, packets and epoll.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, accept_with, recvmsg, send, sendmsg,
    socket_with, sockopt,
};

use super::connection::Peer;
use super::memory::Memory;
use crate::message::{MEMORIES_MAX, MESSAGE_BYTES_MAX};
use crate::platform::Received;

impl Memory {
    /// Makes zeroed memory of this length.
    pub(crate) fn make(name: &str, bytes: usize) -> io::Result<Self> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, bytes as u64)?;
        Ok(fd.into())
    }

    /// Fixes the size and the seals. With `read_only`, only existing mappings can write from now on.
    pub(crate) fn seal(&mut self, read_only: bool) -> io::Result<()> {
        let mut seals = SIZE_SEALS;
        seals.set(SealFlags::FUTURE_WRITE, read_only);
        Ok(rustix::fs::fcntl_add_seals(&self.fd, seals)?)
    }

    /// Whether foreign memory has this size permanently. A mapping of shrinking memory would kill its reader.
    pub(crate) fn is_fixed_at(&self, bytes: usize) -> io::Result<bool> {
        let seals = rustix::fs::fcntl_get_seals(&self.fd)?;
        Ok(seals.contains(SIZE_SEALS) && rustix::fs::fstat(&self.fd)?.st_size == bytes as i64)
    }
}

/// Non-blocking packet socket.
#[derive(Debug)]
pub(crate) struct Connection(pub(super) OwnedFd);

impl Connection {
    /// Opens a socket.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?))
    }

    /// Next connection of a listening socket.
    pub(super) fn accept(listener: &OwnedFd) -> io::Result<Self> {
        Ok(Self(accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?))
    }

    /// Process at the other end.
    pub(super) fn peer(&self) -> io::Result<Peer> {
        let peer = sockopt::socket_peercred(&self.0)?;
        Ok(Peer { user: peer.uid, pid: peer.pid.as_raw_nonzero().get() as u32 })
    }

    /// Sends a packet. A receiver that does not read is gone, or has enough pending packets.
    pub(crate) fn send(&self, bytes: &[u8], memory: &[&Memory]) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if memory.is_empty() {
            send(&self.0, bytes, flags)?;
            return Ok(());
        }
        let fds: Vec<_> = memory.iter().map(|memory| memory.for_others()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MEMORIES_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Receives the next packet.
    pub(crate) fn receive(&self, bytes: &mut [u8; MESSAGE_BYTES_MAX]) -> Received {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MEMORIES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut is_reset = false;
        let received = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
                Err(Errno::INTR) => {}
                // The other side hung up before it read everything. The kernel reports that once, ahead of a last
                // message.
                Err(Errno::CONNRESET) if !is_reset => is_reset = true,
                Err(Errno::AGAIN) if !is_reset => return Received::Nothing,
                Err(_) => return Received::HungUp,
                Ok(received) if received.bytes == 0 => return Received::HungUp,
                Ok(received) => break received,
            }
        };
        let mut memory = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                memory.extend(rights.map(Memory::from));
            }
        }
        match received.flags.contains(ReturnFlags::TRUNC) {
            true => Received::TooLong,
            false => Received::Packet(received.bytes, memory),
        }
    }
}

/// Waits for several descriptors.
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a descriptor until it is closed.
    pub(super) fn add(&self, fd: impl AsFd, id: u64) -> io::Result<()> {
        Ok(epoll::add(&self.0, fd, epoll::EventData::new_u64(id), epoll::EventFlags::IN)?)
    }

    /// Watches the closer.
    pub(super) fn add_closer(&self, closer: &Closer, id: u64) -> io::Result<()> {
        self.add(&closer.0, id)
    }

    /// Stops watching the closer, which stays readable.
    pub(super) fn remove_closer(&self, closer: &Closer) {
        let _ = epoll::delete(&self.0, &closer.0);
    }

    /// Waits, and passes on the numbers of readable descriptors.
    pub(super) fn wait(&self, timeout: Option<Duration>, ready: impl FnMut(u64)) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut events = [MaybeUninit::uninit(); EVENTS_MAX];
        match epoll::wait(&self.0, &mut events, timeout.as_ref()) {
            Ok((events, _)) => events.iter().map(|event: &epoll::Event| event.data.u64()).for_each(ready),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}

/// Ends the wait of a [`Listener`](super::Listener).
#[derive(Debug)]
pub(crate) struct Closer(OwnedFd);

impl Closer {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn close(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// More wait for the next turn.
const EVENTS_MAX: usize = 32;
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
