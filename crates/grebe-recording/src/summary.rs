//! Summaries of recordings: smallest and largest samples of ever longer stretches, in a file beside the recording, so that a
//! picture of any part of it takes a few reads. docs/summary-format.md has the format.
//!
//! ```text
//!   SummaryWriter --blocks of nodes--> NAME.grebe-summary --> Summary: extremes and sums of any stretch
//!   SpectraWriter --rows of bins-----> NAME.grebe-spectra --> SpectralSummary: power by time and frequency
//!      ^      ^
//!      |      SummarizedFile: a recording, its summaries, and the threads that make what is missing
//!      RecordingSummaries: threads that make both while the recording is written
//! ```
//! Nodes count places in the file, not indices of the stream: gaps take no room, and a file that grows changes no node.

mod block;
mod builder;
mod format;
mod maker;
mod nodes;
mod part_file;
mod place;
mod reader;
mod recording;
mod spectra;
mod summarized;

pub(crate) use format::Kind as SummaryKind;
pub use maker::SummaryState;
pub use nodes::{Extremes, LevelSums};
pub(crate) use part_file::remove_parts_of as remove_summary_parts;
pub(crate) use place::{beside as summary_beside, named_beside};
pub use reader::Summary;
pub(crate) use recording::RecordingSummaries;
pub use spectra::{SpectralRow, SpectralSummary};
pub use summarized::SummarizedFile;

#[cfg(test)]
mod tests;
