//! Says what a stream is to receivers that do not share its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, Description, Header};

use crate::clock_port::ClockPort;
use crate::wire::{Unknown, Wire};

/// When a description is due: with the first batch that has it, and again where receivers may join late or miss it.
#[derive(Debug)]
pub struct Announcer {
    said: Option<Arc<Description>>,
    at: Instant,
    repeats: bool,
    /// Whether a new one was said just once.
    is_due_again: bool,
    wire: Wire,
    /// What a person should know of what was left out; told once.
    note: Option<String>,
    is_noted: bool,
    clock_port: ClockPort,
}

impl Announcer {
    /// For receivers that get everything, from the first byte on.
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

    /// For receivers that join when they like, and miss what is lost: with the next batch again, and once a second.
    pub fn repeating() -> Self {
        Self { repeats: true, ..Self::once() }
    }

    /// For receivers that know only such frames.
    pub fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
    }

    /// Names a port where this host's clock is asked.
    pub fn set_clock_port(&mut self, clock_port: ClockPort) {
        self.clock_port = clock_port;
    }

    /// The frames to send before this batch; none, mostly.
    ///
    /// # Errors
    /// [`Unknown`] where its receivers do not know such samples.
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
            // What was said before holds no more.
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

    /// What a person should know of what was left out.
    pub fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// That readers get less than the stream says of itself, and what.
pub fn shortened_note(why: &str) -> String {
    format!("{why}: readers get it with shorter names and texts, and without the last of its annotations")
}

const EVERY: Duration = Duration::from_secs(1);
/// As long as a path's datagram is anyway: of a stream of shorter ones it would take many.
const FRAME_BYTES_MIN: usize = 1400;
