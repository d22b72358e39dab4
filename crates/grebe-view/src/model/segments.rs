//! The last triggers, to be looked at again: each is a place in the history, pinned or not.

use crate::data::picture::Picture;

/// The triggers that a person pinned.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pub(crate) list: Vec<Pin>,
    /// Pins made so far, for their labels.
    made: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pin {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) at: f64,
    /// `None` where newer triggers will push it out of the list.
    pub(crate) label: Option<String>,
    pub(crate) is_shown: bool,
    /// Whether the history still reaches back to it.
    pub(crate) is_there: bool,
}

impl Pins {
    /// The last triggers and the pinned ones, the newest first; the picture shows the one at `shown`.
    pub(crate) fn segments(&self, picture: &Picture, shown: Option<f64>) -> Vec<Segment> {
        let segment = |at: f64, label: Option<String>| Segment {
            at,
            label,
            is_shown: shown == Some(at),
            is_there: at >= picture.oldest_index as f64,
        };
        let recent = picture.triggers.iter().filter(|at| self.list.iter().all(|pin| pin.at != **at));
        let mut all: Vec<Segment> = recent.map(|&at| segment(at, None)).collect();
        all.extend(self.list.iter().map(|pin| segment(pin.at, Some(pin.label.clone()))));
        all.sort_by(|a, b| b.at.total_cmp(&a.at));
        all
    }

    /// Pins the trigger at a sample index, or lets it go.
    pub(crate) fn toggle(&mut self, at: f64) {
        match self.list.iter().position(|pin| pin.at == at) {
            Some(place) => {
                self.list.remove(place);
            }
            None if self.list.len() < PINS_MAX => {
                self.made += 1;
                self.list.push(Pin { at, label: format!("pin {}", self.made) });
            }
            None => {}
        }
    }
}

const PINS_MAX: usize = 64;
