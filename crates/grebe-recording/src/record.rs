//! A SigMF recording as a sink: on one disk, or on several.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Arrival, Description, Frame, Header, StreamTracker};

use crate::disk::WriteMethod;
use crate::error::{Error, ProcessError};
use crate::output::NameLock;
use crate::repeated_labels::RepeatedLabels;
use crate::ring::{RingLength, RingPlan};
use crate::rotate::Rotate;
use crate::sample_file::{RecordedAt, made_at};
use crate::sigmf::{Base, SigmfSettings};

mod counters;
mod series;
mod stripes;
#[cfg(test)]
mod tests;

use self::counters::{ANNOTATIONS, DISKS_MAX, FRAMES, GAP, GAPS, LEFT_OUT, PARTS, RECORDED, RESTART_MISSING};
use self::series::{Keep, Series, frame_bytes, samples_of};
pub use self::stripes::LeftOut;
pub(crate) use self::stripes::Stripes;

/// How a stream is recorded.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// Ends after this much of the signal, gaps included, to the sample.
    pub duration: Option<Duration>,
    /// Replaces a recording of the same name.
    pub overwrite: bool,
    /// Memory for data that wait for the disk; default: the writer's.
    pub buffer_bytes: Option<usize>,
    /// How the data are written.
    pub write_method: WriteMethod,
    /// In parts of this length, instead of one.
    pub rotate: Option<Rotate>,
    /// The most that the parts may have; the oldest are removed.
    pub keep_bytes: Option<u64>,
    /// As a ring of this length: in parts, of which the oldest are removed.
    pub ring: Option<RingLength>,
    /// Receives the layout of the ring, before the first write.
    pub ring_plan: Option<Sender<RingPlan>>,
    /// Ends before there are more bytes of samples than that, of all channels and parts.
    pub bytes_max: Option<u64>,
    /// Other disks to take turns with: folders, or recordings there.
    pub more_disks: Vec<PathBuf>,
    /// Receives each disk that fails while others continue, with the reason.
    pub left_out: Option<Sender<LeftOut>>,
}

/// Records what arrives, bit for bit, with a segment at each gap.
///
/// The first frame gives the number of channels; then the files are created. A restarted sender begins
/// another segment. A sender that changes format, channels or rate ends the recording with an error, and the
/// samples until then are good.
#[derive(Debug)]
pub struct SigmfSink {
    base: Base,
    /// Its name on each disk, until the writer has it.
    names: Vec<(Base, NameLock)>,
    options: RecordOptions,
    writer: Option<Stripes>,
    series: Option<Series>,
    parts: u64,
    /// Samples per channel in the parts before, and of the signal when this one began.
    before_samples: u64,
    begin_samples: u64,
    stream: Option<Header>,
    tracker: StreamTracker,
    /// Latest description of the stream.
    described: Option<Arc<Description>>,
    /// Descriptions that apply from a later sample on; `None` withdraws the description.
    upcoming: VecDeque<Option<Arc<Description>>>,
    labels: RepeatedLabels,
    /// Samples per channel of the signal so far, gaps included; durations count these.
    signal_samples: u64,
    gap_samples: u64,
    gaps: u64,
    /// When the newest batch ended, and how long its stream had lasted.
    ended: Option<(RecordedAt, f64)>,
    restart_missing_ms: u64,
    frames: u64,
    counters: Counters,
}

impl SigmfSink {
    /// A recording at `path` (`NAME.sigmf-meta`), to be created when the first frame arrives.
    ///
    /// # Errors
    /// Its folder cannot be written to, a recording of that name is there already, or another recorder has the name.
    pub fn create(path: &Path, options: RecordOptions) -> Result<Self, Error> {
        let bases = bases(path, &options)?;
        // Finds at once what would otherwise be found when the first frame arrives, minutes later.
        let lock = |base: Base| Ok((base.lock()?, base));
        let names = bases.into_iter().map(lock).collect::<Result<Vec<_>, Error>>()?;
        let names: Vec<(Base, NameLock)> = names.into_iter().map(|(name, base)| (base, name)).collect();
        let files = names.iter().flat_map(|(base, _)| [base.meta(), base.data(), base.collection()]);
        if let Some(path) = files.into_iter().find(|path| !options.overwrite && path.exists()) {
            return Err(Error::Exists { path });
        }
        options.ring.map_or(Ok(()), RingLength::check)?;
        let keep = options.keep_bytes.map_or(Keep::All, Keep::Bytes);
        let base = names[0].0.clone();
        let series = options.rotate.map(|rotate| Series::new(base.clone(), rotate, keep));
        let counters = Counters::new(counters::names(names.len())).with_gauges(counters::GAUGES);
        Ok(Self {
            base,
            names,
            series: series.transpose()?,
            options,
            writer: None,
            parts: 0,
            before_samples: 0,
            begin_samples: 0,
            stream: None,
            tracker: StreamTracker::new(),
            described: None,
            upcoming: VecDeque::new(),
            labels: RepeatedLabels::default(),
            signal_samples: 0,
            gap_samples: 0,
            gaps: 0,
            ended: None,
            restart_missing_ms: 0,
            frames: 0,
            counters,
        })
    }

    /// The first free name for a recording: NAME, else NAME_2, NAME_3, ...
    ///
    /// # Errors
    /// No recording can have such a name.
    pub fn first_free(path: &Path) -> Result<PathBuf, Error> {
        Ok(Base::to_record(path)?.first_free().meta())
    }

    /// Whether a recording can have this name; nothing is looked up.
    pub fn check_name(path: &Path) -> Result<(), Error> {
        Base::check_to_record(path)
    }

    /// Takes a description of the stream. It replaces an earlier one of the same samples.
    fn hear(&mut self, description: Option<Arc<Description>>) {
        let from = from_index(&description);
        while self.upcoming.len() == UPCOMING_MAX
            || self.upcoming.back().is_some_and(|before| from_index(before) >= from)
        {
            self.upcoming.pop_back();
        }
        self.labels.hear(description.as_deref());
        self.upcoming.push_back(description.clone());
        self.described = description;
    }

    /// Writes a frame; whether the recording is now as long as it should be.
    fn write(&mut self, frame: &Frame<'_>) -> Result<bool, Error> {
        let header = frame.header();
        let expected = self.tracker.next_sample_index().unwrap_or(0);
        let arrival = self.tracker.arrive(&header);
        if !arrival.is_new() || header.is_end_of_stream() {
            return Ok(false);
        }
        let stream = *self.stream.get_or_insert(header);
        let of = |header: &Header| (header.format, header.channel_count, header.sample_rate_hz);
        if of(&header) != of(&stream) {
            return Err(Error::Changed { was: describe(&stream), is: describe(&header) });
        }
        self.make_writer(&header)?;
        let restart = if arrival == Arrival::Restart { self.restart(&header, expected) } else { None };
        if let Arrival::After(gap) = arrival {
            self.signal_samples = self.signal_samples.saturating_add(gap.samples);
            self.count_gap(gap.samples);
        }
        let recorded_samples = self.len_samples();
        let Some(writer) = self.writer.as_mut() else { return Ok(false) };
        let rate_hz = header.sample_rate_hz;
        let length = self.options.duration.map_or(u64::MAX, |duration| samples_of(duration, rate_hz));
        let block = u64::from(header.block_length_samples);
        let room = self.options.bytes_max.map_or(u64::MAX, |bytes| bytes / frame_bytes(&header));
        let room = room.saturating_sub(recorded_samples);
        let left = length.saturating_sub(self.signal_samples).min(room).min(block);
        self.signal_samples = self.signal_samples.saturating_add(block);
        let left = left as usize;
        let mut written = 0;
        while let Some(description) = self.upcoming.front() {
            let before = from_index(description).saturating_sub(header.first_sample_index);
            let described_from = left.min(before.try_into().unwrap_or(usize::MAX)).max(written);
            if described_from == left {
                break;
            }
            writer.write_part(frame, written..described_from)?;
            writer.describe(description.as_ref());
            written = described_from;
            self.upcoming.pop_front();
        }
        writer.write_part(frame, written..left)?;
        self.frames += u64::from(left > 0);
        if arrival == Arrival::Restart && left > 0 {
            // After the write: a label belongs to the stream that was written last.
            let missing =
                restart.map(|seconds| format!("about {} missing, by the clock: ", seconds_in_words(seconds)));
            let label = missing.unwrap_or_default() + "the sender began again";
            writer.annotate(header.first_sample_index, left as u64, &label)?;
        }
        if arrival == Arrival::Restart {
            self.labels.begin(self.described.as_deref());
        }
        self.labels.enter(header.first_sample_index, left as u64, writer);
        Ok(self.signal_samples >= length || room <= block)
    }

    /// Counts the missing samples where a sender restarts: by the index if the stream continues, else by the clock,
    /// in seconds.
    #[cold]
    fn restart(&mut self, header: &Header, expected: u64) -> Option<f64> {
        let (end, lasted_s) = self.ended.take()?;
        let index = header.first_sample_index;
        if index >= expected {
            if index > expected {
                self.count_gap(index - expected);
            }
            return None;
        }
        let begin = made_at(self.described.as_deref(), header, index)?;
        let seconds = end.missing_until(&begin, lasted_s)?;
        self.restart_missing_ms += (seconds * 1e3) as u64;
        Some(seconds)
    }

    fn count_gap(&mut self, samples: u64) {
        self.gap_samples = self.gap_samples.saturating_add(samples);
        self.gaps += u64::from(samples > 0);
    }

    /// Begins the recording, or its next part where one is full: between two frames, so that each is in one part.
    fn make_writer(&mut self, header: &Header) -> Result<(), Error> {
        let samples = self.writer.as_ref().map(Stripes::len_samples);
        let span_samples = self.signal_samples - self.begin_samples;
        let is_full =
            |samples| self.series.as_ref().is_some_and(|it| it.is_full(header, samples, span_samples));
        if samples.is_some_and(|samples| !is_full(samples)) {
            return Ok(());
        }
        if let Some(length) = self.options.ring.filter(|_| self.series.is_none()) {
            let plan = RingPlan::of(length, header)?;
            self.series = Some(Series::ring(self.base.clone(), &plan)?);
            // The requester may be gone.
            let _ = self.options.ring_plan.take().map(|told| told.send(plan));
        }
        let default = SigmfSettings::default();
        let settings = SigmfSettings {
            format: header.format,
            channels: header.channel_count as usize,
            sample_rate_hz: header.sample_rate_hz,
            overwrite: self.options.overwrite,
            buffer_bytes: self.options.buffer_bytes.unwrap_or(default.buffer_bytes),
            write_method: self.options.write_method,
            // `save` assembles parts of a ring anew.
            checksum: self.options.ring.is_none(),
            summary: true,
            ..default
        };
        let closing = match (&mut self.writer, &mut self.series) {
            (Some(writer), Some(series)) => {
                let (next, name) = series.next(&settings, writer.is_past_cache())?;
                Some(writer.only().rotate(next, name)?)
            }
            (writer, Some(series)) => {
                let base = series.begin();
                *writer = Some(Stripes::one(&base, &settings, base.lock()?)?);
                None
            }
            (writer, None) => {
                let names = std::mem::take(&mut self.names);
                *writer = Some(Stripes::create(names, &settings, self.options.left_out.take())?);
                None
            }
        };
        self.parts += 1;
        self.before_samples += samples.unwrap_or(0);
        self.begin_samples = self.signal_samples;
        let (Some(writer), Some(series)) = (&self.writer, &mut self.series) else { return Ok(()) };
        series.prepare(&settings, writer.is_past_cache());
        closing.map_or(Ok(()), |closing| series.close(closing))
    }

    /// Samples per channel in all parts.
    fn len_samples(&self) -> u64 {
        self.before_samples + self.writer.as_ref().map_or(0, Stripes::len_samples)
    }

    fn publish(&self) {
        self.counters.set(RECORDED, self.len_samples());
        self.counters.set(PARTS, if self.series.is_some() { self.parts } else { 0 });
        self.counters.set(GAP, self.gap_samples);
        self.counters.set(GAPS, self.gaps);
        self.counters.set(RESTART_MISSING, self.restart_missing_ms);
        self.counters.set(FRAMES, self.frames);
        self.counters.set(ANNOTATIONS, self.labels.entered);
        self.counters.set(LEFT_OUT, self.labels.left_out);
        if let Some(writer) = &self.writer {
            counters::set_disks(&self.counters, writer);
        }
    }
}

impl Stage for SigmfSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else {
            if let Some(writer) = &mut self.writer {
                writer.pause()?;
            }
            return Ok(Outcome::WantsInput);
        };
        if self.described.as_ref().map(Arc::as_ptr) != batch.description().map(Arc::as_ptr) {
            self.hear(batch.description().cloned());
        }
        if let Some(series) = &mut self.series {
            series.check()?;
        }
        let mut outcome = Ok(Outcome::Produced);
        for frame in batch.frames() {
            match self.write(&frame) {
                Ok(false) => continue,
                Ok(true) => outcome = Ok(Outcome::End),
                Err(error) => outcome = Err(error.into()),
            }
            break;
        }
        if let Some(header) = batch.frames().next_back().map(|frame| frame.header()) {
            let end = header.first_sample_index.saturating_add(header.block_length_samples.into());
            let lasted_s = self.signal_samples as f64 / header.sample_rate_hz.max(1.0);
            self.ended = made_at(self.described.as_deref(), &header, end).map(|end| (end, lasted_s));
        }
        if let Some(writer) = &mut self.writer {
            writer.pause_others()?;
        }
        self.publish();
        outcome
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        self.publish();
        if let Some(mut writer) = self.writer.take() {
            let finished = writer.finish();
            self.counters.set(RECORDED, self.before_samples + writer.len_samples());
            counters::set_disks(&self.counters, &writer);
            finished?;
        }
        if let Some(series) = &mut self.series {
            series.settle()?;
        }
        // Readers that wait for more see the end.
        self.names.clear();
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

impl Drop for SigmfSink {
    /// After an error in `process` the runtime does not call `finish`: this closes the recording.
    fn drop(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.finish();
        }
        if let Some(series) = &mut self.series {
            let _ = series.settle();
        }
    }
}

/// To three digits: more, clocks do not say.
fn seconds_in_words(seconds: f64) -> String {
    grebe_scope::Engineering::new(seconds, "s").digits(3).to_string()
}

/// First sample to which the description applies; without a description, the next sample.
fn from_index(description: &Option<Arc<Description>>) -> u64 {
    description.as_ref().map_or(0, |description| description.first_sample_index)
}

/// Maximum annotations sent before their samples; honest streams send fewer.
const UPCOMING_MAX: usize = 64;

/// The recordings to make: one of them is named, the others may be folders, where it is called the same.
fn bases(path: &Path, options: &RecordOptions) -> Result<Vec<Base>, Error> {
    let setting = |what, got: String, must| Err(ProcessError::Setting { what, got, must }.into());
    let count = 1 + options.more_disks.len();
    if count > DISKS_MAX {
        return setting("the number of disks", count.to_string(), "eight can take turns");
    }
    if count > 1 && (options.ring.is_some() || options.rotate.is_some()) {
        let must = "a ring, or a recording in parts, is on one disk";
        return setting("the number of disks", count.to_string(), must);
    }
    let disks = || std::iter::once(path).chain(options.more_disks.iter().map(PathBuf::as_path));
    let named = disks().find(|disk| !disk.is_dir()).unwrap_or(path);
    let name = Base::to_record(named)?.meta().file_name().map(PathBuf::from).unwrap_or_default();
    let mut bases = Vec::with_capacity(count);
    for disk in disks() {
        let base = Base::to_record(&if disk.is_dir() { disk.join(&name) } else { disk.to_owned() })?;
        let place = |base: &Base| std::fs::canonicalize(base.meta().parent().unwrap_or(Path::new("."))).ok();
        let is_same = |other: &Base| {
            (place(other), other.meta().file_name().map(ToOwned::to_owned))
                == (place(&base), base.meta().file_name().map(ToOwned::to_owned))
        };
        if bases.iter().any(is_same) {
            let must = "it is named twice: each disk that takes turns has a folder of its own";
            return setting("a disk", disk.display().to_string(), must);
        }
        bases.push(base);
    }
    Ok(bases)
}

fn describe(header: &Header) -> String {
    let plural = if header.channel_count == 1 { "" } else { "s" };
    let Header { channel_count, format, sample_rate_hz, .. } = header;
    format!("{channel_count} channel{plural} of {format} at {sample_rate_hz} S/s")
}
