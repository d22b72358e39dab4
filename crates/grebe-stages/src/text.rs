//! Lines of numbers, as microcontrollers, loggers and other programs print them: `serial:///dev/ttyACM0`, `pipe:?format=text`.
//!
//! ```text
//!  bytes -> whole lines -> fields -> columns: which channels there are -> rows -> frames
//!           (source)       (fields)  (columns)                            (pace: how far apart they are)
//! ```

mod columns;
mod datagrams;
mod fields;
mod heading;
mod name;
mod pace;
mod rows;
mod sink;
mod source;

pub(crate) use datagrams::Datagrams;
pub use name::TextStream;
pub(crate) use sink::TextSink;
pub(crate) use source::TextSource;

#[cfg(fuzzing)]
pub(crate) use source::fuzz;
