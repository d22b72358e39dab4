use crate::proto::estimate::Estimate;
use crate::proto::report::TrainResult;

/// What a probe is doing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ProbeEvent {
    /// The server serves others first.
    Waiting {
        /// How many.
        ahead: u16,
    },
    /// A part of the probe begins.
    Part {
        /// What it is.
        name: &'static str,
        /// Which direction it is about, if one: down, or up.
        is_down: Option<bool>,
    },
    /// The round trip in ms is known.
    RoundTrip(Estimate),
    /// A train is over.
    Train {
        /// Whether it went down.
        is_down: bool,
        /// What became of it.
        result: TrainResult,
    },
}
