//! Completion port of a producer.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED_ENTRY, PostQueuedCompletionStatus,
};

use super::{owned, succeeded};

/// Reports finished transfers by the number of their connection. It also ends the wait of a
/// [`Listener`](super::Listener).
#[derive(Debug)]
pub(crate) struct Port(OwnedHandle);

impl Port {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: makes a port without a file.
        Ok(Self(owned(unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1) })?))
    }

    /// Reports that the publisher is gone.
    pub(crate) fn close(&self) {
        self.post(CLOSED);
    }

    /// Reports the pipe's finished transfers under this number.
    pub(super) fn add(&self, pipe: &OwnedHandle, id: u64) -> io::Result<()> {
        // SAFETY: both handles are open.
        let port =
            unsafe { CreateIoCompletionPort(pipe.as_raw_handle(), self.0.as_raw_handle(), id as usize, 0) };
        succeeded(i32::from(!port.is_null()))
    }

    /// Reports this number.
    pub(super) fn post(&self, id: u64) {
        // SAFETY: the port is open, and nobody follows the missing pointer.
        unsafe { PostQueuedCompletionStatus(self.0.as_raw_handle(), 0, id as usize, null()) };
    }

    /// Waits, and passes on the reported numbers.
    pub(super) fn wait(&self, timeout: Option<Duration>, reported: impl FnMut(u64)) -> io::Result<()> {
        let mut entries = [OVERLAPPED_ENTRY::default(); EVENTS_MAX];
        let mut count = 0;
        // SAFETY: the entries have the length given.
        let result = unsafe {
            GetQueuedCompletionStatusEx(
                self.0.as_raw_handle(),
                entries.as_mut_ptr(),
                EVENTS_MAX as u32,
                &mut count,
                milliseconds(timeout),
                0,
            )
        };
        match succeeded(result) {
            Ok(()) => {
                entries[..count as usize].iter().map(|entry| entry.lpCompletionKey as u64).for_each(reported);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(WAIT_TIMEOUT as i32) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Rounded up, so that a short wait is one. `None`: without end.
pub(super) fn milliseconds(timeout: Option<Duration>) -> u32 {
    timeout.map_or(u32::MAX, |timeout| timeout.as_micros().div_ceil(1_000).min(3_600_000) as u32)
}

/// Number of the event that the publisher is gone.
pub(super) const CLOSED: u64 = 0;
/// More wait for the next turn.
const EVENTS_MAX: usize = 32;
