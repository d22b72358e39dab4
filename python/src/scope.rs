//! The scope, drawn to PNG: of a stream that runs here or is served elsewhere, and of columns that Python computed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grebe_flow::telemetry::{self, Publisher as Telemetry};
use grebe_flow::{Graph, QueueOptions, Running, Snapshot};
use grebe_scope::raster::{Axis, Lane, Picture, Theme, Trace};
use grebe_scope::{Column, Coverage};
use grebe_serve::{RemoteViewer, ServerAddress, connect};
use grebe_stages::{Cancel, SourceOptions, Uri, open_source};
use grebe_view::{
    ChannelSetup, InitialView, LaneId, Loss, PngOptions, ScopeLink, ScopeStage, SourceStatus, ThemeChoice,
    TriggerOptions, ViewOptions, render_png,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Rows;
use crate::error::{Kind, of_graph, of_stream};
use crate::fork::Own;
use crate::job::{LOOK_EVERY, Patience, Teller, watched};
use crate::opening::opened;
use crate::stream::seconds;
use crate::trigger::slope_of;
use crate::turns::{Turns, locked};

/// A stream with a scope, which draws it on request. The base of `grebe.Scope`.
#[pyclass(frozen, subclass, module = "grebe")]
pub(crate) struct StreamScope {
    /// Without the token.
    name: String,
    link: ScopeLink,
    settings: ScopeSettings,
    channels: Vec<ChannelSetup>,
    status: Status,
    /// The page for a browser, if it is served.
    page: Option<String>,
    /// Whether the last picture was of a stream that is over.
    is_ended: Arc<AtomicBool>,
    behind: Turns<Option<Own<Behind>>>,
}

type Status = Arc<dyn Fn() -> SourceStatus + Send + Sync>;

/// Where the pictures are made.
enum Behind {
    /// Here.
    Graph { running: Running, _telemetry: Option<Telemetry> },
    /// At a server.
    Far(RemoteViewer),
}

/// How it is drawn.
#[derive(Clone, Copy)]
struct ScopeSettings {
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
        let settings = ScopeSettings { span_s: span, theme, spectrum, xy, trigger };
        let timeout = timeout.map(seconds).transpose()?;
        if uri.starts_with("serve://") {
            return Self::remote(py, uri, settings, timeout);
        }
        let parsed: Uri = uri.parse().map_err(of_stream)?;
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
        let source = opened(py, &cancel, timeout, move |notify| open_source(&parsed, options, notify))?;
        let (scope, link) = ScopeStage::new(history.max(HISTORY_BYTES_MIN));
        let mut graph = Graph::new();
        let node = graph.add_boxed("source", source.stage);
        let scope = graph.add("scope", scope);
        // A stream is never held up by who looks at it.
        graph.connect(node, scope, QueueOptions::drop_oldest(QUEUE_BATCHES));
        let running = graph.start().map_err(of_graph)?;
        let telemetry = telemetry::publish(&running, "scope").ok();
        let (observe, name) = (running.observer(), uri.to_owned());
        Ok(Self {
            name: uri.to_owned(),
            link,
            settings,
            channels: Vec::new(),
            status: Arc::new(move || status(&observe(), &name)),
            page: None,
            is_ended: Arc::default(),
            behind: Turns::new(Some(Own::new(Behind::Graph { running, _telemetry: telemetry }))),
        })
    }

    /// The name that the stream was opened by; of one that is served, without the token.
    #[getter]
    fn uri(&self) -> &str {
        &self.name
    }

    /// The link for a browser, with its token, where the stream is served.
    #[getter]
    fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Whether the stream is over: pictures show the end of it.
    #[getter]
    fn is_ended(&self, py: Python<'_>) -> PyResult<bool> {
        let behind = self.behind.lock(py)?;
        let Some(behind) = &*behind else { return Ok(true) };
        Ok(match behind.get()? {
            Behind::Graph { running, .. } => running.is_ended(),
            Behind::Far(_) => self.is_ended.load(Ordering::Acquire),
        })
    }

    /// A picture of the present, as PNG. Waits up to `timeout` seconds for the first sample.
    #[pyo3(signature = (width=960, height=480, *, timeout=10.0))]
    fn png<'py>(
        &self,
        py: Python<'py>,
        width: u32,
        height: u32,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // Drawing needs a thread that a forked child does not have.
        if let Some(behind) = &*self.behind.lock(py)? {
            behind.get()?;
        }
        let options = PngOptions {
            width,
            height,
            after: Duration::ZERO,
            wait: seconds(timeout)?,
            ..PngOptions::new("")
        };
        let (link, settings, status, channels) =
            (self.link.clone(), self.settings, self.status.clone(), self.channels.clone());
        let work = move |_: Teller<()>| {
            let initial = InitialView {
                span: settings.span_s,
                theme: Some(settings.theme),
                spectrum: settings.spectrum,
                xy: settings.xy,
                trigger: settings.trigger,
                channels,
                ..InitialView::default()
            };
            let view = ViewOptions { initial, ..ViewOptions::new(move || status()) };
            let mut drawn = Vec::new();
            let write = |png: &[u8]| {
                drawn.extend_from_slice(png);
                Ok(())
            };
            render_png(&link, view, &options, write).map(|it| (drawn, it.picture.is_ended))
        };
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let drawn = watched(py, "grebe-draw", &Cancel::default(), patience, work, |()| Ok(()))?;
        match drawn {
            Ok((png, is_ended)) => {
                self.is_ended.store(is_ended, Ordering::Release);
                Ok(PyBytes::new(py, &png))
            }
            Err(grebe_view::Error::NothingArrived { seconds, .. }) => {
                self.check(py)?;
                let why = (self.status)().notice.map(|why| format!(": {why}")).unwrap_or_default();
                Err(Kind::Timeout.error(format!("nothing came from {} for {seconds:.1} s{why}", self.name)))
            }
            Err(error) => Err(Kind::Usage.error(error.to_string())),
        }
    }

    /// Ends the reception; received samples can still be drawn.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.behind.is_foreign() {
            return Ok(());
        }
        let behind = self.behind.lock(py)?.take();
        let Some(behind) = behind.and_then(Own::into_value) else { return Ok(()) };
        let patience = Patience { timeout: None, after_cancel: Duration::ZERO };
        let link = self.link.clone();
        let stop = move |_: Teller<()>| match behind {
            Behind::Graph { running, .. } => running.stop().map(drop),
            Behind::Far(viewer) => {
                link.close();
                drop(viewer);
                Ok(())
            }
        };
        watched(py, "grebe-close", &Cancel::default(), patience, stop, |()| Ok(()))?.map_err(of_graph)
    }
}

impl StreamScope {
    /// The scope of a stream that is served.
    fn remote(
        py: Python<'_>,
        uri: &str,
        settings: ScopeSettings,
        timeout: Option<Duration>,
    ) -> PyResult<Self> {
        let address: ServerAddress = uri.parse().map_err(|why: String| {
            // The given link contains a token.
            Kind::Usage.error(format!("invalid link of grebe serve: {why}"))
        })?;
        let cancel = Cancel::default();
        let page = address.page();
        let name = match address.source() {
            1 => format!("serve://{}", address.place()),
            source => format!("serve://{}?source={source}", address.place()),
        };
        let patience = Patience { timeout, after_cancel: Duration::ZERO };
        let asked = cancel.clone();
        let work = move |_: Teller<()>| {
            connect(&address, concat!("grebe for Python ", env!("CARGO_PKG_VERSION")), PICTURES_PER_S, || {
                asked.is_cancelled()
            })
        };
        let connected = watched(py, "grebe-open", &cancel, patience, work, |()| Ok(()))?;
        let (link, mut viewer) = connected.map_err(|error| {
            let kind = match error {
                grebe_serve::Error::Connect { .. } => Kind::Gone,
                _ => Kind::General,
            };
            kind.error(error.to_string())
        })?;
        let channels = viewer.channels().iter().map(|it| ChannelSetup {
            name: it.name.clone(),
            unit: it.unit.clone(),
            scale: it.scale,
            offset: it.offset,
            ..ChannelSetup::default()
        });
        let channels = channels.collect();
        let told = Mutex::new(viewer.take_status());
        let status = move || match &*locked(&told) {
            Some(status) => status(),
            None => SourceStatus::default(),
        };
        Ok(Self {
            name,
            link,
            settings,
            channels,
            status: Arc::new(status),
            page: Some(page),
            is_ended: Arc::default(),
            behind: Turns::new(Some(Own::new(Behind::Far(viewer)))),
        })
    }

    /// Why the stream ended badly.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let behind = self.behind.lock(py)?;
        let Some(behind) = &*behind else { return Ok(()) };
        let Behind::Graph { running, .. } = behind.get()? else { return Ok(()) };
        py.detach(|| running.wait_timeout(LOOK_EVERY));
        running.take_error().map_or(Ok(()), |error| Err(of_graph(error)))
    }
}

/// Status that only the source knows.
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

/// A lane: its name, its unit, its content, and the values at its lower and upper edge. The content is columns (a row
/// of minima and one of maxima, `float32`, NaN if empty), or, if the last value is true, rows of brightness from 0 to
/// 1, the first at the top.
type LaneOf<'py> = (String, String, Bound<'py, PyAny>, f64, f64, bool);

/// Content of a lane.
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

/// Number of columns in a picture `width` pixels wide.
#[pyfunction]
pub(crate) fn plot_columns(width: u32) -> usize {
    grebe_scope::raster::plot_columns(width)
}

/// 16 MiB of frames: what the scope may be late by before it loses any.
const QUEUE_BATCHES: usize = 256;
const HISTORY_BYTES_MIN: usize = 1 << 20;
/// A notebook shows a few: more would only be sent.
const PICTURES_PER_S: f64 = 10.0;
