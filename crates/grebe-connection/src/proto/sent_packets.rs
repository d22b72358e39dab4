//! Sent packets: their content, and whether they arrived.

use std::collections::VecDeque;
use std::ops::Range;

use crate::proto::congestion::PaceClass;

/// Content of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Bytes of the stream.
    Data {
        /// Offset in the stream.
        offset: u64,
        /// Length; at least 1.
        len: u32,
    },
    /// A datagram of this length, to test whether the path carries it.
    Probe {
        /// Bytes of UDP payload.
        datagram_bytes: u32,
    },
    /// Sign of life of an idle connection.
    Ping,
    /// End of the session.
    Close,
}

impl Item {
    /// Its bytes of the stream, if any.
    pub fn data(&self) -> Option<Range<u64>> {
        match *self {
            Item::Data { offset, len } => Some(offset..offset + u64::from(len)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketState {
    InFlight,
    Acked,
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SentPacket {
    pub(crate) at_us: u64,
    pub(crate) item: Item,
    pub(crate) wire_bytes: u32,
    pub(crate) state: PacketState,
    pub(crate) pace: PaceClass,
}

/// Window over packet numbers, bounded by twice the packets that may be in flight. Lost packets stay a while,
/// so that a late arrival is recognised.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    base: u64,
    ring: VecDeque<SentPacket>,
    bytes: u64,
    packets: usize,
    /// All lower numbers are decided: acknowledged or lost.
    decided: u64,
}

impl SentPackets {
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    pub(crate) fn push(&mut self, at_us: u64, item: Item, wire_bytes: u32, pace: PaceClass) -> u64 {
        let number = self.next_number();
        self.ring.push_back(SentPacket { at_us, item, wire_bytes, state: PacketState::InFlight, pace });
        self.bytes += u64::from(wire_bytes);
        self.packets += 1;
        number
    }

    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.ring.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Marks a packet as arrived. Returns it with its previous state, or `None` if it had already arrived.
    pub(crate) fn on_ack(&mut self, number: u64) -> Option<(SentPacket, PacketState)> {
        let sent = self.ring.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)?;
        let before = std::mem::replace(&mut sent.state, PacketState::Acked);
        if before == PacketState::InFlight {
            self.bytes -= u64::from(sent.wire_bytes);
            self.packets -= 1;
        }
        (before != PacketState::Acked).then_some((*sent, before))
    }

    /// Declares lost every packet in flight that was sent before `sent_before_us` and has a number below
    /// `below`. Calls `on_lost` with each packet and its number.
    pub(crate) fn declare_lost(
        &mut self,
        below: u64,
        sent_before_us: u64,
        mut on_lost: impl FnMut(u64, SentPacket),
    ) {
        self.decided = self.decided.max(self.base);
        while self.decided < below.min(self.next_number()) {
            let sent = &mut self.ring[(self.decided - self.base) as usize];
            if sent.at_us > sent_before_us {
                break;
            }
            if sent.state == PacketState::InFlight {
                sent.state = PacketState::Lost;
                self.bytes -= u64::from(sent.wire_bytes);
                self.packets -= 1;
                on_lost(self.decided, *sent);
            }
            self.decided += 1;
        }
    }

    /// Drops the records of packets that arrived, and of lost packets sent before `lost_before_us`.
    pub(crate) fn drop_settled(&mut self, lost_before_us: u64) {
        while let Some(first) = self.ring.front() {
            let settled = match first.state {
                PacketState::InFlight => false,
                PacketState::Acked => true,
                PacketState::Lost => first.at_us < lost_before_us || self.ring.len() > RECORDS_MAX,
            };
            if !settled {
                break;
            }
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// Oldest packet in flight.
    pub(crate) fn oldest(&self) -> Option<&SentPacket> {
        let from = self.decided.saturating_sub(self.base) as usize;
        self.ring.range(from.min(self.ring.len())..).find(|sent| sent.state == PacketState::InFlight)
    }

    /// Newest packet in flight that carries data.
    pub(crate) fn newest_data(&self) -> Option<&SentPacket> {
        self.ring.iter().rev().find(|sent| sent.state == PacketState::InFlight && sent.item.data().is_some())
    }

    /// Bytes in flight, with UDP and IP headers.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets in flight.
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.ring.capacity() * size_of::<SentPacket>()
    }
}

/// Maximum records, because a receiver may claim that everything is lost.
const RECORDS_MAX: usize = 1 << 21;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_packets(packets: u64) -> SentPackets {
        let mut sent = SentPackets::default();
        for number in 0..packets {
            let item = Item::Data { offset: number, len: 1 };
            assert_eq!(sent.push(number * 10, item, 100, PaceClass::Unknown), number);
        }
        sent
    }

    #[test]
    fn a_packet_is_lost_once_and_recognised_when_it_arrives_after_all() {
        let mut sent = sent_packets(10);
        sent.on_ack(5);
        let mut lost = Vec::new();
        sent.declare_lost(5, 20, |_, sent| lost.push(sent.at_us));
        assert_eq!(lost, [0, 10, 20]);
        assert_eq!((sent.bytes(), sent.packets()), (600, 6));
        sent.declare_lost(5, 20, |_, _| panic!("decided already"));
        assert_eq!(sent.on_ack(1).unwrap().1, PacketState::Lost);
        assert!(sent.on_ack(1).is_none());
        assert_eq!(sent.bytes(), 600, "it was taken off when it was declared lost");
        assert_eq!(sent.oldest().unwrap().at_us, 30);
    }

    #[test]
    fn of_lost_packets_only_so_many_are_remembered() {
        let mut sent = sent_packets(RECORDS_MAX as u64 + 1_000);
        sent.declare_lost(u64::MAX, u64::MAX, |_, _| {});
        sent.drop_settled(0);
        assert_eq!(sent.ring.len(), RECORDS_MAX);
    }

    #[test]
    fn what_is_settled_is_forgotten_and_numbers_go_on() {
        let mut sent = sent_packets(4);
        for number in [0, 1] {
            sent.on_ack(number);
        }
        sent.declare_lost(3, 20, |_, _| {});
        sent.drop_settled(20);
        assert_eq!(sent.base, 2, "the lost one is young");
        sent.drop_settled(21);
        assert_eq!((sent.base, sent.next_number()), (3, 4));
        assert!(sent.on_ack(1).is_none() && sent.on_ack(99).is_none());
    }
}
