//! Searches a stream for events while a ring records it, and saves a range of the ring for each.
//!
//! The search has a queue that drops frames it has no time for, so it costs the recording nothing. Skipped frames are
//! counted. A save is a thread that works on the files of the ring, as `grebe save` does.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, QueueOptions, Stage, StageResult};
use grebe_frame::{Arrival, Batch, ChannelDescription, Frame, Header, StreamTracker};
use grebe_recording::{Block, RingLabel, RingStretch, save_ring};
use grebe_stages::Cancel;
use grebe_view::LaneId;
use jiff::Timestamp;

use crate::cli::{Conditions, EventKind, Record, SaveTrigger};
use crate::ending::Usage;
use crate::output::note;
use crate::saved_range::SavedRange;
use crate::search::{Hit, Search, Signal, Wanted, annotation_fields};

/// Event to search for, and range to save.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    kind: EventKind,
    conditions: Conditions,
    folder: PathBuf,
    before: Duration,
    after: Duration,
    saves_per_minute: u64,
    /// Length of the recording.
    duration: Option<Duration>,
}

impl Watch {
    /// The search that the options describe; `None` without `--on-trigger`.
    ///
    /// # Errors
    /// [`Usage`] if a condition is missing or has no effect.
    pub(super) fn of(options: &Record, folder: &Path) -> Result<Option<Self>> {
        let SaveTrigger { on_trigger, before, after, saves_per_minute, conditions } = &options.trigger;
        let Some(kind) = *on_trigger else {
            return match conditions.given() {
                Some(name) => Err(Usage(format!("{name} needs --on-trigger")).into()),
                None => Ok(None),
            };
        };
        let watch = Self {
            kind,
            conditions: conditions.clone(),
            folder: folder.to_owned(),
            before: *before,
            after: *after,
            saves_per_minute: *saves_per_minute,
            duration: options.duration,
        };
        // Missing conditions are reported before the recording starts.
        let any = Header { sample_rate_hz: 1e6, ..Header::default() };
        watch.wanted(LaneId::real(0), &signal_of(&any, None))?;
        Ok(Some(watch))
    }

    fn wanted(&self, lane: LaneId, signal: &Signal) -> Result<Wanted> {
        Wanted::of("--on-trigger", self.kind, &self.conditions, lane, signal)
    }

    /// The search stage and its queue; `lent_max` limits what a reader of shared memory may hold.
    pub(super) fn stage(self, lent_max: Option<usize>) -> (Box<dyn Stage>, QueueOptions) {
        let batches = lent_max.map_or(QUEUE_BATCHES, |batches| (batches / 4).clamp(1, QUEUE_BATCHES));
        // Dropped frames would look like gaps. A search for gaps reads headers only, so it never lags.
        let is_gap = self.kind == EventKind::Gap;
        let queue = if is_gap { QueueOptions::block(batches) } else { QueueOptions::drop_oldest(batches) };
        (Box::new(Watcher::new(self)), queue)
    }
}

/// Searches for events, and saves a range for each.
struct Watcher {
    watch: Watch,
    searches: Vec<(LaneId, Box<dyn Search>)>,
    /// Header of the last batch; a search restarts with another stream.
    stream: Option<Header>,
    channels: Vec<ChannelDescription>,
    centre_hz: Option<f64>,
    tracker: StreamTracker,
    /// Signal so far, gaps included, as the recorder counts it.
    signal_samples: u64,
    /// Index after the last recorded sample, once it is known.
    end_index: u64,
    hits: Vec<Hit>,
    /// End of the last saved range, in the stream.
    kept_until: u64,
    /// Times of the saves within the last minute.
    recent: VecDeque<Instant>,
    saves: Vec<JoinHandle<bool>>,
    counters: Counters,
}

impl Watcher {
    fn new(watch: Watch) -> Self {
        Self {
            watch,
            searches: Vec::new(),
            stream: None,
            channels: Vec::new(),
            centre_hz: None,
            tracker: StreamTracker::new(),
            signal_samples: 0,
            end_index: u64::MAX,
            hits: Vec::new(),
            kept_until: 0,
            recent: VecDeque::new(),
            saves: Vec::new(),
            counters: Counters::new(COUNTERS),
        }
    }

    fn search_batch(&mut self, batch: &Batch) -> Result<()> {
        let said = batch.description().map_or(&[][..], |description| &description.channels);
        let centre_hz = batch.description().and_then(|description| description.centre_frequency_hz);
        if self.channels != said || self.centre_hz != centre_hz {
            // Levels in counts and frequencies change with them.
            self.stream.take().iter().for_each(|header| self.end(header));
            (self.channels, self.centre_hz) = (said.to_vec(), centre_hz);
        }
        for frame in batch.frames() {
            let header = frame.header();
            let arrival = self.tracker.arrive(&header);
            if !arrival.is_new() {
                continue;
            }
            if self.end_index < u64::MAX {
                // The recording has ended.
                continue;
            }
            if header.is_end_of_stream() {
                self.end(&header);
                continue;
            }
            if arrival == Arrival::Restart {
                self.end(&header);
                (self.stream, self.kept_until) = (None, 0);
            }
            self.count_signal(arrival, &header);
            if self.watch.kind == EventKind::Gap {
                if matches!(arrival, Arrival::After(_)) {
                    self.keep(None, Hit::instant(header.first_sample_index), &header);
                }
                continue;
            }
            self.search(&frame, &header, batch)?;
        }
        Ok(())
    }

    /// Finds the end of the recording.
    fn count_signal(&mut self, arrival: Arrival, header: &Header) {
        let rate_hz = header.sample_rate_hz;
        let Some(duration) = self.watch.duration.filter(|_| rate_hz > 0.0) else { return };
        if let Arrival::After(gap) = arrival {
            self.signal_samples = self.signal_samples.saturating_add(gap.samples);
        }
        let left = stretch_samples(duration, rate_hz).saturating_sub(self.signal_samples);
        let block = u64::from(header.block_length_samples);
        self.signal_samples = self.signal_samples.saturating_add(block);
        if left <= block {
            self.end_index = header.first_sample_index.saturating_add(left);
        }
    }

    fn search(&mut self, frame: &Frame<'_>, header: &Header, batch: &Batch) -> Result<()> {
        if self.stream.is_none() {
            let signal = signal_of(header, Some(batch));
            let lanes = signal.lanes(&self.watch.conditions.lanes())?;
            if self.searches.is_empty() {
                // Later, a receiver that is tuned elsewhere does not end the recording.
                signal.check_band("--band", self.watch.conditions.band)?;
            }
            let search = |lane| Ok((lane, self.watch.wanted(lane, &signal)?.search(lane, &signal)?));
            self.searches = lanes.into_iter().map(search).collect::<Result<_>>()?;
            self.stream = Some(*header);
        }
        let block = Block::of_frame(frame);
        let mut searches = std::mem::take(&mut self.searches);
        let mut hits = std::mem::take(&mut self.hits);
        for (lane, search) in &mut searches {
            search.scan(header.first_sample_index, &block, &mut hits)?;
            hits.drain(..).for_each(|hit| self.keep(Some(hit.lane(*lane)), hit, header));
        }
        (self.searches, self.hits) = (searches, hits);
        Ok(())
    }

    /// A lasting event ends with the stream.
    fn end(&mut self, header: &Header) {
        let mut searches = std::mem::take(&mut self.searches);
        for (lane, search) in &mut searches {
            let mut hits = Vec::new();
            search.end(&mut hits);
            hits.into_iter().for_each(|hit| self.keep(Some(hit.lane(*lane)), hit, header));
        }
        self.searches = searches;
    }

    /// Saves a range around an event.
    fn keep(&mut self, lane: Option<LaneId>, hit: Hit, header: &Header) {
        let Hit { index, length_samples, burst } = hit;
        // The search gets a whole last frame, of which the recorder takes a part.
        if index >= self.end_index {
            return;
        }
        let length_samples = length_samples.min(self.end_index - index);
        self.counters.add(EVENTS, 1);
        if index < self.kept_until {
            return self.counters.add(WITHIN, 1);
        }
        self.reap();
        let minute_ago = Instant::now().checked_sub(Duration::from_secs(60));
        while self.recent.pop_front_if(|saved| Some(*saved) < minute_ago).is_some() {}
        if self.recent.len() as u64 >= self.watch.saves_per_minute || self.saves.len() >= SAVES_MAX {
            return self.counters.add(LEFT_OUT, 1);
        }
        let rate_hz = header.sample_rate_hz;
        let lasts = Duration::try_from_secs_f64(length_samples as f64 / rate_hz).unwrap_or_default();
        let Watch { kind, folder, before, after, .. } = self.watch.clone();
        let stretch = RingStretch {
            before,
            after: after.saturating_add(lasts),
            at: Some(index),
            label: Some(RingLabel {
                length_samples,
                fields: annotation_fields(kind.name(), "grebe record", lane, burst.as_ref()),
            }),
            overwrite: false,
        };
        let name = kind.name();
        let words = burst.map_or(String::new(), |burst| format!(", {}", burst.words()));
        let to = folder.join(format!("{name}_{}.sigmf-meta", utc_now()));
        let save = move || match save_ring(&folder, Some(&to), &stretch, &Cancel::default()) {
            Ok(saved) => {
                let Ok(kept) = SavedRange::of(saved) else { return false };
                note!("{name} at sample {index}{words}: {}", kept.words());
                kept.missing().into_iter().for_each(|missing| note!("grebe: {missing}"));
                true
            }
            Err(error) => {
                note!("grebe: {name} at sample {index} is not saved: {error}");
                false
            }
        };
        match std::thread::Builder::new().name("save".to_owned()).spawn(save) {
            Ok(thread) => {
                self.saves.push(thread);
                self.recent.push_back(Instant::now());
                let behind = (stretch_samples(after, rate_hz)).saturating_add(length_samples);
                self.kept_until = index.saturating_add(behind);
            }
            Err(_) => self.counters.add(FAILED, 1),
        }
    }

    /// Counts finished saves.
    fn reap(&mut self) {
        let (ended, goes_on) = std::mem::take(&mut self.saves).into_iter().partition(JoinHandle::is_finished);
        self.saves = goes_on;
        self.count(ended);
    }

    fn count(&self, ended: Vec<JoinHandle<bool>>) {
        for save in ended {
            let is_kept = save.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.counters.add(if is_kept { SAVES } else { FAILED }, 1);
        }
    }
}

impl Stage for Watcher {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else {
            self.reap();
            return Ok(Outcome::WantsInput);
        };
        self.search_batch(&batch).map_err(|error| error.into_boxed_dyn_error())?;
        Ok(Outcome::Produced)
    }

    /// Waits for saves. The recorder ends meanwhile, and saves include its last samples.
    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        if let Some(header) = self.stream {
            self.end(&header);
        }
        let saves = std::mem::take(&mut self.saves);
        self.count(saves);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

impl Drop for Watcher {
    /// The runtime does not call `finish` after an error in `process`.
    fn drop(&mut self) {
        std::mem::take(&mut self.saves).into_iter().for_each(|save| drop(save.join()));
    }
}

fn signal_of(header: &Header, batch: Option<&Batch>) -> Signal {
    Signal {
        format: header.format,
        channels: header.channel_count as usize,
        sample_rate_hz: header.sample_rate_hz,
        description: batch.and_then(|batch| batch.description().cloned()),
    }
}

fn stretch_samples(time: Duration, rate_hz: f64) -> u64 {
    (time.as_secs_f64() * rate_hz).round() as u64
}

/// `20261123T021314_123`.
fn utc_now() -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    now.strftime("%Y%m%dT%H%M%S_%3f").to_string()
}

const COUNTERS: &[&str] = &["events", "saves", "within", "left_out", "failed"];
const EVENTS: usize = 0;
const SAVES: usize = 1;
const WITHIN: usize = 2;
const LEFT_OUT: usize = 3;
const FAILED: usize = 4;
/// A quarter of the limit for a reader of shared memory.
const QUEUE_BATCHES: usize = 64;
/// Concurrent saves; each copies at the rate of the disk.
const SAVES_MAX: usize = 4;
