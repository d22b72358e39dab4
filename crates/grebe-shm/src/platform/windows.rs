//! Windows: sections, duplicated handles, pipes of messages, and a file per stream that has its pipe's name.
//!
//! ```text
//!   NAME.shm    held open by the producer, deleted by the system when the producer ends    "grebe-812-0-1c9f..."
//!   pipe        for this user only, not for other machines; a process that ends breaks it
//!   packet      number of handles | handles, 8 bytes each, valid in the receiver | message
//! ```
//!
//! A read is always under way, into the connection's own memory. It ends with a packet or the hang-up, and sets the
//! connection's event. A producer's connections also report to its completion port.

mod connection;
mod listener;
mod memory;
pub(crate) mod names;
mod port;
mod transfer;
mod user;

pub(crate) use connection::{Connection, Peer};
pub(crate) use listener::Listener;
pub(crate) use memory::Memory;
pub(crate) use port::Port as Closer;

use std::io;
use std::os::windows::io::{FromRawHandle as _, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};

/// Takes a handle that a system call returned.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a valid handle, just made for the caller.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Result of a system call that returns zero on failure.
fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
