//! What all bridges share of a stream's life: when it ends, whose it is, and what is missing.

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

/// A source that ends by itself after so many samples, or once nothing comes any more.
pub(crate) trait Bounded: Sized {
    fn limit(&mut self) -> &mut Limit;

    fn silence(&mut self) -> &mut Silence;

    /// Ends as whoever opens it asks for.
    fn bounded(self, options: &SourceOptions) -> Self {
        self.idle_timeout(options.idle_timeout).samples(options.samples)
    }

    /// Ends the stream after this many samples per channel.
    fn samples(mut self, samples: Option<u64>) -> Self {
        *self.limit() = Limit::new(samples);
        self
    }

    /// Ends the stream with an error once nothing has come for this long.
    fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.silence().ends_after(timeout);
        self
    }
}
