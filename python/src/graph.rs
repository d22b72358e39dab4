//! Graphs of stages, as files describe them, some stages of which may be functions of Python's.

use std::path::Path;
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Error, GraphFile, Kinds, Running};
use grebe_stages::Cancel;
use pyo3::prelude::*;

use crate::error::{Kind, kind, words};
use crate::fork::Own;
use crate::job::{LOOK_EVERY, Patience, Teller, watched};
use crate::opening::log;
use crate::stage::{Failure, Functions, PythonKind, with_functions};
use crate::stream::seconds;
use crate::turns::{Turns, locked};

/// A graph that runs, until it ends or is stopped. `grebe.Running` stands on it.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct RunningGraph {
    running: Turns<Option<Own<Graphs>>>,
    observe: Box<dyn Fn() -> grebe_flow::Snapshot + Send + Sync>,
    failure: Failure,
}

struct Graphs {
    running: Running,
    _telemetry: Option<Telemetry>,
}

/// The normalised text of a graph file. The error lists all mistakes at once.
#[pyfunction]
pub(crate) fn check_graph(text: &str, origin: &str, functions: Functions) -> PyResult<String> {
    let parsed = with_functions(functions, Failure::default(), || parse(text, origin));
    parsed.map(|file| file.to_toml()).map_err(|error| error_of(error, &Failure::default()))
}

#[pymethods]
impl RunningGraph {
    /// Makes the stages and starts them; what a person should know becomes records of the logger `grebe`.
    #[new]
    fn new(py: Python<'_>, text: String, origin: String, name: &str, functions: Functions) -> PyResult<Self> {
        let (cancel, failure) = (Cancel::default(), Failure::default());
        let work = {
            let (cancel, failure) = (cancel.clone(), failure.clone());
            move |teller: Teller<String>| {
                with_functions(functions, failure, || {
                    let file = parse(&text, &origin)?;
                    file.check_memory()?;
                    let graph = file.build(&kinds(), &cancel, &mut |note| teller.tell(note))?;
                    graph.start()
                })
            }
        };
        let patience = Patience { timeout: None, after_cancel: Duration::from_secs(2) };
        let running = watched(py, "grebe-graph", &cancel, patience, work, |note| log(py, "info", &note))?;
        let running = running.map_err(|error| error_of(error, &failure))?;
        let telemetry = telemetry::publish(&running, name).ok();
        let observe = Box::new(running.observer());
        let running = Turns::new(Some(Own::new(Graphs { running, _telemetry: telemetry })));
        Ok(Self { running, observe, failure })
    }

    /// All counters, as JSON.
    fn _counters(&self) -> PyResult<String> {
        serde_json::to_string(&(self.observe)()).map_err(|error| Kind::General.error(error.to_string()))
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
                let graph = self.running.lock(py)?;
                let Some(graph) = &*graph else { return Ok(true) };
                let running = &graph.get()?.running;
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
        if self.running.is_foreign() {
            return Ok(());
        }
        let graph = self.running.lock(py)?.take();
        let Some(graph) = graph else { return Ok(()) };
        let Some(Graphs { running, _telemetry: telemetry }) = graph.into_value() else { return Ok(()) };
        // A second Ctrl-C leaves it to itself.
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let work = move |_: Teller<()>| {
            let closed = how(running);
            drop(telemetry);
            closed
        };
        let closed = watched(py, "grebe-close", &Cancel::default(), patience, work, |()| Ok(()))?;
        closed.map(drop).map_err(|error| error_of(error, &self.failure))
    }
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
