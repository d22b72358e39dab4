//! Writing: one file per channel, or one of many channels, in large pieces, with metadata that are good at any moment.

mod close;
mod label;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_frame::{ChannelError, Description, Frame, Header, Sample, SampleFormat};

use super::captured::Captured;
use super::create::{Begun, DataFile, SigmfSettings, prepare};
use super::described::Tuning;
use super::layout::Base;
use super::metadata_writer::{Event, MetadataWriter};
use super::stated_axis::StatedAxis;
use super::stripe_set::StripeSet;
use crate::disk::{Disk, DiskReport};
use crate::error::{Error, ProcessError};
use crate::output::NameLock;
use crate::sample_file::{Block, RecordedAt, made_at, now};
use crate::summary::RecordingSummaries;

pub(crate) use close::Closing;

/// Records a stream as SigMF: one recording, or one per channel and a collection.
///
/// ```
/// use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter};
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
/// Samples are copied once, into memory from which another thread writes blocks of up to 4 MiB. Slow samples
/// go to the disk after a quarter of a second, at the next [`write`](Self::write). A write waits only while
/// all of that memory waits for the disk. A killed recorder leaves a recording without the last samples,
/// marked "not closed", which [`SampleFile`](crate::SampleFile) reads. So does a writer that is dropped
/// without [`finish`](Self::finish).
#[derive(Debug)]
pub struct SigmfWriter {
    format: SampleFormat,
    channels: usize,
    disk: Disk,
    parts: Vec<DataFile>,
    /// Stream index after the newest sample.
    next_sample_index: Option<u64>,
    /// Description of the stream from there on.
    description: Option<Arc<Description>>,
    axis: StatedAxis,
    /// Samples per channel that were handed over, written or not.
    taken_samples: u64,
    segments: u64,
    annotations: u64,
    files: Vec<PathBuf>,
    /// None once its end was waited for.
    metadata: Option<MetadataWriter>,
    makes_summary: bool,
    /// `None` without summaries, and after their end.
    summaries: Option<RecordingSummaries>,
    /// Summaries given up in the parts before, of extremes and of spectra.
    lost_summaries: [u64; 2],
    /// Before its time, by a write that failed.
    has_ended: bool,
    /// For alternating recordings: samples of the whole in the others, up to this stripe.
    elsewhere_samples: Option<u64>,
    name: NameLock,
}

/// Result of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigmfSummary {
    /// Samples per channel.
    pub len_samples: u64,
    /// Runs without a gap and with one description.
    pub segments: u64,
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
    /// How the disk kept up.
    pub disk: DiskReport,
}

impl SigmfWriter {
    /// Creates the files. `path` is the recording's name with or without `.sigmf-meta`, `.sigmf-data`,
    /// `.sigmf-collection`.
    ///
    /// # Errors
    /// [`Error::Process`] for a setting out of range, [`Error::Busy`] while another recorder has the name.
    /// [`Error::Exists`] if a recording of that name exists and must not be overwritten, [`Error::File`] if a
    /// file cannot be created. Existing files then stay, and no new ones remain.
    pub fn create(path: &Path, settings: &SigmfSettings) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        let name = base.lock()?;
        Self::create_locked(&base, settings, name)
    }

    /// The same for a source other than a stream, which can wait for its summary.
    pub(super) fn create_waiting(path: &Path, settings: &SigmfSettings) -> Result<Self, Error> {
        let base = Base::to_record(path)?;
        let name = base.lock()?;
        Self::begin(&base, settings, name, false, None)
    }

    /// Creates the files of a recording whose name is taken already.
    pub(crate) fn create_locked(
        base: &Base,
        settings: &SigmfSettings,
        name: NameLock,
    ) -> Result<Self, Error> {
        Self::begin(base, settings, name, true, None)
    }

    /// The same for one of several alternating recordings.
    pub(crate) fn create_striped(
        base: &Base,
        settings: &SigmfSettings,
        name: NameLock,
        stripes: StripeSet,
    ) -> Result<Self, Error> {
        Self::begin(base, settings, name, true, Some(stripes))
    }

    fn begin(
        base: &Base,
        settings: &SigmfSettings,
        name: NameLock,
        is_live: bool,
        stripes: Option<StripeSet>,
    ) -> Result<Self, Error> {
        settings.check()?;
        let disk = Disk::start(settings.buffer_bytes, settings.data_files(), settings.write_method)
            .map_err(Error::file("create", &base.meta()))?;
        let prepared = prepare(base, settings, disk.is_direct())?.striped(stripes);
        let Begun { mut parts, metadata, files } = prepared.begin()?;
        let makes_summary = settings.summary && settings.data_files() == settings.channels;
        let summarize = || summaries(&mut parts, settings.format, &disk, &files[0], is_live);
        let summaries = makes_summary.then(summarize);
        Ok(Self {
            disk,
            name,
            format: settings.format,
            channels: settings.channels,
            parts,
            next_sample_index: None,
            description: None,
            axis: StatedAxis::default(),
            taken_samples: 0,
            segments: 0,
            annotations: 0,
            files,
            metadata: Some(metadata),
            makes_summary,
            summaries,
            lost_summaries: [0; 2],
            has_ended: false,
            elsewhere_samples: None,
        })
    }

    /// Appends samples of all channels. If `first_sample_index` does not continue the previous samples, a segment
    /// begins: a gap, or another stream if it is lower.
    ///
    /// # Errors
    /// [`Error::Process`] if the format, the number of channels or their lengths differ; [`Error::Write`] if the disk
    /// is full or fails: the recording then ends before this call, and [`finish`](Self::finish) closes it.
    pub fn write<T: Sample>(&mut self, first_sample_index: u64, channels: &[&[T]]) -> Result<(), Error> {
        self.write_samples(first_sample_index, channels, now)
    }

    /// As [`write`](Self::write), with sample times from [the description](Self::describe) and the frame's
    /// header, if these have them. Uses the header's first sample index, stamp and rate.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_made<T: Sample>(&mut self, header: &Header, channels: &[&[T]]) -> Result<(), Error> {
        let recorded_at = self.moment(header, header.first_sample_index);
        self.write_samples(header.first_sample_index, channels, || recorded_at)
    }

    /// As [`write`](Self::write), with the time of the first sample if it is known.
    pub(crate) fn write_recorded<T: Sample>(
        &mut self,
        first_sample_index: u64,
        channels: &[&[T]],
        recorded_at: Option<RecordedAt>,
    ) -> Result<(), Error> {
        self.write_samples(first_sample_index, channels, || recorded_at)
    }

    fn write_samples<T: Sample>(
        &mut self,
        first_sample_index: u64,
        channels: &[&[T]],
        recorded_at: impl FnOnce() -> Option<RecordedAt>,
    ) -> Result<(), Error> {
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
            return self.append(first_sample_index, length, |channel| &channels[channel], recorded_at);
        }
        let samples = |channel: usize| bytemuck::cast_slice(channels[channel]);
        self.append(first_sample_index, length, samples, recorded_at)
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
        let recorded_at = self.moment(&header, first_sample_index);
        self.append(first_sample_index, part.len(), samples, || recorded_at)
    }

    /// When a segment's first sample was made, where one has to begin with this sample.
    #[inline]
    fn moment(&mut self, header: &Header, first_sample_index: u64) -> Option<RecordedAt> {
        let mut begins = self.next_sample_index != Some(first_sample_index);
        let is_axis_due = self.axis.is_due();
        let recorded_at = if begins || is_axis_due {
            made_at(self.description.as_deref(), header, first_sample_index)
        } else {
            None
        };
        if is_axis_due {
            let axis = recorded_at.and_then(|at| at.axis);
            begins |= self.axis.is_outdated(first_sample_index, axis, header.sample_rate_hz);
        }
        if begins {
            self.next_sample_index = None;
        }
        recorded_at
    }

    /// Appends a block of a recording that is read, and when it was recorded where that is known.
    pub(crate) fn write_block(
        &mut self,
        first_sample_index: u64,
        block: &Block<'_>,
        recorded_at: Option<RecordedAt>,
    ) -> Result<(), Error> {
        self.check(block.format(), block.channels())?;
        // The block has the channels that were checked.
        let samples = |channel: usize| block.channel_bytes(channel).unwrap_or_default();
        self.append(first_sample_index, block.len_samples(), samples, || recorded_at)
    }

    /// Appends a part of samples that are separated by channel, as in a stream, with their time if known.
    pub(crate) fn write_bytes(
        &mut self,
        first_sample_index: u64,
        part: Range<usize>,
        channels: &[Vec<u8>],
        recorded_at: Option<RecordedAt>,
    ) -> Result<(), Error> {
        let begin_bytes = part.start * self.format.bytes();
        let samples = |channel: usize| &channels[channel][begin_bytes..];
        self.append(first_sample_index, part.len(), samples, || recorded_at)
    }

    /// A stripe begins with the next sample, which is this one of the whole: others have those before.
    pub(crate) fn begin_stripe(&mut self, start: u64) {
        self.elsewhere_samples = Some(start - self.taken_samples);
        self.next_sample_index = None;
    }

    /// Sets the final set of alternating recordings; `None` if only one exists.
    pub(crate) fn set_stripes(&self, stripes: Option<StripeSet>) {
        self.tell(Event::Stripes(stripes));
    }

    /// Whether writing this number of samples has to wait for the disk.
    #[inline]
    pub(crate) fn would_wait(&self, samples: usize) -> bool {
        let has_room = self.parts.iter().all(|part| part.room() >= samples);
        !has_room && self.disk.free_blocks() < self.parts.len()
    }

    /// Bytes that it holds, or that are on the way to the disk.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.disk.lent_bytes()
    }

    /// Bytes on the disk that its files have reserved and not filled.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.end.file().spare_bytes()).sum()
    }

    /// Bytes of one sample of each channel.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.format.bytes() * self.channels
    }

    /// Sets the description of the stream from the next sample on. Another centre frequency, bandwidth, gain
    /// or channel meaning begins a segment there; names and notes stay those of the first description.
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
        self.axis.hear();
    }

    /// Samples per channel so far.
    pub fn len_samples(&self) -> u64 {
        self.taken_samples
    }

    /// Whether its files are to bypass the page cache.
    pub(crate) fn is_past_cache(&self) -> bool {
        self.disk.is_direct()
    }

    /// How the disk keeps up.
    pub fn disk_report(&self) -> DiskReport {
        let [lost_summaries, lost_spectra] = self.lost();
        DiskReport { lost_summaries, lost_spectra, ..self.disk.report(self.parts[0].end.file()) }
    }

    /// Summaries given up so far.
    fn lost(&self) -> [u64; 2] {
        let now = self.summaries.as_ref().map_or([0; 2], RecordingSummaries::lost);
        std::array::from_fn(|kind| self.lost_summaries[kind] + now[kind])
    }

    #[inline]
    fn check(&self, format: SampleFormat, channels: usize) -> Result<(), Error> {
        if format != self.format {
            return Err(ChannelError::Format { asked: self.format, is: format }.into());
        }
        shape("channels of the block", channels, self.channels)
    }

    /// `samples(channel)` returns the channel's samples of the block in stream layout, possibly with more
    /// after them.
    #[inline]
    fn append<'a>(
        &mut self,
        first_sample_index: u64,
        length: usize,
        samples: impl Fn(usize) -> &'a [u8],
        recorded_at: impl FnOnce() -> Option<RecordedAt>,
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
            // One file may have been cut earlier than another, which had no memory just then.
            let room = self.parts.iter().map(DataFile::room).min().unwrap_or(0);
            if room == 0 {
                self.make_room()?;
                continue;
            }
            let count = room.min(length - done);
            let range = done * sample_bytes..(done + count) * sample_bytes;
            for part in &mut self.parts {
                part.push(count, |channel| &samples(channel)[range.clone()]);
            }
            self.taken_samples += count as u64;
            done += count;
        }
        self.cut_if_due()
    }

    /// Full blocks go to the disk; all files have as much room as the first then.
    #[cold]
    fn make_room(&mut self) -> Result<(), Error> {
        for part in 0..self.parts.len() {
            let made = self.parts[part].end.make_room(&mut self.disk);
            made.map_err(|source| self.fall_back(part, source))?;
        }
        Ok(())
    }

    #[cold]
    fn begin_segment(
        &mut self,
        first_sample_index: u64,
        recorded_at: Option<RecordedAt>,
    ) -> Result<(), Error> {
        if self.segments == SEGMENTS_MAX {
            return Err(too_many("number of segments", self.segments));
        }
        self.segments += 1;
        self.axis.begin(first_sample_index, recorded_at.and_then(|at| at.axis));
        let (position, description) = (self.taken_samples, self.description.clone());
        let stripe_start = self.elsewhere_samples.map(|elsewhere| elsewhere + position);
        self.tell(Event::Segment(Captured {
            position,
            first_sample_index,
            recorded_at,
            description,
            stripe_start,
        }));
        Ok(())
    }

    fn tell(&self, event: Event) {
        if let Some(metadata) = &self.metadata {
            metadata.tell(event);
        }
    }
}

/// Begins the summaries of these files, one channel each; a stream that `is_live` does not wait for them.
fn summaries(
    parts: &mut [DataFile],
    format: SampleFormat,
    disk: &Disk,
    path: &Path,
    is_live: bool,
) -> RecordingSummaries {
    let channels = parts.len();
    let blocks = [(); 2].map(|()| disk.tap(parts.iter_mut().map(|part| &mut part.end), !is_live));
    RecordingSummaries::start(path, format, channels, blocks, is_live)
}

#[inline]
fn shape(what: &'static str, got: usize, expected: usize) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(ProcessError::Shape { what, got: got as u64, expected: expected as u64 }.into())
}

fn too_many(what: &'static str, got: u64) -> Error {
    let must = "no more can be entered; begin another recording";
    ProcessError::Setting { what, got: got.to_string(), must }.into()
}

/// 160 MB of memory, and a GB of metadata.
const SEGMENTS_MAX: u64 = 4 << 20;
