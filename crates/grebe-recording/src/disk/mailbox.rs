//! Commands to the engine, and its progress.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;

use super::file::Piece;
use super::sys::Bell;

/// Progress of the engine, which writes it; the producer writes `waited_us`.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) longest_stall_us: AtomicU64,
    pub(super) waited_us: AtomicU64,
    pub(super) fill_bytes: AtomicU64,
    pub(super) fill_bytes_max: AtomicU64,
    pub(super) unsummed_bytes: AtomicU64,
}

#[derive(Debug)]
pub(super) enum Message {
    Write(Piece),
    /// A thread has written a piece, or a part of it.
    Written {
        slot: usize,
        result: io::Result<usize>,
    },
    End,
}

/// Commands to the engine.
#[derive(Debug, Clone)]
pub(super) struct Mailbox {
    pub(super) messages: Sender<Message>,
    /// Wakes the engine when it sleeps in the kernel.
    pub(super) bell: Option<Arc<Bell>>,
}

impl Mailbox {
    pub(super) fn send(&self, message: Message) {
        // The engine ends only after `End`.
        let _ = self.messages.send(message);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}
