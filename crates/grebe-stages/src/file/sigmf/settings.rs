//! How to record, and what was recorded.

use std::path::PathBuf;

use grebe_frame::MAX_CHANNELS;

use crate::error::Error;

/// How to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfSettings {
    /// 1 to 8.
    pub channels: usize,
    /// Samples per second and channel, up to 10^12; 0 = unknown.
    pub sample_rate_hz: f64,
    /// Whether a recording of the same name is replaced.
    pub overwrite: bool,
    /// Whether the SHA-512 of the data is entered. Up to 100 MB/s it is computed while recording, on another thread that
    /// reads the data behind the writer (a tenth to a fifth of a core); beyond, when the recording is finished, with a
    /// thread per channel, which takes a second or two for each GB of a channel.
    pub checksum: bool,
    /// What a person should know of the recording.
    pub description: Option<String>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigmfSummary {
    /// Samples per channel.
    pub len_samples: u64,
    /// Stretches without a gap.
    pub segments: u64,
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
}

impl SigmfSettings {
    pub(super) fn check(&self) -> Result<(), Error> {
        let setting = |what, got: String, must| Err(Error::Setting { what, got, must });
        if self.channels == 0 || self.channels > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.to_string(), "give 1 to 8");
        }
        if !(0.0..=RATE_HZ_MAX).contains(&self.sample_rate_hz) {
            return setting("sample rate", self.sample_rate_hz.to_string(), "give 0 (unknown) to 10^12 Hz");
        }
        Ok(())
    }
}

impl Default for SigmfSettings {
    /// One channel of unknown rate, with a checksum; nothing is overwritten.
    fn default() -> Self {
        Self { channels: 1, sample_rate_hz: 0.0, overwrite: false, checksum: true, description: None }
    }
}

/// What SigMF allows.
const RATE_HZ_MAX: f64 = 1e12;
