//! What a front end asks for.

use grebe_scope::{Scale, Window as Weighting};

use crate::data::math::MathSettings;
use crate::data::persistence::PersistenceSettings;
use crate::data::trigger::TriggerSettings;

/// The part of the stream to show, how wide, and what to compute of it.
///
/// Begin with [`Viewport::latest`], and set what should differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Viewport {
    /// Which stretch of time.
    pub window: Window,
    /// How much of it: seconds, or samples where the rate is unknown. `None` leaves the choice to the scope.
    pub span: Option<f64>,
    /// Columns of the picture, 1 to 16384: usually one per pixel.
    pub columns: usize,
    /// Channels of the picture.
    pub channels: ChannelMask,
    /// What makes the picture stand still; `None` lets it roll.
    pub trigger: Option<TriggerSettings>,
    /// Units and offsets of the channels, if the visible samples are to be measured.
    pub measure: Option<[Scale; 8]>,
    /// The math channel.
    pub(crate) math: Option<MathSettings>,
    /// Spectra of the newest samples before the right edge.
    pub spectrum: Option<SpectrumSettings>,
    /// Densities of all triggers.
    pub(crate) persistence: Option<PersistenceSettings>,
}

/// Which stretch of the stream a [`Viewport`] shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Window {
    /// The newest samples, at the right edge.
    Latest,
    /// The stretch whose right edge lies at this absolute sample index, whatever has arrived since.
    Ending {
        /// Samples per channel since the stream began.
        at: f64,
    },
}

/// Spectra to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectrumSettings {
    /// Samples per transform, a power of two from 16 to 2^18; fewer while the stream has fewer.
    pub size: usize,
    /// Weighting of the samples.
    pub window: Weighting,
    /// Spectra whose power is averaged; 1 for none.
    pub averages: u32,
    /// Whether the highest level of each line is kept.
    pub is_peak_held: bool,
    /// The channel whose waterfall is wanted.
    pub(crate) waterfall: Option<usize>,
}

impl Default for SpectrumSettings {
    fn default() -> SpectrumSettings {
        SpectrumSettings {
            size: 8192,
            window: Weighting::Hann,
            averages: 1,
            is_peak_held: false,
            waterfall: None,
        }
    }
}

/// Which of up to eight channels are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelMask(u8);

impl ChannelMask {
    /// Every channel.
    pub const ALL: ChannelMask = ChannelMask(u8::MAX);
    pub(crate) const NONE: ChannelMask = ChannelMask(0);

    /// Whether `channel` (from 0) is shown.
    pub(crate) fn contains(self, channel: usize) -> bool {
        channel < 8 && self.0 & (1 << channel) != 0
    }

    /// The mask with `channel` (from 0) switched over; the same mask for a channel beyond 7.
    pub fn toggled(self, channel: usize) -> ChannelMask {
        if channel < 8 { ChannelMask(self.0 ^ (1 << channel)) } else { self }
    }
}

impl Viewport {
    /// The newest samples of all channels, over a span that the scope chooses.
    pub fn latest(columns: usize) -> Viewport {
        Viewport {
            window: Window::Latest,
            span: None,
            columns,
            channels: ChannelMask::ALL,
            trigger: None,
            measure: None,
            math: None,
            spectrum: None,
            persistence: None,
        }
    }

    /// The number of columns, within its limits.
    pub(crate) fn columns_in_range(&self) -> usize {
        self.columns.clamp(1, COLUMNS_MAX)
    }
}

/// Divisions of the time axis.
pub(crate) const DIVISIONS: f64 = 10.0;
const COLUMNS_MAX: usize = 16_384;
