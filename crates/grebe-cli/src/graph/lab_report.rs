//! Publishes counters of a graph to `grebe top` on other hosts of the lab.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{HostReport, Report};
use grebe_flow::{Running, Snapshot};
use grebe_zenoh::{CountsSender, Lab, SessionOptions, host_name};

/// Sends reports once a second while another host watches, until this is dropped. Active only if this process uses
/// the lab, or has options for it.
pub(super) struct LabReports {
    /// Both are closed at the end of the thread.
    stop: Option<mpsc::Sender<()>>,
    done: mpsc::Receiver<()>,
}

impl LabReports {
    pub(super) fn start(running: &Running, name: &str) -> Option<Self> {
        if !cfg!(feature = "zenoh") {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let (is_done, done) = mpsc::channel();
        let reporter = Reporter { name: name.to_owned(), observe: running.observer(), stopped };
        let thread = std::thread::Builder::new().name("lab-report".to_owned()).spawn(move || {
            reporter.run();
            drop(is_done);
        });
        thread.ok().map(|_| Self { stop: Some(stop), done })
    }
}

impl Drop for LabReports {
    fn drop(&mut self) {
        self.stop = None;
        // The thread may be joining a lab that does not answer.
        let _ = self.done.recv_timeout(LEFT_BEHIND_AFTER);
    }
}

struct Reporter<F> {
    name: String,
    observe: F,
    stopped: mpsc::Receiver<()>,
}

impl<F: Fn() -> Snapshot> Reporter<F> {
    fn run(self) {
        let began = Instant::now();
        let mut last = (self.observe)();
        let mut lab = None;
        let mut next_try = Instant::now();
        while self.stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            if lab.is_none() && Instant::now() >= next_try {
                lab = join();
                next_try = Instant::now() + TRY_EVERY;
            }
            let now = (self.observe)();
            if let Some((lab, sender)) = lab.as_ref().filter(|(_, sender)| sender.is_watched()) {
                let mut report = Report::between(&self.name, &last, &now);
                (report.pid, report.uptime_s) = (std::process::id(), began.elapsed().as_secs_f64());
                let streams = lab.uses().iter().map(ToString::to_string).collect();
                let told = HostReport { host: host_name(), streams, report };
                // Watchers notice missing reports.
                let _ = sender.send(told.to_json().into_bytes());
            }
            last = now;
        }
    }
}

/// `None` if this process does not use a lab, or cannot join it.
fn join() -> Option<(Lab, CountsSender)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let lab = match Lab::joined() {
        Some(lab) => lab,
        None if SessionOptions::is_said() => Lab::shared().ok()?,
        None => return None,
    };
    let sender = lab.counts_sender(NUMBER.fetch_add(1, Ordering::Relaxed)).ok()?;
    Some((lab, sender))
}

const EVERY: Duration = Duration::from_secs(1);
/// Interval of attempts; a router that does not answer takes five seconds of this thread.
const TRY_EVERY: Duration = Duration::from_secs(1);
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(1);
