//! Locks a source to one of several senders.

use std::time::Instant;

use grebe_frame::{Header, StreamTracker};

use super::silence::{Silence, is_recent};

/// The owner of a stream: the first sender, until it is silent for half a second or another has a claim.
#[derive(Debug)]
pub(crate) struct Ownership<Id> {
    owner: Option<Id>,
    /// The previous owner, and the time of its last frame since.
    displaced: Option<(Id, Option<Instant>)>,
    pub(crate) silence: Silence,
    reported: Option<Id>,
    foreign: u64,
}

/// Owner of an arriving frame or datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    /// The new owner, after another.
    Newcomer,
    /// To be dropped and counted.
    Foreign,
}

impl<Id: Copy + PartialEq> Ownership<Id> {
    pub(crate) fn owner(&self) -> Option<Id> {
        self.owner
    }

    /// Whether this sender owns the stream.
    #[inline]
    pub(crate) fn is_owner(&self, from: Id) -> bool {
        self.owner == Some(from)
    }

    /// Whether this sender owned the stream before the present owner.
    pub(crate) fn was_owner(&self, from: Id) -> bool {
        self.displaced.is_some_and(|(displaced, _)| displaced == from)
    }

    /// The owner of a frame. A sender may claim the stream after its end, or by a restart with a younger clock.
    pub(crate) fn of_frame(
        &mut self,
        from: Id,
        header: &Header,
        tracker: &StreamTracker,
        now: Instant,
    ) -> Whose {
        let allows_takeover = self.silence.allows_takeover(now);
        // Restarted, usually on another port. The previous owner is not restarted, however low its sequence.
        let begins =
            || tracker.begins_again(header) && header.sequence < BEGINNING_FRAMES && !self.was_owner(from);
        match self.owner {
            Some(owner) if owner == from => Whose::Ours,
            None => Whose::Ours,
            Some(_) if allows_takeover || tracker.is_ended() || begins() => Whose::Newcomer,
            Some(_) => Whose::Foreign,
        }
    }

    /// The sender continues under another address.
    pub(crate) fn move_to(&mut self, to: Id) {
        self.owner = Some(to);
    }

    /// Makes this sender the owner. Returns whether it is a new one.
    pub(crate) fn give(&mut self, to: Id, is_other: bool) -> Whose {
        match self.owner.replace(to) {
            Some(before) if is_other => {
                self.displaced = Some((before, None));
                Whose::Newcomer
            }
            _ => Whose::Ours,
        }
    }

    /// Counts frames of another sender. Returns whether it is the first report of that one.
    pub(crate) fn count_foreign(&mut self, from: Id, count: u64, now: Instant) -> bool {
        self.foreign += count;
        if let Some((displaced, seen)) = &mut self.displaced
            && *displaced == from
        {
            *seen = Some(now);
        }
        self.reported.replace(from) != Some(from)
    }

    /// Whether the previous owner still sends.
    pub(crate) fn is_disputed(&self, now: Instant) -> bool {
        self.displaced.and_then(|(_, seen)| seen).is_some_and(|seen| is_recent(seen, now))
    }

    /// Frames, datagrams or messages of other senders.
    pub(crate) fn foreign(&self) -> u64 {
        self.foreign
    }
}

impl<Id> Default for Ownership<Id> {
    fn default() -> Self {
        Self { owner: None, displaced: None, silence: Silence::begin(), reported: None, foreign: 0 }
    }
}

/// A sender with a lower sequence has just started.
const BEGINNING_FRAMES: u64 = 1024;
