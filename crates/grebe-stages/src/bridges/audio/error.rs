//! Errors of a sound device in use, the same on every system.

use std::io;

/// An error of a device in use.
#[derive(Debug)]
pub(super) enum SoundError {
    /// An overrun, an underrun or a suspended machine.
    Xrun {
        /// Captured samples per channel that are lost, if the device knows.
        missed_samples: Option<u64>,
        source: io::Error,
    },
    /// The device was unplugged.
    Unplugged,
    /// Anything else; [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing to read, or no room.
    Other(io::Error),
}

impl SoundError {
    /// Nothing to read, or no room to write.
    pub(super) fn would_block() -> Self {
        Self::Other(io::ErrorKind::WouldBlock.into())
    }
}

impl From<SoundError> for io::Error {
    fn from(error: SoundError) -> Self {
        match error {
            SoundError::Unplugged => {
                let what = "the sound device was unplugged (with reconnect in its name, grebe waits for it)";
                Self::new(io::ErrorKind::NotConnected, what)
            }
            SoundError::Xrun { source, .. } | SoundError::Other(source) => source,
        }
    }
}
