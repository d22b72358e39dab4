//! What the receiver says, taken from the stream by a thread of its own.
//!
//! Notes about single names end here: however many they are, the receiver never waits for somebody who waits for it.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::name::words;
use crate::progress::{Done, Progress};
use crate::reading_thread::ReadingThread;
use crate::report::LeftOutList;
use crate::wire::{Frame, FrameReader, Hello, Kind, Note, Taken};

/// Frames of the receiver but its notes.
pub(super) struct Frames {
    pub(super) frames: Receiver<Result<Frame>>,
    read_bytes: Arc<AtomicU64>,
    /// Behind the frames, so that it is dropped after them.
    _thread: ReadingThread,
}

/// More than an honest receiver can have to say before the sender looks: it answers what was listed, and that has a bound.
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
        while let Some(frame) = next(&mut reader, &counter, &progress, &left_out) {
            if send_on(frame, &out) {
                return;
            }
        }
    });
    Frames { frames, read_bytes, _thread: thread }
}

/// Whether that was the last.
fn send_on(frame: Result<Frame>, out: &Sender<Result<Frame>>) -> bool {
    let is_last = !matches!(&frame, Ok(frame) if frame.kind != Kind::End);
    out.send(frame).is_err() || is_last
}

/// The next frame that is no note; `None`: the stream has ended.
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
    /// Bytes that were read from the stream.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Why writing failed, if the receiver has said it before it went.
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

    /// What the receiver says first.
    pub(super) fn hello(&self, cancel: &Cancel) -> Result<Hello> {
        let frame = self.wait(cancel)?;
        if frame.kind != Kind::Hello {
            return Err(Error::Malformed { what: "its first message is another one" });
        }
        Hello::decode(&frame.body)
    }

    /// That it takes an offer: whether nothing is there.
    pub(super) fn taken(&self, cancel: &Cancel) -> Result<bool> {
        let frame = self.wait(cancel)?;
        if frame.kind != Kind::Taken {
            return Err(Error::Malformed { what: "something else than whether it takes the offer" });
        }
        Ok(Taken::decode(&frame.body)?.is_fresh)
    }

    /// What it says next.
    fn wait(&self, cancel: &Cancel) -> Result<Frame> {
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
