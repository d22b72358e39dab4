//! Times by the monotonic clock of a host, on which recordings of several hosts can be laid side by side.

use grebe_frame::AxisTime;

use super::{SampleFile, Segment};

impl SampleFile {
    /// When a sample of the file was made by the monotonic clock of a host, where the file says so of its segment.
    pub fn axis_at(&self, position: u64) -> Option<AxisTime> {
        let segment = self.segment_at(position);
        let since = i128::from(position.saturating_sub(segment.position));
        self.axis_after(segment.recorded_axis?, since)
    }

    /// The same by this clock, with the file's best accuracy: a later segment of the same stream can refine
    /// earlier samples.
    pub fn axis_by(&self, clock: u64, position: u64) -> Option<AxisTime> {
        let segment = self.segment_at(position);
        let stream = streams(self).find(|stream| stream.iter().any(|of| std::ptr::eq(of, segment)))?;
        let index = segment.first_sample_index + position.saturating_sub(segment.position);
        let by = |segment: &Segment| {
            let axis = segment.recorded_axis.filter(|axis| axis.clock == clock)?;
            self.axis_after(axis, i128::from(index) - i128::from(segment.first_sample_index))
        };
        let surest = stream.iter().filter_map(by).min_by_key(|axis| axis.error_ns)?;
        // One that is near may have known little of the drift yet.
        let steadiest = stream.iter().filter_map(by).min_by_key(|axis| axis.drift_error_ppb)?;
        let AxisTime { drift_ppb, drift_error_ppb, .. } = steadiest;
        Some(AxisTime { drift_ppb, drift_error_ppb, ..surest })
    }

    /// The clocks of the file's sample times; the one with most statements first.
    pub fn axis_clocks(&self) -> Vec<u64> {
        let mut counts: Vec<(usize, u64)> = Vec::new();
        for axis in self.segments().iter().filter_map(|segment| segment.recorded_axis) {
            // A stream is of one host and received by another; a file of many is none that is fitted to others.
            if let Some((count, _)) = counts.iter_mut().find(|(_, clock)| *clock == axis.clock) {
                *count += 1;
            } else if counts.len() < CLOCKS_MAX {
                counts.push((1, axis.clock));
            }
        }
        counts.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        counts.into_iter().map(|(_, clock)| clock).collect()
    }

    /// The segment's time, `samples` after its begin.
    pub(crate) fn axis_after(&self, axis: AxisTime, samples: i128) -> Option<AxisTime> {
        let since_ns = (samples as f64 / self.sample_rate_hz * 1e9).round();
        match samples {
            0 => Some(axis),
            _ => since_ns.is_finite().then(|| axis.after(since_ns as i64)),
        }
    }
}

/// The clock by which every stream in all of the files says when it began, if there is one: the surest.
pub(crate) fn common_clock(files: &[SampleFile]) -> Option<u64> {
    let error_ns = |clock: u64| {
        let began = |file, stream: &[Segment]| stream_began(file, stream, clock).map(|axis| axis.error_ns);
        let all = files.iter().flat_map(|file| streams(file).map(move |stream| began(file, stream)));
        all.into_iter().try_fold(0, |most, error_ns| Some(error_ns?.max(most)))
    };
    let clocks = files.first()?.axis_clocks();
    let known = clocks.into_iter().filter_map(|clock| Some((error_ns(clock)?, clock)));
    known.min_by_key(|&(error_ns, _)| error_ns).map(|(_, clock)| clock)
}

/// Notice if samples of two files at these positions, side by side, differ in time by more than the clock
/// error and one sample.
pub(super) fn apart_words(first: (&SampleFile, u64), other: (&SampleFile, u64)) -> Option<String> {
    let by = |clock, (file, position): (&SampleFile, u64)| file.axis_by(clock, position);
    let pairs =
        first.0.axis_clocks().into_iter().filter_map(|clock| Some((by(clock, first)?, by(clock, other)?)));
    let (one, two) = pairs.min_by_key(|(one, two)| one.error_ns.saturating_add(two.error_ns))?;
    let apart_ns = two.ns.saturating_sub(one.ns);
    let error_ns = one.error_ns.saturating_add(two.error_ns);
    let is_more = apart_ns.unsigned_abs() as f64 * 1e-9 * first.0.sample_rate_hz > 1.0;
    (is_more && apart_ns.unsigned_abs() > error_ns).then(|| {
        let [apart_us, error_us] = [apart_ns as f64, error_ns as f64].map(|ns| ns / 1e3);
        let (name, beside) = (other.0.name().display(), first.0.name().display());
        format!(
            "{name}: by the clock of a host its last sample is {apart_us:+.1} \u{b1} {error_us:.1} us from that of {beside} beside it: their rates differ, which is not corrected"
        )
    })
}

/// When the first sample of a stream was made, by this clock.
pub(super) fn stream_began(file: &SampleFile, stream: &[Segment], clock: u64) -> Option<AxisTime> {
    file.axis_by(clock, stream.first()?.position)
}

const CLOCKS_MAX: usize = 16;

/// The segments of each stream in a file: where indexes step back, another begins.
pub(super) fn streams(file: &SampleFile) -> impl Iterator<Item = &[Segment]> {
    file.segments().chunk_by(|one, next| {
        next.first_sample_index >= one.first_sample_index.saturating_add(one.length_samples)
    })
}
