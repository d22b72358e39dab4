//! Numbers the frames of a stream that a program makes.

use crate::batch::{BatchMut, PushError};
use crate::format::{Sample, SampleFormat};
use crate::header::{Header, Refusal};

/// Numbers the frames of one stream: counts sequence and sample index, and makes the end.
///
/// ```
/// use grebe_frame::{BatchPool, FrameWriter, SampleFormat};
///
/// let mut writer = FrameWriter::new(SampleFormat::I16, 2, 1e6)?;
/// let mut batch = BatchPool::new(1, 4096).acquire().expect("a new pool has a chunk");
/// writer.push(&mut batch, 100, 0, |_, samples: &mut [i16]| samples.fill(7))?;
/// // The device was too slow for 50 samples.
/// writer.skip(50);
/// writer.push(&mut batch, 100, 150_000, |_, samples: &mut [i16]| samples.fill(8))?;
/// let headers: Vec<_> = batch.frames().map(|frame| frame.header()).collect();
/// assert_eq!((headers[1].sequence, headers[1].first_sample_index, headers[1].sg_drops_total), (1, 150, 50));
/// let end = writer.end(250_000);
/// assert!(end.is_end_of_stream());
/// assert_eq!((end.sequence, end.first_sample_index), (2, 250));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FrameWriter {
    next: Header,
}

impl FrameWriter {
    /// A stream of this format, with `channels` (1 to 255) and samples per second and channel; 0 if it has no rate.
    ///
    /// # Errors
    /// No receiver accepts such a stream.
    pub fn new(format: SampleFormat, channels: u32, sample_rate_hz: f64) -> Result<Self, Refusal> {
        let next = Header { format, channel_count: channels, sample_rate_hz, ..Header::default() };
        next.check()?;
        Ok(Self { next })
    }

    /// The same stream, starting at this sample index. Earlier samples do not count as missing.
    pub fn starting_at(mut self, first_sample_index: u64) -> Self {
        self.next.first_sample_index = first_sample_index;
        self
    }

    /// Appends the next frame to a batch: `samples` per channel, which `fill` writes, one call per channel. The first
    /// sample was taken at `producer_ts_ns` of a monotonic clock.
    ///
    /// # Errors
    /// [`PushError::Full`]: nothing was counted; push it to the next batch.
    pub fn push<T: Sample>(
        &mut self,
        batch: &mut BatchMut,
        samples: u32,
        producer_ts_ns: u64,
        fill: impl FnMut(usize, &mut [T]),
    ) -> Result<(), PushError> {
        let header = Header { block_length_samples: samples, producer_ts_ns, ..self.next };
        batch.push(&header, fill)?;
        self.advance(samples);
        Ok(())
    }

    /// As [`push`](Self::push), for samples as on the wire, in any format.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_bytes(
        &mut self,
        batch: &mut BatchMut,
        samples: u32,
        producer_ts_ns: u64,
        fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), PushError> {
        let header = Header { block_length_samples: samples, producer_ts_ns, ..self.next };
        batch.push_bytes(&header, fill)?;
        self.advance(samples);
        Ok(())
    }

    fn advance(&mut self, samples: u32) {
        self.next.sequence += 1;
        self.next.first_sample_index += u64::from(samples);
    }

    /// Format of its samples.
    pub fn format(&self) -> SampleFormat {
        self.next.format
    }

    /// Number of channels.
    pub fn channels(&self) -> u32 {
        self.next.channel_count
    }

    /// Index of the next sample, skipped ones included.
    pub fn next_sample_index(&self) -> u64 {
        self.next.first_sample_index
    }

    /// Skips samples per channel that the producer missed. Receivers see a gap of the producer.
    pub fn skip(&mut self, samples: u64) {
        self.next.first_sample_index += samples;
        self.next.sg_drops_total += samples;
    }

    /// The frame that ends the stream.
    pub fn end(&self, producer_ts_ns: u64) -> Header {
        Header { producer_ts_ns, ..self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::BatchPool;

    #[test]
    fn bytes_and_samples_are_numbered_alike() {
        let mut pool = BatchPool::new(2, 4096);
        let mut of_bytes = FrameWriter::new(SampleFormat::I16, 2, 1e6).unwrap();
        let mut of_samples = of_bytes.clone();
        let (mut one, mut other) = (pool.acquire().unwrap(), pool.acquire().unwrap());
        for at in 0..3 {
            let bytes = |channel: usize, to: &mut [u8]| to.fill(channel as u8);
            of_bytes.push_bytes(&mut one, 10, at, bytes).unwrap();
            let samples = |channel: usize, to: &mut [i16]| to.fill(channel as i16 * 0x0101);
            of_samples.push(&mut other, 10, at, samples).unwrap();
        }
        let frames =
            |batch: &BatchMut| batch.frames().map(|it| (it.header(), it.payload().to_vec())).collect();
        let (one, other): (Vec<_>, Vec<_>) = (frames(&one), frames(&other));
        assert_eq!(one, other);
        assert_eq!((of_bytes.next_sample_index(), of_bytes.format()), (30, SampleFormat::I16));
        let full = of_bytes.push_bytes(&mut pool_of(64), 10, 0, |_, _| {});
        assert_eq!(
            (full, of_bytes.next_sample_index()),
            (Err(crate::Full.into()), 30),
            "nothing was counted"
        );
    }

    #[test]
    fn a_stream_that_starts_later_misses_nothing() {
        let mut writer = FrameWriter::new(SampleFormat::I16, 1, 1e6).unwrap().starting_at(500);
        let mut batch = pool_of(4096);
        writer.push(&mut batch, 10, 0, |_, samples: &mut [i16]| samples.fill(1)).unwrap();
        writer.skip(5);
        let header = batch.frames().next().unwrap().header();
        assert_eq!((header.sequence, header.first_sample_index, header.sg_drops_total), (0, 500, 0));
        assert_eq!((writer.end(0).first_sample_index, writer.end(0).sg_drops_total), (515, 5));
    }

    fn pool_of(bytes: usize) -> BatchMut {
        BatchPool::new(1, bytes).acquire().unwrap()
    }
}
