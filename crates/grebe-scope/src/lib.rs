//! Signal to picture numbers: what a scope shows, without a window, a thread, a frame or a socket.
//!
//! Everything takes blocks of channels (`&[&[i16]]`, one slice a channel, all of one length) with the absolute
//! index of their first sample, and yields numbers or pixels:
//!
//! - [`Pyramid`] keeps a long stream within a fixed budget and answers any window of it as [`Column`]s;
//!   [`Envelope`] does so for one zoom without keeping samples.
//! - [`ColumnGrid`] ties columns to absolute sample indices, so that a picture that scrolls does not shimmer.
//! - [`Trigger`] finds every event that meets a [`Condition`]; [`Acquisition`] takes a record around each, and
//!   [`Density`] lays them upon each other.
//! - [`Measurer`] fills the measurement table; [`Spectrum`] and [`Waterfall`] show frequencies;
//!   [`MathChannel`] makes channels of channels.
//! - [`raster`] draws lanes of columns to an image without a GPU.
//! - [`step_125_up`], [`Ticks`] and [`Engineering`] are the steps and labels every face needs.
//!
//! ```
//! use grebe_scope::{Column, ColumnGrid, Pyramid};
//!
//! let mut pyramid = Pyramid::new(1, 1 << 20)?;
//! let ramp: Vec<i16> = (0..10_000).map(|i| i as i16).collect();
//! pyramid.append(0, &[&ramp])?;
//!
//! let grid = ColumnGrid::new(20.0);
//! let mut columns = [Column::OUTSIDE; 4];
//! pyramid.columns(0, grid, grid.column_at(100), &mut columns);
//! assert_eq!((columns[0].min, columns[0].max), (100, 119));
//! # Ok::<(), grebe_scope::ScopeError>(())
//! ```

#![deny(unsafe_code)]

mod acquisition;
mod block;
mod column;
mod density;
mod envelope;
mod error;
mod lttb;
mod math;
mod measure;
mod pyramid;
pub mod raster;
#[allow(unsafe_code, reason = "vector instructions behind run-time detection, nothing else")]
mod simd;
mod spectrum;
mod trigger;
mod units;

pub use acquisition::{Acquisition, AcquisitionCounts, AcquisitionState, Mode, Record};
pub use column::{Column, ColumnGrid, Coverage};
pub use density::Density;
pub use envelope::{Envelope, columns_of};
pub use error::ScopeError;
pub use lttb::{Reduction, lttb};
pub use math::{Fir, MathChannel, Operation};
pub use measure::{
    Delay, Dimension, MeasurementStatistics, Measurements, Measurer, Quantity, Running, Scale,
};
pub use pyramid::{LevelInfo, Pyramid, RangeStats};
pub use simd::{Stats, min_max, stats};
pub use spectrum::{Averaging, DbmReference, Peak, Spectrum, Waterfall, Window};
pub use trigger::{Condition, LfReject, Passage, Polarity, Slope, Trigger, TriggerEvent};
pub use units::{Engineering, Ticks, step_125_down, step_125_up};
