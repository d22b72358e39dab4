//! The last triggers, to be looked at again: each a place in the history, kept or not.

use crate::face::Face;

/// A trigger that was kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pin {
    /// Absolute sample index.
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) at: f64,
    /// `None` where it will make room for newer ones.
    pub(crate) label: Option<String>,
    /// Whether the picture shows it.
    pub(crate) is_shown: bool,
    /// Whether the history still reaches back to it.
    pub(crate) is_there: bool,
}

impl Face {
    /// The last triggers and the pinned ones, the newest first.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let shown = self.shown_segment();
        let pins = &self.controls.pins;
        let recent = self.picture.triggers.iter().filter(|at| pins.iter().all(|pin| pin.at != **at));
        let of = |at: f64, label: Option<String>| Segment {
            at,
            label,
            is_shown: shown == Some(at),
            is_there: at >= self.picture.oldest_index as f64,
        };
        let mut all: Vec<Segment> = recent.map(|&at| of(at, None)).collect();
        all.extend(pins.iter().map(|pin| of(pin.at, Some(pin.label.clone()))));
        all.sort_by(|a, b| b.at.total_cmp(&a.at));
        all
    }

    /// Holds the picture at a trigger.
    pub(crate) fn show_segment(&mut self, at: f64) {
        self.controls.hold_trigger(&self.picture, at);
    }

    /// The segment `steps` later than the one that is shown.
    pub(super) fn step_segment(&mut self, steps: i32) {
        let mut all: Vec<f64> = self.segments().iter().map(|segment| segment.at).collect();
        all.reverse();
        let Some(last) = all.len().checked_sub(1) else { return };
        let here = self.shown_segment().unwrap_or(f64::INFINITY);
        let place = all.partition_point(|&at| at < here) as i64;
        self.show_segment(all[(place + i64::from(steps)).clamp(0, last as i64) as usize]);
    }

    /// Keeps the trigger that is shown, or lets it go.
    pub(super) fn pin_segment(&mut self) {
        let Some(at) = self.shown_segment() else { return };
        let pins = &mut self.controls.pins;
        match pins.iter().position(|pin| pin.at == at) {
            Some(place) => {
                pins.remove(place);
            }
            None if pins.len() < PINS_MAX => {
                let label = format!("pin {}", self.controls.pin_number);
                self.controls.pin_number += 1;
                self.controls.pins.push(Pin { at, label });
            }
            None => {}
        }
    }

    fn shown_segment(&self) -> Option<f64> {
        self.controls.held_trigger().or(self.picture.trigger.and_then(|trigger| trigger.at))
    }
}

const PINS_MAX: usize = 64;
