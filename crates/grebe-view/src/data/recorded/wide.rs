//! Columns of more samples than the history holds: from summaries, or estimated from a few samples each. Summaries have
//! no parts that are derived from I and Q: all samples of their columns are read, a few more with each picture.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use grebe_scope::{Column, ColumnGrid, Coverage};

use crate::data::lane::Part;
use crate::data::recorded::samples::Reader;
use crate::data::recording::{Recording, RecordingOutline};
use crate::data::samples::Kind;
use crate::data::tracks::Tracks;

/// A request for columns of the lanes at these [places](Tracks::place).
#[derive(Debug, Clone, Copy)]
pub(super) struct WideColumns<'a> {
    pub(super) grid: ColumnGrid,
    pub(super) first_column: i64,
    pub(super) count: usize,
    pub(super) places: &'a [usize],
}

/// Makes columns, and keeps its estimates.
#[derive(Debug, Default)]
pub(super) struct Wide {
    looked: HashMap<u64, Looked>,
    grid: ColumnGrid,
    parts: Vec<Part>,
    is_estimated: bool,
}

/// Values of a column's own samples.
#[derive(Debug, Default)]
struct Looked {
    lanes: Vec<LaneValues>,
    /// Number of samples from the column's start that were read. 0: a few from its middle were.
    done: u64,
}

/// Values of some samples of a lane.
#[derive(Debug, Clone, Copy)]
struct LaneValues {
    extremes: (f32, f32),
    /// Sum and number of the finite ones.
    sum: f64,
    count: u64,
}

/// Source of the columns.
struct Source<'a, K: Kind> {
    recording: &'a mut dyn Recording,
    reader: &'a mut Reader,
    tracks: &'a mut Tracks<K>,
}

/// File positions of a column's samples.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
    coverage: Coverage,
}

impl Wide {
    /// Whether any of the last columns was an estimate.
    pub(super) fn is_estimated(&self) -> bool {
        self.is_estimated
    }

    /// The columns of each lane. Columns from nodes are exact: they contain all samples up to the next column,
    /// rounded down to nodes of at most a sixteenth of a column; beside a gap they include the rest of a node. Of the
    /// other columns, as many as `most` allows are sampled, and the rest are estimated from their neighbours. Those of
    /// derived parts are exact once all their samples were read.
    pub(super) fn columns<K: Kind>(
        &mut self,
        recording: &mut dyn Recording,
        reader: &mut Reader,
        tracks: &mut Tracks<K>,
        wanted: &WideColumns<'_>,
        most: Duration,
    ) -> Vec<Vec<Column<f32>>> {
        let spans: Vec<Span> = spans(recording.outline(), wanted);
        let inside: Vec<usize> = (0..spans.len()).filter(|&at| spans[at].end > spans[at].start).collect();
        let positions = match (inside.first(), inside.last()) {
            (Some(&first), Some(&last)) => spans[first].start..spans[last].end,
            _ => 0..0,
        };
        let log2 = wanted.grid.quantum_samples().max(FINEST).ilog2();
        let (level, is_fine) = recording.level_of(log2, positions).unwrap_or((0, true));
        let known = recording.known_samples();
        let all = recording.outline().len_samples();
        let is_known = |span: &Span| level > 0 && node_end(span, level, all).min(all) <= known;
        let own = tracks.sampled().channels();
        let derives = wanted.places.iter().any(|&place| place >= own);
        self.is_estimated = false;
        let mut guessed: Vec<usize> = inside.iter().copied().filter(|&at| !is_known(&spans[at])).collect();
        let mut columns = Vec::with_capacity(wanted.places.len());
        for &place in wanted.places {
            let mut of_lane = None;
            if place < own {
                of_lane = known_columns(recording, place, level, &spans, is_known);
                if of_lane.is_none() {
                    // Unreadable: estimate everything.
                    guessed.clone_from(&inside);
                }
                self.is_estimated |= !guessed.is_empty() || !is_fine;
            }
            columns.push(of_lane.unwrap_or_else(|| vec![Column::OUTSIDE; spans.len()]));
        }
        let looked = if derives { &inside } else { &guessed };
        if !looked.is_empty() {
            let mut source = Source { recording, reader, tracks };
            let is_whole = self.look(&mut source, wanted, (&spans, looked), derives, most);
            self.is_estimated |= derives && !is_whole;
            for (columns, &place) in columns.iter_mut().zip(wanted.places) {
                self.guess(columns, place, wanted, &spans, if place < own { &guessed } else { &inside });
            }
        }
        columns
    }

    /// The mean of a lane in the last columns, as far as they were read.
    pub(super) fn mean(&self, wanted: &WideColumns<'_>, place: usize) -> Option<f64> {
        let numbers = (0..wanted.count).filter_map(|at| u64::try_from(wanted.first_column + at as i64).ok());
        let values = numbers.filter_map(|number| self.looked.get(&number)?.lanes.get(place));
        let (sum, count) = values.fold((0.0, 0), |(sum, count), it| (sum + it.sum, count + it.count));
        (count > 0).then(|| sum / count as f64)
    }

    /// Reads a few samples of columns that were not looked at, distant ones first, and then the rest of all columns if
    /// `reads_all`. Returns whether all samples of all columns were read.
    fn look<K: Kind>(
        &mut self,
        source: &mut Source<'_, K>,
        wanted: &WideColumns<'_>,
        (spans, places): (&[Span], &[usize]),
        reads_all: bool,
        most: Duration,
    ) -> bool {
        if self.grid != wanted.grid
            || self.looked.len() > LOOKED_MAX
            || !self.parts.iter().copied().eq(source.tracks.parts())
        {
            self.looked.clear();
            self.grid = wanted.grid;
            self.parts = source.tracks.parts().collect();
        }
        let begun = Instant::now();
        let bits = places.len().next_power_of_two().ilog2();
        let far_apart = (0..1usize << bits).map(|at| at.reverse_bits() >> (usize::BITS - bits).min(63));
        let far_apart = far_apart.filter_map(|place| places.get(place));
        let columns = far_apart.map(|&at| ((wanted.first_column + at as i64) as u64, spans[at]));
        for (number, span) in columns.clone() {
            if self.looked.contains_key(&number) {
                continue;
            }
            // While the recording is being copied, use the part that has arrived.
            let Range { start, end } = source.recording.readable(span.start..span.end);
            let mut looked = Looked::default();
            // If nothing arrived, neighbours must not fill it either.
            if start < end {
                // A picture needs a few, even from a slow disk.
                if begun.elapsed() > most && self.looked.len() >= LOOKED_MIN {
                    return false;
                }
                let length = (end - start).min(LOOK_SAMPLES);
                let middle = start + (end - start - length) / 2;
                source.add(middle..middle + length, &mut looked.lanes);
            }
            self.looked.insert(number, looked);
        }
        if !reads_all {
            return false;
        }
        for (number, span) in columns {
            let looked = self.looked.entry(number).or_default();
            while looked.done < span.end - span.start {
                let start = span.start + looked.done;
                let piece = start..span.end.min(start + PIECE_SAMPLES);
                if begun.elapsed() > most || source.recording.readable(piece.clone()) != piece {
                    return false;
                }
                if looked.done == 0 {
                    // The few are among all of them.
                    looked.lanes.clear();
                }
                looked.done += piece.end - piece.start;
                source.add(piece, &mut looked.lanes);
            }
        }
        true
    }

    /// Columns from their own samples, or from the nearest column to the left that has any.
    fn guess(
        &self,
        columns: &mut [Column<f32>],
        place: usize,
        wanted: &WideColumns<'_>,
        spans: &[Span],
        guessed: &[usize],
    ) {
        let looked = |at: usize| self.looked.get(&((wanted.first_column + at as i64) as u64));
        let mut last = guessed.iter().find_map(|&at| looked(at));
        for &at in guessed {
            last = looked(at).or(last);
            let values = last.and_then(|all| all.lanes.get(place).copied()).unwrap_or_default();
            let ((min, max), coverage) = (values.extremes, spans[at].coverage);
            columns[at] = if min <= max {
                Column { min, max, coverage }
            } else {
                Column { coverage, ..Column::OUTSIDE }
            };
        }
    }
}

impl<K: Kind> Source<'_, K> {
    /// Adds the samples at some positions to the values of all lanes. Skips unreadable ones.
    fn add(&mut self, positions: Range<u64>, lanes: &mut Vec<LaneValues>) {
        let mut begin = positions.start;
        while begin < positions.end {
            let (start, end) = self.recording.outline().run_at(begin);
            let (end, own) = (end.min(positions.end), self.tracks.sampled().channels());
            // The frequency of a sample needs the one before.
            let before = usize::from(begin > start);
            let (from, tracks) = (begin - before as u64, &mut *self.tracks);
            let _ = self.reader.read(self.recording, from, end - from, 0, |frame, at| {
                let skipped = if at == 0 { before } else { 0 };
                tracks.see(frame, at > 0, |all| {
                    lanes.resize(all.len(), LaneValues::default());
                    for (place, (values, samples)) in lanes.iter_mut().zip(all).enumerate() {
                        values.add(&samples[skipped..], place >= own);
                    }
                });
                true
            });
            begin = end;
        }
    }
}

impl Default for LaneValues {
    fn default() -> Self {
        Self { extremes: NOTHING, sum: 0.0, count: 0 }
    }
}

impl LaneValues {
    fn add<K: Kind>(&mut self, samples: &[K], with_sum: bool) {
        let ((min, max), (least, most)) = (grebe_scope::min_max(samples), self.extremes);
        if min <= max {
            self.extremes = (least.min(min.to_f32()), most.max(max.to_f32()));
        }
        if with_sum {
            let finite = || samples.iter().map(|sample| sample.to_f64()).filter(|value| value.is_finite());
            self.sum += finite().sum::<f64>();
            self.count += finite().count() as u64;
        }
    }
}

/// The columns of a lane from nodes; `None` if they cannot be read.
fn known_columns(
    recording: &mut dyn Recording,
    place: usize,
    level: u32,
    spans: &[Span],
    is_known: impl Fn(&Span) -> bool,
) -> Option<Vec<Column<f32>>> {
    let all = recording.outline().len_samples();
    let mut out: Vec<Column<f32>> =
        spans.iter().map(|span| Column { coverage: span.coverage, ..Column::OUTSIDE }).collect();
    let known = || spans.iter().enumerate().filter(|(_, span)| span.end > span.start && is_known(span));
    let Some((_, first)) = known().next() else { return Some(out) };
    let first = first.start >> level;
    let last = known().map(|(_, span)| node_end(span, level, all).div_ceil(1 << level)).max()?;
    let mut nodes = Vec::new();
    recording.extremes(place, level, first..last, &mut nodes).ok()?;
    for (at, span) in known() {
        let begin = (span.start >> level) - first;
        let end = node_end(span, level, all).div_ceil(1 << level) - first;
        let own = nodes.get(begin as usize..end as usize)?;
        let (min, max) =
            own.iter().fold(NOTHING, |(least, most), &(min, max)| (least.min(min), most.max(max)));
        if min <= max {
            (out[at].min, out[at].max) = (min, max);
        }
    }
    Some(out)
}

/// End of a column's nodes: those that start before its end, except the first node of the next column.
fn node_end(span: &Span, level: u32, all: u64) -> u64 {
    let down = span.end >> level << level;
    let ends_here = span.end == all || span.coverage == Coverage::Gap;
    if ends_here || down <= span.start { span.end.next_multiple_of(1 << level) } else { down }
}

fn spans(outline: &RecordingOutline, wanted: &WideColumns<'_>) -> Vec<Span> {
    let all = outline.indices();
    let of = |at: usize| {
        let outside = Span { start: 0, end: 0, coverage: Coverage::Outside };
        let Ok(number) = u64::try_from(wanted.first_column + at as i64) else { return outside };
        let span = wanted.grid.span(number);
        let inside = span.start.max(all.start)..span.end.min(all.end);
        if inside.is_empty() {
            return outside;
        }
        let (start, end) = (outline.position_of(inside.start).0, outline.position_of(inside.end).0);
        let coverage = if end - start < inside.end - inside.start {
            Coverage::Gap
        } else if inside != span {
            Coverage::Partial
        } else {
            Coverage::Complete
        };
        Span { start, end, coverage }
    };
    (0..wanted.count).map(of).collect()
}

const NOTHING: (f32, f32) = (f32::INFINITY, f32::NEG_INFINITY);
/// Samples of the finest nodes.
const FINEST: u64 = 256;
/// Samples per estimated column.
const LOOK_SAMPLES: u64 = 1024;
/// Columns to look at in each picture, at least, and to keep, at most.
const LOOKED_MIN: usize = 24;
const LOOKED_MAX: usize = 1 << 16;
/// Samples per channel between two looks at the clock: about a millisecond.
const PIECE_SAMPLES: u64 = 1 << 16;
