//! Columns of more samples than the history holds: from summaries, or estimated from a few samples each.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use grebe_scope::{Column, ColumnGrid, Coverage};

use crate::data::recorded::samples::Reader;
use crate::data::recording::{Recording, RecordingOutline};
use crate::data::samples::Kind;

/// A request for columns of the lanes at these places.
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
    /// By column: extremes of a few of its samples, by lane.
    sampled: HashMap<u64, Vec<(f32, f32)>>,
    grid: ColumnGrid,
    is_estimated: bool,
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
    /// other columns, as many as `most` allows are sampled, and the rest are estimated from their neighbours.
    pub(super) fn columns<K: Kind>(
        &mut self,
        recording: &mut dyn Recording,
        reader: &mut Reader,
        wanted: &WideColumns<'_>,
        most_ms: u64,
    ) -> Vec<Vec<Column<f32>>> {
        let spans: Vec<Span> = spans(recording.outline(), wanted);
        let within = || spans.iter().filter(|span| span.end > span.start);
        let positions =
            within().next().map_or(0, |span| span.start)..within().next_back().map_or(0, |span| span.end);
        let log2 = wanted.grid.quantum_samples().max(FINEST).ilog2();
        let (level, is_fine) = recording.level_of(log2, positions).unwrap_or((0, true));
        let known = recording.known_samples();
        let all = recording.outline().len_samples();
        let is_known = |span: &Span| level > 0 && node_end(span, level, all).min(all) <= known;
        let mut columns = Vec::with_capacity(wanted.places.len());
        let mut guessed: Vec<usize> =
            (0..spans.len()).filter(|&at| spans[at].end > spans[at].start && !is_known(&spans[at])).collect();
        for &place in wanted.places {
            let mut of_lane = known_columns(recording, place, level, &spans, is_known);
            if of_lane.is_none() {
                // Unreadable: estimate everything.
                guessed = (0..spans.len()).filter(|&at| spans[at].end > spans[at].start).collect();
            }
            columns.push(of_lane.take().unwrap_or_else(|| vec![Column::OUTSIDE; spans.len()]));
        }
        self.is_estimated = !guessed.is_empty() || !is_fine;
        if !guessed.is_empty() {
            self.sample::<K>(recording, reader, wanted, (&spans, &guessed), Duration::from_millis(most_ms));
            for (columns, &place) in columns.iter_mut().zip(wanted.places) {
                self.guess(columns, place, wanted, &spans, &guessed);
            }
        }
        columns
    }

    /// Reads a few samples of columns without an estimate, distant ones first.
    fn sample<K: Kind>(
        &mut self,
        recording: &mut dyn Recording,
        reader: &mut Reader,
        wanted: &WideColumns<'_>,
        (spans, guessed): (&[Span], &[usize]),
        most: Duration,
    ) {
        if self.grid != wanted.grid || self.sampled.len() > SAMPLED_MAX {
            self.sampled.clear();
            self.grid = wanted.grid;
        }
        let begun = Instant::now();
        let mut lanes: Vec<K> = Vec::new();
        let bits = guessed.len().next_power_of_two().ilog2();
        let far_apart = (0..1usize << bits).map(|at| at.reverse_bits() >> (usize::BITS - bits).min(63));
        for place in far_apart.filter(|&place| place < guessed.len()) {
            let at = guessed[place];
            let number = (wanted.first_column + at as i64) as u64;
            if self.sampled.contains_key(&number) {
                continue;
            }
            // While the recording is being copied, use the part that has arrived.
            let Range { start, end } = recording.readable(spans[at].start..spans[at].end);
            if start == end {
                // Nothing arrived, so neighbours must not fill it either.
                self.sampled.insert(number, Vec::new());
                continue;
            }
            // A picture needs a few, even from a slow disk.
            if begun.elapsed() > most && self.sampled.len() >= SAMPLED_MIN {
                return;
            }
            let length = (end - start).min(LOOK_SAMPLES);
            let middle = start + (end - start - length) / 2;
            let mut extremes = Vec::new();
            // Unreadable samples stay empty.
            let _ = reader.read(recording, middle, length, 0, |frame, _| {
                let block = frame.header().block_length_samples as usize;
                let all = match K::borrowed(frame) {
                    Some(all) => all,
                    None => {
                        K::decode(frame, &mut lanes);
                        &lanes
                    }
                };
                extremes.resize(all.len() / block, (f32::INFINITY, f32::NEG_INFINITY));
                for (extremes, lane) in extremes.iter_mut().zip(all.chunks_exact(block)) {
                    let (min, max) = grebe_scope::min_max(lane);
                    if min <= max {
                        *extremes = (extremes.0.min(min.to_f32()), extremes.1.max(max.to_f32()));
                    }
                }
                true
            });
            self.sampled.insert(number, extremes);
        }
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
        let sampled = |at: usize| self.sampled.get(&((wanted.first_column + at as i64) as u64));
        let mut last = guessed.iter().find_map(|&at| sampled(at));
        for &at in guessed {
            last = sampled(at).or(last);
            let (min, max) = last.and_then(|all| all.get(place).copied()).unwrap_or(NOTHING);
            let coverage = spans[at].coverage;
            columns[at] = if min <= max {
                Column { min, max, coverage }
            } else {
                Column { coverage, ..Column::OUTSIDE }
            };
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
/// Minimum columns that are sampled, and maximum that are kept.
const SAMPLED_MIN: usize = 24;
const SAMPLED_MAX: usize = 1 << 16;
