//! What an error of a sending or receiving call means.

use std::io;

#[cfg(unix)]
use libc::{
    EADDRNOTAVAIL, EHOSTDOWN, EHOSTUNREACH, EINVAL, EIO, EMSGSIZE, ENETDOWN, ENETRESET, ENETUNREACH, ENOBUFS,
    ENOMEM, ENOPROTOOPT, ENOSYS, EOPNOTSUPP, EPERM,
};
#[cfg(windows)]
use windows_sys::Win32::Networking::WinSock::{
    WSAEADDRNOTAVAIL, WSAEHOSTDOWN, WSAEHOSTUNREACH, WSAEINVAL, WSAEMSGSIZE, WSAENETDOWN, WSAENETRESET,
    WSAENETUNREACH, WSAENOBUFS, WSAENOPROTOOPT, WSAEOPNOTSUPP,
};

/// Nothing leaves now, and it may later: the link is down, there is no route, a firewall forbids it, nobody listens, or a queue
/// stays full.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 7] = [ENETUNREACH, EHOSTUNREACH, EHOSTDOWN, ENETDOWN, ENETRESET, EADDRNOTAVAIL, EPERM];
    #[cfg(windows)]
    const CODES: [i32; 6] =
        [WSAENETUNREACH, WSAEHOSTUNREACH, WSAEHOSTDOWN, WSAENETDOWN, WSAENETRESET, WSAEADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
        || is_out_of_buffers(error)
        || matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
        )
}

/// The kernel or a device has no room now, and nothing tells when it has again.
pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 2] = [ENOBUFS, ENOMEM];
    #[cfg(windows)]
    const CODES: [i32; 1] = [WSAENOBUFS];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Segmentation offload may be the reason for this error.
pub(crate) fn may_be_gso(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 5] = [EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT];
    #[cfg(windows)]
    const CODES: [i32; 4] = [WSAEINVAL, WSAEMSGSIZE, WSAENOPROTOOPT, WSAEOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// The system call does not exist here, or a container's filter hides it.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 1] = [ENOSYS];
    #[cfg(windows)]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code)) || is_forbidden(error)
}

/// A firewall drops the datagram, or a container's filter hides the system call.
pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 1] = [EPERM];
    #[cfg(windows)]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}
