//! How a face is set up.

use grebe_scope::raster::Theme;

use crate::status::SourceStatus;

/// What every face needs beside its [`ScopeLink`](crate::ScopeLink).
pub struct ViewOptions {
    /// Asked a few times a second, by the face's thread.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
    /// Names, units and scales of the channels, as far as known; the rest are raw counts.
    pub channels: Vec<ChannelSetup>,
    /// The span to begin with, in seconds (samples where the rate is unknown); `None` lets the scope choose.
    pub span: Option<f64>,
    /// Whether the window begins dark or light; PNG and window.
    pub theme: ThemeChoice,
}

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
            theme: ThemeChoice::default(),
        }
    }

    /// The channel's setup, or raw counts.
    pub(crate) fn channel(&self, channel: usize) -> ChannelSetup {
        self.channels.get(channel).cloned().unwrap_or_default()
    }
}

impl Default for ChannelSetup {
    fn default() -> ChannelSetup {
        ChannelSetup { name: String::new(), unit: String::new(), scale: 1.0, offset: 0.0 }
    }
}

impl ChannelSetup {
    /// What stands in the lane's corner.
    pub(crate) fn label(&self, channel: usize) -> String {
        match self.name.is_empty() {
            true => format!("CH{}", channel + 1),
            false => format!("{} {}", channel + 1, self.name),
        }
    }

    /// Units of a raw count.
    pub(crate) fn value(&self, count: f64) -> f64 {
        count * self.scale + self.offset
    }
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
