//! A publisher's stream: what its writes take turns at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Graph, Offer, QueueOptions, QueueSender, Running, UtcClock, monotonic_ns};
use grebe_frame::{
    Batch, BatchMut, BatchPool, Description, FrameWriter, HEADER_BYTES, PushError, SampleFormat,
};
use grebe_ring::Signal;
use grebe_stages::OpenSink;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Rows, from_caller};
use crate::error::{Kind, of_graph};
use crate::feed::{End, feed};
use crate::fork::Own;
use crate::job::LOOK_EVERY;
use crate::sole::Filled;
use crate::turns::{Turns, locked};

/// A stream that is being sent, recorded or lent to other processes, until it is closed.
pub(crate) struct Sending {
    pub(crate) uri: String,
    pub(crate) format: SampleFormat,
    pub(crate) channels: usize,
    pub(crate) rate: f64,
    pub(crate) block: usize,
    /// Whether a block may be filled where it will be read.
    fills_in_place: bool,
    /// Serializes writes: a write of one thread is undivided, though signal handlers may run during it.
    turns: Turns<()>,
    out: Mutex<Option<Own<Out>>>,
    graph: Turns<Option<Own<Graphs>>>,
    /// Batches being filled in place, and filled ones of which Python still has an array.
    pub(crate) filled: Arc<AtomicUsize>,
    copied_blocks: AtomicU64,
}

/// The sink, which one thread at a time uses, without running Python.
struct Out {
    writer: FrameWriter,
    pool: BatchPool,
    queue: QueueSender,
    /// Woken when the queue has room, or a chunk is free.
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
    Closed,
    /// The graph has ended, for a reason that it will tell.
    Ended,
    Frame(PushError),
}

/// Rows that are being sent.
struct Writing<'a> {
    rows: &'a Rows,
    /// Samples of each row that are in a batch.
    done: usize,
    open: Option<BatchMut>,
    full: Option<Batch>,
}

impl Sending {
    /// Starts the graph that takes what `writer` makes to the sink.
    pub(crate) fn start(
        uri: &str,
        writer: FrameWriter,
        rate: f64,
        block: Option<usize>,
        pace: Option<Instant>,
        description: Description,
        sink: OpenSink,
    ) -> PyResult<Self> {
        let (format, channels) = (writer.format(), writer.channels() as usize);
        let sample_bytes = channels * format.bytes();
        let fills_in_place = sink.pool.is_some();
        // Size of a frame: a chunk in shared memory, else a datagram.
        let (mut pool, fits) = match sink.pool {
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
        pool.wake_on_return(signal.clone());
        let (queue, feed, end) = feed(QueueOptions::block(QUEUE_BATCHES), signal.clone());
        let mut graph = Graph::new();
        let source = graph.add("python", feed);
        let node = graph.add_boxed(SINK, sink.stage);
        graph.fuse(source, node);
        let running = graph.start().map_err(of_graph)?;
        let telemetry = telemetry::publish(&running, "python").ok();
        let out = Out { writer, pool, queue, signal, clock: UtcClock::default(), description, pace, end };
        Ok(Self {
            uri: uri.to_owned(),
            format,
            channels,
            rate,
            block: block.unwrap_or(fits).clamp(1, fits),
            fills_in_place,
            turns: Turns::new(()),
            out: Mutex::new(Some(Own::new(out))),
            graph: Turns::new(Some(Own::new(Graphs { running, _telemetry: telemetry }))),
            filled: Arc::default(),
            copied_blocks: AtomicU64::new(0),
        })
    }

    pub(crate) fn index(&self, py: Python<'_>) -> PyResult<u64> {
        // Not in the midst of another thread's write; a signal handler may ask in that of its own.
        let _turn = self.turns.lock_unless_mine(py)?;
        let index = self.with_out(|out| Ok(out.writer.next_sample_index()));
        index.map_err(|refused| self.why(py, refused))
    }

    pub(crate) fn write(&self, py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = from_caller(samples, self.format, self.channels)?;
        let rows = Rows::of(&array)?;
        let mut writing = Writing { rows: &rows, done: 0, open: None, full: None };
        let _turn = self.turns.lock(py)?;
        self.in_steps(py, |out| writing.step(out, self.block, self.rate))
    }

    pub(crate) fn skip(&self, py: Python<'_>, n: u64) -> PyResult<()> {
        let _turn = self.turns.lock(py)?;
        let index = self.with_out(|out| {
            let index = out.writer.next_sample_index();
            let can_be = index.checked_add(n).is_some_and(|after| after <= INDEX_MAX);
            if can_be {
                out.writer.skip(n);
            }
            Ok((!can_be).then_some(index))
        });
        match index.map_err(|refused| self.why(py, refused))? {
            None => Ok(()),
            Some(index) => {
                let message = format!("drop({n}) after {index} samples: a stream has {INDEX_MAX} at most");
                Err(Kind::Usage.error(message))
            }
        }
    }

    pub(crate) fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        stats.set_item("copied_blocks", self.copied_blocks.load(Ordering::Relaxed))?;
        let snapshot = match &*self.graph.lock(py)? {
            Some(graph) => graph.get()?.running.snapshot(),
            None => return Ok(stats),
        };
        if let Some(sink) = snapshot.stage(SINK) {
            stats.set_item("samples", sink.samples_in)?;
            stats.set_item("frames", sink.frames_in)?;
            let own = sink.own.iter().map(|(name, count)| (&**name, *count));
            stats.set_item("sender", own.collect::<BTreeMap<&str, u64>>())?;
        }
        Ok(stats)
    }

    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let turn = self.turns.lock_unless_mine(py)?;
        let out = locked(&self.out).take();
        if let Some(mut out) = out {
            let out = out.get_mut()?;
            out.end.set(out.writer.end(monotonic_ns()));
        }
        drop(turn);
        // The end of the queue is gone with it.
        loop {
            let is_over = {
                let graph = self.graph.lock(py)?;
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
        let graph = self.graph.lock(py)?.take();
        // Its threads have ended.
        py.detach(|| drop(graph));
        error.map_or(Ok(()), Err)
    }

    pub(crate) fn describe(&self, py: Python<'_>, description: Description) -> PyResult<()> {
        let _turn = self.turns.lock(py)?;
        let described = self.with_out(|out| {
            let clock = out.description.clock;
            let first_sample_index = out.writer.next_sample_index();
            out.description = Description { first_sample_index, clock, ..description };
            out.pool.describe(Some(Arc::new(out.description.clone())));
            Ok(())
        });
        described.map_err(|refused| self.why(py, refused))
    }

    /// Whether a block of `samples` may be filled where it will be read.
    pub(crate) fn fills_in_place(&self, samples: usize) -> bool {
        self.fills_in_place && (1..=self.block).contains(&samples)
    }

    /// Whether another batch may be filled in place: Python may keep only a few arrays of the stream's memory.
    pub(crate) fn spares_a_batch(&self) -> bool {
        self.filled.load(Ordering::Relaxed) < FILLED_MAX
    }

    /// Counts a block that could not be sent as it lies.
    pub(crate) fn count_copied(&self) {
        self.copied_blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// An empty batch to be filled in place.
    pub(crate) fn acquire(&self, py: Python<'_>) -> PyResult<BatchMut> {
        let _turn = self.turns.lock(py)?;
        self.in_steps(py, Out::acquire)
    }

    /// Sends a block filled in place; returns false, and sends nothing, if another object can still write to it.
    pub(crate) fn send_filled(&self, py: Python<'_>, filled: &Filled, samples: usize) -> PyResult<bool> {
        let _turn = self.turns.lock(py)?;
        let stamp_ns = self.in_steps(py, |out| out.due(samples, self.rate))?;
        if !filled.is_sole(py)? {
            return Ok(false);
        }
        let frozen = self.with_out(|out| {
            let push = |batch: &mut BatchMut| {
                batch.describe(out.pool.description());
                out.writer.push_bytes(batch, samples as u32, stamp_ns, |_, _| {})
            };
            filled.memory.get().freeze(push).map_err(Refused::Frame)
        });
        let Some(batch) = frozen.map_err(|refused| self.why(py, refused))? else {
            return Err(Kind::General.error("the block was sent already"));
        };
        let mut batch = Some(batch);
        self.in_steps(py, |out| out.send(&mut batch))?;
        Ok(true)
    }

    /// Takes steps, each a moment long, until one has a result; between them signal handlers may run, and use the
    /// publisher.
    fn in_steps<T: Send>(
        &self,
        py: Python<'_>,
        mut step: impl FnMut(&mut Out) -> Result<Option<T>, Refused> + Send,
    ) -> PyResult<T> {
        loop {
            let stepped = py.detach(|| self.with_out(&mut step));
            if let Some(done) = stepped.map_err(|refused| self.why(py, refused))? {
                return Ok(done);
            }
            py.check_signals()?;
        }
    }

    /// Runs no Python, so it is short.
    fn with_out<T>(&self, act: impl FnOnce(&mut Out) -> Result<T, Refused>) -> Result<T, Refused> {
        match &mut *locked(&self.out) {
            // A thread with a turn is not in a forked child.
            Some(out) => out.get_mut().map_err(|_| Refused::Closed).and_then(act),
            None => Err(Refused::Closed),
        }
    }

    #[cold]
    fn why(&self, py: Python<'_>, refused: Refused) -> PyErr {
        match refused {
            Refused::Closed => Kind::General.error(format!("{} was closed", self.uri)),
            Refused::Frame(error) => Kind::General.error(error.to_string()),
            Refused::Ended => match self.error(py) {
                Ok(Some(error)) | Err(error) => error,
                Ok(None) => Kind::General.error(format!("{} has ended", self.uri)),
            },
        }
    }

    /// How the graph ended badly.
    fn error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let graph = self.graph.lock(py)?;
        let Some(graph) = &*graph else { return Ok(None) };
        let running = &graph.get()?.running;
        // Its queue closes a moment before the reason stands there.
        py.detach(|| running.wait_timeout(Duration::from_secs(1)));
        Ok(running.take_error().map(of_graph))
    }
}

impl<'a> Writing<'a> {
    /// Sends samples of all rows, in frames of at most `block` samples, as far as there is room.
    fn step(&mut self, out: &mut Out, block: usize, rate: f64) -> Result<Option<()>, Refused> {
        let sample_bytes = out.writer.format().bytes();
        let samples = self.rows.row_bytes() / sample_bytes;
        loop {
            if self.full.is_some() && out.send(&mut self.full)?.is_none() {
                return Ok(None);
            }
            if self.done == samples {
                self.full = self.open.take().map(BatchMut::freeze);
                if self.full.is_none() {
                    return Ok(Some(()));
                }
                continue;
            }
            let length = block.min(samples - self.done);
            let Some(stamp_ns) = out.due(length, rate)? else { return Ok(None) };
            let mut batch = match self.open.take() {
                Some(batch) => batch,
                None => match out.acquire()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            let place = self.done * sample_bytes..(self.done + length) * sample_bytes;
            let rows = self.rows;
            let fill = |channel: usize, to: &mut [u8]| to.copy_from_slice(&rows.row(channel)[place.clone()]);
            match out.writer.push_bytes(&mut batch, length as u32, stamp_ns, fill) {
                Ok(()) => {
                    self.done += length;
                    self.open = Some(batch);
                }
                Err(PushError::Full(_)) if !batch.is_empty() => self.full = Some(batch.freeze()),
                Err(error) => return Err(Refused::Frame(error)),
            }
        }
    }
}

impl Out {
    /// The stamp of the next samples once they are due, where the stream is paced.
    fn due(&mut self, samples: usize, rate: f64) -> Result<Option<u64>, Refused> {
        if let Some(began) = self.pace {
            let seconds = (self.writer.next_sample_index() + samples as u64) as f64 / rate;
            let due = began + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4);
            let left = due.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(LOOK_EVERY));
            if left > LOOK_EVERY {
                return Ok(None);
            }
        }
        let now_ns = monotonic_ns();
        if let Some(reading) = self.clock.renewed(now_ns) {
            self.description.clock = Some(reading);
            self.pool.describe(Some(Arc::new(self.description.clone())));
        }
        Ok(Some(now_ns))
    }

    /// A batch, as soon as one is free.
    fn acquire(&mut self) -> Result<Option<BatchMut>, Refused> {
        if let Some(batch) = self.pool.acquire() {
            return Ok(Some(batch));
        }
        if self.queue.is_closed() {
            return Err(Refused::Ended);
        }
        let (pool, queue) = (&self.pool, &self.queue);
        self.signal.wait(LOOK_EVERY, || pool.has_free() || queue.is_closed());
        Ok(self.pool.acquire())
    }

    /// Hands on what is offered, as soon as there is room.
    fn send(&mut self, offered: &mut Option<Batch>) -> Result<Option<()>, Refused> {
        let Some(batch) = offered.take() else { return Ok(Some(())) };
        match self.queue.offer(batch) {
            Offer::Queued | Offer::Dropped => Ok(Some(())),
            Offer::Closed => Err(Refused::Ended),
            Offer::Full(batch) => {
                *offered = Some(batch);
                self.queue.wait(LOOK_EVERY, || false);
                Ok(None)
            }
        }
    }
}

const SINK: &str = "sender";
/// Batches that wait for the sink, including the one being sent.
const QUEUE_BATCHES: usize = 2;
/// Chunks for a sink without its own memory: being filled, waiting, and held by the sink.
const POOL_CHUNKS: usize = 8;
const CHUNK_BYTES: usize = 64 << 10;
/// Samples, so that each channel of a frame begins at a multiple of 64 bytes.
const ALIGN: usize = 64;
/// Maximum batches of shared memory that Python may hold, including those kept only by arrays. The producer's own
/// pool holds twice as many; the queue and the sink need the other half.
const FILLED_MAX: usize = 3;
/// Where a stream ends at the latest, in samples per channel: far from where its index would begin again.
const INDEX_MAX: u64 = i64::MAX as u64;
