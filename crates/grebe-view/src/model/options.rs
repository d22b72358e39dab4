//! Options of a scope.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use super::channel::{ChannelSetup, ThemeChoice};
use super::controls::{Controls, TriggerOptions};
use super::generator::GeneratorRemote;
use super::keeper::{Annotator, StretchKeeper};
use super::receiver::ReceiverRemote;
use super::session::Session;
use super::vertical::ValueRange;
use crate::data::extract::Extract;
use crate::data::finding::Finder;
use crate::data::lane::LaneMask;
use crate::data::link::ScopeLink;
use crate::data::listening::{HeardBox, Listener, Playing, Sound};
use crate::data::status::SourceStatus;
use crate::data::viewport::Detector;

/// The initial view. Unset fields come from the session or the source.
#[derive(Debug, Clone, Default)]
pub struct InitialView {
    /// Names, units and scales of the channels, as far as known; the rest show raw counts.
    pub channels: Vec<ChannelSetup>,
    /// The channels and parts; `None`: all, with I and Q of complex ones.
    pub lanes: Option<LaneMask>,
    /// The span in seconds (samples if the rate is unknown); `None` lets the scope choose.
    pub span: Option<f64>,
    /// Dark or light; `None`: dark.
    pub theme: Option<ThemeChoice>,
    /// Whether the spectrum is shown.
    pub spectrum: bool,
    /// Whether the waterfall of the first channel is shown.
    pub waterfall: bool,
    /// Whether the X-Y plot is shown.
    pub xy: bool,
    /// Symbols per second; each symbol is a point of the X-Y plot.
    pub symbol_rate_hz: Option<f64>,
    /// The visible part of the spectrum, in hertz; for complex samples around the centre frequency.
    pub band_hz: Option<(f64, f64)>,
    /// Lowest and highest level of the waterfall's colours, in decibels; `None`: automatic, from the noise floor.
    pub levels_db: Option<(f64, f64)>,
    /// Level of the waterfall's cells; `None`: the highest, or the last used.
    pub detector: Option<Detector>,
    /// A box on the waterfall: its begin and its end in seconds since the first sample, its lower and its upper frequency in hertz.
    pub time_frequency_box: Option<[f64; 4]>,
    /// Markers in the spectrum.
    pub markers: Option<MarkerPlaces>,
    /// The trigger.
    pub trigger: TriggerOptions,
}

/// Initial places of the two markers of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MarkerPlaces {
    /// On the two highest peaks.
    Peaks,
    /// At these frequencies, in hertz.
    At(f64, f64),
}

impl InitialView {
    fn set(&self, controls: &mut Controls) {
        controls.shown = self.lanes.unwrap_or(controls.shown);
        controls.time.span = self.span.or(controls.time.span);
        controls.theme = self.theme.unwrap_or(controls.theme);
        for (channel, given) in self.channels.iter().enumerate() {
            if *given != ChannelSetup::default() {
                *controls.lanes.channel_mut(channel) = given.clone();
            }
        }
        controls.trigger.adopt(&self.trigger, &controls.lanes);
        controls.show.spectrum |= self.spectrum;
        controls.show.waterfall |= self.waterfall;
        controls.show.xy |= self.xy;
        let levels = self.levels_db.and_then(|(bottom, top)| ValueRange::of_levels(bottom, top));
        controls.levels = levels.or(controls.levels);
        controls.spectrum.detector = self.detector.unwrap_or(controls.spectrum.detector);
        controls.symbol_rate_hz = self.symbol_rate_hz.or(controls.symbol_rate_hz);
    }
}

/// Options that every front end needs beside its [`ScopeLink`](crate::ScopeLink).
#[expect(clippy::type_complexity, reason = "names for the types of three functions would say nothing more")]
pub struct ViewOptions {
    /// Called a few times per second, on the front end's thread.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
    /// The initial view.
    pub initial: InitialView,
    /// Where files are saved; empty for the current folder.
    pub folder: PathBuf,
    /// Width and height of saved pictures, in pixels.
    pub png_size: (u32, u32),
    /// Writes a recording of the samples, or of a band of them, to a path that does not exist, and returns the file to open; an
    /// error is one line for a person. `None`: recordings cannot be saved.
    pub export: Option<Box<dyn Fn(&Path, &Extract, Option<CutBand>) -> Result<PathBuf, String> + Send>>,
    /// Takes the name and the bytes of saved files, in place of the folder; an error is one line for a person.
    pub store: Option<Box<dyn Fn(&str, Vec<u8>) -> Result<(), String> + Send>>,
    /// Opens a file in place of the stream, if possible: returns its link and its options, or one line for a person.
    /// The replaced link is closed.
    pub open: Option<Box<dyn Fn(&Path) -> Result<(ScopeLink, ViewOptions), String> + Send>>,
    /// The other sources of the same server, if there are several.
    pub sources: Option<SourceMenu>,
    /// Saves ranges of the stream, if something records it.
    pub keeper: Option<StretchKeeper>,
    /// Takes changes to the annotations; `None`: changes last as long as the viewer.
    pub annotator: Option<Annotator>,
    /// Searches the whole history of the stream, if possible.
    pub finder: Option<Finder>,
    /// Makes sound of boxes on the waterfall, if possible.
    pub listener: Option<Listener>,
    /// Plays finished sounds, in a loop until the result is dropped; `None`: somebody else plays and ends it.
    pub hear: Option<Box<dyn Fn(Sound) -> Option<Playing> + Send>>,
    /// Plays the sound of a band from now on, until the result is dropped; the samples of the box do not matter.
    pub hear_live: Option<Box<dyn Fn(HeardBox) -> Option<Playing> + Send>>,
    /// Controls the generator of the stream; `None` if there is none.
    pub generator: Option<GeneratorRemote>,
    /// Tunes the receiver of the stream; `None` if there is none.
    pub receiver: Option<ReceiverRemote>,
    /// Saved settings. Fields set in [`initial`](ViewOptions::initial) take precedence.
    pub session: Option<Session>,
    /// Called with the settings when the front end ends.
    pub keep_session: Option<Box<dyn Fn(&Session) + Send>>,
}

impl ViewOptions {
    /// A dark scope of raw counts.
    pub fn new(status: impl Fn() -> SourceStatus + Send + 'static) -> ViewOptions {
        ViewOptions {
            status: Box::new(status),
            initial: InitialView::default(),
            folder: PathBuf::new(),
            png_size: (1280, 720),
            export: None,
            store: None,
            open: None,
            sources: None,
            keeper: None,
            annotator: None,
            finder: None,
            listener: None,
            hear: None,
            hear_live: None,
            generator: None,
            receiver: None,
            session: None,
            keep_session: None,
        }
    }

    /// The initial settings.
    pub(crate) fn controls(&self) -> Controls {
        let mut controls = Controls::new();
        if let Some(session) = &self.session {
            session.restore(&mut controls);
        }
        self.initial.set(&mut controls);
        controls
    }
}

impl std::fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewOptions").field("initial", &self.initial).finish_non_exhaustive()
    }
}

/// A band of some samples that is cut out.
#[derive(Debug, Clone, PartialEq)]
pub struct CutBand {
    /// Absolute indices of the samples, end exclusive.
    pub samples: Range<u64>,
    /// Lower edge; on the air if the samples say their centre frequency.
    pub low_hz: f64,
    /// Upper edge.
    pub high_hz: f64,
}

/// The sources of a server, of which one is shown.
pub struct SourceMenu {
    /// Their names.
    pub names: Vec<String>,
    /// Index of the visible one.
    pub shown: usize,
    /// Opens another source without waiting. The receiver gets its link and its options, or one line for a person; the
    /// replaced link is closed.
    pub open: Box<dyn Fn(usize) -> Receiver<Opened> + Send>,
}

/// An opened source, or the reason why it cannot be opened.
pub type Opened = Result<(ScopeLink, ViewOptions), String>;
