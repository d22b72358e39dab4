//! Windows: `WSASendMsg` with several buffers, and USO if the stack has it. One message per call, because
//! there are no batches of messages. URO stays off (some drivers deliver wrong boundaries), so receiving
//! needs nothing special.

use std::fmt;
use std::io;
use std::os::windows::io::AsRawSocket;
use std::ptr;
use std::time::Duration;

use socket2::{SockAddr, Socket};
use windows_sys::Win32::Networking::WinSock::{
    IP_DONTFRAGMENT, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, IPV6_DONTFRAG, POLLIN, POLLOUT, SOCKET,
    SOCKET_ERROR, UDP_SEND_MSG_SIZE, WSABUF, WSAMSG, WSAPOLLFD, WSAPoll, WSASendMsg, setsockopt,
};

use super::cmsg;
pub(crate) use super::portable::RecvArrays;
use crate::burst::{Burst, Source};

pub(crate) struct SendArrays {
    control: [u64; 4],
}

impl SendArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self { control: [0; 4] }
    }

    /// Sends one message, which USO splits into datagrams.
    pub(crate) fn send(&mut self, socket: &Socket, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        let message = &burst.messages()[from];
        let mut one;
        let (buffers, count) = match burst.source(message) {
            // `IoSlice` is guaranteed to have the layout of `WSABUF`.
            Source::Slices(slices) => (slices.as_ptr().cast_mut().cast::<WSABUF>(), slices.len()),
            Source::Copied(bytes) => {
                one = WSABUF { len: bytes.len() as u32, buf: bytes.as_ptr().cast_mut() };
                (&raw mut one, 1)
            }
        };
        let to: Option<SockAddr> = message.to.map(Into::into);
        let mut control = WSABUF { len: 0, buf: ptr::null_mut() };
        if message.datagrams > 1 {
            let segment = (message.segment_bytes as u32).to_ne_bytes();
            let room = bytes_of(&mut self.control);
            control.len = cmsg::write(room, IPPROTO_UDP, UDP_SEND_MSG_SIZE, segment) as u32;
            control.buf = self.control.as_mut_ptr().cast();
        }
        let header = WSAMSG {
            name: to.as_ref().map_or(ptr::null_mut(), |to| to.as_ptr().cast_mut().cast()),
            namelen: to.as_ref().map_or(0, |to| to.len()),
            lpBuffers: buffers,
            dwBufferCount: count as u32,
            Control: control,
            dwFlags: 0,
        };
        let mut sent = 0;
        // SAFETY: the header points at slices that `burst` borrows, at `to`, and at our own control buffer, all alive until the
        // call returns; without OVERLAPPED nothing is kept after it.
        let answer = unsafe { WSASendMsg(raw(socket), &header, 0, &mut sent, ptr::null_mut(), None) };
        if answer == SOCKET_ERROR { Err(io::Error::last_os_error()) } else { Ok(1) }
    }
}

/// Whether the stack has USO. Only the option shows it: some stacks ignore the control message and send one
/// long datagram.
pub(crate) fn has_gso(socket: &Socket) -> bool {
    set_send_segment(socket, 1_400) && set_send_segment(socket, 0)
}

fn set_send_segment(socket: &Socket, bytes: u32) -> bool {
    set(socket, IPPROTO_UDP, UDP_SEND_MSG_SIZE, bytes).is_ok()
}

pub(crate) fn set_dont_fragment(socket: &Socket, v4: bool) -> io::Result<()> {
    // A dual-stack IPv6 socket has a setting per family.
    let set_v4 = set(socket, IPPROTO_IP, IP_DONTFRAGMENT, 1);
    if v4 { set_v4 } else { set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1) }
}

fn set(socket: &Socket, level: i32, option: i32, value: u32) -> io::Result<()> {
    // SAFETY: the option's value is the four bytes of `value`.
    let answer = unsafe { setsockopt(raw(socket), level, option, (&raw const value).cast(), 4) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether any socket becomes readable (or has an error) within `timeout`.
pub(crate) fn wait_readable<const N: usize>(sockets: [&Socket; N], timeout: Duration) -> io::Result<bool> {
    wait(sockets, POLLIN, timeout)
}

/// Waits until the socket is writable, at most `timeout`.
pub(crate) fn wait_writable(socket: &Socket, timeout: Duration) -> io::Result<()> {
    wait([socket], POLLOUT, timeout).map(drop)
}

fn wait<const N: usize>(sockets: [&Socket; N], events: i16, timeout: Duration) -> io::Result<bool> {
    let mut entries = sockets.map(|socket| WSAPOLLFD { fd: raw(socket), events, revents: 0 });
    // Rounded up: a wait of 0 ms would spin.
    let timeout_ms = timeout.as_micros().div_ceil(1_000).min(60_000) as i32;
    // SAFETY: `entries` are `N` valid entries for the duration of the call.
    match unsafe { WSAPoll(entries.as_mut_ptr(), N as u32, timeout_ms) } {
        0 => Ok(false),
        SOCKET_ERROR => Err(io::Error::last_os_error()),
        _ => Ok(true),
    }
}

fn raw(socket: &Socket) -> SOCKET {
    socket.as_raw_socket() as SOCKET
}

fn bytes_of(words: &mut [u64; 4]) -> &mut [u8] {
    // SAFETY: the bytes of plain integers, borrowed as long as they are.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 32) }
}

impl fmt::Debug for SendArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendArrays").finish_non_exhaustive()
    }
}
