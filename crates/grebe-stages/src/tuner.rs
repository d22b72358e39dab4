//! Tunes a receiver while it runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tuning of a receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Centre frequency in hertz.
    pub frequency_hz: f64,
    /// Samples per second.
    pub rate_hz: f64,
    /// Gain in dB; `None`: automatic.
    pub gain_db: Option<f64>,
}

/// Further settings of a dongle. Other receivers may refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// Error of the oscillator, in parts per million.
    CorrectionPpm,
    /// Digital gain control after the converter: 1 or 0.
    DigitalGain,
    /// Input of the converter without a tuner: 0 (none), 1 (I) or 2 (Q).
    DirectSampling,
    /// Tunes beside the centre, so that the receiver's own carrier lies outside the band: 1 or 0.
    OffsetTuning,
    /// Supplies power to the antenna: 1 or 0.
    BiasTee,
}

/// Tunes a receiver from any thread. Clones tune the same one.
///
/// The stream's description, or the rate in its headers, changes at the first sample read from the receiver after the
/// command was sent. Without a confirmation, as with `rtl_tcp`, samples in flight come before that.
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
    /// Only those that were set.
    switches: Mutex<BTreeMap<Switch, i32>>,
    /// Number of changes, readable without the lock.
    changes: AtomicU64,
}

impl Tuner {
    /// A tuner without changes.
    pub fn new(tuning: Tuning) -> Self {
        let switches = Mutex::default();
        Self(Arc::new(Shared { tuning: Mutex::new(tuning), switches, changes: AtomicU64::new(0) }))
    }

    /// The requested tuning.
    pub fn tuning(&self) -> Tuning {
        *self.lock()
    }

    /// Changes the tuning.
    pub fn change(&self, change: impl FnOnce(&mut Tuning)) {
        change(&mut self.lock());
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Sets a switch.
    pub fn set(&self, switch: Switch, value: i32) {
        self.0.switches.lock().unwrap_or_else(PoisonError::into_inner).insert(switch, value);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// The switches that were set, with their values.
    pub fn switches(&self) -> BTreeMap<Switch, i32> {
        self.0.switches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The given tuner, set to the receiver's tuning, or a new one.
    pub(crate) fn of_receiver(given: Option<&Self>, tuning: Tuning) -> Self {
        match given {
            Some(tuner) => {
                *tuner.lock() = tuning;
                tuner.clone()
            }
            None => Self::new(tuning),
        }
    }

    /// Reports the result of change `change`, in which refused values are restored. Ignored after a newer change.
    pub(crate) fn settle(&self, tuning: Tuning, change: u64) {
        let mut wanted = self.lock();
        if self.changes() == change {
            *wanted = tuning;
        }
    }

    /// Number of changes.
    pub(crate) fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Tuning> {
        // A panic within a change leaves valid numbers.
        self.0.tuning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
