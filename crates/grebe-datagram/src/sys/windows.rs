//! Windows: `WSASendMsg` of several buffers, with USO where the stack has it, and `WSARecvMsg`. One message per call: there are
//! no batches of messages. URO stays off (it delivers wrong boundaries on some drivers).

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::windows::io::AsRawSocket;
use std::ptr;
use std::time::Duration;

use socket2::{SockAddr, SockAddrStorage, Socket};
use windows_sys::Win32::Networking::WinSock::{
    IP_DONTFRAGMENT, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, IPV6_DONTFRAG, LPFN_WSARECVMSG, MSG_TRUNC,
    POLLIN, POLLOUT, SIO_GET_EXTENSION_FUNCTION_POINTER, SOCKET, SOCKET_ERROR, UDP_SEND_MSG_SIZE, WSABUF,
    WSAEMSGSIZE, WSAID_WSARECVMSG, WSAIoctl, WSAMSG, WSAPOLLFD, WSAPoll, WSASendMsg, setsockopt,
};

use super::{cmsg, name, portable};
use crate::burst::{Burst, Source};
use crate::received::Received;

pub(crate) struct SendArrays {
    control: [u64; 4],
}

impl SendArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self { control: [0; 4] }
    }

    /// Sends one message, which USO cuts into datagrams.
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

pub(crate) struct RecvArrays {
    name: SockAddrStorage,
    /// `WSARecvMsg`, looked up with the first socket; `None` where the stack has none.
    call: Option<LPFN_WSARECVMSG>,
}

impl RecvArrays {
    pub(crate) fn new(_: usize) -> Self {
        Self { name: SockAddrStorage::zeroed(), call: None }
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
        let Some(call) = *self.call.get_or_insert_with(|| look_up(socket)) else {
            return portable::receive(socket, slots, received);
        };
        let Some(slot) = slots.first_mut() else { return Ok(()) };
        let slot = slot.as_mut();
        let mut buffer = WSABUF { len: slot.len().min(65_535) as u32, buf: slot.as_mut_ptr() };
        // SAFETY: null pointers and zero lengths are valid for this plain C struct.
        let mut header: WSAMSG = unsafe { zeroed() };
        header.name = (&raw mut self.name).cast();
        header.namelen = size_of::<SockAddrStorage>() as i32;
        header.lpBuffers = &mut buffer;
        header.dwBufferCount = 1;
        let mut len = 0;
        // SAFETY: the header points at the slot, borrowed mutably until the end of this function, and at our own name, each
        // with its true length; without OVERLAPPED nothing is kept after the call.
        let answer = unsafe { call(raw(socket), &mut header, &mut len, ptr::null_mut(), None) };
        let mut truncated = header.dwFlags & MSG_TRUNC != 0;
        if answer == SOCKET_ERROR {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(WSAEMSGSIZE) {
                return Err(error);
            }
            // The buffer is full, and what did not fit is gone.
            (truncated, len) = (true, buffer.len);
        }
        let len = len as usize;
        received.push(Received {
            len,
            segment_bytes: len,
            from: name::address(&self.name, usize::try_from(header.namelen).unwrap_or(0)),
            truncated,
            timestamp: None,
        });
        Ok(())
    }
}

/// Asks the stack for `WSARecvMsg`.
fn look_up(socket: &Socket) -> LPFN_WSARECVMSG {
    let id = WSAID_WSARECVMSG;
    let mut call: LPFN_WSARECVMSG = None;
    let mut len = 0;
    // SAFETY: the input is a GUID, the output has room for the function pointer that this GUID stands for.
    let answer = unsafe {
        WSAIoctl(
            raw(socket),
            SIO_GET_EXTENSION_FUNCTION_POINTER,
            (&raw const id).cast::<c_void>(),
            size_of_val(&id) as u32,
            (&raw mut call).cast::<c_void>(),
            size_of_val(&call) as u32,
            &mut len,
            ptr::null_mut(),
            None,
        )
    };
    if answer == 0 { call } else { None }
}

/// Whether the stack has USO. Only the option tells: some stacks ignore the control message and send one long datagram.
pub(crate) fn has_gso(socket: &Socket) -> bool {
    set_send_segment(socket, 1_400) && set_send_segment(socket, 0)
}

fn set_send_segment(socket: &Socket, bytes: u32) -> bool {
    set(socket, IPPROTO_UDP, UDP_SEND_MSG_SIZE, bytes).is_ok()
}

pub(crate) fn set_dont_fragment(socket: &Socket, v4: bool) -> io::Result<()> {
    if v4 { set(socket, IPPROTO_IP, IP_DONTFRAGMENT, 1) } else { set(socket, IPPROTO_IPV6, IPV6_DONTFRAG, 1) }
}

fn set(socket: &Socket, level: i32, option: i32, value: u32) -> io::Result<()> {
    // SAFETY: the option's value is the four bytes of `value`.
    let answer = unsafe { setsockopt(raw(socket), level, option, (&raw const value).cast(), 4) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether there is something to read (or an error to fetch) within `timeout`.
pub(crate) fn wait_readable(socket: &Socket, timeout: Duration) -> io::Result<bool> {
    wait(socket, POLLIN, timeout)
}

/// Waits until something may be sent, at most `timeout`.
pub(crate) fn wait_writable(socket: &Socket, timeout: Duration) -> io::Result<()> {
    wait(socket, POLLOUT, timeout).map(drop)
}

fn wait(socket: &Socket, events: i16, timeout: Duration) -> io::Result<bool> {
    let mut entry = WSAPOLLFD { fd: raw(socket), events, revents: 0 };
    // Rounded up: a wait of 0 ms would spin.
    let timeout_ms = timeout.as_micros().div_ceil(1_000).min(60_000) as i32;
    // SAFETY: `entry` is one valid entry for the duration of the call.
    match unsafe { WSAPoll(&mut entry, 1, timeout_ms) } {
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

impl fmt::Debug for RecvArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvArrays").finish_non_exhaustive()
    }
}
