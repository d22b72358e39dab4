//! What streams of frames share, whatever carries them: descriptions beside the frames, order, clocks of other hosts.

pub(crate) mod announce;
pub(crate) mod arrival;
pub(crate) mod clock_port;
pub(crate) mod described;
pub(crate) mod far_clock;
pub(crate) mod outage;
pub(crate) mod reorder;
pub(crate) mod wire;
