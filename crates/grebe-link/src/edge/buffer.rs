//! Reusable message buffers, and the limit of data in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Message buffer, which returns to its origin when dropped.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pub(super) home: Arc<Spares>,
}

/// Unused buffers.
#[derive(Debug, Default)]
pub(super) struct Spares(pub(super) Mutex<Vec<Vec<u8>>>);

impl Buffer {
    pub(super) fn of(home: &Arc<Spares>) -> Self {
        let spare = locked(&home.0).pop();
        Self { bytes: spare.unwrap_or_default(), home: home.clone() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut spares = locked(&self.home.0);
        if spares.len() < SPARES_MAX {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            spares.push(bytes);
        }
    }
}

/// Ignores poisoning: a panic has ended its thread and left nothing half done.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum bytes of frames in flight per link, in addition to the batch limit. One further message is
/// allowed.
pub(super) const WINDOW_BYTES: u64 = 8 << 20;
const SPARES_MAX: usize = 64;
