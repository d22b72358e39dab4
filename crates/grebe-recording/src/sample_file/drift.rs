//! Skips or repeats samples where the clocks of recordings drift, so that simultaneous samples stay side by
//! side.

use grebe_frame::AxisTime;

use super::axis::streams;
use super::piece::Piece;
use super::{SampleFile, Segment};

/// Pieces of a file to read, so that it fits the first one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fitted {
    pub(super) pieces: Vec<Piece>,
    /// Samples skipped between others, and samples repeated.
    pub(super) left_out: u64,
    repeated: u64,
}

impl Fitted {
    /// Notice about the fit.
    pub(super) fn words(&self, file: &SampleFile, first: &SampleFile) -> Option<String> {
        let parts = [(self.left_out, "left out"), (self.repeated, "read twice")];
        let parts: Vec<String> =
            parts.iter().filter(|part| part.0 > 0).map(|(samples, how)| format!("{samples} {how}")).collect();
        let (name, first) = (file.name().display(), first.name().display());
        (!parts.is_empty()).then(|| {
            format!("{name}: its clock drifts from that of {first}: of its samples {}, a few at a time, to keep the rest aligned", parts.join(", "))
        })
    }
}

/// Fits stretches of equal lengths, `pieces` of each file, by this clock. Those of the first file are cut
/// where another has no samples beside it. The others follow it to one sample, or to a microsecond if samples
/// are closer. `None` if the files do not allow it.
pub(super) fn fit(files: &[SampleFile], pieces: &[Vec<Piece>], clock: u64) -> Option<Vec<Fitted>> {
    let courses = files.iter().map(|file| Courses::of(file, clock)).collect::<Option<Vec<_>>>()?;
    let rate_hz = files[0].sample_rate_hz;
    let step = (rate_hz * STEP_S).max(1.0) as u64;
    let quantum = (rate_hz * QUANTUM_S).ceil().max(1.0) as u64;
    let mut all = vec![Fitted::default(); files.len()];
    let (first, others) = all.split_first_mut()?;
    let mut at = 0;
    for (from, length) in runs(pieces) {
        let side = |which: usize| Side::of(&files[which], &courses[which], from[which]);
        let ours = side(0)?;
        let shifts =
            (1..files.len()).map(|other| Some(Shift { ours, other: side(other)?, rate_hz, quantum }));
        let shifts = shifts.collect::<Option<Vec<_>>>()?;
        let (mut begin, mut end) = (0, length);
        for (least, most) in shifts.iter().map(|shift| shift.room(length)) {
            (begin, end) = (begin.max(least), end.min(most));
        }
        if begin >= end {
            continue;
        }
        first.pieces.extend(by_segments(&files[0], Piece { at, from: from[0] + begin, length: end - begin }));
        for (shift, fitted) in shifts.iter().zip(others.iter_mut()) {
            shift.cut(begin, end, step, at, fitted)?;
        }
        at += end - begin;
    }
    (!first.pieces.is_empty()).then_some(all)
}

/// How the samples of a segment run by a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// When its first sample was made.
    pub(crate) begin_ns: i64,
    /// From one sample to the next.
    pub(crate) ns_per_sample: f64,
}

/// Clock course of each segment of a file. `None` if the file does not state it, or the clocks drift
/// implausibly far.
pub(crate) fn runs_by(file: &SampleFile, clock: u64) -> Option<Vec<Run>> {
    let (courses, rate_hz) = (Courses::of(file, clock)?, file.sample_rate_hz);
    let run = |segment: &Segment| {
        let number = courses.streams.partition_point(|course| course.end_position <= segment.position);
        let course = courses.streams.get(number)?;
        let [begin_ns, end_ns] = [0, segment.length_samples]
            .map(|behind| course.ns_at(segment.first_sample_index.saturating_add(behind), rate_hz));
        let ns_per_sample = end_ns.checked_sub(begin_ns)? as f64 / segment.length_samples as f64;
        // For few samples: the nanosecond to which times are stated.
        let most_ns = DRIFT_MOST / rate_hz * 1e9 + 1.0;
        ((ns_per_sample - 1e9 / rate_hz).abs() <= most_ns).then_some(Run { begin_ns, ns_per_sample })
    };
    file.segments().iter().map(run).collect()
}

/// Stretches that are contiguous in all files, across captures: the begin of each in each file, and its
/// length.
fn runs(pieces: &[Vec<Piece>]) -> Vec<(Vec<u64>, u64)> {
    let mut runs: Vec<(Vec<u64>, u64)> = Vec::new();
    for (number, Piece { length, .. }) in pieces[0].iter().enumerate() {
        let from = pieces.iter().map(|own| own[number].from);
        match runs.last_mut() {
            Some((before, run))
                if before.iter().zip(from.clone()).all(|(before, from)| before + *run == from) =>
            {
                *run += length;
            }
            _ => runs.push((from.collect(), *length)),
        }
    }
    runs
}

/// A piece as the captures of its file cut it.
fn by_segments(file: &SampleFile, piece: Piece) -> Vec<Piece> {
    let (segments, end) = (file.segments(), piece.from + piece.length);
    let first = segments.partition_point(|segment| segment.end() <= piece.from);
    let within = segments[first..].iter().take_while(|segment| segment.position < end);
    let of = |segment: &Segment| {
        let (from, to) = (segment.position.max(piece.from), segment.end().min(end));
        Piece { at: piece.at + (from - piece.from), from, length: to - from }
    };
    within.map(of).collect()
}

/// Begin of a piece in a file.
#[derive(Clone, Copy)]
struct Side<'a> {
    course: &'a Course,
    /// Between which places the file has all samples of the stream.
    room: (u64, u64),
    from: u64,
    index: u64,
    rate_hz: f64,
}

impl<'a> Side<'a> {
    fn of(file: &SampleFile, courses: &'a Courses, from: u64) -> Option<Self> {
        let segment = file.segment_at(from);
        let course =
            &courses.streams[courses.streams.partition_point(|course| course.end_position <= from)..];
        let room = &courses.whole[courses.whole.partition_point(|whole| whole.1 <= from)..];
        let index = segment.first_sample_index + (from - segment.position);
        Some(Self {
            course: course.first()?,
            room: *room.first()?,
            from,
            index,
            rate_hz: file.sample_rate_hz,
        })
    }

    fn ns_at(&self, behind: u64) -> i64 {
        self.course.ns_at(self.index.saturating_add(behind), self.rate_hz)
    }
}

/// By how much another file is read elsewhere than its samples would be counted from where a piece begins.
struct Shift<'a> {
    ours: Side<'a>,
    other: Side<'a>,
    rate_hz: f64,
    quantum: u64,
}

impl Shift<'_> {
    /// In samples, `behind` after the begin of the piece.
    fn samples(&self, behind: u64) -> f64 {
        self.ours.ns_at(behind).saturating_sub(self.other.ns_at(behind)) as f64 * 1e-9 * self.rate_hz
    }

    fn rounded(&self, behind: u64) -> i64 {
        let quantum = self.quantum as f64;
        ((self.samples(behind) / quantum).round() * quantum) as i64
    }

    /// Range of the piece in which the other has samples: slightly shorter at an open end, to allow for
    /// rounding.
    fn room(&self, length: u64) -> (u64, u64) {
        let Side { room, from, .. } = self.other;
        let (before, behind) = (from - room.0, room.1.saturating_sub(from + length));
        let least = |shift: i64, room: u64| match shift + self.quantum as i64 - room as i64 {
            missing if missing > 0 && shift != 0 => missing as u64,
            _ => 0,
        };
        (least(-self.rounded(0), before), length.saturating_sub(least(self.rounded(length), behind)))
    }

    /// Reads the other between these places of the piece, which are read from `at` on.
    fn cut(&self, begin: u64, end: u64, step: u64, at: u64, fitted: &mut Fitted) -> Option<()> {
        let (quantum, most) = (self.quantum as i64, self.quantum as f64 * OFF_MOST);
        let mut shift = self.rounded(begin);
        let mut from = begin;
        let mut read = |from: u64, to: u64, shift: i64| {
            let place = self.other.from.checked_add(from)?.checked_add_signed(shift)?;
            fitted.pieces.push(Piece { at: at + (from - begin), from: place, length: to - from });
            (fitted.pieces.len() <= PIECES_MAX).then_some(())
        };
        let (mut left_out, mut repeated) = (0, 0);
        let mut cell = begin;
        while cell < end {
            let next = cell.saturating_add(step).min(end);
            let [a, b] = [self.samples(cell), self.samples(next)];
            loop {
                let direction = if b > a { 1 } else { -1 };
                let limit = shift as f64 + most * direction as f64;
                if (b - limit) * direction as f64 <= 0.0 {
                    break;
                }
                let part = ((limit - a) / (b - a)).clamp(0.0, 1.0);
                let to = cell + ((next - cell) as f64 * part).ceil() as u64;
                if to >= end {
                    break;
                }
                // Clocks with this much drift are invalid.
                if to < from + 2 * self.quantum + 1 {
                    return None;
                }
                read(from, to, shift)?;
                (from, shift) = (to, shift + quantum * direction);
                *(if direction > 0 { &mut left_out } else { &mut repeated }) += self.quantum;
            }
            cell = next;
        }
        if from < end {
            read(from, end, shift)?;
        }
        fitted.left_out += left_out;
        fitted.repeated += repeated;
        Some(())
    }
}

/// How the samples of a stream run by a clock: a line through the times that are stated of them, of those about as
/// sure as the surest.
struct Course {
    /// End of the stream in its file.
    end_position: u64,
    /// Indices and times, in order.
    knots: Vec<(u64, i64)>,
    /// By how much the samples run faster, beyond the knots.
    drift_ppb: i64,
}

/// Of a file, in its order.
struct Courses {
    streams: Vec<Course>,
    /// From where to where nothing is missing.
    whole: Vec<(u64, u64)>,
}

impl Courses {
    fn of(file: &SampleFile, clock: u64) -> Option<Self> {
        let follows = |one: &Segment, next: &Segment| {
            one.first_sample_index.checked_add(one.length_samples) == Some(next.first_sample_index)
        };
        let whole = file.segments().chunk_by(follows);
        let whole = whole.filter_map(|whole| Some((whole.first()?.position, whole.last()?.end()))).collect();
        let streams = streams(file).map(|stream| Course::of(stream, clock)).collect::<Option<_>>()?;
        Some(Self { streams, whole })
    }
}

impl Course {
    fn of(stream: &[Segment], clock: u64) -> Option<Self> {
        let stated = |segment: &Segment| {
            let axis = segment.recorded_axis.filter(|axis| axis.clock == clock)?;
            Some((segment.first_sample_index, axis))
        };
        let stated: Vec<(u64, AxisTime)> = stream.iter().filter_map(stated).collect();
        let least_ns = stated.iter().map(|(_, axis)| axis.error_ns).min()?;
        let steadiest = stated.iter().map(|(_, axis)| axis).min_by_key(|axis| axis.drift_error_ppb)?;
        let sure = |(_, axis): &&(u64, AxisTime)| axis.error_ns <= least_ns.saturating_mul(2) + SURE_NS;
        let mut knots: Vec<(u64, i64)> =
            stated.iter().filter(sure).map(|(index, axis)| (*index, axis.ns)).collect();
        // A line that steps back is none.
        knots.dedup_by(|next, before| next.0 <= before.0 || next.1 <= before.1);
        Some(Self { end_position: stream.last()?.end(), knots, drift_ppb: steadiest.drift_ppb })
    }

    fn ns_at(&self, index: u64, rate_hz: f64) -> i64 {
        let behind = self.knots.partition_point(|knot| knot.0 <= index);
        let ns_per_sample = |one: (u64, i64), other: (u64, i64)| {
            other.1.saturating_sub(one.1) as f64 / (other.0 - one.0) as f64
        };
        let (knot, ns_per_sample) =
            match (behind.checked_sub(1).map(|at| self.knots[at]), self.knots.get(behind)) {
                (Some(before), Some(after)) => (before, ns_per_sample(before, *after)),
                (Some(knot), None) | (None, Some(&knot)) => {
                    (knot, 1e9 / rate_hz * (1.0 - self.drift_ppb as f64 * 1e-9))
                }
                (None, None) => return 0,
            };
        knot.1.saturating_add(((index as f64 - knot.0 as f64) * ns_per_sample).round() as i64)
    }
}

/// Quartzes are a thousand times better.
const DRIFT_MOST: f64 = 0.05;
/// Clocks run evenly within it.
const STEP_S: f64 = 1.0;
/// Duration skipped or repeated at a time, if longer than a sample.
const QUANTUM_S: f64 = 1e-6;
/// Maximum error in these units before a correction: above half, so that no sample is skipped and then
/// repeated.
const OFF_MOST: f64 = 0.75;
/// Tolerance in the comparison of errors: about that of a time stated to the nanosecond.
const SURE_NS: u64 = 5_000;
/// 100 MB of memory: 14 hours at 20 parts in a million, in microseconds.
const PIECES_MAX: usize = 1 << 22;
