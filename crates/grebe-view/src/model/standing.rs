//! Relation of a scope to others on a common time axis.

use super::seen::hud::{Item, Tone};

/// Relation of a scope to the common axis.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(super) place: Place,
    /// Whether a new picture is needed although the request is the same.
    pub(super) wants_news: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// There is only this scope.
    #[default]
    Alone,
    Leads,
    Follows,
    /// Its times have no known relation to those of the leader.
    Apart,
}

impl Standing {
    pub(super) fn is_one_of_several(&self) -> bool {
        self.place != Place::Alone
    }

    /// A note for the person.
    pub(super) fn words(&self) -> Option<Item> {
        let value = "not that of the others".to_owned();
        (self.place == Place::Apart).then_some(Item { label: "time axis", value, tone: Tone::Plain })
    }
}
