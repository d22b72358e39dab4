//! Measured rates of the path and of this end's disk, for the decision whether to compare.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::delta::Rates;

/// Rates so far. Only two numbers are under a lock.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Maximum rate in a window, in bytes per second; 0 while unknown.
    path: AtomicU64,
    signed: Mutex<(u64, Duration)>,
}

/// Bytes from the stream, in windows of time.
#[derive(Debug)]
pub(super) struct Window {
    began: Instant,
    bytes: u64,
}

/// Longer than a burst that buffers on the path release at once.
const WINDOW: Duration = Duration::from_millis(250);

/// Fewer bytes measure start and end rather than the disk.
const SIGNED_BYTES_MIN: u64 = 32 << 20;

impl Measured {
    /// Counts bytes that arrived now.
    pub(super) fn came(&self, window: &mut Window, bytes: u64, now: Instant) {
        window.bytes += bytes;
        let time = now.saturating_duration_since(window.began);
        if time >= WINDOW {
            let rate = window.bytes as f64 / time.as_secs_f64();
            self.path.fetch_max(rate as u64, Ordering::Relaxed);
            *window = Window::at(now);
        }
    }

    /// Notes that an existing file was read, cut and hashed.
    pub(super) fn signed(&self, bytes: u64, time: Duration) {
        let mut signed = self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        (signed.0, signed.1) = (signed.0 + bytes, signed.1 + time);
    }

    /// Known rates. That of the path is a lower bound, because the sender may have had no more or no time.
    /// The sender's is assumed to equal this end's.
    pub(super) fn rates(&self) -> Rates {
        let path = self.path.load(Ordering::Relaxed) as f64;
        let (bytes, time) = *self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        let signed = (bytes >= SIGNED_BYTES_MIN).then(|| bytes as f64 / time.as_secs_f64().max(1e-6));
        Rates { path: (path > Rates::PATH_BYTES_PER_S).then_some(path), sender: signed, receiver: signed }
    }
}

impl Window {
    pub(super) fn at(now: Instant) -> Self {
        Self { began: now, bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_window_gives_the_minimum_rate_of_a_path() {
        let measured = Measured::default();
        let start = Instant::now();
        let mut window = Window::at(start);
        assert_eq!(measured.rates(), Rates::default());
        let at = |ms| start + Duration::from_millis(ms);
        // A gigabyte from one read is not a rate until the window is over.
        measured.came(&mut window, 1_000_000_000, at(10));
        assert_eq!(measured.rates().path, None);
        measured.came(&mut window, 0, at(2_000));
        assert_eq!(measured.rates().path, Some(500e6));
        measured.came(&mut window, 1_000, at(4_000));
        assert_eq!(measured.rates().path, Some(500e6));
    }

    #[test]
    fn a_path_with_little_traffic_is_not_taken_for_slow() {
        let measured = Measured::default();
        let start = Instant::now();
        measured.came(&mut Window::at(start), 1_000, start + Duration::from_secs(1));
        assert_eq!(measured.rates().path, None);
    }

    #[test]
    fn a_disk_is_known_by_what_was_read() {
        let measured = Measured::default();
        measured.signed(30 << 20, Duration::from_secs(1));
        assert_eq!(measured.rates().receiver, None);
        measured.signed(34 << 20, Duration::from_secs(1));
        assert_eq!(measured.rates().receiver, Some(f64::from(32 << 20)));
    }
}
