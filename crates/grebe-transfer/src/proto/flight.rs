//! Packets under way: what each number carried, and what became of it.

use std::collections::VecDeque;
use std::ops::Range;

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Bytes of the file.
    Data {
        /// Where they begin.
        offset: u64,
        /// How many; at least one.
        len: u32,
    },
    /// What is going to be sent.
    Offer,
    /// A datagram of this many bytes, to learn whether the path carries it.
    Probe {
        /// Bytes of UDP payload.
        datagram_bytes: u32,
    },
    /// The end of the session.
    Close,
}

impl Item {
    pub(crate) fn data(&self) -> Option<Range<u64>> {
        match *self {
            Item::Data { offset, len } => Some(offset..offset + u64::from(len)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    UnderWay,
    Arrived,
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub at_us: u64,
    pub item: Item,
    pub wire_bytes: u32,
    pub fate: Fate,
}

/// A window over packet numbers. Its length is bounded by what may be under way, twice: lost ones stay a while, to be known
/// when they come after all.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    base: u64,
    ring: VecDeque<Sent>,
    bytes: u64,
    packets: usize,
    /// All numbers below were judged.
    cursor: u64,
}

impl Flight {
    pub fn next_number(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    pub fn push(&mut self, at_us: u64, item: Item, wire_bytes: u32) -> u64 {
        let number = self.next_number();
        self.ring.push_back(Sent { at_us, item, wire_bytes, fate: Fate::UnderWay });
        self.bytes += u64::from(wire_bytes);
        self.packets += 1;
        number
    }

    pub fn get(&self, number: u64) -> Option<&Sent> {
        self.ring.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Notes an arrival; returns what it was and its fate before, `None` where that is long known.
    pub fn arrived(&mut self, number: u64) -> Option<(Sent, Fate)> {
        let sent = self.ring.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)?;
        let before = std::mem::replace(&mut sent.fate, Fate::Arrived);
        if before == Fate::UnderWay {
            self.bytes -= u64::from(sent.wire_bytes);
            self.packets -= 1;
        }
        (before != Fate::Arrived).then_some((*sent, before))
    }

    /// Declares lost what was sent before `sent_before_us` and below `below`, and calls `lost` with each.
    pub fn judge(&mut self, below: u64, sent_before_us: u64, mut lost: impl FnMut(Sent)) {
        self.cursor = self.cursor.max(self.base);
        while self.cursor < below.min(self.next_number()) {
            let sent = &mut self.ring[(self.cursor - self.base) as usize];
            if sent.at_us > sent_before_us {
                break;
            }
            if sent.fate == Fate::UnderWay {
                sent.fate = Fate::Lost;
                self.bytes -= u64::from(sent.wire_bytes);
                self.packets -= 1;
                lost(*sent);
            }
            self.cursor += 1;
        }
    }

    /// Forgets what is settled, and lost packets sent before `lost_before_us`.
    pub fn forget(&mut self, lost_before_us: u64) {
        while let Some(first) = self.ring.front() {
            let settled = match first.fate {
                Fate::UnderWay => false,
                Fate::Arrived => true,
                Fate::Lost => first.at_us < lost_before_us,
            };
            if !settled {
                break;
            }
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// The oldest packet under way.
    pub fn oldest(&self) -> Option<&Sent> {
        let from = self.cursor.saturating_sub(self.base) as usize;
        self.ring.range(from.min(self.ring.len())..).find(|sent| sent.fate == Fate::UnderWay)
    }

    /// The packet sent last that is under way and carries data.
    pub fn newest_data(&self) -> Option<&Sent> {
        self.ring.iter().rev().find(|sent| sent.fate == Fate::UnderWay && sent.item.data().is_some())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn packets(&self) -> usize {
        self.packets
    }

    pub fn memory_bytes(&self) -> usize {
        self.ring.capacity() * size_of::<Sent>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::default();
        for number in 0..packets {
            assert_eq!(flight.push(number * 10, Item::Data { offset: number, len: 1 }, 100), number);
        }
        flight
    }

    #[test]
    fn a_packet_is_lost_once_and_known_when_it_comes_after_all() {
        let mut flight = flight(10);
        flight.arrived(5);
        let mut lost = Vec::new();
        flight.judge(5, 20, |sent| lost.push(sent.at_us));
        assert_eq!(lost, [0, 10, 20]);
        assert_eq!((flight.bytes(), flight.packets()), (600, 6));
        flight.judge(5, 20, |_| panic!("judged already"));
        assert_eq!(flight.arrived(1).unwrap().1, Fate::Lost);
        assert!(flight.arrived(1).is_none());
        assert_eq!(flight.bytes(), 600, "it was taken off when it was declared lost");
        assert_eq!(flight.oldest().unwrap().at_us, 30);
    }

    #[test]
    fn what_is_settled_is_forgotten_and_numbers_go_on() {
        let mut flight = flight(4);
        for number in [0, 1] {
            flight.arrived(number);
        }
        flight.judge(3, 20, |_| {});
        flight.forget(20);
        assert_eq!(flight.base, 2, "the lost one is young");
        flight.forget(21);
        assert_eq!((flight.base, flight.next_number()), (3, 4));
        assert!(flight.arrived(1).is_none() && flight.arrived(99).is_none());
    }
}
