//! Totals over the trains of one direction.

use grebe_clock::Echo;

use crate::proto::echo::{bufferbloat_ms, median_rtt_ms};
use crate::proto::estimate::{Estimate, share};
use crate::proto::judge::{BaseLoss, Trial, judge};
use crate::proto::report::{Direction, LimitedBy, Rtt, Spacing, TrainResult};
use crate::proto::tracker::Summary;
use crate::proto::train::Train;

/// State of knowledge about a direction.
pub(crate) struct Tally {
    /// Loss of the path at any rate.
    pub(crate) base: BaseLoss,
    pub(crate) report: Direction,
    passed: Vec<(Train, Summary)>,
    bufferbloat_ms: Vec<Estimate>,
}

impl Tally {
    pub(crate) fn new(datagram_bytes: u16) -> Self {
        let report = Direction { datagram_bytes, ..Direction::default() };
        Self { base: BaseLoss::default(), report, passed: Vec::new(), bufferbloat_ms: Vec::new() }
    }

    /// Adds a result for a train that ended at `at_s`. Assesses it, unless it is the quiet train that others
    /// are compared with.
    pub(crate) fn add_train(
        &mut self,
        (train, summary): (&Train, &Summary),
        echoes: &[Echo],
        (at_s, idle): (f64, &Rtt),
        is_quiet: bool,
    ) -> Trial {
        let mut trial = judge(train, summary, &self.base);
        if is_quiet {
            trial.failed = None;
        }
        if trial.failed.is_some() {
            self.bufferbloat_ms.extend(bufferbloat_ms(echoes, idle));
            // A train ends when a queue shows. Only a train that lost packets then has filled it.
            let lost_there = summary.lost_share(train, 1.0).low - self.base.estimate().high;
            self.report.queue_filled |= trial.failed == Some(LimitedBy::Link) && lost_there > FULL_LOSS;
        }
        self.report.trains.push(TrainResult {
            at_s,
            sent_bps: trial.sent_bps,
            delivered_bps: trial.delivered_bps,
            count: train.count,
            lost: summary.lost,
            rtt_ms: median_rtt_ms(echoes),
            failed: trial.failed,
        });
        let drops = summary.kernel_drops.map(|drops| drops + self.report.kernel_drops.unwrap_or(0));
        self.report.kernel_drops = drops.or(self.report.kernel_drops);
        trial
    }

    /// Counts the train that shows the path without load.
    pub(crate) fn count_quiet(&mut self, train: &Train, summary: &Summary) {
        self.count(train, summary);
        self.set_jitter(summary);
    }

    /// Counts a train that shows the path and not its limit.
    pub(crate) fn count(&mut self, train: &Train, summary: &Summary) {
        self.base.add(train, summary);
        self.note(train, summary);
    }

    /// Counts a train that passed.
    pub(crate) fn count_passed(&mut self, train: &Train, summary: &Summary) {
        self.base.add_passed(train, summary);
        self.note(train, summary);
    }

    fn note(&mut self, train: &Train, summary: &Summary) {
        self.passed.push((*train, *summary));
        for (count, more) in self.report.run_counts.iter_mut().zip(summary.run_counts) {
            *count += more;
        }
        self.report.longest_run = self.report.longest_run.max(summary.longest_run);
        self.report.reorder_extent = self.report.reorder_extent.max(summary.reorder_extent);
        if self.report.jitter_ms.is_none() {
            self.set_jitter(summary);
        }
    }

    fn set_jitter(&mut self, summary: &Summary) {
        let jitter = Estimate::around(summary.jitter_ns, summary.jitter_error_ns);
        self.report.jitter_ms = Some(jitter.scaled(1e-6).at_least_zero());
        self.report.delay_variation_p99_ms = summary.delay_above_min_ns[2] as f64 / 1e6;
    }

    /// Completes the report with the figures over all trains. Pings are sent every `ping_interval_ns`.
    pub(crate) fn conclude(mut self, ping_interval_ns: u64) -> Direction {
        let received = self.sum(|summary| f64::from(summary.received));
        self.report.loss = Some(self.base.estimate());
        self.report.reordered = Some(share(self.sum(|summary| f64::from(summary.reordered)), received, 2.0));
        self.report.duplicated =
            Some(share(self.sum(|summary| f64::from(summary.duplicates)), received, 1.0));
        self.report.loss_run = self.loss_run(ping_interval_ns);
        if let Some((train, summary)) = self.passed.iter().max_by_key(|(train, _)| train.bytes()) {
            let payload_bits = f64::from(train.size) * 8.0;
            let goodput_pps = Estimate::around(summary.delivered_pps, summary.delivered_error_pps);
            self.report.udp_goodput_bps = Some(goodput_pps.scaled(payload_bits));
            self.report.spacing_us = Some(Spacing {
                requested_us: train.interval_ns as f64 / 1e3,
                sent_us: summary.sent_interval_ns / 1e3,
            });
        }
        let worst = self.bufferbloat_ms.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value));
        self.report.bufferbloat_ms = worst;
        self.report
    }

    /// Mean length of a run of lost datagrams.
    fn loss_run(&self, ping_interval_ns: u64) -> Option<Estimate> {
        let runs = self.sum(|summary| f64::from(summary.runs));
        if runs == 0.0 {
            return None;
        }
        let mean = self.sum(|summary| f64::from(summary.lost)) / runs;
        let squares = self.sum(|summary| summary.run_squares as f64);
        let variance = (squares / runs - mean * mean).max(0.0);
        // Rule of three: an event absent from n runs may occur in 3 of n. A ping among the lost datagrams is
        // not counted in its run.
        let longest_interval = self.passed.iter().map(|(train, _)| train.interval_ns).max().unwrap_or(0);
        let pings = longest_interval as f64 / ping_interval_ns as f64;
        let error = 1.96 * (variance / runs).sqrt() + 3.0 / runs;
        Some(Estimate::new(mean, (mean - error).max(1.0), mean + error + mean * pings.min(1.0)))
    }

    fn sum(&self, of: fn(&Summary) -> f64) -> f64 {
        self.passed.iter().map(|(_, summary)| of(summary)).sum()
    }
}

/// Loss above the path's own that shows a full queue.
const FULL_LOSS: f64 = 0.01;
