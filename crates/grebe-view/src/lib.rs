//! The scope a person uses, with three faces: a window, a terminal, a PNG file.
//!
//! The thread that carries data owns the scope and answers *viewports*; the face asks for them and takes the newest
//! [`Picture`]. Neither waits for the other. The crate does not know where samples come from: batches go in, and what
//! only the source knows (its name, losses before the scope) comes as a [`SourceStatus`].
//!
//! ```text
//!   batches --> ScopeStage (ScopeCore: tracker, pyramid) --newest picture--> ScopeLink --> run_window
//!                         <----------viewport--------------                          --> run_terminal
//!                                                                                    --> render_png
//! ```
//!
//! ```
//! use grebe_frame::{BatchPool, Header};
//! use grebe_view::{ScopeCore, Viewport};
//!
//! let mut pool = BatchPool::new(1, 65_536);
//! let mut batch = pool.acquire().unwrap();
//! let header = Header { channel_count: 1, block_length_samples: 100, sample_rate_hz: 1e3, ..Header::default() };
//! batch.push(&header, |_, samples| samples.fill(7)).unwrap();
//!
//! let mut core = ScopeCore::new(1 << 20);
//! core.ingest(&batch.freeze(), 1_000_000)?;
//! let picture = core.answer(&Viewport { span: Some(0.1), ..Viewport::latest(10) }, 2_000_000);
//! assert_eq!(picture.channels[0].columns[9].max, 7);
//! assert_eq!(picture.span(), 0.1);
//! # Ok::<(), grebe_scope::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "window"),
    allow(dead_code, reason = "the other front ends leave some of what a person can do to the pointer")
)]

mod data;
mod error;
mod model;
mod png;
#[cfg(feature = "terminal")]
mod term;
#[cfg(test)]
mod testing;
#[cfg(feature = "window")]
mod window;

pub use data::core::ScopeCore;
pub use data::extract::{Extract, ExtractRun};
pub use data::feed::ScopeFeed;
pub use data::link::ScopeLink;
pub use data::math::{MATH_CHANNEL, MathInput, MathOperation, MathSettings};
pub use data::measure::ChannelMeasurements;
pub use data::persistence::{ChannelDensity, PersistenceSettings, PersistenceView};
pub use data::picture::{ChannelColumns, Flow, GapMark, Picture, StreamInfo};
pub use data::spectrum::{ChannelSpectrum, SpectrumView, WaterfallView};
pub use data::stage::ScopeStage;
pub use data::status::{Loss, SourceStatus};
pub use data::trigger::{
    TriggerCoupling, TriggerKind, TriggerMode, TriggerRate, TriggerSettings, TriggerState, TriggerView,
};
pub use data::viewport::{ChannelMask, SpectrumSettings, Viewport, Window};
pub use error::Error;
pub use model::channel::ChannelSetup;
pub use model::controls::TriggerOptions;
pub use model::generator::{GeneratorRemote, GeneratorWish};
pub use model::options::ViewOptions;
pub use model::session::Session;
pub use model::theme::ThemeChoice;
pub use model::vertical::VerticalScale;
pub use png::{PngOptions, render_png};
#[cfg(feature = "terminal")]
pub use term::run_terminal;
#[cfg(feature = "window")]
pub use window::{FrameTimes, WindowBench, bench_window, run_window, run_windows};
