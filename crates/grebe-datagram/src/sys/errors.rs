//! What an error of a sending or receiving call means.

use std::io;

#[cfg(unix)]
use libc::{EINVAL, EIO, EMSGSIZE, ENOBUFS, ENOMEM, ENOPROTOOPT, ENOSYS, EOPNOTSUPP, EPERM};
#[cfg(windows)]
use windows_sys::Win32::Networking::WinSock::{
    WSAEINVAL, WSAEMSGSIZE, WSAENOBUFS, WSAENOPROTOOPT, WSAEOPNOTSUPP,
};

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
    const CODES: [i32; 6] = [EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT, EPERM];
    #[cfg(windows)]
    const CODES: [i32; 4] = [WSAEINVAL, WSAEMSGSIZE, WSAENOPROTOOPT, WSAEOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// The system call does not exist here, or a container's filter hides it.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 2] = [ENOSYS, EPERM];
    #[cfg(windows)]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}
