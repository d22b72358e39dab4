//! Reading recordings of any kind through one window of bounded size, however long they are.

mod annotation;
mod axis;
mod block;
mod convert;
mod converted;
mod drift;
mod identity;
mod piece;
mod recorded_at;
mod side_by_side;
mod stretch;
mod striped;
mod timeline;
mod window;

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grebe_frame::{AxisTime, Description, SampleFormat};

pub(crate) use self::axis::common_clock;

use self::converted::Converted;
use self::window::Window;
use crate::encoding::Encoding;
use crate::error::{Error, ProcessError};
use crate::raw::RawFile;

pub use self::annotation::{Annotation, AnnotationsEdited};
pub use self::block::Block;
pub(crate) use self::drift::{Run, runs_by};
pub(crate) use self::identity::file_identity;
pub(crate) use self::piece::Piece;
pub(crate) use self::recorded_at::{RecordedAt, made_at, now};
pub(crate) use self::side_by_side::{pieces_by_time, stepped_back};
pub(crate) use self::stretch::begins_beyond_the_end;
pub(crate) use self::striped::{STREAM_SAMPLES, StripeMember};
pub use self::timeline::Alignment;
pub(crate) use self::timeline::{Timeline, samples_in};

/// A recording to read from: SigMF (one recording, or a collection of one per channel) or WAV.
///
/// ```no_run
/// use grebe_recording::SampleFile;
///
/// let mut file = SampleFile::open("examples/data/ecg.sigmf-meta")?;
/// for segment in 0..file.segments().len() {
///     let segment = file.segments()[segment];
///     let length = segment.length_samples.min(1_000) as usize;
///     let block = file.block(segment.position, length)?;
///     println!("{} samples from stream index {}", block.channel::<i16>(0)?.len(), segment.first_sample_index);
/// }
/// # Ok::<(), grebe_recording::Error>(())
/// ```
#[derive(Debug)]
pub struct SampleFile {
    sources: Vec<RawFile>,
    format: SampleFormat,
    sample_rate_hz: f64,
    channels: usize,
    len_samples: u64,
    segments: Vec<Segment>,
    /// Descriptions by their first position in the file.
    descriptions: Vec<(u64, Arc<Description>)>,
    annotations: Vec<Annotation>,
    notes: Vec<String>,
    is_whole: bool,
    is_being_recorded: bool,
    /// Samples of the file before the first.
    skipped_samples: u64,
    /// How samples are read that are of another format in the file.
    converted: Option<Converted>,
    /// End of the range to read in order.
    expected_end: u64,
    window: Window,
}

/// Samples that follow each other without a gap in the stream that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its begin in the file, in samples per channel.
    pub position: u64,
    /// How long it is, in samples per channel; never 0.
    pub length_samples: u64,
    /// The index of its first sample in the stream that was recorded. A jump is a gap, a step back another stream.
    pub first_sample_index: u64,
    /// When its first sample was made or received, where the file says so.
    pub recorded_at: Option<SystemTime>,
    /// How far that may be off, where the file says so.
    pub recorded_error_ns: Option<u64>,
    /// The same by the monotonic clock of a host, if the file states it.
    pub recorded_axis: Option<AxisTime>,
}

/// Samples of a stream that are missing in its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Position in the file: samples are missing before this sample per channel.
    pub position: u64,
    /// The index of the first of them in the stream.
    pub first_sample_index: u64,
    /// How many, per channel.
    pub length_samples: u64,
}

/// Time of a stream without samples, after a restart of its sender, where sample indices are no help.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockGap {
    /// Position in the file: samples are missing before this sample per channel.
    pub position: u64,
    /// About how much of the signal is missing, by the times in the file.
    pub seconds: f64,
}

impl SampleFile {
    /// A file whose parts were checked: there is a source, every one is of the same format and has `len_samples`, and
    /// the segments cover them all.
    pub(crate) fn new(
        sources: Vec<RawFile>,
        sample_rate_hz: f64,
        len_samples: u64,
        segments: Vec<Segment>,
        notes: Vec<String>,
    ) -> Self {
        let channels = sources.iter().map(RawFile::channels).sum();
        let format = sources.first().map_or(SampleFormat::I16, |source| source.encoding().format);
        Self {
            sources,
            format,
            sample_rate_hz,
            channels,
            len_samples,
            segments,
            descriptions: Vec::new(),
            annotations: Vec::new(),
            notes,
            is_whole: true,
            is_being_recorded: false,
            skipped_samples: 0,
            converted: None,
            expected_end: u64::MAX,
            window: Window::new(format.bytes(), channels, len_samples),
        }
    }

    pub(crate) fn described(self, descriptions: Vec<(u64, Arc<Description>)>) -> Self {
        Self { descriptions, ..self }
    }

    pub(crate) fn annotated(self, annotations: Vec<Annotation>) -> Self {
        Self { annotations, ..self }
    }

    /// With annotations from elsewhere, and notices about them.
    pub(crate) fn annotated_also(mut self, annotations: Vec<Annotation>, notes: Vec<String>) -> Self {
        self.annotations.extend(annotations);
        self.annotations.sort_by_key(|annotation| annotation.position);
        self.notes.extend(notes);
        self
    }

    /// Sets whether the recording is complete.
    pub(crate) fn whole(self, is_whole: bool) -> Self {
        Self { is_whole, ..self }
    }

    /// Sets whether its writer still runs.
    pub(crate) fn being_recorded(self, is_being_recorded: bool) -> Self {
        Self { is_being_recorded, ..self }
    }

    /// As [`whole`](Self::whole), where something else may be missing as well.
    pub(crate) fn all_there(self, all_there: bool) -> Self {
        Self { is_whole: self.is_whole && all_there, ..self }
    }

    /// Number of files of its channels, times the number of alternating recordings.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Description of the samples from `position` on: names, units, scale, frequency. A later position may
    /// have another description.
    pub fn description(&self, position: u64) -> Option<&Arc<Description>> {
        let number = self.description_number(position)?;
        Some(&self.descriptions[number].1)
    }

    /// Index of that description.
    pub(crate) fn description_number(&self, position: u64) -> Option<usize> {
        self.descriptions.partition_point(|&(from, _)| from <= position).checked_sub(1)
    }

    /// How many there are.
    pub(crate) fn description_count(&self) -> usize {
        self.descriptions.len()
    }

    /// The one of this number.
    pub(crate) fn description_of(&self, number: usize) -> Option<&Arc<Description>> {
        Some(&self.descriptions.get(number)?.1)
    }

    /// From where on one of them holds.
    pub(crate) fn description_begin(&self, number: usize) -> Option<u64> {
        Some(self.descriptions.get(number)?.0)
    }

    /// Annotations, in the file's order.
    pub fn annotations(&self) -> &[Annotation] {
        &self.annotations
    }

    /// Sample format, the same for all channels.
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Samples per second and channel; `None` if the file does not state it.
    pub fn rate_hz(&self) -> Option<f64> {
        Some(self.sample_rate_hz).filter(|&rate_hz| rate_hz > 0.0)
    }

    /// Channels, 1 to 255.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Samples per channel.
    pub fn len_samples(&self) -> u64 {
        self.len_samples
    }

    /// The stretches without a gap, in the order of the file, which they cover. There is at least one.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Gaps in the stream, in the file's order.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.segments.windows(2).filter_map(|pair| {
            let end = pair[0].first_sample_index + pair[0].length_samples;
            let missing = pair[1].first_sample_index.checked_sub(end).filter(|&missing| missing > 0);
            missing.map(|length_samples| Gap {
                position: pair[1].position,
                first_sample_index: end,
                length_samples,
            })
        })
    }

    /// Where a sender began again and samples are missing by the clock, in the file's order.
    pub fn clock_gaps(&self) -> impl Iterator<Item = ClockGap> + '_ {
        self.segments.windows(2).filter(Self::steps_back).filter_map(|pair| {
            let [before, next] = [pair[0], pair[1]];
            let at = |time, error_ns| RecordedAt { time, error_ns, axis: None };
            let lasted_s = before.length_samples as f64 / self.rate_hz()?;
            let time = before.recorded_at?.checked_add(Duration::try_from_secs_f64(lasted_s).ok()?)?;
            let end = at(time, before.recorded_error_ns);
            let seconds = end.missing_until(&at(next.recorded_at?, next.recorded_error_ns), lasted_s)?;
            Some(ClockGap { position: next.position, seconds })
        })
    }

    /// Whether another stream begins with the second of two segments.
    fn steps_back(pair: &&[Segment]) -> bool {
        pair[1].first_sample_index < pair[0].first_sample_index + pair[0].length_samples
    }

    /// Number of streams recorded in turn: another begins where an index steps back.
    pub fn stream_count(&self) -> usize {
        1 + self.segments.windows(2).filter(Self::steps_back).count()
    }

    /// The segment of a sample in the file; the last one after its end.
    pub fn segment_at(&self, position: u64) -> &Segment {
        let behind = self.segments.partition_point(|segment| segment.position <= position);
        &self.segments[behind.saturating_sub(1)]
    }

    /// When a sample of the file was made or received, where the file says so of its segment.
    pub fn time_at(&self, position: u64) -> Option<SystemTime> {
        let segment = self.segment_at(position);
        let recorded_at = segment.recorded_at?;
        let samples = position.saturating_sub(segment.position);
        if samples == 0 {
            return Some(recorded_at);
        }
        let seconds = samples as f64 / self.sample_rate_hz;
        recorded_at.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
    }

    /// Samples of the file before the first one of this range.
    pub fn skipped_samples(&self) -> u64 {
        self.skipped_samples
    }

    /// Name of the file alone: its first file.
    pub(crate) fn name(&self) -> &Path {
        self.sources.first().map_or(Path::new(""), RawFile::path)
    }

    /// The files that hold its samples.
    pub fn data_files(&self) -> impl Iterator<Item = &Path> + '_ {
        self.sources.iter().flat_map(RawFile::paths)
    }

    /// Files and byte ranges that contain these samples of all channels. Empty for a recording that
    /// alternates between disks, or a part of one.
    pub fn bytes_of(&self, samples: Range<u64>) -> impl Iterator<Item = (&Path, Range<u64>)> + '_ {
        self.sources.iter().filter_map(move |source| Some((source.path(), source.bytes_of(&samples)?)))
    }

    /// Whether the recording is complete: not if a file is truncated, ends within a sample, or its recorder was
    /// killed or still runs. A note states which.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether its recorder was still at it when it was opened.
    pub fn is_being_recorded(&self) -> bool {
        self.is_being_recorded
    }

    /// Notices about the reading, such as a recorder that was cut off. One line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Announces the samples to be read in order, and whether repeatedly: read-ahead then fetches only these.
    pub(crate) fn expect(&mut self, samples: Range<u64>, repeats: bool) {
        let beside = self.sources.len() - 1;
        self.expected_end = samples.end;
        self.sources.iter_mut().for_each(|source| source.expect(samples.clone(), repeats, beside));
    }

    /// The samples at `position .. position + length` of all channels.
    ///
    /// Cheap where the samples are in the window (1 MiB over all channels), which moves forward as needed; a longer
    /// block makes the window grow to hold it.
    ///
    /// # Errors
    /// [`Error::Process`] beyond the file's end, [`Error::File`] where the file cannot be read (any more).
    #[inline]
    pub fn block(&mut self, position: u64, length: usize) -> Result<Block<'_>, Error> {
        if !self.window.holds(position, length) {
            self.move_window(position, length)?;
        }
        let window = &self.window;
        let first = (position - window.start) as usize;
        Ok(Block {
            bytes: bytemuck::cast_slice(&window.words),
            format: self.format,
            channels: self.channels,
            stride_bytes: window.stride_bytes,
            first,
            length,
        })
    }

    /// Reads the samples at `position .. position + length` of all channels without the window, for random
    /// access: the bytes of each channel in the layout of a frame, one channel after the other.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let left = self.len_samples.saturating_sub(position);
        if length as u64 > left {
            let what = "samples requested beyond the end of the file";
            return Err(ProcessError::Shape { what, got: length as u64, expected: left }.into());
        }
        let stride_bytes = length * self.format.bytes();
        out.resize(stride_bytes * self.channels, 0);
        if self.converted.is_some() {
            let block = self.block(position, length)?;
            for (channel, out) in out.chunks_exact_mut(stride_bytes.max(1)).enumerate() {
                out.copy_from_slice(block.channel_bytes(channel)?);
            }
            return Ok(());
        }
        let mut rest = &mut out[..];
        for source in &mut self.sources {
            let (own, others) = rest.split_at_mut(source.channels() * stride_bytes);
            source.read(position, length, stride_bytes, own)?;
            rest = others;
        }
        Ok(())
    }

    /// Appends the bytes of these samples to other files, one per file of this recording.
    ///
    /// # Errors
    /// [`Error::Content`] if the layout differs from a recorder's; [`Error::File`].
    pub(crate) fn copy_to(&self, samples: Range<u64>, outs: &[File], to: &Path) -> Result<(), Error> {
        for (source, out) in self.sources.iter().zip(outs) {
            if source.encoding() != Encoding::of(self.format) {
                let what = "was not written by a recorder of this program".to_owned();
                return Err(Error::Content { path: source.path().into(), what });
            }
            source.copy_to(samples.clone(), out).map_err(Error::file("write", to))?;
        }
        Ok(())
    }

    /// Bytes of all files that it reads from, and when the youngest of them was changed.
    pub(crate) fn data_size(&self) -> (u64, Option<SystemTime>) {
        let sizes = self.sources.iter().map(RawFile::size);
        sizes.fold((0, None), |(bytes, modified), size| (bytes + size.0, modified.max(size.1)))
    }

    #[cold]
    fn move_window(&mut self, position: u64, length: usize) -> Result<(), Error> {
        let left = self.len_samples.saturating_sub(position);
        if length as u64 > left {
            let what = "samples requested beyond the end of the file";
            return Err(ProcessError::Shape { what, got: length as u64, expected: left }.into());
        }
        let window = &mut self.window;
        window.make_room(self.format.bytes(), self.channels, length);
        let wanted = self.expected_end.saturating_sub(position).max(length as u64);
        let length = (window.capacity as u64).min(left).min(wanted) as usize;
        // The window is empty until all of it is read.
        window.length = 0;
        let sources = &mut self.sources;
        let read = |mut rest: &mut [u8], stride_bytes: usize| {
            for source in sources {
                let (own, others) = rest.split_at_mut(source.channels() * stride_bytes);
                source.read(position, length, stride_bytes, own)?;
                rest = others;
            }
            Ok(())
        };
        match &mut self.converted {
            None => read(bytemuck::cast_slice_mut(&mut window.words), window.stride_bytes)?,
            Some(converted) => converted.fill(window, self.format, self.channels, length, read)?,
        }
        (window.start, window.length) = (position, length);
        Ok(())
    }
}

impl Segment {
    /// One segment for a whole file without sample times.
    pub(crate) fn whole(length_samples: u64) -> Self {
        Self {
            position: 0,
            length_samples,
            first_sample_index: 0,
            recorded_at: None,
            recorded_error_ns: None,
            recorded_axis: None,
        }
    }

    /// Its end in the file.
    pub(crate) fn end(&self) -> u64 {
        self.position + self.length_samples
    }

    /// When its first sample was made, where the file says so.
    pub(crate) fn recorded(&self) -> Option<RecordedAt> {
        let (error_ns, axis) = (self.recorded_error_ns, self.recorded_axis);
        Some(RecordedAt { time: self.recorded_at?, error_ns, axis })
    }
}
