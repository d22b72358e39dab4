//! A stream that Python makes.

use std::sync::Arc;
use std::time::Instant;

use grebe_frame::{Description, FrameWriter, HEADER_BYTES, SampleFormat};
use grebe_recording::RecordOptions;
use grebe_stages::{Cancel, SinkOptions, Uri, open_sink};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{Kind, of_stream};
use crate::filling::Filling;
use crate::opening::opened;
use crate::sending::Sending;
use crate::{format, stream};

/// A stream that is being sent, recorded or lent to other processes, until it is closed.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Publisher(Arc<Sending>);

#[pymethods]
impl Publisher {
    #[new]
    #[pyo3(signature = (uri, *, rate, channels=1, dtype=None, block=None, pace=false, description=None, overwrite=false, timeout=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        uri: &str,
        rate: f64,
        channels: u32,
        dtype: Option<&Bound<'_, PyAny>>,
        block: Option<usize>,
        pace: bool,
        description: Option<&Bound<'_, PyAny>>,
        overwrite: bool,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        let parsed: Uri = uri.parse().map_err(of_stream)?;
        if block == Some(0) {
            return Err(Kind::Usage.error("block=0: give samples per channel, 1 or more"));
        }
        let format = dtype.map_or(Ok(SampleFormat::F32), format::of)?;
        let refused = |refusal| Kind::Usage.error(format!("no receiver accepts such a stream: {refusal}"));
        let writer = FrameWriter::new(format, channels, rate).map_err(refused)?;
        if pace && rate <= 0.0 {
            return Err(Kind::Usage.error("pace needs a rate: samples are sent when they are due"));
        }
        let sample_bytes = channels as usize * format.bytes();
        let frame_bytes = |samples: usize| samples.saturating_mul(sample_bytes).saturating_add(HEADER_BYTES);
        let cancel = Cancel::default();
        let options = SinkOptions {
            lends_pool: true,
            frame_bytes_max: block.map(frame_bytes),
            recording: RecordOptions { overwrite, ..RecordOptions::default() },
            cancel: cancel.clone(),
            ..SinkOptions::default()
        };
        let described = description_of(py, description)?;
        let timeout = timeout.map(stream::seconds).transpose()?;
        let sink = opened(py, &cancel, timeout, move |notify| open_sink(&parsed, &options, notify))?;
        let pace = pace.then(Instant::now);
        Sending::start(uri, writer, rate, block, pace, described, sink).map(|sending| Self(Arc::new(sending)))
    }

    /// The name that the stream was opened by.
    #[getter]
    fn uri(&self) -> &str {
        &self.0.uri
    }

    /// Samples per second and channel.
    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate
    }

    /// Channels.
    #[getter]
    fn channels(&self) -> usize {
        self.0.channels
    }

    /// The format as a ``numpy.dtype``.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        format::dtype(py, self.0.format).cloned()
    }

    /// Maximum samples per channel in a frame: longer writes are split.
    #[getter]
    fn block_samples(&self) -> usize {
        self.0.block
    }

    /// Index of the next sample: how many were sent, those that were dropped included.
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.index(py)
    }

    /// Sends samples, an array of channels x samples in the stream's own format. Waits for room, where readers make it wait.
    fn write(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.write(py, samples)
    }

    /// A block of ``n`` samples to fill: ``with out.block(n) as a: a[:] = ...`` sends it, without a copy if it is in shared
    /// memory.
    fn block(&self, n: usize) -> Filling {
        Filling::new(self.0.clone(), n)
    }

    /// Says that ``n`` samples per channel could not be made in time: readers see a gap that is the source's.
    fn drop(&self, py: Python<'_>, n: u64) -> PyResult<()> {
        self.0.skip(py, n)
    }

    /// Sets the stream's description from the next sample on, with SigMF's keys.
    fn describe(&self, py: Python<'_>, description: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.describe(py, description_of(py, Some(description))?)
    }

    /// Counts so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.0.stats(py)
    }

    /// Ends the stream: sends everything written, and tells its readers. Waits for another thread's write; in a
    /// signal handler, cuts off its own thread's write.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let Sending { uri, format, channels, rate, .. } = &*self.0;
        format!("<Publisher {uri}: {channels} x {format}, {rate} Hz>")
    }
}

/// A description from a Python dict with SigMF's keys.
fn description_of(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Description> {
    let Some(given) = given else { return Ok(Description::default()) };
    let text: String = py.import("json")?.call_method1("dumps", (given,))?.extract()?;
    serde_json::from_str(&text)
        .map_err(|error| Kind::Usage.error(format!("the description cannot be read: {error}")))
}
