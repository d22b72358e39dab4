//! Tracks a train at its receiver.

use grebe_packet::{Reader, Result, Writer};

use crate::proto::estimate::{Estimate, mean, share};
use crate::proto::train::Train;

/// Tracker of one train. It allocates once, at its creation.
#[derive(Debug)]
pub(crate) struct Tracker {
    train: Train,
    seen: Vec<u64>,
    received: u32,
    duplicates: u32,
    reordered: u32,
    reorder_extent: u32,
    /// Highest sequence number that arrived, plus 1.
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

    /// The tracked train.
    pub(crate) fn train(&self) -> &Train {
        &self.train
    }

    /// Whether the last datagram has arrived.
    pub(crate) fn saw_last(&self) -> bool {
        self.next == self.train.count
    }

    /// Takes a datagram of the train: its sequence number, the sender's stamp and the arrival time, each by
    /// its own clock.
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
        // Keeps neighbours in pairs, because the difference of their delays is jitter.
        if seq % self.stride < 2 && self.delays.len() < DELAYS_MAX {
            self.delays.push((seq, delay));
        }
    }

    /// Summary of the arrivals so far. `kernel_drops` counts the drops of the receiver's kernel since the
    /// start of the train.
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
        // Neighbouring differences share a datagram, so only their means over stretches are independent.
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
        // The first and the last bin are incomplete.
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
        // Twice the train's own time, because a bottleneck stretches it.
        (self.train.duration_ns() * 2 / BINS as u64).max(50_000)
    }
}

/// Summary of a train without arrivals.
pub(crate) fn nothing_arrived(train: &Train) -> Summary {
    Tracker::new(*train).summary(None)
}

/// Median with its standard error from the quartiles, robust against single outliers.
fn middle<'a>(delays: impl Iterator<Item = &'a (u32, i64)>) -> Option<(i64, f64)> {
    let mut sorted: Vec<i64> = delays.map(|&(_, delay)| delay).collect();
    sorted.sort_unstable();
    if sorted.len() < 8 {
        return None;
    }
    let quartiles = sorted[sorted.len() * 3 / 4].saturating_sub(sorted[sorted.len() / 4]);
    Some((sorted[sorted.len() / 2], 0.93 * quartiles as f64 / (sorted.len() as f64).sqrt()))
}

/// Send and arrival time of one datagram.
#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    seq: u32,
    sent_ns: u64,
    arrived_ns: u64,
}

const STRETCHES: usize = 16;
const BINS: usize = 64;
const DELAYS_MAX: usize = 4_096;

/// Arrivals of a train as its [`Tracker`] saw them, small enough for one datagram.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Summary {
    /// Datagrams that arrived, without duplicates.
    pub(crate) received: u32,
    /// Duplicates.
    pub(crate) duplicates: u32,
    /// Datagrams that arrived after a later one (RFC 4737).
    pub(crate) reordered: u32,
    /// Maximum number of datagrams by which one was late.
    pub(crate) reorder_extent: u32,
    /// Datagrams lost.
    pub(crate) lost: u32,
    /// Runs of lost neighbours.
    pub(crate) runs: u32,
    /// The longest run.
    pub(crate) longest_run: u32,
    /// Sum of the squared lengths of the runs.
    pub(crate) run_squares: u64,
    /// Runs by length: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, above.
    pub(crate) run_counts: [u32; RUN_CLASSES],
    /// Datagrams of this train that the receiver's kernel dropped; `None` if it does not report them.
    pub(crate) kernel_drops: Option<u64>,
    /// Mean interval between datagrams, by the sender's stamps.
    pub(crate) sent_interval_ns: f64,
    /// Arrival rate in datagrams per second, from the first to the last.
    pub(crate) delivered_pps: f64,
    /// Uncertainty of `delivered_pps` (95 %).
    pub(crate) delivered_error_pps: f64,
    /// Minimum delay between two unsynchronised clocks: only differences are meaningful.
    pub(crate) delay_min_ns: i64,
    /// Median, 95th and 99th percentile above the minimum.
    pub(crate) delay_above_min_ns: [i64; 3],
    /// 2nd percentile of the second half, above the minimum: positive if a queue never ran empty.
    pub(crate) late_low_ns: i64,
    /// Median delay of the train's last quarter minus that of the first.
    pub(crate) rise_ns: i64,
    /// Standard error of `rise_ns`.
    pub(crate) rise_error_ns: i64,
    /// Mean difference in delay between neighbours.
    pub(crate) jitter_ns: f64,
    /// Uncertainty of `jitter_ns` (95 %).
    pub(crate) jitter_error_ns: f64,
}

impl Summary {
    /// Mean length of the run around a lost datagram: the design effect of runs on an estimate of loss.
    pub(crate) fn design_effect(&self) -> f64 {
        match self.lost {
            0 => 1.0,
            lost => (self.run_squares as f64 / f64::from(lost)).max(1.0),
        }
    }

    /// Share of a train's datagrams lost on the path. Uses the larger design effect of the given one and the
    /// train's own.
    pub(crate) fn lost_share(&self, train: &Train, design_effect: f64) -> Estimate {
        let design_effect = self.design_effect().max(design_effect);
        share(f64::from(self.lost_on_the_way()), f64::from(train.count), design_effect)
    }

    /// Datagrams lost on the path, without the drops of the receiver's kernel.
    pub(crate) fn lost_on_the_way(&self) -> u32 {
        self.lost.saturating_sub(u32::try_from(self.kernel_drops.unwrap_or(0)).unwrap_or(u32::MAX))
    }

    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.u32(self.received).u32(self.duplicates).u32(self.reordered).u32(self.reorder_extent);
        writer.u32(self.lost).u32(self.runs).u32(self.longest_run).u64(self.run_squares);
        for count in self.run_counts {
            writer.u32(count);
        }
        writer.u64(self.kernel_drops.unwrap_or(u64::MAX)).f64(self.sent_interval_ns);
        writer.f64(self.delivered_pps).f64(self.delivered_error_pps).i64(self.delay_min_ns);
        for delay in self.delay_above_min_ns {
            writer.i64(delay);
        }
        writer.i64(self.late_low_ns).i64(self.rise_ns).i64(self.rise_error_ns);
        writer.f64(self.jitter_ns).f64(self.jitter_error_ns)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut summary = Self {
            received: reader.u32()?,
            duplicates: reader.u32()?,
            reordered: reader.u32()?,
            reorder_extent: reader.u32()?,
            lost: reader.u32()?,
            runs: reader.u32()?,
            longest_run: reader.u32()?,
            run_squares: reader.u64()?,
            ..Self::default()
        };
        for count in &mut summary.run_counts {
            *count = reader.u32()?;
        }
        summary.kernel_drops = Some(reader.u64()?).filter(|&drops| drops != u64::MAX);
        summary.sent_interval_ns = reader.f64()?;
        summary.delivered_pps = reader.f64()?;
        summary.delivered_error_pps = reader.f64()?;
        summary.delay_min_ns = reader.i64()?;
        for delay in &mut summary.delay_above_min_ns {
            *delay = reader.i64()?;
        }
        summary.late_low_ns = reader.i64()?;
        summary.rise_ns = reader.i64()?;
        summary.rise_error_ns = reader.i64()?;
        summary.jitter_ns = reader.f64()?;
        summary.jitter_error_ns = reader.f64()?;
        Ok(summary)
    }
}

/// Number of run length classes.
pub(crate) const RUN_CLASSES: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn train(count: u32) -> Train {
        Train { id: 1, count, size: 1_000, interval_ns: 100_000 }
    }

    #[test]
    fn loss_runs_duplicates_and_reordering_are_distinguished() {
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
