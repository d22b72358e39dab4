//! Meaning of a channel's numbers, and the look of its trace in either theme.

use grebe_scope::Scale;
use grebe_scope::raster::{Color, Theme};

use super::vertical::VerticalScale;
use crate::data::lane::{LaneId, Part};

/// Meaning of a channel's numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelSetup {
    /// Shown in the lane's corner; empty: the channel's number alone.
    pub name: String,
    /// Unit without prefix, as `V`; empty for raw counts.
    pub unit: String,
    /// Units per raw count.
    pub scale: f64,
    /// Value of the raw count 0, in units.
    pub offset: f64,
    /// Whether the signal is inverted.
    pub is_inverted: bool,
    /// AC coupling: whether the mean of the visible samples is subtracted.
    pub is_ac: bool,
    /// Colour of the trace; `None` for the theme's.
    pub color: Option<Color>,
    /// The vertical scale; `None`: it follows the signal.
    pub vertical: Option<VerticalScale>,
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
    /// The text in the lane's corner.
    pub(crate) fn label(&self, lane: LaneId) -> String {
        let channel = lane.channel + 1;
        let name = match (lane.is_math(), self.name.is_empty()) {
            (true, _) => format!("M {}", self.name),
            (false, true) => format!("CH{channel}"),
            (false, false) => format!("{channel} {}", self.name),
        };
        let part = if lane.is_math() { "" } else { lane.part.symbol() };
        format!("{} {part}", name.trim_end()).trim_end().to_owned()
    }

    /// The same with scale and offset alone, which include inversion and AC coupling. `mean` is that of the visible
    /// samples, in raw counts.
    pub(crate) fn resolved(&self, mean: f64) -> ChannelSetup {
        let Scale { factor, offset } = self.dc_scale();
        let offset = if self.is_ac { -mean * factor } else { offset };
        ChannelSetup { scale: factor, offset, ..self.clone() }
    }

    /// Units per count, and the value of count 0, without AC coupling, because its mean differs from picture to picture.
    pub(crate) fn dc_scale(&self) -> Scale {
        let sign = if self.is_inverted { -1.0 } else { 1.0 };
        Scale { factor: sign * self.scale, offset: sign * self.offset }
    }

    pub(crate) fn trace_color(&self, lane: LaneId, theme: &Theme) -> Color {
        self.color.unwrap_or(theme.trace(hue(lane)))
    }

    /// The value of a raw count, in units.
    pub(crate) fn value(&self, count: f64) -> f64 {
        count * self.scale + self.offset
    }
}

/// The number of a lane's colour, one of eight. The math lane has the last: an eighth channel beside it is rare.
pub(crate) fn hue(lane: LaneId) -> usize {
    let part = Part::COMPLEX.into_iter().position(|part| part == lane.part);
    match (lane.part, part) {
        (Part::Math, _) => HUES - 1,
        // I and Q of the first channels get different colours.
        (_, Some(part)) => (lane.channel * 2 + part) % HUES,
        (_, None) => lane.channel % HUES,
    }
}

const HUES: usize = 8;

/// One of the two themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeChoice {
    /// For dark surroundings.
    #[default]
    Dark,
    /// For bright surroundings and for print.
    Light,
}

impl ThemeChoice {
    pub(crate) fn colors(self) -> Theme {
        match self {
            ThemeChoice::Dark => Theme::dark(),
            ThemeChoice::Light => Theme::light(),
        }
    }

    pub(crate) fn other(self) -> ThemeChoice {
        match self {
            ThemeChoice::Dark => ThemeChoice::Light,
            ThemeChoice::Light => ThemeChoice::Dark,
        }
    }
}
