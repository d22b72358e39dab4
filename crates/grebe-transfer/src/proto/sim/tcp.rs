//! TCP flows that share the emulated path: how much they send when, and nothing of what they carry.

use std::collections::VecDeque;

/// How a TCP flow decides how much is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 9438): grows until packets are lost, and fills the queue.
    Cubic,
    /// BBR, version 1: the delivery rate that it sees, and twice the product of rate and round trip under way at most.
    Bbr,
}

/// A TCP flow from the sender's side to the receiver's that never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// How it behaves.
    pub congestion: Congestion,
    /// When it starts.
    pub start_us: u64,
}

/// What a neighbour got of the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NeighbourEnd {
    /// Packets sent.
    pub packets: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Bytes on the wire that came, every tenth of a second.
    pub delivered_by_tenth: Vec<u64>,
}

/// The sending half. The other one says of each packet that it came.
#[derive(Debug)]
pub(super) struct Tcp {
    start_us: u64,
    model: Model,
    next_number: u64,
    flight: VecDeque<Sent>,
    under_way: u64,
    delivered: u64,
    delivered_us: u64,
    /// When the packet left that came last.
    delivered_at_us: u64,
    heard_us: u64,
    min_rtt_us: u64,
    min_rtt_since_us: u64,
    next_us: u64,
    /// What is left of the packets that leave at once.
    burst_left: u64,
    pub end: NeighbourEnd,
}

#[derive(Debug)]
enum Model {
    Cubic(Cubic),
    Bbr(Bbr),
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u64,
    at_us: u64,
    delivered: u64,
    delivered_us: u64,
    delivered_at_us: u64,
    /// It left while BBR paused: that it came slowly tells nothing.
    paused: bool,
    acked: bool,
}

/// What an acknowledgement told.
#[derive(Debug, Clone, Copy)]
struct Ack {
    now_us: u64,
    rtt_us: u64,
    min_rtt_us: u64,
    packets_per_s: f64,
    paused: bool,
    lost: u64,
    /// The packet that came.
    number: u64,
    next_number: u64,
    under_way: u64,
}

impl Tcp {
    pub fn new(neighbour: &Neighbour) -> Self {
        Self {
            start_us: neighbour.start_us,
            model: match neighbour.congestion {
                Congestion::Cubic => Model::Cubic(Cubic::new()),
                Congestion::Bbr => Model::Bbr(Bbr::new((neighbour.start_us / 1_000) as usize)),
            },
            next_number: 0,
            flight: VecDeque::new(),
            under_way: 0,
            delivered: 0,
            delivered_us: 0,
            delivered_at_us: 0,
            heard_us: neighbour.start_us,
            min_rtt_us: u64::MAX,
            min_rtt_since_us: 0,
            next_us: neighbour.start_us,
            burst_left: 0,
            end: NeighbourEnd::default(),
        }
    }

    /// The number of a packet that leaves now.
    pub fn poll_transmit(&mut self, now_us: u64) -> Option<u64> {
        if now_us < self.start_us {
            return None;
        }
        if now_us >= self.heard_us + self.silence_us() && self.under_way > 0 {
            self.end.lost += self.under_way;
            self.flight.clear();
            self.under_way = 0;
            self.heard_us = now_us;
            if let Model::Cubic(cubic) = &mut self.model {
                cubic.on_silence();
            }
        }
        if !self.has_room() || self.burst_left == 0 && now_us < self.next_us {
            return None;
        }
        if self.burst_left == 0 {
            let (burst, packets_per_s) = match &self.model {
                Model::Cubic(_) => (1, f64::INFINITY),
                Model::Bbr(bbr) => (bbr.burst(), bbr.packets_per_s()),
            };
            let takes_us = (burst as f64 * 1e6 / packets_per_s) as u64;
            self.next_us = self.next_us.max(now_us.saturating_sub(1_000)) + takes_us;
            self.burst_left = burst;
        }
        self.burst_left -= 1;
        if self.under_way == 0 {
            (self.delivered_us, self.delivered_at_us, self.heard_us) = (now_us, now_us, now_us);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.under_way += 1;
        self.end.packets += 1;
        let Self { delivered, delivered_us, delivered_at_us, .. } = *self;
        let paused = matches!(&self.model, Model::Bbr(bbr) if bbr.drain_until_us.is_some());
        let sent =
            Sent { number, at_us: now_us, delivered, delivered_us, delivered_at_us, paused, acked: false };
        self.flight.push_back(sent);
        Some(number)
    }

    pub fn next_time_us(&self, now_us: u64) -> u64 {
        let silent_us = if self.under_way > 0 { self.heard_us + self.silence_us() } else { u64::MAX };
        let next_us = if !self.has_room() {
            u64::MAX
        } else if self.burst_left > 0 {
            now_us
        } else {
            self.next_us
        };
        next_us.min(silent_us).max(self.start_us).max(now_us + 1)
    }

    /// After so long without an answer, what is under way is lost.
    fn silence_us(&self) -> u64 {
        if self.min_rtt_us == u64::MAX { SILENCE_US } else { SILENCE_US_MIN + 3 * self.min_rtt_us }
    }

    fn has_room(&self) -> bool {
        let (window, burst) = match &self.model {
            Model::Cubic(cubic) => (cubic.window, 1),
            Model::Bbr(bbr) => (bbr.window(), bbr.burst()),
        };
        // What leaves at once waits until there is room for all of it.
        let wants = if self.burst_left > 0 || self.under_way == 0 { 1 } else { burst.min(window as u64 / 2) };
        self.under_way + wants <= window as u64
    }

    /// A packet of this number came, says the other end.
    pub fn on_ack(&mut self, now_us: u64, number: u64) {
        self.heard_us = now_us;
        let Some(first) = self.flight.front().map(|sent| sent.number) else { return };
        let Some(sent) = number.checked_sub(first).and_then(|at| self.flight.get_mut(at as usize)) else {
            return;
        };
        if std::mem::replace(&mut sent.acked, true) {
            return;
        }
        let sent = *sent;
        self.under_way -= 1;
        self.delivered += 1;
        let rtt_us = now_us - sent.at_us;
        let expired = now_us > self.min_rtt_since_us + MIN_RTT_SPAN_US;
        if rtt_us <= self.min_rtt_us || expired {
            if let (true, Model::Bbr(bbr)) = (expired && self.min_rtt_us != u64::MAX, &mut self.model) {
                bbr.drain_until_us = Some(now_us + BBR_DRAIN_US + self.min_rtt_us);
            }
            (self.min_rtt_us, self.min_rtt_since_us) = (rtt_us, now_us);
        }
        // What came faster than it was sent had been waiting in the queue: the kernel takes the longer time.
        let took_us = (now_us - sent.delivered_us).max(sent.at_us - sent.delivered_at_us).max(1);
        let packets_per_s = (self.delivered - sent.delivered) as f64 * 1e6 / took_us as f64;
        (self.delivered_us, self.delivered_at_us) = (now_us, sent.at_us);
        let mut lost = 0;
        while let Some(oldest) = self.flight.front()
            && (oldest.acked || oldest.number + DUPLICATES < number)
        {
            lost += u64::from(!oldest.acked);
            self.flight.pop_front();
        }
        self.under_way -= lost;
        self.end.lost += lost;
        let tenth = (now_us / 100_000) as usize;
        self.end
            .delivered_by_tenth
            .resize(tenth + 1, self.end.delivered_by_tenth.last().copied().unwrap_or(0));
        self.end.delivered_by_tenth[tenth] = self.delivered * (PACKET_BYTES as u64 + 28);
        let ack = Ack {
            now_us,
            rtt_us,
            min_rtt_us: self.min_rtt_us,
            packets_per_s,
            paused: sent.paused,
            lost,
            number,
            next_number: self.next_number,
            under_way: self.under_way,
        };
        match &mut self.model {
            Model::Cubic(cubic) => cubic.on_ack(&ack),
            Model::Bbr(bbr) => bbr.on_ack(&ack),
        }
    }
}

#[derive(Debug)]
struct Cubic {
    window: f64,
    threshold: f64,
    window_max: f64,
    window_reno: f64,
    epoch_us: Option<u64>,
    recovery_end: u64,
}

impl Cubic {
    fn new() -> Self {
        Self {
            window: 10.0,
            threshold: f64::INFINITY,
            window_max: 0.0,
            window_reno: 0.0,
            epoch_us: None,
            recovery_end: 0,
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.lost > 0 {
            if ack.number >= self.recovery_end {
                // Fast convergence: one that gets less than before leaves more.
                let yields = if self.window < self.window_max { 0.85 } else { 1.0 };
                self.window_max = self.window * yields;
                self.window = (self.window * CUBIC_BETA).max(2.0);
                (self.threshold, self.epoch_us) = (self.window, None);
                self.recovery_end = ack.next_number;
            }
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
            // HyStart: the slow start ends where the delay grows.
            if ack.rtt_us > ack.min_rtt_us + (ack.min_rtt_us / 8).clamp(4_000, 16_000) {
                self.threshold = self.window;
            }
            return;
        }
        let epoch_us = *self.epoch_us.get_or_insert_with(|| {
            self.window_max = self.window_max.max(self.window);
            self.window_reno = self.window;
            ack.now_us
        });
        let k = ((self.window_max - self.window_max.min(self.threshold)) / CUBIC_C).cbrt();
        let t = (ack.now_us - epoch_us + ack.rtt_us) as f64 / 1e6;
        let target = self.window_max + CUBIC_C * (t - k).powi(3);
        self.window_reno += 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) / self.window;
        let target = target.max(self.window_reno).min(1.5 * self.window);
        self.window += ((target - self.window) / self.window).max(0.01 / self.window);
    }

    fn on_silence(&mut self) {
        self.threshold = self.window * CUBIC_BETA;
        (self.window_max, self.window, self.epoch_us) = (self.window, 2.0, None);
    }
}

/// As Linux 6 has it.
#[derive(Debug)]
struct Bbr {
    rates: VecDeque<(u64, f64)>,
    window: f64,
    recovery: Option<Recovery>,
    round: u64,
    round_end: u64,
    phase: BbrPhase,
    full: (f64, u32),
    drain_until_us: Option<u64>,
    probe_index: usize,
    probe_since_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum BbrPhase {
    Startup,
    Drain,
    Probe,
}

/// Packets were lost: for one round trip no more leaves than comes.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    window_before: f64,
    conserves_until: u64,
    until: u64,
}

impl Bbr {
    fn new(probe_index: usize) -> Self {
        Self {
            rates: VecDeque::new(),
            window: 10.0,
            recovery: None,
            round: 0,
            round_end: 0,
            phase: BbrPhase::Startup,
            full: (0.0, 0),
            drain_until_us: None,
            probe_index: 2 + probe_index % 6,
            probe_since_us: 0,
        }
    }

    fn greatest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    fn window(&self) -> f64 {
        if self.drain_until_us.is_some() { self.window.min(BBR_WINDOW_MIN) } else { self.window }
    }

    fn packets_per_s(&self) -> f64 {
        let gain = match self.phase {
            BbrPhase::Startup => BBR_HIGH_GAIN,
            BbrPhase::Drain => 1.0 / BBR_HIGH_GAIN,
            BbrPhase::Probe if self.drain_until_us.is_some() => 1.0,
            BbrPhase::Probe => BBR_CYCLE[self.probe_index],
        };
        if self.rates.is_empty() { f64::INFINITY } else { BBR_MARGIN * gain * self.greatest() }
    }

    /// Packets that leave at once: a millisecond's, as the kernel hands them to the network card.
    fn burst(&self) -> u64 {
        if self.rates.is_empty() {
            return 2;
        }
        (self.packets_per_s() * 1_500.0 / 1_024.0 / 1_448.0).clamp(2.0, 44.0) as u64
    }

    fn on_ack(&mut self, ack: &Ack) {
        let round_over = ack.number >= self.round_end;
        if round_over {
            self.round += 1;
            self.round_end = ack.next_number;
        }
        if !ack.paused || ack.packets_per_s >= self.greatest() {
            while self.rates.front().is_some_and(|(round, _)| round + 10 <= self.round) {
                self.rates.pop_front();
            }
            while self.rates.back().is_some_and(|(_, rate)| *rate <= ack.packets_per_s) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, ack.packets_per_s));
        }
        if self.drain_until_us.is_some_and(|until_us| ack.now_us > until_us) {
            self.drain_until_us = None;
        }
        let product = self.greatest() * ack.min_rtt_us as f64 / 1e6;
        self.move_on(ack, round_over, product);
        self.set_window(ack, product);
    }

    fn move_on(&mut self, ack: &Ack, round_over: bool, product: f64) {
        match self.phase {
            BbrPhase::Startup if round_over => {
                if self.greatest() >= 1.25 * self.full.0 {
                    self.full = (self.greatest(), 0);
                } else {
                    self.full.1 += 1;
                }
                if self.full.1 >= 3 {
                    self.phase = BbrPhase::Drain;
                }
            }
            BbrPhase::Startup => {}
            BbrPhase::Drain if ack.under_way as f64 <= product => {
                (self.phase, self.probe_since_us) = (BbrPhase::Probe, ack.now_us);
            }
            BbrPhase::Drain => {}
            BbrPhase::Probe => {
                let long = ack.now_us > self.probe_since_us + ack.min_rtt_us;
                let over = match self.probe_index {
                    0 => long && (ack.lost > 0 || ack.under_way as f64 >= 1.25 * product),
                    1 => long || ack.under_way as f64 <= product,
                    _ => long,
                };
                if over {
                    self.probe_index = (self.probe_index + 1) % BBR_CYCLE.len();
                    self.probe_since_us = ack.now_us;
                }
            }
        }
    }

    fn set_window(&mut self, ack: &Ack, product: f64) {
        let under_way = ack.under_way as f64;
        if ack.lost > 0 {
            self.window = (self.window - ack.lost as f64).max(1.0);
            if self.recovery.is_none() {
                let until = ack.next_number;
                let window_before = self.window + ack.lost as f64;
                self.recovery = Some(Recovery { window_before, conserves_until: until, until });
                self.window = under_way + 1.0;
            }
        }
        if let Some(recovery) = self.recovery {
            if ack.number < recovery.conserves_until {
                if ack.lost > 0 {
                    // What is sent again takes another round trip.
                    self.recovery = Some(Recovery { until: ack.next_number, ..recovery });
                }
                self.window = self.window.max(under_way + 1.0);
                return;
            }
            if ack.number >= recovery.until {
                self.window = self.window.max(recovery.window_before);
                self.recovery = None;
            }
        }
        let gain = if self.phase == BbrPhase::Probe { 2.0 } else { BBR_HIGH_GAIN };
        // Room for what the sending host and the network card hold back.
        let target =
            gain * product + 3.0 * self.burst() as f64 + if self.probe_index == 0 { 2.0 } else { 0.0 };
        let grown = self.window + 1.0;
        self.window = if self.phase != BbrPhase::Startup {
            grown.min(target)
        } else if self.window < target {
            grown
        } else {
            self.window
        };
        self.window = self.window.max(BBR_WINDOW_MIN);
    }
}

/// UDP payload of as many bytes on the wire as a full TCP segment has.
pub(super) const PACKET_BYTES: usize = 1_472;

/// An acknowledgement's, likewise.
pub(super) const ACK_BYTES: usize = 24;

/// A packet is lost when one that left so many later came.
const DUPLICATES: u64 = 3;

const SILENCE_US: u64 = 1_000_000;
const SILENCE_US_MIN: u64 = 200_000;
const MIN_RTT_SPAN_US: u64 = 10_000_000;
const CUBIC_BETA: f64 = 0.7;
const CUBIC_C: f64 = 0.4;
const BBR_HIGH_GAIN: f64 = 2.885;
const BBR_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// It paces a little below what it saw.
const BBR_MARGIN: f64 = 0.99;
const BBR_WINDOW_MIN: f64 = 4.0;
const BBR_DRAIN_US: u64 = 200_000;
