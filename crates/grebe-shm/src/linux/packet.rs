//! Packets on the control socket, with file descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};

use crate::message::{MESSAGE_BYTES_MAX, Malformed, Message};

#[derive(Debug)]
pub(super) enum Packet {
    /// Message with its file descriptors.
    Message(Message, Vec<OwnedFd>),
    /// Malformed packet.
    Malformed(Malformed),
    /// Nothing available now.
    Nothing,
    /// The other side hung up.
    HungUp,
}

/// Sends a message; never waits. A receiver that does not read is gone, or has enough pending messages.
pub(super) fn send_message(
    to: impl AsFd,
    message: &Message,
    fds: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let len = message.encode(&mut bytes);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if fds.is_empty() {
        return send(to, &bytes[..len], flags).map(drop);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    sendmsg(to, &[IoSlice::new(&bytes[..len])], &mut control, flags).map(drop)
}

/// Receives the next packet; never waits.
pub(super) fn receive(from: impl AsFd) -> Packet {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut is_reset = false;
    let received = loop {
        match recvmsg(&from, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            // The other side hung up before it read everything. The kernel reports that once, ahead of a last message.
            Err(Errno::CONNRESET) if !is_reset => is_reset = true,
            Err(Errno::AGAIN) if !is_reset => return Packet::Nothing,
            Err(_) => return Packet::HungUp,
            Ok(received) if received.bytes == 0 => return Packet::HungUp,
            Ok(received) => break received,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Packet::Malformed(Malformed::Foreign);
    }
    match Message::decode(&bytes[..received.bytes]) {
        Ok(message) => Packet::Message(message, fds),
        Err(malformed) => Packet::Malformed(malformed),
    }
}

/// Payload and lane.
const FDS_MAX: usize = 2;
