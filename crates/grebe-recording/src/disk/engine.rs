//! The thread that has blocks written: in the order in which they came, several at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use super::backend::{Backend, DEPTH, WriteMethod};
use super::file::{Piece, Turn};
use super::mailbox::{Message, Progress};
use super::threads::Threads;

/// The best available backend for the requested method.
pub(super) fn backend(method: WriteMethod, messages: Sender<Message>) -> Box<dyn Backend> {
    #[cfg(target_os = "linux")]
    if matches!(method, WriteMethod::Best | WriteMethod::IoUring)
        && let Some(ring) = super::uring::Uring::new()
    {
        return Box::new(ring);
    }
    let method = if method == WriteMethod::PageCache { method } else { WriteMethod::Threads };
    Box::new(Threads::start(method, messages))
}

pub(super) struct Engine {
    inbox: Receiver<Message>,
    backend: Box<dyn Backend>,
    progress: Arc<Progress>,
    /// Blocks in all.
    blocks: usize,
    block_bytes: usize,
    /// Pieces that wait for a slot.
    pending: VecDeque<Piece>,
    /// Pieces in flight, each with the offset in its block.
    slots: [Option<(Piece, usize)>; DEPTH],
    in_flight: usize,
    /// Time when a write last completed, or when the first pending one started.
    quiet_since: Instant,
    is_over: bool,
}

impl Engine {
    pub(super) fn new(
        inbox: Receiver<Message>,
        backend: Box<dyn Backend>,
        progress: Arc<Progress>,
        blocks: usize,
        block_bytes: usize,
    ) -> Self {
        Self {
            inbox,
            backend,
            progress,
            blocks,
            block_bytes,
            pending: VecDeque::with_capacity(blocks),
            slots: [const { None }; DEPTH],
            in_flight: 0,
            quiet_since: Instant::now(),
            is_over: false,
        }
    }

    pub(super) fn run(mut self) {
        let mut messages = Vec::with_capacity(2 * DEPTH);
        loop {
            self.note_fill();
            self.write_on();
            if self.is_over && self.in_flight == 0 && self.pending.is_empty() {
                return;
            }
            self.backend.wait(&self.inbox, &mut messages);
            messages.drain(..).for_each(|message| self.take(message));
            while let Ok(message) = self.inbox.try_recv() {
                self.take(message);
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Write(piece) => {
                self.pending.push_back(piece);
            }
            Message::Written { slot, result } => self.came_back(slot, result),
            Message::End => self.is_over = true,
        }
    }

    /// Starts writes for all free slots, then computes checksums meanwhile.
    fn write_on(&mut self) {
        let mut begun = [0; DEPTH];
        let mut count = 0;
        while count < DEPTH
            && let Some(slot) = self.slots.iter().position(Option::is_none)
            && let Some(piece) = self.pending.pop_front()
        {
            match piece.file.begin(&piece) {
                Turn::Drop => continue,
                Turn::Wait => {
                    self.pending.push_front(piece);
                    break;
                }
                Turn::Write => {}
            }
            if self.in_flight == 0 {
                self.quiet_since = Instant::now();
            }
            self.in_flight += 1;
            let from = piece.range.start;
            self.slots[slot] = Some((piece, from));
            begun[count] = slot;
            count += 1;
            self.submit(slot);
        }
        let is_busy = self.pending.len() > self.blocks / 2;
        for slot in &begun[..count] {
            // One that failed at once is gone, and so are its sums.
            let Some((piece, _)) = &self.slots[*slot] else { continue };
            let new = &piece.lease.bytes()[piece.new.clone()];
            let unsummed_bytes = piece.file.sum((!is_busy).then_some(new), new.len());
            self.progress.unsummed_bytes.fetch_add(unsummed_bytes, Ordering::Relaxed);
        }
    }

    /// Hands the rest of a slot's piece to the system.
    fn submit(&mut self, slot: usize) {
        let Some((piece, from)) = &self.slots[slot] else { return };
        #[cfg(test)]
        if piece.file.is_full(piece.offset + piece.range.end as u64) {
            return self.end(slot, Err(io::ErrorKind::StorageFull.into()));
        }
        let begun = self.backend.begin(slot, piece, *from);
        if let Err(error) = begun {
            self.end(slot, Err(error));
        }
    }

    fn came_back(&mut self, slot: usize, result: io::Result<usize>) {
        let now = Instant::now();
        let quiet_us = (now - self.quiet_since).as_micros() as u64;
        self.progress.longest_stall_us.fetch_max(quiet_us, Ordering::Relaxed);
        self.quiet_since = now;
        let Some((piece, from)) = &mut self.slots[slot] else { return };
        match result {
            Ok(0) => self.end(slot, Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => {
                *from += written;
                if *from >= piece.range.end {
                    return self.end(slot, Ok(()));
                }
                // A disk that is nearly full takes a part: the next write says whether there is room for more of it.
                if !from.is_multiple_of(piece.file.alignment()) {
                    piece.file.go_buffered();
                }
                self.submit(slot);
            }
            Err(error) if is_transient(&error) => self.submit(slot),
            // Some file systems take the flag, and refuse the write.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && piece.file.is_direct() => {
                piece.file.go_buffered();
                self.submit(slot);
            }
            Err(error) => self.end(slot, Err(error)),
        }
    }

    fn end(&mut self, slot: usize, result: io::Result<()>) {
        let Some((piece, _)) = self.slots[slot].take() else { return };
        self.in_flight -= 1;
        match result {
            Ok(()) => piece.file.complete(&piece),
            Err(error) => piece.file.fail(&error),
        }
    }

    fn note_fill(&self) {
        let fill_bytes = ((self.pending.len() + self.in_flight) * self.block_bytes) as u64;
        self.progress.fill_bytes.store(fill_bytes, Ordering::Relaxed);
        self.progress.fill_bytes_max.fetch_max(fill_bytes, Ordering::Relaxed);
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
