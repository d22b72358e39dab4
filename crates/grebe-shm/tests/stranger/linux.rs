//! Hostile program on a Unix socket.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg, socket_with,
};

/// Hostile program that speaks the protocol.
pub(crate) struct Stranger {
    socket: OwnedFd,
    pub(crate) fds: Vec<OwnedFd>,
}

impl Stranger {
    pub(crate) fn connect(folder: &Path) -> Self {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(folder.join("x.shm")).unwrap()).unwrap();
        Self { socket, fds: Vec::new() }
    }

    pub(crate) fn say(&self, bytes: &[u8]) {
        let mut none = SendAncillaryBuffer::default();
        let _ = sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut none, SendFlags::NOSIGNAL);
    }

    /// Next packet; empty once the producer has hung up. Keeps its descriptors.
    pub(crate) fn hear(&mut self) -> Vec<u8> {
        let mut bytes = [0; 256];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::empty());
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                self.fds.extend(rights);
            }
        }
        received.map_or_else(|_| Vec::new(), |received| bytes[..received.bytes].to_vec())
    }

    /// Joins as a reader that drops the oldest.
    pub(crate) fn join(folder: &Path) -> Self {
        let mut stranger = Self::connect(folder);
        let mut hello = vec![0; 60];
        hello[..8].copy_from_slice(b"GSHM\x03\0\x01\0");
        (hello[8], hello[12], hello[16]) = (1, 4, 8);
        stranger.say(&hello);
        stranger.hear();
        assert_eq!(stranger.fds.len(), 2, "payload and lane");
        stranger
    }

    /// Writes garbage all over its own lane.
    pub(crate) fn write_over_its_lane(&self) {
        rustix::io::pwrite(&self.fds[1], &[0xA5; 640], 0).unwrap();
    }
}
