//! A recording, any part of which can be read.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use grebe_frame::SampleFormat;
use grebe_recording::{Error, Extremes, SampleFile, SummarizedFile, Summary, SummaryState};
use pyo3::prelude::*;

use crate::array::{Rows, empty};
use crate::block::as_dict;
use crate::envelope::{Envelope, is_exact};
use crate::error::{Kind, of_stream};
use crate::format::dtype;
use crate::job::LOOK_EVERY;
use crate::turns::locked;

/// A recording that is open for reading. `grebe.Recording` stands on it.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct Recording {
    path: PathBuf,
    format: SampleFormat,
    channels: usize,
    len_samples: u64,
    rate_hz: f64,
    file: Mutex<SampleFile>,
}

/// Where a stretch without a gap begins in the file, how long it is, the index of its first sample in the stream, and
/// when that was made, in nanoseconds since 1970.
type Segment = (u64, u64, u64, Option<i64>);

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = py.detach(|| SampleFile::open(&path)).map_err(of_stream)?;
        Ok(Self {
            format: file.format(),
            channels: file.channels(),
            len_samples: file.len_samples(),
            rate_hz: file.rate_hz().unwrap_or(0.0),
            file: Mutex::new(file),
            path,
        })
    }

    /// The file that was opened.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Samples per second and channel; 0 where the file does not say.
    #[getter]
    fn rate(&self) -> f64 {
        self.rate_hz
    }

    /// Channels.
    #[getter]
    fn channels(&self) -> usize {
        self.channels
    }

    /// The name of the format: ``"i16"``, ``"cf32"``, ...
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name()
    }

    /// The format as a ``numpy.dtype``.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype(py, self.format).cloned()
    }

    /// Notices about reading the file, a line each.
    #[getter]
    fn notes(&self, py: Python<'_>) -> Vec<String> {
        self.file(py, |file| file.notes().to_vec())
    }

    /// The file's description of its samples from this position on, with SigMF's keys.
    #[pyo3(signature = (position=0))]
    fn description<'py>(&self, py: Python<'py>, position: u64) -> PyResult<Bound<'py, PyAny>> {
        let description = self.file(py, |file| file.description(position).cloned());
        as_dict(py, description.as_deref())
    }

    fn _segments(&self, py: Python<'_>) -> Vec<Segment> {
        let ns = |time: std::time::SystemTime| {
            i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
        };
        let segment = |it: &grebe_recording::Segment| {
            (it.position, it.length_samples, it.first_sample_index, it.recorded_at.and_then(ns))
        };
        self.file(py, |file| file.segments().iter().map(segment).collect())
    }

    /// Position, length, and the file's annotation as JSON.
    fn _annotations(&self, py: Python<'_>) -> Vec<(u64, u64, String)> {
        self.file(py, |file| {
            let annotations = file.annotations().iter();
            // Maps with keys that are strings: none of it can fail.
            let text = |fields| serde_json::to_string(fields).unwrap_or_default();
            annotations.map(|it| (it.position, it.length_samples, text(&it.fields))).collect()
        })
    }

    /// The samples from ``start`` up to ``stop`` of all channels, as an array of its own.
    fn read<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<Bound<'py, PyAny>> {
        if start > stop || stop > self.len_samples {
            let message = format!(
                "{start}..{stop} does not lie within the {} samples of the recording",
                self.len_samples
            );
            return Err(Kind::Usage.error(message));
        }
        let samples = (stop - start) as usize;
        let array = empty(py, self.format, self.channels, samples)?;
        let mut rows = Rows::of(&array)?;
        let sample_bytes = self.format.bytes();
        let read = py.detach(|| {
            let mut file = locked(&self.file);
            // As much at a time as the file's window holds, which would grow else.
            let step = (WINDOW_BYTES / (sample_bytes * self.channels)).max(1);
            for done in (0..samples).step_by(step) {
                let length = step.min(samples - done);
                let block = file.block(start + done as u64, length)?;
                for channel in 0..self.channels {
                    let to = &mut rows.row_mut(channel)[done * sample_bytes..(done + length) * sample_bytes];
                    to.copy_from_slice(block.channel_bytes(channel)?);
                }
            }
            Ok::<(), Error>(())
        });
        read.map_err(of_stream)?;
        Ok(array)
    }

    /// Makes the summary of the recording, beside it or in the user's cache, unless it exists or the recording is
    /// small. Pictures and envelopes of any part are then immediate. Takes as long as the disk needs to read the
    /// recording.
    fn summarize(&self, py: Python<'_>) -> PyResult<()> {
        let file = py.detach(|| SummarizedFile::open(&self.path)).map_err(of_stream)?;
        loop {
            match file.state() {
                SummaryState::Whole => return Ok(()),
                SummaryState::Failed(why) => return Err(Kind::General.error(why)),
                SummaryState::Making => py.detach(|| std::thread::sleep(LOOK_EVERY)),
            }
            py.check_signals()?;
        }
    }

    /// The extremes between each of these places and the next, lanes x (columns x 2), from the summary; ``None``
    /// without a summary, or if it would not be exact.
    fn _known_extremes<'py>(&self, py: Python<'py>, bounds: Vec<u64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !is_exact(self.format)
            || !bounds.is_sorted()
            || bounds.last().is_none_or(|&last| last > self.len_samples)
        {
            return Ok(None);
        }
        let found = py.detach(|| Summary::find(&self.path, &mut locked(&self.file)));
        let Some(summary) = found else { return Ok(None) };
        let lanes = self.channels * self.format.components();
        let array = empty(py, SampleFormat::F32, lanes, (bounds.len() - 1) * 2)?;
        let mut rows = Rows::of(&array)?;
        let zero = if self.format == SampleFormat::Cu8 { CU8_ZERO } else { 0.0 };
        let read = py.detach(|| {
            let mut file = locked(&self.file);
            let mut envelope = Envelope::new(&mut file, &summary);
            for lane in 0..lanes {
                let pairs = rows.row_mut(lane).as_chunks_mut::<8>().0;
                for (places, pair) in bounds.windows(2).zip(pairs) {
                    let Extremes { min, max } = envelope.extremes(lane, places[0]..places[1])?;
                    let [min, max] = if min > max { [f32::NAN; 2] } else { [min + zero, max + zero] };
                    pair[..4].copy_from_slice(&min.to_ne_bytes());
                    pair[4..].copy_from_slice(&max.to_ne_bytes());
                }
            }
            Ok::<(), Error>(())
        });
        read.map_err(of_stream)?;
        Ok(Some(array))
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.len_samples).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        let Self { path, channels, len_samples, format, rate_hz, .. } = self;
        format!("<Recording {}: {channels} x {len_samples} {format}, {rate_hz} Hz>", path.display())
    }
}

impl Recording {
    /// Looks at what is known of the file, while no Python runs.
    fn file<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&SampleFile) -> T + Send) -> T {
        py.detach(|| look(&locked(&self.file)))
    }
}

/// Offset between numbers around zero and samples of cu8.
const CU8_ZERO: f32 = 127.5;
/// Size of a recording's window.
const WINDOW_BYTES: usize = 1 << 20;
