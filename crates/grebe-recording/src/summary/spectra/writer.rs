//! Making a spectral summary: while a recording is written, or while it is read.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grebe_frame::SampleFormat;
use grebe_scope::{PowerTransform, Window};

use super::layout::{HOP_SAMPLES, LEVELS, Layout, TRANSFORM_SAMPLES, encode, full_scale};
use super::reader::SpectralSummary;
use crate::summary::format::{Head, Kind, ROW_LOG2, Stamp};
use crate::summary::maker::Writer;
use crate::summary::nodes::Lanes;
use crate::summary::part_file::PartFile;

/// Writes the spectral summary of a recording, row by row, beside its final name; written rows are readable at
/// once.
///
/// Costs two transforms a sample while the samples are in the cache, and a write of less than 0.9 % of their bytes.
#[derive(Debug)]
pub(in crate::summary) struct SpectraWriter {
    lanes: Lanes,
    layout: Layout,
    file: PartFile,
    transform: PowerTransform,
    channels: Vec<Channel>,
    zero: f32,
    power: Vec<f32>,
    bytes: Vec<u8>,
    samples: u64,
    /// Of the shortest.
    rows: u64,
    summary: Arc<SpectralSummary>,
}

/// Samples of a channel that wait for a transform, and the rows that have not ended.
#[derive(Debug)]
struct Channel {
    /// Real ones, or I; and Q.
    first: Vec<f32>,
    q: Vec<f32>,
    /// Where the next transform begins in them.
    next: usize,
    rows: Vec<Row>,
}

/// Power of the transforms of a row, by line.
#[derive(Debug, Clone)]
struct Row {
    highest: Vec<f32>,
    sum: Vec<f32>,
    transforms: u32,
    is_begun: bool,
}

impl Writer for SpectraWriter {
    const KIND: Kind = Kind::Spectra;
    type Summary = SpectralSummary;

    fn create(path: &Path, format: SampleFormat, channels: usize) -> io::Result<Self> {
        let lanes = Lanes::new(format, channels);
        let layout = Layout::new(lanes);
        let file = PartFile::create(path)?;
        let transform = match format.is_complex() {
            true => PowerTransform::complex(TRANSFORM_SAMPLES, Window::Hann),
            false => PowerTransform::real(TRANSFORM_SAMPLES, Window::Hann),
        };
        let mut transform = transform.map_err(io::Error::other)?;
        let (full_scale, zero) = full_scale(format);
        transform.set_full_scale(full_scale);
        let summary = Arc::new(SpectralSummary::begin(lanes, file.reader()?));
        let channel = || Channel::new(lanes, layout, zero);
        Ok(Self {
            lanes,
            layout,
            file,
            power: vec![0.0; transform.lines()],
            transform,
            channels: (0..channels).map(|_| channel()).collect(),
            zero,
            bytes: Vec::new(),
            samples: 0,
            rows: 0,
            summary,
        })
    }

    fn summary(&self) -> &Arc<SpectralSummary> {
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
        let mut at = 0;
        while at < length {
            // A row ends with the sample after it, because the last row of the file has one more transform.
            if self.samples == (self.rows + 1) << ROW_LOG2 {
                self.end_row()?;
            }
            let now = (length - at).min((STEP_SAMPLES - self.samples % STEP_SAMPLES) as usize);
            for (number, (channel, bytes)) in self.channels.iter_mut().zip(channels).enumerate() {
                let bytes = &bytes[at * sample_bytes..(at + now) * sample_bytes];
                channel.take(self.lanes, number, bytes);
                channel.transform(&mut self.transform, &mut self.power, self.zero);
            }
            self.samples += now as u64;
            at += now;
        }
        Ok(())
    }

    fn finish(mut self, stamp: Stamp) -> io::Result<Arc<SpectralSummary>> {
        if self.samples > 0 {
            // Transforms whose middle is at or before the first multiple of a hop from the end on.
            let wanted = self.samples.div_ceil(HOP_SAMPLES as u64) * HOP_SAMPLES as u64 - self.samples;
            for channel in &mut self.channels {
                channel.pad(wanted as usize + HOP_SAMPLES, self.zero);
                channel.transform(&mut self.transform, &mut self.power, self.zero);
            }
            self.end_row()?;
            let levels = Layout::levels(self.rows);
            self.write_rows(|level, row| level < levels && row.is_begun)?;
        }
        let head = Head {
            kind: Kind::Spectra,
            format: self.lanes.format,
            channels: self.channels.len() as u32,
            block_log2: ROW_LOG2,
            samples: self.samples,
            stamp,
            coarse_checksum: 0,
        };
        self.file.finish(&head)?;
        self.summary.end(self.samples, self.rows);
        Ok(self.summary)
    }

    fn open_if(path: &Path, is_wanted: impl Fn(&Head) -> bool) -> io::Result<Option<SpectralSummary>> {
        SpectralSummary::open_if(path, is_wanted)
    }

    fn known_samples(summary: &SpectralSummary) -> u64 {
        summary.known_samples()
    }
}

impl SpectraWriter {
    /// Writes a row of the first level, and the rows of other levels that end with it.
    fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        let rows = self.rows;
        self.write_rows(|level, _| rows.is_multiple_of(1 << (2 * level)))?;
        self.summary.learn(rows);
        Ok(())
    }

    fn write_rows(&mut self, is_over: impl Fn(usize, &Row) -> bool) -> io::Result<()> {
        self.bytes.clear();
        for level in 0..LEVELS {
            if !is_over(level, &self.channels[0].rows[level]) {
                continue;
            }
            let bins = self.layout.bins(level);
            for channel in &mut self.channels {
                channel.rows[level].encode(bins, &mut self.power, &mut self.bytes);
                channel.raise(level);
            }
        }
        self.file.append(&self.bytes)
    }
}

impl Channel {
    fn new(lanes: Lanes, layout: Layout, zero: f32) -> Self {
        let room = STEP_SAMPLES as usize + 2 * TRANSFORM_SAMPLES;
        let mut channel = Self {
            first: Vec::with_capacity(room),
            q: Vec::with_capacity(if lanes.of_channel == 2 { room } else { 0 }),
            next: 0,
            rows: vec![Row::new(layout.bins_max); LEVELS],
        };
        // The first transform has its middle at the first sample.
        channel.first.resize(HOP_SAMPLES, zero);
        if lanes.of_channel == 2 {
            channel.q.resize(HOP_SAMPLES, zero);
        }
        channel
    }

    fn take(&mut self, lanes: Lanes, number: usize, bytes: &[u8]) {
        self.first.drain(..self.next);
        lanes.values(number * lanes.of_channel, bytes, &mut self.first);
        if lanes.of_channel == 2 {
            self.q.drain(..self.next);
            lanes.values(number * lanes.of_channel + 1, bytes, &mut self.q);
        }
        self.next = 0;
    }

    fn pad(&mut self, samples: usize, zero: f32) {
        self.first.resize(self.first.len() + samples, zero);
        if !self.q.is_empty() {
            self.q.resize(self.q.len() + samples, zero);
        }
    }

    fn transform(&mut self, transform: &mut PowerTransform, power: &mut [f32], zero: f32) {
        while self.next + TRANSFORM_SAMPLES <= self.first.len() {
            let own = self.next..self.next + TRANSFORM_SAMPLES;
            let q = self.q.get(own.clone()).unwrap_or_default();
            // `power` skips samples that are not finite.
            if transform.power(&self.first[own], q, zero, power) {
                self.rows[0].add(power);
            }
            self.rows[0].is_begun = true;
            self.next += HOP_SAMPLES;
        }
    }

    /// The row of a level ends: that of the next one takes it in.
    fn raise(&mut self, level: usize) {
        if let Ok([row, longer]) = self.rows.get_disjoint_mut([level, level + 1]) {
            longer.merge(row);
        }
        self.rows[level].clear();
    }
}

impl Row {
    fn new(bins: usize) -> Self {
        Self { highest: vec![0.0; bins], sum: vec![0.0; bins], transforms: 0, is_begun: false }
    }

    fn add(&mut self, power: &mut [f32]) {
        if let Some((&mut last, lines)) = power.split_last_mut()
            && lines.len() == self.sum.len()
        {
            // Of real samples the line at half the rate counts in the last bin.
            lines[lines.len() - 1] = lines[lines.len() - 1].max(last);
        }
        for ((highest, sum), power) in self.highest.iter_mut().zip(&mut self.sum).zip(power) {
            *highest = if *power > *highest { *power } else { *highest };
            *sum += *power;
        }
        self.transforms += 1;
    }

    fn merge(&mut self, shorter: &Row) {
        self.highest.iter_mut().zip(&shorter.highest).for_each(|(own, other)| *own = own.max(*other));
        self.sum.iter_mut().zip(&shorter.sum).for_each(|(own, other)| *own += other);
        self.transforms += shorter.transforms;
        self.is_begun |= shorter.is_begun;
    }

    fn clear(&mut self) {
        self.highest.fill(0.0);
        self.sum.fill(0.0);
        (self.transforms, self.is_begun) = (0, false);
    }

    fn encode(&self, bins: usize, scratch: &mut Vec<f32>, out: &mut Vec<u8>) {
        let lines = self.sum.len() / bins;
        let each = 1.0 / (self.transforms.max(1) as f32 * lines as f32);
        let lines_in_scratch = scratch.len();
        scratch.clear();
        scratch.extend(self.highest.chunks(lines).map(|lines| lines.iter().copied().fold(0.0, f32::max)));
        scratch.extend(self.sum.chunks(lines).map(|lines| lines.iter().sum::<f32>() * each));
        let (highest, mean) = scratch.split_at(bins);
        encode(highest, mean, out);
        scratch.resize(lines_in_scratch, 0.0);
    }
}

/// Samples that are decoded and transformed at a time: they stay in the cache.
const STEP_SAMPLES: u64 = 1 << 13;
