//! Boxes of time and frequency, cut out of recordings in one pass: each becomes a recording of its own.

mod boxes;
mod output;
mod signal;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grebe_process::{Band, BandFilter, Conversion, Cutter};
use grebe_ring::Cancel;
use grebe_scope::Engineering;

use self::output::Output;
use self::signal::Signal;
use crate::error::{Error, ProcessError};
use crate::sample_file::{SampleFile, begins_beyond_the_end, samples_in};

pub use self::boxes::{BoxCut, CutBox};

/// Boxes to cut out of recordings of one signal.
///
/// ```
/// use std::sync::atomic::AtomicU64;
/// use std::time::Duration;
/// use grebe_recording::{BandCut, Cancel, CutBox, SampleFile};
///
/// let folder = tempfile::tempdir()?;
/// let wide = folder.path().join("wide.cu8");
/// std::fs::write(&wide, vec![128; 20_000])?;
/// let file = SampleFile::open(format!("{}?rate=1M&frequency=100M", wide.display()))?;
/// let ms = Duration::from_millis;
/// let part = CutBox { start: ms(2), duration: Some(ms(5)), centre_hz: 100.2e6, bandwidth_hz: 40e3, rate_hz: None };
/// let cut = BandCut::new(vec![file], vec![part])?;
/// let done = cut.write(&[folder.path().join("band")], &AtomicU64::new(0), &Cancel::default())?;
/// let band = SampleFile::open(folder.path().join("band.sigmf-meta"))?;
/// assert_eq!((band.rate_hz(), band.len_samples(), done[0].samples), (Some(50e3), 250, 250));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BandCut {
    signal: Signal,
    boxes: Vec<CutBox>,
    /// Samples of each box, in the signal.
    ranges: Vec<Range<u64>>,
    rate_hz: f64,
    /// Name of the recording, and the number of its first sample.
    source: (String, u64),
}

/// A range read at once, and the boxes that need it.
struct Pass {
    stretch: usize,
    samples: Range<u64>,
    filters: Vec<(usize, BandFilter)>,
}

impl BandCut {
    /// Prepares to cut these boxes out of recordings that follow one another, such as the parts of a ring.
    ///
    /// # Errors
    /// [`Error::Process`] for a box outside the recording, or a rate that does not hold it; the message says what to
    /// give.
    pub fn new(files: Vec<SampleFile>, boxes: Vec<CutBox>) -> Result<Self, Error> {
        let rate_hz = files.first().and_then(SampleFile::rate_hz).unwrap_or(0.0);
        let name = files.first().and_then(|file| file.name().file_name()).unwrap_or_default();
        let source = (name.to_string_lossy().into_owned(), 0);
        let signal = Signal::new(files);
        let all = signal.len_samples();
        let setting =
            |what, got: String, must| Err(Error::Process(ProcessError::Setting { what, got, must }));
        let mut ranges = Vec::with_capacity(boxes.len());
        for CutBox { start, duration, .. } in &boxes {
            let begin = samples_in(*start, rate_hz);
            let length = duration.map_or(all, |duration| samples_in(duration, rate_hz));
            if begin >= all {
                return Err(begins_beyond_the_end(*start, all, rate_hz));
            }
            if length == 0 {
                let must = "it is shorter than a sample of the recording";
                return setting("duration", format!("{:?}", duration.unwrap_or_default()), must);
            }
            ranges.push(begin..begin.saturating_add(length).min(all));
        }
        let cut = Self { signal, boxes, ranges, rate_hz, source };
        for number in 0..cut.boxes.len() {
            let within = cut.stretches_of(number);
            let filters: Result<Vec<_>, _> = within.map(|stretch| cut.filter(number, stretch)).collect();
            // Where it was tuned elsewhere for a while, the rest is cut.
            if let Err(error) = filters
                && !cut.stretches_of(number).any(|stretch| cut.filter(number, stretch).is_ok())
            {
                return Err(error);
            }
        }
        Ok(cut)
    }

    /// Names the source in the results' annotations: the recordings are a copy of it from the sample `first` on.
    #[must_use]
    pub fn copied_from(self, source: &str, first: u64) -> Self {
        Self { source: (source.to_owned(), first), ..self }
    }

    /// Whether the recording says its centre frequency, so that frequencies are those on the air.
    pub fn is_on_air(&self) -> bool {
        self.signal.stretches.iter().any(|stretch| stretch.centre_hz.is_some())
    }

    /// Samples per channel that are read.
    pub fn samples_to_read(&self) -> u64 {
        self.passes().iter().map(|pass| pass.samples.end - pass.samples.start).sum()
    }

    /// Writes a recording for each box, of these names. A box without a sample of the recording gets none.
    ///
    /// # Errors
    /// An [`Error`] that names the file; [`Error::Cancelled`]. Recordings that are not whole may then stay.
    pub fn write(mut self, to: &[PathBuf], done: &AtomicU64, cancel: &Cancel) -> Result<Vec<BoxCut>, Error> {
        let mut outputs: Vec<Output> = (0..self.boxes.len().min(to.len()))
            .map(|number| {
                let (wanted, range) = (self.boxes[number].clone(), self.ranges[number].clone());
                let outside =
                    self.stretches_of(number).filter(|&stretch| self.filter(number, stretch).is_err());
                let outside_samples = outside.map(|stretch| {
                    let stretch = &self.signal.stretches[stretch];
                    stretch.end.min(range.end) - stretch.begin.max(range.start)
                });
                Output::new(
                    wanted,
                    range.clone(),
                    to[number].clone(),
                    outside_samples.sum(),
                    &self.signal,
                    self.source.clone(),
                )
            })
            .collect();
        let (mut cutters, mut before): (Vec<Cutter>, Vec<BandFilter>) = (Vec::new(), Vec::new());
        let mut numbers = Vec::new();
        for Pass { stretch, samples, filters } in self.passes() {
            let (file, position) = self.signal.place(samples.start);
            let file = &self.signal.files[file];
            let (format, channels) = (file.format(), file.channels());
            let description = file.description(position).cloned().unwrap_or_default();
            let conversion = Conversion::to_floats(format, Some(&description));
            let described = Arc::new(conversion.describe(&description));
            let bands: Vec<BandFilter> = filters.iter().map(|(_, filter)| filter.clone()).collect();
            if bands != before {
                cutters = (0..channels).map(|_| Cutter::new(&bands, format.is_complex())).collect();
                before = bands;
            }
            for cutter in &mut cutters {
                for (band, (number, filter)) in filters.iter().enumerate() {
                    let [first, last] = output::outputs_of(filter, &self.ranges[*number]);
                    cutter.limit(band, first..last);
                }
                cutter.begin(samples.start as i64);
            }
            let held = self.signal.stretches[stretch].begin..self.signal.stretches[stretch].end;
            for (band, (number, filter)) in filters.iter().enumerate() {
                outputs[*number].follow(
                    filter,
                    cutters[0].next(band),
                    &held,
                    described.clone(),
                    &self.signal,
                );
            }
            let mut first = samples.start;
            self.signal.read(stretch, samples, |block| {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                for (channel, cutter) in cutters.iter_mut().enumerate() {
                    conversion.floats(block.channel_bytes(channel)?, &mut numbers);
                    let invalid_before = cutter.invalid_numbers();
                    cutter.push(&numbers);
                    if cutter.invalid_numbers() > invalid_before {
                        for (number, _) in &filters {
                            outputs[*number].count_invalid(first, &numbers, format.components());
                        }
                    }
                }
                first += block.len_samples() as u64;
                done.fetch_add(block.len_samples() as u64, Ordering::Relaxed);
                filters
                    .iter()
                    .enumerate()
                    .try_for_each(|(band, (number, _))| outputs[*number].take(&mut cutters, band))
            })?;
            cutters.iter_mut().for_each(Cutter::end);
            for (band, (number, _)) in filters.iter().enumerate() {
                outputs[*number].take(&mut cutters, band)?;
            }
        }
        outputs.into_iter().map(Output::finish).collect()
    }

    /// The stretches that hold samples of a box.
    fn stretches_of(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let range = self.ranges[number].clone();
        let stretches = self.signal.stretches.iter().enumerate();
        stretches
            .filter(move |(_, stretch)| stretch.begin < range.end && stretch.end > range.start)
            .map(|(stretch, _)| stretch)
    }

    /// The filter of a box, where the signal is tuned as in this stretch.
    fn filter(&self, number: usize, stretch: usize) -> Result<BandFilter, Error> {
        let CutBox { centre_hz, bandwidth_hz, rate_hz, .. } = self.boxes[number];
        let tuned_hz = self.signal.stretches[stretch].centre_hz;
        let band = Band { centre_hz: centre_hz - tuned_hz.unwrap_or(0.0), bandwidth_hz, rate_hz };
        let is_complex = self.signal.files[0].format().is_complex();
        let filter = band.of(self.rate_hz, is_complex).map_err(|error| match tuned_hz {
            Some(tuned_hz) => {
                let tuned = Engineering::new(tuned_hz, "Hz").digits(12);
                let what =
                    format!("{error} (frequencies are those on the air: the recording's centre is {tuned})");
                Error::Process(ProcessError::Takes { what })
            }
            None => Error::Process(error),
        })?;
        Ok(filter.starting_at(self.ranges[number].start as i64))
    }

    /// Boxes whose samples overlap are read at once.
    fn passes(&self) -> Vec<Pass> {
        let mut passes = Vec::new();
        for (stretch, Range { start, end }) in
            self.signal.stretches.iter().map(|it| it.begin..it.end).enumerate()
        {
            let overlaps = |range: &Range<u64>| range.start < end && range.end > start;
            let within = (0..self.boxes.len()).filter(|&number| overlaps(&self.ranges[number]));
            let wanted = within.filter_map(|number| {
                let range = &self.ranges[number];
                let filter = self.filter(number, stretch).ok()?;
                let reach = filter.reach();
                let samples =
                    range.start.saturating_sub(reach).max(start)..range.end.saturating_add(reach).min(end);
                Some((samples, number, filter))
            });
            let mut wanted: Vec<_> = wanted.collect();
            wanted.sort_by_key(|(samples, ..)| samples.start);
            let mut pass: Option<Pass> = None;
            for (samples, number, filter) in wanted {
                match &mut pass {
                    Some(pass) if samples.start <= pass.samples.end && pass.filters.len() < TOGETHER => {
                        pass.samples.end = pass.samples.end.max(samples.end);
                        pass.filters.push((number, filter));
                    }
                    _ => passes.extend(pass.replace(Pass {
                        stretch,
                        samples,
                        filters: vec![(number, filter)],
                    })),
                }
            }
            passes.extend(pass);
        }
        passes
    }
}

/// Boxes that are cut at once.
const TOGETHER: usize = 256;

#[cfg(test)]
mod tests;
