//! How fast to send: the delivery rate that the receiver confirms, tried a little higher now and then, with a ceiling on the
//! queue that this builds. Loss slows nothing down unless it rises with the rate.
//!
//! ```text
//!  Train --first report--> Ramp --queue or loss rises--> Down --queue gone--> Cruise --some rounds--> Up
//!                          x1.25 or x4 a round trip       ^                                            |
//!                                                         +--------------------------------------------+
//!                                            (the rate grew: Up again at once, in larger steps)
//! ```

use std::collections::VecDeque;

use crate::filter::{RecentMin, RoundMax};
use crate::wire::Train;

/// How much of a shared path to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A share like that of the others.
    #[default]
    Fair,
    /// All that the path gives, whatever queue there is.
    Greedy,
    /// What others leave.
    Background,
}

/// What the controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first packets are under way; their spacing at the receiver tells the first rate.
    Train,
    /// The rate grows each round trip.
    Ramp,
    /// The rate is what the path was seen to deliver.
    Cruise,
    /// A little more, to see whether the path delivers it.
    Up,
    /// A little less, until the queue is gone.
    Down,
}

/// What a phase has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseCost {
    /// Times it was entered.
    pub entries: u32,
    /// Round trips that ended in it.
    pub rounds: u32,
    /// Time in it.
    pub time_us: u64,
}

/// What one report of the receiver told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sample {
    pub now_us: u64,
    pub rtt_us: Option<u64>,
    pub delay_us: Option<u32>,
    pub receiver_us: u64,
    pub delivered_bytes: u64,
    pub train: Option<Train>,
    pub acked_packets: u64,
    pub lost_packets: u64,
    pub in_flight_bytes: u64,
    pub round_ended: bool,
    /// The sender had reasons of its own not to send faster.
    pub app_limited: bool,
}

#[derive(Debug)]
pub(crate) struct Controller {
    mode: Mode,
    limit: Option<f64>,
    phase: Phase,
    phase_since_us: u64,
    phase_rounds: u32,
    cruise_rounds: u32,
    costs: [PhaseCost; 5],
    /// Bytes a second.
    ramp: f64,
    ramp_gain: f64,
    step_since_us: u64,
    step_arrives: bool,
    /// The sender did not send all that this step allows.
    step_unused: bool,
    up_gain: f64,
    bandwidth: RoundMax<8>,
    bandwidth_before_up: f64,
    recent: f64,
    history: VecDeque<(u64, u64)>,
    min_rtt: RecentMin<u64>,
    smoothed_rtt_us: f64,
    rtt_variation_us: f64,
    delay_origin: Option<u32>,
    min_delay: RecentMin<i64>,
    queue_us: u64,
    round: Round,
    /// The gain of the round before: what is acknowledged now was sent at it.
    gain_before: f64,
    /// The gain that this round began with.
    gain_now: f64,
    base_loss: f64,
    low_loss: Option<(f64, f64)>,
    contended: bool,
    random: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    acked: u64,
    lost: u64,
    queue_us_min: Option<u64>,
    in_flight_bytes_max: u64,
    crowded_rounds: u32,
    app_limited: bool,
}

impl Controller {
    pub fn new(mode: Mode, limit_bytes_per_s: Option<f64>, rtt_us: Option<u64>, seed: u64) -> Self {
        let mut min_rtt = RecentMin::new(RTT_SPAN_US);
        if let Some(rtt_us) = rtt_us {
            min_rtt.add(0, rtt_us);
        }
        let mut costs = [PhaseCost::default(); 5];
        costs[Phase::Train as usize].entries = 1;
        Self {
            mode,
            limit: limit_bytes_per_s,
            phase: Phase::Train,
            phase_since_us: 0,
            phase_rounds: 0,
            cruise_rounds: 4,
            costs,
            ramp: 0.0,
            ramp_gain: RAMP_GAIN_BLIND,
            step_since_us: 0,
            step_arrives: false,
            step_unused: false,
            up_gain: UP_GAIN,
            bandwidth: RoundMax::new(),
            bandwidth_before_up: 0.0,
            recent: 0.0,
            history: VecDeque::with_capacity(HISTORY),
            min_rtt,
            smoothed_rtt_us: rtt_us.unwrap_or(0) as f64,
            rtt_variation_us: rtt_us.unwrap_or(0) as f64 / 16.0,
            delay_origin: None,
            min_delay: RecentMin::new(DELAY_SPAN_US),
            queue_us: 0,
            round: Round::default(),
            gain_before: 1.0,
            gain_now: 1.0,
            base_loss: 0.0,
            low_loss: None,
            contended: mode == Mode::Greedy,
            random: seed | 1,
        }
    }

    /// Starts the clock.
    pub fn start(&mut self, now_us: u64) {
        self.phase_since_us = now_us;
    }

    pub fn on_report(&mut self, sample: &Sample) {
        if let Some(rtt_us) = sample.rtt_us {
            self.take_rtt(sample.now_us, rtt_us);
        }
        if let Some(delay_us) = sample.delay_us {
            self.take_delay(sample.now_us, delay_us);
        }
        self.take_delivery(sample);
        self.round.acked += sample.acked_packets;
        self.round.lost += sample.lost_packets;
        self.round.app_limited |= sample.app_limited;
        self.step_unused |= sample.app_limited;
        self.round.in_flight_bytes_max = self.round.in_flight_bytes_max.max(sample.in_flight_bytes);
        if self.phase == Phase::Train
            && let Some(train) = sample.train
        {
            self.leave_train(sample.now_us, train);
        }
        if self.is_over_ceiling() && self.recent > 0.0 && self.phase != Phase::Train {
            self.bandwidth.reset(self.recent);
            if matches!(self.phase, Phase::Ramp | Phase::Up) {
                self.enter(Phase::Down, sample.now_us);
            }
        }
        if sample.round_ended {
            self.end_round(sample.now_us);
        }
        match self.phase {
            Phase::Ramp => self.judge_ramp(sample.now_us),
            Phase::Down if self.is_drained(sample.now_us, sample.in_flight_bytes) => {
                self.leave_down(sample.now_us)
            }
            _ => {}
        }
    }

    /// Bytes a second to send now; `None`: as fast as it goes (the first packets).
    pub fn pace(&self) -> Option<f64> {
        if self.phase == Phase::Train {
            return self.limit;
        }
        let own = match self.phase {
            Phase::Ramp => self.ramp,
            _ if self.is_over_ceiling() => {
                let over_us = self.queue_us.saturating_sub(self.ceiling_us() / 2) as f64;
                let drain = over_us / self.min_rtt_us().max(100_000) as f64;
                self.target() * (1.0 - drain).clamp(0.5, 0.9)
            }
            phase => self.target() * self.gain(phase),
        };
        let floor = MIN_PACKET_BYTES * 2.0 * 1e6 / (self.min_rtt_us() + REPORTS_LATE_US) as f64;
        let own = own.max(floor.max(MIN_BYTES_PER_S));
        Some(self.limit.map_or(own, |limit| own.min(limit)))
    }

    /// Bytes that may be under way.
    pub fn in_flight_cap_bytes(&self) -> u64 {
        let rate = match self.phase {
            Phase::Train => return u64::MAX,
            Phase::Ramp => self.ramp.max(self.bandwidth.greatest()),
            _ => self.bandwidth.greatest() / (1.0 - self.base_loss),
        };
        let seconds = (self.min_rtt_us() + REPORTS_LATE_US) as f64 / 1e6;
        (2.0 * rate * seconds) as u64 + MIN_IN_FLIGHT_BYTES
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Costs by [`Phase`], in its order, with the time of the present phase until `now_us`.
    pub fn costs(&self, now_us: u64) -> [PhaseCost; 5] {
        let mut costs = self.costs;
        costs[self.phase as usize].time_us += now_us.saturating_sub(self.phase_since_us);
        costs
    }

    /// The confirmed rate in bytes a second.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth.greatest()
    }

    pub fn smoothed_rtt_us(&self) -> u64 {
        self.smoothed_rtt_us as u64
    }

    pub fn min_rtt_us(&self) -> u64 {
        self.min_rtt.least().unwrap_or(DEFAULT_RTT_US)
    }

    /// The queueing delay last seen.
    pub fn queue_us(&self) -> u64 {
        self.queue_us
    }

    /// How long to wait for a report before something is sent to ask for one.
    pub fn probe_timeout_us(&self) -> u64 {
        if self.smoothed_rtt_us == 0.0 {
            return 1_000_000;
        }
        (self.smoothed_rtt_us + (4.0 * self.rtt_variation_us).max(10_000.0)) as u64 + REPORTS_LATE_US
    }

    /// Whether the queue is what holds the rate back.
    pub fn is_over_ceiling(&self) -> bool {
        !self.contended && self.queue_us > self.ceiling_us()
    }

    /// Whether the set limit holds the rate back.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some_and(|limit| self.pace().is_some_and(|pace| pace >= limit))
    }

    /// The share of packets that is lost whatever the rate.
    pub fn base_loss(&self) -> f64 {
        self.base_loss
    }

    fn take_rtt(&mut self, now_us: u64, rtt_us: u64) {
        self.min_rtt.add(now_us, rtt_us.max(1));
        let rtt = rtt_us as f64;
        if self.smoothed_rtt_us == 0.0 {
            (self.smoothed_rtt_us, self.rtt_variation_us) = (rtt, rtt / 2.0);
        } else {
            self.rtt_variation_us += ((self.smoothed_rtt_us - rtt).abs() - self.rtt_variation_us) / 4.0;
            self.smoothed_rtt_us += (rtt - self.smoothed_rtt_us) / 8.0;
        }
    }

    /// The clocks of both ends differ by an unknown constant: only differences count.
    fn take_delay(&mut self, now_us: u64, delay_us: u32) {
        let origin = *self.delay_origin.get_or_insert(delay_us);
        let delay = i64::from(delay_us.wrapping_sub(origin).cast_signed());
        self.min_delay.add(now_us, delay);
        self.queue_us = (delay - self.min_delay.least().unwrap_or(delay)).unsigned_abs();
        let least = self.round.queue_us_min.unwrap_or(u64::MAX);
        self.round.queue_us_min = Some(least.min(self.queue_us));
    }

    fn take_delivery(&mut self, sample: &Sample) {
        let newest = (sample.receiver_us, sample.delivered_bytes);
        if self.history.back().is_some_and(|last| last.0 >= newest.0 || last.1 > newest.1) {
            return;
        }
        let span_us = self.span_us();
        // A report that brings nothing new is only worth its time.
        while self.history.len() >= HISTORY
            || self.history.get(1).is_some_and(|second| second.0 + span_us <= newest.0)
        {
            self.history.pop_front();
        }
        if let Some(oldest) = self.history.front()
            && newest.0 - oldest.0 >= span_us / 2
            && newest.0 - oldest.0 < span_us * 4
        {
            self.recent = (newest.1 - oldest.1) as f64 * 1e6 / (newest.0 - oldest.0) as f64;
            self.bandwidth.add(self.recent);
        }
        self.history.push_back(newest);
    }

    /// Over how long a rate is measured.
    fn span_us(&self) -> u64 {
        let rtt_us = self.min_rtt_us();
        if self.phase == Phase::Ramp {
            (rtt_us / 4).clamp(RATE_SPAN_US_MIN, 100_000)
        } else {
            rtt_us.clamp(RATE_SPAN_US_MIN, 200_000)
        }
    }

    fn leave_train(&mut self, now_us: u64, train: Train) {
        let measured = f64::from(train.bytes) * 1e6 / f64::from(train.span_us.max(TRAIN_SPAN_US_MIN));
        let spread = train.span_us >= TRAIN_SPAN_US_MIN && train.bytes > 0;
        // A path that spread the packets has told its rate; one that did not is faster than could be seen.
        (self.ramp, self.ramp_gain) =
            if spread { (0.9 * measured, UP_GAIN) } else { (measured * 0.25, RAMP_GAIN_BLIND) };
        self.ramp = self.ramp.max(MIN_BYTES_PER_S);
        self.begin_step(now_us);
        self.enter(Phase::Ramp, now_us);
    }

    fn end_round(&mut self, now_us: u64) {
        let packets = self.round.acked + self.round.lost;
        let loss = if packets == 0 { 0.0 } else { self.round.lost as f64 / packets as f64 };
        let risen = self.learn_loss(loss, packets);
        self.judge_company();
        self.costs[self.phase as usize].rounds += 1;
        self.phase_rounds += 1;
        if !self.round.app_limited {
            self.bandwidth.next_round();
            self.bandwidth.add(self.recent);
        }
        self.gain_before = self.gain_now;
        match self.phase {
            Phase::Ramp if risen => self.enter(Phase::Down, now_us),
            Phase::Train | Phase::Ramp | Phase::Down => {}
            Phase::Cruise | Phase::Up if risen => {
                self.bandwidth.reset(self.recent);
                self.enter(Phase::Down, now_us);
            }
            Phase::Cruise if self.phase_rounds >= self.cruise_rounds && !self.round.app_limited => {
                if now_us >= self.phase_since_us + CRUISE_US_MIN {
                    self.bandwidth_before_up = self.bandwidth.greatest();
                    self.enter(Phase::Up, now_us);
                }
            }
            Phase::Cruise => {}
            Phase::Up => self.enter(Phase::Down, now_us),
        }
        self.gain_now = self.gain(self.phase);
        let crowded_rounds = self.round.crowded_rounds;
        self.round = Round { crowded_rounds, ..Round::default() };
    }

    /// Each step of the ramp is judged by what arrived of it, a round trip and a few reports later.
    fn judge_ramp(&mut self, now_us: u64) {
        let arrives_us = self.step_since_us + self.min_rtt_us() + (2.0 * self.rtt_variation_us) as u64;
        if !self.step_arrives && now_us >= arrives_us {
            // What came before was slower: it says nothing about this step.
            self.step_arrives = true;
            self.history.clear();
            self.recent = 0.0;
        }
        if now_us < arrives_us + self.span_us() / 2 || self.recent == 0.0 {
            return;
        }
        let confirmed = self.recent / (1.0 - self.base_loss);
        let queue_us_max = (self.ceiling_us() / 2).max(3_000);
        if self.queue_us > queue_us_max {
            self.enter(Phase::Down, now_us);
        } else if confirmed < STEP_TAKEN * self.ramp {
            // Without a queue it may be that not all of the step has come yet.
            let waited_us = now_us - arrives_us - self.span_us() / 2;
            if self.queue_us > queue_us_max / 4 + 2 * self.rtt_variation_us as u64 {
                self.enter(Phase::Down, now_us);
            } else if self.step_unused {
                // What was not sent cannot come: nothing was learnt of the path.
                self.begin_step(now_us);
            } else if waited_us > self.min_rtt_us() {
                self.enter(Phase::Cruise, now_us);
            }
        } else {
            self.ramp = self.ramp.max(confirmed) * self.ramp_gain;
            // A path that took this step without a queue is faster than its first packets told.
            self.ramp_gain = self.ramp_gain.max(RAMP_GAIN_SEEN);
            self.begin_step(now_us);
        }
    }

    fn begin_step(&mut self, now_us: u64) {
        (self.step_since_us, self.step_arrives, self.step_unused) = (now_us, false, false);
    }

    /// Whether going slower has done its work: no more is under way than the path holds without a queue. What is under way is
    /// known now; the queue that a report tells of is a round trip old, and waiting for it would leave the path idle.
    fn is_drained(&self, now_us: u64, in_flight_bytes: u64) -> bool {
        let took_us = now_us.saturating_sub(self.phase_since_us);
        let report_us = self.min_rtt_us().div_ceil(8).min(25_000);
        // After a round trip, what was sent before this phase has been confirmed.
        let path_bytes = self.target() * (self.min_rtt_us() + report_us) as f64 / 1e6;
        took_us >= self.min_rtt_us() + report_us
            && (in_flight_bytes as f64 <= path_bytes || took_us >= 4 * self.min_rtt_us())
    }

    fn leave_down(&mut self, now_us: u64) {
        // More was asked for, and the path gave more: ask again, for more.
        let gave =
            self.bandwidth.greatest() > 1.1 * self.bandwidth_before_up && self.bandwidth_before_up > 0.0;
        if gave && self.queue_us < self.ceiling_us() / 4 {
            // More than once in a row, and still no queue: the path is another one than before.
            self.up_gain = (self.up_gain + 0.25).min(UP_GAIN_MAX);
            self.bandwidth_before_up = self.bandwidth.greatest();
            if self.up_gain > UP_GAIN + 0.3 {
                (self.ramp, self.ramp_gain) = (self.target() * RAMP_GAIN_SEEN, RAMP_GAIN_SEEN);
                self.begin_step(now_us);
                self.enter(Phase::Ramp, now_us);
            } else {
                self.enter(Phase::Up, now_us);
            }
        } else {
            self.up_gain = UP_GAIN;
            self.bandwidth_before_up = 0.0;
            self.cruise_rounds = 4 + (self.draw() % 4) as u32;
            self.enter(Phase::Cruise, now_us);
        }
    }

    /// Learns the loss that does not come from the rate, and says whether there is more than that.
    fn learn_loss(&mut self, loss: f64, packets: u64) -> bool {
        if packets < 8 {
            return false;
        }
        let weight = packets as f64 / (packets as f64 + 400.0);
        if self.gain_before < 0.95 {
            // What is lost at less than the path's rate is lost anyway.
            let (low, weight_before) = self.low_loss.unwrap_or((0.0, 0.0));
            let weight_now = packets as f64;
            let weight_sum = (weight_before + weight_now).min(4_000.0);
            self.low_loss = Some((low + (loss - low) * (weight_now / weight_sum).min(1.0), weight_sum));
            self.base_loss = self.low_loss.map_or(0.0, |(low, _)| low);
        } else if loss < self.base_loss || self.low_loss.is_none() && self.queue_us < self.ceiling_us() / 2 {
            self.base_loss += (loss - self.base_loss) * weight;
        }
        self.base_loss = self.base_loss.min(LOSS_GUARD);
        // Losses come in runs: ten packets lost at once are one event.
        let noise = 2.0 * (10.0 * loss.max(0.001) / packets as f64).sqrt();
        let slack = if self.mode == Mode::Background { 0.01 } else { 0.05 };
        loss > self.base_loss + slack + noise
    }

    /// A queue that stays although ours cannot be in it is somebody else's: then its delay is no reason to yield.
    fn judge_company(&mut self) {
        let Some(queue_us) = self.round.queue_us_min else { return };
        if self.mode != Mode::Fair {
            return;
        }
        let bdp = self.bandwidth.greatest() * (self.min_rtt_us() + REPORTS_LATE_US) as f64 / 1e6;
        let others = queue_us > self.ceiling_us() && self.round.in_flight_bytes_max as f64 <= bdp + 30_000.0;
        if self.contended {
            self.contended = queue_us > self.ceiling_us() / 2;
            self.round.crowded_rounds = 0;
        } else if others {
            self.round.crowded_rounds += 1;
            self.contended = self.round.crowded_rounds >= CROWDED_ROUNDS;
        } else {
            self.round.crowded_rounds = 0;
        }
    }

    fn enter(&mut self, phase: Phase, now_us: u64) {
        let cost = &mut self.costs[self.phase as usize];
        cost.time_us += now_us.saturating_sub(self.phase_since_us);
        self.costs[phase as usize].entries += 1;
        (self.phase, self.phase_since_us, self.phase_rounds) = (phase, now_us, 0);
    }

    fn gain(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Train | Phase::Ramp => 1.0,
            Phase::Cruise if self.contended => 1.0,
            // A little less while a queue stands, so that it does not stand for long.
            Phase::Cruise => 1.0 - 0.1 * (self.queue_us as f64 / self.ceiling_us() as f64).min(1.0),
            Phase::Up => self.up_gain,
            Phase::Down => DOWN_GAIN,
        }
    }

    /// The rate at which the path is full: what arrives, and what is lost on the way whatever one does.
    fn target(&self) -> f64 {
        self.bandwidth.greatest() / (1.0 - self.base_loss)
    }

    fn ceiling_us(&self) -> u64 {
        match self.mode {
            Mode::Fair | Mode::Greedy => (self.min_rtt_us() / 4).max(25_000),
            Mode::Background => (self.min_rtt_us() / 16).max(5_000),
        }
    }

    /// xorshift64: flows that probe at the same time would measure each other.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 33
    }
}

/// The shortest time that a rate is measured over: reports and wake-ups are milliseconds apart.
pub(crate) const RATE_SPAN_US_MIN: u64 = 20_000;

const UP_GAIN: f64 = 1.25;
const UP_GAIN_MAX: f64 = 2.0;
const DOWN_GAIN: f64 = 0.75;
const RAMP_GAIN_BLIND: f64 = 4.0;
const RAMP_GAIN_SEEN: f64 = 2.0;

/// A step from 0.9 to 1.125 of a full path brings 0.89 of itself: what brings more than half of the way from there to all was taken.
const STEP_TAKEN: f64 = 0.95;

/// Loss beyond this is never taken for the path's own.
const LOSS_GUARD: f64 = 0.25;

/// A queue must stay for so many rounds before it is somebody else's.
const CROWDED_ROUNDS: u32 = 3;

/// Reports come this late at most, and a path that delivers them is not idle meanwhile.
const REPORTS_LATE_US: u64 = 30_000;

/// Arrivals closer than this are one wake-up of the receiver, not a rate.
const TRAIN_SPAN_US_MIN: u32 = 200;

const MIN_BYTES_PER_S: f64 = 4_000.0;
const MIN_PACKET_BYTES: f64 = 1_200.0;
const MIN_IN_FLIGHT_BYTES: u64 = 24_000;
const DEFAULT_RTT_US: u64 = 100_000;
const CRUISE_US_MIN: u64 = 200_000;
const RTT_SPAN_US: u64 = 30_000_000;
const DELAY_SPAN_US: u64 = 15_000_000;
const HISTORY: usize = 64;
