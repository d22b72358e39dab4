//! The ring of a recorder as one recording, which loses its oldest part and gains new ones while it is shown.
//!
//! ```text
//!   positions   |-- part 41 --|......|-- part 42 --|......|-- part 43, being recorded --
//!               0             no sample            multiples of `align`: nodes and rows of a part are those of the ring
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grebe_recording::{Error, SampleFile, ring_part_paths};
use grebe_view::{Recording, RecordingOutline, RecordingPower, RecordingSums};

use super::recording::{OnDisk, Progress, is_one_stream};

/// The newest parts of a ring, as far as they are one stream.
#[derive(Debug)]
pub(crate) struct RingOnDisk {
    folder: PathBuf,
    /// Oldest first; never empty.
    parts: VecDeque<Part>,
    /// log2 of the samples of the longest nodes.
    align_log2: u32,
    outline: RecordingOutline,
    progress: Progress,
    /// Whether it ends where it did at the start.
    is_cut_off: bool,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// Position of its first sample.
    base: u64,
    recording: OnDisk,
}

impl RingOnDisk {
    /// Opens the ring in a folder; `None` without one.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, Error> {
        let paths = ring_part_paths(folder);
        let mut ring = Self {
            folder: folder.to_owned(),
            parts: VecDeque::new(),
            align_log2: ALIGN_LOG2_MAX,
            outline: RecordingOutline::default(),
            progress: Progress::default(),
            is_cut_off: false,
        };
        ring.take(&paths);
        if ring.parts.is_empty() {
            // The reason that the newest does not open.
            return paths.last().map_or(Ok(None), |newest| SampleFile::open(newest).map(|_| None));
        }
        ring.outline = ring.outline_of_all();
        ring.report();
        Ok(Some(ring))
    }

    /// Shows nothing that is recorded from now on.
    pub(crate) fn cut_off_now(mut self) -> Self {
        if let Some(Part { path, base, recording }) = self.parts.pop_back() {
            self.parts.push_back(Part { path, base, recording: recording.cut_off_now() });
        }
        self.is_cut_off = true;
        self
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Opens new parts and drops removed ones; returns whether there were any.
    fn take(&mut self, paths: &[PathBuf]) -> bool {
        let mut changed = false;
        let newest = self.parts.back().and_then(|newest| paths.iter().position(|path| *path == newest.path));
        for path in &paths[newest.map_or(0, |newest| newest + 1)..] {
            // One without samples yet does not open, nor does one that is removed just now.
            let Ok(recording) = OnDisk::open_part(path) else { continue };
            if !is_one_stream(recording.file()) || recording.len_samples() == 0 {
                continue;
            }
            if self.parts.back().is_some_and(|last| !follows(last.recording.file(), recording.file())) {
                self.parts.clear();
            }
            if self.parts.is_empty() {
                self.align_log2 = recording.len_samples().ilog2().clamp(ALIGN_LOG2_MIN, ALIGN_LOG2_MAX);
            }
            let align = 1 << self.align_log2;
            // The previous part may still gain its last samples.
            let base = self.parts.back().map_or(0, |last| last.end().next_multiple_of(align) + align);
            self.parts.push_back(Part { path: path.clone(), base, recording });
            changed = true;
        }
        // The last one stays, and keeps its samples, until another opens.
        while self.parts.len() > 1 && !paths.contains(&self.parts[0].path) {
            self.parts.pop_front();
            changed = true;
        }
        changed
    }

    fn outline_of_all(&self) -> RecordingOutline {
        let mut all = RecordingOutline::default();
        for part in &self.parts {
            let of_part = part.recording.outline();
            (all.format, all.channels, all.rate_hz) = (of_part.format, of_part.channels, of_part.rate_hz);
            let stretches = of_part.stretches.iter().copied();
            all.stretches.extend(stretches.map(|mut stretch| {
                stretch.position += part.base;
                stretch
            }));
            all.descriptions.extend(of_part.descriptions.iter().cloned());
            all.annotations.extend(of_part.annotations.iter().cloned());
        }
        all
    }

    fn report(&self) {
        let mut of_parts = self.parts.iter().map(|part| part.recording.progress());
        let newest = of_parts.next_back().unwrap_or_default();
        self.progress.set_being_recorded(newest.is_being_recorded());
        // The newest of a ring that is recorded is never read to its end.
        let newest = Some(newest).filter(|newest| !newest.is_being_recorded());
        self.progress.set(of_parts.chain(newest).find_map(|part| part.get()));
    }

    /// The end of the known positions, by the known samples of the first parts.
    fn known(&self, of_parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        let mut known = None;
        for ((at, part), samples) in self.parts.iter().enumerate().zip(of_parts) {
            let Some(samples) = samples else { return known };
            if samples < part.recording.len_samples() {
                return Some(part.base + samples);
            }
            // The positions without samples after it count as known.
            known = Some(self.parts.get(at + 1).map_or(part.end(), |next| next.base));
        }
        known
    }

    /// The part that has a position. Positions before the oldest belonged to removed parts.
    fn part_at(&mut self, position: u64) -> Option<&mut Part> {
        let behind = self.parts.partition_point(|part| part.base <= position);
        self.parts.get_mut(behind.checked_sub(1)?).filter(|part| position < part.end())
    }
}

impl Part {
    fn end(&self) -> u64 {
        self.base + self.recording.len_samples()
    }
}

impl Recording for RingOnDisk {
    fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    fn refresh(&mut self) -> bool {
        let mut changed = false;
        for part in &mut self.parts {
            changed |= part.recording.refresh();
        }
        changed |= !self.is_cut_off && self.take(&ring_part_paths(&self.folder));
        if changed {
            self.outline = self.outline_of_all();
        }
        self.report();
        changed
    }

    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let part = self.part_at(position).filter(|part| position + length as u64 <= part.end());
        let part = part.ok_or(io::ErrorKind::UnexpectedEof)?;
        part.recording.read(position - part.base, length, out)
    }

    fn known_samples(&self) -> u64 {
        self.known(self.parts.iter().map(|part| Some(part.recording.known_samples()))).unwrap_or(0)
    }

    fn level(&self, log2: u32) -> Option<u32> {
        self.parts[0].recording.level(log2.min(self.align_log2))
    }

    fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<(f32, f32)>,
    ) -> io::Result<()> {
        let mut node = nodes.start;
        while node < nodes.end {
            let before = out.len();
            let next = match self.part_at(node << log2) {
                Some(part) => {
                    let (first, end) = (part.base >> log2, part.end().div_ceil(1 << log2).min(nodes.end));
                    part.recording.extremes(lane, log2, node - first..end - first, out)?;
                    end
                }
                None => {
                    let begins = self.parts.iter().map(|part| part.base >> log2).find(|&begin| begin > node);
                    begins.map_or(nodes.end, |begin| begin.min(nodes.end))
                }
            };
            out.resize(before + (next - node) as usize, (f32::INFINITY, f32::NEG_INFINITY));
            node = next;
        }
        Ok(())
    }

    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums {
        let mut sums = RecordingSums::default();
        for part in &self.parts {
            let own = samples.start.max(part.base)..samples.end.min(part.end());
            if !own.is_empty() {
                let own = part.recording.sums(lane, own.start - part.base..own.end - part.base);
                sums.sum += own.sum;
                sums.sum_sq += own.sum_sq;
                sums.not_finite += own.not_finite;
                sums.count += own.count;
            }
        }
        sums
    }

    fn known_power_samples(&mut self) -> Option<u64> {
        let mut of_parts = Vec::with_capacity(self.parts.len());
        for part in &mut self.parts {
            of_parts.push(part.recording.known_power_samples());
            // Later ones would all be made at once.
            if of_parts
                .last()
                .is_none_or(|last| last.is_none_or(|known| known < part.recording.len_samples()))
            {
                break;
            }
        }
        self.known(of_parts.into_iter())
    }

    fn power_level(&self, log2: u32) -> Option<u32> {
        self.parts[0].recording.power_level(log2.min(self.align_log2))
    }

    fn power(
        &mut self,
        channel: usize,
        log2: u32,
        number: u64,
        power: &mut RecordingPower,
    ) -> io::Result<()> {
        let Some(part) = self.part_at(number << log2) else {
            power.highest.clear();
            power.mean.clear();
            return Ok(());
        };
        part.recording.power(channel, log2, number - (part.base >> log2), power)
    }

    fn memory_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.recording.memory_bytes()).sum()
    }
}

/// Whether a part continues the stream of another.
fn follows(before: &SampleFile, file: &SampleFile) -> bool {
    let kind = |file: &SampleFile| (file.format(), file.channels(), file.rate_hz());
    let end = before.segments().last().map_or(0, |last| last.first_sample_index + last.length_samples);
    kind(before) == kind(file) && file.segments().first().is_some_and(|first| first.first_sample_index >= end)
}

/// Nodes and rows of a ring lie within a part, and are at most about as long as its first.
const ALIGN_LOG2_MIN: u32 = 8;
const ALIGN_LOG2_MAX: u32 = 28;

#[cfg(test)]
mod tests;
