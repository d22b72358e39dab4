//! Runs graphs of stages, from the start to the report.

mod disk_use;
mod lab_report;
pub(crate) mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::telemetry::{self, MetricsListener};
use grebe_flow::{Graph, QueueOptions, Running, Snapshot, Stage, StageSnapshot};
use grebe_recording::SampleFile;
use grebe_scope::Engineering;
use grebe_stages::{NamedStream, Notice, OpenSink, SinkOptions, Uri, open_sink};
use grebe_zenoh::StreamName;
use indicatif::ProgressBar;

use self::disk_use::DiskUse;
use self::lab_report::LabReports;
use self::report::{Losses, TRIGGER};
use crate::cli::Metrics;
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::note;
use crate::units::grouped;

/// Information for other commands of this user, beside the counters.
pub(crate) type About = BTreeMap<String, String>;

/// Runs a graph until it ends or the user ends it, with a progress line on a terminal. `grebe top` shows it under
/// `name`. Returns its last counters, also after a failure.
pub(crate) fn drive(
    name: &str,
    graph: Graph,
    progress: &Progress,
    metrics: Metrics,
) -> Result<(Snapshot, Result<Ending>)> {
    drive_about(name, About::new(), graph, progress, metrics)
}

fn drive_about(
    name: &str,
    about: About,
    graph: Graph,
    progress: &Progress,
    metrics: Metrics,
) -> Result<(Snapshot, Result<Ending>)> {
    interrupt::catch();
    let metrics = listen_for_metrics(metrics)?;
    let running = graph.start()?;
    let _published = publish(&running, name, about);
    let served = metrics.map(|listener| listener.serve([(name.to_owned(), running.observer())]));
    let _served = served.transpose()?;
    let (observe, mut notes) = (running.observer(), running.notes());
    let bar = progress.bar.clone();
    let _waiting = progress.waits_for.clone().map(|waits_for| {
        report_wait(waits_for, running.observer(), move |words| bar.suspend(|| note!("{words}")))
    });
    let mut print_notes = || notes().iter().for_each(|note| progress.say(note));
    while !running.wait_timeout(Duration::from_millis(50)) {
        print_notes();
        if interrupt::is_pending() {
            let stopped = std::thread::scope(|scope| {
                let stopping = scope.spawn(move || running.stop());
                let began = Instant::now();
                while !stopping.is_finished() {
                    std::thread::sleep(Duration::from_millis(5));
                    progress.show_closing(&observe(), began.elapsed());
                }
                stopping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            progress.clear();
            return Ok((observe(), stopped.map(|_| Ending::Interrupted).map_err(Into::into)));
        }
        progress.show(&running.snapshot());
    }
    progress.clear();
    print_notes();
    let ended = running.wait();
    Ok((observe(), ended.map(|_| Ending::Good).map_err(Into::into)))
}

/// Publishes a graph for `grebe top` under `name`, on this machine and in the lab, until this is dropped. The graph
/// also runs if this fails.
pub(crate) fn publish(running: &Running, name: &str, about: About) -> Published {
    Published {
        _here: publish_observed(running.observer(), name, about),
        _in_lab: LabReports::start(running, name),
    }
}

/// Publishes the sum of several graphs on this machine.
pub(crate) fn publish_observed(
    observe: impl Fn() -> Snapshot + Send + 'static,
    name: &str,
    about: About,
) -> Option<telemetry::Publisher> {
    let published = telemetry::publish_observed(observe, name, about).ok()?;
    let path = published.path().to_owned();
    interrupt::before_end_at_once(move || drop(std::fs::remove_file(path)));
    Some(published)
}

/// Published graph.
pub(crate) struct Published {
    _here: Option<telemetry::Publisher>,
    _in_lab: Option<LabReports>,
}

/// Binds the metrics address before anything starts, so that a used address is an early error.
pub(crate) fn listen_for_metrics(options: Metrics) -> Result<Option<MetricsListener>> {
    let listener = options
        .metrics
        .map(|place| Ok::<_, grebe_flow::Error>(MetricsListener::bind(place.address)?.named(place.name)));
    let listener = listener.transpose()?;
    if let Some(listener) = &listener {
        note!("metrics at http://{}/metrics", listener.address());
    }
    Ok(listener)
}

/// Source that a command waits for, and how the wait ends: `udp://:5000`, `--idle-timeout 10s ends the wait`.
#[derive(Clone)]
pub(crate) struct WaitsFor {
    pub(crate) source: String,
    pub(crate) end: String,
}

/// Reports once that no sample has arrived yet, unless the returned value is dropped before.
pub(crate) fn report_wait(
    waits_for: WaitsFor,
    observe: impl Fn() -> Snapshot + Send + 'static,
    say: impl FnOnce(&str) + Send + 'static,
) -> mpsc::Sender<()> {
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let is_over = ended.recv_timeout(WAIT_TOLD_AFTER) != Err(RecvTimeoutError::Timeout);
        let stages = observe().stages;
        let is_silent = stages.iter().all(|stage| stage.samples_in.max(stage.samples_out) == 0);
        // Without a stage, other counters have the samples.
        if !is_over && is_silent && !stages.is_empty() {
            let WaitsFor { source, end } = waits_for;
            say(&format!("waiting for the first sample from {source}; {end}"));
        }
    });
    end
}

/// Graph of most commands: source, blocking queue, sink.
pub(crate) struct Pair {
    pub(crate) source: (&'static str, Box<dyn Stage>),
    pub(crate) sink: (&'static str, Box<dyn Stage>),
    pub(crate) queue_batches: usize,
    /// A stage between them.
    pub(crate) between: Option<(&'static str, Box<dyn Stage>)>,
    /// Second consumer, called [`TRIGGER`], with its queue. Its drops do not count as losses of the sink.
    pub(crate) trigger: Option<(Box<dyn Stage>, QueueOptions)>,
    /// Note for a silent source.
    pub(crate) waits_for: Option<WaitsFor>,
    /// Announces the stream in the lab, and sends it over Zenoh to readers without another route.
    pub(crate) announcer: Option<Box<dyn Stage>>,
    pub(crate) metrics: Metrics,
    pub(crate) about: About,
}

impl Pair {
    /// Runs it for a command that sends to `to`, and reports the result.
    pub(crate) fn run(self, command: &str, to: &Uri, as_json: bool) -> Result<Ending> {
        self.run_and_judge(command, "sent", as_json, |sender, ending| {
            if sender.own("refused").is_some_and(|sends| sends > 0) {
                note!(
                    "grebe: at times no program listened at {to}: start its reader first, or name another with --to"
                );
            }
            match to {
                Uri::File(file) if sender.samples_in > 0 => (ending, SampleFile::named(file)),
                _ => (ending, None),
            }
        })
    }

    /// Runs it for a command whose result differs from the graph's; `judge` knows the result of the sink, and the
    /// written file.
    pub(crate) fn run_and_judge(
        self,
        command: &str,
        verb: &str,
        as_json: bool,
        judge: impl FnOnce(&StageSnapshot, Result<Ending>) -> (Result<Ending>, Option<PathBuf>),
    ) -> Result<Ending> {
        let Pair { source: (from, source), sink: (to, sink), queue_batches, .. } = self;
        let Pair { between, trigger, waits_for, announcer, metrics, about, .. } = self;
        let mut graph = Graph::new();
        let (mut source, sink) = (graph.add_boxed(from, source), graph.add_boxed(to, sink));
        if let Some((name, stage)) = between {
            let stage = graph.add_boxed(name, stage);
            graph.connect(source, stage, QueueOptions::block(queue_batches));
            source = stage;
        }
        graph.connect(source, sink, QueueOptions::block(queue_batches));
        graph.end_with(sink);
        if let Some((stage, queue)) = trigger {
            let trigger = graph.add_boxed(TRIGGER, stage);
            graph.connect(source, trigger, queue);
        }
        if let Some(stage) = announcer {
            let announcer = graph.add_boxed("announcer", stage);
            graph.connect(source, announcer, QueueOptions::drop_oldest(ANNOUNCER_BATCHES));
        }
        let progress = Progress { waits_for, ..Progress::of(to) };
        let (snapshot, ending) = drive_about(command, about, graph, &progress, metrics)?;
        let (ending, written) = match snapshot.stage(to) {
            Some(stage) => judge(stage, ending),
            None => (ending, None),
        };
        report::print(verb, to, &snapshot, ending, written.as_deref(), as_json)
    }
}

/// Progress line on standard error, updated twice a second after the first second. Empty without a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// Stage whose samples are shown.
    stage: String,
    /// Note for a silent source.
    waits_for: Option<WaitsFor>,
}

impl Progress {
    /// Progress of the stage of this name.
    pub(crate) fn of(stage: impl Into<String>) -> Self {
        let bar = crate::output::bar(None);
        // The template is a constant, and tested.
        if let Some(style) = crate::output::bar_style("{spinner} {elapsed_precise}  {msg}") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), stage: stage.into(), waits_for: None }
    }

    /// Adds a note for a silent source.
    pub(crate) fn waiting_for(self, waits_for: WaitsFor) -> Self {
        Self { waits_for: Some(waits_for), ..self }
    }

    /// Shows the counters.
    pub(crate) fn show(&self, snapshot: &Snapshot) {
        let elapsed = self.began.elapsed();
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let Some(stage) = snapshot.stage(&self.stage) else { return };
        let samples = stage.samples_in.max(stage.samples_out);
        let rate = samples as f64 / elapsed.as_secs_f64();
        let losses = Losses::of(snapshot);
        let is_good = losses.is_none() && !losses.is_unseen;
        let lost = if is_good { "no loss".to_owned() } else { losses.to_string() };
        let buffer = DiskUse::of(stage).map(|disk| format!("  buffer {} % full", disk.fill_percent()));
        self.bar.set_message(format!(
            "{} samples  {}  {lost}{}",
            grouped(samples),
            Engineering::new(rate, "S/s"),
            buffer.unwrap_or_default()
        ));
        self.bar.tick();
    }

    /// Shows that the graph is finishing.
    pub(crate) fn show_closing(&self, snapshot: &Snapshot, since: Duration) {
        if since >= CLOSING_SHOWN_AFTER {
            let samples =
                snapshot.stage(&self.stage).map_or(0, |stage| stage.samples_in.max(stage.samples_out));
            self.bar.set_message(format!(
                "closing: writing {} samples; Ctrl-C again ends at once",
                grouped(samples)
            ));
            self.bar.tick();
        }
    }

    /// Prints a line above the progress line.
    pub(crate) fn say(&self, words: &str) {
        self.bar.suspend(|| note!("{words}"));
    }

    /// Removes the progress line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints a notice about opening a stream.
pub(crate) fn print_notice(notice: Notice) {
    match notice {
        Notice::SmallBuffer(_) | Notice::Recording(_) => note!("grebe: {notice}"),
        _ => note!("{notice}"),
    }
}

/// Destination of a stream that may have a name: the name alone, or also a URI.
pub(crate) struct Destination {
    /// Destination of the samples.
    pub(crate) to: Uri,
    /// Name in the lab, beside that.
    name: Option<StreamName>,
}

/// A stream and a report cannot both go to standard output.
pub(crate) fn check_standard_output<'a>(
    to: impl IntoIterator<Item = &'a Uri>,
    has_report: bool,
) -> Result<()> {
    match to.into_iter().any(|uri| uri.traits().is_pipe) && has_report {
        true => Err(Usage("--to pipe: and --json would both write to standard output".into()).into()),
        false => Ok(()),
    }
}

impl Destination {
    pub(crate) fn of(to: Option<&Uri>, name: Option<&StreamName>) -> Self {
        let named = |name: &StreamName| Uri::Named(NamedStream { name: name.clone(), route: None });
        match (to, name) {
            (Some(to), name) => Self { to: to.clone(), name: name.cloned() },
            (None, Some(name)) => Self { to: named(name), name: None },
            (None, None) => Self { to: Uri::default(), name: None },
        }
    }

    /// Opens the sink, and the stage that announces the name. The name is announced before the wait for readers, who
    /// find the stream by it. Notices go to `notify`.
    pub(crate) fn open(
        &self,
        options: &SinkOptions,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<(OpenSink, Option<Box<dyn Stage>>)> {
        let mut announced = None;
        let sink = open_sink(&self.to, options, &mut |notice| {
            let waits = matches!(notice, Notice::WaitingForReaders { .. });
            notify(notice);
            if waits {
                let announcer = announced.insert(self.announcer(options));
                if announcer.is_err() {
                    // Without a name, no reader will come.
                    options.cancel.cancel();
                }
            }
        });
        match announced {
            Some(announcer) => announcer.and_then(|announcer| Ok((sink?, announcer))),
            None => Ok((sink?, self.announcer(options)?)),
        }
    }

    fn announcer(&self, options: &SinkOptions) -> Result<Option<Box<dyn Stage>>> {
        let Some(name) = &self.name else { return Ok(None) };
        let options = SinkOptions {
            routes: self.to.uri_for_readers().into_iter().collect(),
            lends_pool: false,
            ..options.clone()
        };
        announcer(name, &options).map(Some)
    }
}

/// The stage that announces a stream, and sends it over Zenoh to readers without another route.
pub(crate) fn announcer(name: &StreamName, options: &SinkOptions) -> Result<Box<dyn Stage>> {
    let named = Uri::Named(NamedStream { name: name.clone(), route: None });
    Ok(open_sink(&named, options, &mut print_notice)?.stage)
}

/// Ends the command when standard input is closed, because its starter is gone.
pub(crate) fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        interrupt::raise();
    });
}

/// Queue to Zenoh, which may be slower than the other destination.
const ANNOUNCER_BATCHES: usize = 32;

const WAIT_TOLD_AFTER: Duration = Duration::from_secs(2);
const CLOSING_SHOWN_AFTER: Duration = Duration::from_millis(500);

/// Queue to the sender: about 100 ms at 25 MS/s, which bridges stalls of its system calls.
pub(crate) const SEND_QUEUE_BATCHES: usize = 64;

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_valid() {
        assert!(crate::output::bar_style("{spinner} {elapsed_precise}  {msg}").is_some());
    }
}
