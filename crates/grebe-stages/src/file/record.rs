//! A SigMF recording as a sink.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Arrival, Frame, Header, StreamTracker};

use crate::error::Error;
use crate::file::sigmf::{Base, SigmfSettings, SigmfWriter};

/// How a stream is recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordOptions {
    /// Ends after this much of the signal, to the sample.
    pub(crate) duration: Option<Duration>,
    /// Replaces a recording of the same name.
    pub(crate) overwrite: bool,
}

/// Records what arrives, bit for bit, with a segment at each gap.
///
/// The files are created when the first frame says how many channels there are. A sender that begins again is recorded as
/// another segment; one that changes its channels or its rate ends the recording with an error, and what was recorded is good.
#[derive(Debug)]
pub(crate) struct SigmfSink {
    path: PathBuf,
    options: RecordOptions,
    writer: Option<SigmfWriter>,
    stream: Option<Header>,
    tracker: StreamTracker,
    counters: Counters,
    flushed: Instant,
}

impl SigmfSink {
    /// A recording at `path` (`NAME.sigmf-meta`), to be created when the first frame arrives.
    ///
    /// # Errors
    /// Its folder cannot be written to, or a recording of that name is there already.
    pub(crate) fn create(path: &Path, options: RecordOptions) -> Result<Self, Error> {
        check_writable(path, options.overwrite)?;
        Ok(Self {
            path: path.to_owned(),
            options,
            writer: None,
            stream: None,
            tracker: StreamTracker::new(),
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
        if header.channel_count != stream.channel_count || header.sample_rate_hz != stream.sample_rate_hz {
            return Err(Error::Changed { was: describe(&stream), is: describe(&header) });
        }
        if self.writer.is_none() {
            let settings = SigmfSettings {
                channels: header.channel_count as usize,
                sample_rate_hz: header.sample_rate_hz,
                overwrite: self.options.overwrite,
                ..SigmfSettings::default()
            };
            self.writer = Some(SigmfWriter::create(&self.path, &settings)?);
        }
        let Some(writer) = self.writer.as_mut() else { return Ok(false) };
        let is_restart = arrival == Arrival::Restart;
        let Some(length) = self.options.duration.map(|duration| samples_of(duration, header.sample_rate_hz))
        else {
            writer.write_frame(frame)?;
            mark_restart(writer, &header, is_restart)?;
            return Ok(false);
        };
        let left = length.saturating_sub(writer.len_samples());
        if left >= u64::from(header.block_length_samples) {
            writer.write_frame(frame)?;
        } else {
            let channels: Vec<_> =
                (0..header.channel_count as usize).map(|channel| frame.channel(channel)).collect();
            let cut: Vec<&[i16]> = channels.iter().map(|samples| &samples[..left as usize]).collect();
            writer.write(header.first_sample_index, &cut)?;
        }
        mark_restart(writer, &header, is_restart)?;
        Ok(writer.len_samples() >= length)
    }

    fn publish(&self) {
        let counts = self.tracker.counts();
        self.counters.set(RECORDED, self.writer.as_ref().map_or(0, SigmfWriter::len_samples));
        self.counters.set(GAPS_SAMPLES, counts.lost_samples + counts.generator_samples);
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
        for frame in batch.frames() {
            if self.write(&frame)? {
                self.publish();
                return Ok(Outcome::End);
            }
        }
        self.publish();
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        self.publish();
        match self.writer.take() {
            Some(writer) => Ok(writer.finish().map(drop)?),
            None => Ok(()),
        }
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

/// To be called after the write: a label belongs to the stream that was written last.
fn mark_restart(writer: &mut SigmfWriter, header: &Header, is_restart: bool) -> Result<(), Error> {
    if !is_restart {
        return Ok(());
    }
    writer.annotate(
        header.first_sample_index,
        u64::from(header.block_length_samples),
        "the sender began again",
    )
}

/// Finds at once what would otherwise be found when the first frame arrives, minutes later.
fn check_writable(path: &Path, overwrite: bool) -> Result<(), Error> {
    if path.file_name().is_none() || path.is_dir() {
        return Err(Error::Field {
            path: path.to_owned(),
            what: "unknown kind of file; known are NAME.sigmf-meta".to_owned(),
        });
    }
    let base = Base::of(path);
    let mut names = [base.meta(), base.data(), base.collection()].into_iter();
    if let Some(path) = names.find(|path| !overwrite && path.exists()) {
        return Err(Error::Exists { path });
    }
    let mut probe = base.data().into_os_string();
    probe.push(".part");
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(&probe)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => OpenOptions::new().write(true).open(&probe),
            _ => Err(error),
        })
        .and_then(|_| fs::remove_file(&probe))
        .map_err(Error::file("create", path))
}

/// Where the rate is unknown, a duration is no number of samples, and does not end the recording.
fn samples_of(duration: Duration, rate_hz: f64) -> u64 {
    if rate_hz > 0.0 { (duration.as_secs_f64() * rate_hz).round() as u64 } else { u64::MAX }
}

fn describe(header: &Header) -> String {
    let plural = if header.channel_count == 1 { "" } else { "s" };
    format!("{} channel{plural} at {} S/s", header.channel_count, header.sample_rate_hz)
}

const COUNTERS: &[&str] = &["recorded_samples", "gap_samples"];
const RECORDED: usize = 0;
const GAPS_SAMPLES: usize = 1;
const FLUSH_AFTER: Duration = Duration::from_secs(1);
