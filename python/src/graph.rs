//! Graphs of stages, as files describe them, some stages of which may be functions of Python's.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Error, GraphFile, Kinds, Running};
use grebe_stages::Cancel;
use pyo3::prelude::*;

use crate::error::{Kind, kind, words};
use crate::fork::{Alive, Own};
use crate::job::{LOOK_EVERY, Patience, Teller, watched};
use crate::opening::log;
use crate::stage::{Failure, Functions, PythonKind, with_functions};
use crate::stream::seconds;
use crate::turns::{Turns, locked};

/// A graph that runs from `_start` on, until it ends or is stopped. `grebe.Running` stands on it.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct RunningGraph {
    graph: Turns<Option<Own<Started>>>,
    observe: OnceLock<Box<dyn Fn() -> grebe_flow::Snapshot + Send + Sync>>,
    failure: Failure,
}

/// A graph whose threads may call Python. Dropping it stops it, and waits: never where this thread has the interpreter.
struct Started {
    running: Option<Running>,
    _telemetry: Option<Telemetry>,
    _alive: Alive,
}

/// The normalised text of a graph file. The error lists all mistakes at once.
#[pyfunction]
pub(crate) fn check_graph(text: &str, origin: &str, functions: Functions) -> PyResult<String> {
    let parsed = with_functions(functions, Failure::default(), || parse(text, origin));
    parsed.map(|file| file.to_toml()).map_err(|error| error_of(error, &Failure::default()))
}

#[pymethods]
impl RunningGraph {
    #[new]
    fn new() -> Self {
        Self { graph: Turns::new(None), observe: OnceLock::new(), failure: Failure::default() }
    }

    /// Makes the stages and starts them, once; what a person should know becomes records of the logger `grebe`.
    fn _start(
        &self,
        py: Python<'_>,
        text: String,
        origin: String,
        name: String,
        functions: Functions,
    ) -> PyResult<()> {
        let (cancel, failure, alive) = (Cancel::default(), self.failure.clone(), Alive::new());
        let work = {
            let cancel = cancel.clone();
            move |teller: Teller<String>| {
                let running = with_functions(functions, failure, || {
                    let file = parse(&text, &origin)?;
                    file.check_memory()?;
                    let graph = file.build(&kinds(), &cancel, &mut |note| teller.tell(note))?;
                    graph.start()
                })?;
                let telemetry = telemetry::publish(&running, &name).ok();
                let observe = Box::new(running.observer());
                let started = Started { running: Some(running), _telemetry: telemetry, _alive: alive };
                Ok::<_, Error>((Own::new(started), observe))
            }
        };
        let patience = Patience { timeout: None, after_cancel: Duration::from_secs(2) };
        let started = watched(py, "grebe-graph", &cancel, patience, work, |note| log(py, "info", &note))?;
        let (started, observe) = started.map_err(|error| error_of(error, &self.failure))?;
        // Nobody else has it yet, so this cannot wait, nor run a signal handler first.
        *self.graph.lock(py)? = Some(started);
        let _ = self.observe.set(observe);
        Ok(())
    }

    /// All counters, as JSON.
    fn _counters(&self) -> PyResult<String> {
        let observe =
            self.observe.get().ok_or_else(|| Kind::General.error("the graph has not been started"))?;
        serde_json::to_string(&observe()).map_err(|error| Kind::General.error(error.to_string()))
    }

    /// Waits until every stage has ended, up to `timeout` seconds. Returns whether they have. Raises no error of the
    /// graph.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = timeout.map(seconds).transpose()?;
        let began = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            let slice = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            {
                let graph = self.graph.lock(py)?;
                let Some(graph) = &*graph else { return Ok(true) };
                let Some(running) = &graph.get()?.running else { return Ok(true) };
                if py.detach(|| running.wait_timeout(slice)) {
                    return Ok(true);
                }
            }
            py.check_signals()?;
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    /// Stops: sources end, what is queued is drained, and every stage ends.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.close(py, Running::stop)
    }

    /// Waits until every stage has ended by itself.
    fn join(&self, py: Python<'_>) -> PyResult<()> {
        self.wait(py, None)?;
        self.close(py, Running::wait)
    }
}

impl RunningGraph {
    fn close(
        &self,
        py: Python<'_>,
        how: impl FnOnce(Running) -> Result<grebe_flow::Snapshot, Error> + Send + 'static,
    ) -> PyResult<()> {
        if self.graph.is_foreign() {
            return Ok(());
        }
        let Some(graph) = self.graph.lock(py)?.take() else { return Ok(()) };
        let Some(mut started) = graph.into_value() else { return Ok(()) };
        // A second Ctrl-C leaves it to itself.
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let work =
            move |_: Teller<()>| started.running.take().map_or(Ok(()), |running| how(running).map(drop));
        let closed = watched(py, "grebe-close", &Cancel::default(), patience, work, |()| Ok(()))?;
        closed.map_err(|error| error_of(error, &self.failure))
    }
}

impl Drop for RunningGraph {
    fn drop(&mut self) {
        // The thread that frees it has the interpreter, and may run a stage of this very graph.
        if !self.graph.is_foreign()
            && let Some(graph) = self.graph.get_mut().take()
        {
            let _ = std::thread::Builder::new().name("grebe-close".to_owned()).spawn(|| drop(graph));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.stop();
        }
    }
}

/// Waits for the ends of the graphs that were stopped or freed: a thread that calls Python as the interpreter ends would
/// abort the process.
#[pyfunction]
pub(crate) fn wait_for_graphs(py: Python<'_>) -> PyResult<()> {
    while Alive::is_any() {
        py.detach(|| std::thread::sleep(LOOK_AT_END_EVERY));
        py.check_signals()?;
    }
    Ok(())
}

fn parse(text: &str, origin: &str) -> Result<GraphFile, Error> {
    Ok(GraphFile::parse(text, Path::new(origin), &kinds())?)
}

fn kinds() -> Kinds {
    let mut kinds = grebe_stages::kinds();
    kinds.add::<PythonKind>();
    kinds
}

/// With the stage's name, and the function's exception as the cause.
#[cold]
fn error_of(error: Error, failure: &Failure) -> PyErr {
    let told = match &error {
        Error::Mistakes(mistakes) => Kind::Usage.error(format!("\n{}", mistakes.render(false))),
        Error::Stage { stage, source } => kind(&**source).error(format!("{stage}: {}", words(&**source))),
        error => Kind::General.error(words(error)),
    };
    let cause = locked(failure).take();
    if cause.is_some() {
        Python::attach(|py| told.set_cause(py, cause));
    }
    told
}

const LOOK_AT_END_EVERY: Duration = Duration::from_millis(5);
