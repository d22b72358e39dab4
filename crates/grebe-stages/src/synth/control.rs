//! What changes a running generator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::generator::Generator;
use super::options::SynthOptions;
use crate::error::Error;

/// Changes what a running [`SynthSource`] makes, from any thread. Clones change the same one.
#[derive(Debug, Clone)]
pub(super) struct SynthControl {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Looked at once per step, without the lock.
    is_changed: AtomicBool,
    channels: usize,
    wanted: Mutex<Wanted>,
}

#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Other settings, and the generators that were made of them.
    pub(super) remade: Option<(SynthOptions, Vec<Generator>)>,
    pub(super) is_paused: bool,
    pub(super) is_ended: bool,
}

impl SynthControl {
    /// For a generator of so many channels.
    pub(super) fn new(channels: usize) -> Self {
        Self { shared: Arc::new(Shared { channels, ..Shared::default() }) }
    }

    /// From the next block on, the generator makes this instead; the indices of its samples go on. How many samples it makes in
    /// all stays as it was. A setting out of its range, or another number of channels, is refused and changes nothing.
    ///
    /// The waves are computed in the caller's thread, which may take some 20 ms per channel.
    pub(super) fn set(&self, options: SynthOptions) -> Result<(), Error> {
        let channels = options.channels.len();
        if channels != self.shared.channels {
            let must = "a stream keeps its channels";
            return Err(Error::Setting { what: "number of channels", got: channels.to_string(), must });
        }
        let generators = options.generators()?;
        self.change(|wanted| wanted.remade = Some((options, generators)));
        Ok(())
    }

    /// Pauses the generator, or lets it go on where it stopped: no sample is left out.
    pub(super) fn set_paused(&self, is_paused: bool) {
        self.change(|wanted| wanted.is_paused = is_paused);
    }

    /// Ends the stream.
    pub(super) fn end(&self) {
        self.change(|wanted| wanted.is_ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted());
        self.shared.is_changed.store(true, Ordering::Release);
    }

    /// What is wanted, where that has changed since it was last asked for.
    pub(super) fn take_change(&self) -> Option<Wanted> {
        if !self.shared.is_changed.swap(false, Ordering::Acquire) {
            return None;
        }
        let mut wanted = self.wanted();
        let Wanted { remade, is_paused, is_ended } = &mut *wanted;
        Some(Wanted { remade: remade.take(), is_paused: *is_paused, is_ended: *is_ended })
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        // Each change leaves it whole, so a poisoned lock still guards good values.
        self.shared.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
