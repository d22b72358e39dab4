//! How frames travel, whatever carries them: descriptions beside them ([`announce`], [`described`]), their order ([`reorder`]), what
//! was lost of them ([`arrival`], [`outage`]), the clock of their producer ([`clock_port`], [`far_clock`]); and [`edge`], the edges
//! of a graph between two hosts.
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
