//! Batches of known samples for tests.

use grebe_frame::{Batch, BatchPool, Complex, Header, SampleFormat};
use grebe_testing::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One batch of one frame: sines of 1, 2, 3 ... periods per 500 samples, amplitude 10,000 over the channel's number.
pub(crate) fn sine_batch(first_sample_index: u64, channels: u32, samples: u32, rate_hz: f64) -> Batch {
    batch(first_sample_index, channels, samples, rate_hz, |channel, index| {
        let angle = index as f64 * (channel + 1) as f64 * std::f64::consts::TAU / 500.0;
        (angle.sin() * 10_000.0 / (channel + 1) as f64) as i16
    })
}

/// One batch of one frame, whose sequence follows from its index. All blocks must have one length.
pub(crate) fn batch(
    first_sample_index: u64,
    channels: u32,
    samples: u32,
    rate_hz: f64,
    value: impl Fn(usize, u64) -> i16,
) -> Batch {
    let header = Header {
        sequence: first_sample_index / u64::from(samples.max(1)),
        producer_ts_ns: 1_000 + first_sample_index,
        channel_count: channels,
        block_length_samples: samples,
        sample_rate_hz: rate_hz,
        first_sample_index,
        ..Header::default()
    };
    let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
    batch
        .push::<i16>(&header, |channel, samples| {
            for (sample, index) in samples.iter_mut().zip(first_sample_index..) {
                *sample = value(channel, index);
            }
        })
        .unwrap();
    batch.freeze()
}

/// One batch of one frame of complex samples, the same in all channels.
pub(crate) fn complex_batch(
    first_sample_index: u64,
    channels: u32,
    samples: u32,
    rate_hz: f64,
    value: impl Fn(u64) -> Complex<f32>,
) -> Batch {
    let header = Header {
        sequence: first_sample_index / u64::from(samples.max(1)),
        producer_ts_ns: 1_000 + first_sample_index,
        channel_count: channels,
        block_length_samples: samples,
        sample_rate_hz: rate_hz,
        first_sample_index,
        format: SampleFormat::Cf32,
        ..Header::default()
    };
    let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
    batch
        .push::<Complex<f32>>(&header, |_, samples| {
            samples.iter_mut().zip(first_sample_index..).for_each(|(sample, index)| *sample = value(index));
        })
        .unwrap();
    batch.freeze()
}
