//! Thread that serves reports.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::directory::{file_name, own_folder};
use super::endpoint::{Listener, Stream, WHILE_IDLE, is_gone, pair};
use super::report::Report;
use crate::error::Error;
use crate::runtime::Running;
use crate::snapshot::Snapshot;

/// Serves a graph's [`Report`]s until it is dropped.
#[derive(Debug)]
pub struct Publisher {
    path: PathBuf,
    /// Closing it ends the thread.
    stop: Option<Stream>,
    thread: Option<JoinHandle<()>>,
}

/// Serves the counters of `running` to each connection: one sleeping thread that wakes once per second.
///
/// `name` describes the process; its letters, digits, `_` and `-` are used.
///
/// # Errors
/// [`Error::Telemetry`] if a private folder, a socket or the thread is not available. The graph is
/// unaffected, so most callers use `.ok()`.
pub fn publish(running: &Running, name: &str) -> Result<Publisher, Error> {
    publish_about(running, name, BTreeMap::new())
}

/// Like [`publish`], with facts from the program ([`Report::about`]).
///
/// # Errors
/// Those of [`publish`].
pub fn publish_about(
    running: &Running,
    name: &str,
    about: BTreeMap<String, String>,
) -> Result<Publisher, Error> {
    publish_observed(running.observer(), name, about)
}

/// Like [`publish_about`], for the counters that `observe` returns, for example of several related graphs.
///
/// # Errors
/// Those of [`publish`].
pub fn publish_observed(
    observe: impl Fn() -> Snapshot + Send + 'static,
    name: &str,
    about: BTreeMap<String, String>,
) -> Result<Publisher, Error> {
    // Otherwise two threads of this process could find the same name free.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = own_folder()?;
    let pid = std::process::id();
    let name = file_name(name);
    let served = bind(&folder, &format!("{pid}.{name}")).and_then(|listener| {
        let path = listener.path().to_owned();
        let (stop, stopped) = pair()?;
        let serving = name.clone();
        let thread = thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || Server::new(listener, stopped, serving, about, observe).run())?;
        Ok(Publisher { path, stop: Some(stop), thread: Some(thread) })
    });
    served.map_err(|source| Error::Telemetry { what: "cannot publish in", path: folder, source })
}

impl Publisher {
    /// File that leads readers here: the socket, or on Windows the file with its port and token.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it did, the graph would continue without reports.
            let _ = thread.join();
        }
    }
}

/// Takes the first free name.
fn bind(folder: &Path, name: &str) -> io::Result<Listener> {
    for number in 1..=PUBLISHED_MAX {
        let name = if number == 1 { format!("{name}.top") } else { format!("{name}-{number}.top") };
        match Listener::bind(folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

struct Server<F> {
    listener: Listener,
    stopped: Stream,
    name: String,
    about: BTreeMap<String, String>,
    observe: F,
    began_ns: u64,
    last: Snapshot,
    /// Newest report; `None` in the first second.
    line: Option<Arc<[u8]>>,
    readers: Vec<Reader>,
}

impl<F: Fn() -> Snapshot> Server<F> {
    fn new(
        listener: Listener,
        stopped: Stream,
        name: String,
        about: BTreeMap<String, String>,
        observe: F,
    ) -> Self {
        let last = observe();
        let (began_ns, readers) = (last.at_ns, Vec::new());
        Self { listener, stopped, name, about, observe, began_ns, last, line: None, readers }
    }

    fn run(mut self) {
        let mut due = Instant::now() + REPORT_EVERY;
        while self.wait(due) {
            self.accept();
            if Instant::now() >= due {
                self.report();
                due = (due + REPORT_EVERY).max(Instant::now());
            }
            self.readers.retain_mut(Reader::serve);
        }
    }

    /// Sleeps until a report is due or a connection needs service; `false` at the end.
    fn wait(&self, due: Instant) -> bool {
        let left = due.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut fds = Vec::with_capacity(2 + self.readers.len());
        fds.push(PollFd::new(&self.stopped, PollFlags::IN));
        // With all places taken, further connections wait in the listener's queue.
        if self.readers.len() < READERS_MAX {
            self.listener.watch(&mut fds);
        }
        for reader in &self.readers {
            let wants = if reader.pending.is_some() { PollFlags::OUT } else { WHILE_IDLE };
            fds.push(PollFd::new(&reader.stream, wants));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => fds[0].revents().is_empty(),
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }

    fn accept(&mut self) {
        while self.readers.len() < READERS_MAX {
            match self.listener.accept() {
                Ok(stream) => {
                    let mut reader = Reader { stream, pending: None, served: Instant::now() };
                    reader.offer(&self.line);
                    self.readers.push(reader);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Probably out of descriptors: the connection waits in the listener's queue until some are
                // free.
                Err(_) => return thread::sleep(LATER),
            }
        }
    }

    fn report(&mut self) {
        let now = (self.observe)();
        let mut report = Report::between(&self.name, &self.last, &now);
        report.about.clone_from(&self.about);
        report.uptime_s = now.at_ns.saturating_sub(self.began_ns) as f64 / 1e9;
        self.last = now;
        let Ok(mut line) = serde_json::to_vec(&report) else { return };
        line.push(b'\n');
        self.line = Some(line.into());
        for reader in &mut self.readers {
            reader.offer(&self.line);
        }
    }
}

struct Reader {
    stream: Stream,
    /// Line in progress, and the number of bytes written.
    pending: Option<(Arc<[u8]>, usize)>,
    served: Instant,
}

impl Reader {
    /// Gives it the newest line. A reader still busy with an older one misses this line.
    fn offer(&mut self, line: &Option<Arc<[u8]>>) {
        if self.pending.is_none() {
            self.pending = line.clone().map(|line| (line, 0));
        }
    }

    /// Writes as much as the reader accepts; `false` if it is gone.
    fn serve(&mut self) -> bool {
        let Some((line, written)) = &mut self.pending else { return !is_gone(&self.stream) };
        match self.stream.write(&line[*written..]) {
            Ok(count) => {
                *written += count;
                self.served = Instant::now();
                if *written == line.len() {
                    self.pending = None;
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.served.elapsed() < READ_TIMEOUT,
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }
}

const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Time without progress after which a reader is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_millis(100);
const READERS_MAX: usize = 16;
/// Maximum graphs of one name in one process.
const PUBLISHED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_does_not_read_misses_lines_and_is_disconnected() {
        let (ours, mut theirs) = pair().unwrap();
        let mut reader = Reader { stream: ours, pending: None, served: Instant::now() };
        let line = |letter: u8| -> Option<Arc<[u8]>> {
            let mut line = vec![letter; 4 << 20];
            line.push(b'\n');
            Some(line.into())
        };
        reader.offer(&line(b'a'));
        assert!(reader.serve() && reader.serve(), "it is given time");
        reader.offer(&line(b'b'));
        reader.served = Instant::now().checked_sub(READ_TIMEOUT).unwrap();
        assert!(!reader.serve(), "not for ever");
        reader.stream.shutdown(std::net::Shutdown::Write).unwrap();
        theirs.set_nonblocking(false).unwrap();
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).unwrap();
        assert!(!read.is_empty() && read.iter().all(|&byte| byte == b'a'), "lines are not mixed");
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed() {
        let (ours, theirs) = pair().unwrap();
        let mut reader = Reader { stream: ours, pending: None, served: Instant::now() };
        assert!(reader.serve());
        drop(theirs);
        assert!(!reader.serve());
    }
}
