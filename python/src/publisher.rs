//! A stream that Python makes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Graph, Offer, QueueOptions, QueueSender, Running, UtcClock, monotonic_ns};
use grebe_frame::{
    Batch, BatchMut, BatchPool, Description, FrameWriter, HEADER_BYTES, PushError, SampleFormat,
};
use grebe_ring::Signal;
use grebe_stages::{Cancel, SinkOptions, Uri, open_sink};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Rows, from_caller};
use crate::error::{Kind, of_graph, of_stream};
use crate::feed::{End, feed};
use crate::filling::Filling;
use crate::fork::Own;
use crate::job::LOOK_EVERY;
use crate::opening::opened;
use crate::{format, stream};

/// A stream that is being sent, recorded or lent to other processes, until it is closed.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Publisher {
    uri: String,
    pub(crate) format: SampleFormat,
    pub(crate) channels: usize,
    rate: f64,
    block: usize,
    /// Whether a block may be filled where it will be read.
    fills_in_place: bool,
    out: Mutex<Option<Own<Out>>>,
    graph: Mutex<Option<Own<Graphs>>>,
}

/// What one thread at a time writes to.
struct Out {
    writer: FrameWriter,
    pool: BatchPool,
    queue: QueueSender,
    /// Woken where there is room in the queue, or a chunk.
    signal: Arc<Signal>,
    clock: UtcClock,
    description: Description,
    pace: Option<Instant>,
    end: End,
}

struct Graphs {
    running: Running,
    _telemetry: Option<Telemetry>,
}

/// Why a batch could not be had or handed on.
enum Refused {
    /// The graph has ended, for a reason that it will tell.
    Ended,
    /// What a signal raised.
    Signal(PyErr),
    Frame(PushError),
}

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
        let parsed: Uri = uri.parse().map_err(|error| of_stream(&error))?;
        let format = dtype.map_or(Ok(SampleFormat::F32), format::of)?;
        let refused = |refusal| Kind::Usage.error(format!("no receiver takes such a stream: {refusal}"));
        let writer = FrameWriter::new(format, channels, rate).map_err(refused)?;
        if pace && rate <= 0.0 {
            return Err(Kind::Usage.error("pace needs a rate: samples are sent when they are due"));
        }
        let channels = channels as usize;
        let sample_bytes = channels * format.bytes();
        let frame_bytes = |samples: usize| samples.saturating_mul(sample_bytes).saturating_add(HEADER_BYTES);
        let cancel = Cancel::default();
        let is_shm = matches!(parsed, Uri::Shm(_));
        let options = SinkOptions {
            lends_pool: true,
            frame_bytes_max: block.map(frame_bytes),
            overwrite,
            cancel: cancel.clone(),
            ..SinkOptions::default()
        };
        let described = description_of(py, description)?;
        let timeout = timeout.map(stream::seconds).transpose()?;
        let sink = opened(py, &cancel, timeout, move |notify| open_sink(&parsed, &options, notify))?;
        // What a frame holds: in shared memory a chunk, else a datagram.
        let (pool, fits) = match sink.pool {
            Some(pool) => {
                let bytes = pool.chunk_bytes();
                (pool, bytes)
            }
            None => (BatchPool::new(POOL_CHUNKS, CHUNK_BYTES), sink.datagram_bytes.min(CHUNK_BYTES)),
        };
        let fits = (fits - HEADER_BYTES) / sample_bytes;
        let fits = if fits > ALIGN { fits - fits % ALIGN } else { fits };
        if fits == 0 {
            return Err(
                Kind::Usage.error(format!("a frame holds no sample of {channels} channels of {format}"))
            );
        }
        let signal = Arc::new(Signal::new());
        let mut pool = pool;
        pool.wake_on_return(signal.clone());
        let (queue, feed, end) = feed(QueueOptions::block(QUEUE_BATCHES), signal.clone());
        let mut graph = Graph::new();
        let source = graph.add("python", feed);
        let node = graph.add_boxed(SINK, sink.stage);
        graph.fuse(source, node);
        let running = graph.start().map_err(of_graph)?;
        let telemetry = telemetry::publish(&running, "python").ok();
        let out = Out {
            writer,
            pool,
            queue,
            signal,
            clock: UtcClock::default(),
            description: described,
            pace: pace.then(Instant::now),
            end,
        };
        Ok(Self {
            uri: uri.to_owned(),
            format,
            channels,
            rate,
            block: block.unwrap_or(fits).clamp(1, fits),
            fills_in_place: is_shm,
            out: Mutex::new(Some(Own::new(out))),
            graph: Mutex::new(Some(Own::new(Graphs { running, _telemetry: telemetry }))),
        })
    }

    /// The name that the stream was opened by.
    #[getter]
    fn uri(&self) -> &str {
        &self.uri
    }

    /// Samples per second and channel.
    #[getter]
    fn rate(&self) -> f64 {
        self.rate
    }

    /// Channels.
    #[getter]
    fn channels(&self) -> usize {
        self.channels
    }

    /// The format as a ``numpy.dtype``.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        format::dtype(py, self.format).cloned()
    }

    /// Samples per channel that a frame holds at most: what is written is sent in such pieces.
    #[getter]
    fn block_samples(&self) -> usize {
        self.block
    }

    /// Index of the next sample: how many were sent, those that were dropped included.
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_out(py, |_, out| Ok(out.writer.next_sample_index()))
    }

    /// Sends samples, an array of channels x samples in the stream's own format. Waits for room, where readers make it wait.
    fn write(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = from_caller(samples, self.format, self.channels)?;
        let rows = Rows::of(&array)?;
        self.with_out(py, |py, out| {
            let sent = py.detach(|| out.send_rows(&rows, self.block, self.rate));
            sent.map_err(|refused| self.why(py, refused))
        })
    }

    /// A block of ``n`` samples to be filled: ``with out.block(n) as a: a[:] = ...`` sends it, without a copy where it lies in shared
    /// memory.
    fn block(slf: Bound<'_, Self>, n: usize) -> PyResult<Filling> {
        let is_in_place = slf.get().fills_in_place && (1..=slf.get().block).contains(&n);
        Ok(Filling::new(slf.unbind(), n, is_in_place))
    }

    /// Says that ``n`` samples per channel could not be made in time: readers see a gap that is the source's.
    fn drop(&self, py: Python<'_>, n: u64) -> PyResult<()> {
        self.with_out(py, |_, out| {
            out.writer.skip(n);
            Ok(())
        })
    }

    /// Says what the stream is from the next sample on, with SigMF's keys.
    fn describe(&self, py: Python<'_>, description: &Bound<'_, PyAny>) -> PyResult<()> {
        let description = description_of(py, Some(description))?;
        self.with_out(py, |_, out| {
            let clock = out.description.clock;
            let first_sample_index = out.writer.next_sample_index();
            out.description = Description { first_sample_index, clock, ..description };
            out.pool.describe(Some(Arc::new(out.description.clone())));
            Ok(())
        })
    }

    /// What was counted until now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        let graph = lock(py, &self.graph);
        let Some(graph) = &*graph else { return Ok(stats) };
        let snapshot = graph.get()?.running.snapshot();
        if let Some(sink) = snapshot.stage(SINK) {
            stats.set_item("samples", sink.samples_in)?;
            stats.set_item("frames", sink.frames_in)?;
            let own = sink.own.iter().map(|(name, count)| (&**name, *count));
            stats.set_item("sender", own.collect::<BTreeMap<&str, u64>>())?;
        }
        Ok(stats)
    }

    /// Ends the stream: what was written is sent, and its readers learn of the end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let out = lock(py, &self.out).take();
        if let Some(mut out) = out {
            let out = out.get_mut()?;
            out.end.set(out.writer.end(monotonic_ns()));
        }
        // The end of the queue is gone with it.
        loop {
            let is_over = {
                let graph = lock(py, &self.graph);
                let Some(graph) = &*graph else { return Ok(()) };
                let running = &graph.get()?.running;
                py.detach(|| running.wait_timeout(LOOK_EVERY))
            };
            if is_over {
                break;
            }
            py.check_signals()?;
        }
        let error = self.error(py)?;
        let graph = lock(py, &self.graph).take();
        // Its threads have ended.
        py.detach(|| drop(graph));
        error.map_or(Ok(()), Err)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<Publisher {}: {} x {}, {} Hz>", self.uri, self.channels, self.format, self.rate)
    }
}

impl Publisher {
    /// An empty batch to be filled in place.
    pub(crate) fn acquire(&self, py: Python<'_>) -> PyResult<BatchMut> {
        self.with_out(py, |py, out| py.detach(|| out.acquire()).map_err(|refused| self.why(py, refused)))
    }

    /// Sends a batch whose first frame was filled in place; what is kept of it.
    pub(crate) fn send_filled(&self, py: Python<'_>, mut batch: BatchMut, samples: usize) -> PyResult<Batch> {
        self.with_out(py, |py, out| {
            let sent = py.detach(|| {
                let stamp_ns = out.due(samples, self.rate)?;
                batch.describe(out.pool.description());
                out.writer
                    .push_bytes(&mut batch, samples as u32, stamp_ns, |_, _| {})
                    .map_err(Refused::Frame)?;
                let batch = batch.freeze();
                out.send(batch.clone()).map(|()| batch)
            });
            sent.map_err(|refused| self.why(py, refused))
        })
    }

    fn with_out<T>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(Python<'_>, &mut Out) -> PyResult<T>,
    ) -> PyResult<T> {
        match &mut *lock(py, &self.out) {
            Some(out) => act(py, out.get_mut()?),
            None => Err(Kind::General.error(format!("{} was closed", self.uri))),
        }
    }

    #[cold]
    fn why(&self, py: Python<'_>, refused: Refused) -> PyErr {
        match refused {
            Refused::Signal(error) => error,
            Refused::Frame(error) => Kind::General.error(error.to_string()),
            Refused::Ended => match self.error(py) {
                Ok(Some(error)) | Err(error) => error,
                Ok(None) => Kind::General.error(format!("{} has ended", self.uri)),
            },
        }
    }

    /// How the graph ended badly.
    fn error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        match &*lock(py, &self.graph) {
            Some(graph) => {
                let running = &graph.get()?.running;
                // Its queue closes a moment before the reason stands there.
                py.detach(|| running.wait_timeout(Duration::from_secs(1)));
                Ok(running.take_error().map(of_graph))
            }
            None => Ok(None),
        }
    }
}

impl Out {
    /// The samples of all rows, in frames of at most `block` samples.
    fn send_rows(&mut self, rows: &Rows, block: usize, rate: f64) -> Result<(), Refused> {
        let sample_bytes = self.writer.format().bytes();
        let (mut done, samples) = (0, rows.row_bytes() / sample_bytes);
        let mut open: Option<BatchMut> = None;
        while done < samples {
            let length = block.min(samples - done);
            let stamp_ns = self.due(length, rate)?;
            let mut batch = match open.take() {
                Some(batch) => batch,
                None => self.acquire()?,
            };
            let place = done * sample_bytes..(done + length) * sample_bytes;
            let fill = |channel: usize, to: &mut [u8]| to.copy_from_slice(&rows.row(channel)[place.clone()]);
            match self.writer.push_bytes(&mut batch, length as u32, stamp_ns, fill) {
                Ok(()) => {
                    done += length;
                    open = Some(batch);
                }
                Err(PushError::Full(_)) if !batch.is_empty() => self.send(batch.freeze())?,
                Err(error) => return Err(Refused::Frame(error)),
            }
        }
        open.map_or(Ok(()), |batch| self.send(batch.freeze()))
    }

    /// Waits until the next samples are due, where the stream is paced; their stamp.
    fn due(&mut self, samples: usize, rate: f64) -> Result<u64, Refused> {
        if let Some(began) = self.pace {
            let seconds = (self.writer.next_sample_index() + samples as u64) as f64 / rate;
            let due = began + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4);
            loop {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(LOOK_EVERY));
                check_signals()?;
            }
        }
        let now_ns = monotonic_ns();
        if let Some(reading) = self.clock.renewed(now_ns) {
            self.description.clock = Some(reading);
            self.pool.describe(Some(Arc::new(self.description.clone())));
        }
        Ok(now_ns)
    }

    fn acquire(&mut self) -> Result<BatchMut, Refused> {
        loop {
            if let Some(batch) = self.pool.acquire() {
                return Ok(batch);
            }
            if self.queue.is_closed() {
                return Err(Refused::Ended);
            }
            let (pool, queue) = (&self.pool, &self.queue);
            if !self.signal.wait(LOOK_EVERY, || pool.has_free() || queue.is_closed()) {
                check_signals()?;
            }
        }
    }

    fn send(&mut self, batch: Batch) -> Result<(), Refused> {
        let mut offered = batch;
        loop {
            match self.queue.offer(offered) {
                Offer::Queued | Offer::Dropped => return Ok(()),
                Offer::Closed => return Err(Refused::Ended),
                Offer::Full(batch) => {
                    self.queue.wait(LOOK_EVERY, || false);
                    check_signals()?;
                    offered = batch;
                }
            }
        }
    }
}

fn check_signals() -> Result<(), Refused> {
    Python::attach(|py| py.check_signals()).map_err(Refused::Signal)
}

fn lock<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A description from what Python has: a dict with SigMF's keys.
fn description_of(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Description> {
    let Some(given) = given else { return Ok(Description::default()) };
    let text: String = py.import("json")?.call_method1("dumps", (given,))?.extract()?;
    serde_json::from_str(&text)
        .map_err(|error| Kind::Usage.error(format!("the description cannot be read: {error}")))
}

const SINK: &str = "sender";
/// What waits for the sink; the first of them is being sent.
const QUEUE_BATCHES: usize = 2;
/// Where the sink has no memory of its own: what is in hand, what waits, and what the sink keeps.
const POOL_CHUNKS: usize = 8;
const CHUNK_BYTES: usize = 64 << 10;
/// Samples, so that each channel of a frame begins at a multiple of 64 bytes.
const ALIGN: usize = 64;
