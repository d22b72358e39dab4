//! What sources share: how many samples make a frame, when a sample is due, and where a stream is cut.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, monotonic_ns};
use grebe_frame::{BatchPool, Description, HEADER_BYTES, SampleFormat};

use crate::error::Error;

/// Bytes of a datagram that crosses any network without fragments.
pub const DATAGRAM_BYTES: usize = 1400;

/// Bytes of the largest datagram that is chosen by default, where nothing but memory lies between the ends.
pub const DATAGRAM_BYTES_MAX: usize = 65_000;

/// The chunk size of every source: what the kernel fills with coalesced datagrams at most.
pub const CHUNK_BYTES: usize = 65_536;

/// A chunk for frames that are made of datagrams: it holds the longest with its header, also where samples of 24 bits become 32.
pub const DATAGRAM_CHUNK_BYTES: usize = 2 * CHUNK_BYTES;

/// Such chunks: as many as the graph can hold, and some for what a receiver takes at once.
pub fn datagram_chunks(ctx: &Context) -> BatchPool {
    let mut pool = BatchPool::new(ctx.batches_in_flight() + TAKEN_AT_ONCE, DATAGRAM_CHUNK_BYTES);
    pool.wake_on_return(ctx.signal().clone());
    pool
}

const TAKEN_AT_ONCE: usize = 66;

/// The block length, in samples per channel: what a datagram holds, at most 10 ms of the signal, at least one sample, and
/// rounded down to 32 where it is larger (64 of one byte), so that every channel begins at a multiple of 64 bytes.
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

/// Refuses a size of datagrams that holds no frame, or that UDP cannot carry.
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

/// Whether nothing else is said of a stream than before.
pub fn is_same(before: Option<&Arc<Description>>, now: Option<&Arc<Description>>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => Arc::ptr_eq(before, now),
        (before, now) => before.is_none() && now.is_none(),
    }
}

/// A moment by both clocks: the one that waits, and the one of stamps.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at: Instant,
    ns: u64,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        Self { at: Instant::now(), ns: monotonic_ns() }
    }
}

/// Paces a stream to its rate: sample `first + k` is due `k / rate` after the start, whatever happened before.
#[derive(Debug, Clone)]
pub struct Pacer {
    began: Instant,
    began_ns: u64,
    first: u64,
    /// Samples per second and channel; 0 = as fast as it goes.
    rate_hz: f64,
    /// The sample up to which the present burst goes.
    burst_end: u64,
}

impl Pacer {
    /// Sample `first` is due now.
    pub fn start(rate_hz: f64, first: u64) -> Self {
        Self { first, burst_end: first, ..Self::start_at(Moment::now(), rate_hz) }
    }

    /// Sample 0 was due then.
    pub fn start_at(began: Moment, rate_hz: f64) -> Self {
        Self { began: began.at, began_ns: began.ns, first: 0, rate_hz, burst_end: 0 }
    }

    /// Up to which sample the stream is due, once `wanted` samples are; `next` is the end of the block to make next. Without a rate,
    /// all are due.
    ///
    /// A burst holds what was due when it began. What falls due while it is made waits for the next one: at a high rate there is
    /// always one more block due, and each block on its own would cost a wake-up and a system call.
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

    /// Sleeps until `samples` are due or the graph is stopped, and for 100 ms at most, so that a change of the rate is seen.
    pub fn sleep_until_due(&self, samples: u64, ctx: &Context) {
        if !self.is_free() {
            ctx.sleep_until((self.began + self.offset(samples)).min(Instant::now() + LOOK_INTERVAL));
        }
    }

    /// The stamp of a sample: when it was due; now, where there is no rate.
    pub fn stamp_ns(&self, sample: u64) -> u64 {
        if self.is_free() { monotonic_ns() } else { self.began_ns + self.offset(sample).as_nanos() as u64 }
    }

    /// Whether the stream goes as fast as it can.
    pub fn is_free(&self) -> bool {
        self.rate_hz <= 0.0
    }

    fn offset(&self, samples: u64) -> Duration {
        // Beyond a thousand years the schedule no longer matters.
        Duration::from_secs_f64((samples.saturating_sub(self.first) as f64 / self.rate_hz).min(1e10))
    }
}

/// How soon a source sees that its settings were changed.
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
    fn what_falls_due_while_a_burst_is_made_waits_for_the_next() {
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
