//! Signal to picture numbers: what a scope shows, without a window, a thread, a frame or a socket.
//!
//! Everything takes blocks of channels (`&[&[i16]]` or `&[&[f32]]`, one slice per channel, all of one length) with the absolute
//! index of their first sample, and yields numbers or pixels. A jump of the index is a gap, and nothing is computed across one.
//!
//! `i16` and `f32` are the two kinds of [`Value`]. A structure takes the kind of its first samples; a type without a kind
//! means `i16`. A complex sample is two channels, I and Q.
//!
//! ```text
//!            +-> Pyramid --columns--> Column ----------------+
//!            |     +-----samples----> Measurer, Spectrum ----+--> raster: Picture -> Image -> PNG
//!   block ---+                                               |    (or a window, or a terminal)
//!            +-> Trigger -> Acquisition -> Density ----------+
//! ```
//!
//! - [`Pyramid`] keeps a long stream within a fixed budget and answers any window of it as [`Column`]s.
//! - [`ColumnGrid`] ties columns to absolute sample indices, so that a picture that scrolls does not shimmer.
//! - [`Trigger`] finds every event that meets a [`Condition`]; [`Acquisition`] takes a record around each, and
//!   [`Density`] counts how often the records pass each cell of a picture, [`XyDensity`] the points of one channel over another.
//! - [`Measurer`] fills the measurement table; [`Spectrum`] shows frequencies, and how clean a tone or a channel is.
//! - [`BurstDetector`] finds signals that come and go over the noise, with their times, bands and powers.
//! - [`magnitude`], [`phase`] and [`instantaneous_frequency`] turn complex samples into lanes; [`PowerStats`] adds up their power.
//! - [`raster`] draws lanes of columns to an image without a GPU.
//! - [`step_125_up`], [`step_time_up`], [`Ticks`] and [`Engineering`] are the steps and labels every face needs.
//!
//! Structures reserve their memory when they are made. Appending and asking allocate nothing afterwards.
//!
//! # From a stream to a picture, a trigger and a table
//!
//! ```
//! use grebe_scope::raster::{Axis, Lane, Picture, Theme, Trace, plot_columns};
//! use grebe_scope::{Column, ColumnGrid, Condition, Measurer, Pyramid, Quantity, Scale, Slope, Trigger};
//!
//! const RATE_HZ: f64 = 48_000.0;
//! let volts = Scale { factor: 1.0 / 32_768.0, offset: 0.0 };
//!
//! // A stream of one channel in blocks of 1000 samples: a sine of 440 Hz, half of full scale.
//! let mut pyramid = Pyramid::new(1, 8 << 20)?;
//! let edge = Condition::Edge { slope: Slope::Rising, level: 0, hysteresis: 500 };
//! let mut trigger = Trigger::new(edge, 0)?;
//! let mut crossings = Vec::new();
//! for first in (0..48_000).step_by(1000) {
//!     let sine = |index: u64| (index as f64 / RATE_HZ * 440.0 * std::f64::consts::TAU).sin() * 16_384.0;
//!     let block: Vec<i16> = (first..first + 1000).map(|index| sine(index) as i16).collect();
//!     pyramid.append(first, &[&block])?;
//!     trigger.scan(first, &block, |event| crossings.push(event.position()));
//! }
//! assert!((RATE_HZ / (crossings[1] - crossings[0]) - 440.0).abs() < 0.1);
//!
//! // The measurement table, of the samples that are still kept.
//! let mut runs = Vec::new();
//! pyramid.samples(0, 0..48_000, |_first, run| runs.push(run));
//! let table = Measurer::new().measure(&runs, RATE_HZ, volts);
//! assert!((table.get(Quantity::PeakToPeak).unwrap() - 1.0).abs() < 0.001);
//! assert!((table.get(Quantity::Frequency).unwrap() - 440.0).abs() < 0.01);
//!
//! // The first 10 ms as a PNG, one column per pixel.
//! let (width, height) = (640, 240);
//! let mut columns = vec![Column::OUTSIDE; plot_columns(width)];
//! let grid = ColumnGrid::new(480.0 / columns.len() as f64);
//! pyramid.columns(0, grid, 0, &mut columns);
//! let sine = Lane::new("sine", Trace::Columns(&columns), -1.0, 1.0);
//! let lanes = [Lane { scale: volts.factor, unit: "V", ..sine }];
//! let axis = Axis { start: 0.0, end: 0.01, unit: "s" };
//! let picture = Picture { lanes: &lanes, axis, ..Picture::new(width, height, Theme::dark()) };
//! let png = picture.draw()?.to_png()?;
//! assert_eq!(&png[1..4], b"PNG");
//! # Ok::<(), grebe_scope::Error>(())
//! ```

#![deny(unsafe_code)]

mod acquisition;
mod burst;
mod clock;
mod column;
mod comparator;
mod density;
mod error;
mod iq;
mod line;
mod measure;
#[cfg(feature = "serde")]
mod or_word;
mod pyramid;
#[cfg(feature = "raster")]
pub mod raster;
#[allow(unsafe_code, reason = "vector instructions behind run-time detection, nothing else")]
mod simd;
mod spectrum;
mod stats;
mod steps;
mod trigger;
mod units;
mod value;

pub use acquisition::{Acquisition, Record};
pub use burst::{Burst, BurstDetector, BurstSettings, SampleSource};
pub use clock::{step_time_down, step_time_up};
pub use column::{Column, ColumnGrid, Coverage};
pub use density::{Density, XyDensity};
pub use error::{Error, Result};
pub use iq::{PowerStats, instantaneous_frequency, magnitude, magnitude_db, phase};
pub use line::{Interpolation, SINC_REACH, SampleLine};
pub use measure::{
    Dimension, MeasurementStatistics, Measurements, Measurer, Quantity, Running, Scale, Shift, ShiftMeasurer,
};
pub use pyramid::{Pyramid, RangeStats};
pub use simd::{min_max, stats};
pub use spectrum::{
    Averaging, Band, Peak, PowerTransform, Sides, Spectrum, ToneQuality, Window, decibels, find_peaks,
    peak_at,
};
pub use stats::Stats;
pub use steps::{step_125_down, step_125_up};
pub use trigger::{Condition, Passage, Polarity, Slope, Trigger, TriggerEvent, TriggerFilter};
pub use units::{Engineering, Ticks, parse_quantity};
pub use value::{IntegerSums, Number, RealSums, Value};
