//! Streams for tests of stages.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use grebe_frame::{Batch, BatchPool, Header, SampleFormat};

/// Batches of one frame each, at these sample indices and of these lengths. Every sample differs from its neighbours. A
/// jump of the index counts as two lost frames.
pub fn stream(channels: u32, frames: &[(u64, u32)]) -> Vec<Batch> {
    batches_of(channels, frames, 1)
}

/// As [`stream`], with `together` frames per batch.
pub fn batches_of(channels: u32, frames: &[(u64, u32)], together: usize) -> Vec<Batch> {
    let (mut sequence, mut next) = (0, frames.first().map_or(0, |&(index, _)| index));
    let mut batches = Vec::new();
    for frames in frames.chunks(together) {
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        for &(index, length) in frames {
            sequence += if index > next { 2 } else { 0 };
            let header = Header {
                format: SampleFormat::I16,
                sequence,
                producer_ts_ns: 1_000_000 + index * 1_000,
                channel_count: channels,
                block_length_samples: length,
                sample_rate_hz: 1e6,
                sg_drops_total: 0,
                first_sample_index: index,
            };
            batch
                .push::<i16>(&header, |channel, samples| {
                    let indexed = samples.iter_mut().enumerate();
                    indexed.for_each(|(at, sample)| *sample = sample_at(channel, index + at as u64));
                })
                .unwrap();
            sequence += 1;
            next = index + u64::from(length);
        }
        batches.push(batch.freeze());
    }
    batches
}

/// The sample of [`stream`] at this position.
pub fn sample_at(channel: usize, index: u64) -> i16 {
    (index.wrapping_mul(7919).wrapping_add(channel as u64 * 104_729) >> 2) as i16
}

/// Header and samples by channel of each frame.
pub fn frames_of(batches: &[Batch]) -> Vec<(Header, Vec<Vec<i16>>)> {
    let frames = batches.iter().flat_map(|batch| batch.frames());
    frames
        .map(|frame| {
            let header = frame.header();
            let channels = 0..header.channel_count as usize;
            (header, channels.map(|channel| frame.channel::<i16>(channel).unwrap().into_owned()).collect())
        })
        .collect()
}

/// Hands out its bytes in pieces of the given lengths, again and again.
pub struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    lengths: Vec<usize>,
    turn: usize,
}

impl Pieces {
    /// These bytes; the lengths come round again.
    pub fn new(bytes: Vec<u8>, lengths: Vec<usize>) -> Self {
        Self { bytes, at: 0, lengths, turn: 0 }
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.lengths[self.turn % self.lengths.len()];
        let length = length.min(out.len()).min(self.bytes.len() - self.at);
        self.turn += 1;
        out[..length].copy_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// Keeps what is written.
#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
