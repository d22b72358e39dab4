//! The search form: type of event, lane, level, and time range. It becomes the arguments of a search.

use std::fmt::Write;

use grebe_scope::Slope;

use crate::data::lane::LaneId;

/// The fields of a search. Levels are in the unit of the lane (of power in decibels), times in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FindForm {
    /// Index of its kind in [`KINDS`].
    pub(super) kind: usize,
    /// `None`: all lanes.
    pub(super) lane: Option<LaneId>,
    pub(super) slope: Option<Slope>,
    pub(crate) level: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(super) hysteresis: f64,
    pub(crate) longer_s: Option<f64>,
    pub(crate) shorter_s: Option<f64>,
    pub(super) holdoff_s: f64,
    /// Seconds from the start of the stream; `None`: from its start or to its end.
    pub(crate) from_s: Option<f64>,
    pub(crate) to_s: Option<f64>,
}

/// The fields of a kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FindKind {
    pub(crate) name: &'static str,
    pub(crate) has_level: bool,
    pub(crate) has_range: bool,
    has_hysteresis: bool,
    pub(crate) is_timed: bool,
    pub(crate) has_slope: bool,
}

pub(crate) const KINDS: [FindKind; 10] = {
    let none = FindKind {
        name: "",
        has_level: false,
        has_range: false,
        has_hysteresis: false,
        is_timed: false,
        has_slope: false,
    };
    let level = FindKind { has_level: true, has_slope: true, has_hysteresis: true, ..none };
    let range = FindKind { has_range: true, has_slope: true, ..none };
    [
        FindKind { name: "edge", ..level },
        FindKind { name: "pulse", is_timed: true, ..level },
        FindKind { name: "runt", ..range },
        FindKind { name: "window", has_hysteresis: true, ..range },
        FindKind { name: "dropout", is_timed: true, has_slope: false, ..level },
        FindKind { name: "level", is_timed: true, ..level },
        FindKind { name: "power", has_level: true, is_timed: true, ..none },
        FindKind { name: "silence", has_level: true, is_timed: true, ..none },
        FindKind { name: "burst", is_timed: true, ..none },
        FindKind { name: "gap", ..none },
    ]
};

impl FindForm {
    pub(crate) fn kind(&self) -> FindKind {
        KINDS[self.kind.min(KINDS.len() - 1)]
    }

    /// The arguments of `grebe find --trigger`.
    pub(super) fn words(&self) -> String {
        let kind = self.kind();
        let mut words = kind.name.to_owned();
        let mut add = |name: &str, value: String| {
            let _ = write!(words, " --{name} {value}");
        };
        let time = |seconds: f64| format!("{}us", rounded(seconds * 1e6));
        self.lane.into_iter().for_each(|lane| add("channels", lane.to_string()));
        match self.slope.filter(|_| kind.has_slope) {
            Some(Slope::Falling) => add("slope", "falling".into()),
            Some(Slope::Either) => add("slope", "either".into()),
            Some(Slope::Rising) | None => {}
        }
        if kind.has_range {
            add("low", rounded(self.low));
            add("high", rounded(self.high));
        }
        if kind.has_level {
            add("level", rounded(self.level));
        }
        if kind.has_hysteresis && self.hysteresis > 0.0 {
            add("hysteresis", rounded(self.hysteresis));
        }
        if kind.is_timed {
            self.longer_s.into_iter().for_each(|longer| add("longer", time(longer)));
            self.shorter_s.into_iter().for_each(|shorter| add("shorter", time(shorter)));
        }
        if self.holdoff_s > 0.0 {
            add("holdoff", time(self.holdoff_s));
        }
        // To a nanosecond, at any distance.
        let place = |seconds: f64| format!("{:.9}s", seconds.max(0.0));
        self.from_s.into_iter().for_each(|from| add("from", place(from)));
        self.to_s.into_iter().for_each(|to| add("to", place(to)));
        words
    }
}

/// Five digits, as a person would type.
pub(super) fn rounded(value: f64) -> String {
    let short: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    format!("{short}")
}
