//! Reading recordings of any kind through one window of bounded size, however long they are.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use grebe_frame::{ChannelError, Description, Sample, SampleFormat};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::file::raw::RawFile;

/// A recording to read from: SigMF (one recording, or a collection of one per channel) or WAV.
///
/// ```no_run
/// use grebe_stages::SampleFile;
///
/// let mut file = SampleFile::open("examples/data/ecg.sigmf-meta".as_ref())?;
/// for segment in 0..file.segments().len() {
///     let segment = file.segments()[segment];
///     let length = segment.length_samples.min(1_000) as usize;
///     let block = file.block(segment.position, length)?;
///     println!("{} samples from stream index {}", block.channel::<i16>(0)?.len(), segment.first_sample_index);
/// }
/// # Ok::<(), grebe_stages::Error>(())
/// ```
#[derive(Debug)]
pub struct SampleFile {
    sources: Vec<RawFile>,
    format: SampleFormat,
    sample_rate_hz: f64,
    channels: usize,
    len_samples: u64,
    segments: Vec<Segment>,
    /// Where in the file something else holds, and what.
    descriptions: Vec<(u64, Arc<Description>)>,
    annotations: Vec<Annotation>,
    notes: Vec<String>,
    window: Window,
}

/// A label of a stretch of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Where it begins in the file, in samples per channel.
    pub position: u64,
    /// How long it is; 0: a point.
    pub length_samples: u64,
    /// What the file says of it, in SigMF's words: `core:label`, `core:comment`, `core:freq_lower_edge` and others.
    pub fields: Map<String, Value>,
}

/// Samples that follow each other without a gap in the stream that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins in the file, in samples per channel.
    pub position: u64,
    /// How long it is, in samples per channel; never 0.
    pub length_samples: u64,
    /// The index of its first sample in the stream that was recorded. A jump is a gap, a step back another stream.
    pub first_sample_index: u64,
    /// When its first sample was received, where the file says so.
    pub recorded_at: Option<SystemTime>,
}

/// Samples of all channels, lent until the next block is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    bytes: &'a [u8],
    format: SampleFormat,
    channels: usize,
    stride_bytes: usize,
    first: usize,
    length: usize,
}

impl SampleFile {
    /// A file whose parts were checked: there is a source, every one is of the same format and has `len_samples`, and the segments
    /// cover them all.
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
            window: Window::new(format.bytes(), channels, len_samples),
        }
    }

    pub(crate) fn described(self, descriptions: Vec<(u64, Arc<Description>)>) -> Self {
        Self { descriptions, ..self }
    }

    pub(crate) fn annotated(self, annotations: Vec<Annotation>) -> Self {
        Self { annotations, ..self }
    }

    /// What the file says of its samples from `position` on: names, units, scale, frequency. Another description may hold further
    /// behind.
    pub fn description(&self, position: u64) -> Option<&Arc<Description>> {
        let number = self.description_number(position)?;
        Some(&self.descriptions[number].1)
    }

    /// Which of its descriptions that is.
    pub(crate) fn description_number(&self, position: u64) -> Option<usize> {
        self.descriptions.partition_point(|&(from, _)| from <= position).checked_sub(1)
    }

    /// From where on one of them holds.
    pub(crate) fn description_begin(&self, number: usize) -> Option<u64> {
        Some(self.descriptions.get(number)?.0)
    }

    /// What the file labels, in its order.
    pub fn annotations(&self) -> &[Annotation] {
        &self.annotations
    }

    /// What its samples are; the same for all channels.
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Samples per second and channel; 0 = the file does not say.
    pub fn sample_rate_hz(&self) -> f64 {
        self.sample_rate_hz
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

    /// What a person should know of how the file was read: a recorder that was cut off. One line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The samples at `position .. position + length` of all channels.
    ///
    /// Cheap where the samples are in the window (1 MiB over all channels), which moves forward as needed; a longer
    /// block makes the window grow to hold it.
    ///
    /// # Errors
    /// [`Error::Shape`] beyond the file's end, [`Error::File`] where the file cannot be read (any more).
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

    #[cold]
    fn move_window(&mut self, position: u64, length: usize) -> Result<(), Error> {
        let left = self.len_samples.saturating_sub(position);
        if length as u64 > left {
            let what = "samples asked for behind the end of the file";
            return Err(Error::Shape { what, got: length as u64, expected: left });
        }
        let window = &mut self.window;
        window.make_room(self.format.bytes(), self.channels, length);
        let length = (window.capacity as u64).min(left) as usize;
        // Nothing is held until all of it is read.
        window.length = 0;
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut window.words);
        for source in &mut self.sources {
            let (own, others) = rest.split_at_mut(source.channels() * window.stride_bytes);
            source.read(position, length, window.stride_bytes, own)?;
            rest = others;
        }
        (window.start, window.length) = (position, length);
        Ok(())
    }
}

impl<'a> Block<'a> {
    pub(crate) fn format(&self) -> SampleFormat {
        self.format
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    pub(crate) fn len_samples(&self) -> usize {
        self.length
    }

    /// The samples of one channel, from 0. On a big-endian host they are a copy.
    ///
    /// # Errors
    /// They are of another format than `T`'s, or there is no such channel.
    #[inline]
    pub fn channel<T: Sample>(&self, channel: usize) -> Result<Cow<'a, [T]>, ChannelError> {
        if T::FORMAT != self.format {
            return Err(ChannelError::Format { asked: T::FORMAT, is: self.format });
        }
        let bytes = self.channel_bytes(channel)?;
        if cfg!(target_endian = "little")
            && let Ok(samples) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Cow::Borrowed(samples));
        }
        let mut samples = vec![T::default(); self.length];
        let copy = bytemuck::cast_slice_mut(&mut samples);
        copy.copy_from_slice(bytes);
        T::FORMAT.swap_to_host(copy);
        Ok(Cow::Owned(samples))
    }

    /// The bytes of one channel, from 0, as a frame has them, whatever their format.
    ///
    /// # Errors
    /// There is no such channel.
    #[inline]
    pub fn channel_bytes(&self, channel: usize) -> Result<&'a [u8], ChannelError> {
        if channel >= self.channels {
            return Err(ChannelError::Channel { asked: channel, channels: self.channels });
        }
        let sample_bytes = self.format.bytes();
        let at = channel * self.stride_bytes + self.first * sample_bytes;
        Ok(&self.bytes[at..at + self.length * sample_bytes])
    }
}

/// A stretch of all channels in memory, channel-major.
#[derive(Debug)]
struct Window {
    /// Samples as a stream has them; each channel begins at a word, so that every format is aligned.
    words: Vec<u64>,
    stride_bytes: usize,
    /// Samples per channel that there is room for.
    capacity: usize,
    start: u64,
    length: usize,
}

impl Window {
    fn new(sample_bytes: usize, channels: usize, len_samples: u64) -> Self {
        let capacity = (WINDOW_BYTES / (sample_bytes * channels)) as u64;
        let mut window = Self { words: Vec::new(), stride_bytes: 0, capacity: 0, start: 0, length: 0 };
        window.make_room(sample_bytes, channels, capacity.min(len_samples) as usize);
        window
    }

    #[inline]
    fn holds(&self, position: u64, length: usize) -> bool {
        position >= self.start
            && position - self.start <= self.length as u64
            && length as u64 <= self.length as u64 - (position - self.start)
    }

    fn make_room(&mut self, sample_bytes: usize, channels: usize, length: usize) {
        if length > self.capacity {
            let words = (length * sample_bytes).div_ceil(size_of::<u64>());
            (self.capacity, self.stride_bytes) = (length, words * size_of::<u64>());
            self.words.resize(words * channels, 0);
        }
    }
}

/// Large enough for a disk, small enough for a second-level cache.
const WINDOW_BYTES: usize = 1 << 20;
