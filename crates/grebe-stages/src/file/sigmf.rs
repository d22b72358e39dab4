//! Recordings in SigMF 1.2: samples in one file, what they are in another.
//!
//! ```text
//!   one channel    NAME.sigmf-data      ri16_le, without a gap
//!                  NAME.sigmf-meta      rate, captures (a segment after each gap), annotations
//!   more           NAME_ch1.sigmf-data, NAME_ch1.sigmf-meta, ...
//!                  NAME.sigmf-collection   ties them together
//! ```
//! A file per channel, because frames are channel-major: interleaving would transpose the stream, and be read wrongly by
//! programs that know one channel only. Interleaved files are read all the same.
//!
//! ```text
//!   SigmfWriter --events, samples that are good--> MetadataWriter (a thread) --> .sigmf-meta, replaced in one step
//!        |                                              ^
//!        +--> .sigmf-data ------- read back ------------+ for core:sha512
//! ```

mod archive;
mod checksum;
mod create;
mod layout;
mod metadata;
mod metadata_writer;
mod reader;
mod writer;

pub(crate) use layout::Base;
pub(crate) use reader::open;
pub use {
    create::SigmfSettings,
    writer::{SigmfSummary, SigmfWriter},
};

#[cfg(test)]
mod tests;
