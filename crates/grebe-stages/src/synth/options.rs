//! What a generator makes.

use std::time::Duration;

use grebe_frame::{HEADER_BYTES, MAX_CHANNELS};

use super::generator::Generator;
use super::spec::ChannelSpec;
use crate::error::Error;
use crate::stream::CHUNK_BYTES;

/// What a [`SynthSource`] makes.
#[derive(Debug, Clone)]
pub struct SynthOptions {
    /// One waveform a channel, 1 to 8.
    pub channels: Vec<ChannelSpec>,
    /// Samples per second and channel.
    pub rate_hz: f64,
    /// Whether the stream keeps to the rate; else it runs as fast as its consumers take it.
    pub paced: bool,
    /// Samples per channel and frame ([`block_length`](crate::block_length)).
    pub block_samples: u32,
    /// Samples per channel after which the stream ends by itself.
    pub samples: Option<u64>,
    /// The longest that a finished block waits for others to travel with.
    pub flush_every: Duration,
}

impl SynthOptions {
    /// A generator per channel.
    pub(super) fn generators(&self) -> Result<Vec<Generator>, Error> {
        let setting = |what, got: String, must| Err(Error::Setting { what, got, must });
        if self.channels.is_empty() || self.channels.len() > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.len().to_string(), "give 1 to 8");
        }
        let frame_bytes = HEADER_BYTES + self.block_samples as usize * self.channels.len() * 2;
        if self.block_samples == 0 || frame_bytes > CHUNK_BYTES {
            return setting("block length", self.block_samples.to_string(), "a frame must fit into 64 KiB");
        }
        self.channels.iter().map(|spec| Generator::new(spec, self.rate_hz)).collect()
    }
}
