//! Making a summary: while a recording is written, or while it is read.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grebe_frame::SampleFormat;

use super::block::{BlockBuilder, SUMS_LOG2};
use super::format::{Head, Kind, Stamp, block_log2};
use super::maker::Writer;
use super::nodes::{Lanes, LevelSums};
use super::part_file::PartFile;
use super::reader::Summary;

/// Writes the summary of a recording, block by block, beside its final name; written blocks are readable at
/// once.
///
/// Costs a pass over the samples while they are in the cache, and a write of about 1.3 % of their bytes for
/// each block of about 32 MB.
#[derive(Debug)]
pub(super) struct SummaryWriter {
    lanes: Lanes,
    channels: u32,
    block_log2: u32,
    file: PartFile,
    block: BlockBuilder,
    bytes: Vec<u8>,
    /// Sums of the stretches that ended since the last block, and of the one that has not.
    sums: Vec<(Vec<LevelSums>, LevelSums)>,
    samples: u64,
    summary: Arc<Summary>,
}

impl Writer for SummaryWriter {
    const KIND: Kind = Kind::Extremes;
    type Summary = Summary;

    fn create(path: &Path, format: SampleFormat, channels: usize) -> io::Result<Self> {
        let lanes = Lanes::new(format, channels);
        let file = PartFile::create(path)?;
        let summary = Arc::new(Summary::begin(lanes, file.reader()?));
        Ok(Self {
            lanes,
            channels: channels as u32,
            block_log2: block_log2(lanes),
            file,
            block: BlockBuilder::new(lanes, block_log2(lanes)),
            bytes: Vec::new(),
            sums: vec![Default::default(); lanes.count],
            samples: 0,
            summary,
        })
    }

    fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn append(&mut self, channels: &[&[u8]]) -> io::Result<()> {
        let sample_bytes = self.lanes.format.bytes();
        let length = channels.iter().map(|channel| channel.len() / sample_bytes).min().unwrap_or(0);
        let mut part = Vec::with_capacity(channels.len());
        let mut at = 0;
        while at < length {
            let to_step = STEP_SAMPLES - self.samples % STEP_SAMPLES;
            let now = (length - at).min(to_step as usize);
            part.clear();
            part.extend(
                channels.iter().map(|channel| &channel[at * sample_bytes..(at + now) * sample_bytes]),
            );
            self.samples += now as u64;
            let sums = &mut self.sums;
            self.block.add(&part, now as u64, |lane, sum| sums[lane].1.merge(sum));
            if self.samples.is_multiple_of(1 << SUMS_LOG2) {
                for (ended, open) in &mut self.sums {
                    ended.push(std::mem::take(open));
                }
            }
            if self.samples.is_multiple_of(1 << self.block_log2) {
                self.end_block()?;
            }
            at += now;
        }
        Ok(())
    }

    fn finish(mut self, stamp: Stamp) -> io::Result<Arc<Summary>> {
        if self.block.samples() > 0 {
            for (ended, open) in &mut self.sums {
                if open.count > 0 {
                    ended.push(std::mem::take(open));
                }
            }
            self.end_block()?;
        }
        let coarse = self.summary.coarse().encode();
        self.file.append(&coarse)?;
        let head = Head {
            kind: Kind::Extremes,
            format: self.lanes.format,
            channels: self.channels,
            block_log2: self.block_log2,
            samples: self.samples,
            stamp,
            coarse_checksum: crc32c::crc32c(&coarse),
        };
        self.file.finish(&head)?;
        Ok(self.summary)
    }

    fn open_if(path: &Path, is_wanted: impl Fn(&Head) -> bool) -> io::Result<Option<Summary>> {
        Summary::open_if(path, is_wanted)
    }

    fn known_samples(summary: &Summary) -> u64 {
        summary.known_samples()
    }
}

impl SummaryWriter {
    fn end_block(&mut self) -> io::Result<()> {
        let nodes = self.block.take(&mut self.bytes);
        self.file.append(&self.bytes)?;
        let lanes = self.lanes;
        let sums = &mut self.sums;
        self.summary.learn(self.samples, |coarse| {
            for (lane, nodes) in nodes.iter().enumerate() {
                coarse.append(lanes, lane, nodes);
                coarse.sums[lane].append(&mut sums[lane].0);
            }
        });
        Ok(())
    }
}

/// Samples processed at a time, lane after lane: they fit into part of the second-level cache, with all nodes
/// that end with a sample.
const STEP_SAMPLES: u64 = 1 << 13;
