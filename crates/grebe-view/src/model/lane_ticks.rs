//! The ticks of a lane, and the text in its corner.

use grebe_scope::{Engineering, Ticks};

use crate::data::lane::LaneId;
use crate::model::channel::ChannelSetup;
use crate::model::vertical::{DIVISIONS_VERTICAL, ValueRange};

/// Grid lines, and which of them have labels.
pub(crate) struct LaneTicks {
    pub(crate) lines: Ticks,
    pub(crate) labels: Ticks,
}

impl LaneTicks {
    /// For a lane of `height` points: a line per division if the scale is fixed, so that divisions can be counted,
    /// else round steps.
    pub(crate) fn of(height: f32, range: ValueRange, setup: &ChannelSetup) -> LaneTicks {
        let (bottom, top) = (range.bottom, range.top);
        let division_height = height / DIVISIONS_VERTICAL as f32;
        match setup.vertical {
            Some(vertical) if division_height >= DIVISION_HEIGHT_MIN => {
                let ticks = |every: f64| Ticks::with_step(bottom, top, vertical.per_division * every);
                let every = [1.0_f32, 2.0].into_iter().find(|every| division_height * every >= LABEL_HEIGHT);
                LaneTicks { lines: ticks(1.0), labels: ticks(every.map_or(4.0, f64::from)) }
            }
            _ => {
                let ticks = Ticks::new(bottom, top, (height / LABEL_HEIGHT).clamp(3.0, 10.0) as u32);
                LaneTicks { lines: ticks, labels: ticks }
            }
        }
    }
}

/// The name of a lane and its scale. `division` is the distance of its lines if the scale is automatic.
pub(crate) fn chip_words(setup: &ChannelSetup, lane: LaneId, division: f64) -> String {
    let division = setup.vertical.map_or(division, |vertical| vertical.per_division);
    let (ac, inverted) = (if setup.is_ac { " AC" } else { "" }, if setup.is_inverted { " inv" } else { "" });
    format!("{}{ac}{inverted}  {}/div", setup.label(lane), Engineering::new(division, &setup.unit))
}

/// Smaller divisions, in points, would look like a grey area.
const DIVISION_HEIGHT_MIN: f32 = 8.0;
/// Height of a label with its margin.
const LABEL_HEIGHT: f32 = 24.0;
