//! A picture that stands still: each trigger waits until the window behind it is filled, then is shown.

mod levels;
mod rate;
mod search;
mod settings;

pub use rate::TriggerRate;
pub(crate) use search::TriggerSearch;
pub use settings::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings, TriggerState, TriggerView};

#[cfg(test)]
mod tests;
