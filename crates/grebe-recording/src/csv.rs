//! Comma-separated values: a line of names, then a line a sample, with or without its time; complex samples in two columns.
//!
//! Numbers are those of the samples, in as many digits as give the same number again. A text has no places to seek: it is read once,
//! from its beginning to its end, into a recording.

mod read;
mod write;

pub use read::{CsvOptions, import_csv};
pub use write::CsvWriter;

/// How the column is called that says when a sample was made, in seconds behind the first.
const TIME: &str = "time_s";
/// Behind the name of a channel: its two columns.
const COMPLEX: [&str; 2] = ["_re", "_im"];

#[cfg(test)]
mod tests;
