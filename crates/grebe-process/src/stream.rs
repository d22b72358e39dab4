//! Common parts of sources: block length, pacing, and chunks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, monotonic_ns};
use grebe_frame::{BatchPool, Description, HEADER_BYTES, SampleFormat};

use crate::error::Error;

/// Length of a datagram that crosses any network without fragmentation.
pub const DATAGRAM_BYTES: usize = 1400;

/// Maximum default length of a datagram between two ends on one host.
pub const DATAGRAM_BYTES_MAX: usize = 65_000;

/// Chunk length of every source: the kernel's maximum for coalesced datagrams.
pub const CHUNK_BYTES: usize = 65_536;

/// Chunk length for frames made of datagrams: fits the longest with its header, even if 24-bit samples become
/// 32-bit.
pub const DATAGRAM_CHUNK_BYTES: usize = 2 * CHUNK_BYTES;

/// Makes a pool of such chunks: as many as the graph can hold, and some for one receive call.
pub fn datagram_chunks(ctx: &Context) -> BatchPool {
    let mut pool = BatchPool::new(ctx.batches_in_flight() + TAKEN_AT_ONCE, DATAGRAM_CHUNK_BYTES);
    pool.wake_on_return(ctx.signal().clone());
    pool
}

const TAKEN_AT_ONCE: usize = 66;

/// Block length in samples per channel: as many as a datagram holds, at most 10 ms of signal, at least one
/// sample. Larger values are rounded down to a multiple of 32 (64 for one-byte samples), so that every
/// channel begins at a multiple of 64 bytes.
///
/// ```
/// use grebe_frame::SampleFormat::{Cf32, I16, U8};
/// use grebe_process::stream::block_length;
///
/// assert_eq!(block_length(1400, 1, I16, 100e6), 640);
/// assert_eq!(block_length(1400, 4, I16, 25e6), 160);
/// assert_eq!(block_length(1400, 1, I16, 360.0), 3);
/// assert_eq!(block_length(1400, 1, I16, 0.0), 640, "no rate, no limit in time");
/// assert_eq!((block_length(1400, 1, U8, 1e6), block_length(1400, 1, Cf32, 1e6)), (1_280, 160));
/// ```
pub fn block_length(datagram_bytes: usize, channels: usize, format: SampleFormat, rate_hz: f64) -> u32 {
    let fits = datagram_bytes.saturating_sub(HEADER_BYTES) / (format.bytes() * channels.max(1));
    let timely = if rate_hz > 0.0 { (rate_hz * BLOCK_S_MAX) as usize } else { usize::MAX };
    let block = fits.min(timely).max(1);
    let aligned = if format.bytes() == 1 { 2 * ALIGN } else { ALIGN };
    (if block > aligned { block - block % aligned } else { block }) as u32
}

/// Refuses a datagram length that holds no frame, or exceeds UDP.
pub fn check_datagram_bytes(bytes: usize) -> Result<(), Error> {
    if (DATAGRAM_BYTES_MIN..=grebe_datagram::MAX_DATAGRAM_BYTES).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Setting { what: "datagram size", got: bytes.to_string(), must: "give 80 to 65507 bytes" })
}

/// A header and one sample of eight channels.
const DATAGRAM_BYTES_MIN: usize = 80;
const BLOCK_S_MAX: f64 = 0.010;
const ALIGN: usize = 32;

/// Whether the description is unchanged.
pub fn is_same(before: Option<&Arc<Description>>, now: Option<&Arc<Description>>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => Arc::ptr_eq(before, now),
        (before, now) => before.is_none() && now.is_none(),
    }
}

/// Moment by both clocks: for waiting, and for stamps.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at: Instant,
    ns: u64,
}

impl Moment {
    /// Present moment.
    pub fn now() -> Self {
        Self { at: Instant::now(), ns: monotonic_ns() }
    }
}

/// Paces a stream to its rate: sample `first + k` is due `k / rate` after the start, whatever happened
/// before.
#[derive(Debug, Clone)]
pub struct Pacer {
    began: Instant,
    began_ns: u64,
    first: u64,
    /// Samples per second and channel; 0: unpaced.
    rate_hz: f64,
    /// End of the present burst.
    burst_end: u64,
}

impl Pacer {
    /// Starts with sample `first` due now.
    pub fn start(rate_hz: f64, first: u64) -> Self {
        Self { first, burst_end: first, ..Self::start_at(Moment::now(), rate_hz) }
    }

    /// Starts with sample 0 due at that moment.
    pub fn start_at(began: Moment, rate_hz: f64) -> Self {
        Self { began: began.at, began_ns: began.ns, first: 0, rate_hz, burst_end: 0 }
    }

    /// Sample up to which the stream is due, once `wanted` samples are; `next` is the end of the next block.
    /// Without a rate, all are due.
    ///
    /// A burst contains the samples due at its start. Samples that become due meanwhile wait for the next
    /// burst. At a high rate one more block is always due, and each alone would cost a wake-up and a system
    /// call.
    pub fn due_samples(&mut self, next: u64, wanted: u64) -> Option<u64> {
        if self.is_free() {
            return Some(u64::MAX);
        }
        if next > self.burst_end {
            let due = self.first + (self.began.elapsed().as_secs_f64() * self.rate_hz) as u64;
            if due < wanted {
                return None;
            }
            self.burst_end = due;
        }
        Some(self.burst_end)
    }

    /// Sleeps until `samples` are due or the graph stops, at most 100 ms, so that a change of the rate takes
    /// effect.
    pub fn sleep_until_due(&self, samples: u64, ctx: &Context) {
        if !self.is_free() {
            ctx.sleep_until((self.began + self.offset(samples)).min(Instant::now() + LOOK_INTERVAL));
        }
    }

    /// Stamp of a sample: the time it was due, or now without a rate.
    pub fn stamp_ns(&self, sample: u64) -> u64 {
        if self.is_free() { monotonic_ns() } else { self.began_ns + self.offset(sample).as_nanos() as u64 }
    }

    /// Whether the stream is unpaced.
    pub fn is_free(&self) -> bool {
        self.rate_hz <= 0.0
    }

    fn offset(&self, samples: u64) -> Duration {
        // Beyond a thousand years the schedule is irrelevant.
        Duration::from_secs_f64((samples.saturating_sub(self.first) as f64 / self.rate_hz).min(1e10))
    }
}

/// Interval at which a source checks for changed settings.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limits_are_those_that_the_message_names() {
        let error = check_datagram_bytes(79).unwrap_err().to_string();
        assert!(error.contains(&format!("{DATAGRAM_BYTES_MIN} to {}", grebe_datagram::MAX_DATAGRAM_BYTES)));
        assert!(check_datagram_bytes(80).is_ok() && check_datagram_bytes(65_508).is_err());
    }

    proptest! {
        #[test]
        fn a_block_fits_its_datagram(bytes in 80usize..65_508, channels in 1usize..=8, rate in 0.0..1e10f64, number in 0u8..10) {
            let format = SampleFormat::from_wire(number).unwrap();
            let block = block_length(bytes, channels, format, rate) as usize;
            prop_assert!(block >= 1);
            prop_assert!(block == 1 || HEADER_BYTES + block * channels * format.bytes() <= bytes);
            let aligned = if format.bytes() == 1 { 64 } else { 32 };
            prop_assert!(block <= aligned || block.is_multiple_of(aligned));
        }
    }

    #[test]
    fn stamps_follow_the_rate_and_not_the_load() {
        let pacer = Pacer::start(1000.0, 0);
        assert_eq!(pacer.stamp_ns(2500) - pacer.stamp_ns(500), 2_000_000_000);
        assert!(pacer.stamp_ns(u64::MAX) > 0);
        let later = Pacer::start(1000.0, 500);
        assert_eq!(later.stamp_ns(1500) - later.stamp_ns(500), 1_000_000_000);
        assert_eq!(later.stamp_ns(500), later.began_ns);
    }

    #[test]
    fn frames_due_during_a_burst_wait_for_the_next() {
        let mut pacer = Pacer::start(1e9, 0);
        std::thread::sleep(Duration::from_micros(10));
        let burst = pacer.due_samples(1, 10_000).expect("10 us have gone by");
        std::thread::sleep(Duration::from_micros(10));
        assert_eq!(pacer.due_samples(burst, 1), Some(burst));
        assert_eq!(pacer.due_samples(burst + 1, u64::MAX), None);
        assert!(pacer.due_samples(burst + 1, burst + 1) > Some(burst));
    }

    #[test]
    fn without_a_rate_everything_is_due() {
        assert_eq!(Pacer::start(0.0, 0).due_samples(1, 1), Some(u64::MAX));
    }
}
