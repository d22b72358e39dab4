//! How a face is set up.

use std::path::{Path, PathBuf};

use grebe_scope::Slope;
use grebe_scope::raster::{Color, Theme};

use crate::extract::Extract;
use crate::generator::GeneratorRemote;
use crate::math::MATH_CHANNEL;
use crate::session::Session;
use crate::status::SourceStatus;
use crate::trigger::{TriggerCoupling, TriggerKind, TriggerMode};

/// What every face needs beside its [`ScopeLink`](crate::ScopeLink).
pub struct ViewOptions {
    /// Asked a few times a second, by the face's thread.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
    /// Names, units and scales of the channels, as far as known; the rest are raw counts.
    pub channels: Vec<ChannelSetup>,
    /// The span to begin with, in seconds (samples where the rate is unknown); `None` lets the scope choose.
    pub span: Option<f64>,
    /// Dark or light; `None`: as the session says, else dark.
    pub theme: Option<ThemeChoice>,
    /// Whether the spectrum is shown from the start.
    pub spectrum: bool,
    /// Where files are saved; empty for the current folder.
    pub folder: PathBuf,
    /// Width and height of saved pictures, in pixels.
    pub png_size: (u32, u32),
    /// Writes a recording of what is given to a path that does not exist; an error is one line for a person. `None`:
    /// recordings cannot be saved.
    pub export: Option<Export>,
    /// What tells the generator of the stream what to make; `None` where nobody can.
    pub generator: Option<GeneratorRemote>,
    /// The trigger, as far as it is set.
    pub trigger: TriggerOptions,
    /// Settings to begin with; those above that are set go before it.
    pub session: Option<Session>,
    /// Called with the settings when the face ends.
    pub keep_session: Option<KeepSession>,
}

/// Keeps the settings for the next time.
pub type KeepSession = Box<dyn Fn(&Session) + Send>;

/// Writes a recording, and names the file to open: the face does not know file formats.
pub type Export = Box<dyn Fn(&Path, &Extract) -> Result<PathBuf, String> + Send>;

/// What the numbers of a channel mean.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelSetup {
    /// Shown in the lane's corner; empty for the number alone.
    pub name: String,
    /// Unit without prefix, as `V`; empty for raw counts.
    pub unit: String,
    /// Units a count.
    pub scale: f64,
    /// Value of the count 0, in units.
    pub offset: f64,
    /// Whether the signal is shown turned over.
    pub is_inverted: bool,
    /// Whether the mean of what is visible is taken off: AC coupling, by arithmetic.
    pub is_ac: bool,
    /// Colour of the trace; `None` for the theme's.
    pub color: Option<Color>,
    /// The vertical scale; `None` follows the signal.
    pub vertical: Option<Vertical>,
}

/// A vertical scale that is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vertical {
    /// Units a division, of which there are eight.
    pub per_division: f64,
    /// Divisions from the middle up to where 0 lies.
    pub position: f64,
}

/// What is set of the trigger from the start; the rest is as the session says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TriggerOptions {
    /// When pictures are taken; `None` where anything else is set: automatically.
    pub mode: Option<TriggerMode>,
    /// What kind of event triggers.
    pub kind: Option<TriggerKind>,
    /// The channel that triggers, from 0 to 7.
    pub channel: Option<usize>,
    /// Direction of the crossing.
    pub slope: Option<Slope>,
    /// The level in units of the channel.
    pub level: Option<f64>,
    /// What of the signal the trigger sees.
    pub coupling: Option<TriggerCoupling>,
    /// Seconds after a trigger in which none is looked for.
    pub holdoff_s: Option<f64>,
}

/// One of the two designed themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeChoice {
    /// For dark surroundings.
    #[default]
    Dark,
    /// For bright surroundings and for print.
    Light,
}

impl ViewOptions {
    /// A dark scope of raw counts.
    pub fn new(status: impl Fn() -> SourceStatus + Send + 'static) -> ViewOptions {
        ViewOptions {
            status: Box::new(status),
            channels: Vec::new(),
            span: None,
            theme: None,
            spectrum: false,
            folder: PathBuf::new(),
            png_size: (1280, 720),
            export: None,
            generator: None,
            trigger: TriggerOptions::default(),
            session: None,
            keep_session: None,
        }
    }

    /// The channel's setup, or raw counts.
    pub(crate) fn channel(&self, channel: usize) -> ChannelSetup {
        self.channels.get(channel).cloned().unwrap_or_default()
    }
}

impl Default for ChannelSetup {
    fn default() -> ChannelSetup {
        ChannelSetup {
            name: String::new(),
            unit: String::new(),
            scale: 1.0,
            offset: 0.0,
            is_inverted: false,
            is_ac: false,
            color: None,
            vertical: None,
        }
    }
}

impl ChannelSetup {
    /// What stands in the lane's corner.
    pub(crate) fn label(&self, channel: usize) -> String {
        match (channel == MATH_CHANNEL, self.name.is_empty()) {
            (true, _) => format!("M {}", self.name).trim_end().to_owned(),
            (false, true) => format!("CH{}", channel + 1),
            (false, false) => format!("{} {}", channel + 1, self.name),
        }
    }

    /// The setup that shows the same by scale and offset alone; `mean` is that of what is visible, in raw counts.
    pub(crate) fn resolved(&self, mean: f64) -> ChannelSetup {
        let scale = if self.is_inverted { -self.scale } else { self.scale };
        let offset = if self.is_inverted { -self.offset } else { self.offset };
        let offset = if self.is_ac { -mean * scale } else { offset };
        ChannelSetup { scale, offset, ..self.clone() }
    }

    /// The colour of the trace.
    pub(crate) fn trace_color(&self, channel: usize, theme: &Theme) -> Color {
        self.color.unwrap_or(theme.trace(hue(channel)))
    }

    /// Units of a raw count.
    pub(crate) fn value(&self, count: f64) -> f64 {
        count * self.scale + self.offset
    }
}

/// The math channel has the last of the eight colours: seldom is there an eighth channel beside it.
pub(crate) fn hue(channel: usize) -> usize {
    channel.min(MATH_CHANNEL - 1)
}

impl ThemeChoice {
    /// Its colours.
    pub fn theme(self) -> Theme {
        match self {
            ThemeChoice::Dark => Theme::dark(),
            ThemeChoice::Light => Theme::light(),
        }
    }

    /// The other one.
    pub fn other(self) -> ThemeChoice {
        match self {
            ThemeChoice::Dark => ThemeChoice::Light,
            ThemeChoice::Light => ThemeChoice::Dark,
        }
    }
}

impl std::fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewOptions")
            .field("channels", &self.channels)
            .field("span", &self.span)
            .field("theme", &self.theme)
            .finish_non_exhaustive()
    }
}
