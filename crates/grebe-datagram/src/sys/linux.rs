//! Linux: `sendmmsg` with GSO buffers made of iovecs, `recvmmsg` with GRO buffers.

use std::fmt;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::Duration;

use libc::{c_int, c_uint, c_void, iovec, mmsghdr, socklen_t};
use socket2::{SockAddr, SockAddrStorage, Socket};

use super::{cmsg, is_absent, name};
use crate::burst::Burst;
use crate::received::Received;
use crate::side::Side;

/// Aligned room for the control messages of one message: segment size, drop counter, timestamp.
type Control = [u64; 16];

const CONTROL_BYTES: usize = size_of::<Control>();
const _: () = assert!(CONTROL_BYTES >= cmsg::space(4) + cmsg::space(4) + cmsg::space(16));

/// `libc` lacks these options for some targets.
const SK_MEMINFO_VARS: usize = 9;
const SK_MEMINFO_DROPS: usize = 8;

/// Arrays of `sendmmsg`, owned permanently.
pub(crate) struct SendArrays {
    headers: Vec<mmsghdr>,
    controls: Vec<[u64; 3]>,
    names: Vec<SockAddr>,
    /// One entry per message of copied datagrams.
    copied: Vec<iovec>,
}

// SAFETY: the pointers in the arrays are written anew before each system call and not read after it.
unsafe impl Send for SendArrays {}

impl SendArrays {
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            // SAFETY: null pointers and zero lengths are valid for these plain C structs.
            headers: vec![unsafe { zeroed() }; messages],
            controls: vec![[0; 3]; messages],
            names: vec![name::NOWHERE.into(); messages],
            copied: vec![iovec { iov_base: ptr::null_mut(), iov_len: 0 }; messages],
        }
    }

    pub(crate) fn send(&mut self, socket: &Socket, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        let messages = &burst.messages()[from..];
        let count = messages.len().min(self.headers.len());
        let entries =
            self.headers.iter_mut().zip(&mut self.controls).zip(&mut self.names).zip(&mut self.copied);
        for (message, (((header, control), to), copied)) in messages[..count].iter().zip(entries) {
            let header = &mut header.msg_hdr;
            let (first, pieces) = name::pieces(burst, message, copied);
            (header.msg_iov, header.msg_iovlen) = (first, pieces as _);
            (header.msg_name, header.msg_namelen) = name::destination(message.to, to);
            if message.datagrams > 1 {
                let segment = (message.segment_bytes as u16).to_ne_bytes();
                let room = bytes_of(control);
                header.msg_controllen = cmsg::write(room, libc::SOL_UDP, libc::UDP_SEGMENT, segment) as _;
                header.msg_control = control.as_mut_ptr().cast();
            } else {
                (header.msg_control, header.msg_controllen) = (ptr::null_mut(), 0);
            }
        }
        // SAFETY: the first `count` headers point at slices that `burst` borrows and at entries of our own
        // arrays, all alive until the call returns; the kernel only reads through them.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count as c_uint, flags as _)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Arrays of `recvmmsg`, owned permanently.
pub(crate) struct RecvArrays {
    headers: Vec<mmsghdr>,
    controls: Vec<Control>,
    names: Vec<SockAddrStorage>,
    buffers: Vec<iovec>,
    last_drops: Option<u32>,
    /// The system lacks a call for several messages, or hides it.
    is_single: bool,
}

// SAFETY: as for `SendArrays`.
unsafe impl Send for RecvArrays {}

impl RecvArrays {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            // SAFETY: null pointers and zero lengths are valid for these plain C structs.
            headers: vec![unsafe { zeroed() }; slots],
            controls: vec![[0; 16]; slots],
            names: (0..slots).map(|_| SockAddrStorage::zeroed()).collect(),
            buffers: vec![iovec { iov_base: ptr::null_mut(), iov_len: 0 }; slots],
            last_drops: None,
            is_single: false,
        }
    }

    pub(crate) fn last_drops(&self) -> Option<u32> {
        self.last_drops
    }

    pub(crate) fn receive<S: AsMut<[u8]>>(
        &mut self,
        socket: &Socket,
        slots: &mut [S],
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        let count = slots.len().min(self.headers.len());
        for (index, slot) in slots[..count].iter_mut().enumerate() {
            let slot = slot.as_mut();
            self.buffers[index] = iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = &mut self.buffers[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<SockAddrStorage>() as socklen_t;
            header.msg_control = self.controls[index].as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_flags = 0;
        }
        let got = match self.call(socket, count) {
            // A plain `recv` would lose the segment size, which separates coalesced datagrams.
            Err(error) if !self.is_single && is_absent(&error) => {
                self.is_single = true;
                self.call(socket, count)?
            }
            got => got?,
        };
        for index in 0..got {
            received.push(self.read(index));
        }
        Ok(())
    }

    /// Returns how many of the first `count` headers were filled.
    fn call(&mut self, socket: &Socket, count: usize) -> io::Result<usize> {
        let (socket, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let Some(first) = self.headers[..count].first_mut().filter(|_| self.is_single) else {
            // SAFETY: the first `count` headers point at slots that the caller borrows mutably until it has
            // the answer, and at entries of our own arrays, each with its true length.
            let got = unsafe {
                libc::recvmmsg(
                    socket,
                    self.headers.as_mut_ptr(),
                    count as c_uint,
                    flags as _,
                    ptr::null_mut(),
                )
            };
            return usize::try_from(got).map_err(|_| io::Error::last_os_error());
        };
        // SAFETY: as above, for the first header.
        let bytes = unsafe { libc::recvmsg(socket, &mut first.msg_hdr, flags) };
        first.msg_len = u32::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
        Ok(1)
    }

    fn read(&mut self, index: usize) -> Received {
        let len = self.headers[index].msg_len as usize;
        let header = &self.headers[index].msg_hdr;
        let mut received = Received {
            len,
            segment_bytes: len,
            from: name::address(&self.names[index], header.msg_namelen as usize),
            truncated: header.msg_flags & libc::MSG_TRUNC != 0,
            timestamp: None,
        };
        // A `socklen_t` in musl, a `size_t` in glibc.
        #[allow(clippy::unnecessary_cast)]
        let filled = (header.msg_controllen as usize).min(CONTROL_BYTES);
        let control = &bytes_of(&mut self.controls[index])[..filled];
        for (level, kind, data) in cmsg::Messages::new(control) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    if let Some(segment) = data.first_chunk::<4>() {
                        let segment = c_int::from_ne_bytes(*segment);
                        received.segment_bytes = usize::try_from(segment).unwrap_or(0).clamp(1, len.max(1));
                    }
                }
                // The last message with the counter has the newest value.
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    self.last_drops = data.first_chunk().map(|drops| u32::from_ne_bytes(*drops));
                }
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => received.timestamp = timestamp(data),
                _ => {}
            }
        }
        received
    }
}

fn timestamp(data: &[u8]) -> Option<Duration> {
    if data.len() < size_of::<libc::timespec>() {
        return None;
    }
    // SAFETY: there are enough bytes, and any bytes are a timespec.
    let time: libc::timespec = unsafe { data.as_ptr().cast::<libc::timespec>().read_unaligned() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

fn bytes_of<const N: usize>(words: &mut [u64; N]) -> &mut [u8] {
    // SAFETY: the bytes of plain integers, borrowed as long as they are.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), N * 8) }
}

/// Linux reports twice the requested size, because its own bookkeeping counts against the buffer.
pub(crate) fn usable_buffer_bytes(reported: usize) -> usize {
    reported / 2
}

pub(crate) fn force_buffer(socket: &Socket, side: Side, bytes: usize) -> io::Result<()> {
    let option = match side {
        Side::Receive => libc::SO_RCVBUFFORCE,
        Side::Send => libc::SO_SNDBUFFORCE,
    };
    set(socket, libc::SOL_SOCKET, option, c_int::try_from(bytes).unwrap_or(c_int::MAX / 2))
}

/// Whether the kernel knows UDP_SEGMENT (4.18). Whether it works on a route shows only in use.
pub(crate) fn has_gso(socket: &Socket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Without it (before 5.12, or with a filter), segments arrive singly, which is not an error.
pub(crate) fn enable_gro(socket: &Socket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

pub(crate) fn enable_drop_counter(socket: &Socket) -> bool {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1).is_ok()
}

pub(crate) fn enable_timestamps(socket: &Socket) -> bool {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok()
}

/// DF on every datagram, and no cached path MTU, as a search for the path MTU needs (ip(7),
/// IP_PMTUDISC_PROBE).
pub(crate) fn set_dont_fragment(socket: &Socket, v4: bool) -> io::Result<()> {
    // A dual-stack IPv6 socket has a setting per family.
    let set_v4 = set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
    if v4 {
        return set_v4;
    }
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
}

/// Sets the interface for outgoing multicast by index (ip(7), IP_MULTICAST_IF).
pub(crate) fn set_multicast_index_v4(socket: &Socket, index: u32) -> io::Result<()> {
    let any = libc::in_addr { s_addr: 0 };
    let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index as c_int };
    let len = size_of_val(&request) as socklen_t;
    // SAFETY: the option's value is the `len` bytes of `request`.
    let answer = unsafe {
        let value = (&raw const request).cast::<c_void>();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, value, len)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Present drop counter; SO_RXQ_OVFL reports it only with a later datagram.
pub(crate) fn drops_now(socket: &Socket) -> Option<u32> {
    let mut info = [0_u32; SK_MEMINFO_VARS];
    let mut len = size_of_val(&info) as socklen_t;
    // SAFETY: `info` has `len` bytes of room.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast::<c_void>(),
            &mut len,
        )
    };
    (answer == 0 && len as usize >= size_of_val(&info)).then_some(info[SK_MEMINFO_DROPS])
}

/// MTU of a connected socket's route, in bytes.
pub(crate) fn route_mtu_bytes(socket: &Socket, v4: bool) -> Option<usize> {
    let (level, option) =
        if v4 { (libc::IPPROTO_IP, libc::IP_MTU) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU) };
    let mut mtu: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: `mtu` has `len` bytes of room.
    let answer = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut mtu).cast::<c_void>(), &mut len)
    };
    if answer == 0 { usize::try_from(mtu).ok() } else { None }
}

fn set(socket: &Socket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as socklen_t;
    // SAFETY: the option's value is the `len` bytes of `value`.
    let answer = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast::<c_void>(), len)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl fmt::Debug for SendArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendArrays").field("messages", &self.headers.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RecvArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvArrays").field("slots", &self.headers.len()).finish_non_exhaustive()
    }
}
