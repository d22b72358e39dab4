//! Windowed filters: the least or greatest value of a sliding window, in constant memory.

/// The least value of the last one to two spans: two buckets that take turns.
#[derive(Debug, Clone)]
pub(crate) struct RecentMin<T> {
    span_us: u64,
    since_us: u64,
    before: Option<T>,
    now: Option<T>,
}

impl<T: PartialOrd + Copy> RecentMin<T> {
    pub(crate) fn new(span_us: u64) -> Self {
        Self { span_us, since_us: 0, before: None, now: None }
    }

    pub(crate) fn add(&mut self, now_us: u64, value: T) {
        if now_us >= self.since_us + self.span_us {
            self.before = self.now.take();
            self.since_us = now_us;
        }
        if self.now.is_none_or(|least| value < least) {
            self.now = Some(value);
        }
    }

    pub(crate) fn least(&self) -> Option<T> {
        match (self.before, self.now) {
            (Some(before), Some(now)) => Some(if now < before { now } else { before }),
            (before, now) => before.or(now),
        }
    }
}

/// The greatest value of the last `N` rounds.
#[derive(Debug, Clone)]
pub(crate) struct RoundMax<const N: usize> {
    rounds: [f64; N],
    at: usize,
}

impl<const N: usize> RoundMax<N> {
    pub(crate) fn new() -> Self {
        Self { rounds: [0.0; N], at: 0 }
    }

    pub(crate) fn add(&mut self, value: f64) {
        self.rounds[self.at] = self.rounds[self.at].max(value);
    }

    pub(crate) fn next_round(&mut self) {
        self.at = (self.at + 1) % N;
        self.rounds[self.at] = 0.0;
    }

    /// Forgets all but this.
    pub(crate) fn reset(&mut self, value: f64) {
        self.rounds = [0.0; N];
        self.rounds[self.at] = value;
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_forgotten_after_two_spans_at_most() {
        let mut least = RecentMin::new(10);
        least.add(0, 3);
        least.add(5, 7);
        assert_eq!(least.least(), Some(3));
        least.add(12, 8);
        assert_eq!(least.least(), Some(3));
        least.add(23, 9);
        assert_eq!(least.least(), Some(8));
    }

    #[test]
    fn the_greatest_is_forgotten_after_its_rounds() {
        let mut greatest = RoundMax::<3>::new();
        greatest.add(5.0);
        greatest.next_round();
        greatest.add(2.0);
        assert_eq!(greatest.greatest(), 5.0);
        greatest.next_round();
        greatest.next_round();
        assert_eq!(greatest.greatest(), 2.0);
        greatest.reset(1.0);
        assert_eq!(greatest.greatest(), 1.0);
    }
}
