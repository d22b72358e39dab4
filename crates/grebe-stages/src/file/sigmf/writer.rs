//! Writing: one file per channel, in large pieces, with metadata that are good at any moment.

#[cfg(all(test, target_os = "linux"))]
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grebe_frame::Frame;

use super::create::{BUFFER_BYTES, Channel, SigmfSettings, create};
use super::layout::Base;
use super::metadata::Captured;
use super::metadata_writer::{Event, MetadataWriter};
use crate::error::Error;
use crate::file::output::NameLock;

/// Records a stream as SigMF: one recording, or one per channel and a collection.
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
        let (channels, metadata, files) = create(base, settings)?;
        Ok(Self {
            _name: name,
            channels,
            next_sample_index: None,
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
    /// [`Error::Shape`] where the number of channels is another or they differ in length; [`Error::Write`]
    /// where the disk is full or fails: the recording ends before this call then, and [`finish`](Self::finish) closes it.
    pub fn write(&mut self, first_sample_index: u64, channels: &[&[i16]]) -> Result<(), Error> {
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
    pub fn write_frame(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        let header = frame.header();
        frame.channel::<i16>(0)?;
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
    /// [`Error::Setting`] beyond a million labels.
    pub fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        label: &str,
    ) -> Result<(), Error> {
        if self.annotations == ANNOTATIONS_MAX {
            return Err(too_many("number of annotations", self.annotations));
        }
        self.annotations += 1;
        self.tell(Event::Annotation { first_sample_index, length_samples, label: label.into() });
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
        for channel in 0..self.channels.len() {
            let Channel { path, file, buffer } = &mut self.channels[channel];
            if let Err(source) = file.write_all(buffer) {
                let path = path.clone();
                self.fall_back();
                return Err(Error::Write { path, source, good_samples: self.good_samples });
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
    /// [`Error::Write`] where the rest cannot be written (what was written before is closed all the same), or
    /// [`Error::File`] where the metadata cannot be: the recording can be read, and counts as not closed.
    pub fn finish(mut self) -> Result<SigmfSummary, Error> {
        let flushed = if self.has_ended { Ok(()) } else { self.flush() };
        let good_samples = self.good_samples;
        for Channel { path, file, .. } in &self.channels {
            let failed = |source| Error::Write { path: path.clone(), source, good_samples };
            file.sync_all().map_err(failed)?;
        }
        self.tell(Event::Finish);
        let segments = self.metadata.take().map_or(Ok(0), MetadataWriter::join)?;
        flushed?;
        let files = std::mem::take(&mut self.files);
        Ok(SigmfSummary { len_samples: good_samples, segments, files })
    }

    /// `copy(channel, from, count, buffer)` appends samples of the block to a buffer.
    #[inline]
    fn append(
        &mut self,
        first_sample_index: u64,
        length: usize,
        copy: impl Fn(usize, usize, usize, &mut Vec<u8>),
    ) -> Result<(), Error> {
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
        if self.metadata.as_ref().is_some_and(MetadataWriter::is_flush_due) {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn begin_segment(&mut self, first_sample_index: u64) -> Result<(), Error> {
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
    fn ended(&self) -> Error {
        let source = io::Error::other("an earlier write failed");
        Error::Write { path: self.channels[0].path.clone(), source, good_samples: self.good_samples }
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
    /// Writes a channel to another file; the one before.
    pub(super) fn redirect(&mut self, channel: usize, file: File) -> File {
        std::mem::replace(&mut self.channels[channel].file, file)
    }
}
