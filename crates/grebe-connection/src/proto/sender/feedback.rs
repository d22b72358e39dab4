//! Reports of the receiver: acknowledges packets, declares losses and informs the controller.

use super::{Limit, Sender};
use crate::proto::congestion::{AckSample, PaceCounts, Phase, RATE_SPAN_US_MIN, TRAIN_SPAN_US_MIN};
use crate::proto::sent_packets::{Item, PacketState, SentPacket};
use crate::proto::train::FIRST_PACKETS;
use crate::proto::wire::{
    Feedback, OVERHEAD_BYTES, ReceivedPackets, SENT_AHEAD_BYTES_MAX, Train, UDP_IP_BYTES,
};

impl Sender {
    /// Takes a report of the receiver.
    pub fn on_feedback(&mut self, now_us: u64, report: &Feedback<'_>) {
        if report.highest >= self.in_flight.next_number() {
            return; // The report names packets that were never sent.
        }
        self.open_window(report.window_end);
        self.received_bytes = self.received_bytes.max(report.received_bytes).min(self.total_bytes);
        let sample = self.sample(now_us, report);
        if sample.acked_packets > 0 {
            (self.progress_us, self.confirmed_us, self.timeouts_in_a_row) = (now_us, now_us, 0);
            self.tail_probes = 0;
            self.sizes.look_again(now_us);
        }
        self.controller.on_report(&sample);
        if self.controller.phase() == Phase::Train && self.trains.is_lost(report) {
            self.trains.order(FIRST_PACKETS);
        }
        self.order_train(now_us);
        let settled_us = 2 * self.controller.smoothed_rtt_us() + 2 * self.reorder_us;
        self.in_flight.drop_settled(now_us.saturating_sub(settled_us));
    }

    /// Takes the receiver's measurement of the handshake's train, in place of the first train's. A short span
    /// shows a wake-up of the receiver, so the first train measures again.
    pub fn on_handshake_train(&mut self, now_us: u64, window_end: u64, train: Train) {
        let is_first = !self.is_stream && self.controller.phase() == Phase::Train;
        if is_first && u64::from(train.span_us) >= TRAIN_SPAN_US_MIN {
            self.open_window(window_end);
            self.note_late(u64::from(train.jitter_us));
            self.trains.skip_first();
            self.controller.ramp_after(now_us, train);
            self.order_train(now_us);
        }
    }

    fn open_window(&mut self, window_end: u64) {
        let window_end = window_end.min(self.confirmed.prefix_end() + SENT_AHEAD_BYTES_MAX);
        self.window_end = self.window_end.max(window_end);
    }

    /// Marks arrived and lost packets, and returns the sample for the controller.
    fn sample(&mut self, now_us: u64, report: &Feedback<'_>) -> AckSample {
        let app_limited = matches!(self.last_limit, Limit::Source | Limit::Receiver | Limit::InFlight)
            || self.controller.is_limited()
            || self.is_tail();
        let rtt_us = self.rtt_of(now_us, report);
        let in_flight_bytes = self.in_flight.bytes();
        let late_before = self.counters.late;
        if let Some(train) = report.train {
            self.note_late(u64::from(train.jitter_us));
        }
        let train = self.trains.on_report(now_us, report);
        let mut by_pace = PaceCounts::default();
        let acked_packets = self.take_acks(report, &mut by_pace);
        let lost_packets = self.declare_losses(&mut by_pace);
        AckSample {
            now_us,
            rtt_us,
            one_way_delay_us: report.delay_us,
            receiver_us: report.at_us,
            delivered_bytes: report.delivered_bytes,
            train,
            acked_packets,
            lost_packets,
            by_pace,
            late_packets: self.counters.late - late_before,
            in_flight_bytes,
            round_ended: self.take_round_end(now_us),
            app_limited,
            is_sparse: self.is_sparse(),
            is_stalled: self.tells_of_own_stall(),
        }
    }

    /// Whether the packets confirmed now were sent during a stall of this host.
    fn tells_of_own_stall(&mut self) -> bool {
        let Some((from_us, until_us)) = self.own_stall_us else { return false };
        if self.newest_confirmed_us > until_us {
            self.own_stall_us = None;
        }
        self.newest_confirmed_us >= from_us
    }

    /// Whether a round trip ended. A round lasts at least as long as a rate measurement.
    fn take_round_end(&mut self, now_us: u64) -> bool {
        let ended = self.highest_confirmed.is_some_and(|highest| highest >= self.round_end)
            && now_us >= self.round_since_us + RATE_SPAN_US_MIN;
        if ended {
            (self.round_end, self.round_since_us) = (self.in_flight.next_number(), now_us);
        }
        ended
    }

    /// Begins a packet train if the controller wants one.
    pub(super) fn order_train(&mut self, now_us: u64) {
        if self.is_stream {
            return;
        }
        let wire_bytes = self.payload_bytes() + (OVERHEAD_BYTES + UDP_IP_BYTES) as u64;
        if let Some(packets) = self.controller.order_train(wire_bytes, self.train_packets_max()) {
            self.trains.order(packets);
            // The train begins now. Repaying the schedule's lag would send it faster than its pace.
            self.next_us = self.next_us.max(now_us);
        }
    }

    /// Round trip of the highest packet in the report, without the time that the receiver held the report
    /// back.
    fn rtt_of(&self, now_us: u64, report: &Feedback<'_>) -> Option<u64> {
        let sent = self.in_flight.get(report.highest).filter(|sent| sent.state != PacketState::Acked)?;
        Some(now_us.saturating_sub(sent.at_us).saturating_sub(u64::from(report.age_us)).max(1))
    }

    /// Marks every packet of the report's runs as arrived. Returns the number of new ones.
    fn take_acks(&mut self, report: &Feedback<'_>, by_pace: &mut PaceCounts) -> u64 {
        let mut packets = 0;
        let floor = self.in_flight.next_number().saturating_sub(ReceivedPackets::PACKETS);
        for (low, high) in report.runs.iter() {
            if high < floor {
                break;
            }
            for number in low.max(floor)..=high {
                if let Some((sent, before)) = self.in_flight.on_ack(number) {
                    packets += 1;
                    by_pace.on_ack(sent.pace, before == PacketState::Lost);
                    self.newest_confirmed_us = self.newest_confirmed_us.max(sent.at_us);
                    self.take_ack(&sent, before);
                }
            }
        }
        self.highest_confirmed = self.highest_confirmed.max(Some(report.highest));
        packets
    }

    fn take_ack(&mut self, sent: &SentPacket, before: PacketState) {
        if let Some(range) = sent.item.data() {
            self.confirmed.insert(range.clone());
            self.repairs.remove(range);
        }
        self.sizes.on_ack(sent.item, sent.wire_bytes);
        if before == PacketState::Lost {
            // The packet was late, not lost: widen the reordering window.
            self.counters.late += 1;
            let late_us = self.newest_confirmed_us.saturating_sub(sent.at_us);
            self.note_late(late_us);
        }
    }

    /// Widens the reordering window to this lateness.
    fn note_late(&mut self, late_us: u64) {
        let limit_us = self.controller.smoothed_rtt_us().max(20_000);
        self.reorder_us = self.reorder_us.max(late_us + late_us / 4).min(limit_us);
    }

    /// Declares packets lost if later ones arrived and the reordering window has passed.
    fn declare_losses(&mut self, by_pace: &mut PaceCounts) -> u64 {
        let Some(highest) = self.highest_confirmed else { return 0 };
        let before_us = self.newest_confirmed_us.saturating_sub(self.reorder_us);
        let mut lost_packets = 0;
        let Self { in_flight, repairs, confirmed, last_lost, .. } = self;
        in_flight.declare_lost(highest, before_us, |number, sent| {
            match sent.item {
                Item::Data { .. } => {
                    if let Some(range) = sent.item.data() {
                        confirmed.missing(range, |part| {
                            repairs.insert(part);
                        });
                    }
                }
                // A vanished long datagram does not mean that the path is full.
                Item::Probe { .. } | Item::Ping | Item::Close => return,
            }
            lost_packets += 1;
            // Consecutive losses count as one event: a short outage, or a run that the path loses.
            let is_run = last_lost.replace(number).is_none_or(|before| before + 1 != number);
            by_pace.on_lost(sent.pace, is_run);
        });
        self.counters.lost += lost_packets;
        lost_packets
    }
}
