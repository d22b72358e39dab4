//! The history of a recording on disk. It holds the samples that a picture needs, and takes wide columns from summaries.
//!
//! ```text
//!   narrow: the samples of the window, and some to either side --read--> Kept: as if they had just come
//!   wide:   the newest samples before the right edge ----------read--> Kept: spectra, edges, triggers
//!           columns ---- nodes of the summary; where there are none yet, a few samples of each column
//! ```

mod columns;
mod samples;
mod waterfall;
mod wide;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Frame, SampleFormat, TrackerCounts};
use grebe_scope::{Error as ScopeError, RangeStats};

use crate::data::columns::Extent;
use crate::data::extract::{Extract, WantedExtract};
use crate::data::history::{History, IntoExtract, Kept, Viewer};
use crate::data::lane::LaneId;
use crate::data::picture::{GapMark, Picture};
use crate::data::picture_series::Moment;
use crate::data::recording::{Recording, RecordingOutline, WantedSamples};
use crate::data::samples::{Kind, is_short};
use crate::data::spectrum::WaterfallView;
use crate::data::viewport::{SpectrumSettings, Viewport, Window};
use samples::Reader;
use waterfall::{Disk, Most, WideWaterfall, is_wide};
use wide::Wide;

/// Creates the history of a recording.
///
/// # Errors
/// [`ScopeError::OutOfMemory`].
pub(crate) fn history_for(recording: Box<dyn Recording>) -> Result<Box<dyn History>, ScopeError> {
    if is_short(recording.outline().format) {
        return Ok(Box::new(Recorded::<i16>::new(recording)?));
    }
    Ok(Box::new(Recorded::<f32>::new(recording)?))
}

#[derive(Debug)]
struct Recorded<K: Kind> {
    recording: Box<dyn Recording>,
    kept: Kept<K>,
    /// Maximum samples per channel that it holds.
    capacity: u64,
    /// The held indices, gaps included.
    held: Range<u64>,
    reader: Reader,
    pictures: HashMap<Viewer, Wide>,
    overview: Wide,
    waterfall: WideWaterfall<K>,
    /// Viewers whose last picture had estimated columns.
    guessed: Vec<Viewer>,
    /// Per viewer, the last window whose samples take noticeably long to read. They are read for its second picture.
    put_off: Vec<(Viewer, Range<u64>)>,
}

impl<K: Kind + IntoExtract> Recorded<K> {
    fn new(recording: Box<dyn Recording>) -> Result<Self, ScopeError> {
        let outline = recording.outline();
        let (format, channels) = (outline.format, outline.channels);
        let (lanes, is_complex) = (channels * format.components(), format.is_complex());
        // For a complex stream, a third of the memory is for I and Q.
        let parts = if is_complex { 3 } else { 1 };
        let own_bytes = HELD_BYTES / (1 + usize::from(is_complex)) * 9 / 2;
        let mut kept = Kept::new(format, channels, own_bytes * parts)?;
        kept.tracks.set_bits_full_scale(outline.bits_full_scale());
        let capacity = kept.tracks.sampled().samples_held();
        let capacity = capacity.min((HELD_BYTES / (lanes * size_of::<K>())) as u64);
        Ok(Recorded {
            recording,
            kept,
            capacity,
            held: 0..0,
            reader: Reader::default(),
            pictures: HashMap::new(),
            overview: Wide::default(),
            waterfall: WideWaterfall::default(),
            guessed: Vec::new(),
            put_off: Vec::new(),
        })
    }

    /// Holds the samples of a range as far as there is room; prefers the newest.
    fn hold(&mut self, wanted: Range<u64>, around: u64) {
        let all = self.recording.outline().indices();
        let wanted = wanted.start.max(all.start)..wanted.end.min(all.end);
        if wanted.is_empty() || (self.held.start <= wanted.start && wanted.end <= self.held.end) {
            return;
        }
        let end = wanted.end.saturating_add(around).min(all.end);
        let start = wanted.start.saturating_sub(around).max(all.start).max(end.saturating_sub(self.capacity));
        let (start, end) = match (self.is_here(start..end), self.is_here(wanted.clone())) {
            (true, _) => (start, end),
            (false, true) => (wanted.start.max(wanted.end.saturating_sub(self.capacity)), wanted.end),
            (false, false) => return,
        };
        self.kept.clear();
        self.held = start..end;
        // Either end may lie in a gap.
        self.kept.tracks.reach(start);
        let stretches = self.recording.outline().stretches_in(start..end).to_vec();
        for stretch in stretches {
            let from = start.max(stretch.first_sample_index);
            let to = end.min(stretch.end_index());
            let position = stretch.position + (from - stretch.first_sample_index);
            let kept = &mut self.kept;
            let recording = &mut *self.recording;
            // Unreadable samples are missing in the picture.
            let _ = self
                .reader
                .read(recording, position, to - from, from, |frame, first| kept.append(frame, first).is_ok());
        }
        self.kept.tracks.reach(end);
    }

    /// Holds the samples for a picture that ends at `right`. Returns whether the picture needs no others.
    fn hold_for(&mut self, viewer: Viewer, viewport: &Viewport, span_samples: f64, right: f64) -> bool {
        let margin = margin(viewport, span_samples);
        // The margin may be wider than the held part of a long window.
        let end = (right.max(0.0) as u64).min(self.recording.outline().indices().end);
        let (left, right) = (right - span_samples - margin, right + margin);
        let indices = left.max(0.0) as u64..right.max(0.0) as u64;
        let is_known = self.recording.outline().position_of(indices.end).0 <= self.recording.known_samples();
        // Wider columns are faster from nodes than from samples.
        let narrow = NARROW_COLUMN_SAMPLES * viewport.columns_in_range() as u64;
        let narrow = if is_known { self.capacity.min(narrow) } else { self.capacity };
        let length = indices.end - indices.start;
        if length <= narrow {
            if !self.is_here(indices.clone()) || !is_known && self.is_put_off(viewer, viewport, &indices) {
                return false;
            }
            self.hold(indices, (length / 2).clamp(AROUND_MIN, AROUND_MAX).min((self.capacity - length) / 2));
            return true;
        }
        let newest = NEWEST_SAMPLES.min(self.capacity / 2);
        self.hold(end.saturating_sub(newest)..end, newest / 2);
        false
    }

    /// Whether to read the samples only for the next picture: there are many, and the window is new.
    fn is_put_off(&mut self, viewer: Viewer, viewport: &Viewport, indices: &Range<u64>) -> bool {
        let length = indices.end - indices.start;
        let lanes = self.kept.tracks.sampled().channels();
        let is_quick = length <= (AT_ONCE_BYTES / (lanes * size_of::<K>())) as u64;
        let is_held = self.held.start <= indices.start && indices.end <= self.held.end;
        if is_quick || is_held || viewport.is_exact {
            return false;
        }
        // A window that moves with a growing recording counts as the same.
        let is_same = |(_, before): &(Viewer, Range<u64>)| {
            let common = indices.end.min(before.end).saturating_sub(indices.start.max(before.start));
            common > length / 2 && before.end - before.start == length
        };
        let was_put_off = self.put_off.iter().find(|(it, _)| *it == viewer).is_some_and(is_same);
        self.put_off.retain(|(it, _)| *it != viewer);
        self.put_off.push((viewer, indices.clone()));
        !was_put_off
    }

    /// Whether the samples of a range can be read. Always true, except while the recording is being copied.
    fn is_here(&self, indices: Range<u64>) -> bool {
        self.is_readable(&self.positions(indices.start as f64..indices.end as f64))
    }

    /// While the recording is being copied: requests the samples of the picture, and reports which parts have arrived.
    fn arrive(&mut self, viewport: &Viewport, extent: &Extent, picture: &mut Picture) {
        let window = extent.window();
        let shown = self.positions(window.clone());
        if self.recording.arrived(shown.clone()).is_none() {
            return;
        }
        let length = shown.end - shown.start;
        // Without nodes, only samples help.
        let narrow = match shown.end <= self.recording.known_samples() {
            true => NARROW_COLUMN_SAMPLES / 4 * viewport.columns_in_range() as u64,
            false => self.capacity,
        };
        let needs_samples = length <= self.capacity.min(narrow);
        // Spectra and X-Y plots need the newest samples.
        let newest = if viewport.spectrum.is_some() || viewport.xy.is_some() { NEWEST_WANTED } else { 0 };
        let singly = if needs_samples { length } else { newest.min(length) };
        // Include the margin that is held on either side.
        let margin = if singly > 0 { margin(viewport, window.end - window.start) } else { 0.0 };
        let first = if needs_samples { window.start - margin } else { window.end.ceil() - singly as f64 };
        let wanted = WantedSamples {
            singly: self.positions(first..window.end.ceil() + margin),
            shown: shown.clone(),
            node_log2: extent.grid.quantum_samples().max(1).ilog2(),
        };
        self.recording.want(&wanted);
        picture.is_estimated |= !self.is_readable(&wanted.singly);
        let cell = |at: usize| {
            let index =
                |part: usize| window.start + (window.end - window.start) * part as f64 / ARRIVAL_CELLS as f64;
            self.recording.arrived(self.positions(index(at)..index(at + 1))).unwrap_or(1.0)
        };
        picture.arrived = Some((0..ARRIVAL_CELLS).map(cell).collect());
    }

    fn is_readable(&self, positions: &Range<u64>) -> bool {
        self.recording.readable(positions.clone()) == *positions
    }

    /// Adds a waterfall whose rows are longer than a transform.
    fn fall(
        &mut self,
        viewer: Viewer,
        settings: SpectrumSettings,
        channel: usize,
        window: Range<f64>,
        viewport: &Viewport,
        picture: &mut Picture,
    ) {
        let is_there = channel < self.recording.outline().channels;
        let Some(view) = picture.spectrum.as_mut().filter(|_| is_there) else { return };
        let disk = &mut Disk { recording: &mut *self.recording, reader: &mut self.reader };
        let waiting = self.guessed.iter().filter(|it| **it != viewer).count();
        let (how, most) = ((channel, view.size, viewport.columns), Most::of(viewport.is_exact, waiting));
        let waterfall = self.waterfall.view(disk, viewer, settings, how, window, most);
        picture.is_estimated |= !self.waterfall.is_settled();
        let number = self.kept.look(viewer).1.next_spectrum_number();
        let view = Arc::make_mut(view);
        view.settings = settings;
        view.waterfall = waterfall.map(|waterfall| WaterfallView { number, ..waterfall });
    }

    /// Measures the box of a viewer. Holds its samples for that, before those of the window.
    fn measure_region(&mut self, viewer: Viewer, viewport: &Viewport, now_ns: u64) {
        let mut region = std::mem::take(&mut self.kept.look(viewer).1.region);
        let all = self.recording.outline().indices();
        region.measure(viewport, all, now_ns, |samples, work| {
            self.hold(samples, 0);
            work(&self.kept.tracks);
        });
        self.kept.look(viewer).1.region = region;
    }

    /// Statistics of all samples of a window, for measurements.
    fn whole(&mut self, window: Range<f64>) -> Vec<Option<RangeStats<K>>> {
        let range = self.positions(window);
        let lanes = self.kept.tracks.sampled().channels();
        (0..lanes).map(|place| self.whole_of(place, &range)).collect()
    }

    fn whole_of(&mut self, place: usize, range: &Range<u64>) -> Option<RangeStats<K>> {
        if range.is_empty() || range.end > self.recording.known_samples() {
            return None;
        }
        let log2 = ((range.end - range.start) / NODES_OF_WHOLE).max(1).ilog2();
        let level = self.recording.level(log2)?;
        let nodes = range.start >> level..range.end.div_ceil(1 << level);
        let mut extremes = Vec::new();
        self.recording.extremes(place, level, nodes, &mut extremes).ok()?;
        let min = extremes.iter().fold(f32::INFINITY, |least, &(min, _)| least.min(min));
        let max = extremes.iter().fold(f32::NEG_INFINITY, |most, &(_, max)| most.max(max));
        let sums = self.recording.sums(place, range.clone());
        let extremes = (K::from_f64(min.into()), K::from_f64(max.into()));
        Some(RangeStats::known(extremes, (sums.sum, sums.sum_sq, sums.not_finite), sums.count, range.clone()))
    }

    /// File positions of the samples of a window.
    fn positions(&self, window: Range<f64>) -> Range<u64> {
        let outline = self.recording.outline();
        let at = |index: f64| outline.position_of(index.max(0.0) as u64).0;
        at(window.start)..at(window.end)
    }

    /// The gaps of a window, up to the limit of a picture.
    fn gaps_in(&self, window: Range<f64>) -> Vec<GapMark> {
        let outline = self.recording.outline();
        let indices = (window.start.max(0.0) as u64).saturating_sub(1)..window.end.max(0.0) as u64 + 1;
        let inside = outline.stretches_in(indices.clone());
        let Some(first) = inside.first() else { return Vec::new() };
        let number = outline.stretches.partition_point(|stretch| stretch.position < first.position);
        let before = number.checked_sub(1);
        let pairs = outline.stretches[before.unwrap_or(0)..].windows(2).zip(before.unwrap_or(0)..);
        let of = |(pair, number): (&[crate::data::recording::Stretch], usize)| {
            let (start, end) = (pair[0].end_index(), pair[1].first_sample_index);
            (start < indices.end).then_some(GapMark {
                number: number as u64,
                start,
                end,
                generator_samples: end - start,
                lost_frames: 0,
            })
        };
        pairs.map_while(of).filter(|gap| gap.end > gap.start).take(GAPS_MAX).collect()
    }
}

impl<K: Kind + IntoExtract> History for Recorded<K> {
    fn is_for(&self, _: SampleFormat, _: usize) -> bool {
        false
    }

    fn clear(&mut self) {}

    fn append(&mut self, _: &Frame<'_>, _: u64) -> Result<(), ScopeError> {
        Ok(())
    }

    fn next_index(&self) -> u64 {
        self.recording.outline().indices().end
    }

    fn show(&mut self, viewer: Viewer, viewport: &Viewport, moment: Moment, picture: &mut Picture) {
        let all = self.recording.outline().indices();
        let span_samples = moment.span * moment.stream.rate_or_one();
        let right = match viewport.window {
            Window::Latest => all.end as f64,
            Window::Ending { at } => at,
        };
        self.measure_region(viewer, viewport, moment.now_ns);
        let mut is_narrow = self.hold_for(viewer, viewport, span_samples, right);
        let wide = viewport.spectrum.filter(|settings| is_wide(settings, span_samples));
        let wide = wide.and_then(|settings| Some((settings, settings.waterfall?)));
        let spectrum = viewport.spectrum.map(|settings| match wide {
            Some(_) => SpectrumSettings { waterfall: None, ..settings },
            None => settings,
        });
        let asked = Viewport { overview: None, spectrum, ..viewport.clone() };
        self.kept.keep_parts(viewer, &asked, true);
        let (tracks, look) = self.kept.look(viewer);
        let (right_edge, trigger) = look.triggered(tracks, &asked, &moment);
        // Triggers are searched in held samples only: in a long window, near the right edge.
        let right_edge = right_edge.filter(|_| is_narrow);
        if let Some(right) = right_edge {
            is_narrow = self.hold_for(viewer, viewport, span_samples, right);
        }
        let lanes = self.kept.tracks.lanes(asked.lanes).count();
        let extent = Extent::of(&asked, lanes, span_samples, right_edge, &all);
        let whole =
            if is_narrow || asked.measure.is_none() { Vec::new() } else { self.whole(extent.window()) };
        let (tracks, look) = self.kept.look(viewer);
        let of = |lane: LaneId| whole.get(tracks.place(lane)?).cloned().flatten();
        look.fill(tracks, &asked, &moment, &extent, trigger, &of, picture);
        if !is_narrow {
            self.widen(viewer, &extent, viewport.is_exact, picture);
        }
        self.arrive(viewport, &extent, picture);
        // Its rows use transforms spread over all samples.
        let is_all_here = self.is_readable(&self.positions(extent.window()));
        picture.is_estimated |= wide.is_some() && !is_all_here;
        if let Some((settings, channel)) = wide.filter(|_| is_all_here) {
            self.fall(viewer, settings, channel, extent.window(), viewport, picture);
        }
        self.overview(viewport, picture);
        (picture.oldest_index, picture.next_index) = (all.start, all.end);
        picture.gaps = self.gaps_in(extent.window());
        let outline = self.recording.outline();
        picture.counts = TrackerCounts {
            samples: outline.samples(),
            generator_samples: outline.missing_samples(),
            streams: 1,
            ..TrackerCounts::default()
        };
        let held = (self.held.end - self.held.start) as usize * self.kept.tracks.sampled().channels();
        picture.memory_bytes = held * size_of::<K>() + self.recording.memory_bytes();
        let may_be_better = picture.is_estimated
            || self.overview.is_estimated()
            || (wide.is_some() && !self.waterfall.is_exact());
        self.guessed.retain(|it| *it != viewer);
        if may_be_better {
            self.guessed.push(viewer);
        }
    }

    fn extract(&mut self, viewer: Viewer, rate_hz: f64, wanted: WantedExtract) -> Extract {
        self.hold(wanted.range_of(self.kept.tracks.sampled().channels()), 0);
        self.kept.extract(viewer, rate_hz, wanted)
    }

    fn forget(&mut self, viewer: Viewer) {
        self.kept.forget(viewer);
        self.pictures.remove(&viewer);
        self.waterfall.forget(viewer);
        self.put_off.retain(|(it, _)| *it != viewer);
        self.guessed.retain(|it| *it != viewer);
    }

    fn refresh(&mut self) -> (bool, Option<&RecordingOutline>) {
        let before = self.recording.outline().indices();
        let changed = self.recording.refresh();
        if changed {
            let all = self.recording.outline().indices();
            if all.start != before.start || all.end < before.end {
                self.held = 0..0;
            }
            if all.end < before.end {
                // It was cut, or is another stream.
                self.waterfall = WideWaterfall::default();
            }
            self.pictures.clear();
            self.overview = Wide::default();
        }
        // Estimates improve with each picture, until the summary is ready.
        (changed || !self.guessed.is_empty(), changed.then(|| self.recording.outline()))
    }
}

/// Extra samples on either side of the window, for the lines at its edges.
fn margin(viewport: &Viewport, span_samples: f64) -> f64 {
    span_samples / viewport.columns_in_range() as f64 * 2.0 + SINC_SAMPLES
}

/// Memory for held samples, all lanes together: about 40 ms to read from a disk.
const HELD_BYTES: usize = 64 << 20;
/// The part of it that is read within one picture: about 10 ms.
const AT_ONCE_BYTES: usize = 8 << 20;
/// Minimum margin on either side, so that a picture can move.
const AROUND_MIN: u64 = 1 << 12;
const AROUND_MAX: u64 = 1 << 22;
/// Samples held of a window that exceeds the memory: for spectra and edges.
const NEWEST_SAMPLES: u64 = 1 << 20;
/// Columns with more samples are drawn from nodes.
const NARROW_COLUMN_SAMPLES: u64 = 4096;
const NODES_OF_WHOLE: u64 = 4096;
const SINC_SAMPLES: f64 = 32.0;
/// Samples per channel for a spectrum.
const NEWEST_WANTED: u64 = 1 << 16;
/// Number of parts of a picture whose progress is reported.
const ARRIVAL_CELLS: usize = 256;
const GAPS_MAX: usize = 256;

#[cfg(test)]
mod tests;
