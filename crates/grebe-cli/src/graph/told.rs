//! What a graph counts, for `grebe top` on other hosts of the lab.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use grebe_flow::telemetry::{HostReport, Report};
use grebe_flow::{Running, Snapshot};
use grebe_zenoh::{CountsSender, Lab, SessionOptions, host_name};

/// Tells it a second, to whoever watches, until this is dropped. A process is in the lab where it uses a name or a key, or where somebody said
/// how it joins; one that is not tells nobody.
pub(super) struct Told {
    /// Closed by this end, and by the thread when it is done.
    stop: Option<mpsc::Sender<()>>,
    done: mpsc::Receiver<()>,
}

impl Told {
    pub(super) fn start(running: &Running, name: &str) -> Option<Self> {
        if !cfg!(feature = "zenoh") {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let (is_done, done) = mpsc::channel();
        let telling = Telling { name: name.to_owned(), observe: running.observer(), stopped };
        let thread = std::thread::Builder::new().name("told".to_owned()).spawn(move || {
            telling.run();
            drop(is_done);
        });
        thread.ok().map(|_| Self { stop: Some(stop), done })
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.stop = None;
        // It may be on its way into a lab that does not answer.
        let _ = self.done.recv_timeout(LEFT_BEHIND_AFTER);
    }
}

struct Telling<F> {
    name: String,
    observe: F,
    stopped: mpsc::Receiver<()>,
}

impl<F: Fn() -> Snapshot> Telling<F> {
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
                // Who watches sees that nothing comes.
                let _ = sender.send(told.to_json().into_bytes());
            }
            last = now;
        }
    }
}

/// `None`: this process is in no lab, or cannot join it.
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
/// Looks whether the process is in the lab by now; a router that does not answer costs five seconds of this thread.
const TRY_EVERY: Duration = Duration::from_secs(1);
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(1);
