//! Reads, writes and connects that the system finishes later.

use std::cell::UnsafeCell;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_IO_INCOMPLETE, ERROR_IO_PENDING, ERROR_MORE_DATA, ERROR_PIPE_CONNECTED, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::ConnectNamedPipe;
use windows_sys::Win32::System::Threading::{CreateEventW, SetEvent, WaitForSingleObject};

use super::port::milliseconds;
use super::{owned, succeeded};

/// One transfer at a time on a pipe, with its own memory.
#[derive(Debug)]
pub(super) struct Transfer {
    pipe: Arc<OwnedHandle>,
    /// Set when the transfer is finished.
    event: OwnedHandle,
    shared: Box<Shared>,
    is_pending: bool,
    /// Why the last one could not begin.
    failed: Option<u32>,
}

/// Written by the system while a transfer is under way.
#[derive(Debug)]
struct Shared {
    overlapped: UnsafeCell<OVERLAPPED>,
    bytes: UnsafeCell<[u8; BYTES_MAX]>,
}

/// Outcome of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Finished with this many bytes.
    Done(usize),
    /// Finished, but the packet is longer than the memory.
    TooLong,
    /// Under way.
    Pending,
    /// Broken pipe, or another error.
    Failed,
}

impl Transfer {
    /// Without `reports`, a completion port of the pipe hears nothing of it.
    pub(super) fn new(pipe: Arc<OwnedHandle>, reports: bool) -> io::Result<Self> {
        // SAFETY: plain values.
        let event = owned(unsafe { CreateEventW(null(), 1, 0, null()) })?;
        // The lowest bit keeps the port quiet (GetQueuedCompletionStatus, lpOverlapped).
        let told = event.as_raw_handle().map_addr(|handle| handle | usize::from(!reports));
        let overlapped = OVERLAPPED { hEvent: told, ..OVERLAPPED::default() };
        let shared = Box::new(Shared { overlapped: overlapped.into(), bytes: [0; BYTES_MAX].into() });
        Ok(Self { pipe, event, shared, is_pending: false, failed: None })
    }

    /// Waits for a client of a new pipe. Returns whether the port will report it.
    pub(super) fn connect(&mut self) -> bool {
        assert!(!self.is_pending, "one transfer at a time");
        // SAFETY: `shared` stays until the system has finished (`drop`), and is not read before.
        let result = unsafe { ConnectNamedPipe(self.pipe.as_raw_handle(), self.shared.overlapped.get()) };
        self.begun(result)
    }

    /// Reads the next packet. Returns whether the port will report it.
    pub(super) fn read(&mut self) -> bool {
        assert!(!self.is_pending, "one transfer at a time");
        // SAFETY: as for `connect`; `bytes` has the length given.
        let result = unsafe {
            ReadFile(
                self.pipe.as_raw_handle(),
                self.shared.bytes.get().cast(),
                BYTES_MAX as u32,
                null_mut(),
                self.shared.overlapped.get(),
            )
        };
        self.begun(result)
    }

    /// Writes a packet, which `fill` makes; it returns the length.
    pub(super) fn write(&mut self, fill: impl FnOnce(&mut [u8; BYTES_MAX]) -> usize) -> io::Result<()> {
        assert!(!self.is_pending, "one transfer at a time");
        let len = fill(self.shared.bytes.get_mut());
        // SAFETY: as for `connect`; `len` bytes are within `bytes`.
        let result = unsafe {
            WriteFile(
                self.pipe.as_raw_handle(),
                self.shared.bytes.get().cast(),
                len.min(BYTES_MAX) as u32,
                null_mut(),
                self.shared.overlapped.get(),
            )
        };
        self.begun(result);
        match self.failed {
            Some(code) => Err(io::Error::from_raw_os_error(code as i32)),
            None => Ok(()),
        }
    }

    fn begun(&mut self, result: i32) -> bool {
        let code = match succeeded(result) {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(0) as u32,
        };
        // A packet that is too long was read, in part.
        self.is_pending = matches!(code, 0 | ERROR_IO_PENDING | ERROR_MORE_DATA);
        self.failed = (!self.is_pending).then_some(code);
        if !self.is_pending {
            self.set_event();
        }
        self.is_pending
    }

    /// Outcome of the last transfer, without waiting.
    pub(super) fn outcome(&mut self) -> Outcome {
        if let Some(code) = self.failed {
            // A client that was faster than `connect`.
            return if code == ERROR_PIPE_CONNECTED { Outcome::Done(0) } else { Outcome::Failed };
        }
        let mut bytes = 0;
        // SAFETY: `overlapped` is of a transfer on this pipe.
        let result = unsafe {
            GetOverlappedResult(self.pipe.as_raw_handle(), self.shared.overlapped.get(), &mut bytes, 0)
        };
        let outcome = match succeeded(result).map_err(|error| error.raw_os_error().unwrap_or(0) as u32) {
            Ok(()) => Outcome::Done(bytes as usize),
            Err(ERROR_IO_INCOMPLETE) => Outcome::Pending,
            Err(ERROR_MORE_DATA) => Outcome::TooLong,
            Err(code) => {
                self.failed = Some(code);
                Outcome::Failed
            }
        };
        self.is_pending = outcome == Outcome::Pending;
        outcome
    }

    /// Bytes of a finished transfer.
    pub(super) fn bytes(&mut self) -> &[u8; BYTES_MAX] {
        assert!(!self.is_pending, "the system may write to them");
        self.shared.bytes.get_mut()
    }

    /// Event that is set when the transfer is finished.
    pub(super) fn event(&self) -> &OwnedHandle {
        &self.event
    }

    /// Marks the connection as ended.
    pub(super) fn end(&mut self) {
        self.failed = Some(0);
        self.set_event();
    }

    fn set_event(&self) {
        // SAFETY: the event is open.
        unsafe { SetEvent(self.event.as_raw_handle()) };
    }
}

/// Waits until the event is set. Returns whether it is.
pub(super) fn wait_for(event: &OwnedHandle, timeout: Option<Duration>) -> bool {
    // SAFETY: the event is open.
    unsafe { WaitForSingleObject(event.as_raw_handle(), milliseconds(timeout)) == WAIT_OBJECT_0 }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if self.is_pending && self.outcome() == Outcome::Pending {
            // SAFETY: cancels the transfer on this pipe; harmless if it has just finished.
            unsafe { CancelIoEx(self.pipe.as_raw_handle(), self.shared.overlapped.get()) };
            // The system writes to `shared` until the event is set.
            wait_for(&self.event, None);
        }
    }
}

// SAFETY: the system writes to `shared` from no thread of this process; one owner at a time reads it.
unsafe impl Send for Transfer {}

/// Longest packet: two handles and a message.
pub(super) const BYTES_MAX: usize = HANDLES_BYTES + crate::message::MESSAGE_BYTES_MAX;
const HANDLES_BYTES: usize = 1 + 8 * crate::message::MEMORIES_MAX;
