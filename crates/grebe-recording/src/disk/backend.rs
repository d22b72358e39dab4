//! Backends that execute writes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::file::Piece;
use super::mailbox::Message;
use super::sys::Bell;

/// How files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteMethod {
    /// The first of the others that works where the file lies.
    #[default]
    Best,
    /// Linux: `io_uring` with `O_DIRECT`.
    IoUring,
    /// Threads that bypass the page cache, where the file system lets them: `O_DIRECT` (Linux), `F_NOCACHE` (macOS),
    /// `FILE_FLAG_NO_BUFFERING` (Windows).
    Threads,
    /// Threads that write into the page cache: any system, any file.
    PageCache,
}

/// Executes writes.
pub(super) trait Backend: Send {
    fn method(&self) -> WriteMethod;

    /// Wakes [`Backend::wait`] where a message alone does not.
    fn bell(&self) -> Option<Arc<Bell>>;

    /// Begins to write `piece` from byte `from` of its block on; [`Message::Written`] with this slot reports
    /// the result.
    fn begin(&mut self, slot: usize, piece: &Piece, from: usize) -> io::Result<()>;

    /// Waits until there are messages, or writes have come back.
    fn wait(&mut self, inbox: &Receiver<Message>, messages: &mut Vec<Message>);
}

/// Writes that the system has at a time.
pub(super) const DEPTH: usize = 8;
