//! Transport-independent handling of frames: descriptions ([`announce`], [`described`]), order ([`reorder`]),
//! losses ([`arrival`], [`outage`]) and the producer's clock ([`clock_port`], [`far_clock`]). [`edge`] has
//! the edges of a graph between two hosts.
#![forbid(unsafe_code)]

pub mod announce;
pub mod arrival;
pub mod clock_port;
pub mod described;
pub mod edge;
pub mod far_clock;
pub mod outage;
pub mod reorder;
pub mod wire;
