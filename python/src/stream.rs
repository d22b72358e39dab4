//! A stream that Python reads by block or by number of samples.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Graph, Policy, QueueOptions, Running};
use grebe_stages::{Cancel, OpenSource, SourceOptions, Uri, open_source};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::block::Block;
use crate::error::{Kind, of_graph, of_stream};
use crate::exact::{Exact, Gaps, Step};
use crate::fork::Own;
use crate::job::LOOK_EVERY;
use crate::opening::opened;
use crate::pieces::Piece;
use crate::reader::Reader;
use crate::turns::Turns;

/// A stream that its own threads receive, until it is closed or garbage-collected.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct Stream {
    uri: String,
    /// Where a UDP stream is listened for.
    address: Option<String>,
    state: Turns<State>,
    graph: Turns<Option<Own<Graphs>>>,
    /// Batches that Python has, and how many it may have before it gets copies.
    leases: Arc<AtomicUsize>,
    leases_max: usize,
    copies: bool,
    copied_blocks: AtomicU64,
    blocks: AtomicU64,
    has_warned: AtomicBool,
    timeout: Option<Duration>,
}

/// The reader of one thread at a time.
struct State {
    reader: Reader,
    exact: Exact,
}

/// The receiving threads, and their entry in `grebe top`.
struct Graphs {
    running: Running,
    _telemetry: Option<Telemetry>,
}

/// The next output.
enum Next {
    Piece(Piece),
    Block(Block),
    Nothing,
    End,
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (uri, *, timeout=None, copy=false, policy=None, wait=false, samples=None, speed=None, repeat=false, name=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        uri: &str,
        timeout: Option<f64>,
        copy: bool,
        policy: Option<&str>,
        wait: bool,
        samples: Option<u64>,
        speed: Option<f64>,
        repeat: bool,
        name: Option<String>,
    ) -> PyResult<Self> {
        let parsed: Uri = uri.parse().map_err(of_stream)?;
        let policy = policy_of(policy, &parsed)?;
        let timeout = timeout.map(seconds).transpose()?;
        let cancel = Cancel::default();
        let options = SourceOptions {
            reader: name.unwrap_or_else(|| "python".to_owned()),
            policy,
            waits: wait,
            samples,
            speed,
            repeat,
            ends_with_writer: true,
            cancel: cancel.clone(),
            ..SourceOptions::default()
        };
        let source = opened(py, &cancel, timeout, move |notify| open_source(&parsed, options, notify))?;
        Self::start(uri, source, policy, timeout, copy)
    }

    /// The name that the stream was opened by.
    #[getter]
    fn uri(&self) -> &str {
        &self.uri
    }

    /// Where a UDP stream is listened for, as ``"127.0.0.1:5000"``; ``None`` for others.
    #[getter]
    fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Block>> {
        let began = Instant::now();
        loop {
            let next = self.next(py)?;
            match next {
                Next::Nothing => self.wait(py, LOOK_EVERY, began, self.timeout)?,
                next => return self.hand_out(py, next),
            }
        }
    }

    /// The next block; ``None`` if none has arrived. Raises ``StopIteration`` at the end.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Block>> {
        match self.next(py)? {
            Next::Nothing => Ok(None),
            next => match self.hand_out(py, next)? {
                Some(block) => Ok(Some(block)),
                None => Err(pyo3::exceptions::PyStopIteration::new_err(())),
            },
        }
    }

    /// Copies of the next blocks, which are not taken: waits a moment for the first.
    fn _peek(&self, py: Python<'_>, blocks: usize) -> PyResult<Vec<Block>> {
        let mut state = self.state.lock(py)?;
        py.detach(|| state.reader.wait(PEEK_TIMEOUT))?;
        state.reader.peek(blocks)?.map(|piece| Block::copied(py, piece, 0)).collect()
    }

    /// Waits until there is a block or the end, up to `timeout` seconds. Returns whether there is.
    fn _wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = seconds(timeout)?;
        let state = self.state.lock(py)?;
        py.detach(|| state.reader.wait(timeout))
    }

    /// The next ``n`` samples of all channels as a new array, channels x n. Fewer at the end of the stream or before
    /// another one, and none after that.
    #[pyo3(signature = (n, *, gaps="raise", timeout=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        gaps: &str,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let gaps: Gaps = gaps.parse()?;
        let timeout = timeout.map(seconds).transpose()?.or(self.timeout);
        let began = Instant::now();
        loop {
            let step = {
                let mut state = self.state.lock(py)?;
                let State { reader, exact } = &mut *state;
                exact.step(py, reader, n, gaps)?
            };
            match step {
                Step::Whole(array) => return Ok(array),
                Step::Wants => self.wait(py, LOOK_EVERY, began, timeout)?,
                Step::Ended(array) => {
                    self.check_end(py)?;
                    return Ok(array);
                }
            }
        }
    }

    /// Counts so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (samples, missing, counts) = {
            let state = self.state.lock(py)?;
            (state.reader.samples, state.reader.missing(), state.reader.counts())
        };
        let stats = PyDict::new(py);
        stats.set_item("blocks", self.blocks.load(Ordering::Relaxed))?;
        stats.set_item("samples", samples)?;
        stats.set_item("missing_source", missing.source)?;
        stats.set_item("missing_transit", missing.transit)?;
        stats.set_item("missing_reader", missing.reader)?;
        stats.set_item("streams", counts.streams)?;
        stats.set_item("copied_blocks", self.copied_blocks.load(Ordering::Relaxed))?;
        stats.set_item("leases", self.leases.load(Ordering::Relaxed))?;
        stats.set_item("leases_max", self.leases_max)?;
        let snapshot = match &*self.graph.lock(py)? {
            Some(graph) => Some(graph.get()?.running.snapshot()),
            None => None,
        };
        let source: BTreeMap<&str, u64> = snapshot
            .iter()
            .flat_map(|all| all.stage(SOURCE))
            .flat_map(|stage| stage.own.iter().map(|(name, count)| (&**name, *count)))
            .collect();
        stats.set_item("receiver", source)?;
        Ok(stats)
    }

    /// Ends the reception. Blocks that were handed out stay good.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.state.is_foreign() {
            return Ok(());
        }
        {
            let State { reader, .. } = &mut *self.state.lock(py)?;
            py.detach(|| reader.close());
        }
        let graph = self.graph.lock(py)?.take();
        let Some(mut graph) = graph else { return Ok(()) };
        if let Ok(here) = graph.get_mut() {
            // Readers got its errors already.
            py.detach(|| here.running.wait_timeout(CLOSE_TIMEOUT));
        }
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<Stream {}>", self.uri)
    }
}

impl Stream {
    fn start(
        uri: &str,
        source: OpenSource,
        policy: Policy,
        timeout: Option<Duration>,
        copies: bool,
    ) -> PyResult<Self> {
        let address = source.address.map(|address| address.to_string());
        // A source with its own memory can fill the queue, of which Python may keep a part. The producer limits the
        // memory of a shared stream: half of it for Python, a quarter in the queue, the rest waits there. That producer
        // drops by the policy, so a dropping queue would lose batches for which the memory has room.
        let (leases_max, queue) = match source.lent_max {
            None => {
                let capacity = QueueOptions::block(QUEUE_BATCHES + LEASES_MAX).bytes(QUEUE_BYTES);
                (LEASES_MAX, QueueOptions { policy, ..capacity })
            }
            Some(lent) => {
                ((lent / 2).clamp(1, LEASES_MAX), QueueOptions::block((lent / 4).clamp(2, QUEUE_BATCHES)))
            }
        };
        let mut graph = Graph::new();
        let node = graph.add_boxed(SOURCE, source.stage);
        let batches = graph.connect_async(node, "python", queue);
        let running = graph.start().map_err(of_graph)?;
        let telemetry = telemetry::publish(&running, "python").ok();
        let leases = Arc::new(AtomicUsize::new(0));
        Ok(Self {
            uri: uri.to_owned(),
            address,
            state: Turns::new(State {
                reader: Reader::new(batches, leases.clone()),
                exact: Exact::default(),
            }),
            graph: Turns::new(Some(Own::new(Graphs { running, _telemetry: telemetry }))),
            leases,
            leases_max,
            copies,
            copied_blocks: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            has_warned: AtomicBool::new(false),
            timeout,
        })
    }

    fn next(&self, py: Python<'_>) -> PyResult<Next> {
        let mut state = self.state.lock(py)?;
        let State { reader, exact } = &mut *state;
        if let Some(block) = exact.take_rest(py)? {
            return Ok(Next::Block(block));
        }
        if let Some(piece) = reader.take()? {
            return Ok(Next::Piece(piece));
        }
        Ok(if reader.is_ended()? { Next::End } else { Next::Nothing })
    }

    /// Without the lock: a warning, or an object that is freed, may run any Python.
    fn hand_out(&self, py: Python<'_>, next: Next) -> PyResult<Option<Block>> {
        let block = match next {
            Next::Block(block) => block,
            Next::Piece(piece) => self.block(py, piece)?,
            Next::Nothing => return Ok(None),
            Next::End => {
                self.check_end(py)?;
                return Ok(None);
            }
        };
        self.blocks.fetch_add(1, Ordering::Relaxed);
        Ok(Some(block))
    }

    fn block(&self, py: Python<'_>, piece: Piece) -> PyResult<Block> {
        let is_over = self.leases.load(Ordering::Relaxed) > self.leases_max;
        match piece.lies.clone().filter(|_| !self.copies && !is_over) {
            Some(lies) => Ok(Block::of_lease(piece, lies.start, lies.len())),
            None => {
                if is_over && !self.copies && piece.lies.is_some() {
                    self.copied_blocks.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = self.warn_of_leases(py) {
                        // Warnings that are errors lose no samples.
                        self.state.lock(py)?.reader.put_back(piece);
                        return Err(error);
                    }
                }
                Block::copied(py, &piece, 0)
            }
        }
    }

    #[cold]
    fn warn_of_leases(&self, py: Python<'_>) -> PyResult<()> {
        if self.has_warned.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let category = py.import("grebe._errors")?.getattr("LeaseWarning")?;
        let text = format!(
            "{} blocks of {} are kept, each with memory that its stream needs: from now on blocks are copied while so many are \
             kept. Keep block.copy() instead of the block or its samples, or open the stream with copy=True",
            self.leases_max, self.uri
        );
        let text = std::ffi::CString::new(text).unwrap_or_default();
        PyErr::warn(py, &category, &text, 2)
    }

    /// Waits for a while, in which a signal may come, and a timeout pass.
    fn wait(
        &self,
        py: Python<'_>,
        slice: Duration,
        began: Instant,
        timeout: Option<Duration>,
    ) -> PyResult<()> {
        let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
        let slice = left.map_or(slice, |left| left.min(slice));
        let is_there = {
            let state = self.state.lock(py)?;
            py.detach(|| state.reader.wait(slice))?
        };
        py.check_signals()?;
        if !is_there && let (Some(timeout), Some(Duration::ZERO)) = (timeout, left) {
            return Err(Kind::Timeout.error(format!("nothing came from {} for {timeout:?}", self.uri)));
        }
        Ok(())
    }

    /// Tells how the stream ended, once, where that was an error.
    #[cold]
    fn check_end(&self, py: Python<'_>) -> PyResult<()> {
        let graph = self.graph.lock(py)?;
        let Some(graph) = &*graph else { return Ok(()) };
        let running = &graph.get()?.running;
        py.detach(|| running.wait_timeout(CLOSE_TIMEOUT));
        running.take_error().map_or(Ok(()), |error| Err(of_graph(error)))
    }
}

/// Policy for slow Python code: a recording waits, a live stream drops.
fn policy_of(named: Option<&str>, uri: &Uri) -> PyResult<Policy> {
    if let Uri::Shm(shm) = uri
        && let Some(policy) = shm.policy
    {
        return Ok(policy);
    }
    match (named, uri) {
        (Some(named), _) => named.parse().map_err(|error| Kind::Usage.error(format!("policy: {error}"))),
        (None, _) if uri.traits().is_live => Ok(Policy::DropOldest),
        (None, _) => Ok(Policy::Block),
    }
}

pub(crate) fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Kind::Usage.error(format!("a timeout is {seconds}: give seconds, 0 or more")))
}

const SOURCE: &str = "receiver";
/// Of 64 KiB each, as sources make them.
const QUEUE_BATCHES: usize = 128;
const QUEUE_BYTES: usize = QUEUE_BATCHES << 16;
/// Batches that Python may keep.
const LEASES_MAX: usize = 64;
const PEEK_TIMEOUT: Duration = Duration::from_millis(500);
/// Longer than a source takes to see that nobody reads any more.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
