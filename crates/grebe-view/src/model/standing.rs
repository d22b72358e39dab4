//! How a scope stands beside others on one axis of time.

use super::seen::hud::{Item, Tone};

/// How a scope stands on the common axis.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(super) place: Place,
    /// Whether a picture is wanted although nothing of what is asked for has changed.
    pub(super) wants_news: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// There is no other one.
    #[default]
    Alone,
    Leads,
    Follows,
    /// Nothing says how its times relate to those of the leader.
    Apart,
}

impl Standing {
    pub(super) fn is_one_of_several(&self) -> bool {
        self.place != Place::Alone
    }

    /// What a person should know of it.
    pub(super) fn words(&self) -> Option<Item> {
        let value = "not that of the others".to_owned();
        (self.place == Place::Apart).then_some(Item { label: "time axis", value, tone: Tone::Plain })
    }
}
