//! Session rules that all bridges share: limits, silence, ownership and gaps of a stream.

mod gaps;
mod limit;
mod ownership;
mod senders;
mod shortfall;
mod silence;

use std::time::Duration;

use crate::open::SourceOptions;

pub(crate) use {
    gaps::Gaps,
    limit::Limit,
    ownership::{Ownership, Whose},
    senders::Senders,
    shortfall::Shortfall,
    silence::Silence,
};

/// A source with a limit of samples and a timeout.
pub(crate) trait Bounded: Sized {
    fn limit(&mut self) -> &mut Limit;

    fn silence(&mut self) -> &mut Silence;

    /// Applies the limits of the options.
    fn bounded(self, options: &SourceOptions) -> Self {
        self.idle_timeout(options.idle_timeout).samples(options.samples)
    }

    /// Ends the stream after this many samples per channel.
    fn samples(mut self, samples: Option<u64>) -> Self {
        *self.limit() = Limit::new(samples);
        self
    }

    /// Ends the stream with an error after this long without samples.
    fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.silence().ends_after(timeout);
        self
    }
}
