//! A SigMF recording as a sink.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Arrival, Description, Frame, Header, StreamTracker};

use crate::error::Error;
use crate::file::output::NameLock;
use crate::file::sigmf::{Base, SigmfSettings, SigmfWriter};

/// How a stream is recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordOptions {
    /// Ends after this much of the signal, gaps included, to the sample.
    pub(crate) duration: Option<Duration>,
    /// Replaces a recording of the same name.
    pub(crate) overwrite: bool,
}

/// Records what arrives, bit for bit, with a segment at each gap.
///
/// The files are created when the first frame says how many channels there are. A sender that begins again is recorded as
/// another segment; one that changes its format, its channels or its rate ends the recording with an error, and what was recorded is good.
#[derive(Debug)]
pub(crate) struct SigmfSink {
    base: Base,
    /// The recording's name, until the writer has it.
    name: Option<NameLock>,
    options: RecordOptions,
    writer: Option<SigmfWriter>,
    stream: Option<Header>,
    tracker: StreamTracker,
    /// What the stream said last.
    described: Option<Arc<Description>>,
    /// The same, until the sample comes from which on it holds.
    description: Option<Arc<Description>>,
    /// Samples per channel of the signal so far, gaps included: what a duration is of.
    signal_samples: u64,
    gap_samples: u64,
    frames: u64,
    counters: Counters,
    flushed: Instant,
}

impl SigmfSink {
    /// A recording at `path` (`NAME.sigmf-meta`), to be created when the first frame arrives.
    ///
    /// # Errors
    /// Its folder cannot be written to, a recording of that name is there already, or another recorder has the name.
    pub(crate) fn create(path: &Path, options: RecordOptions) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        // Finds at once what would otherwise be found when the first frame arrives, minutes later.
        let name = base.lock()?;
        let mut names = [base.meta(), base.data(), base.collection()].into_iter();
        if let Some(path) = names.find(|path| !options.overwrite && path.exists()) {
            return Err(Error::Exists { path });
        }
        Ok(Self {
            base,
            name: Some(name),
            options,
            writer: None,
            stream: None,
            tracker: StreamTracker::new(),
            described: None,
            description: None,
            signal_samples: 0,
            gap_samples: 0,
            frames: 0,
            counters: Counters::new(COUNTERS),
            flushed: Instant::now(),
        })
    }

    /// Writes a frame; whether the recording is now as long as it should be.
    fn write(&mut self, frame: &Frame<'_>) -> Result<bool, Error> {
        let header = frame.header();
        let arrival = self.tracker.arrive(&header);
        if !arrival.is_new() || header.is_end_of_stream() {
            return Ok(false);
        }
        let stream = *self.stream.get_or_insert(header);
        let of = |header: &Header| (header.format, header.channel_count, header.sample_rate_hz);
        if of(&header) != of(&stream) {
            return Err(Error::Changed { was: describe(&stream), is: describe(&header) });
        }
        if self.writer.is_none() {
            let settings = SigmfSettings {
                format: header.format,
                channels: header.channel_count as usize,
                sample_rate_hz: header.sample_rate_hz,
                overwrite: self.options.overwrite,
                ..SigmfSettings::default()
            };
            let name = self.name.take().map_or_else(|| self.base.lock(), Ok)?;
            self.writer = Some(SigmfWriter::create_locked(&self.base, &settings, name)?);
        }
        let Some(writer) = self.writer.as_mut() else { return Ok(false) };
        let rate_hz = header.sample_rate_hz;
        let length = self.options.duration.map_or(u64::MAX, |duration| samples_of(duration, rate_hz));
        if let Arrival::After(gap) = arrival {
            self.signal_samples = self.signal_samples.saturating_add(gap.samples);
            self.gap_samples = self.gap_samples.saturating_add(gap.samples);
        }
        let block = u64::from(header.block_length_samples);
        let left = length.saturating_sub(self.signal_samples).min(block);
        self.signal_samples = self.signal_samples.saturating_add(block);
        let left = left as usize;
        let held_back = |description: &Arc<Description>| {
            let before = description.first_sample_index.saturating_sub(header.first_sample_index);
            left.min(before.try_into().unwrap_or(usize::MAX))
        };
        let described_from = self.description.as_ref().map_or(left, held_back);
        writer.write_part(frame, 0..described_from)?;
        if described_from < left {
            writer.describe(self.description.take());
            writer.write_part(frame, described_from..left)?;
        }
        self.frames += u64::from(left > 0);
        if arrival == Arrival::Restart && left > 0 {
            // After the write: a label belongs to the stream that was written last.
            writer.annotate(header.first_sample_index, left as u64, "the sender began again")?;
        }
        Ok(self.signal_samples >= length)
    }

    fn publish(&self) {
        self.counters.set(RECORDED, self.writer.as_ref().map_or(0, SigmfWriter::len_samples));
        self.counters.set(GAP, self.gap_samples);
        self.counters.set(FRAMES, self.frames);
    }
}

impl Stage for SigmfSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else {
            // A stream that pauses: what is there goes to the disk.
            if let Some(writer) = self.writer.as_mut().filter(|_| self.flushed.elapsed() >= FLUSH_AFTER) {
                writer.flush()?;
                self.flushed = Instant::now();
            }
            return Ok(Outcome::WantsInput);
        };
        if let Some(description) = batch.description()
            && !self.described.as_ref().is_some_and(|known| Arc::ptr_eq(known, description))
        {
            self.described = Some(description.clone());
            self.description = Some(description.clone());
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
        self.publish();
        outcome
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        self.publish();
        if let Some(writer) = self.writer.take() {
            let summary = writer.finish()?;
            self.counters.set(RECORDED, summary.len_samples);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

impl Drop for SigmfSink {
    /// After an error in `process` the runtime calls no `finish`: what was recorded is closed all the same.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let _ = writer.finish();
        }
    }
}

/// Where the rate is unknown, a duration is no number of samples, and does not end the recording.
fn samples_of(duration: Duration, rate_hz: f64) -> u64 {
    if rate_hz > 0.0 { (duration.as_secs_f64() * rate_hz).round() as u64 } else { u64::MAX }
}

fn describe(header: &Header) -> String {
    let plural = if header.channel_count == 1 { "" } else { "s" };
    let Header { channel_count, format, sample_rate_hz, .. } = header;
    format!("{channel_count} channel{plural} of {format} at {sample_rate_hz} S/s")
}

const COUNTERS: &[&str] = &["recorded_samples", "gap_samples", "recorded_frames"];
const RECORDED: usize = 0;
const GAP: usize = 1;
const FRAMES: usize = 2;
const FLUSH_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;

    use super::*;
    use crate::file::SampleFile;
    use crate::testing::batches_of;

    #[test]
    fn a_duration_is_of_the_signal_and_the_counts_are_of_the_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sigmf-meta");
        // At 1 MS/s: 64 samples, a gap of 64, and 22 of the next block.
        let options = RecordOptions { duration: Some(Duration::from_micros(150)), overwrite: false };
        let mut bench = StageBench::new(SigmfSink::create(&path, options).unwrap()).unwrap();
        for batch in batches_of(1, &[(0, 64), (128, 64), (192, 64)], 1) {
            bench.feed(batch).unwrap();
        }
        bench.end().unwrap();
        let snapshot = bench.snapshot();
        let own = |name: &str| snapshot.stage("stage").unwrap().own(name);
        assert_eq!((own("recorded_samples"), own("recorded_frames")), (Some(86), Some(2)));
        let file = SampleFile::open(&path).unwrap();
        let lengths: Vec<u64> = file.segments().iter().map(|segment| segment.length_samples).collect();
        assert_eq!(lengths, [64, 22]);
    }

    #[test]
    fn a_gap_beyond_the_duration_ends_the_recording_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sigmf-meta");
        let options = RecordOptions { duration: Some(Duration::from_micros(100)), overwrite: false };
        let mut bench = StageBench::new(SigmfSink::create(&path, options).unwrap()).unwrap();
        for batch in batches_of(1, &[(0, 64), (500, 64)], 1) {
            bench.feed(batch).unwrap();
        }
        bench.end().unwrap();
        assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 64);
    }
}
