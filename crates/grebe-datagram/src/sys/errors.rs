//! Classification of send and receive errors.

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

/// Whether the error is temporary: link down, no route, firewall, nobody listening, or a full queue.
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

/// Whether the kernel or a device has no room now, without a signal when it has.
pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 2] = [ENOBUFS, ENOMEM];
    #[cfg(windows)]
    const CODES: [i32; 1] = [WSAENOBUFS];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Whether segmentation offload may have caused this error.
pub(crate) fn may_be_gso(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 5] = [EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT];
    #[cfg(windows)]
    const CODES: [i32; 4] = [WSAEINVAL, WSAEMSGSIZE, WSAENOPROTOOPT, WSAEOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Whether the system call does not exist, or a container's filter hides it.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 1] = [ENOSYS];
    #[cfg(windows)]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code)) || is_forbidden(error)
}

/// Whether a firewall drops the datagram, or a container's filter hides the system call.
pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 1] = [EPERM];
    #[cfg(windows)]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}
