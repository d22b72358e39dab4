//! A common line of time for several recordings.

use std::time::{Duration, SystemTime};

use super::axis::streams;
use super::{SampleFile, Segment, axis};
use crate::error::Error;

/// Alignment of samples of several recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alignment {
    /// Aligns samples by their times in the files: by the clock of a host if all use the same one
    /// (`grebe:axis`), else in UTC (`core:datetime`).
    #[default]
    Time,
    /// Aligns samples at equal distance from the first sample of each file.
    Start,
    /// Aligns samples of equal stream index: for recorders that share a clock and count alike.
    Index,
}

/// Begins of a recording's segments, in samples of its own rate since the earliest sample of all recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timeline {
    pub(crate) begins: Vec<u64>,
    /// Whether a time steps back within the file: a later sample has an earlier time.
    pub(crate) steps_back: bool,
}

impl Timeline {
    /// One for each file.
    ///
    /// # Errors
    /// [`Error::Field`] if the files lack the data for the alignment.
    pub(crate) fn of(files: &[SampleFile], alignment: Alignment) -> Result<Vec<Self>, Error> {
        let first_of = |file: &SampleFile| file.segments()[0].first_sample_index;
        match alignment {
            Alignment::Start => Ok(files.iter().map(|file| Self::place(file, |_, _| None)).collect()),
            Alignment::Index => {
                same_rate(files)?;
                let origin = files.iter().map(first_of).min().unwrap_or(0);
                let place =
                    |file| Self::place(file, |stream, _| (stream == 0).then(|| first_of(file) - origin));
                Ok(files.iter().map(place).collect())
            }
            Alignment::Time => {
                let clock = axis::common_clock(files);
                let began = files.iter().map(|file| began(file, clock)).collect::<Result<Vec<_>, _>>()?;
                let origin_ns = began.into_iter().min().unwrap_or_default();
                let place = |file: &SampleFile| {
                    Self::place(file, |_, stream| {
                        let since_ns = stream_began(file, stream, clock)? - origin_ns;
                        let since = Duration::from_nanos(since_ns.try_into().unwrap_or_default());
                        Some(samples_in(since, file.rate_hz()?))
                    })
                };
                Ok(files.iter().map(place).collect())
            }
        }
    }

    /// `begin_of` gives the begin of a stream of the file, by its number and segments; `None`: directly after
    /// the previous one.
    fn place(file: &SampleFile, begin_of: impl Fn(usize, &[Segment]) -> Option<u64>) -> Self {
        let (mut begins, mut end, mut steps_back) = (Vec::new(), 0u64, false);
        for (number, stream) in streams(file).enumerate() {
            let wanted = begin_of(number, stream).unwrap_or(end);
            steps_back |= wanted < end;
            let begin = wanted.max(end);
            for segment in stream {
                let since = segment.first_sample_index - stream[0].first_sample_index;
                begins.push(begin.saturating_add(since));
                end = begin.saturating_add(since).saturating_add(segment.length_samples);
            }
        }
        Self { begins, steps_back }
    }

    /// Place of a sample of its file.
    pub(crate) fn of_position(&self, file: &SampleFile, position: u64) -> u64 {
        let number = file.segments().partition_point(|segment| segment.position <= position).max(1) - 1;
        self.begins[number] + (position - file.segments()[number].position)
    }
}

/// When the first sample of a file was made, as [`stream_began`] says.
fn began(file: &SampleFile, clock: Option<u64>) -> Result<i128, Error> {
    let field = |what: &str| Error::Field { path: file.name().into(), what: what.to_owned() };
    if file.rate_hz().is_none() {
        return Err(field("its sample rate is unknown, and alignment by time needs it"));
    }
    let first = streams(file).next().and_then(|stream| stream_began(file, stream, clock));
    first.ok_or_else(|| field("its recording time is unknown (core:datetime): align by start, or by index"))
}

/// When the first sample of a stream was made, in nanoseconds: by this clock, or in UTC by the first segment that says so, and by the
/// index from there, which is exact where a time is that of an arrival.
fn stream_began(file: &SampleFile, stream: &[Segment], clock: Option<u64>) -> Option<i128> {
    if let Some(clock) = clock {
        return axis::stream_began(file, stream, clock).map(|axis| axis.ns.into());
    }
    let (recorded_at, index) =
        stream.iter().find_map(|segment| Some((segment.recorded_at?, segment.first_sample_index)))?;
    let since_s = (index - stream[0].first_sample_index) as f64 / file.rate_hz()?;
    let began = recorded_at.checked_sub(Duration::try_from_secs_f64(since_s).ok()?)?;
    Some(match began.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    })
}

/// How many samples come in a time.
pub(crate) fn samples_in(time: Duration, rate_hz: f64) -> u64 {
    (time.as_secs_f64() * rate_hz).round() as u64
}

/// Refuses recordings whose samples cannot be counted alike.
pub(super) fn same_rate(files: &[SampleFile]) -> Result<(), Error> {
    match files.iter().find(|file| file.rate_hz() != files[0].rate_hz()) {
        None => Ok(()),
        Some(other) => Err(Error::Field {
            path: other.name().into(),
            what: format!(
                "its rate is {} Hz, and that of {} is {} Hz",
                other.rate_hz().unwrap_or(0.0),
                files[0].name().display(),
                files[0].rate_hz().unwrap_or(0.0)
            ),
        }),
    }
}
