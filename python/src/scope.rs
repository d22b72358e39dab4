//! The scope, drawn to PNG: of a stream that runs, and of columns that Python computed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Graph, QueueOptions, Running, Snapshot};
use grebe_scope::raster::{Axis, Lane, Picture, Theme, Trace};
use grebe_scope::{Column, Coverage};
use grebe_stages::{Cancel, SourceOptions, Uri, open_source};
use grebe_view::{
    LaneId, Loss, PngOptions, ScopeLink, ScopeStage, SourceStatus, ThemeChoice, TriggerOptions, ViewOptions,
    render_png,
};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::PyBytes;

use crate::array::Rows;
use crate::error::{Kind, of_graph, of_stream};
use crate::fork::Own;
use crate::job::{LOOK_EVERY, Patience, Teller, watched};
use crate::opening::opened;
use crate::stream::seconds;
use crate::trigger::slope_of;

/// A stream with a scope behind it, which draws it where it is asked to. `grebe.Scope` stands on it.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct StreamScope {
    uri: String,
    link: ScopeLink,
    look: Look,
    observe: Arc<dyn Fn() -> Snapshot + Send + Sync>,
    graph: Mutex<Option<Own<Graphs>>>,
}

struct Graphs {
    running: Running,
    _telemetry: Option<Telemetry>,
}

/// How it is drawn.
#[derive(Clone, Copy)]
struct Look {
    span_s: Option<f64>,
    theme: ThemeChoice,
    spectrum: bool,
    xy: bool,
    trigger: TriggerOptions,
}

#[pymethods]
impl StreamScope {
    #[new]
    #[pyo3(signature = (uri, *, span=None, level=None, slope="rising", channel=1, spectrum=false, xy=false, dark=true, history=64 << 20, timeout=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        uri: &str,
        span: Option<f64>,
        level: Option<f64>,
        slope: &str,
        channel: usize,
        spectrum: bool,
        xy: bool,
        dark: bool,
        history: usize,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        let parsed: Uri = uri.parse().map_err(|error| of_stream(&error))?;
        if span.is_some_and(|span| !(span > 0.0 && span.is_finite())) {
            return Err(Kind::Usage.error("span: give seconds, more than 0"));
        }
        let slope = slope_of(slope)?;
        let Some(channel) = channel.checked_sub(1) else {
            return Err(Kind::Usage.error("channel=0: channels are counted from 1"));
        };
        let trigger = match level {
            Some(_) => TriggerOptions {
                level,
                slope: Some(slope),
                lane: Some(LaneId::real(channel)),
                ..TriggerOptions::default()
            },
            None => TriggerOptions::default(),
        };
        let theme = if dark { ThemeChoice::Dark } else { ThemeChoice::Light };
        let cancel = Cancel::default();
        // A recording is played at its own rate, so that it can be seen.
        let options = SourceOptions {
            reader: "scope".to_owned(),
            waits: true,
            speed: Some(1.0),
            ends_with_writer: true,
            cancel: cancel.clone(),
            ..SourceOptions::default()
        };
        let timeout = timeout.map(seconds).transpose()?;
        let source = opened(py, &cancel, timeout, move |notify| open_source(&parsed, options, notify))?;
        let (scope, link) = ScopeStage::new(history.max(HISTORY_BYTES_MIN));
        let mut graph = Graph::new();
        let node = graph.add_boxed("source", source.stage);
        let scope = graph.add("scope", scope);
        // A stream is never held up by who looks at it.
        graph.connect(node, scope, QueueOptions::drop_oldest(QUEUE_BATCHES));
        let running = graph.start().map_err(of_graph)?;
        let telemetry = telemetry::publish(&running, "scope").ok();
        Ok(Self {
            uri: uri.to_owned(),
            link,
            look: Look { span_s: span, theme, spectrum, xy, trigger },
            observe: Arc::new(running.observer()),
            graph: Mutex::new(Some(Own::new(Graphs { running, _telemetry: telemetry }))),
        })
    }

    /// The name that the stream was opened by.
    #[getter]
    fn uri(&self) -> &str {
        &self.uri
    }

    /// Whether the stream is over: pictures show the end of it.
    #[getter]
    fn is_ended(&self, py: Python<'_>) -> PyResult<bool> {
        match &*self.graph.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner) {
            Some(graph) => Ok(graph.get()?.running.is_ended()),
            None => Ok(true),
        }
    }

    /// A picture of now, as PNG. Waits for the first sample, for so many seconds.
    #[pyo3(signature = (width=960, height=480, *, timeout=10.0))]
    fn png<'py>(
        &self,
        py: Python<'py>,
        width: u32,
        height: u32,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // What draws waits for a thread that a forked child does not have.
        if let Some(graph) = &*self.graph.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner) {
            graph.get()?;
        }
        let options = PngOptions {
            width,
            height,
            after: Duration::ZERO,
            wait: seconds(timeout)?,
            ..PngOptions::new("")
        };
        let (link, look, observe, name) =
            (self.link.clone(), self.look, self.observe.clone(), self.uri.clone());
        let work = move |_: Teller<()>| {
            let view = ViewOptions {
                span: look.span_s,
                theme: Some(look.theme),
                spectrum: look.spectrum,
                xy: look.xy,
                trigger: look.trigger,
                ..ViewOptions::new(move || status(&observe(), &name))
            };
            let mut drawn = Vec::new();
            let write = |png: &[u8]| {
                drawn.extend_from_slice(png);
                Ok(())
            };
            render_png(&link, view, &options, write).map(|_| drawn)
        };
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let drawn = watched(py, "grebe-draw", &Cancel::default(), patience, work, |()| Ok(()))?;
        match drawn {
            Ok(png) => Ok(PyBytes::new(py, &png)),
            Err(grebe_view::Error::NothingArrived { seconds, .. }) => {
                self.check(py)?;
                Err(Kind::Timeout.error(format!("nothing came from {} for {seconds:.1} s", self.uri)))
            }
            Err(error) => Err(Kind::Usage.error(error.to_string())),
        }
    }

    /// Ends the reception; what was seen can still be drawn.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let graph = self.graph.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let Some(Graphs { running, .. }) = graph.and_then(Own::into_value) else { return Ok(()) };
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let stop = move |_: Teller<()>| running.stop();
        watched(py, "grebe-close", &Cancel::default(), patience, stop, |()| Ok(()))?
            .map(drop)
            .map_err(of_graph)
    }
}

impl StreamScope {
    /// Why the stream ended badly.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let graph = self.graph.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let Some(graph) = &*graph else { return Ok(()) };
        let running = &graph.get()?.running;
        py.detach(|| running.wait_timeout(LOOK_EVERY));
        running.take_error().map_or(Ok(()), |error| Err(of_graph(error)))
    }
}

/// What only the source knows.
fn status(snapshot: &Snapshot, name: &str) -> SourceStatus {
    let source = snapshot.stage("source");
    let own = |name| source.and_then(|source| source.own(name));
    let missing = own("lost_frames").map(|frames| Loss { frames, samples: own("lost_samples").unwrap_or(0) });
    let is_shared_memory = name.starts_with("shm://");
    let queue = snapshot
        .queues
        .first()
        .map(|queue| Loss { frames: queue.dropped_frames, samples: queue.dropped_samples });
    SourceStatus {
        name: name.to_owned(),
        network: missing.filter(|_| !is_shared_memory),
        shared_memory: missing.filter(|_| is_shared_memory),
        queue,
        ..SourceStatus::default()
    }
}

/// A lane: its name, its unit, what it shows, and the values at its lower and upper edge. It shows columns (a row of minima and one of
/// maxima, `float32`, not-a-number where nothing is), or, where the last is true, rows of brightness from 0 to 1, the first at the top.
type LaneOf<'py> = (String, String, Bound<'py, PyAny>, f64, f64, bool);

/// What a lane shows.
enum Content {
    Columns(Vec<Column<f32>>),
    /// Cells per row, and all cells.
    Intensity(usize, Vec<f32>),
}

impl Content {
    fn of(array: &Bound<'_, PyAny>, is_intensity: bool) -> PyResult<Self> {
        let rows = Rows::of(array)?;
        if is_intensity {
            let mut cells = Vec::new();
            for row in 0..rows.channels() {
                cells.extend_from_slice(rows.numbers::<f32>(row)?);
            }
            return Ok(Self::Intensity(cells.len() / rows.channels().max(1), cells));
        }
        if rows.channels() != 2 {
            return Err(Kind::Usage.error("a lane has a row of minima and one of maxima"));
        }
        let pairs = rows.numbers::<f32>(0)?.iter().zip(rows.numbers::<f32>(1)?);
        let column = |(&min, &max): (&f32, &f32)| {
            if min.is_nan() || max.is_nan() {
                return Column { coverage: Coverage::Gap, ..Column::OUTSIDE };
            }
            Column { min, max, coverage: Coverage::Complete }
        };
        Ok(Self::Columns(pairs.map(column).collect()))
    }

    fn trace(&self) -> Trace<'_, f32> {
        match self {
            Self::Columns(columns) => Trace::Columns(columns),
            Self::Intensity(width, cells) => Trace::Intensity { width: *width, cells },
        }
    }
}

/// A picture of lanes over an axis, as PNG.
#[pyfunction]
#[pyo3(signature = (lanes, *, header, start, end, unit, width, height, dark))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn draw_png<'py>(
    py: Python<'py>,
    lanes: Vec<LaneOf<'py>>,
    header: Vec<String>,
    start: f64,
    end: f64,
    unit: &str,
    width: u32,
    height: u32,
    dark: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let contents: Vec<Content> = lanes
        .iter()
        .map(|(_, _, array, _, _, is_intensity)| Content::of(array, *is_intensity))
        .collect::<PyResult<_>>()?;
    let shown: Vec<Lane<'_, f32>> = lanes
        .iter()
        .zip(&contents)
        .map(|((name, unit, _, bottom, top, _), content)| Lane {
            unit,
            ..Lane::new(name, content.trace(), *bottom, *top)
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let theme = if dark { Theme::dark() } else { Theme::light() };
    let picture = Picture {
        header: &header,
        lanes: &shown,
        axis: Axis { start, end, unit },
        ..Picture::new(width, height, theme)
    };
    let png = py.detach(|| picture.draw().and_then(|image| image.to_png()));
    Ok(PyBytes::new(py, &png.map_err(|error| Kind::Usage.error(error.to_string()))?))
}

/// Columns that fill the plot of a picture so many pixels wide.
#[pyfunction]
pub(crate) fn plot_columns(width: u32) -> usize {
    grebe_scope::raster::plot_columns(width)
}

/// 16 MiB of frames: what the scope may be late by before it loses any.
const QUEUE_BATCHES: usize = 256;
const HISTORY_BYTES_MIN: usize = 1 << 20;
