//! The parts of a ring as one line of samples. An open part keeps its samples, even after the recorder has
//! removed it.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use grebe_ring::Cancel;

use crate::error::Error;
use crate::sample_file::{SampleFile, Segment};
use crate::sigmf::Base;

/// The recording that the parts of a ring in this folder belong to.
pub(super) fn recording_in(folder: &Path) -> PathBuf {
    folder.join(NAME).with_extension("sigmf-meta")
}

/// Numbers of the parts in a folder.
pub(super) fn numbers_in(folder: &Path, base: &Base) -> BTreeSet<u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| base.part_number(&entry.file_name().to_string_lossy())).collect()
}

/// A part, up to its recorder's known good end.
#[derive(Debug)]
pub(super) struct Part {
    number: u64,
    pub(super) file: SampleFile,
    /// Place in the signal before its first sample.
    before: Place,
}

/// A place in the signal: samples since the oldest part began, with those that are missing.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    signal: u64,
    /// Stream index of the sample that would follow.
    index: Option<u64>,
}

/// Available parts of a ring.
#[derive(Debug)]
pub(super) struct Parts {
    base: Base,
    /// In their order, all of the same kind. There is at least one, until it is taken.
    parts: VecDeque<Part>,
    /// The newest that was opened.
    newest: u64,
    end: Place,
    /// Whether a stream of another kind follows: then no more samples come.
    is_over: bool,
}

impl Parts {
    /// Opens all parts. If a recorder has just begun and has not reported samples, waits for them.
    ///
    /// # Errors
    /// [`Error::Content`] where there are none.
    pub(super) fn open(folder: &Path, patience: Duration, cancel: &Cancel) -> Result<Self, Error> {
        let base = Base::of(&recording_in(folder));
        let mut parts =
            Self { base, parts: VecDeque::new(), newest: 0, end: Place::default(), is_over: false };
        let began = Instant::now();
        parts.refresh();
        while parts.parts.is_empty()
            && parts.is_recorded()
            && began.elapsed() < patience
            && !cancel.is_cancelled()
        {
            std::thread::sleep(Duration::from_millis(50));
            parts.refresh();
        }
        // Takes the last of several streams in one folder.
        while std::mem::take(&mut parts.is_over) {
            parts.parts.clear();
            parts.end = Place::default();
            parts.refresh();
        }
        if parts.parts.is_empty() {
            let what = match folder.is_dir() {
                true => "holds no sample of a ring yet: name the folder that grebe record --ring writes into",
                false => "is not a folder: name the folder that grebe record --ring writes into",
            };
            return Err(Error::Content { path: folder.into(), what: what.to_owned() });
        }
        Ok(parts)
    }

    /// Opens new parts, and extends longer ones.
    pub(super) fn refresh(&mut self) {
        let first = self.parts.front().map_or(self.newest + 1, |part| part.number);
        let meta = self.base.meta();
        let numbers = meta.parent().map(|folder| numbers_in(folder, &self.base)).unwrap_or_default();
        let mut changed = None;
        for number in numbers.into_iter().filter(|&number| number >= first) {
            let held = self.parts.iter().position(|part| part.number == number);
            // All but the last two have been closed, or never will be.
            if held.is_some_and(|at| self.parts[at].file.is_whole() || at + 2 < self.parts.len())
                || held.is_none() && number <= self.newest
            {
                continue;
            }
            // One that has no samples yet, or is removed just now, cannot be opened.
            let Ok(file) = SampleFile::open(self.base.part(number).meta()) else { continue };
            let at = held.unwrap_or(self.parts.len());
            if let Some(at) = held {
                self.parts[at].file = file;
            } else {
                if self.parts.back().is_some_and(|last| !is_alike(&last.file, &file)) {
                    self.is_over = true;
                    break;
                }
                self.parts.push_back(Part { number, file, before: Place::default() });
                self.newest = number;
            }
            changed.get_or_insert(at.min(self.parts.len() - 1));
        }
        if let Some(from) = changed {
            self.place(from);
        }
    }

    /// Puts the parts from one on into the signal.
    fn place(&mut self, from: usize) {
        let mut place = if from == 0 { self.parts[0].before } else { self.parts[from - 1].behind() };
        for part in self.parts.iter_mut().skip(from) {
            part.before = place;
            place = part.behind();
        }
        self.end = place;
    }

    /// The oldest.
    pub(super) fn first(&self) -> Option<&Part> {
        self.parts.front()
    }

    /// Takes the oldest away, where others follow.
    pub(super) fn pass_first(&mut self) -> Option<Part> {
        if self.parts.len() > 1 { self.parts.pop_front() } else { None }
    }

    /// Takes the oldest away.
    pub(super) fn take_first(&mut self) -> Option<Part> {
        self.parts.pop_front()
    }

    /// All of them, the oldest first.
    pub(super) fn into_files(self) -> Vec<SampleFile> {
        self.parts.into_iter().map(|part| part.file).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// End of the newest sample.
    pub(super) fn end(&self) -> u64 {
        self.end.signal
    }

    /// Changes while samples are written, even if the metadata lag on a slow disk.
    pub(super) fn activity(&self) -> (u64, u64, Option<SystemTime>) {
        let newest = self.parts.back().map_or((0, None), |part| part.file.data_size());
        (self.end(), newest.0, newest.1)
    }

    /// Place of a stream index in the signal, even if the sample was lost: the newest with that index.
    pub(super) fn signal_of(&self, index: u64) -> Option<u64> {
        let (mut found, mut behind) = (None, None);
        for (begin, segment) in self.parts.iter().flat_map(Part::segments) {
            if let Some((end_index, end)) = behind
                && (end_index..segment.first_sample_index).contains(&index)
            {
                found = Some(end + (index - end_index));
            }
            let at = index.checked_sub(segment.first_sample_index);
            found = at.filter(|&at| at < segment.length_samples).map(|at| begin + at).or(found);
            let length = segment.length_samples;
            behind = Some((segment.first_sample_index.saturating_add(length), begin.saturating_add(length)));
        }
        found
    }

    /// Place of an event in the signal, and how many of its first samples no part has: the recorder removed them
    /// before the event ended. `None` if none of it is there.
    pub(super) fn signal_of_event(&self, index: u64, length_samples: u64) -> Option<(u64, u64)> {
        if let Some(signal) = self.signal_of(index) {
            return Some((signal, 0));
        }
        // The oldest part may begin amid the event, and a stream whose first samples were lost.
        let (mut found, mut end_index) = (None, None);
        for (begin, segment) in self.parts.iter().flat_map(Part::segments) {
            let first = segment.first_sample_index;
            let is_first = end_index.is_none_or(|end| first < end);
            end_index = Some(first.saturating_add(segment.length_samples));
            if is_first && (index..index.saturating_add(length_samples)).contains(&first) {
                found = Some((begin, first - index));
            }
        }
        found
    }

    /// Current end of the signal, if its times use this machine's clock and it flows: the disk lags slightly.
    pub(super) fn now(&self) -> Option<u64> {
        let file = &self.parts.back()?.file;
        let newest = file.time_at(file.len_samples())?;
        let age = SystemTime::now().duration_since(newest).ok().filter(|&age| age < AGE_MAX)?;
        Some(self.end() + (age.as_secs_f64() * file.rate_hz().unwrap_or(0.0)) as u64)
    }

    /// The bytes of the largest.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.file.data_size().0).max().unwrap_or(0)
    }

    /// Whether its recorder is still at the oldest part.
    pub(super) fn first_is_written(&self) -> bool {
        self.parts
            .front()
            .is_some_and(|part| !part.file.is_whole() && self.base.part(part.number).is_locked())
    }

    /// Whether a recorder is writing the ring.
    pub(super) fn is_recorded(&self) -> bool {
        !self.is_over && self.base.is_locked()
    }
}

impl Part {
    /// The first sample of its file that is not before this place of the signal.
    pub(super) fn position_at(&self, signal: u64) -> u64 {
        for (begin, segment) in self.segments() {
            if signal < begin + segment.length_samples {
                return segment.position + signal.saturating_sub(begin);
            }
        }
        self.file.len_samples()
    }

    /// Place in the signal after the samples before this one of its file.
    pub(super) fn signal_behind(&self, position: u64) -> u64 {
        let passed = self.segments().take_while(|(_, segment)| segment.position < position).last();
        passed.map_or(self.before.signal, |(begin, segment)| {
            begin + (position - segment.position).min(segment.length_samples)
        })
    }

    /// Its segments, and where each begins in the signal.
    fn segments(&self) -> impl Iterator<Item = (u64, &Segment)> {
        let mut place = self.before;
        self.file.segments().iter().map(move |segment| (place.pass(segment), segment))
    }

    fn behind(&self) -> Place {
        let mut place = self.before;
        self.file.segments().iter().for_each(|segment| {
            place.pass(segment);
        });
        place
    }
}

impl Place {
    /// Advances past a segment; returns its begin.
    fn pass(&mut self, segment: &Segment) -> u64 {
        // Another stream follows at once.
        let missing = self.index.map_or(0, |index| segment.first_sample_index.saturating_sub(index));
        let begin = self.signal.saturating_add(missing);
        self.signal = begin.saturating_add(segment.length_samples);
        self.index = Some(segment.first_sample_index.saturating_add(segment.length_samples));
        begin
    }
}

fn is_alike(one: &SampleFile, other: &SampleFile) -> bool {
    let kind = |file: &SampleFile| (file.format(), file.channels(), file.rate_hz());
    kind(one) == kind(other)
}

/// A recorder that keeps up reports samples within a second. An older end means that the stream has stopped,
/// or uses another clock.
const AGE_MAX: Duration = Duration::from_secs(2);

const NAME: &str = "ring";
