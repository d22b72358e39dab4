//! Recordings in SigMF 1.2: samples in one file, metadata in another.
//!
//! ```text
//!   one channel    NAME.sigmf-data      the samples of the stream, without a gap
//!                  NAME.sigmf-meta      rate, captures (a segment after each gap), annotations
//!   up to 8        NAME_ch1.sigmf-data, NAME_ch1.sigmf-meta, ...
//!                  NAME.sigmf-collection   ties them together
//!   more           NAME.sigmf-data, NAME.sigmf-meta: all channels interleaved
//!   several disks  the same on each of them, which has its stretches of the stream
//! ```
//! A file per channel where there are few, because frames are channel-major: interleaving would transpose the stream, and be read wrongly by
//! programs that know one channel only. Interleaved files are read all the same.
//!
//! ```text
//!   SigmfWriter --events----> MetadataWriter (a thread) --> .sigmf-meta, replaced in one step
//!        |                         ^  what is written, and its sums
//!        +--blocks--> disk --------+--> .sigmf-data
//! ```

mod annotate;
mod annotation_list;
mod annotations;
mod archive;
mod assembler;
mod captured;
mod captures;
mod checksum;
mod collection;
mod create;
mod described;
mod layout;
mod metadata;
mod metadata_text;
mod metadata_writer;
mod open;
mod reader;
mod recording_set;
mod repair;
mod staged;
mod staging_folder;
mod stated_axis;
mod stripe_set;
mod stripes;
mod unnamed;
mod verify;
mod writer;

pub(crate) use annotate::{
    annotation_file, annotations_in, beside_of as annotations_beside, channel_metas,
    edit as edit_annotations, place as annotation_place, with_those_beside,
};
pub(super) use assembler::Assembler;
pub(crate) use collection::missing_collection_of;
pub(crate) use create::{Prepared, prepare};
pub(crate) use layout::Base;
pub(crate) use open::{open, open_arriving, recordings};
pub(super) use staging_folder::StagingFolder;
pub(super) use stated_axis::is_misread;
pub(crate) use stripe_set::StripeSet;
pub(crate) use writer::Closing;
pub use {
    create::SigmfSettings,
    recording_set::{BegunSet, RecordingSet},
    repair::repair,
    verify::{Verified, verify},
    writer::{SigmfSummary, SigmfWriter},
};

#[cfg(test)]
mod tests;
