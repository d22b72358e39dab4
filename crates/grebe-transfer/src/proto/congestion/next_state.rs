//! What a state may ask for next.

/// The state that follows. The controller makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NextState {
    /// Growth from this rate, in bytes per second: the path became faster.
    RampFrom(f64),
    /// Rate probing, which drains the queue first.
    Drain,
    /// Rate probing at the rate that was confirmed.
    Cruise,
    /// Rate probing, which asks for more first: whoever filled the queue is gone.
    ProbeUp,
    /// The window beside flows that fill the queue.
    CompetingWindow,
}
