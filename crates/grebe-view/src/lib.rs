//! The scope that a person uses: live traces with trigger, cursors, measurements, spectrum and persistence, in a window
//! (feature `window`), in a terminal (feature `terminal`) or as a PNG file.
//!
//! # How it fits together
//!
//! The thread that carries samples owns the history. The front end asks it for a [`Viewport`] and takes the newest
//! [`Picture`] when it is ready. Neither waits for the other.
//!
//! ```text
//!   batches --> ScopeFeed or ScopeStage --newest picture--> ScopeLink --> run_windows
//!               (history, trigger, spectra) <--viewport---            --> run_terminals
//!                                                                     --> render_png
//!                                                                     --> your own
//! ```
//!
//! - Feed it: [`ScopeStage`] is the last stage of a graph; any thread can feed a [`ScopeFeed`]; a [`ScopeCore`] has
//!   neither thread nor clock, and answers on request.
//! - Show it: give the [`ScopeLink`] and [`ViewOptions`] to `run_windows`, `run_terminals` or [`render_png`]. All three show
//!   the same model, so a key does the same in each. Several scopes are drawn one above the other, on one time axis if
//!   possible.
//! - State of the source (its name, losses before the scope) comes as a [`SourceStatus`], because the crate does not know
//!   the source.
//!
//! # A picture as a file
//!
//! ```
//! use grebe_frame::{BatchPool, Header};
//! use grebe_view::{PngOptions, ScopeFeed, SourceStatus, ViewOptions, render_png};
//!
//! let (mut feed, link) = ScopeFeed::new(1 << 20);
//! let mut pool = BatchPool::new(1, 65_536);
//! let header = Header { channel_count: 1, block_length_samples: 1000, sample_rate_hz: 1e3, ..Header::default() };
//! let mut batch = pool.acquire().unwrap();
//! batch.push::<i16>(&header, |_, samples| samples.iter_mut().zip(0..).for_each(|(sample, n)| *sample = n))?;
//! feed.ingest(&batch.freeze())?;
//! feed.finish();
//!
//! let options = ViewOptions::new(|| SourceStatus { name: "a ramp".into(), ..SourceStatus::default() });
//! let path = std::env::temp_dir().join(format!("grebe-view-guide-{}.png", std::process::id()));
//! let drawn = render_png(&link, options, &PngOptions::new(&path), |png| std::fs::write(&path, png))?;
//! assert_eq!(drawn.picture.counts.samples, 1000);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A front end of your own
//!
//! Columns are extremes, so that no peak is lost however many samples a column covers:
//!
//! ```
//! # use grebe_frame::{BatchPool, Header};
//! use grebe_view::{ScopeFeed, Viewport};
//!
//! let (mut feed, link) = ScopeFeed::new(1 << 20);
//! # let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
//! # let header = Header { channel_count: 1, block_length_samples: 100, sample_rate_hz: 1e3, ..Header::default() };
//! # batch.push::<i16>(&header, |_, samples| samples.fill(7)).unwrap();
//! # let batch = batch.freeze();
//! let mut viewport = Viewport::latest(10);
//! viewport.span = Some(0.1);
//! link.request(viewport);
//! feed.ingest(&batch)?;
//! let picture = link.take().expect("asked for, and there is data");
//! assert_eq!(picture.lanes[0].columns[9].max, 7.0);
//! assert_eq!(picture.span(), 0.1);
//! # Ok::<(), grebe_scope::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "window"),
    allow(dead_code, reason = "the other front ends leave some actions to the pointer")
)]

mod data;
mod error;
mod model;
mod page;
mod png;
mod remote;
#[cfg(feature = "terminal")]
mod term;
#[cfg(test)]
mod testing;
#[cfg(feature = "window")]
mod window;

pub use data::{
    axis::AxisPoint,
    core::ScopeCore,
    descriptions::{Change, ChangeMark},
    extract::{Extract, ExtractRun, ExtractSamples},
    feed::{RecordingScope, ScopeFeed, ScopeStage},
    finding::{Finder, Finding, FindingNews, FindingSide, FoundEvent, Sought},
    lane::{LaneId, LaneMask, Part},
    link::{AfterEnd, HistoryReader, ScopeLink},
    listening::{HeardBox, Listener, Listening, ListeningSide, Playing, Sound},
    measure::LaneMeasurements,
    picture::{Flow, GapMark, LaneColumns, Picture, StreamInfo},
    recording::{Recording, RecordingOutline, RecordingPower, RecordingSums, Stretch, WantedSamples},
    region::RegionMeasurements,
    signal::SignalMeasurements,
    spectrum::{ChannelSpectrum, SpectrumView},
    status::{Loss, SourceStatus},
    tracks::samples_held,
    trigger::{
        TriggerCoupling, TriggerKind, TriggerMode, TriggerRate, TriggerSettings, TriggerState, TriggerView,
    },
    viewport::{Detector, Region, SpectrumSettings, Viewport, Window},
};
pub use error::Error;
pub use model::{
    channel::{ChannelSetup, ThemeChoice},
    controls::TriggerOptions,
    generator::{GeneratorRemote, GeneratorWish},
    keeper::{Annotator, KeptStretch, StretchKeeper},
    markers::MarkerLevels,
    options::{CutBand, InitialView, MarkerPlaces, Opened, SourceMenu, ViewOptions},
    receiver::{ReceiverRemote, Tuned},
    session::Session,
    vertical::VerticalScale,
};
pub use page::PageSession;
pub use png::{Drawn, PngOptions, render_png, render_pngs};
pub use remote::{
    ChannelMeaning, Greeting, Malformed, Refusal, RemoteScope, RemoteScopeError, Right, ScopeMessage,
    ScopeOffer, SharedControls, SourceControls, ViewerSession, greeting,
};
#[cfg(feature = "terminal")]
pub use term::{
    ascii::{ascii_of, draw_in_ascii, is_ascii_locale},
    run_terminals,
};
#[cfg(feature = "window")]
pub use window::{FrameTimes, WindowBench, bench_window, run_windows};
