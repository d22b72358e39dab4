//! What the numbers of a channel mean, and how its trace looks.

use grebe_scope::raster::{Color, Theme};

use super::vertical::VerticalScale;
use crate::data::math::MATH_CHANNEL;

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
