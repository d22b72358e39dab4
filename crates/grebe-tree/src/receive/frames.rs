//! Messages in both directions, on threads of their own.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::reading_thread::ReadingThread;
use crate::receive::rates::{Measured, Window};
use crate::wire::{Frame, FrameReader, FrameWriter, Kind, SenderEnd};

/// Messages of the sender, read by a thread of its own.
pub(super) struct Frames {
    frames: Receiver<Result<Option<(Frame, u64)>>>,
    pub(super) read_bytes: u64,
    pub(super) waited: Duration,
    pub(super) sender_end: Option<SenderEnd>,
    /// Whether to read on after an end.
    resume: Sender<()>,
    /// After the frames, so that it is dropped after them.
    _thread: ReadingThread,
}

impl Frames {
    pub(super) fn read<R: Read + Send + 'static>(reader: R, measured: Arc<Measured>) -> Self {
        let (out, frames) = bounded(FRAMES_MAX);
        let (resume, resumed) = bounded(1);
        let thread = ReadingThread::spawn(move || {
            let mut reader = FrameReader::new(reader);
            let mut window = Window::at(Instant::now());
            loop {
                let frame = reader.next();
                if let Ok(Some((_, bytes))) = &frame {
                    measured.came(&mut window, *bytes, Instant::now());
                }
                let is_last = !matches!(&frame, Ok(Some(_)));
                let is_end = matches!(&frame, Ok(Some((frame, _))) if frame.kind == Kind::End);
                if out.send(frame).is_err() || is_last || is_end && resumed.recv().is_err() {
                    return;
                }
            }
        });
        Self { frames, read_bytes: 0, waited: Duration::ZERO, sender_end: None, resume, _thread: thread }
    }

    /// Continues reading, because the end was not the last message.
    pub(super) fn go_on(&self) {
        let _ = self.resume.send(());
    }

    pub(super) fn next(&mut self, cancel: &Cancel, is_stopped: impl Fn() -> bool) -> Result<Frame> {
        let began = Instant::now();
        let frame = loop {
            if cancel.is_cancelled() || is_stopped() {
                return Err(Error::Cancelled);
            }
            match self.frames.recv_timeout(Duration::from_millis(100)) {
                Ok(frame) => break frame?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
            }
        };
        self.waited += began.elapsed();
        let (frame, bytes) = frame.ok_or(Error::Closed)?;
        self.read_bytes += bytes;
        Ok(frame)
    }
}

/// Writes the messages of the other threads.
pub(super) fn write_messages<W: Write>(
    writer: &mut FrameWriter<W>,
    said: &Receiver<Option<(Kind, Vec<u8>)>>,
) -> Result<()> {
    let written = loop {
        let message = match said.try_recv() {
            Ok(message) => message,
            Err(_) => {
                if let Err(error) = writer.flush() {
                    break Err(error);
                }
                said.recv().unwrap_or(None)
            }
        };
        // Nothing follows the last message.
        let Some((kind, body)) = message else { return writer.flush() };
        if let Err(error) = writer.write(kind, &body) {
            break Err(error);
        }
    };
    if written.is_err() {
        // The sender may still give its reason on the other stream. Until then, messages are discarded so
        // that nobody blocks.
        while let Ok(Some(_)) = said.recv() {}
    }
    written
}

/// Maximum unprocessed frames of 256 KiB.
const FRAMES_MAX: usize = 8;
