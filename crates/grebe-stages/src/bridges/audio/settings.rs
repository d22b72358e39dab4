//! How a sound device is used.

use grebe_recording::Encoding;

/// Which way samples go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// `SND_PCM_STREAM_PLAYBACK`.
    Playback = 0,
    /// `SND_PCM_STREAM_CAPTURE`.
    Capture = 1,
}

/// How a device is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    pub(super) encoding: Encoding,
    /// Of the stream: a complex one is two of the device's.
    pub(super) channels: usize,
    pub(super) rate_hz: u32,
}

impl Settings {
    /// Bytes of a sample of all channels.
    pub(super) fn frame_bytes(&self) -> usize {
        self.encoding.sample_bytes() * self.channels
    }
}

/// Advice for a name that no device has.
pub(super) const NO_DEVICE: &str = "; the device does not exist: grebe devices lists the sound devices";
