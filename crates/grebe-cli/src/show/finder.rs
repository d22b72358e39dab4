//! Search of all samples that a scope has, for local and remote viewers.
//!
//! ```text
//!   a recording       the whole file, if it has one stream
//!   a ring            its parts, the oldest first
//!   a stream          [the ring that records it] -> the samples in the scope's memory, copied in pieces
//! ```
//!
//! The thread of a search has the lowest priority. All searches together use at most one processor, and copy from a
//! scope at a bounded rate, so that the stream is not disturbed.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use grebe_frame::{BatchPool, ChannelDescription, Description, Header, Sample, SampleFormat};
use grebe_recording::{Block, SampleFile, Segment, ring_parts};
use grebe_scope::Scale;
use grebe_stages::Uri;
use grebe_view::{
    Extract, ExtractRun, Finder, Finding, FindingSide, FoundEvent, HistoryReader, ScopeLink, Sought,
};

use super::RingSaver;
use super::export::{Narrowed, narrow};
use super::recording::is_one_stream;
use crate::cli::EventWords;
use crate::search::{Signal, Walk};

/// Source of samples for a search.
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

    /// The search function of this source.
    pub(crate) fn finder(self) -> Finder {
        let turn = Arc::new(Mutex::new(()));
        Finder::new(move |sought| {
            let (side, finding) = Finding::begin();
            let (held, turn) = (self.clone(), Arc::clone(&turn));
            let look = move || {
                lower_priority();
                let mut search =
                    RunningSearch { side: &side, turn: &turn, searched: 0, all: 0, events: Vec::new() };
                let words = match search.run(&held, &sought) {
                    Ok(words) => words,
                    Err(error) => format!("not searched: {error:#}"),
                };
                side.end(&words);
            };
            // Without a thread, only the end is reported.
            let _ = std::thread::Builder::new().name("grebe-find".into()).spawn(look);
            finding
        })
    }
}

/// Running search.
struct RunningSearch<'a> {
    side: &'a FindingSide,
    turn: &'a Mutex<()>,
    searched: u64,
    all: u64,
    events: Vec<FoundEvent>,
}

impl RunningSearch<'_> {
    /// Runs the search; returns the outcome in words.
    fn run(&mut self, held: &Held, sought: &Sought) -> Result<String> {
        let words = EventWords::parse(&sought.words).map_err(anyhow::Error::msg)?;
        match held {
            Held::File(path) => self.file(path, &words, &sought.scales),
            Held::Ring(folder) => self.ring(folder, &words, &sought.scales),
            Held::Stream(link, keeper) => self.stream(link, keeper.as_ref(), &words, &sought.scales),
        }
    }

    fn file(&mut self, path: &Path, words: &EventWords, scales: &[Scale]) -> Result<String> {
        let mut file = SampleFile::open(path)?;
        let mut walk = Walk::new(words, &in_scales(Signal::of(&file), scales))?;
        let range = words.range(file.rate_hz().unwrap_or(0.0)).map_err(anyhow::Error::msg)?;
        self.all = samples_in(&file, &range);
        self.recording(&mut file, &range, &mut walk)?;
        self.end(&mut walk);
        Ok(if range == (0..u64::MAX) { "searched everything" } else { "searched the given times" }.into())
    }

    fn ring(&mut self, folder: &Path, words: &EventWords, scales: &[Scale]) -> Result<String> {
        let parts = ring_parts(folder)?;
        let Some(signal) = parts.last().map(|newest| in_scales(Signal::of(newest), scales)) else {
            bail!("no samples yet")
        };
        let parts = parts_of(parts, &signal, u64::MAX);
        let mut walk = Walk::new(words, &signal)?;
        let range = words.range(signal.sample_rate_hz).map_err(anyhow::Error::msg)?;
        self.all = parts.iter().map(|part| samples_in(part, &range)).sum();
        self.report(0);
        let unread = self.parts(parts, &range, &mut walk, &signal);
        self.end(&mut walk);
        let times = if range == (0..u64::MAX) { "everything" } else { "the given times" };
        Ok(format!("searched {times}, {}{unread}", signal.time(self.searched)))
    }

    /// Searches the parts of a ring, and closes each after it: the recorder may have removed it. Returns words about samples that
    /// could not be read.
    fn parts(
        &mut self,
        parts: Vec<SampleFile>,
        range: &Range<u64>,
        walk: &mut Walk,
        signal: &Signal,
    ) -> String {
        let mut unread = (0, String::new());
        for mut part in parts {
            let end = self.searched + samples_in(&part, range);
            if let Err(error) = self.recording(&mut part, range, walk) {
                unread = (unread.0 + end - self.searched, error.to_string());
                self.all -= end - self.searched;
                walk.pass_over();
            }
        }
        match unread {
            (0, _) => String::new(),
            (samples, why) => format!("; {} could not be read: {why}", signal.time(samples)),
        }
    }

    /// Searches sample indices of a recording.
    fn recording(&mut self, file: &mut SampleFile, range: &Range<u64>, walk: &mut Walk) -> Result<()> {
        for segment in file.segments().to_vec() {
            let inside = within(&segment, range);
            let (mut at, end) = (inside.start, inside.end);
            while at < end && self.side.is_wanted() {
                let length = BLOCK_SAMPLES.min(end - at);
                let index = segment.first_sample_index + at;
                if walk.needs_samples() {
                    let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                    let block = file.block(segment.position + at, length as usize)?;
                    walk.scan(index, &block, &mut self.events)?;
                } else {
                    walk.reach(index, length, &mut self.events);
                }
                at += length;
                self.report(length);
            }
        }
        Ok(())
    }

    fn stream(
        &mut self,
        link: &ScopeLink,
        keeper: Option<&RingSaver>,
        words: &EventWords,
        scales: &[Scale],
    ) -> Result<String> {
        let (reader, side) = (link.reader(), self.side);
        let goes_on = || side.is_wanted();
        let Some(picture) = reader.picture(goes_on) else { return Ok(String::new()) };
        let Some(stream) = picture.stream else { bail!("no samples yet") };
        let signal = in_scales(
            Signal {
                format: stream.format,
                channels: stream.channels,
                sample_rate_hz: stream.rate_hz,
                description: picture.description.clone(),
            },
            scales,
        );
        let mut walk = Walk::new(words, &signal)?;
        let range = words.range(stream.rate_hz).map_err(anyhow::Error::msg)?;
        let ring = keeper.map_or(Vec::new(), |keeper| ring_of(keeper, &signal, picture.next_index));
        // After the end of the ring.
        let Some(first) = reader.read(picture.next_index..picture.next_index, goes_on) else {
            return Ok(String::new());
        };
        let (held, streams) = (first.held, picture.streams);
        let in_ring: u64 = ring.iter().map(|file| samples_in(file, &range)).sum();
        let behind_ring = ring
            .last()
            .and_then(|file| file.segments().last())
            .map_or(0, |last| last.first_sample_index + last.length_samples);
        let from = held.start.max(behind_ring).max(range.start);
        let end = held.end.min(range.end);
        self.all = in_ring + end.saturating_sub(from);
        let unread = self.parts(ring, &range, &mut walk, &signal);
        if from > behind_ring {
            walk.pass_over();
        }
        let forgotten = self.memory(&reader, streams, from..end, &signal, &mut walk)?;
        self.end(&mut walk);
        let time = |samples: u64| signal.time(samples);
        let lost = match forgotten {
            0 => unread,
            _ => format!("{unread}; {} left the memory during the search", time(forgotten)),
        };
        Ok(match (in_ring > 0, held.start > picture.oldest_index.max(range.start)) {
            (false, false) if range != (0..u64::MAX) => {
                format!("searched the given times, {}{lost}", time(self.searched))
            }
            (true, _) => {
                format!("searched {}, {} of it in the ring{lost}", time(self.searched), time(in_ring))
            }
            (false, false) => format!("searched everything, {}{lost}", time(self.searched)),
            (false, true) => format!(
                "searched the last {}; older samples exist as extremes only: grebe record URI DIR --ring 30m keeps all{lost}",
                time(self.searched)
            ),
        })
    }

    /// Searches samples in the memory of a scope; returns the number that had left it.
    fn memory(
        &mut self,
        reader: &HistoryReader,
        streams: u64,
        range: Range<u64>,
        signal: &Signal,
        walk: &mut Walk,
    ) -> Result<u64> {
        let lanes = (signal.channels * signal.format.components()).max(1) as u64;
        let step = (LENT_VALUES / lanes).max(1);
        let mut frames = Frames::new(signal);
        let (mut at, mut forgotten) = (range.start, 0);
        while at < range.end && self.side.is_wanted() {
            let began = Instant::now();
            let end = range.end.min(at + step);
            let Some(extract) = reader.read(at..end, || self.side.is_wanted()) else { break };
            if extract.streams != streams {
                bail!("a new stream began: search again");
            }
            if extract.held.start > at {
                let next = extract.held.start.min(range.end);
                forgotten += next - at;
                walk.pass_over();
            }
            {
                let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                frames
                    .each(&extract, |first_index, block| walk.scan(first_index, block, &mut self.events))?;
            }
            let next = end.max(extract.held.start.min(range.end));
            self.report(next - at);
            at = next;
            // The stream's thread copied them, and has other work.
            let pause = Duration::from_secs_f64((step * lanes) as f64 / LENT_VALUES_PER_S);
            std::thread::sleep(pause.saturating_sub(began.elapsed()));
        }
        Ok(forgotten)
    }

    fn report(&mut self, searched: u64) {
        self.searched += searched;
        self.side.tell(&self.events, self.searched, self.all.max(self.searched));
        self.events.clear();
    }

    fn end(&mut self, walk: &mut Walk) {
        walk.end(&mut self.events);
        self.report(0);
    }
}

/// The part of a segment that lies in a range of sample indices, by position in the segment.
fn within(segment: &Segment, range: &Range<u64>) -> Range<u64> {
    let place = |index: u64| index.saturating_sub(segment.first_sample_index).min(segment.length_samples);
    place(range.start)..place(range.end)
}

/// Samples of a recording in a range of sample indices.
fn samples_in(file: &SampleFile, range: &Range<u64>) -> u64 {
    file.segments().iter().map(|segment| within(segment, range)).map(|part| part.end - part.start).sum()
}

/// Parts of the ring before an index of this stream, oldest first.
fn ring_of(keeper: &RingSaver, signal: &Signal, end: u64) -> Vec<SampleFile> {
    let parts = keeper.folder().and_then(|folder| ring_parts(&folder).ok());
    // New ones may have appeared.
    let end = end.saturating_add(signal.sample_rate_hz as u64 * LOOKED_FOR_S);
    parts.map_or(Vec::new(), |parts| parts_of(parts, signal, end))
}

/// The newest parts of a ring that are one stream, before an index.
fn parts_of(mut parts: Vec<SampleFile>, signal: &Signal, end: u64) -> Vec<SampleFile> {
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

/// The signal with the viewer's units.
fn in_scales(signal: Signal, scales: &[Scale]) -> Signal {
    if scales.is_empty() {
        return signal;
    }
    let channel = |scale: &Scale| ChannelDescription {
        scale: scale.factor,
        offset: scale.offset,
        ..ChannelDescription::default()
    };
    let said = signal.description.as_deref().cloned().unwrap_or_default();
    let description = Description { channels: scales.iter().map(channel).collect(), ..said };
    Signal { description: Some(Arc::new(description)), ..signal }
}

/// Converts copied samples to frames of their stream.
struct Frames {
    pool: BatchPool,
    header: Header,
    samples_max: usize,
}

impl Frames {
    fn new(signal: &Signal) -> Self {
        // Rounded values stay rounded.
        let format = if signal.format == SampleFormat::F64 { SampleFormat::F32 } else { signal.format };
        let header = Header { channel_count: signal.channels as u32, format, ..Header::default() };
        let samples_max = (FRAME_BYTES / (format.bytes() * signal.channels).max(1)).max(1);
        Self { pool: BatchPool::new(1, FRAME_BYTES * 2), header, samples_max }
    }

    fn each(&mut self, extract: &Extract, mut each: impl FnMut(u64, &Block<'_>) -> Result<()>) -> Result<()> {
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
fn lower_priority() {
    // Of this thread only, on Linux; elsewhere it competes normally.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(target_os = "linux")]
const NICE: i32 = 15;
/// For one channel of 16 bits, the share of a second-level cache.
const BLOCK_SAMPLES: u64 = 64 << 10;
/// Samples of all channels that a scope copies at once: tens of microseconds, far less than its queue holds.
const LENT_VALUES: u64 = 128 << 10;
/// Maximum copy rate: a twentieth of a processor's.
const LENT_VALUES_PER_S: f64 = 400e6;
const FRAME_BYTES: usize = 60 << 10;
/// Longer than the discovery of a ring.
const LOOKED_FOR_S: u64 = 5;

#[cfg(test)]
mod tests;
