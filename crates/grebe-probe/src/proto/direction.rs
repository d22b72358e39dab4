//! One direction: a burst, a quiet train and the search for the highest rate, or one train at the user's
//! rate.

mod budget;
mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

use grebe_clock::Echo;

use self::budget::Budget;
use self::tally::Tally;
use crate::error::Result;
use crate::proto::estimate::{Estimate, mean, share};
use crate::proto::judge::{Trial, judge};
use crate::proto::limits::Limits;
use crate::proto::packet::TcpArrivals;
use crate::proto::report::{Direction, LimitedBy, ProbeEvent, Rtt, TcpResult};
use crate::proto::search::{Search, Step};
use crate::proto::tracker::Summary;
use crate::proto::train::{Train, packet_bits};

/// Path that carries trains.
pub(crate) trait TrainCarrier {
    /// Carries a train in one direction, with pings beside it. Datagrams may arrive up to `settle` after the
    /// last one.
    fn carry(&mut self, is_down: bool, train: Train, settle: Duration) -> Result<(Summary, Vec<Echo>)>;
    /// Present time.
    fn now_ns(&self) -> u64;
    /// Bytes of IP packets so far, in both directions.
    fn spent_bytes(&self) -> u64;
}

/// Measurement of one direction, and its budget.
pub(crate) struct DirectionTask<'a> {
    pub(crate) is_down: bool,
    pub(crate) datagram_bytes: u16,
    /// Interval of a single train, instead of a search.
    pub(crate) interval: Option<Duration>,
    pub(crate) limits: Limits,
    pub(crate) bytes_max: u64,
    /// Maximum bytes of the whole probe at the end of this direction.
    pub(crate) spent_bytes_max: u64,
    pub(crate) began_ns: u64,
    pub(crate) end_ns: u64,
    /// Round trips on the idle path.
    pub(crate) rtt: &'a Rtt,
}

/// Measures one direction of a path, and reports each train to `on_event`.
pub(crate) fn measure<C: TrainCarrier>(
    carrier: &mut C,
    task: &DirectionTask<'_>,
    on_event: &mut dyn FnMut(ProbeEvent),
) -> Result<Direction> {
    // Delays of datagrams vary as much as the round trips.
    let spread_ms = task.rtt.p99_ms.value - task.rtt.min_ms.value;
    let settle = Duration::from_secs_f64((spread_ms * 2.0 + 10.0).clamp(10.0, 300.0) / 1e3);
    let tally = Tally::new(task.datagram_bytes);
    let mut measuring = Measuring { carrier, task, settle, tally, budget: Budget::default(), on_event };
    match task.interval {
        Some(interval) => measuring.fixed_rate(interval)?,
        None => measuring.highest_rate()?,
    }
    let mut direction = measuring.tally.conclude(PING_INTERVAL_NS);
    (direction.sent_bytes, direction.arrived_bytes) =
        (measuring.budget.sent_bytes, measuring.budget.arrived_bytes);
    Ok(direction)
}

struct Measuring<'a, C> {
    carrier: &'a mut C,
    task: &'a DirectionTask<'a>,
    settle: Duration,
    tally: Tally,
    budget: Budget,
    on_event: &'a mut dyn FnMut(ProbeEvent),
}

impl<C: TrainCarrier> Measuring<'_, C> {
    /// Sends one train with the user's size and interval.
    fn fixed_rate(&mut self, interval: Duration) -> Result<()> {
        self.begin_part("train");
        let task = self.task;
        let rate_bps = packet_bits(task.datagram_bytes) / interval.as_secs_f64().max(1e-9);
        let left = Duration::from_nanos(task.end_ns.saturating_sub(self.carrier.now_ns()));
        let seconds = (left.as_secs_f64() * 0.7).min(FIXED_S);
        let train = task.train(rate_bps.min(task.limits.rate_max_bps), seconds, task.bytes_max);
        let (trial, summary) = self.carry(train, false)?;
        // Its loss is the result, whether the path kept up or not.
        self.tally.count(&train, &summary);
        // Without a quiet train for comparison, round trips still show a full queue.
        let result = self.tally.report.trains.last_mut().expect("a train was carried");
        let is_queued = result.rtt_ms > task.rtt.p99_ms.value + STANDING_MS;
        let limit = trial.failed.map(|limit| match limit {
            LimitedBy::Policer if is_queued => LimitedBy::Link,
            _ => limit,
        });
        result.failed = limit;
        self.tally.report.limit = limit;
        Ok(())
    }

    /// Searches for the highest rate that passes.
    fn highest_rate(&mut self) -> Result<()> {
        self.begin_part("UDP");
        let guess_bps = self.guess()?;
        let (quiet, guess_bps) = self.quiet(guess_bps)?;
        let floor_bps = (guess_bps * 0.001).clamp(1e5, self.task.limits.rate_max_bps);
        // The burst lost its share as well.
        let guess_bps = guess_bps / (1.0 - self.tally.base.estimate().value.min(0.5));
        let mut search = Search::new(guess_bps, floor_bps, self.task.limits.rate_max_bps, TRIALS_MAX);
        let (mut last, mut quiet_bps) = (None, quiet.rate_bps());
        loop {
            let step = search.step();
            if step == Step::Quiet
                && let Some(train) = self.tally.report.trains.last()
            {
                // A first quiet train within a policer's bucket was not quiet.
                quiet_bps = quiet_bps.min(0.5 * train.delivered_bps.max(1e5));
            }
            let Some(train) = self.train_for(step, quiet_bps) else { break };
            let (mut trial, summary) = self.carry(train, step == Step::Quiet)?;
            let mut shown = (train, summary, self.tally.report.trains.len() - 1);
            if step == Step::Quiet {
                self.tally.count(&train, &summary);
                let Some(before) = last else { break };
                shown = before;
                trial = judge(&shown.0, &shown.1, &self.tally.base);
                self.tally.report.trains[shown.2].failed = trial.failed;
            }
            last = Some(shown);
            if trial.failed.is_none() {
                self.tally.count_passed(&shown.0, &shown.1);
            }
            search.record(step, &trial, self.tally.base.estimate().value);
        }
        let report = &mut self.tally.report;
        report.limit = Some(LimitedBy::Unfinished);
        if let Some(found) = search.found() {
            report.knee_bps = Some(found.rate);
            report.limit = Some(found.limit);
            report.confirmed = found.confirmed;
        }
        Ok(())
    }

    /// Initial guess of the rate, from the spacing of a burst on arrival.
    fn guess(&mut self) -> Result<f64> {
        let task = self.task;
        let bits = packet_bits(task.datagram_bytes);
        let count = (task.bytes_max / 20 / (bits / 8.0) as u64).clamp(8, BURST.into()) as u32;
        let burst = Train { id: 1, count, size: task.datagram_bytes, interval_ns: 0 };
        let mut rates_bps = Vec::new();
        for _ in 0..3 {
            let (summary, _) = self.carrier.carry(task.is_down, burst, self.settle)?;
            self.budget.count(&burst, &summary);
            if summary.delivered_pps > 0.0 && summary.received >= count / 8 {
                rates_bps.push(summary.delivered_pps * bits);
            }
            // A long path allows only one burst.
            if !rates_bps.is_empty() && task.rtt.p50_ms.value > 30.0 {
                break;
            }
        }
        rates_bps.sort_by(f64::total_cmp);
        let guess_bps = rates_bps.get(rates_bps.len() / 2).copied().unwrap_or(10e6);
        Ok(guess_bps.clamp(1e5, task.limits.rate_max_bps))
    }

    /// Sends the quiet train, and a second one if high loss makes one too inaccurate. A burst passes a
    /// policer undisturbed. So if the train loses packets, a slower train separates the path's own loss from
    /// a policer's. Returns the quiet train and the guess of the rate, which a policer lowers.
    fn quiet(&mut self, mut guess_bps: f64) -> Result<(Train, f64)> {
        let rate_bps = (guess_bps * QUIET_SHARE).min(self.task.limits.rate_max_bps * 0.5);
        let (mut quiet, trial, mut summary) = self.first_quiet(rate_bps)?;
        let (mut delivered_bps, mut slower) = (trial.delivered_bps, None);
        for _ in 0..SLOWER_MAX {
            let lost = summary.lost_share(&quiet, 1.0);
            let slower_bps = (QUIET_SHARE * delivered_bps).min(QUIET_SHARE * quiet.rate_bps());
            if lost.value < POLICED_LOSS_MIN || slower_bps < 1e5 {
                break;
            }
            let train = self.quiet_train(slower_bps);
            let policed_at = self.tally.report.trains.len() - 1;
            let (trial, slower_summary) = self.carry(train, true)?;
            let is_policed = slower_summary.lost_share(&train, summary.design_effect()).high
                <= POLICED_SHARE * lost.low
                || is_load_dependent((&quiet, &summary), (&train, &slower_summary));
            if !is_policed {
                // The path itself may lose as much.
                slower = Some((train, slower_summary));
                break;
            }
            self.tally.report.trains[policed_at].failed = Some(LimitedBy::Policer);
            guess_bps = guess_bps.min(delivered_bps.max(1e5));
            (quiet, summary, delivered_bps) = (train, slower_summary, trial.delivered_bps);
        }
        self.tally.count_quiet(&quiet, &summary);
        if let Some((train, summary)) = slower {
            self.tally.count(&train, &summary);
        }
        if self.tally.base.trial_count() > f64::from(quiet.count) {
            let (_, summary) = self.carry(quiet, true)?;
            self.tally.count(&quiet, &summary);
        }
        Ok((quiet, guess_bps))
    }

    /// Sends a quiet train at this rate, after shorter ones on an unproven path. A train that loses most of
    /// its datagrams is not followed by a longer one.
    fn first_quiet(&mut self, rate_bps: f64) -> Result<(Train, Trial, Summary)> {
        loop {
            let train = self.quiet_train(rate_bps);
            let (trial, summary) = self.carry(train, true)?;
            let is_long = train.count > self.whole_quiet_train(rate_bps).count / 2;
            if is_long || f64::from(summary.lost) > HOPELESS_LOSS * f64::from(train.count) {
                return Ok((train, trial, summary));
            }
        }
    }

    /// Quiet train at this rate, within the remaining budget.
    fn quiet_train(&self, rate_bps: f64) -> Train {
        let train = self.whole_quiet_train(rate_bps);
        let count = (self.budget.left_bytes() / train.packet_bytes()).max(QUIET_DATAGRAMS_MIN);
        Train { count: train.count.min(u32::try_from(count).unwrap_or(u32::MAX)), ..train }
    }

    fn whole_quiet_train(&self, rate_bps: f64) -> Train {
        self.task.train(rate_bps, QUIET_S, self.task.bytes_max / 10)
    }

    /// Train for a step of the search; `None` if the search is over, or if time or bytes are insufficient.
    fn train_for(&self, step: Step, quiet_bps: f64) -> Option<Train> {
        let task = self.task;
        let (rate_bps, seconds, bytes_max) = match step {
            Step::Quiet => (quiet_bps, QUIET_S, task.bytes_max / 10),
            Step::Try(rate_bps) => {
                let seconds = self.tally.base.trial_count() * packet_bits(task.datagram_bytes) / rate_bps;
                (rate_bps, seconds.clamp(TRIAL_S, CONFIRM_S), task.bytes_max / 10)
            }
            Step::Confirm(rate_bps) => (rate_bps, CONFIRM_S, task.bytes_max / 4),
            Step::Done => return None,
        };
        let needed = Duration::from_secs_f64(seconds + 2.5 * task.rtt.p50_ms.value / 1e3) + self.settle;
        let train = task.train(rate_bps, seconds, bytes_max);
        let is_in_time = self.carrier.now_ns() + needed.as_nanos() as u64 <= task.end_ns;
        let is_affordable = train.bytes() <= self.budget.left_bytes()
            && self.carrier.spent_bytes() + train.bytes() <= task.spent_bytes_max;
        (is_in_time && is_affordable).then_some(train)
    }

    fn carry(&mut self, train: Train, is_quiet: bool) -> Result<(Trial, Summary)> {
        let task = self.task;
        let (summary, echoes) = self.carrier.carry(task.is_down, train, self.settle)?;
        self.budget.count(&train, &summary);
        let at_s = (self.carrier.now_ns() - task.began_ns) as f64 / 1e9;
        let trial = self.tally.add_train((&train, &summary), &echoes, (at_s, task.rtt), is_quiet);
        if let Some(&result) = self.tally.report.trains.last() {
            (self.on_event)(ProbeEvent::Train { is_down: task.is_down, result });
        }
        Ok((trial, summary))
    }

    fn begin_part(&mut self, name: &'static str) {
        (self.on_event)(ProbeEvent::Part { name, is_down: Some(self.task.is_down) });
    }
}

impl DirectionTask<'_> {
    /// Train of about this duration, within this number of bytes.
    fn train(&self, rate_bps: f64, seconds: f64, bytes_max: u64) -> Train {
        let seconds = seconds.min(bytes_max as f64 * 8.0 / rate_bps);
        Train::at_rate(1, self.datagram_bytes, rate_bps, seconds)
    }
}

/// Whether two trains lost different shares, and the first one too much for a path without a policer. A
/// policer's bucket, full at first, hides its rate, so the slower train may even have lost more. Such loss
/// alone makes long runs, so the interval ignores runs.
fn is_load_dependent(first: (&Train, &Summary), slower: (&Train, &Summary)) -> bool {
    let [first, slower] = [first, slower]
        .map(|(train, summary)| share(f64::from(summary.lost_on_the_way()), f64::from(train.count), 1.0));
    first.value > HOPELESS_LOSS && (slower.high < first.low || slower.low > first.high)
}

/// Goodput of a stream with its interval, from the bytes of equal time slices.
pub(crate) fn tcp_result(write_bytes: u32, arrivals: &TcpArrivals) -> TcpResult {
    let seconds = arrivals.span_ns.max(1) as f64 / 1e9;
    let bin_ns = arrivals.bin_ns.max(1);
    let whole_bins = (arrivals.span_ns / bin_ns).min(arrivals.bin_bytes.len() as u64) as usize;
    let rates_bps: Vec<f64> = arrivals.bin_bytes[..whole_bins]
        .iter()
        .map(|&bytes| f64::from(bytes) * 8e9 / bin_ns as f64)
        .collect();
    let all = mean(&rates_bps);
    let goodput_bps = arrivals.bytes as f64 * 8.0 / seconds;
    let late_bps = match rates_bps.len() {
        4.. => mean(&rates_bps[rates_bps.len() / 2..]),
        _ => Estimate::exact(goodput_bps),
    };
    TcpResult {
        write_bytes,
        goodput_bps: Estimate::around(goodput_bps, all.high - all.value).at_least_zero(),
        span_s: seconds,
        late_bps: late_bps.at_least_zero(),
    }
}

/// Maximum datagram length at which enough datagrams fit into a short train, by rate and byte limit.
pub(crate) fn datagram_bytes_max(limits: &Limits, direction_bytes_max: u64) -> u16 {
    let train_bytes = (limits.rate_max_bps / 8.0 * TRIAL_S).min((direction_bytes_max / 10) as f64);
    (train_bytes / TRIAL_DATAGRAMS).clamp(ETHERNET_BYTES.into(), LOOPBACK_BYTES.into()) as u16
}

/// Interval of pings beside a train or a TCP stream.
pub(crate) const PING_INTERVAL_NS: u64 = 20_000_000;
const QUIET_S: f64 = 1.0;
/// Rate of the quiet train relative to that of the burst.
const QUIET_SHARE: f64 = 0.3;
/// Minimum loss of the quiet train that may be a policer's, and the number of slower trains.
const POLICED_LOSS_MIN: f64 = 0.01;
const SLOWER_MAX: u32 = 4;
/// Loss of a short quiet train above which no longer one follows.
const HOPELESS_LOSS: f64 = 0.3;
/// Minimum, even without remaining budget: earlier trains may have been lost by chance.
const QUIET_DATAGRAMS_MIN: u64 = 100;
/// If a slower train loses at most this share of the first one's loss, there is a policer.
const POLICED_SHARE: f64 = 0.7;
const TRIAL_S: f64 = 0.5;
const CONFIRM_S: f64 = 1.5;
const FIXED_S: f64 = 5.0;
/// Datagrams of a trial for a sufficient estimate of loss.
const TRIAL_DATAGRAMS: f64 = 400.0;
/// Delay above which a queue is standing.
const STANDING_MS: f64 = 1.0;
const TRIALS_MAX: u32 = 14;
const BURST: u32 = 128;
/// UDP payload of an Ethernet frame.
const ETHERNET_BYTES: u16 = 1_472;
/// Datagram length of `grebe_datagram` over loopback.
const LOOPBACK_BYTES: u16 = 65_000;
