//! All samples that a scope has.
//!
//! ```text
//!   a recording       the whole file, if it has one stream
//!   a ring            its parts, the oldest first
//!   a stream          [the ring that records it] -> the samples in the scope's memory, copied in pieces
//! ```

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_frame::{BatchPool, Header, Sample, SampleFormat};
use grebe_recording::{Block, SampleFile, Segment, ring_parts};
use grebe_stages::Uri;
use grebe_view::{Extract, ExtractRun, HistoryReader, ScopeLink};

use super::RingSaver;
use super::export::{Narrowed, narrow};
use super::recording::is_one_stream;
use crate::search::Signal;

/// Source of samples for a search, or for sound.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Recording of one stream, with the sample indices of the scope.
    File(PathBuf),
    /// Folder of a ring.
    Ring(PathBuf),
    /// Scope, and the ring that records its stream, if any.
    Stream(ScopeLink, Option<RingSaver>),
}

impl Held {
    /// The source for a scope; a file has everything, even while the scope still reads it.
    pub(crate) fn of(uri: &Uri, link: &ScopeLink, keeper: Option<&RingSaver>) -> Self {
        if let Uri::File(path) = uri
            && SampleFile::open(path).is_ok_and(|file| is_one_stream(&file))
        {
            return Self::File(path.clone());
        }
        Self::Stream(link.clone(), keeper.cloned())
    }
}

/// The part of a segment that lies in a range of sample indices, by position in the segment.
pub(super) fn within(segment: &Segment, range: &Range<u64>) -> Range<u64> {
    let place = |index: u64| index.saturating_sub(segment.first_sample_index).min(segment.length_samples);
    place(range.start)..place(range.end)
}

/// Parts of the ring before an index of this stream, oldest first.
pub(super) fn ring_of(keeper: &RingSaver, signal: &Signal, end: u64) -> Vec<SampleFile> {
    let parts = keeper.folder().and_then(|folder| ring_parts(&folder).ok());
    // New ones may have appeared.
    let end = end.saturating_add(signal.sample_rate_hz as u64 * LOOKED_FOR_S);
    parts.map_or(Vec::new(), |parts| parts_of(parts, signal, end))
}

/// The newest parts of a ring that are one stream, before an index.
pub(super) fn parts_of(mut parts: Vec<SampleFile>, signal: &Signal, end: u64) -> Vec<SampleFile> {
    let is_alike = |file: &SampleFile| {
        (file.format(), file.channels(), file.rate_hz().unwrap_or(0.0))
            == (signal.format, signal.channels, signal.sample_rate_hz)
    };
    let mut next = end;
    let follows = |file: &SampleFile, next: &mut u64| {
        let is_before = file.segments().iter().rev().all(|segment| {
            let is_before = segment.first_sample_index + segment.length_samples <= *next;
            *next = segment.first_sample_index;
            is_before
        });
        is_before && is_alike(file)
    };
    let first = parts.iter().rposition(|file| !follows(file, &mut next)).map_or(0, |place| place + 1);
    parts.drain(..first);
    parts
}

/// Copies a range out of the memory of a scope in pieces, slowly, so that its stream is not disturbed. `take` gets the indices of
/// each piece, and the samples of it that are still there.
pub(super) fn lend(
    reader: &HistoryReader,
    range: Range<u64>,
    lanes: usize,
    goes_on: impl Fn() -> bool,
    mut take: impl FnMut(Range<u64>, &Extract) -> Result<()>,
) -> Result<()> {
    let lanes = lanes.max(1) as u64;
    let step = (LENT_VALUES / lanes).max(1);
    let mut at = range.start;
    while at < range.end && goes_on() {
        let began = Instant::now();
        let end = range.end.min(at + step);
        let Some(extract) = reader.read(at..end, &goes_on) else { break };
        let next = end.max(extract.held.start.min(range.end));
        take(at..next, &extract)?;
        at = next;
        // The stream's thread copied them, and has other work.
        let pause = Duration::from_secs_f64((step * lanes) as f64 / LENT_VALUES_PER_S);
        std::thread::sleep(pause.saturating_sub(began.elapsed()));
    }
    Ok(())
}

/// Converts copied samples to frames of their stream.
pub(super) struct Frames {
    pool: BatchPool,
    header: Header,
    samples_max: usize,
}

impl Frames {
    pub(super) fn new(signal: &Signal) -> Self {
        // Rounded values stay rounded.
        let format = if signal.format == SampleFormat::F64 { SampleFormat::F32 } else { signal.format };
        let header = Header { channel_count: signal.channels as u32, format, ..Header::default() };
        let samples_max = (FRAME_BYTES / (format.bytes() * signal.channels).max(1)).max(1);
        Self { pool: BatchPool::new(1, FRAME_BYTES * 2), header, samples_max }
    }

    pub(super) fn each(
        &mut self,
        extract: &Extract,
        mut each: impl FnMut(u64, &Block<'_>) -> Result<()>,
    ) -> Result<()> {
        for run in &extract.runs {
            for from in (0..run.samples.len()).step_by(self.samples_max) {
                let length = self.samples_max.min(run.samples.len() - from);
                self.one(run, from, length, &mut each)?;
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        run: &ExtractRun,
        from: usize,
        length: usize,
        each: &mut impl FnMut(u64, &Block<'_>) -> Result<()>,
    ) -> Result<()> {
        let header = Header { block_length_samples: length as u32, ..self.header };
        let Some(mut batch) = self.pool.acquire() else { return Ok(()) };
        let format = header.format;
        narrow(&run.samples, from..from + length, format, Frame { header, batch: &mut batch })?;
        let batch = batch.freeze();
        batch
            .frames()
            .try_for_each(|frame| each(run.first_sample_index + from as u64, &Block::of_frame(&frame)))
    }
}

/// Frame to fill.
struct Frame<'a> {
    header: Header,
    batch: &'a mut grebe_frame::BatchMut,
}

impl Narrowed for Frame<'_> {
    type Done = Result<()>;

    fn take<T: Sample>(self, channels: Vec<Vec<T>>) -> Result<()> {
        self.batch.push::<T>(&self.header, |channel, out| out.copy_from_slice(&channels[channel]))?;
        Ok(())
    }
}

/// Lowers the priority below the stream and the viewers.
pub(super) fn lower_priority() {
    // Of this thread only, on Linux; elsewhere it competes normally.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(target_os = "linux")]
const NICE: i32 = 15;
/// For one channel of 16 bits, the share of a second-level cache.
pub(super) const BLOCK_SAMPLES: u64 = 64 << 10;
/// Samples of all channels that a scope copies at once: tens of microseconds, far less than its queue holds.
pub(super) const LENT_VALUES: u64 = 128 << 10;
/// Maximum copy rate: a twentieth of a processor's.
const LENT_VALUES_PER_S: f64 = 400e6;
const FRAME_BYTES: usize = 60 << 10;
/// Longer than the discovery of a ring.
const LOOKED_FOR_S: u64 = 5;
