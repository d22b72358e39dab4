//! Stub for systems without a sound bridge.

use std::convert::Infallible;
use std::io;

use grebe_recording::Encoding;

use crate::Device;
use crate::bridges::audio::AudioStream;
use crate::bridges::audio::error::SoundError;
use crate::bridges::audio::settings::{Direction, Settings};
use crate::error::Error;

/// There is none.
#[derive(Debug)]
pub(crate) struct SoundDevice(Infallible);

impl SoundDevice {
    /// # Errors
    /// [`Error::Device`].
    pub(super) fn open(stream: &AudioStream, _: Direction, _: Settings) -> Result<Self, Error> {
        let name = format!("audio:{}", stream.device);
        let source = io::ErrorKind::Unsupported.into();
        Err(Error::Device { action: "open", name, source, advice: "; sound is for Linux, Windows and macOS" })
    }

    pub(super) fn usual(_: &AudioStream) -> (u32, usize) {
        (48_000, 2)
    }

    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn check(stream: &AudioStream, direction: Direction) -> Result<(), Error> {
        let encoding = Encoding::of(grebe_frame::SampleFormat::I16);
        Self::open(stream, direction, Settings { encoding, channels: 1, rate_hz: 1 }).map(drop)
    }

    pub(super) fn wait(&self) -> io::Result<bool> {
        match self.0 {}
    }

    pub(super) fn read(&mut self, _: &mut [u8]) -> Result<usize, SoundError> {
        match self.0 {}
    }

    pub(super) fn write(&mut self, _: &[u8]) -> Result<usize, SoundError> {
        match self.0 {}
    }

    pub(super) fn wait_for_room(&self) {
        match self.0 {}
    }

    pub(super) fn waiting_frames(&mut self) -> u64 {
        match self.0 {}
    }

    pub(super) fn recover(&mut self, _: &io::Error, _: Direction) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn drain(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

/// Always empty.
pub fn sound_devices() -> Vec<Device> {
    Vec::new()
}

/// # Errors
/// Always.
pub fn sound_library() -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux, Windows and macOS"))
}
