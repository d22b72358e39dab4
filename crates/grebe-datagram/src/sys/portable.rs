//! One datagram per call on any system: the fallback, and the baseline of benches.

use std::io;
use std::mem::MaybeUninit;

use socket2::{MaybeUninitSlice, Socket};

use super::name::NOWHERE;
use crate::received::Received;

/// Sends one message, which is a single datagram without GSO.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn send(socket: &Socket, burst: &crate::burst::Burst<'_>, from: usize) -> io::Result<usize> {
    let message = burst.messages()[from];
    burst.each_datagram(&message, 0, |parts| {
        match message.to {
            Some(to) => socket.send_to_vectored(parts, &to.into()),
            None => socket.send_vectored(parts),
        }
        .map(drop)
    })?;
    Ok(1)
}

/// Receives one slot per call, for systems without batches.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
#[derive(Debug)]
pub(crate) struct RecvArrays;

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
impl RecvArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self
    }

    pub(crate) fn last_drops(&self) -> Option<u32> {
        None
    }

    pub(crate) fn receive<S: AsMut<[u8]>>(
        &mut self,
        socket: &Socket,
        slots: &mut [S],
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        receive(socket, slots, received)
    }
}

pub(super) fn receive<S: AsMut<[u8]>>(
    socket: &Socket,
    slots: &mut [S],
    received: &mut Vec<Received>,
) -> io::Result<()> {
    let Some(slot) = slots.first_mut() else { return Ok(()) };
    let bytes: *mut [u8] = slot.as_mut();
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, the bytes are borrowed mutably from the slot until
    // the end of the call, and the kernel only writes initialised bytes into them.
    let bytes = unsafe { &mut *(bytes as *mut [MaybeUninit<u8>]) };
    let room = bytes.len();
    let (len, flags, from) = socket.recv_from_vectored(&mut [MaybeUninitSlice::new(bytes)])?;
    // Windows does not report the length of a truncated datagram.
    let len = if flags.is_truncated() { room } else { len };
    received.push(Received {
        len,
        segment_bytes: len,
        from: from.as_socket().unwrap_or(NOWHERE),
        truncated: flags.is_truncated(),
        timestamp: None,
    });
    Ok(())
}
