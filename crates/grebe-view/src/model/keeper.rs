//! Who keeps stretches of the stream for good.

use std::ops::Range;
use std::sync::mpsc::Receiver;

/// A stretch of the stream that a person wants to keep.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptStretch {
    /// What came last: so much as whoever keeps it was set up for.
    Last,
    /// What is on the screen: samples by their indexes in the stream.
    Screen {
        /// From the first to behind the last, gaps included. There is at least one.
        samples: Range<u64>,
        /// Samples per second and channel.
        rate_hz: f64,
    },
}

/// Keeps stretches of the stream beside the scope: by the recorder of a ring, for example.
pub struct StretchKeeper {
    /// What it says of [`KeptStretch::Last`]: `the last 20 s`.
    pub last: String,
    /// Begins to keep a stretch, without waiting. What becomes of it comes as one line for a person.
    pub keep: Box<dyn Fn(KeptStretch) -> Receiver<String> + Send>,
}
