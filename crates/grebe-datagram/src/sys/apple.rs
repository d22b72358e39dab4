//! macOS: `sendmsg_x` and `recvmsg_x`, looked up at run time. If they are missing or unsafe, one datagram per
//! call.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use libc::{c_int, c_uint};
use socket2::Socket;

use super::msgx::{self, Calls, RecvBatches, SendBatches, msghdr_x};
use super::portable;
use crate::burst::Burst;
use crate::received::Received;

type SendFn = unsafe extern "C" fn(c_int, *const msghdr_x, c_uint, c_int) -> isize;
type RecvFn = unsafe extern "C" fn(c_int, *mut msghdr_x, c_uint, c_int) -> isize;

/// Private calls available on this system.
#[derive(Clone, Copy, Default)]
struct Private {
    send: Option<SendFn>,
    recv: Option<RecvFn>,
}

impl Private {
    fn look_up() -> Self {
        // SAFETY: the names are C strings; the functions found have the signature of XNU's
        // `socket_private.h`, and a missing symbol is a null pointer, which is `None`.
        unsafe {
            let find = |name: &CStr| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            let send = find(c"sendmsg_x");
            let recv = find(c"recvmsg_x");
            Self {
                send: (!send.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, SendFn>(send)),
                recv: (!recv.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, RecvFn>(recv)),
            }
        }
    }
}

impl Calls for Private {
    unsafe fn sendmsg_x(&mut self, fd: RawFd, headers: &[msghdr_x]) -> io::Result<usize> {
        let Some(send) = self.send else { return Err(io::Error::from_raw_os_error(libc::ENOSYS)) };
        // SAFETY: the caller's promise, and the length is that of the slice.
        let sent = unsafe { send(fd, headers.as_ptr(), headers.len() as c_uint, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    unsafe fn recvmsg_x(&mut self, fd: RawFd, headers: &mut [msghdr_x]) -> io::Result<usize> {
        let Some(recv) = self.recv else { return Err(io::Error::from_raw_os_error(libc::ENOSYS)) };
        // SAFETY: the caller's promise, and the length is that of the slice.
        let got = unsafe { recv(fd, headers.as_mut_ptr(), headers.len() as c_uint, libc::MSG_DONTWAIT) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }
}

pub(crate) struct SendArrays {
    calls: Private,
    batches: SendBatches,
}

impl SendArrays {
    pub(crate) fn new(messages: usize) -> Self {
        Self { calls: Private::look_up(), batches: SendBatches::new(messages) }
    }

    pub(crate) fn send(&mut self, socket: &Socket, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        match self.calls.send {
            Some(_) => self.batches.send(&mut self.calls, socket.as_raw_fd(), burst, from),
            None => portable::send(socket, burst, from),
        }
    }
}

pub(crate) struct RecvArrays {
    calls: Private,
    batches: RecvBatches,
}

impl RecvArrays {
    pub(crate) fn new(slots: usize) -> Self {
        let calls = if msgx::may_receive_batches(&darwin_release()) {
            Private::look_up()
        } else {
            Private::default()
        };
        Self { calls, batches: RecvBatches::new(slots) }
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
        match self.calls.recv {
            Some(_) => self.batches.receive(&mut self.calls, socket.as_raw_fd(), slots, received),
            None => portable::receive(socket, slots, received),
        }
    }
}

pub(crate) fn has_gso(_: &Socket) -> bool {
    false
}

/// IPv4 has the option since macOS 11.
pub(crate) fn set_dont_fragment(socket: &Socket, v4: bool) -> io::Result<()> {
    // A dual-stack IPv6 socket has a setting per family.
    let set_v4 = set_flag(socket, libc::IPPROTO_IP, libc::IP_DONTFRAG);
    if v4 { set_v4 } else { set_flag(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG) }
}

fn set_flag(socket: &Socket, level: c_int, option: c_int) -> io::Result<()> {
    let on: c_int = 1;
    let len = std::mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the option's value is the `len` bytes of `on`.
    let answer = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Kernel version, such as "24.6.0"; empty if unknown.
fn darwin_release() -> String {
    // SAFETY: a zeroed `utsname` is valid, and `uname` fills it with strings that end in zero.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        if libc::uname(&mut name) != 0 {
            return String::new();
        }
        CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

impl fmt::Debug for SendArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendArrays").field("sendmsg_x", &self.calls.send.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RecvArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvArrays").field("recvmsg_x", &self.calls.recv.is_some()).finish_non_exhaustive()
    }
}
