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
    /// A stream of samples of this format, of so many channels (1 to 255) and samples per second and channel; 0 where it has no rate.
    ///
    /// # Errors
    /// No receiver takes such a stream.
    pub fn new(format: SampleFormat, channels: u32, sample_rate_hz: f64) -> Result<Self, Refusal> {
        let next = Header { format, channel_count: channels, sample_rate_hz, ..Header::default() };
        next.check()?;
        Ok(Self { next })
    }

    /// Appends the next frame to a batch: `samples` per channel, which `fill` writes, one call per channel; the first of them
    /// was taken at `producer_ts_ns` of a clock that only grows.
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
        self.next.sequence += 1;
        self.next.first_sample_index += u64::from(samples);
        Ok(())
    }

    /// Passes over samples per channel that the producer had no time for: receivers see a gap that is the producer's.
    pub fn skip(&mut self, samples: u64) {
        self.next.first_sample_index += samples;
        self.next.sg_drops_total += samples;
    }

    /// The frame that ends the stream.
    pub fn end(&self, producer_ts_ns: u64) -> Header {
        Header { producer_ts_ns, ..self.next }
    }
}
