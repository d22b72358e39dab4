//! Running a graph of stages, from its start to what is said of it at its end.

pub(crate) mod report;

use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions, Snapshot, Stage, telemetry};
use grebe_scope::Engineering;
use grebe_stages::Notice;
use indicatif::{ProgressBar, ProgressStyle};

use self::report::Losses;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::note;
use crate::units::grouped;

/// Runs a graph until it ends by itself or the user ends it, with a line of progress where a person looks on. `grebe top`
/// shows it under `name`.
pub(crate) fn drive(name: &str, graph: Graph, progress: &Progress) -> Result<(Snapshot, Ending)> {
    interrupt::catch();
    let running = graph.start()?;
    // A graph that cannot be watched runs all the same.
    let _published = telemetry::publish(&running, name).ok();
    while !running.wait_timeout(Duration::from_millis(50)) {
        if interrupt::is_pending() {
            let snapshot = running.stop()?;
            progress.clear();
            return Ok((snapshot, Ending::Interrupted));
        }
        progress.show(&running.snapshot());
    }
    progress.clear();
    Ok((running.wait()?, Ending::Good))
}

/// The graph of most commands: a source and a sink, with a queue between them that makes the source wait.
pub(crate) struct Pair {
    pub(crate) source: (&'static str, Box<dyn Stage>),
    pub(crate) sink: (&'static str, Box<dyn Stage>),
    pub(crate) queue_batches: usize,
}

impl Pair {
    /// Runs it for a command, and says what the sink has done: `sent`, `recorded`.
    pub(crate) fn run(self, command: &str, verb: &str, as_json: bool) -> Result<Ending> {
        let Pair { source: (from, source), sink: (to, sink), queue_batches } = self;
        let mut graph = Graph::new();
        let (source, sink) = (graph.add_boxed(from, source), graph.add_boxed(to, sink));
        graph.connect(source, sink, QueueOptions::block(queue_batches));
        let (snapshot, ending) = drive(command, graph, &Progress::of(to))?;
        report::print(verb, to, &snapshot, as_json)?;
        Ok(ending)
    }
}

/// A line on standard error, rewritten twice a second, from the first second on; nothing where that is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// The stage whose samples are shown.
    stage: String,
}

impl Progress {
    /// Follows what goes through the stage of this name.
    pub(crate) fn of(stage: impl Into<String>) -> Self {
        let bar = ProgressBar::new_spinner();
        // A template that cannot fail: it is a constant, and a test draws it.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), stage: stage.into() }
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
        let lost = if losses.is_none() { "no loss".to_owned() } else { losses.to_string() };
        self.bar.set_message(format!(
            "{} samples  {}  {lost}",
            grouped(samples),
            Engineering::new(rate, "S/s")
        ));
        self.bar.tick();
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Says on standard error what a person may want to know while a stream is opened.
pub(crate) fn tell(notice: Notice) {
    match notice {
        Notice::SmallBuffer(_) | Notice::Recording(_) => note!("grebe: {notice}"),
        _ => note!("{notice}"),
    }
}

/// Ends the command when standard input is closed: its owner is gone.
pub(crate) fn end_with_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        interrupt::raise();
    });
}

/// Of what is sent: about 100 ms at 25 MS/s, for as long as the sender's system calls may stall before the generator does.
pub(crate) const SEND_QUEUE_BATCHES: usize = 64;

#[cfg(test)]
mod tests {
    #[test]
    fn the_template_is_valid() {
        assert!(indicatif::ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}").is_ok());
    }
}
