//! Finds every event of a stream that meets a condition, across block borders and never across a gap.
//!
//! 64 samples at a time become two words of comparison bits ("above", "below"); the comparator with
//! hysteresis is then one addition, whose carries are its states (see `comparator.rs`). So the cost per sample
//! hardly depends on the signal, and no sample is skipped to keep up.

mod condition;
mod filter;

use crate::comparator::Comparator;
use crate::error::Result;
use crate::simd::{self, WORDS_MAX, Words};
use crate::value::Value;
pub use condition::{Condition, Passage, Polarity, Slope};
use condition::{Rule, Setup};
pub use filter::TriggerFilter;

/// One trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggerEvent<V: Value = i16> {
    /// The first sample that met the condition.
    pub index: u64,
    /// Direction of the crossing (never `Either`).
    pub slope: Slope,
    /// Samples of the pulse or runt that ended at `index`; 0 for other conditions.
    pub width_samples: u64,
    before: V,
    after: V,
    level: V,
}

impl<V: Value> TriggerEvent<V> {
    /// Distance from `index` back to the place where the straight line between the two samples crosses the level: 0.0
    /// to 1.0 samples.
    /// 0.0 for conditions without a crossing.
    pub fn fraction(&self) -> f64 {
        let (before, after) = (self.before.to_f64(), self.after.to_f64());
        let part = (after - self.level.to_f64()) / (after - before);
        // Equal samples and infinity have no line between them.
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Place of the crossing, as a sample index with a fraction.
    pub fn position(&self) -> f64 {
        self.index as f64 - self.fraction()
    }
}

/// Finds all events of one channel.
///
/// ```
/// use grebe_scope::{Condition, Slope, Trigger};
/// let condition = Condition::Edge { slope: Slope::Rising, level: 100, hysteresis: 10 };
/// let mut trigger = Trigger::new(condition, 0)?;
/// let mut found = Vec::new();
/// trigger.scan(0, &[0, 50, 150, 95, 120], |event| found.push(event));
/// trigger.scan(5, &[0, 100], |event| found.push(event));
/// let at: Vec<(u64, f64)> = found.iter().map(|event| (event.index, event.position())).collect();
/// assert_eq!(at, [(2, 1.5), (6, 6.0)]); // 95 is within the hysteresis
/// assert_eq!(trigger.found(), 2);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Trigger<V: Value = i16> {
    rule: Rule,
    level: V,
    /// Level that a crossing downwards of a two-level condition passes.
    level_falling: V,
    primary: Comparator<V>,
    /// Second pair of thresholds, for the conditions that need one.
    secondary: Option<Comparator<V>>,
    holdoff_samples: u64,
    /// Hold-off ends at this index.
    ready_from: u64,
    /// Start of the present pulse; or the last crossing, for dropout.
    since: Option<u64>,
    /// Whether the present pulse has reached the far level of a runt condition.
    reached: bool,
    /// Direction of the last crossing, for dropout.
    since_rising: bool,
    next: Option<u64>,
    last: V,
    found: u64,
    held_off: u64,
    /// The filter in front of the comparator.
    filter: Option<TriggerFilter<V>>,
}

impl<V: Value> Trigger<V> {
    /// Searches for `condition`. After an event, those within the next `holdoff_samples` are only counted.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) if `low` is not below `high`, a range of widths or a time is empty,
    /// or a level or hysteresis is not finite.
    pub fn new(condition: Condition<V>, holdoff_samples: u64) -> Result<Trigger<V>> {
        let Setup { rule, primary, secondary } = Setup::new(&condition)?;
        let (level, level_falling) = condition.levels();
        Ok(Trigger {
            rule,
            level,
            level_falling,
            primary,
            secondary,
            holdoff_samples,
            ready_from: 0,
            since: None,
            reached: false,
            since_rising: false,
            next: None,
            last: V::default(),
            found: 0,
            held_off: 0,
            filter: None,
        })
    }

    /// The same trigger after a filter; after a high-pass, levels count from the slow baseline of the signal. Costs
    /// one pass over the samples.
    pub fn with_filter(self, filter: TriggerFilter<V>) -> Trigger<V> {
        Trigger { filter: Some(filter), ..self }
    }

    /// Smallest and largest filtered sample since the last call; `None` without a filter, or without samples.
    pub fn take_passed_extremes(&mut self) -> Option<(V, V)> {
        self.filter.as_mut()?.take_extremes()
    }

    /// Searches the next block and calls `fire` with every event outside hold-off, in order.
    ///
    /// An index other than the expected one is a gap: the signal before it is forgotten, so no event is
    /// made of two samples that were not neighbours.
    pub fn scan(&mut self, first_sample_index: u64, samples: &[V], mut fire: impl FnMut(TriggerEvent<V>)) {
        match self.filter.take() {
            None => self.compare(first_sample_index, samples, &mut fire),
            Some(mut filter) => {
                filter.pass(first_sample_index, samples, |at, strip| self.compare(at, strip, &mut fire));
                self.filter = Some(filter);
            }
        }
    }

    fn compare(&mut self, first_sample_index: u64, samples: &[V], fire: &mut impl FnMut(TriggerEvent<V>)) {
        if samples.is_empty() {
            return;
        }
        if self.next != Some(first_sample_index) {
            self.forget();
        }
        let mut at = first_sample_index;
        // A rule that fires only on a state change skips the many words without one.
        let fires_on_change = matches!(self.rule, Rule::Rises | Rule::Falls | Rule::Pulse(..));
        let (mut primary, mut secondary) = ([Words::default(); WORDS_MAX], [Words::default(); WORDS_MAX]);
        for (number, strip) in samples.chunks(64 * WORDS_MAX).enumerate() {
            let words = self.primary.compare(strip, &mut primary);
            if let Some(comparator) = &self.secondary {
                comparator.compare(strip, &mut secondary);
            }
            for (place, (one, two)) in primary[..words].iter().zip(&secondary).enumerate() {
                // Prefetch the next strip while this one is searched.
                simd::prefetch(samples, 64 * (WORDS_MAX * (number + 1) + place));
                let (start, end) = (64 * place, strip.len().min(64 * (place + 1)));
                if !(fires_on_change && self.primary.rests(*one)) {
                    self.word(at, &strip[start..end], *one, *two, fire);
                }
                self.last = strip[end - 1];
                at += (end - start) as u64;
            }
        }
        self.next = Some(at);
    }

    /// Events that met the condition so far, also during hold-off.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Of these, events during the hold-off of an earlier one.
    pub fn held_off(&self) -> u64 {
        self.held_off
    }

    fn forget(&mut self) {
        self.primary.forget();
        if let Some(comparator) = &mut self.secondary {
            comparator.forget();
        }
        self.since = None;
        self.reached = false;
    }

    /// One word: up to 64 samples from index `at`.
    #[inline]
    fn word(&mut self, at: u64, piece: &[V], one: Words, two: Words, fire: &mut impl FnMut(TriggerEvent<V>)) {
        match &self.rule {
            Rule::Rises => {
                let rises = self.primary.step(one).rises;
                self.crossings(at, piece, rises, 0, fire);
            }
            Rule::Falls => {
                let falls = self.primary.step(one).falls;
                self.crossings(at, piece, 0, falls, fire);
            }
            Rule::Both => {
                let rises = self.primary.step(one).rises;
                let falls = self.secondary.as_mut().map_or(0, |c| c.step(two).falls);
                self.crossings(at, piece, rises, falls, fire);
            }
            Rule::Window(passage) => {
                let passage = *passage;
                // State "outside": set by one sample outside, reset by one well inside.
                let outside = one.above | one.below;
                let inside = two.above & two.below & !outside;
                let step = self.primary.step(Words { above: outside, below: inside });
                let bits = if passage == Passage::Enters { step.falls } else { step.rises };
                each_bit(bits, |bit| self.window_event(at, piece, bit, passage, fire));
            }
            Rule::Pulse(..) | Rule::Runt(_) | Rule::Dropout(_) => self.pulses(at, piece, one, two, fire),
        }
    }

    #[inline]
    fn crossings(
        &mut self,
        at: u64,
        piece: &[V],
        rises: u64,
        falls: u64,
        fire: &mut impl FnMut(TriggerEvent<V>),
    ) {
        let bits = rises | falls;
        let slope_of = |bit| if rises >> bit & 1 != 0 { Slope::Rising } else { Slope::Falling };
        if at + 64 <= self.ready_from {
            // All are in hold-off, so counting is enough.
            self.found += u64::from(bits.count_ones());
            self.held_off += u64::from(bits.count_ones());
            return;
        }
        if self.holdoff_samples == 0 {
            // None is in hold-off: the same without bookkeeping.
            self.found += u64::from(bits.count_ones());
            each_bit(bits, |bit| fire(self.event_at(at, piece, bit, slope_of(bit), self.level)));
            return;
        }
        each_bit(bits, |bit| {
            let event = self.event_at(at, piece, bit, slope_of(bit), self.level);
            self.emit(event, fire);
        });
    }

    fn window_event(
        &mut self,
        at: u64,
        piece: &[V],
        bit: usize,
        passage: Passage,
        fire: &mut impl FnMut(TriggerEvent<V>),
    ) {
        let before = if bit == 0 { self.last } else { piece[bit - 1] };
        let slope = if piece[bit] >= before { Slope::Rising } else { Slope::Falling };
        // Entering upwards passes the lower edge, leaving upwards the upper one.
        let lower_edge = (passage == Passage::Enters) == (slope == Slope::Rising);
        let level = if lower_edge { self.level_falling } else { self.level };
        let event = self.event_at(at, piece, bit, slope, level);
        self.emit(event, fire);
    }

    /// Conditions with a duration: pulses with a start and an end, and the time since a crossing.
    fn pulses(
        &mut self,
        at: u64,
        piece: &[V],
        one: Words,
        two: Words,
        fire: &mut impl FnMut(TriggerEvent<V>),
    ) {
        let step = self.primary.step(one);
        let end = at + piece.len() as u64;
        let mut done = 0;
        each_bit(step.rises | step.falls, |bit| {
            let index = at + bit as u64;
            let rising = step.rises >> bit & 1 != 0;
            let slope = if rising { Slope::Rising } else { Slope::Falling };
            match &self.rule {
                Rule::Dropout(timeout) => {
                    let timeout = *timeout;
                    self.time_out(at, piece, timeout, index, fire);
                    self.since = Some(index);
                    self.since_rising = rising;
                }
                Rule::Pulse(polarity, widths) => {
                    if rising == (*polarity == Polarity::Positive) {
                        self.since = Some(index);
                    } else if let Some(start) = self.since.take()
                        && widths.contains(&(index - start))
                    {
                        let event = self.event_at(at, piece, bit, slope, self.level);
                        self.emit(TriggerEvent { width_samples: index - start, ..event }, fire);
                    }
                }
                Rule::Runt(polarity) => {
                    let far = if *polarity == Polarity::Positive { two.above } else { two.below };
                    if rising == (*polarity == Polarity::Positive) {
                        self.since = Some(index);
                        self.reached = false;
                    } else if let Some(start) = self.since.take() {
                        let reached = self.reached || far & valid(bit) & !valid(done) != 0;
                        if !reached {
                            let event = self.event_at(at, piece, bit, slope, self.level);
                            self.emit(TriggerEvent { width_samples: index - start, ..event }, fire);
                        }
                    }
                    done = bit;
                }
                _ => {}
            }
        });
        match &self.rule {
            Rule::Dropout(timeout) => {
                let timeout = *timeout;
                self.time_out(at, piece, timeout, end, fire);
            }
            Rule::Runt(polarity) => {
                let far = if *polarity == Polarity::Positive { two.above } else { two.below };
                self.reached |= self.since.is_some() && far & !valid(done) != 0;
            }
            _ => {}
        }
    }

    /// Fires where `timeout` samples without a crossing have been seen before `until`.
    fn time_out(
        &mut self,
        at: u64,
        piece: &[V],
        timeout: u64,
        until: u64,
        fire: &mut impl FnMut(TriggerEvent<V>),
    ) {
        let Some(index) = self.since.and_then(|since| since.checked_add(timeout)) else { return };
        if index < until {
            self.since = None;
            // Due within this word, because earlier ones would have fired then.
            let sample = piece[(index - at) as usize];
            let slope = if self.since_rising { Slope::Rising } else { Slope::Falling };
            let event =
                TriggerEvent { index, slope, width_samples: 0, before: sample, after: sample, level: sample };
            self.emit(event, fire);
        }
    }

    fn event_at(&self, at: u64, piece: &[V], bit: usize, slope: Slope, level: V) -> TriggerEvent<V> {
        // A crossing has a neighbour, because every gap resets the comparator's state.
        let before = if bit == 0 { self.last } else { piece[bit - 1] };
        TriggerEvent { index: at + bit as u64, slope, width_samples: 0, before, after: piece[bit], level }
    }

    #[inline]
    fn emit(&mut self, event: TriggerEvent<V>, fire: &mut impl FnMut(TriggerEvent<V>)) {
        self.found += 1;
        if event.index < self.ready_from {
            self.held_off += 1;
            return;
        }
        self.ready_from = event.index.saturating_add(self.holdoff_samples);
        fire(event);
    }
}

/// The lowest `bits` bits, 0 to 64.
#[inline]
fn valid(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[inline]
fn each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests;
