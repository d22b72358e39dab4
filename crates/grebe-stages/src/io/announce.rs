//! Says what a stream is to receivers that do not share its memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::{Batch, Description, Header};

use crate::error::Error;
use crate::io::clock_port::ClockPort;
use crate::uri::Wire;

/// When a description is due: with the first batch that has it, and again where receivers may join late or miss it.
#[derive(Debug)]
pub(crate) struct Announcer {
    said: Option<Arc<Description>>,
    at: Instant,
    repeats: bool,
    wire: Wire,
    clock_port: ClockPort,
}

impl Announcer {
    /// For receivers that get everything, from the first byte on.
    pub(crate) fn once() -> Self {
        Self {
            said: None,
            at: Instant::now(),
            repeats: false,
            wire: Wire::Every,
            clock_port: ClockPort::default(),
        }
    }

    /// For receivers that join when they like, and miss what is lost: once a second.
    pub(crate) fn repeating() -> Self {
        Self { repeats: true, ..Self::once() }
    }

    /// For receivers that know only such frames.
    pub(crate) fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
    }

    /// Names a port where this host's clock is asked.
    pub(crate) fn set_clock_port(&mut self, clock_port: ClockPort) {
        self.clock_port = clock_port;
    }

    /// The frames to send before this batch; none, mostly.
    ///
    /// # Errors
    /// [`Error::Wire`] where its receivers do not know such samples. The description is too long for so many frames of
    /// `frame_bytes_max`: that is said once.
    pub(crate) fn before(&mut self, batch: &Batch, frame_bytes_max: usize) -> Result<Vec<Vec<u8>>, Error> {
        if self.wire == Wire::Gfh2 {
            for Header { format, channel_count, .. } in batch.frames().map(|frame| frame.header()) {
                self.wire.check(format, channel_count)?;
            }
            return Ok(Vec::new());
        }
        let Some(description) = batch.description() else { return Ok(Vec::new()) };
        let is_new = !self.said.as_ref().is_some_and(|said| Arc::ptr_eq(said, description));
        let is_again = self.repeats && self.at.elapsed() >= EVERY;
        if !is_new && !is_again {
            return Ok(Vec::new());
        }
        let Some(next) = batch.frames().next().map(|frame| frame.header()) else { return Ok(Vec::new()) };
        self.at = Instant::now();
        self.said = Some(description.clone());
        Ok(self.clock_port.described(description).frames(&next, frame_bytes_max.max(FRAME_BYTES_MIN))?)
    }
}

const EVERY: Duration = Duration::from_secs(1);
/// As long as a path's datagram is anyway: of a stream of shorter ones it would take many.
const FRAME_BYTES_MIN: usize = 1400;
