//! The spectral summary of a recording: the highest and the mean power by time and frequency, in rows of ever longer stretches and
//! ever more bins.
//!
//! ```text
//!   row of level 14  |--|--|--|--|  2^14 samples, few bins       each: the highest and the mean of all transforms in it
//!       of level 16  |-----------|  2^16 samples, twice as many
//!   in the file      14 14 14 14 16 14 14 14 14 16 ... 18 ...    a row follows the last of those that it is of
//! ```
//! Transforms of 1024 samples with Hann's window lie half over one another, so that a burst of a quarter of a transform has half of
//! its amplitude in one of them at least, wherever it lies.

mod layout;
mod reader;
mod writer;

pub use layout::SpectralRow;
pub use reader::SpectralSummary;
pub(super) use writer::SpectraWriter;

#[cfg(test)]
mod tests;
