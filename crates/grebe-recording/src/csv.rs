//! Tables of comma-separated values, as programs and instruments write them; complex samples in two columns.
//!
//! ```text
//!  bytes -> UTF-8 -> where the table is -> what its columns are -> rows -> which sample each is -> recording
//!          (text)   (layout, preamble)        (columns)          (rows)       (times)             (read)
//! ```
//!
//! Numbers are those of the samples, in as many digits as give the same number again. A text has no places to seek: it is read once,
//! from its beginning to its end, into a recording.

mod columns;
mod layout;
mod name;
mod preamble;
mod read;
mod records;
mod rows;
mod text;
mod times;
mod write;

pub use read::{CsvOptions, ImportedCsv, import_csv};
pub use write::CsvWriter;

/// Name of the time column: seconds since the first sample.
const TIME: &str = "time_s";
/// Suffixes of a complex channel's two columns.
const COMPLEX: [&str; 2] = ["_re", "_im"];

#[cfg(test)]
mod tests;
