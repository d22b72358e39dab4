//! How fast to send: the delivery rate that the receiver confirms, tried a little higher now and then, with a ceiling on the
//! queue that this builds. Loss slows nothing down unless it rises with the rate.
//!
//! ```text
//!  Train --first report--> Ramp --queue or loss rises--> Down --queue gone--> Cruise --some rounds--> Up
//!                          x1.25 or x4 a round trip       ^                                            |
//!                                                         +--------------------------------------------+
//!                                            (the rate grew: Up again at once, in larger steps)
//! ```

mod company;
mod delays;
mod delivery;
mod losses;
mod ramp;

use self::company::{Heard, Share, Watch};
use self::delays::Delays;
use self::delivery::Delivery;
use self::losses::{Judged, Losses, Verdict};
use self::ramp::{Ramp, TRAIN_GAIN};
use crate::proto::train::TrainHeard;

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
    pub train: Option<TrainHeard>,
    pub acked_packets: u64,
    pub lost_packets: u64,
    /// Packets that were declared lost and came after all.
    pub late_packets: u64,
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
    ramp: Ramp,
    up_gain: f64,
    bandwidth_before_up: f64,
    delivery: Delivery,
    delays: Delays,
    losses: Losses,
    watch: Watch,
    /// The window beside a neighbour that fills the queue.
    share: Option<Share>,
    /// Under way at the last report.
    in_flight_bytes: u64,
    round: Round,
    /// The gain of the round before: what is acknowledged now was sent at it.
    gain_before: f64,
    /// The gain that this round began with.
    gain_now: f64,
    random: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    acked: u64,
    lost: u64,
    late: u64,
    queue_us_min: Option<u64>,
    queue_us_sum: u64,
    reports: u64,
    app_limited: bool,
}

impl Controller {
    pub fn new(mode: Mode, limit_bytes_per_s: Option<f64>, rtt_us: Option<u64>, seed: u64) -> Self {
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
            ramp: Ramp::default(),
            up_gain: UP_GAIN,
            bandwidth_before_up: 0.0,
            delivery: Delivery::new(),
            delays: Delays::new(rtt_us),
            losses: Losses::new(),
            watch: Watch::default(),
            share: None,
            in_flight_bytes: 0,
            round: Round::default(),
            gain_before: 1.0,
            gain_now: 1.0,
            random: seed | 1,
        }
    }

    /// Starts the clock.
    pub fn start(&mut self, now_us: u64) {
        self.phase_since_us = now_us;
    }

    pub fn on_report(&mut self, sample: &Sample) {
        if let Some(rtt_us) = sample.rtt_us {
            self.delays.take_rtt(sample.now_us, rtt_us);
        }
        self.delivery.take(sample.receiver_us, sample.delivered_bytes, self.span_us());
        self.in_flight_bytes = sample.in_flight_bytes;
        self.watch.note_rate(self.bandwidth());
        self.take_round(sample);
        if let Some(heard) = sample.train {
            self.take_train(sample.now_us, &heard);
        }
        if self.is_over_ceiling() && self.delivery.recent() > 0.0 && self.phase != Phase::Train {
            self.delivery.forget_greater();
            if matches!(self.phase, Phase::Ramp | Phase::Up) {
                self.enter(Phase::Down, sample.now_us);
            }
        }
        self.keep_share(sample);
        if sample.round_ended {
            self.end_round(sample.now_us);
        }
        match self.phase {
            Phase::Ramp => self.judge_ramp(sample.now_us),
            Phase::Down if self.is_drained(sample.now_us) => self.leave_down(sample.now_us),
            _ => {}
        }
    }

    /// Whether a train is to be sent now, of how many packets of so many bytes.
    pub fn order_train(&mut self, wire_bytes: u64) -> Option<u64> {
        if self.phase != Phase::Ramp || self.limit.is_some_and(|limit| limit < TRAIN_GAIN * self.ramp.rate())
        {
            return None;
        }
        self.ramp.order_train(self.ceiling_us() / 2, self.min_rtt_us(), wire_bytes)
    }

    /// Bytes a second within a train; `None`: as fast as it goes.
    pub fn train_pace(&self) -> Option<f64> {
        if self.phase == Phase::Train { self.limit } else { Some(TRAIN_GAIN * self.ramp.rate()) }
    }

    /// Bytes a second to send now; `None`: as fast as it goes (the first packets).
    pub fn pace(&self) -> Option<f64> {
        if self.phase == Phase::Train {
            return self.limit;
        }
        let own = match (self.phase, &self.share) {
            (Phase::Ramp, _) => self.ramp.rate(),
            // The window rules; the rate only spreads it over a round trip.
            (_, Some(share)) => {
                1.02 * share.window_bytes() * 1e6 / (self.smoothed_rtt_us() + self.report_us()) as f64
            }
            _ if self.is_over_ceiling() && self.excess_bytes() > 0.0 => {
                let over_us = self.queue_us().saturating_sub(self.ceiling_us() / 2) as f64;
                let drain = over_us / self.min_rtt_us().max(100_000) as f64;
                self.target() * (1.0 - drain).clamp(0.5, 0.9)
            }
            (phase, None) => self.target() * self.gain(phase),
        };
        let floor = MIN_PACKET_BYTES * 2.0 * 1e6 / (self.min_rtt_us() + REPORTS_LATE_US) as f64;
        let own = own.max(floor.max(MIN_BYTES_PER_S));
        Some(self.limit.map_or(own, |limit| own.min(limit)))
    }

    /// Bytes that may be under way.
    pub fn in_flight_cap_bytes(&self) -> u64 {
        let rate = match (self.phase, &self.share) {
            (Phase::Train, _) => return u64::MAX,
            (Phase::Ramp, _) => self.ramp.rate().max(self.bandwidth()),
            (_, Some(share)) => return share.window_bytes() as u64 + MIN_IN_FLIGHT_BYTES / 4,
            _ => self.target(),
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
        self.delivery.greatest()
    }

    pub fn smoothed_rtt_us(&self) -> u64 {
        self.delays.smoothed_rtt_us()
    }

    pub fn min_rtt_us(&self) -> u64 {
        self.delays.min_rtt_us()
    }

    /// The queueing delay last seen.
    pub fn queue_us(&self) -> u64 {
        self.delays.queue_us()
    }

    /// How long to wait for a report before something is sent to ask for one.
    pub fn probe_timeout_us(&self) -> u64 {
        self.delays.probe_timeout_us()
    }

    /// Whether the queue is what holds the rate back.
    pub fn is_over_ceiling(&self) -> bool {
        self.mode != Mode::Greedy && self.share.is_none() && self.queue_us() > self.ceiling_us()
    }

    /// Whether the set limit holds the rate back.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some_and(|limit| self.pace().is_some_and(|pace| pace >= limit))
    }

    /// The share of packets that is lost whatever the rate.
    pub fn base_loss(&self) -> f64 {
        self.losses.base()
    }

    fn take_train(&mut self, now_us: u64, heard: &TrainHeard) {
        match self.phase {
            Phase::Train => {
                self.ramp.start(now_us, heard.train);
                self.watch.note_first(heard.train);
                self.delays.expect_jitter(u64::from(heard.train.jitter_us));
                self.enter(Phase::Ramp, now_us);
            }
            Phase::Ramp => {
                let ended = self.ramp.take_train(now_us, heard);
                if let Some(rate) = self.ramp.told() {
                    self.watch.note_capacity(rate);
                }
                if let Some(phase) = ended {
                    self.enter(phase, now_us);
                }
            }
            Phase::Cruise | Phase::Up | Phase::Down => {}
        }
    }

    fn take_round(&mut self, sample: &Sample) {
        if let Some(delay_us) = sample.delay_us {
            self.delays.take_one_way(sample.now_us, delay_us);
            let queue_us = self.queue_us();
            self.round.queue_us_min =
                Some(self.round.queue_us_min.map_or(queue_us, |least| least.min(queue_us)));
            self.round.queue_us_sum += queue_us;
            self.round.reports += 1;
        }
        self.round.acked += sample.acked_packets;
        self.round.lost += sample.lost_packets;
        self.round.late += sample.late_packets;
        self.round.app_limited |= sample.app_limited;
        self.ramp.note_unused(sample.app_limited);
    }

    /// Over how long a rate is measured.
    fn span_us(&self) -> u64 {
        let rtt_us = self.min_rtt_us();
        if self.phase == Phase::Ramp {
            self.ramp.span_us(rtt_us)
        } else {
            rtt_us.max(8 * self.ramp.jitter_us()).clamp(RATE_SPAN_US_MIN, 200_000)
        }
    }

    fn judge_ramp(&mut self, now_us: u64) {
        let seen = ramp::Seen {
            now_us,
            rtt_us: self.min_rtt_us(),
            variation_us: self.delays.variation_us(),
            queue_us: self.queue_us(),
            queue_us_max: (self.ceiling_us() / 2).max(3_000),
            base_loss: self.base_loss(),
        };
        if let Some(phase) = self.ramp.judge(&seen, &mut self.delivery) {
            self.enter(phase, now_us);
        }
    }

    fn end_round(&mut self, now_us: u64) {
        let round = std::mem::take(&mut self.round);
        let verdict = self.losses.judge(&Judged {
            now_us,
            acked: round.acked,
            lost: round.lost.saturating_sub(round.late),
            queue_us: round.queue_us_sum / round.reports.max(1),
            queue_us_max: self.ceiling_us() / 4,
            slow: self.gain_before < 0.95,
            company: self.share.is_some(),
            slack: if self.mode == Mode::Background { 0.01 } else { 0.05 },
        });
        self.costs[self.phase as usize].rounds += 1;
        self.phase_rounds += 1;
        if !round.app_limited {
            self.delivery.next_round();
        }
        self.gain_before = self.gain_now;
        if self.share.is_none() {
            self.judge_company(now_us, &round);
        }
        match (self.phase, verdict) {
            _ if self.share.is_some() => {}
            (Phase::Ramp, Verdict::Risen) => self.enter(Phase::Down, now_us),
            (Phase::Train | Phase::Ramp | Phase::Down, _) => {}
            // Where others share the queue, the greatest of what came is too much.
            (Phase::Cruise | Phase::Up, Verdict::Risen) | (Phase::Cruise, Verdict::Crowded) => {
                self.delivery.forget_greater();
                self.enter(Phase::Down, now_us);
            }
            (Phase::Cruise, _) if self.phase_rounds >= self.cruise_rounds && !round.app_limited => {
                if now_us >= self.phase_since_us + CRUISE_US_MIN {
                    self.bandwidth_before_up = self.bandwidth();
                    self.enter(Phase::Up, now_us);
                }
            }
            (Phase::Cruise, _) => {}
            (Phase::Up, _) => self.enter(Phase::Down, now_us),
        }
        self.gain_now = self.gain(self.phase);
    }

    fn judge_company(&mut self, now_us: u64, round: &Round) {
        let Some(shortest_us) = round.queue_us_min else { return };
        if self.mode != Mode::Fair || matches!(self.phase, Phase::Train | Phase::Ramp) {
            return;
        }
        let rate = self.bandwidth();
        if self.watch.is_crowded(shortest_us, self.ceiling_us() / 4, rate) {
            let doubted = self.watch.is_doubted();
            // What there was before the neighbour came, and what it left.
            let alone = self.watch.rate_alone().max(rate);
            let seconds = (self.smoothed_rtt_us() + self.report_us()) as f64 / 1e6;
            self.share = Some(Share::new(now_us, (rate + alone) / 2.0 * seconds, self.queue_us(), doubted));
            self.enter(Phase::Cruise, now_us);
        }
    }

    fn keep_share(&mut self, sample: &Sample) {
        let Some(mut share) = self.share.take() else { return };
        let heard = Heard {
            now_us: sample.now_us,
            rtt_us: self.smoothed_rtt_us() + self.report_us(),
            min_rtt_us: self.min_rtt_us(),
            queue_us: self.queue_us(),
            acked: sample.acked_packets,
            lost: sample.lost_packets.saturating_sub(sample.late_packets),
            round_ended: sample.round_ended,
            in_flight_bytes: sample.in_flight_bytes,
            path_bytes: self.delivery.recent() * (self.min_rtt_us() + self.report_us()) as f64 / 1e6,
            capacity: self.watch.capacity(),
            capacity_known: self.watch.is_capacity_known(),
            base_loss: self.base_loss(),
        };
        if share.on_report(&heard, |packets| self.losses.usual(packets)) {
            self.share = Some(share);
        } else {
            self.watch.forget(share.is_doubted());
        }
    }

    /// Whether going slower has done its work: no more is under way than the path holds without a queue. What is under way is
    /// known now; the queue that a report tells of is a round trip old, and waiting for it would leave the path idle.
    fn is_drained(&self, now_us: u64) -> bool {
        let took_us = now_us.saturating_sub(self.phase_since_us);
        // After a round trip, what was sent before this phase has been confirmed.
        took_us >= self.min_rtt_us() + self.report_us()
            && (self.excess_bytes() <= 0.0 || took_us >= 4 * self.min_rtt_us())
    }

    /// How much more is under way than the path holds without a queue.
    fn excess_bytes(&self) -> f64 {
        let path_us = self.min_rtt_us() + self.report_us() + self.ramp.jitter_us() / 2;
        self.in_flight_bytes as f64 - self.target() * path_us as f64 / 1e6
    }

    fn leave_down(&mut self, now_us: u64) {
        // More was asked for, and the path gave more: ask again, for more.
        let gave = self.bandwidth() > 1.1 * self.bandwidth_before_up && self.bandwidth_before_up > 0.0;
        if gave && self.queue_us() < self.ceiling_us() / 4 {
            // More than once in a row, and still no queue: the path is another one than before.
            self.up_gain = (self.up_gain + 0.25).min(UP_GAIN_MAX);
            self.bandwidth_before_up = self.bandwidth();
            if self.up_gain > UP_GAIN + 0.3 {
                self.ramp.restart(now_us, self.target());
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

    fn enter(&mut self, phase: Phase, now_us: u64) {
        let cost = &mut self.costs[self.phase as usize];
        cost.time_us += now_us.saturating_sub(self.phase_since_us);
        self.costs[phase as usize].entries += 1;
        (self.phase, self.phase_since_us, self.phase_rounds) = (phase, now_us, 0);
    }

    fn gain(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Train | Phase::Ramp => 1.0,
            Phase::Cruise if self.mode == Mode::Greedy => 1.0,
            // A little less while a queue stands, so that it does not stand for long.
            Phase::Cruise => 1.0 - 0.1 * (self.queue_us() as f64 / self.ceiling_us() as f64).min(1.0),
            Phase::Up => self.up_gain,
            Phase::Down => DOWN_GAIN,
        }
    }

    /// The rate at which the path is full: what arrives, and what is lost on the way whatever one does.
    fn target(&self) -> f64 {
        self.bandwidth() / (1.0 - self.base_loss())
    }

    fn ceiling_us(&self) -> u64 {
        match self.mode {
            Mode::Fair | Mode::Greedy => (self.min_rtt_us() / 4).max(25_000),
            Mode::Background => (self.min_rtt_us() / 16).max(5_000),
        }
    }

    /// How often the receiver reports.
    fn report_us(&self) -> u64 {
        self.min_rtt_us().div_ceil(8).min(25_000)
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

/// Reports come this late at most, and a path that delivers them is not idle meanwhile.
const REPORTS_LATE_US: u64 = 30_000;

const MIN_BYTES_PER_S: f64 = 4_000.0;
const MIN_PACKET_BYTES: f64 = 1_200.0;
const MIN_IN_FLIGHT_BYTES: u64 = 24_000;
const CRUISE_US_MIN: u64 = 200_000;
