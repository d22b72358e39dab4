//! Finds events among the samples of a lane.

use anyhow::Result;
use grebe_scope::{Condition, Passage, Polarity, Slope, Trigger, Value};
use grebe_view::LaneId;

use super::burst_band::BurstBand;
use super::number::Number;
use super::wanted::Wanted;
use crate::cli::EventKind;

/// Event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    /// Index of the first sample.
    pub(crate) index: u64,
    /// Duration in samples, 0 for an instant.
    pub(crate) length_samples: u64,
    pub(crate) burst: Option<BurstBand>,
}

impl Hit {
    /// An event without duration.
    pub(crate) fn instant(index: u64) -> Self {
        Self::new(index, 0)
    }

    fn new(index: u64, length_samples: u64) -> Self {
        Self { index, length_samples, burst: None }
    }

    /// The lane of the event: a burst is one of the whole channel.
    pub(crate) fn lane(&self, searched: LaneId) -> LaneId {
        if self.burst.is_some() { LaneId::real(searched.channel) } else { searched }
    }
}

/// Detector of events.
pub(super) enum Detector<V: Value> {
    Moments(Trigger<V>),
    Level(Lasting, Box<Edges<V>>),
    Power(Lasting, Powers),
}

/// Entry beyond a level, and return.
pub(super) struct Edges<V: Value> {
    begins: Trigger<V>,
    ends: Trigger<V>,
    is_beyond: Box<dyn Fn(V) -> bool + Send>,
}

/// Mean squares per window.
pub(super) struct Powers {
    window_samples: u64,
    /// Threshold of the sum over a window.
    threshold: f64,
    is_above: bool,
    sum: f64,
    count: u64,
}

/// Lasting event.
pub(super) struct Lasting {
    since: Option<u64>,
    until: u64,
    least_samples: u64,
    most_samples: u64,
    holdoff_samples: u64,
    /// Latest begin of an event. Bursts come in the order of their ends.
    last: Option<u64>,
}

impl<V: Number> Detector<V> {
    pub(super) fn new(wanted: &Wanted) -> Result<Self> {
        let hysteresis = V::hysteresis(wanted.hysteresis);
        let Wanted { slope, level, low, high, .. } = *wanted;
        let falls = slope == Slope::Falling;
        let polarity = if falls { Polarity::Negative } else { Polarity::Positive };
        let of_level = if falls { V::down(level) } else { V::up(level) };
        let condition = match wanted.kind {
            EventKind::Pulse => Condition::PulseWidth {
                polarity,
                level: V::up(level),
                hysteresis,
                samples: wanted.least_samples..=wanted.most_samples,
            },
            EventKind::Runt => Condition::Runt { polarity, low: V::up(low), high: V::up(high) },
            EventKind::Window => {
                let passage = if falls { Passage::Enters } else { Passage::Leaves };
                Condition::Window { passage, low: V::up(low), high: V::down(high), hysteresis }
            }
            EventKind::Dropout => {
                Condition::Dropout { level: V::up(level), hysteresis, samples: wanted.least_samples }
            }
            EventKind::Level => return Self::level(wanted, of_level),
            EventKind::Power | EventKind::Silence => {
                let window = wanted.window_samples as f64;
                let powers = Powers {
                    window_samples: wanted.window_samples,
                    threshold: 10f64.powf(level / 10.0) * wanted.full_power * window,
                    is_above: wanted.kind == EventKind::Power,
                    sum: 0.0,
                    count: 0,
                };
                return Ok(Detector::Power(Lasting::new(wanted), powers));
            }
            EventKind::Edge | EventKind::Burst | EventKind::Gap => {
                Condition::Edge { slope, level: of_level, hysteresis }
            }
        };
        Ok(Detector::Moments(Trigger::new(condition, wanted.holdoff_samples)?))
    }

    fn level(wanted: &Wanted, level: V) -> Result<Self> {
        let at = level.to_f64();
        let edge = |slope, level, hysteresis| Trigger::new(Condition::Edge { slope, level, hysteresis }, 0);
        // It ends at the first sample beyond the hysteresis on the other side, mirroring its start.
        let (begins, ends) = if wanted.slope == Slope::Falling {
            let back = V::above(at + wanted.hysteresis);
            let width = V::hysteresis((back.to_f64() - V::above(at).to_f64()).max(0.0));
            (
                edge(Slope::Falling, level, V::hysteresis(wanted.hysteresis))?,
                edge(Slope::Rising, back, width)?,
            )
        } else {
            let back = V::below(at - wanted.hysteresis);
            let width = V::hysteresis((V::below(at).to_f64() - back.to_f64()).max(0.0));
            (
                edge(Slope::Rising, level, V::hysteresis(wanted.hysteresis))?,
                edge(Slope::Falling, back, width)?,
            )
        };
        let is_beyond: Box<dyn Fn(V) -> bool + Send> = if wanted.slope == Slope::Falling {
            Box::new(move |sample| sample <= level)
        } else {
            Box::new(move |sample| sample >= level)
        };
        Ok(Detector::Level(Lasting::new(wanted), Box::new(Edges { begins, ends, is_beyond })))
    }

    pub(super) fn scan(&mut self, first_index: u64, samples: &[V], is_next: bool, found: &mut Vec<Hit>) {
        match self {
            Detector::Moments(trigger) => {
                // A pulse is found at its end.
                trigger.scan(first_index, samples, |event| {
                    found.push(Hit::new(event.index - event.width_samples, event.width_samples));
                })
            }
            Detector::Level(lasting, edges) => {
                if !is_next && samples.first().is_some_and(|&first| (edges.is_beyond)(first)) {
                    lasting.begin(first_index);
                }
                let (mut begins, mut ends) = (Vec::new(), Vec::new());
                edges.begins.scan(first_index, samples, |event| begins.push(event.index));
                edges.ends.scan(first_index, samples, |event| ends.push(event.index));
                let mut begins = begins.into_iter().peekable();
                for end in ends {
                    while let Some(begin) = begins.next_if(|&begin| begin < end) {
                        lasting.begin(begin);
                    }
                    lasting.end(end, found);
                }
                begins.for_each(|begin| lasting.begin(begin));
                lasting.until = first_index + samples.len() as u64;
            }
            Detector::Power(lasting, powers) => powers.scan(first_index, samples, lasting, found),
        }
    }

    /// End of the samples.
    pub(super) fn end(&mut self, found: &mut Vec<Hit>) {
        match self {
            Detector::Moments(_) => {}
            Detector::Level(lasting, _) => lasting.end(lasting.until, found),
            Detector::Power(lasting, powers) => {
                // An incomplete last window does not count.
                (powers.sum, powers.count) = (0.0, 0);
                lasting.end(lasting.until, found);
            }
        }
    }
}

impl Powers {
    fn scan<V: Number>(
        &mut self,
        first_index: u64,
        samples: &[V],
        lasting: &mut Lasting,
        found: &mut Vec<Hit>,
    ) {
        let mut at = 0;
        while at < samples.len() {
            let count = (self.window_samples - self.count).min((samples.len() - at) as u64) as usize;
            self.sum += V::squares(&samples[at..at + count]);
            self.count += count as u64;
            at += count;
            if self.count == self.window_samples {
                let end = first_index + at as u64;
                if (self.sum >= self.threshold) == self.is_above {
                    lasting.begin(end - self.window_samples);
                    lasting.until = end;
                } else {
                    lasting.end(end - self.window_samples, found);
                }
                (self.sum, self.count) = (0.0, 0);
            }
        }
    }
}

impl Lasting {
    pub(super) fn new(wanted: &Wanted) -> Self {
        Self {
            since: None,
            until: 0,
            least_samples: wanted.least_samples,
            most_samples: wanted.most_samples,
            holdoff_samples: wanted.holdoff_samples,
            last: None,
        }
    }

    pub(super) fn begin(&mut self, index: u64) {
        self.since.get_or_insert(index);
    }

    pub(super) fn end(&mut self, index: u64, found: &mut Vec<Hit>) {
        let Some(since) = self.since.take() else { return };
        let length = index - since;
        let is_held_off = self.last.is_some_and(|last| since.abs_diff(last) < self.holdoff_samples);
        if (self.least_samples..=self.most_samples).contains(&length) && !is_held_off {
            self.last = self.last.max(Some(since));
            found.push(Hit::new(since, length));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_began_earlier_and_ends_later_is_kept() {
        let begins = |holdoff_samples| {
            let (last, most_samples) = (None, u64::MAX);
            let mut lasting =
                Lasting { since: None, until: 0, least_samples: 1, most_samples, holdoff_samples, last };
            let mut found = Vec::new();
            for event in [500..600, 100..700, 650..800] {
                lasting.begin(event.start);
                lasting.end(event.end, &mut found);
            }
            found.iter().map(|hit| hit.index).collect::<Vec<_>>()
        };
        assert_eq!(begins(0), [500, 100, 650]);
        assert_eq!(begins(200), [500, 100]);
        assert_eq!(begins(600), [500]);
    }
}
