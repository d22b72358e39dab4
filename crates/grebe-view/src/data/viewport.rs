//! What a face asks for.

use grebe_scope::{Scale, Window as Weighting};

use crate::data::math::MathSettings;
use crate::data::persistence::PersistenceSettings;
use crate::data::trigger::TriggerSettings;

/// The part of the stream that a face wants to see, and how wide it can show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Viewport {
    /// Which stretch of time.
    pub window: Window,
    /// How much of it: seconds, or samples where the stream does not know its rate. `None` leaves the choice to the
    /// scope, which picks what suits the rate.
    pub span: Option<f64>,
    /// Columns to answer, 1 to 16384: usually one a pixel.
    pub columns: usize,
    /// Channels to answer.
    pub channels: ChannelMask,
    /// What holds the newest samples in place; `None` lets them roll.
    pub trigger: Option<TriggerSettings>,
    /// Units and offsets of the channels, where what is visible is to be measured.
    pub measure: Option<[Scale; 8]>,
    /// A channel computed of others.
    pub math: Option<MathSettings>,
    /// Spectra of the newest samples before the right edge.
    pub spectrum: Option<SpectrumSettings>,
    /// All triggers upon each other.
    pub persistence: Option<PersistenceSettings>,
}

/// Which stretch of the stream a [`Viewport`] shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Window {
    /// The newest samples, at the right edge.
    Latest,
    /// The stretch whose right edge lies at this absolute sample index, whatever has arrived since.
    Ending {
        /// Samples a channel since the stream began.
        at: f64,
    },
}

/// Which spectra a face asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectrumSettings {
    /// Samples a transform, a power of two from 16 to 2^18. Fewer are taken while the stream has fewer.
    pub size: usize,
    /// Weighting of the samples.
    pub window: Weighting,
    /// Spectra that are averaged, their power; 1 for none.
    pub averages: u32,
    /// Whether the highest level of each line is kept.
    pub is_peak_held: bool,
    /// The channel whose waterfall is wanted.
    pub waterfall: Option<usize>,
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
    /// No channel.
    pub const NONE: ChannelMask = ChannelMask(0);

    /// Whether `channel` (from 0) is shown.
    pub fn contains(self, channel: usize) -> bool {
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

    /// The columns to answer, in range.
    pub(crate) fn columns_in_range(&self) -> usize {
        self.columns.clamp(1, COLUMNS_MAX)
    }
}

/// Divisions of the time axis.
pub(crate) const DIVISIONS: f64 = 10.0;
const COLUMNS_MAX: usize = 16_384;
