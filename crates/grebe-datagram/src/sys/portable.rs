//! One datagram a call, on any system: the fallback, and the baseline that benches compare with.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{MaybeUninitSlice, Socket};

use crate::Received;

pub(super) fn receive<S: AsMut<[u8]>>(
    socket: &Socket,
    slots: &mut [S],
    received: &mut Vec<Received>,
) -> io::Result<()> {
    let Some(slot) = slots.first_mut() else { return Ok(()) };
    let bytes: *mut [u8] = slot.as_mut();
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, the bytes are borrowed mutably from the slot until the end of the call,
    // and the kernel only writes initialised bytes into them.
    let bytes = unsafe { &mut *(bytes as *mut [MaybeUninit<u8>]) };
    let (len, flags, from) = socket.recv_from_vectored(&mut [MaybeUninitSlice::new(bytes)])?;
    let from = from.as_socket().unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    received.push(Received {
        len,
        segment_bytes: len,
        from,
        truncated: flags.is_truncated(),
        timestamp: None,
    });
    Ok(())
}
