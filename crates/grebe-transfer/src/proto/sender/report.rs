//! What a report of the receiver changes.

use super::{FIRST_PACKETS, Limit, Sender};
use crate::proto::congestion::{Phase, RATE_SPAN_US_MIN, Sample};
use crate::proto::flight::{Fate, Item, Sent};
use crate::proto::wire::{Feedback, OVERHEAD_BYTES, UDP_IP_BYTES};

impl Sender {
    /// Takes a report of the receiver.
    pub fn on_feedback(&mut self, now_us: u64, report: &Feedback<'_>) {
        if report.highest >= self.flight.next_number() {
            return; // It names what was never sent.
        }
        self.heard_us = now_us;
        self.window_end = self.window_end.max(report.window_end);
        self.received_bytes = self.received_bytes.max(report.received_bytes).min(self.total_bytes);
        let app_limited = matches!(self.last_limit, Limit::Source | Limit::Receiver | Limit::InFlight)
            || self.rate.is_limited()
            || self.is_tail();
        let rtt_us = self.rtt_of(now_us, report);
        let in_flight_bytes = self.flight.bytes();
        let late_before = self.counters.late;
        if let Some(train) = report.train {
            self.note_late(u64::from(train.jitter_us));
        }
        let train = self.trains.hear(now_us, report);
        let acked_packets = self.take_arrivals(report);
        let lost_packets = self.declare_losses();
        if acked_packets > 0 {
            (self.progress_us, self.probes_unheard) = (now_us, 0);
            self.tail_probes = 0;
        }
        // Where the round trip is shorter than what a rate can be measured over, that is a round.
        let round_ended = self.highest_confirmed.is_some_and(|highest| highest >= self.round_end)
            && now_us >= self.round_since_us + RATE_SPAN_US_MIN;
        if round_ended {
            (self.round_end, self.round_since_us) = (self.flight.next_number(), now_us);
        }
        self.rate.on_report(&Sample {
            now_us,
            rtt_us,
            delay_us: report.delay_us,
            receiver_us: report.at_us,
            delivered_bytes: report.delivered_bytes,
            train,
            acked_packets,
            lost_packets,
            late_packets: self.counters.late - late_before,
            in_flight_bytes,
            round_ended,
            app_limited,
        });
        if self.rate.phase() == Phase::Train && self.trains.is_lost(report) {
            self.trains.order(FIRST_PACKETS);
        }
        if let Some(packets) =
            self.rate.order_train(self.payload_bytes() + (OVERHEAD_BYTES + UDP_IP_BYTES) as u64)
        {
            self.trains.order(packets);
            // What was not sent before is no part of its pace.
            self.next_us = self.next_us.max(now_us);
        }
        self.flight.forget(now_us.saturating_sub(2 * self.rate.smoothed_rtt_us() + 2 * self.reorder_us));
    }

    fn rtt_of(&self, now_us: u64, report: &Feedback<'_>) -> Option<u64> {
        let sent = self.flight.get(report.highest).filter(|sent| sent.fate != Fate::Arrived)?;
        Some(now_us.saturating_sub(sent.at_us).saturating_sub(u64::from(report.age_us)).max(1))
    }

    fn take_arrivals(&mut self, report: &Feedback<'_>) -> u64 {
        let mut packets = 0;
        let floor = self.flight.next_number().saturating_sub(crate::proto::arrivals::WINDOW_PACKETS);
        for (low, high) in report.runs.iter() {
            if high < floor {
                break;
            }
            for number in low.max(floor)..=high {
                if let Some((sent, fate)) = self.flight.arrived(number) {
                    packets += 1;
                    self.newest_confirmed_us = self.newest_confirmed_us.max(sent.at_us);
                    self.take_arrival(&sent, fate);
                }
            }
        }
        self.highest_confirmed = self.highest_confirmed.max(Some(report.highest));
        packets
    }

    fn take_arrival(&mut self, sent: &Sent, fate: Fate) {
        if let Some(range) = sent.item.data() {
            self.confirmed.insert(range.clone());
            self.repairs.remove(range);
        }
        if sent.wire_bytes as usize > self.datagram_bytes_least + UDP_IP_BYTES {
            self.questions = 0;
        }
        if let Item::Probe { datagram_bytes } = sent.item
            && let Err(place) = self.carried.binary_search(&(datagram_bytes as usize))
        {
            self.carried.insert(place, datagram_bytes as usize);
        }
        if fate == Fate::Lost {
            // It was not lost, it was late: wait longer from now on.
            self.counters.late += 1;
            let late_us = self.newest_confirmed_us.saturating_sub(sent.at_us);
            self.note_late(late_us);
        }
    }

    fn note_late(&mut self, late_us: u64) {
        let limit_us = self.rate.smoothed_rtt_us().max(20_000);
        self.reorder_us = self.reorder_us.max(late_us + late_us / 4).min(limit_us);
    }

    fn declare_losses(&mut self) -> u64 {
        let Some(highest) = self.highest_confirmed else { return 0 };
        let before_us = self.newest_confirmed_us.saturating_sub(self.reorder_us);
        let mut lost_packets = 0;
        let Self { flight, repairs, confirmed, offers_due, .. } = self;
        flight.judge(highest, before_us, |sent| {
            match sent.item {
                Item::Data { .. } => {
                    if let Some(range) = sent.item.data() {
                        confirmed.missing(range, |part| {
                            repairs.insert(part);
                        });
                    }
                }
                Item::Offer => {}
                // A datagram that is too long for the path is no sign of a full one.
                Item::Probe { .. } | Item::Close => return,
            }
            lost_packets += 1;
        });
        // Any report says that the offer came.
        *offers_due = 0;
        self.counters.lost += lost_packets;
        lost_packets
    }
}
