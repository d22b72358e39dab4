//! Changes what a receiver is tuned to, while it runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a receiver is tuned to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// The frequency in the middle of its band, in hertz.
    pub frequency_hz: f64,
    /// Samples per second.
    pub rate_hz: f64,
    /// Its gain in dB; `None`: it finds its own.
    pub gain_db: Option<f64>,
}

/// What a dongle can be told beside what it is tuned to. Other receivers may refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// How far its oscillator is off, in parts per million.
    CorrectionPpm,
    /// Whether its samples are levelled behind the converter: 1 or 0.
    DigitalGain,
    /// Which input of the converter is used without a tuner: 0 (none), 1 (I) or 2 (Q).
    DirectSampling,
    /// Whether it is tuned beside the middle, so that its own carrier lies outside of the band: 1 or 0.
    OffsetTuning,
    /// Whether its antenna gets a supply: 1 or 0.
    BiasTee,
}

/// Changes what a receiver is tuned to, from any thread. Clones change the same one.
///
/// The stream's description, or the rate in its headers, changes at the first sample that is taken from the receiver after it was
/// told. Where nothing between the two says when it obeyed, as with `rtl_tcp`, what was already under way comes before that.
///
/// ```
/// use grebe_stages::{Tuner, Tuning};
///
/// let tuner = Tuner::new(Tuning { frequency_hz: 100e6, rate_hz: 2.4e6, gain_db: None });
/// tuner.clone().change(|tuning| tuning.frequency_hz = 433.92e6);
/// assert_eq!(tuner.tuning().frequency_hz, 433.92e6);
/// ```
#[derive(Debug, Clone)]
pub struct Tuner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tuning: Mutex<Tuning>,
    /// Those that were set.
    switches: Mutex<BTreeMap<Switch, i32>>,
    /// Grows with each change: looked at without the lock.
    changes: AtomicU64,
}

impl Tuner {
    /// One that nobody has changed.
    pub fn new(tuning: Tuning) -> Self {
        let switches = Mutex::default();
        Self(Arc::new(Shared { tuning: Mutex::new(tuning), switches, changes: AtomicU64::new(0) }))
    }

    /// What it is to be tuned to.
    pub fn tuning(&self) -> Tuning {
        *self.lock()
    }

    /// Changes it.
    pub fn change(&self, change: impl FnOnce(&mut Tuning)) {
        change(&mut self.lock());
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Sets a switch.
    pub fn set(&self, switch: Switch, value: i32) {
        self.0.switches.lock().unwrap_or_else(PoisonError::into_inner).insert(switch, value);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// The switches that were set, and to what.
    pub fn switches(&self) -> BTreeMap<Switch, i32> {
        self.0.switches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that is given, which is told what the receiver is tuned to, or else one of its own.
    pub(crate) fn of_receiver(given: Option<&Self>, tuning: Tuning) -> Self {
        match given {
            Some(tuner) => {
                *tuner.lock() = tuning;
                tuner.clone()
            }
            None => Self::new(tuning),
        }
    }

    /// Says what the receiver made of the change of this number: what it refused is as it was. Nothing, where it was changed since.
    pub(crate) fn settle(&self, tuning: Tuning, change: u64) {
        let mut wanted = self.lock();
        if self.changes() == change {
            *wanted = tuning;
        }
    }

    /// How often it was changed.
    pub(crate) fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Tuning> {
        // A change that panicked has left numbers all the same.
        self.0.tuning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
