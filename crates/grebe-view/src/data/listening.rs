//! Sound of a box of time and frequency, with an end for the requester and an end for the thread that makes it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A box to hear.
#[derive(Debug, Clone, PartialEq)]
pub struct HeardBox {
    /// From 0.
    pub channel: usize,
    /// Absolute indices of the samples, end exclusive.
    pub samples: Range<u64>,
    /// Lower edge; on the air if the samples say their centre frequency.
    pub low_hz: f64,
    /// Upper edge.
    pub high_hz: f64,
    /// Place of the modulation in [`Listener::modulations`].
    pub modulation: usize,
}

/// Sound of one channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sound {
    /// Samples per second.
    pub rate_hz: u32,
    /// Full scale is full scale of the type.
    pub samples: Vec<i16>,
    /// Missing part of the box, in words; empty: nothing.
    pub missing: String,
    /// Whether it continues the one before: live sound comes in pieces.
    pub is_live: bool,
}

/// Sound that is being played. Dropping it ends that.
pub struct Playing(Box<dyn FnMut() -> Option<String> + Send>);

/// Makes sound of boxes. Clones share one function.
#[derive(Clone)]
pub struct Listener {
    /// Names of the modulations, with their usual bandwidths in hertz.
    pub modulations: Vec<(String, f64)>,
    listen: Arc<dyn Fn(HeardBox) -> Listening + Send + Sync>,
    listen_live: Option<Arc<ListenLive>>,
}

type ListenLive = dyn Fn(HeardBox, Box<dyn FnMut(Sound) + Send>) -> Playing + Send + Sync;

/// Sound that is being made. Dropping it ends that.
pub struct Listening(Arc<Mutex<State>>);

/// The end of the thread that makes it. Dropping it is a failure.
pub struct ListeningSide(Weak<Mutex<State>>);

#[derive(Default)]
struct State {
    percent: u8,
    ended: Option<Result<Sound, String>>,
}

impl Listener {
    /// Maximum seconds of one sound.
    pub const SECONDS_MAX: u64 = 60;

    /// Wraps a function that starts to make sound without waiting.
    pub fn new(
        modulations: Vec<(String, f64)>,
        listen: impl Fn(HeardBox) -> Listening + Send + Sync + 'static,
    ) -> Listener {
        Listener { modulations, listen: Arc::new(listen), listen_live: None }
    }

    /// With live sound: the function makes the sound of a band from now on, and passes it on in pieces, until its result is
    /// dropped. The samples of the box do not matter.
    #[must_use]
    pub fn with_live(
        self,
        listen_live: impl Fn(HeardBox, Box<dyn FnMut(Sound) + Send>) -> Playing + Send + Sync + 'static,
    ) -> Listener {
        Listener { listen_live: Some(Arc::new(listen_live)), ..self }
    }

    /// Whether it makes live sound.
    pub fn has_live(&self) -> bool {
        self.listen_live.is_some()
    }

    /// Starts to make live sound; `None` if it makes none.
    pub(crate) fn listen_live(&self, heard: HeardBox, take: Box<dyn FnMut(Sound) + Send>) -> Option<Playing> {
        Some(self.listen_live.as_ref()?(heard, take))
    }

    /// Starts to make sound.
    pub fn listen(&self, heard: HeardBox) -> Listening {
        (self.listen)(heard)
    }
}

impl Listening {
    /// Creates both ends.
    pub fn begin() -> (ListeningSide, Listening) {
        let state = Arc::default();
        (ListeningSide(Arc::downgrade(&state)), Listening(state))
    }

    /// The finished part of it.
    pub fn percent(&self) -> u8 {
        lock(&self.0).percent
    }

    /// The sound, or one line for a person, once it has ended; then `None` again.
    pub fn take(&self) -> Option<Result<Sound, String>> {
        lock(&self.0).ended.take()
    }
}

impl Playing {
    /// Wraps a function that returns, in one line for a person, why the sound has ended; `None` while it plays. Dropping
    /// the function ends the sound.
    pub fn new(ended: impl FnMut() -> Option<String> + Send + 'static) -> Playing {
        Playing(Box::new(ended))
    }

    /// Why it has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        (self.0)()
    }
}

impl ListeningSide {
    /// Whether the requester still waits.
    pub fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Reports progress.
    pub fn tell(&self, percent: u8) {
        self.0.upgrade().iter().for_each(|state| lock(state).percent = percent);
    }

    /// Ends it, with one line for a person on a failure.
    pub fn end(&self, ended: Result<Sound, String>) {
        self.0.upgrade().iter().for_each(|state| lock(state).ended = Some(ended.clone()));
    }
}

impl Drop for ListeningSide {
    fn drop(&mut self) {
        // A thread that panicked, or never began.
        if let Some(state) = self.0.upgrade() {
            lock(&state).ended.get_or_insert_with(|| Err("it ended before it was through".into()));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every change leaves the state valid, so a panic elsewhere does no harm.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("modulations", &self.modulations).finish_non_exhaustive()
    }
}
