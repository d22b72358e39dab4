//! Recordings in SigMF 1.2: samples in one file, what they are in another.
//!
//! ```text
//!   one channel    NAME.sigmf-data      the samples of the stream, without a gap
//!                  NAME.sigmf-meta      rate, captures (a segment after each gap), annotations
//!   up to 8        NAME_ch1.sigmf-data, NAME_ch1.sigmf-meta, ...
//!                  NAME.sigmf-collection   ties them together
//!   more           NAME.sigmf-data, NAME.sigmf-meta: all channels interleaved
//! ```
//! A file per channel where there are few, because frames are channel-major: interleaving would transpose the stream, and be read wrongly by
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
mod described;
mod layout;
mod metadata;
mod metadata_writer;
mod reader;
mod writer;

pub(crate) use layout::Base;
pub(super) use metadata::Staged;
pub(crate) use reader::open;
pub use {
    create::SigmfSettings,
    writer::{SigmfSummary, SigmfWriter},
};

#[cfg(test)]
mod tests;
