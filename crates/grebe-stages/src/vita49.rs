//! VITA-49 radio transport (VRT), with DIFI as one of its profiles: samples in UDP packets with a header that many receivers and modems
//! share.
//!
//! ```text
//!  datagram -> prologue (what stands before the payload) -> continuity (what is missing) -> source: frames
//!                    \-> context (what the samples are) -> payload_format
//!  frames -> sink -> prologue, context
//! ```

mod class;
mod context;
mod continuity;
mod heard;
mod intake;
mod name;
mod packets;
mod payload_format;
mod prologue;
mod sample_clock;
mod sink;
mod source;
mod stamp;
mod template;

pub use name::Vita49Stream;
pub(crate) use sink::Vita49Sink;
pub(crate) use source::Vita49Source;

#[cfg(fuzzing)]
pub(crate) use intake::fuzz;

#[cfg(test)]
mod tests;
