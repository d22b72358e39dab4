//! Writing: one file per channel, or one of many channels, in large pieces, with metadata that are good at any moment.

#[cfg(all(test, target_os = "linux"))]
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grebe_frame::{ChannelError, ClockReading, Description, Frame, Header, Sample, SampleFormat};
use serde_json::{Map, Value};

use super::create::{DataFile, SigmfSettings, create};
use super::described::Tuning;
use super::layout::Base;
use super::metadata::Captured;
use super::metadata_writer::{Event, MetadataWriter};
use crate::error::Error;
use crate::file::output::NameLock;
use crate::file::sample_file::Block;

/// Records a stream as SigMF: one recording, or one per channel and a collection.
///
/// ```
/// use grebe_stages::{SampleFile, SigmfSettings, SigmfWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("two.sigmf-meta");
/// let settings = SigmfSettings { channels: 2, sample_rate_hz: 48_000.0, ..SigmfSettings::default() };
/// let mut writer = SigmfWriter::create(&path, &settings)?;
/// writer.write(0, &[&[1i16, 2, 3], &[-1, -2, -3]])?;
/// writer.write(10, &[&[4i16], &[-4]])?; // 7 samples are missing
/// assert_eq!(writer.finish()?.segments, 2);
///
/// let file = SampleFile::open(&path)?;
/// assert_eq!((file.channels(), file.len_samples()), (2, 4));
/// assert_eq!(file.segments()[1].first_sample_index, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Samples are written when 1 MiB a file has come together, or a second has passed at the next [`write`](Self::write). A
/// recorder that is killed leaves a recording without the last of them, marked "not closed", which
/// [`SampleFile`](crate::SampleFile) reads; so does a writer that is dropped without [`finish`](Self::finish).
#[derive(Debug)]
pub struct SigmfWriter {
    format: SampleFormat,
    channels: usize,
    parts: Vec<DataFile>,
    /// Behind the newest sample, in the stream.
    next_sample_index: Option<u64>,
    /// What the stream is from there on.
    description: Option<Arc<Description>>,
    /// Samples per channel that were handed over, written or not.
    taken_samples: u64,
    /// Of them those that the system took.
    good_samples: u64,
    segments: u64,
    annotations: u64,
    files: Vec<PathBuf>,
    /// None once its end was waited for.
    metadata: Option<MetadataWriter>,
    /// Before its time, by a write that failed.
    has_ended: bool,
    _name: NameLock,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigmfSummary {
    /// Samples per channel.
    pub len_samples: u64,
    /// Stretches without a gap, of which the stream says the same throughout.
    pub segments: u64,
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
}

impl SigmfWriter {
    /// Creates the files. `path` is the recording's name with or without `.sigmf-meta`, `.sigmf-data`,
    /// `.sigmf-collection`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a setting out of range, [`Error::Busy`] while another recorder has the name, [`Error::Exists`] where a recording of that name is
    /// there and must not be overwritten, [`Error::File`] where a file cannot be created. Nothing is left behind, and
    /// what was there is as it was.
    pub fn create(path: &Path, settings: &SigmfSettings) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        let name = base.lock()?;
        Self::create_locked(&base, settings, name)
    }

    /// Creates the files of a recording whose name is taken already.
    pub(crate) fn create_locked(
        base: &Base,
        settings: &SigmfSettings,
        name: NameLock,
    ) -> Result<Self, Error> {
        let (parts, metadata, files) = create(base, settings)?;
        Ok(Self {
            _name: name,
            format: settings.format,
            channels: settings.channels,
            parts,
            next_sample_index: None,
            description: None,
            taken_samples: 0,
            good_samples: 0,
            segments: 0,
            annotations: 0,
            files,
            metadata: Some(metadata),
            has_ended: false,
        })
    }

    /// Appends samples of all channels. Where `first_sample_index` is not the index behind the samples before, a segment
    /// begins: a gap, or another stream where it is lower.
    ///
    /// # Errors
    /// [`Error::Samples`] where they are of another format than the recording; [`Error::Shape`] where the number of channels is
    /// another or they differ in length; [`Error::Write`]
    /// where the disk is full or fails: the recording ends before this call then, and [`finish`](Self::finish) closes it.
    pub fn write<T: Sample>(&mut self, first_sample_index: u64, channels: &[&[T]]) -> Result<(), Error> {
        self.check(T::FORMAT, channels.len())?;
        let length = channels[0].len();
        for channel in channels {
            shape("samples of a channel", channel.len(), length)?;
        }
        if cfg!(target_endian = "big") {
            let swapped = |samples: &&[T]| {
                let mut bytes = bytemuck::cast_slice::<T, u8>(samples).to_vec();
                T::FORMAT.swap_to_host(&mut bytes);
                bytes
            };
            let channels: Vec<Vec<u8>> = channels.iter().map(swapped).collect();
            return self.append(first_sample_index, length, |channel| &channels[channel], now);
        }
        let samples = |channel: usize| bytemuck::cast_slice(channels[channel]);
        self.append(first_sample_index, length, samples, now)
    }

    /// Appends a frame, as [`write`](Self::write) does, without a detour by samples.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    #[inline]
    pub fn write_frame(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        self.write_part(frame, 0..frame.header().block_length_samples as usize)
    }

    /// Appends these samples of a frame, which has them.
    #[inline]
    pub(crate) fn write_part(&mut self, frame: &Frame<'_>, part: Range<usize>) -> Result<(), Error> {
        let header = frame.header();
        self.check(header.format, header.channel_count as usize)?;
        let channel_bytes = header.block_length_samples as usize * header.format.bytes();
        let payload = frame.payload();
        let begin_bytes = part.start * header.format.bytes();
        let samples = |channel: usize| &payload[channel * channel_bytes + begin_bytes..];
        let first_sample_index = header.first_sample_index.wrapping_add(part.start as u64);
        let clock = self.description.as_ref().and_then(|description| description.clock);
        let recorded_at = || made_at(clock, &header, part.start).or_else(now);
        self.append(first_sample_index, part.len(), samples, recorded_at)
    }

    /// Appends a block of a recording that is read, and when it was recorded where that is known.
    pub(crate) fn write_block(
        &mut self,
        first_sample_index: u64,
        block: &Block<'_>,
        recorded_at: Option<SystemTime>,
    ) -> Result<(), Error> {
        self.check(block.format(), block.channels())?;
        // The block has the channels that were checked.
        let samples = |channel: usize| block.channel_bytes(channel).unwrap_or_default();
        self.append(first_sample_index, block.len_samples(), samples, || recorded_at)
    }

    /// Says what the stream is from the next sample on. Another centre frequency, bandwidth, gain or meaning of a channel begins a
    /// segment there; names and notes are those that were said first.
    pub fn describe(&mut self, description: Option<Arc<Description>>) {
        let channels = 0..self.channels;
        let before = Tuning::of(self.description.as_deref(), channels.clone());
        if Tuning::of(description.as_deref(), channels).differs(&before) {
            self.next_sample_index = None;
        } else if let Some(description) = &description
            && self.next_sample_index.is_some()
        {
            self.tell(Event::Description(description.clone()));
        }
        self.description = description;
    }

    /// Labels a stretch of the stream that was written before, by the indexes that [`write`](Self::write) was given. What of
    /// it lies in a gap is left out.
    ///
    /// # Errors
    /// [`Error::Setting`] beyond a million labels.
    pub fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        label: &str,
    ) -> Result<(), Error> {
        let rest = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
        self.annotate_with(first_sample_index, length_samples, rest)
    }

    /// As [`annotate`](Self::annotate), with whatever an annotation says.
    pub(crate) fn annotate_with(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    ) -> Result<(), Error> {
        if self.annotations == ANNOTATIONS_MAX {
            return Err(too_many("number of annotations", self.annotations));
        }
        self.annotations += 1;
        self.tell(Event::Annotation { first_sample_index, length_samples, rest });
        Ok(())
    }

    /// Samples per channel so far.
    pub fn len_samples(&self) -> u64 {
        self.taken_samples
    }

    /// Hands what was buffered to the system: worth calling when a stream pauses.
    ///
    /// # Errors
    /// [`Error::Write`], as for [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.taken_samples == self.good_samples {
            self.publish();
            return Ok(());
        }
        for part in 0..self.parts.len() {
            let DataFile { path, file, buffer, .. } = &mut self.parts[part];
            if let Err(source) = file.write_all(buffer) {
                let path = path.clone();
                self.fall_back();
                return Err(Error::Write { path, source, good_samples: self.good_samples });
            }
        }
        self.parts.iter_mut().for_each(|part| part.buffer.clear());
        self.good_samples = self.taken_samples;
        self.publish();
        Ok(())
    }

    /// Writes what is left, waits until it is on the disk, and closes the recording: its metadata are complete from here on.
    ///
    /// # Errors
    /// [`Error::Write`] where the rest cannot be written (what was written before is closed all the same), or
    /// [`Error::File`] where the metadata cannot be: the recording can be read, and counts as not closed.
    pub fn finish(mut self) -> Result<SigmfSummary, Error> {
        let flushed = if self.has_ended { Ok(()) } else { self.flush() };
        let good_samples = self.good_samples;
        for DataFile { path, file, .. } in &self.parts {
            let failed = |source| Error::Write { path: path.clone(), source, good_samples };
            file.sync_all().map_err(failed)?;
        }
        self.tell(Event::Finish);
        let segments = self.metadata.take().map_or(Ok(0), MetadataWriter::join)?;
        flushed?;
        let files = std::mem::take(&mut self.files);
        Ok(SigmfSummary { len_samples: good_samples, segments, files })
    }

    #[inline]
    fn check(&self, format: SampleFormat, channels: usize) -> Result<(), Error> {
        if format != self.format {
            return Err(ChannelError::Format { asked: self.format, is: format }.into());
        }
        shape("channels of the block", channels, self.channels)
    }

    /// `samples(channel)` has the channel's samples of the block as a stream has them, and maybe more behind them.
    #[inline]
    fn append<'a>(
        &mut self,
        first_sample_index: u64,
        length: usize,
        samples: impl Fn(usize) -> &'a [u8],
        recorded_at: impl FnOnce() -> Option<SystemTime>,
    ) -> Result<(), Error> {
        if self.has_ended {
            return Err(self.ended());
        }
        if length == 0 {
            return Ok(());
        }
        if self.next_sample_index != Some(first_sample_index) {
            self.begin_segment(first_sample_index, recorded_at())?;
        }
        self.next_sample_index = Some(first_sample_index.wrapping_add(length as u64));
        let sample_bytes = self.format.bytes();
        let mut done = 0;
        while done < length {
            let room = self.parts[0].room();
            let count = room.min(length - done);
            let range = done * sample_bytes..(done + count) * sample_bytes;
            for part in &mut self.parts {
                part.push(count, |channel| &samples(channel)[range.clone()]);
            }
            self.taken_samples += count as u64;
            done += count;
            if count == room {
                self.flush()?;
            }
        }
        if self.metadata.as_ref().is_some_and(MetadataWriter::is_flush_due) {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn begin_segment(
        &mut self,
        first_sample_index: u64,
        recorded_at: Option<SystemTime>,
    ) -> Result<(), Error> {
        if self.segments == SEGMENTS_MAX {
            return Err(too_many("number of segments", self.segments));
        }
        self.segments += 1;
        let (position, description) = (self.taken_samples, self.description.clone());
        self.tell(Event::Segment(Captured { position, first_sample_index, recorded_at, description }));
        Ok(())
    }

    /// A write failed: all channels end where the last one succeeded for all.
    #[cold]
    fn fall_back(&mut self) {
        self.has_ended = true;
        self.taken_samples = self.good_samples;
        for part in &mut self.parts {
            part.buffer.clear();
            // Where even this fails, the reader takes what all files have.
            let _ = part.file.set_len(self.good_samples * part.frame_bytes() as u64);
        }
    }

    #[cold]
    fn ended(&self) -> Error {
        let source = io::Error::other("an earlier write failed");
        Error::Write { path: self.parts[0].path.clone(), source, good_samples: self.good_samples }
    }

    fn publish(&self) {
        if let Some(metadata) = &self.metadata {
            metadata.publish(self.good_samples);
        }
    }

    fn tell(&self, event: Event) {
        if let Some(metadata) = &self.metadata {
            metadata.tell(event);
        }
    }
}

impl Drop for SigmfWriter {
    fn drop(&mut self) {
        if !self.has_ended && self.metadata.is_some() {
            let _ = self.flush();
        }
        if let Some(metadata) = self.metadata.take() {
            let _ = metadata.join();
        }
    }
}

fn now() -> Option<SystemTime> {
    Some(SystemTime::now())
}

/// When a sample of a frame was made, by the producer's clock; `None` where that clock says nothing of UTC.
fn made_at(clock: Option<ClockReading>, header: &Header, sample: usize) -> Option<SystemTime> {
    let clock = clock.filter(|_| header.producer_ts_ns > 0)?;
    let since_ns = i128::from(header.producer_ts_ns) - i128::from(clock.producer_ts_ns);
    let rate_hz = header.sample_rate_hz;
    let in_frame_ns = if rate_hz > 0.0 { sample as f64 / rate_hz * 1e9 } else { 0.0 };
    let unix_ns = i128::from(clock.unix_time_ns) + since_ns + in_frame_ns as i128;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(unix_ns.try_into().ok()?))
}

#[inline]
fn shape(what: &'static str, got: usize, expected: usize) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::Shape { what, got: got as u64, expected: expected as u64 })
}

fn too_many(what: &'static str, got: u64) -> Error {
    Error::Setting { what, got: got.to_string(), must: "no more can be entered; begin another recording" }
}

/// 160 MB of memory, and a GB of metadata.
const SEGMENTS_MAX: u64 = 4 << 20;
const ANNOTATIONS_MAX: u64 = 1 << 20;

#[cfg(all(test, target_os = "linux"))]
impl SigmfWriter {
    /// Writes a data file elsewhere; the one before.
    pub(super) fn redirect(&mut self, part: usize, file: File) -> File {
        std::mem::replace(&mut self.parts[part].file, file)
    }
}
