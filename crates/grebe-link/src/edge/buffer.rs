//! Buffers of messages that are used again, and how much may be under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A buffer for a message, which goes back to where it came from.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pub(super) home: Arc<Spares>,
}

/// Buffers that are not used just now.
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

/// A panic while it was held has ended the thread that held it, and left nothing half done.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of frames that may be under way on one link, beside its batches. One message more may be.
pub(super) const WINDOW_BYTES: u64 = 8 << 20;
const SPARES_MAX: usize = 64;
