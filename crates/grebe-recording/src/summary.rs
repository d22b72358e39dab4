//! Summaries of recordings: smallest and largest samples of ever longer stretches, in a file beside the recording, so that a
//! picture of any part of it takes a few reads. docs/summary-format.md has the format.
//!
//! ```text
//!   SummaryWriter --blocks of nodes--> NAME.grebe-summary --> Summary: extremes and sums of any stretch
//!      ^      ^
//!      |      SummarizedFile: a recording, its summary, and the thread that makes one where there is none
//!      RecordingSummary: a thread that makes one while the recording is written
//! ```
//! Nodes count places in the file, not indices of the stream: gaps take no room, and a file that grows changes no node.

mod block;
mod builder;
mod format;
mod nodes;
mod place;
mod reader;
mod recording;
mod summarized;

pub(crate) use builder::remove_left_over as remove_summary_left_over;
pub use nodes::{Extremes, LevelSums};
pub(crate) use place::beside as summary_beside;
pub use reader::Summary;
pub(crate) use recording::RecordingSummary;
pub use summarized::{SummarizedFile, SummaryState};

#[cfg(test)]
mod tests;
