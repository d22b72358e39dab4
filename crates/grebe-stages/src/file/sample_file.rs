//! Reading recordings of any kind through one window of bounded size, however long they are.

use std::time::SystemTime;

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
///     println!("{} samples from stream index {}", block.channel(0).len(), segment.first_sample_index);
/// }
/// # Ok::<(), grebe_stages::Error>(())
/// ```
#[derive(Debug)]
pub struct SampleFile {
    sources: Vec<RawFile>,
    sample_rate_hz: f64,
    channels: usize,
    len_samples: u64,
    segments: Vec<Segment>,
    notes: Vec<String>,
    window: Window,
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
    samples: &'a [i16],
    stride: usize,
    first: usize,
    length: usize,
}

impl SampleFile {
    /// A file whose parts were checked: every source has `len_samples`, the segments cover them all.
    pub(crate) fn new(
        sources: Vec<RawFile>,
        sample_rate_hz: f64,
        len_samples: u64,
        segments: Vec<Segment>,
        notes: Vec<String>,
    ) -> Self {
        let channels = sources.iter().map(RawFile::channels).sum();
        Self {
            sources,
            sample_rate_hz,
            channels,
            len_samples,
            segments,
            notes,
            window: Window::new(channels, len_samples),
        }
    }

    /// Samples per second and channel; 0 = the file does not say.
    pub fn sample_rate_hz(&self) -> f64 {
        self.sample_rate_hz
    }

    /// Channels, 1 to 8.
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

    /// What a person should know of how the file was read: scaling, a recorder that was cut off. One line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The samples at `position .. position + length` of all channels.
    ///
    /// Cheap where the samples are in the window (512 Ki samples over all channels), which moves forward as needed; a longer
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
        Ok(Block { samples: &window.samples, stride: window.stride, first, length })
    }

    #[cold]
    fn move_window(&mut self, position: u64, length: usize) -> Result<(), Error> {
        let left = self.len_samples.saturating_sub(position);
        if length as u64 > left {
            let what = "samples asked for behind the end of the file";
            return Err(Error::Shape { what, got: length as u64, expected: left });
        }
        let window = &mut self.window;
        window.make_room(self.channels, length);
        let length = (window.stride as u64).min(left) as usize;
        // Nothing is held until all of it is read.
        window.length = 0;
        let mut rest = &mut window.samples[..];
        for source in &mut self.sources {
            let (own, others) = rest.split_at_mut(source.channels() * window.stride);
            source.read(position, length, window.stride, own)?;
            rest = others;
        }
        (window.start, window.length) = (position, length);
        Ok(())
    }
}

impl<'a> Block<'a> {
    /// The samples of one channel.
    ///
    /// # Panics
    /// Where the file has no such channel.
    #[inline]
    pub fn channel(&self, channel: usize) -> &'a [i16] {
        &self.samples[channel * self.stride + self.first..][..self.length]
    }
}

/// A stretch of all channels in memory, channel-major.
#[derive(Debug)]
struct Window {
    samples: Vec<i16>,
    /// Samples per channel that there is room for.
    stride: usize,
    start: u64,
    length: usize,
}

impl Window {
    fn new(channels: usize, len_samples: u64) -> Self {
        let stride = (WINDOW_SAMPLES / channels.max(1)).min(len_samples.try_into().unwrap_or(usize::MAX));
        Self { samples: vec![0; stride * channels], stride, start: 0, length: 0 }
    }

    #[inline]
    fn holds(&self, position: u64, length: usize) -> bool {
        position >= self.start
            && position - self.start <= self.length as u64
            && length as u64 <= self.length as u64 - (position - self.start)
    }

    fn make_room(&mut self, channels: usize, length: usize) {
        if length > self.stride {
            self.stride = length;
            self.samples.resize(length * channels, 0);
        }
    }
}

/// 1 MiB: large enough for a disk, small enough for a second-level cache.
const WINDOW_SAMPLES: usize = 512 << 10;
