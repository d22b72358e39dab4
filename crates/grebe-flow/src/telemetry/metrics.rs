//! Snapshots as Prometheus metrics, and the page that serves them.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use grebe_frame::Refusal;
use grebe_metrics::{Families, Histogram, Listener, Page};
use grebe_ring::Policy;

use crate::error::Error;
use crate::snapshot::{LatencyTotals, QueueSnapshot, Snapshot, StageSnapshot};

/// Address of a metrics page. Bind it before the graph starts, so that an address in use is reported first.
///
/// ```
/// use grebe_flow::telemetry::MetricsListener;
///
/// # let graph = grebe_flow::Graph::new();
/// let listener = MetricsListener::bind("127.0.0.1:0".parse()?)?;
/// println!("figures at http://{}/metrics", listener.address());
/// let running = graph.start()?;
/// // Good for as long as it is held.
/// let page = listener.serve([("my-receiver".to_owned(), running.observer())])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MetricsListener(Listener);

/// Serves metrics until it is dropped.
#[derive(Debug)]
pub struct MetricsPage(#[allow(dead_code, reason = "it is served as long as it is held")] Page);

impl MetricsListener {
    /// Listens at `address` over HTTP; port 0: any free port. Refuses requests whose host name is not an
    /// address, `localhost` or this machine's own name (Linux).
    ///
    /// # Errors
    /// [`Error::Metrics`] if it cannot listen.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        Listener::bind(address).map(Self).map_err(|source| Error::Metrics { address, source })
    }

    /// Also accepts requests with this host name.
    #[must_use]
    pub fn named(self, name: Option<String>) -> Self {
        Self(self.0.named(name))
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Serves the counters of these graphs under their names. Reads them on request, at most five times per
    /// second.
    ///
    /// # Errors
    /// [`Error::Metrics`] if the system cannot start a thread.
    pub fn serve<F: Fn() -> Snapshot + Send + Sync + 'static>(
        self,
        graphs: impl IntoIterator<Item = (String, F)>,
    ) -> Result<MetricsPage, Error> {
        let address = self.address();
        let graphs: Vec<(String, F)> = graphs.into_iter().collect();
        let began = since_1970_s();
        let figures = move || {
            let now: Vec<(&str, Snapshot)> = graphs.iter().map(|(name, at)| (name.as_str(), at())).collect();
            let mut families = families(&now);
            for (graph, _) in &now {
                let help = "When the graph began to be served, in seconds since 1970.";
                families.gauge("grebe_graph_start_time_seconds", help, &[("graph", graph)], began);
            }
            families
        };
        self.0.serve(figures).map(MetricsPage).map_err(|source| Error::Metrics { address, source })
    }
}

/// Metrics of the stages and queues of these graphs.
///
/// A stage's own counters become families with their names: `lost_frames` is `grebe_stage_lost_frames_total`.
/// Times are in seconds, shares from 0 to 1.
///
/// ```
/// # use grebe_flow::{Snapshot, StageSnapshot, telemetry::families};
/// let stage = StageSnapshot { name: "udp".into(), frames_out: 7, own: vec![("lost_frames".into(), 3)], ..Default::default() };
/// let text = families(&[("view", Snapshot { stages: vec![stage], ..Default::default() })]).to_string();
/// assert!(text.contains(r#"grebe_stage_lost_frames_total{graph="view",stage="udp"} 3"#));
/// ```
pub fn families(graphs: &[(&str, Snapshot)]) -> Families {
    let mut all = Families::default();
    all.gauge("grebe_build_info", "Which version this is.", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    for (graph, snapshot) in graphs {
        snapshot.stages.iter().for_each(|stage| add_stage(&mut all, graph, stage));
        snapshot.queues.iter().for_each(|queue| add_queue(&mut all, graph, queue));
    }
    all
}

fn add_stage(all: &mut Families, graph: &str, stage: &StageSnapshot) {
    let labels = [("graph", graph), ("stage", &*stage.name)];
    let directions =
        [("in", stage.frames_in, stage.samples_in), ("out", stage.frames_out, stage.samples_out)];
    for (direction, frames, samples) in directions {
        let labels = [labels[0], labels[1], ("direction", direction)];
        all.counter(
            "grebe_stage_frames_total",
            "Frames that went into a stage and out of it.",
            &labels,
            frames,
        );
        let help = "Samples of one channel that went into a stage and out of it.";
        all.counter("grebe_stage_samples_total", help, &labels, samples);
    }
    let help = "Time that a stage worked.";
    all.counter("grebe_stage_busy_seconds_total", help, &labels, seconds(stage.busy_ns));
    let help =
        "Time that a stage waited inside its steps: for room, for a chunk, for its time, for the outside.";
    all.counter("grebe_stage_waiting_seconds_total", help, &labels, seconds(stage.waited_ns));
    let help = "Frames whose samples a stage copied.";
    all.counter("grebe_stage_copied_frames_total", help, &labels, stage.copied_frames);
    if let Some(totals) = &stage.latency_totals {
        let help = "From the producer's stamp to the stage, of the first frame of each batch, where the producer runs on this machine.";
        all.histogram("grebe_stage_latency_seconds", help, &labels, &histogram(totals));
    }
    for (name, value) in &stage.own {
        // Already part of the sum above.
        if name != "copied_frames" {
            add_own(all, &labels, name, *value, &stage.own_gauges);
        }
    }
}

/// Adds one of the stage's own counters.
fn add_own(
    all: &mut Families,
    labels: &[(&str, &str)],
    name: &str,
    value: u64,
    gauges: &[Cow<'static, str>],
) {
    if let Some(reason) =
        name.strip_prefix("refused_").filter(|it| Refusal::ALL.iter().any(|known| known.name() == *it))
    {
        let labels = [labels, &[("reason", reason)]].concat();
        let help = "Datagrams that are not frames of the stream, by reason.";
        return all.counter("grebe_stage_refused_datagrams_total", help, &labels, value);
    }
    let (name, disk) = without_number(name);
    let help = format!("Counter {name} of a stage.");
    let labels = match disk {
        Some(disk) => [labels, &[("disk", disk)]].concat(),
        None => labels.to_vec(),
    };
    // Several disks and their total need two families, or a sum would count everything twice.
    let each = if disk.is_some() { "each_" } else { "" };
    let is_gauge = gauges.iter().any(|gauge| *gauge == name);
    let (name, value) = in_base_units(&name, value);
    let name = format!("grebe_stage_{each}{name}");
    match is_gauge {
        true => all.gauge(&name, &help, &labels, value),
        false => all.counter(&format!("{name}_total"), &help, &labels, value),
    }
}

/// `disk3_samples` is `disk_samples` of disk 3.
fn without_number(name: &str) -> (String, Option<&str>) {
    let numbered = name.strip_prefix("disk").and_then(|rest| rest.split_once('_'));
    match numbered
        .filter(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    {
        Some((number, rest)) => (format!("disk_{rest}"), Some(number)),
        None => (name.to_owned(), None),
    }
}

/// Converts to base units, with the unit last, except before a suffix for a maximum.
fn in_base_units(name: &str, value: u64) -> (String, f64) {
    let (stem, end) = match name.strip_suffix("_max") {
        Some(stem) => (stem, "_max"),
        None => (name, ""),
    };
    let units = [("_us", "_seconds", 1e-6), ("_percent", "_ratio", 1e-2)];
    for (unit, base, factor) in units {
        if let Some(stem) = stem.strip_suffix(unit) {
            return (format!("{stem}{base}{end}"), value as f64 * factor);
        }
    }
    (name.to_owned(), value as f64)
}

fn add_queue(all: &mut Families, graph: &str, queue: &QueueSnapshot) {
    let policy = match queue.policy {
        Policy::Block => "block",
        Policy::DropOldest => "drop_oldest",
        Policy::DropLatest => "drop_latest",
    };
    let labels = [("graph", graph), ("from", &*queue.from), ("to", &*queue.to), ("policy", policy)];
    all.counter("grebe_queue_frames_total", "Frames that a queue took in.", &labels, queue.frames);
    let help = "Frames that a full queue dropped, as its policy says.";
    all.counter("grebe_queue_dropped_frames_total", help, &labels, queue.dropped_frames);
    let help = "Samples of one channel that a full queue dropped.";
    all.counter("grebe_queue_dropped_samples_total", help, &labels, queue.dropped_samples);
    all.gauge("grebe_queue_batches", "Batches that wait in a queue.", &labels, queue.queued_batches);
    let help = "Batches that fit into a queue.";
    all.gauge("grebe_queue_capacity_batches", help, &labels, queue.capacity_batches);
    all.gauge("grebe_queue_bytes", "Bytes that a queue pins.", &labels, queue.queued_bytes);
    let help = "How full a queue is, by batches or by bytes, whichever is nearer to its bound.";
    all.gauge("grebe_queue_fill_ratio", help, &labels, queue.fill());
}

fn histogram(totals: &LatencyTotals) -> Histogram {
    Histogram {
        bounds: LatencyTotals::BOUNDS_NS.map(seconds).to_vec(),
        counts: totals.counts.to_vec(),
        sum: seconds(totals.sum_ns),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn since_1970_s() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use prometheus_parse::{Scrape, Value};

    use super::*;

    fn value(scrape: &Scrape, metric: &str, labels: &[(&str, &str)]) -> f64 {
        let found = scrape.samples.iter().find(|it| {
            it.metric == metric && labels.iter().all(|&(name, text)| it.labels.get(name) == Some(text))
        });
        match found.map(|it| &it.value) {
            Some(&(Value::Counter(value) | Value::Gauge(value))) => value,
            other => panic!("{metric}: {other:?}"),
        }
    }

    #[test]
    fn a_parser_reads_what_was_counted_in_base_units() {
        let mut totals = LatencyTotals::default();
        [9_999, 10_000, 10_001, 3_000_000, 60_000_000_000].into_iter().for_each(|ns| totals.add(ns, 2));
        let stage = StageSnapshot {
            name: "a \"stage\"".to_owned(),
            frames_in: 5,
            busy_ns: 1_500_000_000,
            latency_totals: Some(totals),
            own: [
                ("lost_frames", 3),
                ("refused_magic", 4),
                ("refused_clients", 5),
                ("disk_waited_us", 2_500_000),
                ("disk_stall_us_max", 1_000),
                ("disk3_buffer_fill_bytes", 4_096),
                ("fullest_queue_percent", 75),
                ("copied_frames", 1),
            ]
            .map(|(name, count)| (name.into(), count))
            .to_vec(),
            own_gauges: ["disk_stall_us_max", "disk_buffer_fill_bytes", "fullest_queue_percent"]
                .map(Into::into)
                .to_vec(),
            ..StageSnapshot::default()
        };
        let queue = QueueSnapshot {
            from: "a".into(),
            to: "b".into(),
            policy: Policy::DropOldest,
            capacity_batches: 8,
            queued_batches: 2,
            capacity_bytes: None,
            queued_bytes: 900,
            frames: 10,
            dropped_frames: 6,
            dropped_samples: 60,
        };
        let snapshot = Snapshot { at_ns: 0, stages: vec![stage], queues: vec![queue] };
        let text = families(&[("view", snapshot.clone()), ("view-2", snapshot)]).to_string();
        let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
        for (metric, labels, expected) in [
            ("grebe_stage_frames_total", &[("direction", "in")][..], 5.0),
            ("grebe_stage_busy_seconds_total", &[], 1.5),
            ("grebe_stage_lost_frames_total", &[("graph", "view-2")], 3.0),
            ("grebe_stage_refused_datagrams_total", &[("reason", "magic")], 4.0),
            ("grebe_stage_refused_clients_total", &[], 5.0),
            ("grebe_stage_disk_waited_seconds_total", &[], 2.5),
            ("grebe_stage_disk_stall_seconds_max", &[], 0.001),
            ("grebe_stage_each_disk_buffer_fill_bytes", &[("disk", "3")], 4_096.0),
            ("grebe_stage_fullest_queue_ratio", &[], 0.75),
            (
                "grebe_queue_dropped_frames_total",
                &[("from", "a"), ("to", "b"), ("policy", "drop_oldest")],
                6.0,
            ),
            ("grebe_queue_fill_ratio", &[], 0.25),
        ] {
            assert_eq!(value(&scrape, metric, labels), expected, "{metric}");
        }
        let latency = scrape.samples.iter().find(|it| it.metric == "grebe_stage_latency_seconds").unwrap();
        let Value::Histogram(buckets) = &latency.value else { panic!("{latency:?}") };
        let within = |bound: f64| buckets.iter().find(|it| it.less_than == bound).unwrap().count;
        assert_eq!(
            [within(10e-6), within(20e-6), within(2e-3), within(5e-3), within(10.0)],
            [4.0, 6.0, 6.0, 8.0, 8.0]
        );
        assert_eq!(within(f64::INFINITY), 10.0);
    }
}
