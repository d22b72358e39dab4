//! Destination of a recording: one disk, or several in turn.
//!
//! ```text
//!   frames --> Stripes --+--> SigmfWriter, Disk --> /disk1/NAME    stripe 0, 2, 3, ...
//!               whoever  +--> SigmfWriter, Disk --> /disk2/NAME    stripe 1, 4, ...
//!               has the least waiting
//! ```
//! A stripe arrives at the rate of the stream, and leaves at the rate of its disk. The difference waits in that
//! disk's share of the memory, while the next stripe goes to another disk. So the total rate is the sum of all disks,
//! and a stalled disk gets no stripe until it recovers.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use grebe_frame::{Description, Frame};
use serde_json::{Map, Value};

use crate::disk::{DiskReport, free_bytes_of, open_folder};
use crate::error::Error;
use crate::output::NameLock;
use crate::sample_file::STREAM_SAMPLES;
use crate::sigmf::{Base, SigmfSettings, SigmfWriter, StripeSet};

/// Why a disk gets no more of a recording, while others go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The recording on it.
    pub path: PathBuf,
    /// Notice for the user.
    pub why: String,
}

/// State of one of several disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskState {
    Good,
    Full,
    Failed,
}

/// The disks of a recording.
#[derive(Debug)]
pub(crate) struct Stripes {
    /// Active disks; at least one.
    lanes: Vec<Lane>,
    left_out: Vec<Closed>,
    /// The current disk, once the first has begun.
    current: usize,
    has_begun: bool,
    /// Length and maximum of this stripe: samples per channel.
    stripe_samples: u64,
    stripe_samples_max: u64,
    /// Samples per channel that were handed over to all of them.
    whole_samples: u64,
    /// `None` for one alone.
    set: Option<StripeSet>,
    /// Begin of the last stripes in the stream, and their disks.
    recent: VecDeque<(u64, usize)>,
    news: Option<Sender<LeftOut>>,
}

#[derive(Debug)]
struct Lane {
    /// In the order that they were named in.
    number: usize,
    /// The open folder, on systems that open folders.
    folder: Option<File>,
    meta: PathBuf,
    writer: SigmfWriter,
}

/// A disk that gets no more.
#[derive(Debug)]
struct Closed {
    number: usize,
    state: DiskState,
    samples: u64,
    report: DiskReport,
    closing: Option<JoinHandle<Result<(), Error>>>,
}

impl Stripes {
    /// A recording on one disk.
    pub(super) fn one(base: &Base, settings: &SigmfSettings, name: NameLock) -> Result<Self, Error> {
        let writer = SigmfWriter::create_locked(base, settings, name)?;
        let lane = Lane { number: 0, folder: None, meta: base.meta(), writer };
        Ok(Self::of(vec![lane], None, settings, None))
    }

    /// A recording on these disks, each with its share of the memory.
    ///
    /// # Errors
    /// One of them cannot be created: none is then.
    pub(super) fn create(
        mut disks: Vec<(Base, NameLock)>,
        settings: &SigmfSettings,
        news: Option<Sender<LeftOut>>,
    ) -> Result<Self, Error> {
        if disks.len() == 1 {
            let (base, name) = disks.remove(0);
            return Self::one(&base, settings, name);
        }
        let set = stripe_set(disks.iter().map(|(base, _)| base))?;
        let settings = SigmfSettings {
            buffer_bytes: settings.buffer_bytes / disks.len(),
            summary: false,
            ..settings.clone()
        };
        let mut lanes = Vec::new();
        for (number, (base, name)) in disks.into_iter().enumerate() {
            let member = StripeSet { member: number, ..set.clone() };
            let writer = SigmfWriter::create_striped(&base, &settings, name, member)?;
            let meta = base.meta();
            lanes.push(Lane { number, folder: open_folder(folder_of(&meta)).ok(), meta, writer });
        }
        Ok(Self::of(lanes, Some(set), &settings, news))
    }

    fn of(
        lanes: Vec<Lane>,
        set: Option<StripeSet>,
        settings: &SigmfSettings,
        news: Option<Sender<LeftOut>>,
    ) -> Self {
        // Half of a disk's memory: what waits of the stripe before has the other half.
        let stripe_bytes = (settings.buffer_bytes as u64 / 2).clamp(STRIPE_BYTES_MIN, STRIPE_BYTES_MAX);
        let stripe_samples_max = stripe_bytes / lanes[0].writer.frame_bytes() as u64;
        Self {
            lanes,
            left_out: Vec::new(),
            current: 0,
            has_begun: false,
            stripe_samples: 0,
            stripe_samples_max,
            whole_samples: 0,
            set,
            recent: VecDeque::with_capacity(RECENT_MAX),
            news,
        }
    }

    /// Whether there is more than one disk.
    pub(super) fn is_striped(&self) -> bool {
        self.set.is_some()
    }

    /// The writer of a recording on one disk.
    pub(super) fn only(&mut self) -> &mut SigmfWriter {
        &mut self.lanes[0].writer
    }

    /// Appends these samples of a frame, as [`SigmfWriter::write_part`] does. A failing disk is dropped while
    /// others remain.
    pub(super) fn write_part(&mut self, frame: &Frame<'_>, part: Range<usize>) -> Result<(), Error> {
        if part.is_empty() {
            return Ok(());
        }
        let samples = part.len();
        loop {
            if self.set.is_some() {
                self.take_turns(frame.header().first_sample_index.wrapping_add(part.start as u64), samples);
            }
            match self.lanes[self.current].writer.write_part(frame, part.clone()) {
                Err(error @ Error::Write { .. }) if self.lanes.len() > 1 => {
                    self.leave_out_failed(self.current, &error)
                }
                result => break result?,
            }
        }
        self.whole_samples += samples as u64;
        self.stripe_samples += samples as u64;
        Ok(())
    }

    /// Lets another disk go on where this one has had its turn, or has no memory left.
    fn take_turns(&mut self, first_sample_index: u64, samples: usize) {
        let is_over = self.stripe_samples >= self.stripe_samples_max;
        // One of a few samples would cost more in metadata than a short wait.
        let may_end = self.stripe_samples >= self.stripe_samples_max / 8;
        if self.has_begun && !is_over && !(may_end && self.lanes[self.current].writer.would_wait(samples)) {
            return;
        }
        self.leave_out_full();
        let count = self.lanes.len();
        let order = (1..=count).map(|step| (self.current + step) % count);
        let waiting = |&lane: &usize| {
            let writer = &self.lanes[lane].writer;
            (writer.would_wait(samples), writer.waiting_bytes())
        };
        let Some(next) = order.min_by_key(waiting) else { return };
        if next != self.current || !self.has_begun {
            (self.current, self.has_begun) = (next, true);
            let lane = &mut self.lanes[next];
            lane.writer.begin_stripe(self.whole_samples);
            if self.recent.len() == RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back((first_sample_index, lane.number));
        }
        self.stripe_samples = 0;
    }

    /// Leaves out disks that have no room for another stripe, as long as there are others.
    fn leave_out_full(&mut self) {
        let needed = self.stripe_samples_max * self.lanes[0].writer.frame_bytes() as u64 + RESERVE_BYTES;
        while self.lanes.len() > 1 {
            let room = |lane: &Lane| {
                let free_bytes = lane.folder.as_ref().and_then(free_bytes_of).unwrap_or(u64::MAX);
                free_bytes
                    .saturating_add(lane.writer.spare_bytes())
                    .saturating_sub(lane.writer.waiting_bytes())
            };
            let rooms = self.lanes.iter().map(room).enumerate();
            let Some((fullest, _)) = rooms.min_by_key(|&(_, room)| room).filter(|&(_, room)| room < needed)
            else {
                return;
            };
            self.leave_out(fullest, DiskState::Full, "the disk is full".to_owned());
        }
    }

    #[cold]
    fn leave_out_failed(&mut self, lane: usize, error: &Error) {
        let state = if error.is_full() { DiskState::Full } else { DiskState::Failed };
        let lost = "the data waiting for it is lost";
        let why = match error {
            Error::Write { source, .. } => format!("{source}; {lost}"),
            error => error.to_string(),
        };
        self.leave_out(lane, state, why);
    }

    #[cold]
    fn leave_out(&mut self, lane: usize, state: DiskState, why: String) {
        let Lane { number, meta, writer, .. } = self.lanes.remove(lane);
        let (samples, report) = (writer.len_samples(), writer.disk_report());
        // A disk that fails may take long for that.
        let close = thread::Builder::new().name("sigmf-close".into()).spawn(move || close(writer));
        self.left_out.push(Closed { number, state, samples, report, closing: close.ok() });
        if let Some(news) = &self.news {
            // The requester may be gone.
            let _ = news.send(LeftOut { path: meta, why });
        }
        let count = self.lanes.len();
        if lane == self.current {
            self.has_begun = false;
            self.current = (lane + count - 1) % count;
        } else if lane < self.current {
            self.current -= 1;
        }
    }

    /// Sets the description from the next sample on.
    pub(super) fn describe(&mut self, description: Option<&Arc<Description>>) {
        self.lanes.iter_mut().for_each(|lane| lane.writer.describe(description.cloned()));
    }

    /// Labels a stretch of the stream whose first sample was written before.
    pub(super) fn annotate(
        &mut self,
        first_index: u64,
        length_samples: u64,
        label: &str,
    ) -> Result<(), Error> {
        let rest = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
        self.annotate_with(first_index, length_samples, rest)
    }

    /// The same with any annotation fields. The annotation goes to the disk with its first sample.
    pub(crate) fn annotate_with(
        &mut self,
        first_index: u64,
        length_samples: u64,
        mut rest: Map<String, Value>,
    ) -> Result<(), Error> {
        let mut lane = self.current;
        if self.set.is_some() {
            rest.insert(STREAM_SAMPLES.to_owned(), length_samples.into());
            let stripe = self.recent.iter().rfind(|(index, _)| *index <= first_index);
            let owner =
                stripe.and_then(|&(_, number)| self.lanes.iter().position(|lane| lane.number == number));
            lane = owner.unwrap_or(lane);
        }
        self.lanes[lane].writer.annotate_with(first_index, length_samples, rest)
    }

    /// For a stream that pauses: data that have waited long enough go to the disks.
    pub(super) fn pause(&mut self) -> Result<(), Error> {
        for lane in (0..self.lanes.len()).rev() {
            match self.lanes[lane].writer.pause() {
                Err(error @ Error::Write { .. }) if self.lanes.len() > 1 => {
                    self.leave_out_failed(lane, &error)
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// The same for the other disks.
    pub(super) fn pause_others(&mut self) -> Result<(), Error> {
        if self.lanes.len() > 1 { self.pause() } else { Ok(()) }
    }

    /// Samples per channel that were handed over and are not lost.
    pub(super) fn len_samples(&self) -> u64 {
        let closed: u64 = self.left_out.iter().map(|closed| closed.samples).sum();
        closed + self.lanes.iter().map(|lane| lane.writer.len_samples()).sum::<u64>()
    }

    /// Samples per channel that were lost with a disk that failed.
    pub(super) fn lost_samples(&self) -> u64 {
        if self.set.is_some() { self.whole_samples.saturating_sub(self.len_samples()) } else { 0 }
    }

    /// Whether files are to bypass the page cache.
    pub(super) fn is_past_cache(&self) -> bool {
        self.lanes[0].writer.is_past_cache()
    }

    /// State of each disk: its number, samples per channel, and disk report.
    pub(super) fn disks(&self) -> impl Iterator<Item = (usize, DiskState, u64, DiskReport)> + '_ {
        let open = self
            .lanes
            .iter()
            .map(|lane| (lane.number, DiskState::Good, lane.writer.len_samples(), lane.writer.disk_report()));
        open.chain(self.left_out.iter().map(|it| (it.number, it.state, it.samples, it.report)))
    }

    /// Writes the rest, waits until it is on the disks, and closes all.
    ///
    /// # Errors
    /// As for [`SigmfWriter::finish`], of the first that fails; the others are closed.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.name_members();
        let lanes = std::mem::take(&mut self.lanes);
        let mut result = Ok(());
        thread::scope(|scope| {
            let finishing: Vec<_> = lanes
                .into_iter()
                .map(|Lane { number, writer, .. }| (number, scope.spawn(move || finish(writer))))
                .collect();
            for (number, finishing) in finishing {
                let (finished, samples, report) =
                    finishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let state = match &finished {
                    Ok(()) => DiskState::Good,
                    Err(error) if error.is_full() => DiskState::Full,
                    Err(_) => DiskState::Failed,
                };
                self.left_out.push(Closed { number, state, samples, report, closing: None });
                if result.is_ok() {
                    result = finished;
                }
            }
        });
        for closed in &mut self.left_out {
            // Its failure is already reported.
            let _ = closed.closing.take().map(JoinHandle::join);
        }
        result
    }

    /// Disks without samples are not part of the recording.
    fn name_members(&mut self) {
        let Some(set) = &self.set else { return };
        let all = self.disks().collect::<Vec<_>>();
        let mut with_samples: Vec<usize> =
            all.iter().filter(|(_, _, samples, _)| *samples > 0).map(|&(number, ..)| number).collect();
        with_samples.sort_unstable();
        if with_samples.len() == set.recordings.len() {
            return;
        }
        let recordings: Vec<String> =
            with_samples.iter().map(|&number| set.recordings[number].clone()).collect();
        for lane in &self.lanes {
            let Some(member) = with_samples.iter().position(|&number| number == lane.number) else {
                continue;
            };
            let several = recordings.len() > 1;
            let set = StripeSet { member, recordings: recordings.clone(), ..set.clone() };
            lane.writer.set_stripes(several.then_some(set));
        }
    }
}

fn close(writer: SigmfWriter) -> Result<(), Error> {
    finish(writer).0
}

/// One without samples leaves nothing.
fn finish(writer: SigmfWriter) -> (Result<(), Error>, u64, DiskReport) {
    let (samples, report) = (writer.len_samples(), writer.disk_report());
    if samples == 0 {
        return (Ok(()), 0, report);
    }
    match writer.finish() {
        Ok(summary) => (Ok(()), summary.len_samples, summary.disk),
        Err(error) => {
            let good = match &error {
                Error::Write { good_samples, .. } => *good_samples,
                _ => samples,
            };
            (Err(error), good, report)
        }
    }
}

/// Cross-references in the metadata of the disks.
fn stripe_set<'a>(bases: impl Iterator<Item = &'a Base>) -> Result<StripeSet, Error> {
    let mut recordings = Vec::new();
    for base in bases {
        let meta = base.meta();
        let folder = fs::canonicalize(folder_of(&meta)).map_err(Error::file("open", &meta))?;
        let place = folder.join(meta.file_name().unwrap_or_default());
        let Some(place) = place.to_str() else {
            let what =
                "is not UTF-8, and the recordings of several disks name each other: choose another folder";
            return Err(Error::Field { path: place, what: what.to_owned() });
        };
        recordings.push(place.to_owned());
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let id = format!("{:x}-{:x}", since.as_nanos(), std::process::id());
    Ok(StripeSet { id, member: 0, recordings })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Below, there would be more metadata than anybody wants; above, a stripe takes seconds.
const STRIPE_BYTES_MIN: u64 = 1 << 20;
const STRIPE_BYTES_MAX: u64 = 1 << 30;
/// For the metadata of a disk that is nearly full, and for other programs' writes meanwhile.
const RESERVE_BYTES: u64 = 4 << 20;
/// Annotations come late by a second or so.
const RECENT_MAX: usize = 256;

#[cfg(test)]
mod tests;
