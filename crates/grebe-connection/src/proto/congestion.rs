//! Congestion control: the send rate of a transfer, and its bytes in flight.
//!
//! The [`Controller`] keeps a model of the path, fed by the receiver's reports, and is in one of five states.
//! Each state gives the pace, the cap of bytes in flight, and the next state after a report.
//!
//! Loss slows nothing down unless it rises with the rate. docs/transfer-protocol.md, "Congestion control", is
//! the specification, with a drawing of all states. [`constants`] has every number with its unit and its
//! source.

mod competing_window;
mod constants;
mod cubic;
mod estimators;
mod loss;
mod loss_window;
mod path_model;
mod phase;
mod ramp;
mod rate_probing;
mod rate_response;

use self::competing_window::CompetingWindow;
use self::constants::*;
pub(crate) use self::constants::{
    ATTEMPTS, PATH_WINDOW_US, RATE_SPAN_US_MAX, RATE_SPAN_US_MIN, TRAIN_SPAN_US_MIN,
};
use self::loss_window::LossWindow;
pub(crate) use self::path_model::AckSample;
pub use self::path_model::Mode;
use self::path_model::{PathModel, Round};
use self::phase::{NextState, PhaseLog};
pub use self::phase::{Phase, PhaseCost};
use self::ramp::Ramp;
use self::rate_probing::RateProbing;
pub(crate) use self::rate_response::{PaceClass, PaceCounts};
use crate::proto::wire::Train;

#[derive(Debug)]
pub(crate) struct Controller {
    limit_bytes_per_s: Option<f64>,
    seed: u64,
    path: PathModel,
    state: State,
    phases: PhaseLog,
}

#[derive(Debug)]
enum State {
    /// The first packets leave at once. Their spacing on arrival gives the first rate.
    FirstTrain,
    Ramp(Ramp),
    RateProbing(RateProbing),
    CompetingWindow(CompetingWindow),
    LossWindow(LossWindow),
}

impl Controller {
    pub(crate) fn new(mode: Mode, limit_bytes_per_s: Option<f64>, rtt_us: Option<u64>, seed: u64) -> Self {
        Self {
            limit_bytes_per_s,
            seed,
            path: PathModel::new(mode, rtt_us),
            state: State::FirstTrain,
            phases: PhaseLog::new(),
        }
    }

    /// Starts the clock.
    pub(crate) fn start(&mut self, now_us: u64) {
        self.phases.start(now_us);
    }

    pub(crate) fn on_report(&mut self, sample: &AckSample) {
        let Self { path, state, .. } = self;
        path.on_report(sample);
        let round = sample.round_ended.then(|| path.end_round(sample.now_us, state.is_window()));
        if round.is_some() {
            self.phases.end_round();
        }
        let next = self.state.on_report(&mut self.path, sample, round.as_ref());
        if let Some(next) = next {
            self.follow(next, sample.now_us);
        }
        if let (State::FirstTrain, Some(heard)) = (&self.state, sample.train) {
            self.ramp_after(sample.now_us, heard.train);
        }
        if round.is_some() {
            self.path.begin_round(self.state.gain(&self.path));
        }
        self.phases.note(self.phase(), sample.now_us);
    }

    /// Takes the measurement of the first train, or of the handshake's.
    pub(crate) fn ramp_after(&mut self, now_us: u64, first: Train) {
        if let Some(rate) = first.rate() {
            self.path.capacity.on_rate(rate);
        }
        self.path.expect_jitter(u64::from(first.jitter_us));
        self.state = State::Ramp(Ramp::after_first_train(now_us, first));
        self.phases.note(Phase::Ramp, now_us);
    }

    /// Present pace in bytes per second. `None`: unpaced, for the first packets.
    pub(crate) fn pace(&self) -> Option<f64> {
        let Some(pace) = self.state.pace(&self.path) else { return self.limit_bytes_per_s };
        let rtt_us = (self.path.rtt.min_us() + REPORT_DELAY_US_MAX) as f64;
        let pace = pace.max(WINDOW_SEGMENTS_MIN * SEGMENT_BYTES * 1e6 / rtt_us);
        Some(self.limit_bytes_per_s.map_or(pace, |limit| pace.min(limit)))
    }

    /// Maximum bytes in flight.
    pub(crate) fn in_flight_cap_bytes(&self) -> u64 {
        self.state.cap_bytes(&self.path)
    }

    /// Number of packets of `packet_bytes` in the train to send now, if one is due; `packets_max` are
    /// available.
    pub(crate) fn order_train(&mut self, packet_bytes: u64, packets_max: u64) -> Option<u64> {
        match &mut self.state {
            State::Ramp(ramp) if self.limit_bytes_per_s.is_none_or(|limit| limit >= ramp.train_pace()) => {
                ramp.order_train(&self.path, packet_bytes, packets_max)
            }
            _ => None,
        }
    }

    /// Pace within a train in bytes per second. `None`: unpaced.
    pub(crate) fn train_pace(&self) -> Option<f64> {
        match &self.state {
            State::Ramp(ramp) => Some(ramp.train_pace()),
            _ => self.pace(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match &self.state {
            State::FirstTrain => Phase::Train,
            State::Ramp(_) => Phase::Ramp,
            State::RateProbing(probing) => probing.phase(),
            State::CompetingWindow(window) => window.phase(),
            State::LossWindow(_) => Phase::LossWindow,
        }
    }

    /// Present pace relative to the assumed capacity of the path.
    pub(crate) fn pace_class(&self) -> PaceClass {
        match &self.state {
            State::RateProbing(probing) => probing.pace_class(&self.path),
            State::LossWindow(window) => window.pace_class(),
            State::FirstTrain | State::Ramp(_) | State::CompetingWindow(_) => PaceClass::Unknown,
        }
    }

    /// Costs by [`Phase`], in its order. The present phase counts until `now_us`.
    pub(crate) fn costs(&self, now_us: u64) -> [PhaseCost; Phase::COUNT] {
        self.phases.until(now_us)
    }

    /// Confirmed rate in bytes per second.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.path.bandwidth()
    }

    /// Rate to have data ready for, in bytes per second. At the start the pace, which a train measured, is far
    /// ahead of the confirmed rate.
    pub(crate) fn rate_ahead(&self) -> f64 {
        let pace = self.state.pace(&self.path).and_then(|_| self.pace());
        self.bandwidth().max(pace.unwrap_or(0.0))
    }

    pub(crate) fn smoothed_rtt_us(&self) -> u64 {
        self.path.rtt.smoothed_us()
    }

    /// Maximum queue that this flow may build alone.
    pub(crate) fn queue_ceiling_us(&self) -> u64 {
        self.path.queue_ceiling_us()
    }

    /// Latest queue delay.
    pub(crate) fn queue_us(&self) -> u64 {
        self.path.queue.now_us
    }

    /// Time to wait for a report before a probe packet asks for one.
    pub(crate) fn probe_timeout_us(&self) -> u64 {
        self.path.rtt.probe_timeout_us()
    }

    /// Whether the queue limits the rate.
    pub(crate) fn is_over_ceiling(&self) -> bool {
        !self.state.is_window() && self.path.is_over_ceiling()
    }

    /// Whether the configured limit holds the rate back.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit_bytes_per_s.is_some_and(|limit| self.pace().is_some_and(|pace| pace >= limit))
    }

    /// Share of packets that the path loses at any rate.
    pub(crate) fn base_loss(&self) -> f64 {
        self.path.loss.base
    }

    fn follow(&mut self, next: NextState, now_us: u64) {
        // Varies the random numbers between flows that begin together, and between states.
        let seed = self.seed.wrapping_add(now_us);
        self.state = match next {
            NextState::RampFrom(rate) => State::Ramp(Ramp::from_rate(now_us, rate)),
            NextState::Cruise => State::RateProbing(RateProbing::cruise(now_us, seed)),
            NextState::Drain => State::RateProbing(RateProbing::drain(now_us, seed)),
            NextState::ProbeUp => State::RateProbing(RateProbing::probe_up(now_us, seed, &self.path)),
            NextState::CompetingWindow => State::CompetingWindow(CompetingWindow::begin(now_us, &self.path)),
            NextState::LossWindow { overrun } => {
                State::LossWindow(LossWindow::begin(now_us, &mut self.path, overrun))
            }
        };
    }
}

impl State {
    /// Whether a window limits the flow, because other flows fill the path.
    fn is_window(&self) -> bool {
        matches!(self, Self::CompetingWindow(_) | Self::LossWindow(_))
    }

    /// Pace in bytes per second. `None`: unpaced.
    fn pace(&self, path: &PathModel) -> Option<f64> {
        match self {
            Self::FirstTrain => None,
            Self::Ramp(ramp) => Some(ramp.pace()),
            Self::RateProbing(probing) => Some(probing.pace(path)),
            Self::CompetingWindow(window) => Some(path.window_pace(window.window_bytes())),
            Self::LossWindow(window) => Some(path.window_pace(window.window_bytes())),
        }
    }

    fn cap_bytes(&self, path: &PathModel) -> u64 {
        match self {
            Self::FirstTrain => u64::MAX,
            Self::Ramp(ramp) => ramp.cap_bytes(path),
            Self::RateProbing(probing) => probing.cap_bytes(path),
            Self::CompetingWindow(window) => path.window_cap_bytes(window.window_bytes()),
            Self::LossWindow(window) => window.cap_bytes(path),
        }
    }

    fn on_report(
        &mut self,
        path: &mut PathModel,
        sample: &AckSample,
        round: Option<&Round>,
    ) -> Option<NextState> {
        match self {
            Self::FirstTrain => None,
            Self::Ramp(ramp) => ramp.on_report(path, sample, round),
            Self::RateProbing(probing) => probing.on_report(sample.now_us, path, round),
            Self::CompetingWindow(window) => window.on_report(path, sample),
            Self::LossWindow(window) => window.on_report(path, sample),
        }
    }

    /// Gain relative to the path's full rate, in states that pace by rate.
    fn gain(&self, path: &PathModel) -> f64 {
        match self {
            Self::FirstTrain | Self::Ramp(_) | Self::CompetingWindow(_) | Self::LossWindow(_) => 1.0,
            Self::RateProbing(probing) => probing.gain(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::train::TrainReport;

    #[test]
    fn data_for_the_measured_rate_is_ready_before_any_arrive_at_it() {
        let mut controller = Controller::new(Mode::Fair, None, Some(150_000), 1);
        assert_eq!(controller.rate_ahead(), 0.0);
        let train = Train { mark: 1, span_us: 600, bytes: 37_500, jitter_us: 0 };
        let train = Some(TrainReport { train, sent_span_us: 100, sent_bytes: 38_700 });
        controller.on_report(&AckSample { now_us: 150_000, train, ..AckSample::default() });
        assert_eq!((controller.rate_ahead() * 8e-6).round(), 450.0, "nine tenths of the train's rate");
        assert_eq!(controller.bandwidth(), 0.0);
    }
}
