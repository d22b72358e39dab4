//! One direction: a burst, a quiet train, and the search.

use std::time::Duration;

use crate::client::Probing;
use crate::client::core::Echo;
use crate::client::link::{PING_ALONG_NS, Path};
use crate::packet::Flow;
use crate::report::{Rtt, Spacing, Tcp, TrainLine, Way};
use crate::search::{BaseLoss, Search, Step, Trial, judge};
use crate::tracker::Summary;
use crate::{Estimate, Limit, Limits, Result, Train, mean, packet_bits, quantile, share};

/// What one direction may take.
pub(crate) struct Plan<'a> {
    pub is_down: bool,
    pub datagram_bytes: u16,
    pub interval: Option<Duration>,
    pub limits: Limits,
    pub bytes: u64,
    /// What the whole probe may have spent when this direction ends.
    pub bytes_end: u64,
    pub began_ns: u64,
    pub end_ns: u64,
    pub rtt: &'a Rtt,
}

/// What is known of a direction so far.
struct Known {
    base: BaseLoss,
    passed: Vec<(Train, Summary)>,
    bloat_ms: Vec<Estimate>,
    way: Way,
    settle: Duration,
}

pub(crate) fn measure(path: &mut Path<'_>, plan: &Plan<'_>, told: &mut dyn FnMut(Probing)) -> Result<Way> {
    // Stragglers are behind by what round trips differ by.
    let spread_ms = plan.rtt.p99_ms.value - plan.rtt.min_ms.value;
    let settle = Duration::from_secs_f64((spread_ms * 2.0 + 10.0).clamp(10.0, 300.0) / 1e3);
    let way = Way { datagram_bytes: plan.datagram_bytes, ..Way::default() };
    let mut known =
        Known { base: BaseLoss::default(), passed: Vec::new(), bloat_ms: Vec::new(), way, settle };
    match plan.interval {
        Some(interval) => fixed(path, plan, interval, &mut known, told)?,
        None => knee(path, plan, &mut known, told)?,
    }
    Ok(known.conclude())
}

/// The experiment of the one who asks: this size, this interval.
fn fixed(
    path: &mut Path<'_>,
    plan: &Plan<'_>,
    interval: Duration,
    known: &mut Known,
    told: &mut dyn FnMut(Probing),
) -> Result<()> {
    told(Probing::Part("train", Some(plan.is_down)));
    let bits = packet_bits(plan.datagram_bytes);
    let rate = bits / interval.as_secs_f64().max(1e-9);
    let seconds = Duration::from_nanos(plan.end_ns.saturating_sub(path.now_ns())).as_secs_f64() * 0.7;
    let train = plan.train(rate.min(plan.limits.rate_max_bps), seconds.min(FIXED_S), plan.bytes);
    let (trial, summary) = known.carry(path, plan, train, false, told)?;
    // Its loss is the answer here, whether the path kept up or not.
    known.count(&train, &summary);
    // Nothing quiet came before to compare delays with, but round trips say whether what is lost had filled a queue.
    let rtt_ms = known.way.trains.last().map_or(0.0, |line| line.rtt_ms);
    let is_queued = rtt_ms > plan.rtt.p99_ms.value + STANDING_MS;
    let limit = trial.failed.map(|limit| match limit {
        Limit::Policer if is_queued => Limit::Link,
        _ => limit,
    });
    known.way.limit = limit;
    if let Some(line) = known.way.trains.last_mut() {
        line.failed = limit;
    }
    Ok(())
}

fn knee(
    path: &mut Path<'_>,
    plan: &Plan<'_>,
    known: &mut Known,
    told: &mut dyn FnMut(Probing),
) -> Result<()> {
    told(Probing::Part("UDP", Some(plan.is_down)));
    let guess = guess(path, plan, known.settle)?;
    let quiet = plan.train((guess * 0.3).min(plan.limits.rate_max_bps * 0.5), QUIET_S, plan.bytes / 10);
    let (_, summary) = known.carry(path, plan, quiet, true, told)?;
    known.quiet(&quiet, &summary);
    if known.base.trial_count() > f64::from(quiet.count) {
        let (_, summary) = known.carry(path, plan, quiet, true, told)?;
        known.count(&quiet, &summary);
    }
    let floor = (guess * 0.001).clamp(1e5, plan.limits.rate_max_bps);
    // The burst lost its share as well.
    let guess = guess / (1.0 - known.base.estimate().value.min(0.5));
    let mut search = Search::new(guess, floor, plan.limits.rate_max_bps, TRIALS_MAX);
    let mut last = None;
    loop {
        let step = search.step();
        let (rate, seconds, bytes) = match step {
            Step::Quiet => (quiet.rate_bps(), QUIET_S, plan.bytes / 10),
            Step::Try(rate) => {
                let seconds = known.base.trial_count() * packet_bits(plan.datagram_bytes) / rate;
                (rate, seconds.clamp(TRIAL_S, CONFIRM_S), plan.bytes / 10)
            }
            Step::Confirm(rate) => (rate, CONFIRM_S, plan.bytes / 4),
            Step::Done => break,
        };
        let needed = Duration::from_secs_f64(seconds + 2.5 * plan.rtt.p50_ms.value / 1e3) + known.settle;
        if path.now_ns() + needed.as_nanos() as u64 > plan.end_ns {
            break;
        }
        let mut train = plan.train(rate, seconds, bytes);
        if path.bytes() + train.bytes() > plan.bytes_end {
            break;
        }
        let (mut trial, mut summary) = known.carry(path, plan, train, step == Step::Quiet, told)?;
        let mut line = known.way.trains.len() - 1;
        if step == Step::Quiet {
            known.count(&train, &summary);
            let Some(before) = last else { break };
            (train, summary, line) = before;
            trial = judge(&train, &summary, &known.base);
            known.way.trains[line].failed = trial.failed;
        }
        last = Some((train, summary, line));
        if trial.failed.is_none() {
            known.passed(&train, &summary);
        }
        search.record(step, &trial, known.base.estimate().value);
    }
    known.way.limit = Some(Limit::Unfinished);
    if let Some(found) = search.found() {
        known.way.knee_bps = Some(found.rate);
        known.way.limit = Some(found.limit);
        known.way.confirmed = found.confirmed;
    }
    Ok(())
}

/// A first idea of the rate: how far apart datagrams arrive that were sent at once.
fn guess(path: &mut Path<'_>, plan: &Plan<'_>, settle: Duration) -> Result<f64> {
    let mut rates = Vec::new();
    let packet_bytes = (packet_bits(plan.datagram_bytes) / 8.0) as u64;
    let count = (plan.bytes / 20 / packet_bytes).clamp(8, BURST.into()) as u32;
    for _ in 0..3 {
        let burst = Train { id: 1, count, size: plan.datagram_bytes, interval_ns: 0 };
        let (summary, _) = path.carry(plan.is_down, burst, settle)?;
        if summary.delivered_pps > 0.0 && summary.received >= count / 8 {
            rates.push(summary.delivered_pps * packet_bits(plan.datagram_bytes));
        }
        // Far away one burst has to do.
        if !rates.is_empty() && plan.rtt.p50_ms.value > 30.0 {
            break;
        }
    }
    rates.sort_by(f64::total_cmp);
    let guess = rates.get(rates.len() / 2).copied().unwrap_or(10e6);
    Ok(guess.clamp(1e5, plan.limits.rate_max_bps))
}

impl Plan<'_> {
    /// A train of about so long, within so many bytes.
    fn train(&self, rate_bps: f64, seconds: f64, bytes: u64) -> Train {
        let seconds = seconds.min(bytes as f64 * 8.0 / rate_bps);
        Train::at_rate(1, self.datagram_bytes, rate_bps, seconds)
    }
}

impl Known {
    fn carry(
        &mut self,
        path: &mut Path<'_>,
        plan: &Plan<'_>,
        train: Train,
        is_quiet: bool,
        told: &mut dyn FnMut(Probing),
    ) -> Result<(Trial, Summary)> {
        let (summary, echoes) = path.carry(plan.is_down, train, self.settle)?;
        let mut trial = judge(&train, &summary, &self.base);
        if is_quiet {
            // It is what others are judged by.
            trial.failed = None;
        }
        let rtt_ms = middle(&echoes);
        if trial.failed.is_some() {
            self.bloat_ms.extend(bloat(&echoes, plan.rtt));
        }
        let line = TrainLine {
            at_s: (path.now_ns() - plan.began_ns) as f64 / 1e9,
            sent_bps: trial.sent_bps,
            delivered_bps: trial.delivered_bps,
            count: train.count,
            lost: summary.lost,
            rtt_ms,
            failed: trial.failed,
        };
        self.way.trains.push(line);
        let drops = summary.kernel_drops.map(|drops| drops + self.way.kernel_drops.unwrap_or(0));
        self.way.kernel_drops = drops.or(self.way.kernel_drops);
        told(Probing::Train(plan.is_down, line));
        Ok((trial, summary))
    }

    /// The train that says what the path does when nothing presses.
    fn quiet(&mut self, train: &Train, summary: &Summary) {
        self.count(train, summary);
        let jitter = Estimate::around(summary.jitter_ns, summary.jitter_error_ns);
        self.way.jitter_ms = Some(jitter.scaled(1e-6).at_least_zero());
        self.way.delay_variation_p99_ms = summary.delay_above_min_ns[2] as f64 / 1e6;
    }

    /// A train that tells of the path, rather than of its limit.
    fn count(&mut self, train: &Train, summary: &Summary) {
        self.base.add(train, summary);
        self.note(train, summary);
    }

    fn passed(&mut self, train: &Train, summary: &Summary) {
        self.base.add_passed(train, summary);
        self.note(train, summary);
    }

    fn note(&mut self, train: &Train, summary: &Summary) {
        self.passed.push((*train, *summary));
        for (count, more) in self.way.run_counts.iter_mut().zip(summary.run_counts) {
            *count += more;
        }
        self.way.longest_run = self.way.longest_run.max(summary.longest_run);
        self.way.reorder_extent = self.way.reorder_extent.max(summary.extent);
        if self.way.jitter_ms.is_none() {
            let jitter = Estimate::around(summary.jitter_ns, summary.jitter_error_ns);
            self.way.jitter_ms = Some(jitter.scaled(1e-6).at_least_zero());
            self.way.delay_variation_p99_ms = summary.delay_above_min_ns[2] as f64 / 1e6;
        }
    }

    fn conclude(mut self) -> Way {
        let sum = |of: fn(&Summary) -> f64| self.passed.iter().map(|(_, summary)| of(summary)).sum::<f64>();
        let received = sum(|summary| f64::from(summary.received));
        let (lost, runs) = (sum(|summary| f64::from(summary.lost)), sum(|summary| f64::from(summary.runs)));
        self.way.loss = Some(self.base.estimate());
        self.way.reordered = Some(share(sum(|summary| f64::from(summary.reordered)), received, 2.0));
        self.way.duplicated = Some(share(sum(|summary| f64::from(summary.duplicates)), received, 1.0));
        self.way.loss_run = (runs > 0.0).then(|| {
            let mean = lost / runs;
            let variance = (sum(|summary| summary.run_squares as f64) / runs - mean * mean).max(0.0);
            // Of what did not happen in n runs there may be 3 in n all the same. A ping among the lost
            // is not counted in its run.
            let longest_interval = self.passed.iter().map(|(train, _)| train.interval_ns).max().unwrap_or(0);
            let pings = longest_interval as f64 / PING_ALONG_NS as f64;
            let error = 1.96 * (variance / runs).sqrt() + 3.0 / runs;
            Estimate::new(mean, (mean - error).max(1.0), mean + error + mean * pings.min(1.0))
        });
        if let Some((train, summary)) = self.passed.iter().max_by_key(|(train, _)| train.bytes()) {
            let payload = f64::from(train.size) * 8.0;
            let error = summary.delivered_error_pps;
            self.way.udp_goodput_bps = Some(Estimate::around(summary.delivered_pps, error).scaled(payload));
            let spacing =
                Spacing { asked_us: train.interval_ns as f64 / 1e3, sent_us: summary.sent_interval_ns / 1e3 };
            self.way.spacing_us = Some(spacing);
        }
        self.way.bufferbloat_ms = self.bloat_ms.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value));
        self.way
    }
}

/// What a TCP stream showed.
pub(crate) fn tcp(write_bytes: u32, flow: &Flow) -> Tcp {
    let seconds = flow.span_ns.max(1) as f64 / 1e9;
    let whole = (flow.span_ns / flow.bin_ns.max(1)).min(flow.bins.len() as u64) as usize;
    let rates: Vec<f64> =
        flow.bins[..whole].iter().map(|&bytes| f64::from(bytes) * 8e9 / flow.bin_ns.max(1) as f64).collect();
    let all = mean(&rates);
    let goodput = flow.bytes as f64 * 8.0 / seconds;
    let late = if rates.len() >= 4 { mean(&rates[rates.len() / 2..]) } else { Estimate::exact(goodput) };
    Tcp {
        write_bytes,
        goodput_bps: Estimate::around(goodput, all.high - all.value).at_least_zero(),
        span_s: seconds,
        late_bps: late.at_least_zero(),
    }
}

fn sorted_ms(echoes: &[Echo]) -> Vec<f64> {
    let mut sorted: Vec<f64> = echoes.iter().map(|echo| echo.rtt_ns() as f64 / 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(echoes: &[Echo]) -> f64 {
    quantile(&sorted_ms(echoes), 0.5).value
}

/// How much longer round trips took under load than without.
pub(crate) fn bloat(echoes: &[Echo], rtt: &Rtt) -> Option<Estimate> {
    let idle_ms = rtt.p50_ms.value;
    let loaded = quantile(&sorted_ms(echoes), 0.95);
    let above = Estimate::new(loaded.value - idle_ms, loaded.low - idle_ms, loaded.high - idle_ms);
    (echoes.len() >= 5).then(|| above.at_least_zero())
}

const QUIET_S: f64 = 1.0;
pub(crate) const TRIAL_S: f64 = 0.5;
/// Datagrams that say something of loss.
pub(crate) const ENOUGH: f64 = 400.0;
const CONFIRM_S: f64 = 1.5;
const FIXED_S: f64 = 5.0;
/// A queue that takes this long is one.
const STANDING_MS: f64 = 1.0;
const TRIALS_MAX: u32 = 14;
const BURST: u32 = 128;
