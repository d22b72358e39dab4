//! The trigger's levels: explicit, or from the signal's recent extremes.

use grebe_scope::{Slope, TriggerFilter, min_max};

use super::TriggerSettings;
use crate::data::samples::Kind;
use crate::data::tracks::Track;

/// One level, or two that differ, and a hysteresis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Levels {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) hysteresis: f64,
}

/// The smallest and the largest sample after the filter.
pub(super) type Extremes<K> = (K, K);

/// Statistics of the signal after the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<K> {
    pub(super) extremes: Option<Extremes<K>>,
    /// Standard deviation of its noise.
    pub(super) noise: f64,
}

impl Levels {
    /// The explicit level, or the middle of the extremes.
    pub(super) fn of<K: Kind>(settings: &TriggerSettings, seen: &Seen<K>) -> Levels {
        let noise = seen.noise;
        // An infinite value has no middle.
        let seen = seen.extremes.map(|(min, max)| (min.to_f64(), max.to_f64()));
        let (min, max) = seen.filter(|(min, max)| (max - min).is_finite()).unwrap_or((0.0, 0.0));
        let height = max - min;
        // For integer samples, the least noise would cross a level between two of them.
        let whole = |value: f64| if K::MAY_BE_NAN { value } else { value.trunc() };
        let middle = settings.level.filter(|level| level.is_finite()).unwrap_or(whole((min + max) / 2.0));
        let within = |level: f64| K::from_f64(level).to_f64().clamp(-LEVEL_MAX, LEVEL_MAX);
        let apart =
            if settings.kind.has_two_levels() { whole(height / 4.0).max(K::step_at(middle)) } else { 0.0 };
        // Noise that returns over the level while the signal moves the other way must not trigger. But the hysteresis
        // must also leave a part of the signal beyond the level, or the trigger never re-arms.
        let beyond = match settings.slope {
            Slope::Rising => middle - min,
            Slope::Falling => max - middle,
            Slope::Either => (middle - min).min(max - middle),
        };
        let usual = height / DIVISIONS_VERTICAL * HYSTERESIS_DIVISIONS;
        let noisy = (noise * HYSTERESIS_DEVIATIONS).min(beyond / 2.0);
        let set = settings.hysteresis.filter(|set| set.is_finite() && *set >= 0.0);
        let hysteresis = set.unwrap_or_else(|| usual.max(noisy));
        // Bench scopes widen it the same way. A quarter of the part beyond the level stays, so that the trigger re-arms.
        let wide = (height / DIVISIONS_VERTICAL * NOISE_REJECT_DIVISIONS).min(beyond * 0.75);
        let hysteresis = if settings.is_noise_reject { hysteresis.max(wide) } else { hysteresis };
        Levels {
            low: within(middle - apart),
            high: within(middle + apart),
            hysteresis: whole(hysteresis).min(LEVEL_MAX),
        }
    }

    /// Whether these levels may stay if `now` would be exact.
    pub(super) fn is_near(&self, now: &Levels) -> bool {
        let reach = now.hysteresis * 2.0;
        let near = |a: f64, b: f64| (a - b).abs() <= reach;
        let alike = |a: f64, b: f64| a <= b * 2.0 && b <= a * 2.0;
        near(self.low, now.low) && near(self.high, now.high) && alike(now.hysteresis, self.hysteresis)
    }
}

/// Extremes of a lane in its newest `look_back` samples.
pub(super) fn seen<K: Kind>(track: Track<'_, K>, look_back: u64) -> Option<Extremes<K>> {
    let end = track.pyramid.next_index();
    let stats = track.pyramid.range_stats(track.place, end.saturating_sub(look_back)..end).stats;
    (stats.min <= stats.max).then_some((stats.min, stats.max))
}

/// Standard deviation of the noise in a lane's newest samples, from the median of their fourth differences: white
/// noise deviates sqrt(70) times as much there, a signal of at least twenty samples per period hardly at all, and the
/// median ignores edges.
pub(super) fn noise<K: Kind>(track: Track<'_, K>) -> f64 {
    let end = track.pyramid.next_index();
    let mut differences = Vec::with_capacity(NOISE_SAMPLES as usize);
    track.samples(end.saturating_sub(NOISE_SAMPLES)..end, |_, samples| {
        differences.extend(samples.windows(5).map(|five| {
            let [a, b, c, d, e] = std::array::from_fn(|at| five[at].to_f64());
            (a + e - 4.0 * (b + d) + 6.0 * c).abs()
        }));
    });
    differences.retain(|difference| difference.is_finite());
    let middle = differences.len() / 2;
    if differences.is_empty() {
        return 0.0;
    }
    // Half of all normal values are within 0.6745 standard deviations.
    *differences.select_nth_unstable_by(middle, f64::total_cmp).1 / 0.6745 / 70f64.sqrt()
}

/// Extremes after the filter, as far as the history still holds the samples.
pub(super) fn passed<K: Kind>(
    track: Track<'_, K>,
    look_back: u64,
    mut filter: TriggerFilter<K>,
) -> Option<Extremes<K>> {
    let end = track.pyramid.next_index();
    let start = end.saturating_sub(look_back).max(track.pyramid.oldest().unwrap_or(0));
    // Until then, the filter settles from the first sample.
    let settled = start + (end - start) / 4;
    let mut found = None;
    track.samples(start..end, |first, samples| {
        filter.pass(first, samples, |at, strip| {
            let unsettled = settled.saturating_sub(at).min(strip.len() as u64) as usize;
            if unsettled < strip.len() {
                let (min, max) = min_max(&strip[unsettled..]);
                found = union(found, Some((min, max)).filter(|_| min <= max));
            }
        });
    });
    found
}

/// Extremes after the filter over the last one to two look-backs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Swing<K> {
    now: Option<Extremes<K>>,
    before: Option<Extremes<K>>,
    /// Sample index at which `now` starts.
    since: u64,
}

impl<K: Kind> Swing<K> {
    pub(super) fn new(seen: Option<Extremes<K>>, at: u64) -> Swing<K> {
        Swing { now: None, before: seen, since: at }
    }

    /// Takes the extremes up to `at`, and returns the recent ones.
    pub(super) fn look(&mut self, seen: Option<Extremes<K>>, at: u64, look_back: u64) -> Option<Extremes<K>> {
        self.now = union(self.now, seen);
        let lately = union(self.now, self.before);
        if at.saturating_sub(self.since) >= look_back {
            *self = Swing { now: None, before: self.now, since: at };
        }
        lately
    }
}

fn union<K: Kind>(a: Option<Extremes<K>>, b: Option<Extremes<K>>) -> Option<Extremes<K>> {
    match (a, b) {
        (Some(a), Some(b)) => Some((if b.0 < a.0 { b.0 } else { a.0 }, if b.1 > a.1 { b.1 } else { a.1 })),
        (a, b) => a.or(b),
    }
}

/// Divisions of a lane's vertical scale.
const DIVISIONS_VERTICAL: f64 = 8.0;
/// As on instruments.
const HYSTERESIS_DIVISIONS: f64 = 0.3;
const NOISE_REJECT_DIVISIONS: f64 = 1.0;
const HYSTERESIS_DEVIATIONS: f64 = 10.0;
/// Number of newest samples for the noise estimate.
const NOISE_SAMPLES: u64 = 4096;
/// Sums of two levels stay finite in `f32`.
const LEVEL_MAX: f64 = 1e38;
