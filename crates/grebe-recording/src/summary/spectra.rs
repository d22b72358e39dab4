//! The spectral summary of a recording: the highest and the mean power by time and frequency. The rows of each level cover more
//! time than those of the level before, in more bins.
//!
//! ```text
//!   row of level 14  |--|--|--|--|  2^14 samples, few bins       each: the highest and the mean of all transforms in it
//!       of level 16  |-----------|  2^16 samples, twice as many
//!   in the file      14 14 14 14 16 14 14 14 14 16 ... 18 ...    a row follows the last of the rows that it combines
//! ```
//! Transforms have 1024 samples, Hann's window and half overlap. So at least one of them weights a burst of 256 samples with half
//! of the window's height or more, at any position.

mod layout;
mod reader;
mod writer;

pub use layout::SpectralRow;
pub use reader::SpectralSummary;
pub(super) use writer::SpectraWriter;

#[cfg(test)]
mod tests;
