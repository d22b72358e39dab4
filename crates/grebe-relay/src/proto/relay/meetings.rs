//! Tables of meetings by key and of ends by address. All memory is allocated at the start.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::bucket::Bucket;
use crate::proto::message::{Join, MeetingKey, SEALED_BYTES_MAX, Side};

/// Meetings in a fixed number of slots.
pub(crate) struct Meetings {
    slots: Vec<Option<Meeting>>,
    free: Vec<usize>,
    by_key: HashMap<MeetingKey, usize>,
    by_address: HashMap<SocketAddr, Place>,
}

/// One of the two places of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: usize,
    pub(crate) side: Side,
}

pub(crate) struct Meeting {
    pub(crate) key: MeetingKey,
    pub(crate) bucket: Bucket,
    waits: Option<Member>,
    asks: Option<Member>,
}

/// An end that has proven its ticket and its address.
pub(crate) struct Member {
    /// In the socket's family.
    pub(crate) address: SocketAddr,
    pub(crate) end: u64,
    pub(crate) number: u64,
    pub(crate) heard_us: u64,
    /// Changes with the end's sealed candidates.
    pub(crate) said: u64,
    /// The other end and its `said` counter, which an answer told this one.
    pub(crate) knows: Option<(u64, u64)>,
    sealed: [u8; SEALED_BYTES_MAX],
    sealed_bytes: usize,
}

impl Meetings {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).rev().collect(),
            by_key: HashMap::with_capacity(slots),
            by_address: HashMap::with_capacity(2 * slots),
        }
    }

    #[inline]
    pub(crate) fn place_of(&self, address: SocketAddr) -> Option<Place> {
        self.by_address.get(&address).copied()
    }

    pub(crate) fn slot_of(&self, key: &MeetingKey) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Meeting of an occupied place.
    #[inline]
    pub(crate) fn meeting(&mut self, place: Place) -> &mut Meeting {
        self.slots[place.slot].as_mut().expect("a place is of a meeting that is there")
    }

    pub(crate) fn member(&self, place: Place) -> Option<&Member> {
        let meeting = self.slots[place.slot].as_ref()?;
        match place.side {
            Side::Waits => meeting.waits.as_ref(),
            Side::Asks => meeting.asks.as_ref(),
        }
    }

    /// Slot of a meeting, new if necessary; `None` if the table is full.
    pub(crate) fn slot_for(&mut self, key: &MeetingKey, bucket: impl FnOnce() -> Bucket) -> Option<usize> {
        if let Some(slot) = self.slot_of(key) {
            return Some(slot);
        }
        let slot = self.free.pop()?;
        self.slots[slot] = Some(Meeting { key: *key, bucket: bucket(), waits: None, asks: None });
        self.by_key.insert(*key, slot);
        Some(slot)
    }

    /// Puts an end into its place. Returns the address that this or another end had there before.
    pub(crate) fn put(&mut self, place: Place, mut member: Member) -> Option<SocketAddr> {
        let address = member.address;
        let there = self.meeting(place).of(place.side);
        if let Some(before) = there.as_ref().filter(|before| before.end == member.end) {
            member.said = before.said + u64::from(before.sealed() != member.sealed());
            member.knows = before.knows;
        }
        let before = there.replace(member).map(|before| before.address);
        if let Some(before) = before {
            self.by_address.remove(&before);
        }
        self.by_address.insert(address, place);
        before
    }

    /// Removes an end and returns its address. A meeting without ends is deleted.
    pub(crate) fn remove(&mut self, place: Place) -> Option<SocketAddr> {
        let meeting = self.slots[place.slot].as_mut()?;
        let address = meeting.of(place.side).take()?.address;
        self.by_address.remove(&address);
        if meeting.waits.is_none() && meeting.asks.is_none() {
            let key = meeting.key;
            self.by_key.remove(&key);
            self.slots[place.slot] = None;
            self.free.push(place.slot);
        }
        Some(address)
    }

    /// Removes silent ends, calls `gone` with each address, and returns their number.
    pub(crate) fn forget_silent(
        &mut self,
        now_us: u64,
        idle_us: u64,
        mut gone: impl FnMut(SocketAddr),
    ) -> u64 {
        let mut forgotten = 0;
        for slot in 0..self.slots.len() {
            for side in [Side::Waits, Side::Asks] {
                let place = Place { slot, side };
                let is_silent = self
                    .member(place)
                    .is_some_and(|member| now_us >= member.heard_us.saturating_add(idle_us));
                if is_silent && let Some(address) = self.remove(place) {
                    gone(address);
                    forgotten += 1;
                }
            }
        }
        forgotten
    }

    /// Number of meetings, and of those with both ends.
    pub(crate) fn count(&self) -> (u64, u64) {
        let there = self.slots.iter().flatten();
        let both = there.clone().filter(|meeting| meeting.waits.is_some() && meeting.asks.is_some());
        (there.count() as u64, both.count() as u64)
    }
}

impl Meeting {
    /// Notes a packet from a place. Returns its destination: the other end, if present.
    #[inline]
    pub(crate) fn heard(&mut self, now_us: u64, place: Place) -> Option<SocketAddr> {
        let (own, other) = match place.side {
            Side::Waits => (&mut self.waits, &self.asks),
            Side::Asks => (&mut self.asks, &self.waits),
        };
        own.as_mut()?.heard_us = now_us;
        other.as_ref().map(|other| other.address)
    }

    /// The end of a side, and the other one.
    pub(crate) fn both(&mut self, side: Side) -> Option<(&mut Member, &mut Option<Member>)> {
        match side {
            Side::Waits => Some((self.waits.as_mut()?, &mut self.asks)),
            Side::Asks => Some((self.asks.as_mut()?, &mut self.waits)),
        }
    }

    fn of(&mut self, side: Side) -> &mut Option<Member> {
        match side {
            Side::Waits => &mut self.waits,
            Side::Asks => &mut self.asks,
        }
    }
}

impl Member {
    pub(crate) fn new(now_us: u64, address: SocketAddr, join: &Join<'_>) -> Self {
        let mut sealed = [0; SEALED_BYTES_MAX];
        sealed[..join.sealed.len()].copy_from_slice(join.sealed);
        Self {
            address,
            end: join.end,
            number: join.number,
            heard_us: now_us,
            said: 0,
            knows: None,
            sealed,
            sealed_bytes: join.sealed.len(),
        }
    }

    /// Sealed candidates for the other end.
    pub(crate) fn sealed(&self) -> &[u8] {
        &self.sealed[..self.sealed_bytes]
    }
}
