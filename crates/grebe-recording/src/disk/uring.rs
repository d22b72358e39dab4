//! Writes by io_uring: the kernel has several of them from one thread, and no system call waits for one of them.
//!
//! The only unsafe code: an entry names memory and a descriptor that the kernel uses until the write
//! completes. Until then the slot keeps both alive.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use grebe_ring::Lease;
use io_uring::{IoUring, Probe, opcode, types};

use super::backend::{Backend, DEPTH, WriteMethod};
use super::file::{DiskFile, Piece};
use super::mailbox::Message;
use super::sys::Bell;

pub(super) struct Uring {
    ring: IoUring,
    bell: Arc<Bell>,
    /// Whether the kernel watches the bell.
    is_listening: bool,
    /// Resources in use by the kernel, per slot.
    held: [Option<(Lease<()>, Arc<DiskFile>)>; DEPTH],
}

impl Uring {
    /// `None` where the kernel has none, or a container forbids it.
    pub(super) fn new() -> Option<Self> {
        let ring = IoUring::new(ENTRIES).ok()?;
        // Linux before 5.6 has rings that cannot write.
        let mut known = Probe::new();
        ring.submitter().register_probe(&mut known).ok()?;
        if !known.is_supported(opcode::Write::CODE) {
            return None;
        }
        let bell = Arc::new(Bell::new().ok()?);
        Some(Self { ring, bell, is_listening: false, held: [const { None }; DEPTH] })
    }

    fn listen(&mut self) {
        if self.is_listening {
            return;
        }
        let bell = types::Fd(self.bell.as_fd().as_raw_fd());
        let entry = opcode::PollAdd::new(bell, POLLIN).build().user_data(BELL);
        // SAFETY: it names no memory, and the ring is dropped before the bell.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.is_listening = pushed.is_ok();
    }

    fn reap(&mut self, messages: &mut Vec<Message>) {
        for completion in self.ring.completion() {
            if completion.user_data() == BELL {
                self.bell.hear();
                self.is_listening = false;
                continue;
            }
            let slot = completion.user_data() as usize;
            self.held[slot] = None;
            let result = completion.result();
            let result =
                usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.wrapping_neg()));
            messages.push(Message::Written { slot, result });
        }
    }
}

impl Backend for Uring {
    fn method(&self) -> WriteMethod {
        WriteMethod::IoUring
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        Some(self.bell.clone())
    }

    fn begin(&mut self, slot: usize, piece: &Piece, from: usize) -> io::Result<()> {
        let (lease, file) = (piece.lease.clone(), piece.file.clone());
        let bytes = &lease.bytes()[from..piece.range.end];
        let fd = types::Fd(file.file().as_raw_fd());
        let entry = opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32);
        let entry = entry.offset(piece.offset + from as u64).build().user_data(slot as u64);
        self.held[slot] = Some((lease, file));
        // SAFETY: `held` keeps the memory, which nobody writes to while it is leased, and the file until the
        // write has come back; they do not move. Dropping the ring waits for all writes in flight.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There are more entries than slots.
        pushed.map_err(io::Error::other)?;
        // Entries that the kernel does not take now go with the next call.
        let _ = self.ring.submit();
        Ok(())
    }

    fn wait(&mut self, _: &Receiver<Message>, messages: &mut Vec<Message>) {
        self.listen();
        // Interrupted, or out of memory for the moment.
        if self.ring.submit_and_wait(1).is_err() {
            std::thread::sleep(AGAIN_AFTER);
        }
        self.reap(messages);
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Reached with writes under way only where the engine panicked.
        let mut messages = Vec::new();
        while self.held.iter().any(Option::is_some) && self.ring.submit_and_wait(1).is_ok() {
            self.reap(&mut messages);
        }
        // If even waiting fails, keeps memory that the kernel may still read.
        self.held.iter_mut().for_each(|held| std::mem::forget(held.take()));
    }
}

/// The writes and the bell.
const ENTRIES: u32 = (2 * DEPTH) as u32;
const BELL: u64 = u64::MAX;
const POLLIN: u32 = 1;
const AGAIN_AFTER: Duration = Duration::from_millis(1);
