//! Boxes of time and frequency, and the results of cutting them.

use std::time::Duration;

/// A box of time and frequency in a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct CutBox {
    /// Its begin, since the first sample of the recording.
    pub start: Duration,
    /// Its length; `None`: to the end.
    pub duration: Option<Duration>,
    /// Its middle, on the air if the recording says its centre frequency, otherwise in the signal.
    pub centre_hz: f64,
    /// Its width.
    pub bandwidth_hz: f64,
    /// Sample rate of the result; `None`: the lowest whole part that holds the band.
    pub rate_hz: Option<f64>,
}

/// The result of cutting a box.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoxCut {
    /// Samples per channel; 0: no file was written.
    pub samples: u64,
    /// Sample rate.
    pub rate_hz: f64,
    /// Samples at the begin and at the end for which the filter had to take missing samples for zeros.
    pub edge_samples: (u64, u64),
    /// Samples of the signal whose frequencies do not hold the box, because the receiver was tuned elsewhere.
    pub outside_samples: u64,
    /// Samples in the box that are not finite, of all channels; they count as zero.
    pub invalid_samples: u64,
}
