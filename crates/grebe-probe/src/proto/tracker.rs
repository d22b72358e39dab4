//! Follows a train where it arrives.

use crate::proto::estimate::mean;
use crate::proto::summary::{RUN_CLASSES, Summary};
use crate::proto::train::Train;

/// Follows one train at its receiver. It allocates once, when it is made.
#[derive(Debug)]
pub(crate) struct Tracker {
    train: Train,
    seen: Vec<u64>,
    received: u32,
    duplicates: u32,
    reordered: u32,
    reorder_extent: u32,
    /// One above the highest sequence number that arrived.
    next: u32,
    first: Option<Stamp>,
    last: Stamp,
    bins: [u32; BINS],
    /// Sequence number and delay of the first two datagrams of each `stride`.
    delays: Vec<(u32, i64)>,
    stride: u32,
}

impl Tracker {
    /// A tracker for this train.
    pub(crate) fn new(train: Train) -> Self {
        Self {
            seen: vec![0; train.count.div_ceil(64) as usize],
            train,
            received: 0,
            duplicates: 0,
            reordered: 0,
            reorder_extent: 0,
            next: 0,
            first: None,
            last: Stamp::default(),
            bins: [0; BINS],
            delays: Vec::with_capacity(DELAYS_MAX),
            stride: train.count.div_ceil(DELAYS_MAX as u32 / 2).max(2),
        }
    }

    /// The train it follows.
    pub(crate) fn train(&self) -> &Train {
        &self.train
    }

    /// Whether the last datagram is here.
    pub(crate) fn saw_last(&self) -> bool {
        self.next == self.train.count
    }

    /// Takes in a datagram of the train: its sequence number, the sender's stamp and the time of arrival, each by its own clock.
    pub(crate) fn arrived(&mut self, seq: u32, sent_ns: u64, arrived_ns: u64) {
        if seq >= self.train.count {
            return;
        }
        let (word, bit) = ((seq / 64) as usize, 1_u64 << (seq % 64));
        if self.seen[word] & bit != 0 {
            self.duplicates = self.duplicates.saturating_add(1);
            return;
        }
        self.seen[word] |= bit;
        self.received += 1;
        let delay = (arrived_ns as i64).wrapping_sub(sent_ns as i64);
        let stamp = Stamp { seq, sent_ns, arrived_ns };
        let first = *self.first.get_or_insert(stamp);
        if seq < self.next {
            self.reordered += 1;
            self.reorder_extent = self.reorder_extent.max(self.next - 1 - seq);
        } else {
            self.next = seq + 1;
        }
        if arrived_ns >= self.last.arrived_ns {
            self.last = stamp;
        }
        let bin = arrived_ns.saturating_sub(first.arrived_ns) / self.bin_ns();
        if let Some(bin) = self.bins.get_mut(bin as usize) {
            *bin += 1;
        }
        // Neighbours are kept in pairs: the difference of their delays is jitter.
        if seq % self.stride < 2 && self.delays.len() < DELAYS_MAX {
            self.delays.push((seq, delay));
        }
    }

    /// What arrived so far. `kernel_drops` is what the receiver's kernel dropped since the train began.
    pub(crate) fn summary(&self, kernel_drops: Option<u64>) -> Summary {
        let mut summary = Summary {
            received: self.received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            reorder_extent: self.reorder_extent,
            lost: self.train.count - self.received,
            kernel_drops,
            ..Summary::default()
        };
        self.count_runs(&mut summary);
        self.sum_delays(&mut summary);
        self.sum_jitter(&mut summary);
        self.sum_rates(&mut summary);
        summary
    }

    fn count_runs(&self, summary: &mut Summary) {
        let mut run = 0_u32;
        for seq in 0..=self.train.count {
            let is_lost = seq < self.train.count && self.seen[(seq / 64) as usize] & (1 << (seq % 64)) == 0;
            if is_lost {
                run += 1;
            } else if run > 0 {
                summary.runs += 1;
                summary.longest_run = summary.longest_run.max(run);
                summary.run_squares += u64::from(run) * u64::from(run);
                let class = (u32::BITS - (run - 1).leading_zeros()).min(RUN_CLASSES as u32 - 1);
                summary.run_counts[class as usize] += 1;
                run = 0;
            }
        }
    }

    fn sum_delays(&self, summary: &mut Summary) {
        let mut sorted: Vec<i64> = self.delays.iter().map(|&(_, delay)| delay).collect();
        sorted.sort_unstable();
        let Some((&min, &max)) = sorted.first().zip(sorted.last()) else { return };
        let at = |q: f64| sorted.get((q * sorted.len() as f64) as usize).copied().unwrap_or(max);
        summary.delay_min_ns = min;
        summary.delay_above_min_ns = [0.5, 0.95, 0.99].map(|q| at(q).saturating_sub(min));
        let mut late: Vec<i64> = self
            .delays
            .iter()
            .filter(|&&(seq, _)| seq >= self.train.count / 2)
            .map(|&(_, delay)| delay)
            .collect();
        late.sort_unstable();
        summary.late_low_ns = late.get(late.len() / 50).map_or(0, |low| low.saturating_sub(min));
        let quarter = self.train.count / 4;
        let early = middle(self.delays.iter().filter(|&&(seq, _)| seq < quarter));
        let late = middle(self.delays.iter().filter(|&&(seq, _)| seq >= self.train.count - quarter));
        if let Some(((early, early_error), (late, late_error))) = early.zip(late) {
            summary.rise_ns = late.saturating_sub(early);
            summary.rise_error_ns = early_error.hypot(late_error).min(i64::MAX as f64 / 4.0) as i64;
        }
    }

    fn sum_jitter(&self, summary: &mut Summary) {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let differences: Vec<f64> = delays
            .windows(2)
            .filter(|pair| pair[0].0 + 1 == pair[1].0)
            .map(|pair| pair[1].1.saturating_sub(pair[0].1).unsigned_abs() as f64)
            .collect();
        // Neighbouring differences share a datagram: only their means over stretches are independent.
        let stretch = differences.len().div_ceil(STRETCHES).max(1);
        let means: Vec<f64> = differences
            .chunks_exact(stretch)
            .map(|chunk| chunk.iter().sum::<f64>() / stretch as f64)
            .collect();
        let jitter = mean(&means);
        (summary.jitter_ns, summary.jitter_error_ns) = (jitter.value, jitter.high - jitter.value);
    }

    fn sum_rates(&self, summary: &mut Summary) {
        let Some(first) = self.first else { return };
        let span_ns = self.last.arrived_ns.saturating_sub(first.arrived_ns);
        let steps = f64::from(self.last.seq.abs_diff(first.seq));
        if span_ns == 0 || steps == 0.0 {
            return;
        }
        summary.sent_interval_ns = (self.last.sent_ns as f64 - first.sent_ns as f64).abs() / steps;
        summary.delivered_pps = f64::from(self.received - 1) / span_ns as f64 * 1e9;
        // The first and the last bin are not whole.
        let whole = (span_ns / self.bin_ns()).min(BINS as u64) as usize;
        let rates: Vec<f64> = self.bins[..whole].iter().map(|&count| f64::from(count)).collect();
        if let [_, rates @ ..] = rates.as_slice()
            && rates.len() > 2
        {
            let rate = mean(rates);
            summary.delivered_error_pps = (rate.high - rate.value) / self.bin_ns() as f64 * 1e9;
        }
    }

    fn bin_ns(&self) -> u64 {
        // Twice the train's own time: a bottleneck stretches it.
        (self.train.duration_ns() * 2 / BINS as u64).max(50_000)
    }
}

/// The summary of a train of which nothing arrived.
pub(crate) fn nothing_arrived(train: &Train) -> Summary {
    Tracker::new(*train).summary(None)
}

/// The median and its standard error by the quartiles, so that single outliers move neither.
fn middle<'a>(delays: impl Iterator<Item = &'a (u32, i64)>) -> Option<(i64, f64)> {
    let mut sorted: Vec<i64> = delays.map(|&(_, delay)| delay).collect();
    sorted.sort_unstable();
    if sorted.len() < 8 {
        return None;
    }
    let quartiles = sorted[sorted.len() * 3 / 4].saturating_sub(sorted[sorted.len() / 4]);
    Some((sorted[sorted.len() / 2], 0.93 * quartiles as f64 / (sorted.len() as f64).sqrt()))
}

/// When one datagram was sent, and when it arrived.
#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    seq: u32,
    sent_ns: u64,
    arrived_ns: u64,
}

const STRETCHES: usize = 16;
const BINS: usize = 64;
const DELAYS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use grebe_packet::{Reader, Writer};
    use proptest::prelude::*;

    use super::*;

    fn train(count: u32) -> Train {
        Train { id: 1, count, size: 1_000, interval_ns: 100_000 }
    }

    #[test]
    fn loss_runs_copies_and_order_are_told_apart() {
        let mut tracker = Tracker::new(train(100));
        for seq in (0..100_u32).filter(|seq| !(10..15).contains(seq) && *seq != 50) {
            let seq = match seq {
                30 => 31,
                31 => 30,
                seq => seq,
            };
            let sent = u64::from(seq) * 100_000;
            tracker.arrived(seq, sent, sent + 7_000_000);
        }
        tracker.arrived(99, 9_900_000, 20_000_000);
        tracker.arrived(u32::MAX, 0, 0);
        let summary = tracker.summary(Some(2));
        assert_eq!((summary.received, summary.lost, summary.duplicates, summary.reordered), (94, 6, 1, 1));
        assert_eq!((summary.runs, summary.longest_run, summary.run_squares), (2, 5, 26));
        assert_eq!(summary.run_counts, [1, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!((summary.reorder_extent, summary.lost_on_the_way()), (1, 4));
        assert!((summary.sent_interval_ns - 100_000.0).abs() < 1.0 && summary.rise_ns == 0);
        assert!((summary.design_effect() - 26.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_queue_that_fills_shows_as_a_rise() {
        let mut tracker = Tracker::new(train(4_000));
        for seq in 0..4_000_u64 {
            tracker.arrived(seq as u32, seq * 100_000, seq * 103_000 + seq % 7 * 1_000);
        }
        let summary = tracker.summary(None);
        let slope = summary.rise_ns as f64 / (0.75 * 4_000.0 * 100_000.0);
        assert!((slope - 0.03).abs() < 0.001 && summary.rise_error_ns < summary.rise_ns / 10, "{summary:?}");
        assert!((summary.delivered_pps - 1e9 / 103_000.0).abs() < 2.0 + summary.delivered_error_pps);
    }

    proptest! {
        #[test]
        fn any_arrivals_add_up_and_survive_the_wire(
            count in 1_u32..2_000,
            arrivals in prop::collection::vec((any::<u32>(), any::<u64>(), any::<u64>()), 0..200),
        ) {
            let mut tracker = Tracker::new(train(count));
            for (seq, sent, arrived) in arrivals {
                tracker.arrived(seq % (count + 2), sent, arrived);
            }
            let summary = tracker.summary(None);
            prop_assert_eq!(summary.received + summary.lost, count);
            prop_assert_eq!(summary.run_counts.iter().sum::<u32>(), summary.runs);
            prop_assert!(summary.delivered_pps.is_finite() && summary.jitter_error_ns.is_finite());
            let mut buffer = [0; 512];
            let mut writer = Writer::new(&mut buffer);
            summary.write(&mut writer);
            let len = writer.written().unwrap();
            prop_assert_eq!(Summary::read(&mut Reader::new(&buffer[..len])), Ok(summary));
        }
    }
}
