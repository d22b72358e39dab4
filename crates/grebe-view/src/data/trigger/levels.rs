//! The trigger's levels: as set, or from the signal's recent extremes.

use grebe_scope::{LfReject, Pyramid, min_max};

use super::TriggerSettings;

/// One level, or two that differ, and a hysteresis of a sixteenth of the signal's height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) low: i16,
    pub(super) high: i16,
    pub(super) hysteresis: u16,
}

/// The smallest and the largest sample that a trigger sees.
pub(super) type Extremes = (i16, i16);

impl Levels {
    /// As set, or in the middle of the extremes.
    pub(super) fn of(settings: &TriggerSettings, seen: Option<Extremes>) -> Levels {
        let (min, max) = seen.map_or((0, 0), |(min, max)| (i32::from(min), i32::from(max)));
        let height = max - min;
        let middle = settings.level.map_or((min + max) / 2, i32::from);
        let within = |level: i32| level.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let apart = if settings.kind.has_two_levels() { (height / 4).max(1) } else { 0 };
        let (low, high) = (within(middle - apart), within(middle + apart));
        Levels { low, high, hysteresis: (height / 16) as u16 }
    }

    /// Whether these levels may stay where `now` would be exact.
    pub(super) fn is_near(&self, now: &Levels) -> bool {
        let reach = u32::from(now.hysteresis) * 2;
        let near = |a: i16, b: i16| i32::from(a).abs_diff(i32::from(b)) <= reach;
        near(self.low, now.low)
            && near(self.high, now.high)
            && now.hysteresis <= self.hysteresis.saturating_mul(3)
    }
}

/// Extremes of a channel in its newest `look_back` samples.
pub(super) fn seen(pyramid: &Pyramid, channel: usize, look_back: u64) -> Option<Extremes> {
    let end = pyramid.next_index();
    let stats = pyramid.range_stats(channel, end.saturating_sub(look_back)..end).stats;
    (stats.min <= stats.max).then_some((stats.min, stats.max))
}

/// The same after LF reject, as far as the history still holds each sample.
pub(super) fn passed(
    pyramid: &Pyramid,
    channel: usize,
    look_back: u64,
    mut lf_reject: LfReject,
) -> Option<Extremes> {
    let end = pyramid.next_index();
    let start = end.saturating_sub(look_back).max(pyramid.oldest().unwrap_or(0));
    // Until then the filter settles from wherever the signal was at the first sample.
    let settled = start + (end - start) / 4;
    let mut found = None;
    pyramid.samples(channel, start..end, |first, samples| {
        lf_reject.pass(first, samples, |at, strip| {
            let unsettled = settled.saturating_sub(at).min(strip.len() as u64) as usize;
            if unsettled < strip.len() {
                found = union(found, Some(min_max(&strip[unsettled..])));
            }
        });
    });
    found
}

/// Extremes after LF reject over the last one to two look-backs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Swing {
    now: Option<Extremes>,
    before: Option<Extremes>,
    /// Sample index at which `now` begins.
    since: u64,
}

impl Swing {
    pub(super) fn new(seen: Option<Extremes>, at: u64) -> Swing {
        Swing { now: None, before: seen, since: at }
    }

    /// Takes the extremes seen up to `at`, and returns the recent ones.
    pub(super) fn look(&mut self, seen: Option<Extremes>, at: u64, look_back: u64) -> Option<Extremes> {
        self.now = union(self.now, seen);
        let lately = union(self.now, self.before);
        if at.saturating_sub(self.since) >= look_back {
            *self = Swing { now: None, before: self.now, since: at };
        }
        lately
    }
}

fn union(a: Option<Extremes>, b: Option<Extremes>) -> Option<Extremes> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}
