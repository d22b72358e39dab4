//! Writing: one file a channel, in large pieces, with metadata that are good at any moment.

use std::fs;
#[cfg(all(test, target_os = "linux"))]
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grebe_frame::{Frame, MAX_CHANNELS};

use super::create::{BUFFER_BYTES, Channel, create};
use super::keeper::{Captured, Event, Keeper, Notebook, Summation};
use super::names::Base;
use crate::StagesError;

/// Records a stream as SigMF: one recording, or one a channel and a collection.
///
/// ```
/// use grebe_stages::{SampleFile, SigmfSettings, SigmfWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("two.sigmf-meta");
/// let settings = SigmfSettings { channels: 2, sample_rate_hz: 48_000.0, ..SigmfSettings::default() };
/// let mut writer = SigmfWriter::create(&path, &settings)?;
/// writer.write(0, &[&[1, 2, 3], &[-1, -2, -3]])?;
/// writer.write(10, &[&[4], &[-4]])?; // 7 samples are missing
/// assert_eq!(writer.finish()?.segments, 2);
///
/// let file = SampleFile::open(&path)?;
/// assert_eq!((file.channels(), file.len_samples()), (2, 4));
/// assert_eq!(file.segments()[1].first_sample_index, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Samples are written when 1 MiB a channel has come together, or a second has passed at the next [`write`](Self::write). A
/// recorder that is killed leaves a recording without the last of them, marked "not closed", which
/// [`SampleFile`](crate::SampleFile) reads; so does a writer that is dropped without [`finish`](Self::finish).
#[derive(Debug)]
pub struct SigmfWriter {
    channels: Vec<Channel>,
    /// Behind the newest sample, in the stream.
    next_sample_index: Option<u64>,
    /// Samples a channel that were handed over, written or not.
    taken_samples: u64,
    /// Of them those that the system took.
    good_samples: u64,
    segments: u64,
    annotations: u64,
    files: Vec<PathBuf>,
    /// None once its end was waited for.
    keeper: Option<Keeper>,
    /// Before its time, by a write that failed.
    has_ended: bool,
}

/// How to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfSettings {
    /// 1 to 8.
    pub channels: usize,
    /// Samples a second and channel, up to 10^12; 0 = unknown.
    pub sample_rate_hz: f64,
    /// Whether a recording of the same name is replaced.
    pub overwrite: bool,
    /// Whether the SHA-512 of the data is entered. Up to 100 MB/s it is computed while recording, on another thread that
    /// reads the data behind the writer (a tenth to a fifth of a core); beyond, when the recording is finished, with a
    /// thread a channel, which takes a second or two for each GB of a channel.
    pub checksum: bool,
    /// What a person should know of the recording.
    pub description: Option<String>,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigmfSummary {
    /// Samples a channel.
    pub len_samples: u64,
    /// Stretches without a gap.
    pub segments: u64,
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
}

impl SigmfWriter {
    /// Creates the files. `path` is the recording's name with or without `.sigmf-meta`, `.sigmf-data`,
    /// `.sigmf-collection`.
    ///
    /// # Errors
    /// [`StagesError::Setting`] for a setting out of range, [`StagesError::Exists`] where a recording of that name is
    /// there and must not be overwritten, [`StagesError::Create`] where a file cannot be created. Nothing is left behind, and
    /// what was there is as it was.
    pub fn create(path: &Path, settings: &SigmfSettings) -> Result<Self, StagesError> {
        let (channels, keeper, files) = create(path, settings)?;
        Ok(Self {
            channels,
            next_sample_index: None,
            taken_samples: 0,
            good_samples: 0,
            segments: 0,
            annotations: 0,
            files,
            keeper: Some(keeper),
            has_ended: false,
        })
    }

    /// Appends samples of all channels. Where `first_sample_index` is not the index behind the samples before, a segment
    /// begins: a gap, or another stream where it is lower.
    ///
    /// # Errors
    /// [`StagesError::Shape`] where the number of channels is another or they differ in length; [`StagesError::Write`]
    /// where the disk is full or fails: the recording ends before this call then, and [`finish`](Self::finish) closes it.
    pub fn write(&mut self, first_sample_index: u64, channels: &[&[i16]]) -> Result<(), StagesError> {
        shape("channels of the block", channels.len(), self.channels.len())?;
        let length = channels[0].len();
        for channel in channels {
            shape("samples of a channel", channel.len(), length)?;
        }
        self.append(first_sample_index, length, |channel, from, count, buffer| {
            push_samples(&channels[channel][from..from + count], buffer);
        })
    }

    /// Appends a frame, as [`write`](Self::write) does, without a detour by samples.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    #[inline]
    pub fn write_frame(&mut self, frame: &Frame<'_>) -> Result<(), StagesError> {
        let header = frame.header();
        shape("channels of the frame", header.channel_count as usize, self.channels.len())?;
        let length = header.block_length_samples as usize;
        let payload = frame.payload();
        self.append(header.first_sample_index, length, |channel, from, count, buffer| {
            let from = (channel * length + from) * 2;
            buffer.extend_from_slice(&payload[from..from + count * 2]);
        })
    }

    /// Labels a stretch of the stream that was written before, by the indexes that [`write`](Self::write) was given. What of
    /// it lies in a gap is left out.
    ///
    /// # Errors
    /// [`StagesError::Setting`] beyond a million labels.
    pub fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        label: &str,
    ) -> Result<(), StagesError> {
        if self.annotations == ANNOTATIONS_MAX {
            return Err(too_many("number of annotations", self.annotations));
        }
        self.annotations += 1;
        self.tell(Event::Annotation { first_sample_index, length_samples, label: label.into() });
        Ok(())
    }

    /// Samples a channel so far.
    pub fn len_samples(&self) -> u64 {
        self.taken_samples
    }

    /// Hands what was buffered to the system: worth calling when a stream pauses.
    ///
    /// # Errors
    /// [`StagesError::Write`], as for [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), StagesError> {
        if self.taken_samples == self.good_samples {
            self.publish();
            return Ok(());
        }
        for channel in 0..self.channels.len() {
            let Channel { path, file, buffer } = &mut self.channels[channel];
            if let Err(source) = file.write_all(buffer) {
                let path = path.clone();
                self.fall_back();
                return Err(StagesError::Write { path, source, good_samples: self.good_samples });
            }
        }
        self.channels.iter_mut().for_each(|channel| channel.buffer.clear());
        self.good_samples = self.taken_samples;
        self.publish();
        Ok(())
    }

    /// Writes what is left, waits until it is on the disk, and closes the recording: its metadata are complete from here on.
    ///
    /// # Errors
    /// [`StagesError::Write`] where the rest cannot be written (what was written before is closed all the same), or
    /// [`StagesError::Create`] where the metadata cannot be: the recording can be read, and counts as not closed.
    pub fn finish(mut self) -> Result<SigmfSummary, StagesError> {
        let flushed = if self.has_ended { Ok(()) } else { self.flush() };
        let good_samples = self.good_samples;
        for Channel { path, file, .. } in &self.channels {
            let failed = |source| StagesError::Write { path: path.clone(), source, good_samples };
            file.sync_all().map_err(failed)?;
        }
        self.tell(Event::Finish);
        let segments = self.keeper.take().map_or(Ok(0), Keeper::join)?;
        flushed?;
        let files = std::mem::take(&mut self.files);
        Ok(SigmfSummary { len_samples: good_samples, segments, files })
    }

    /// Removes the recording: where nothing came that is worth keeping.
    ///
    /// # Errors
    /// [`StagesError::Create`] where a file cannot be removed.
    pub fn discard(mut self) -> Result<(), StagesError> {
        self.channels.iter_mut().for_each(|channel| channel.buffer.clear());
        self.taken_samples = self.good_samples;
        if let Some(keeper) = self.keeper.take() {
            // Whatever it failed at is removed now.
            let _ = keeper.join();
        }
        for path in std::mem::take(&mut self.files) {
            fs::remove_file(&path).map_err(|source| StagesError::Create { path, source })?;
        }
        Ok(())
    }

    /// `copy(channel, from, count, buffer)` appends samples of the block to a buffer.
    #[inline]
    fn append(
        &mut self,
        first_sample_index: u64,
        length: usize,
        copy: impl Fn(usize, usize, usize, &mut Vec<u8>),
    ) -> Result<(), StagesError> {
        if self.has_ended {
            return Err(self.ended());
        }
        if length == 0 {
            return Ok(());
        }
        if self.next_sample_index != Some(first_sample_index) {
            self.begin_segment(first_sample_index)?;
        }
        self.next_sample_index = Some(first_sample_index.wrapping_add(length as u64));
        let mut done = 0;
        while done < length {
            let room = (BUFFER_BYTES - self.channels[0].buffer.len()) / 2;
            let count = room.min(length - done);
            for (number, channel) in self.channels.iter_mut().enumerate() {
                copy(number, done, count, &mut channel.buffer);
            }
            self.taken_samples += count as u64;
            done += count;
            if count == room {
                self.flush()?;
            }
        }
        if self.keeper.as_ref().is_some_and(Keeper::is_flush_due) {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn begin_segment(&mut self, first_sample_index: u64) -> Result<(), StagesError> {
        if self.segments == SEGMENTS_MAX {
            return Err(too_many("number of segments", self.segments));
        }
        self.segments += 1;
        let (position, received_at) = (self.taken_samples, SystemTime::now());
        self.tell(Event::Segment(Captured { position, first_sample_index, received_at }));
        Ok(())
    }

    /// A write failed: all channels end where the last one succeeded for all.
    #[cold]
    fn fall_back(&mut self) {
        self.has_ended = true;
        self.taken_samples = self.good_samples;
        for channel in &mut self.channels {
            channel.buffer.clear();
            // Where even this fails, the reader takes what all channels have.
            let _ = channel.file.set_len(self.good_samples * 2);
        }
    }

    #[cold]
    fn ended(&self) -> StagesError {
        let source = io::Error::other("an earlier write failed");
        StagesError::Write { path: self.channels[0].path.clone(), source, good_samples: self.good_samples }
    }

    fn publish(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.publish(self.good_samples);
        }
    }

    fn tell(&self, event: Event) {
        if let Some(keeper) = &self.keeper {
            keeper.tell(event);
        }
    }
}

impl Drop for SigmfWriter {
    fn drop(&mut self) {
        if !self.has_ended && self.keeper.is_some() {
            let _ = self.flush();
        }
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl SigmfSettings {
    pub(super) fn check(&self) -> Result<(), StagesError> {
        let setting = |what, got: String, must| Err(StagesError::Setting { what, got, must });
        if self.channels == 0 || self.channels > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.to_string(), "give 1 to 8");
        }
        if !(0.0..=RATE_HZ_MAX).contains(&self.sample_rate_hz) {
            return setting("sample rate", self.sample_rate_hz.to_string(), "give 0 (unknown) to 10^12 Hz");
        }
        Ok(())
    }

    pub(super) fn notebook(&self, base: &Base) -> Notebook {
        let recordings = if self.channels == 1 {
            vec![base.clone()]
        } else {
            (0..self.channels).map(|channel| base.channel(channel)).collect()
        };
        Notebook {
            recordings,
            collection: (self.channels > 1).then(|| base.clone()),
            sample_rate_hz: self.sample_rate_hz,
            description: self.description.clone(),
            segments: Vec::new(),
            annotations: Vec::new(),
        }
    }

    pub(super) fn summation(&self) -> Summation {
        let bytes_a_second = self.sample_rate_hz * self.channels as f64 * 2.0;
        match (self.checksum, bytes_a_second <= SUM_WHILE_RECORDING_BYTES_A_SECOND) {
            (false, _) => Summation::Never,
            (true, true) => Summation::WhileRecording,
            (true, false) => Summation::Afterwards,
        }
    }
}

impl Default for SigmfSettings {
    /// One channel of unknown rate, with a checksum; nothing is overwritten.
    fn default() -> Self {
        Self { channels: 1, sample_rate_hz: 0.0, overwrite: false, checksum: true, description: None }
    }
}

/// Little-endian on every host.
#[inline]
fn push_samples(samples: &[i16], buffer: &mut Vec<u8>) {
    if cfg!(target_endian = "little") {
        buffer.extend_from_slice(bytemuck::cast_slice(samples));
    } else {
        buffer.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    }
}

#[inline]
fn shape(what: &'static str, got: usize, expected: usize) -> Result<(), StagesError> {
    if got == expected {
        return Ok(());
    }
    Err(StagesError::Shape { what, got: got as u64, expected: expected as u64 })
}

fn too_many(what: &'static str, got: u64) -> StagesError {
    StagesError::Setting {
        what,
        got: got.to_string(),
        must: "no more can be entered; begin another recording",
    }
}

/// 160 MB of memory, and a GB of metadata.
const SEGMENTS_MAX: u64 = 4 << 20;
const ANNOTATIONS_MAX: u64 = 1 << 20;
const SUM_WHILE_RECORDING_BYTES_A_SECOND: f64 = 100e6;
/// What SigMF allows.
const RATE_HZ_MAX: f64 = 1e12;

#[cfg(all(test, target_os = "linux"))]
impl SigmfWriter {
    /// Writes a channel to another file; the one before.
    pub(super) fn redirect(&mut self, channel: usize, file: File) -> File {
        std::mem::replace(&mut self.channels[channel].file, file)
    }
}
