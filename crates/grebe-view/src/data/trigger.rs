//! The trigger, which makes a picture stand still: a trigger is shown as soon as the window after it is filled.

mod levels;
mod rate;
mod search;
mod settings;

pub use rate::TriggerRate;
pub(crate) use search::TriggerSearch;
pub use settings::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings, TriggerState, TriggerView};

#[cfg(test)]
mod tests;
