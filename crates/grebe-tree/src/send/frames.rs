//! Messages of the receiver, read by a thread of its own.
//!
//! Notes about single names end here: however many there are, the two ends never block each other.

use std::io::Read;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::name::words;
use crate::progress::{Done, Progress};
use crate::reading_thread::ReadingThread;
use crate::report::LeftOutList;
use crate::wire::{Frame, FrameReader, Hello, Kind, Note, Taken};

/// Frames of the receiver, except for its notes.
pub(super) struct Frames {
    pub(super) frames: Receiver<Result<HeldFrame>>,
    read_bytes: Arc<AtomicU64>,
    /// After the frames, so that it is dropped after them.
    _thread: ReadingThread,
}

/// A message that counts until it is handled.
pub(super) struct HeldFrame {
    frame: Frame,
    all_bytes: Arc<AtomicUsize>,
}

impl Deref for HeldFrame {
    type Target = Frame;

    fn deref(&self) -> &Frame {
        &self.frame
    }
}

impl Drop for HeldFrame {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.frame.body.len(), Ordering::Relaxed);
    }
}

/// Maximum bytes of waiting frames, several times the signatures that an honest receiver sends ahead.
const HELD_BYTES_MAX: usize = 256 << 20;

/// Maximum frames. More than an honest receiver can send meanwhile, because it answers listings, which are
/// bounded.
const FRAMES_MAX: usize = 4_096;

pub(super) fn read_frames<R: Read + Send + 'static>(
    reader: R,
    progress: Arc<Progress>,
    left_out: Arc<LeftOutList>,
) -> Frames {
    let (out, frames) = bounded(FRAMES_MAX);
    let read_bytes = Arc::new(AtomicU64::new(0));
    let counter = read_bytes.clone();
    let thread = ReadingThread::spawn(move || {
        let mut reader = FrameReader::new(reader);
        let all_bytes = Arc::default();
        while let Some(frame) = next(&mut reader, &counter, &progress, &left_out) {
            if send_on(frame.and_then(|frame| hold(frame, &all_bytes)), &out) {
                return;
            }
        }
    });
    Frames { frames, read_bytes, _thread: thread }
}

/// Returns whether that was the last frame.
fn send_on(frame: Result<HeldFrame>, out: &Sender<Result<HeldFrame>>) -> bool {
    let is_last = !matches!(&frame, Ok(frame) if frame.kind != Kind::End);
    out.send(frame).is_err() || is_last
}

fn hold(frame: Frame, all_bytes: &Arc<AtomicUsize>) -> Result<HeldFrame> {
    let before = all_bytes.fetch_add(frame.body.len(), Ordering::Relaxed);
    let held = HeldFrame { frame, all_bytes: all_bytes.clone() };
    if before + held.body.len() > HELD_BYTES_MAX {
        return Err(Error::Malformed { what: "more answers than it was asked for" });
    }
    Ok(held)
}

/// Next frame that is not a note; `None` at the end of the stream.
fn next<R: Read>(
    reader: &mut FrameReader<R>,
    read_bytes: &AtomicU64,
    progress: &Progress,
    left_out: &LeftOutList,
) -> Option<Result<Frame>> {
    loop {
        let frame = match reader.next() {
            Ok(Some((frame, bytes))) => {
                read_bytes.fetch_add(bytes, Ordering::Relaxed);
                frame
            }
            Ok(None) => return Some(Err(Error::Closed)),
            Err(error) => return Some(Err(error)),
        };
        match frame.kind {
            Kind::LeftOut => match Note::decode(&frame.body) {
                Ok(note) => left_out.add(progress, note.name, note.words),
                Err(error) => return Some(Err(error)),
            },
            Kind::Deleted => match Note::decode(&frame.body) {
                Ok(note) => progress.tell(&note.name, Done::Deleted, 0),
                Err(error) => return Some(Err(error)),
            },
            Kind::Failed => return Some(Err(Error::Peer { what: words(&frame.body) })),
            _ => return Some(Ok(frame)),
        }
    }
}

impl Frames {
    /// Bytes read from the stream.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Reason of a write error, if the receiver gave one before it left.
    pub(super) fn reason(&self, error: Error) -> Error {
        if !matches!(error, Error::Closed | Error::Stream(_)) {
            return error;
        }
        while let Ok(frame) = self.frames.recv_timeout(Duration::from_secs(1)) {
            if let Err(reason @ Error::Peer { .. }) = frame {
                return reason;
            }
        }
        error
    }

    /// Waits for the receiver's greeting.
    pub(super) fn hello(&self, cancel: &Cancel) -> Result<Hello> {
        let frame = self.wait(cancel)?;
        if frame.kind != Kind::Hello {
            return Err(Error::Malformed { what: "its first message is another one" });
        }
        Hello::decode(&frame.body)
    }

    /// Waits for the acceptance of an offer. Returns whether the destination is empty.
    pub(super) fn taken(&self, cancel: &Cancel) -> Result<bool> {
        let frame = self.wait(cancel)?;
        if frame.kind != Kind::Taken {
            return Err(Error::Malformed { what: "something else than whether it takes the offer" });
        }
        Ok(Taken::decode(&frame.body)?.is_fresh)
    }

    /// Waits for the next message.
    fn wait(&self, cancel: &Cancel) -> Result<HeldFrame> {
        loop {
            match self.frames.recv_timeout(Duration::from_millis(100)) {
                Ok(frame) => return frame,
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, repeat};

    use super::*;
    use crate::wire::FRAME_BYTES_MAX;

    #[test]
    fn a_receiver_that_answers_ever_more_is_not_held_in_memory() {
        // A head of four bytes, and a body of 1 MiB.
        let one = || {
            Cursor::new([Kind::Answers as u8, 0x80, 0x80, 0x40]).chain(repeat(0).take(FRAME_BYTES_MAX as u64))
        };
        let many = (0..300)
            .fold(Box::new(std::io::empty()) as Box<dyn Read + Send>, |all, _| Box::new(all.chain(one())));
        let frames = read_frames(many, Arc::default(), Arc::default());
        // Nobody takes them until the reader has given up.
        let mut came = Vec::new();
        while let Ok(frame) = frames.frames.recv() {
            came.push(frame);
        }
        let refused = matches!(came.pop(), Some(Err(Error::Malformed { .. })));
        assert!(refused && came.len() == HELD_BYTES_MAX / FRAME_BYTES_MAX && came.iter().all(Result::is_ok));
    }
}
