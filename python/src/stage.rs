//! A Python function as a stage of a graph, on its own thread.
//!
//! ```text
//!   batch --> pieces --> function(block) --> arrays, blocks --> frames as long as those that came --> batch
//! ```
//!
//! The stage numbers its output frames. An array continues where the previous one ended, after the gap of its block.
//! A block keeps its place, so samples that the function does not return become a gap.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, RateHz, Site, Stage, StageError,
    StageResult, Workspace, monotonic_ns,
};
use grebe_frame::{Description, FrameWriter, HEADER_BYTES, Header, PushError, SampleFormat};
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::{Rows, from_caller};
use crate::block::Block;
use crate::error::Kind as ErrorKind;
use crate::format;
use crate::pieces::{Piece, Splitter};
use crate::turns::locked;

/// Python's stages of a graph: by name the function for blocks, and the one for the end.
pub(crate) type Functions = HashMap<String, (Py<PyAny>, Option<Py<PyAny>>)>;

/// The exception of a graph's stage.
pub(crate) type Failure = Arc<Mutex<Option<PyErr>>>;

thread_local! {
    /// For the kind, which knows its parameters and nothing else: set while a graph is checked and built.
    static GIVEN: RefCell<Option<(Functions, Failure)>> = const { RefCell::new(None) };
}

/// Makes these functions available to stages that `make` creates in this thread.
pub(crate) fn with_functions<T>(functions: Functions, failure: Failure, make: impl FnOnce() -> T) -> T {
    let before = GIVEN.replace(Some((functions, failure)));
    let made = make();
    drop(GIVEN.replace(before));
    made
}

/// A function or a class of Python's, which is called with every block.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PythonKind {
    /// The name that it was given to the graph by.
    function: String,
    /// Samples per second and channel of the output; default: those of the input.
    rate: Option<RateHz>,
}

impl Kind for PythonKind {
    const NAME: &'static str = "python";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        GIVEN.with(|given| {
            let given = given.borrow();
            let known: Vec<&str> =
                given.iter().flat_map(|(functions, _)| functions.keys()).map(String::as_str).collect();
            if known.contains(&&*self.function) {
                return Ok(());
            }
            let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("the graph has no function '{}'; it has: {there}", self.function);
            Err(Fault::new("function", message))
        })
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(None)
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(None)
    }

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        self.check().map_err(|fault| fault.to_string())?;
        GIVEN.with(|given| {
            let given = given.borrow();
            let Some((functions, failure)) = &*given else { return Err("the graph has no functions".into()) };
            let (process, finish) = Python::attach(|py| {
                let (process, finish) = &functions[&self.function];
                (process.clone_ref(py), finish.as_ref().map(|finish| finish.clone_ref(py)))
            });
            let rate_hz = self.rate.map(|rate| rate.0);
            let stage: Box<dyn Stage> = Box::new(PythonStage::new(process, finish, rate_hz, failure.clone()));
            Ok(stage)
        })
    }
}

struct PythonStage {
    process: Py<PyAny>,
    finish: Option<Py<PyAny>>,
    rate_hz: Option<f64>,
    splitter: Splitter,
    leases: Arc<AtomicUsize>,
    made: VecDeque<Made>,
    writer: Option<FrameWriter>,
    /// The input's description, and the output's.
    described: Option<(Arc<Description>, Arc<Description>)>,
    /// Of the piece that came last.
    last: Option<Header>,
    /// Gap before the next output, from blocks without output.
    owed_missing: u64,
    owes_restart: bool,
    /// It raised `StopIteration`.
    is_done: bool,
    workspace: Workspace,
    failure: Failure,
    counters: Counters,
}

/// Python's output, some of which may have been sent.
struct Made {
    rows: Rows,
    format: SampleFormat,
    samples: usize,
    sent: usize,
    /// Its place among the input samples; a block keeps its place.
    index: Option<u64>,
    /// Samples per channel that are missing before it.
    missing: u64,
    begins_stream: bool,
    of: Header,
    described: Option<Arc<Description>>,
}

impl PythonStage {
    fn new(process: Py<PyAny>, finish: Option<Py<PyAny>>, rate_hz: Option<f64>, failure: Failure) -> Self {
        let leases = Arc::new(AtomicUsize::new(0));
        Self {
            process,
            finish,
            rate_hz,
            splitter: Splitter::new(leases.clone()),
            leases,
            made: VecDeque::new(),
            writer: None,
            described: None,
            last: None,
            owed_missing: 0,
            owes_restart: false,
            is_done: false,
            workspace: Workspace::default(),
            failure,
            counters: Counters::new(&["calls", "copied_blocks"]),
        }
    }

    /// Calls the function with a piece.
    fn call(&mut self, piece: Piece) -> StageResult<()> {
        let header = piece.header;
        self.last = Some(header);
        let (missing, begins_stream, described) =
            (piece.missing.samples(), piece.is_restart, piece.described.clone());
        let is_lent = self.leases.load(Ordering::Relaxed) <= LEASES_MAX;
        self.counters.add(CALLS, 1);
        self.counters.add(COPIED_BLOCKS, u64::from(!is_lent && piece.lies.is_some()));
        let called = attached(|py| {
            let block = match piece.lies.clone().filter(|_| is_lent) {
                Some(lies) => Block::of_lease(piece, lies.start, lies.len()),
                None => Block::copied(py, &piece, 0)?,
            };
            let answer = self.process.bind(py).call1((block,))?;
            let mut made = VecDeque::new();
            take(&answer, header, described, &mut made)?;
            Ok::<_, PyErr>(made)
        });
        let mut made = match called? {
            Err(error) if is_stop_iteration(&error)? => {
                self.is_done = true;
                return Ok(());
            }
            called => called.map_err(|error| self.failed(error))?,
        };
        self.owed_missing += missing;
        self.owes_restart |= begins_stream;
        if let Some(first) = made.front_mut() {
            first.missing = std::mem::take(&mut self.owed_missing);
            first.begins_stream = std::mem::take(&mut self.owes_restart);
        }
        self.made.append(&mut made);
        Ok(())
    }

    /// Sends what Python handed on; whether all of it could be.
    fn send_made(&mut self, output: &mut Outputs, ctx: &Context) -> StageResult<bool> {
        while let Some(made) = self.made.front_mut() {
            let rate_hz = self.rate_hz.unwrap_or(made.of.sample_rate_hz);
            let channels = made.rows.channels() as u32;
            let ratio = self.rate_hz.filter(|_| made.of.sample_rate_hz > 0.0);
            let ratio = ratio.map_or(1.0, |rate_hz| rate_hz / made.of.sample_rate_hz);
            let goes_on = |writer: &FrameWriter| {
                let is_same = (writer.format(), writer.channels()) == (made.format, channels);
                is_same && !std::mem::take(&mut made.begins_stream)
            };
            if !self.writer.as_ref().is_some_and(goes_on) {
                let writer = FrameWriter::new(made.format, channels, rate_hz)?;
                // Joining a stream late is not loss.
                self.writer = Some(writer.starting_at(made.index.map_or(0, |index| scaled(index, ratio))));
                (self.described, made.missing, made.begins_stream) = (None, 0, false);
            }
            let Some(writer) = &mut self.writer else { continue };
            let gap = match made.index.take() {
                Some(index) => scaled(index, ratio).saturating_sub(writer.next_sample_index()),
                None => scaled(made.missing, ratio),
            };
            made.missing = 0;
            if gap > 0 {
                writer.skip(gap);
            }
            let sample_bytes = made.format.bytes() * channels as usize;
            let frame_samples = (made.of.payload_bytes() / sample_bytes).clamp(1, made.samples.max(1));
            let Some(mut batch) = self.workspace.acquire(HEADER_BYTES + frame_samples * sample_bytes, ctx)
            else {
                return Ok(false);
            };
            let described =
                describe(&mut self.described, made.described.as_ref(), writer.next_sample_index());
            batch.describe(described.as_ref());
            while made.sent < made.samples {
                let samples = frame_samples.min(made.samples - made.sent);
                let later_ns = if rate_hz > 0.0 { made.sent as f64 / rate_hz * 1e9 } else { 0.0 };
                let stamp_ns = made.of.producer_ts_ns + later_ns as u64;
                let bytes = made.format.bytes();
                let place = made.sent * bytes..(made.sent + samples) * bytes;
                let fill = |channel: usize, to: &mut [u8]| {
                    to.copy_from_slice(&made.rows.row(channel)[place.clone()]);
                };
                match writer.push_bytes(&mut batch, samples as u32, stamp_ns, fill) {
                    Ok(()) => made.sent += samples,
                    Err(PushError::Full(_)) if !batch.is_empty() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            if !batch.is_empty() {
                output.send(batch.freeze(), ctx);
            }
            if made.sent == made.samples {
                self.made.pop_front();
            }
        }
        Ok(true)
    }

    fn failed(&self, error: PyErr) -> StageError {
        let text = Python::attach(|py| {
            let text = error.to_string();
            // Frees the previous exception without the lock.
            let _before = locked(&self.failure).replace(error.clone_ref(py));
            text
        });
        text.into()
    }
}

impl Stage for PythonStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if !self.send_made(output, ctx)? {
            return Ok(Outcome::Again);
        }
        let Some(piece) = self.splitter.pop() else {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            // Drops of the queue are gaps in the input.
            self.splitter.split(batch, 0);
            return Ok(Outcome::Again);
        };
        self.call(piece)?;
        if self.is_done {
            return Ok(Outcome::End);
        }
        Ok(if self.send_made(output, ctx)? { Outcome::Produced } else { Outcome::Again })
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let (Some(finish), Some(last)) = (&self.finish, self.last.or(Some(Header::default()))) {
            let described = self.described.as_ref().map(|(came, _)| came.clone());
            let called = attached(|py| {
                let mut made = VecDeque::new();
                take(&finish.bind(py).call0()?, last, described, &mut made).map(|()| made)
            });
            let mut made = called?.map_err(|error| self.failed(error))?;
            self.made.append(&mut made);
        }
        let end = Instant::now() + FINISH_MAX;
        while !self.send_made(output, ctx)? {
            if Instant::now() > end {
                return Err("its last output found no memory, so the rest is not sent".into());
            }
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.rate_hz.is_none()
            && let Some(told) = ctx.end_of_stream(None)
        {
            // Drops of the source at its end.
            writer.skip(told.first_sample_index.saturating_sub(writer.next_sample_index()));
        }
        ctx.set_end_of_stream(writer.end(monotonic_ns()));
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        PythonKind::PORTS
    }
}

/// Calls Python, as long as there is one.
fn attached<T>(call: impl FnOnce(Python<'_>) -> T) -> StageResult<T> {
    Python::try_attach(call).ok_or_else(|| "the interpreter has ended".into())
}

/// Whether a function says that it has seen enough.
fn is_stop_iteration(error: &PyErr) -> StageResult<bool> {
    attached(|py| error.is_instance_of::<PyStopIteration>(py))
}

/// The result of a function: None, an array of channels x samples, a block, or several of these.
fn take(
    answer: &Bound<'_, PyAny>,
    of: Header,
    described: Option<Arc<Description>>,
    made: &mut VecDeque<Made>,
) -> PyResult<()> {
    if answer.is_none() {
        return Ok(());
    }
    if answer.is_instance_of::<PyList>() || answer.is_instance_of::<PyTuple>() {
        return answer.try_iter()?.try_for_each(|one| take(&one?, of, described.clone(), made));
    }
    let block = answer.cast::<Block>().ok();
    let array = match block {
        Some(block) => block.getattr("samples")?,
        None => answer.py().import("numpy")?.call_method1("asarray", (answer,))?,
    };
    let kind = array.getattr("dtype")?;
    let format = format::of(&kind).map_err(|_| {
        let advice =
            "there are i8, u8, i16, i32, f32, f64, ci8, cu8, ci16 and cf32, and .astype(\"f4\") converts";
        ErrorKind::Usage.error(format!("it returns {kind}, which is not a sample format: {advice}"))
    })?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let channels = if let [_, _] = *shape { shape[0] } else { 1 };
    let array = from_caller(&array, format, channels)?;
    let rows = Rows::of(&array)?;
    made.push_back(Made {
        samples: rows.row_bytes() / format.bytes(),
        rows,
        format,
        sent: 0,
        index: block.map(|block| block.get().index()),
        missing: 0,
        begins_stream: false,
        of,
        described,
    });
    Ok(())
}

/// A number of samples at the rate that is handed on.
fn scaled(samples: u64, ratio: f64) -> u64 {
    if ratio == 1.0 { samples } else { (samples as f64 * ratio).round() as u64 }
}

/// The description of the output from this sample on: that of the input, moved to the output's position.
fn describe(
    kept: &mut Option<(Arc<Description>, Arc<Description>)>,
    came: Option<&Arc<Description>>,
    first_sample_index: u64,
) -> Option<Arc<Description>> {
    let came = came?;
    if kept.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, came)) {
        *kept = Some((came.clone(), Arc::new(Description { first_sample_index, ..(**came).clone() })));
    }
    kept.as_ref().map(|(_, made)| made.clone())
}

/// The block in use, and one that is kept: a source has memory for no more.
const LEASES_MAX: usize = 2;
const CALLS: usize = 0;
const COPIED_BLOCKS: usize = 1;
/// For what is handed on at the end.
const FINISH_MAX: Duration = Duration::from_secs(5);
