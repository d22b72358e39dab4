//! How a scope is set up.

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
use crate::data::status::SourceStatus;

/// What a scope shows first, as far as it is said: the rest is as its session or its source says.
#[derive(Debug, Clone, Default)]
pub struct InitialView {
    /// Names, units and scales of the channels, as far as known; the rest are raw counts.
    pub channels: Vec<ChannelSetup>,
    /// The channels and parts; `None`: all, and of complex ones I and Q.
    pub lanes: Option<LaneMask>,
    /// The span in seconds (samples where the rate is unknown); `None` lets the scope choose.
    pub span: Option<f64>,
    /// Dark or light; `None`: dark.
    pub theme: Option<ThemeChoice>,
    /// Whether the spectrum is shown.
    pub spectrum: bool,
    /// Whether the waterfall of the first channel is.
    pub waterfall: bool,
    /// Whether one lane is drawn over another.
    pub xy: bool,
    /// Symbols a second, of which each is a point there.
    pub symbol_rate_hz: Option<f64>,
    /// The part of the spectrum, in hertz: of complex samples around the centre frequency.
    pub band_hz: Option<(f64, f64)>,
    /// Lowest and highest level of the waterfall's colours, in decibels; `None`: by the noise floor.
    pub levels_db: Option<(f64, f64)>,
    /// Markers in the spectrum.
    pub markers: Option<MarkerPlaces>,
    /// The trigger.
    pub trigger: TriggerOptions,
}

/// Where the two markers of a spectrum stand first.
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
        controls.symbol_rate_hz = self.symbol_rate_hz.or(controls.symbol_rate_hz);
    }
}

/// What every front end needs beside its [`ScopeLink`](crate::ScopeLink).
#[expect(clippy::type_complexity, reason = "names for the types of three functions would say nothing more")]
pub struct ViewOptions {
    /// Asked a few times per second, by the front end's thread.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
    /// What is shown first.
    pub initial: InitialView,
    /// Where files are saved; empty for the current folder.
    pub folder: PathBuf,
    /// Width and height of saved pictures, in pixels.
    pub png_size: (u32, u32),
    /// Writes a recording of the samples to a path that does not exist, and names the file to open; an error is one line
    /// for a person. `None`: recordings cannot be saved.
    pub export: Option<Box<dyn Fn(&Path, &Extract) -> Result<PathBuf, String> + Send>>,
    /// Takes the name and the bytes of files that are saved, in place of the folder; an error is one line for a person.
    pub store: Option<Box<dyn Fn(&str, Vec<u8>) -> Result<(), String> + Send>>,
    /// Opens a file in place of the stream, where that can be done: its link and its options, or one line for a person. The
    /// link that it replaces is closed.
    pub open: Option<Box<dyn Fn(&Path) -> Result<(ScopeLink, ViewOptions), String> + Send>>,
    /// The sources that are served beside this one, where there are several.
    pub sources: Option<SourceMenu>,
    /// Who keeps stretches of the stream for good, where somebody does.
    pub keeper: Option<StretchKeeper>,
    /// Who takes changes to the annotations; `None`: they are kept as long as the stream is looked at.
    pub annotator: Option<Annotator>,
    /// What searches all that is held of the stream, where something does.
    pub finder: Option<Finder>,
    /// What tells the generator of the stream what to make; `None` where nobody can.
    pub generator: Option<GeneratorRemote>,
    /// What tunes the receiver of the stream; `None` where it comes from none, or nobody can.
    pub receiver: Option<ReceiverRemote>,
    /// Settings to begin with. Those of [`initial`](ViewOptions::initial) that are set take precedence.
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
            generator: None,
            receiver: None,
            session: None,
            keep_session: None,
        }
    }

    /// The settings to begin with.
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

/// The sources of which one is shown, and the way to the others.
pub struct SourceMenu {
    /// What each is called.
    pub names: Vec<String>,
    /// Which of them is shown, from 0.
    pub shown: usize,
    /// Opens another in place of it, without waiting. What comes is its link and its options, or one line for a person; the link that it
    /// replaces is closed.
    pub open: Box<dyn Fn(usize) -> Receiver<Opened> + Send>,
}

/// A source that was opened, or why not.
pub type Opened = Result<(ScopeLink, ViewOptions), String>;
