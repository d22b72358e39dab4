//! Whose stream a place takes, where anybody may send to it.

use std::time::Instant;

use grebe_frame::{Header, StreamTracker};

use super::silence::{Silence, is_recent};

/// Who sends to a place: the stream is the first one's until it has been silent for half a second, or another has a claim.
#[derive(Debug)]
pub(crate) struct Ownership<Id> {
    owner: Option<Id>,
    /// Whose it was before, and when that one was heard since.
    displaced: Option<(Id, Option<Instant>)>,
    pub(crate) silence: Silence,
    told: Option<Id>,
    foreign: u64,
}

/// Whose something is that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    /// Of who has just become the sender, behind another.
    Newcomer,
    /// It is left out, and counted.
    Foreign,
}

impl<Id: Copy + PartialEq> Ownership<Id> {
    pub(crate) fn owner(&self) -> Option<Id> {
        self.owner
    }

    /// Whether the stream is this one's.
    #[inline]
    pub(crate) fn is_owner(&self, from: Id) -> bool {
        self.owner == Some(from)
    }

    /// Whether it was this one's before the present one took it.
    pub(crate) fn was_owner(&self, from: Id) -> bool {
        self.displaced.is_some_and(|(displaced, _)| displaced == from)
    }

    /// Whose a frame is, which a sender may claim the stream by: after the end, or where it begins anew with a younger clock.
    pub(crate) fn of_frame(
        &mut self,
        from: Id,
        header: &Header,
        tracker: &StreamTracker,
        now: Instant,
    ) -> Whose {
        let gives_way = self.silence.gives_way(now);
        // Began again, on another port most likely. Who was displaced has not, however low its sequence still is.
        let begins =
            || tracker.begins_again(header) && header.sequence < BEGINNING_FRAMES && !self.was_owner(from);
        match self.owner {
            Some(owner) if owner == from => Whose::Ours,
            None => Whose::Ours,
            Some(_) if gives_way || tracker.is_ended() || begins() => Whose::Newcomer,
            Some(_) => Whose::Foreign,
        }
    }

    /// The sender goes on under another name.
    pub(crate) fn move_to(&mut self, to: Id) {
        self.owner = Some(to);
    }

    /// Gives it to this one; whether it is another than before.
    pub(crate) fn give(&mut self, to: Id, is_other: bool) -> Whose {
        match self.owner.replace(to) {
            Some(before) if is_other => {
                self.displaced = Some((before, None));
                Whose::Newcomer
            }
            _ => Whose::Ours,
        }
    }

    /// Counts what another sent; whether that one was not told of yet.
    pub(crate) fn count_foreign(&mut self, from: Id, count: u64, now: Instant) -> bool {
        self.foreign += count;
        if let Some((displaced, heard)) = &mut self.displaced
            && *displaced == from
        {
            *heard = Some(now);
        }
        self.told.replace(from) != Some(from)
    }

    /// Whether it was taken from somebody who still sends.
    pub(crate) fn is_disputed(&self, now: Instant) -> bool {
        self.displaced.and_then(|(_, heard)| heard).is_some_and(|heard| is_recent(heard, now))
    }

    /// Frames, datagrams or messages of others.
    pub(crate) fn foreign(&self) -> u64 {
        self.foreign
    }
}

impl<Id> Default for Ownership<Id> {
    fn default() -> Self {
        Self { owner: None, displaced: None, silence: Silence::begin(), told: None, foreign: 0 }
    }
}

/// A sender whose sequence is lower has just begun.
const BEGINNING_FRAMES: u64 = 1024;
