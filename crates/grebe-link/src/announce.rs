//! Sends a stream's description to receivers that do not share its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, Description, Header};

use crate::clock_port::ClockPort;
use crate::wire::{Unknown, Wire};

/// Decides when to send a description: with its first batch, and again for receivers that join late or lose
/// it.
#[derive(Debug)]
pub struct Announcer {
    said: Option<Arc<Description>>,
    at: Instant,
    repeats: bool,
    /// Whether a new description was sent only once so far.
    is_due_again: bool,
    wire: Wire,
    /// Notice about omitted parts of the description, shown once.
    note: Option<String>,
    is_noted: bool,
    clock_port: ClockPort,
}

impl Announcer {
    /// For receivers that get everything from the first byte on.
    pub fn once() -> Self {
        Self {
            said: None,
            at: Instant::now(),
            repeats: false,
            is_due_again: false,
            wire: Wire::Every,
            note: None,
            is_noted: false,
            clock_port: ClockPort::default(),
        }
    }

    /// For receivers that join at any time and may lose frames: repeats with the next batch, and once per
    /// second.
    pub fn repeating() -> Self {
        Self { repeats: true, ..Self::once() }
    }

    /// Sets the frame types that receivers know.
    pub fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
    }

    /// Adds a port for queries of this host's clock.
    pub fn set_clock_port(&mut self, clock_port: ClockPort) {
        self.clock_port = clock_port;
    }

    /// Frames to send before this batch, mostly none.
    ///
    /// # Errors
    /// [`Unknown`] if its receivers do not support such samples.
    pub fn before(&mut self, batch: &Batch, frame_bytes_max: usize) -> Result<Vec<Vec<u8>>, Unknown> {
        if self.wire == Wire::Gfh2 {
            for Header { format, channel_count, .. } in batch.frames().map(|frame| frame.header()) {
                self.wire.check(format, channel_count)?;
            }
            return Ok(Vec::new());
        }
        let is_new = self.said.as_ref().map(Arc::as_ptr) != batch.description().map(Arc::as_ptr);
        let is_again =
            self.said.is_some() && (self.is_due_again || self.repeats && self.at.elapsed() >= EVERY);
        if !is_new && !is_again {
            return Ok(Vec::new());
        }
        let Some(next) = batch.frames().next().map(|frame| frame.header()) else { return Ok(Vec::new()) };
        self.is_due_again = self.repeats && is_new;
        self.at = Instant::now();
        self.said = batch.description().cloned();
        let described = match &self.said {
            Some(description) => self.clock_port.described(description),
            // The previous description no longer holds.
            None => Arc::new(Description {
                first_sample_index: next.first_sample_index,
                ..Description::default()
            }),
        };
        let (frames, shortened) = described.frames_that_fit(&next, frame_bytes_max.max(FRAME_BYTES_MIN));
        if let Some(too_long) = shortened.filter(|_| !std::mem::replace(&mut self.is_noted, true)) {
            self.note = Some(shortened_note(&too_long.to_string()));
        }
        Ok(frames)
    }

    /// Takes the notice about omitted parts.
    pub fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// Notice that readers get a shortened description.
pub fn shortened_note(why: &str) -> String {
    format!("{why}: readers get it with shorter names and texts, and without the last of its annotations")
}

const EVERY: Duration = Duration::from_secs(1);
/// Minimum length of description frames: that of a usual datagram, because shorter ones would need many.
const FRAME_BYTES_MIN: usize = 1400;
