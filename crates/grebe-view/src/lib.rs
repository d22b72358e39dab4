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
//! # Ok::<(), grebe_scope::ScopeError>(())
//! ```
#![forbid(unsafe_code)]

mod controls;
mod core;
mod cpu;
mod error;
mod extract;
mod face;
mod feed;
mod gaps;
mod generator;
mod hud;
mod interpolate;
mod keys;
mod link;
mod math;
mod measure;
mod meter;
mod options;
mod persistence;
mod picture;
mod png;
mod readout;
mod save;
mod segments;
mod session;
mod span;
mod spectra;
mod spectrum;
mod stage;
mod status;
mod term;
#[cfg(test)]
mod testing;
mod trigger;
mod vertical;
mod viewport;
#[cfg(feature = "window")]
mod window;

pub use crate::core::ScopeCore;
pub use error::ViewError;
pub use extract::{Extract, ExtractRun};
pub use feed::ScopeFeed;
pub use generator::{GeneratorRemote, GeneratorWish, TellGenerator};
pub use link::ScopeLink;
pub use math::{MATH_CHANNEL, MathInput, MathOperation, MathSettings};
pub use measure::ChannelMeasurements;
pub use options::{ChannelSetup, Export, KeepSession, ThemeChoice, TriggerOptions, Vertical, ViewOptions};
pub use persistence::{ChannelDensity, PersistenceSettings, PersistenceView};
pub use picture::{ChannelColumns, Flow, GapMark, Latency, Picture, StreamInfo};
pub use png::{PngOptions, render_png};
pub use session::Session;
pub use spectrum::{ChannelSpectrum, SpectrumSettings, SpectrumView, WaterfallView};
pub use stage::ScopeStage;
pub use status::{Loss, SourceStatus};
pub use term::run_terminal;
pub use trigger::{
    TriggerCoupling, TriggerKind, TriggerMode, TriggerRate, TriggerSettings, TriggerState, TriggerView,
};
pub use viewport::{ChannelMask, Viewport, Window};
#[cfg(feature = "window")]
pub use window::{FrameTimes, WindowBench, bench_window, run_window, run_windows};
