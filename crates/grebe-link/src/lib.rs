//! Transport-independent handling of frames: descriptions ([`announce`], [`described`]), order ([`reorder`]),
//! losses ([`arrival`], [`outage`]) and the producer's clock ([`clock_port`], [`remote_clock`]). [`edge`] has
//! the edges of a graph between two hosts.
#![forbid(unsafe_code)]

pub mod announce;
pub mod arrival;
pub mod clock_port;
pub mod described;
pub mod edge;
pub mod outage;
pub mod remote_clock;
pub mod reorder;
pub mod wire;
