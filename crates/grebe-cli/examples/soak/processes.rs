//! Processes of a round, and their leftovers.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The directory of a round: recordings, sockets and temporary files; everything started in it is looked for afterwards.
pub(crate) struct Room {
    grebe: PathBuf,
    directory: PathBuf,
    /// Content of /dev/shm before the round.
    shared: Vec<PathBuf>,
    _gone_at_the_end: Option<TempDir>,
}

impl Room {
    pub(crate) fn new(grebe: &Path, keep: Option<&Path>) -> Result<Self> {
        let parent = keep.map_or_else(std::env::temp_dir, Path::to_owned);
        fs::create_dir_all(&parent)?;
        let made = tempfile::Builder::new().prefix("soak-").tempdir_in(parent)?;
        let directory = made.path().to_owned();
        let _gone_at_the_end = match keep {
            None => Some(made),
            Some(_) => {
                let _ = made.keep();
                None
            }
        };
        fs::create_dir(directory.join("run"))?;
        fs::create_dir(directory.join("tmp"))?;
        Ok(Self { grebe: grebe.to_owned(), directory, shared: entries("/dev/shm"), _gone_at_the_end })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("XDG_CONFIG_HOME", self.path("run"));
        command.env("XDG_STATE_HOME", self.path("run")).env("TMPDIR", self.path("tmp")).env("TERM", "xterm");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the command; `name` identifies it in messages.
    pub(crate) fn start(&self, name: String, arguments: &[&str], input: Stdio) -> Result<Running> {
        let child = self.command(&self.grebe).args(arguments).stdin(input).spawn();
        Running::of(name, child.context("cannot start grebe")?)
    }

    /// Starts it in a terminal of its own, where the system has one to lend.
    pub(crate) fn start_in_terminal(&self, name: String, arguments: &[&str]) -> Result<Option<Running>> {
        let script = Path::new("/usr/bin/script");
        if !script.is_file() {
            return Ok(None);
        }
        let line = format!("exec '{}' {}", self.grebe.display(), arguments.join(" "));
        let child = self.command(script).args(["-qefc", &line, "/dev/null"]).stdout(Stdio::null()).spawn();
        Running::of(name, child.context("cannot start a terminal")?).map(Some)
    }

    /// Leftovers of a round after all processes have ended.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let place = self.directory.display().to_string();
        let mine = |pid: &PathBuf| {
            let environment = fs::read(pid.join("environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|entry| entry.ends_with(format!("={place}/run").as_bytes()))
        };
        let bound = || -> Vec<PathBuf> {
            let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
            sockets.lines().filter(|line| line.contains(&place)).map(PathBuf::from).collect()
        };
        // A scope takes a moment to notice the loss of its terminal. The system frees the memory of a process, with
        // its arguments, before its sockets.
        let until = Instant::now() + Duration::from_secs(15);
        let (processes, sockets) = loop {
            let left: (Vec<_>, _) = (entries("/proc").into_iter().filter(mine).collect(), bound());
            if left.0.is_empty() && left.1.is_empty() || Instant::now() > until {
                break left;
            }
            thread::sleep(Duration::from_millis(50));
        };
        // The socket of a killed process stays until the next listing.
        let _ = self.command(&self.grebe).args(["top", "--once"]).output();
        let mut left = Vec::new();
        let said = |what: &str, paths: Vec<PathBuf>| {
            (!paths.is_empty()).then(|| format!("{what} is left: {paths:?}"))
        };
        let run = self.path("run").join("grebe");
        let shared = entries("/dev/shm").into_iter().filter(|path| !self.shared.contains(path));
        let shared = shared
            .filter(|path| {
                let name = path.to_string_lossy();
                // A bench elsewhere keeps its files there meanwhile.
                name.contains("grebe") && !name.contains("grebe-bench-")
            })
            .collect();
        let sessions = |path: &PathBuf| {
            path.extension().is_none_or(|extension| extension != "toml" && extension != "json")
        };
        let run = entries(run).into_iter().filter(|path| !path.is_dir() && sessions(path)).collect();
        left.extend(said("in the runtime directory", run));
        left.extend(said("a temporary file", entries(self.path("tmp"))));
        left.extend(said("shared memory", shared));
        left.extend(said("a socket", sockets));
        left.extend(said("a process", processes));
        left
    }
}

fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A process that ends with this value.
pub(crate) struct Running {
    pub(crate) name: String,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    pub(crate) is_stopped: bool,
}

/// How a process ended.
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) said: String,
}

impl Running {
    fn of(name: String, mut child: Child) -> Result<Self> {
        let stderr = child.stderr.take().map(read_all);
        Ok(Self { name, child, stdout: None, stderr, is_stopped: false })
    }

    /// Its output, for another process.
    pub(crate) fn output(&mut self) -> Stdio {
        self.child.stdout.take().map_or_else(Stdio::null, Stdio::from)
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself; it was not waited for, so that its number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    pub(crate) fn stop(&mut self) {
        self.signal(Signal::STOP);
        self.is_stopped = true;
    }

    pub(crate) fn go_on(&mut self) {
        self.signal(Signal::CONT);
        self.is_stopped = false;
    }

    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, with a timeout; returns whether it has ended.
    pub(crate) fn is_over_within(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while !self.is_over() {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Kills it with SIGKILL; `None` if it had already ended.
    pub(crate) fn kill(mut self) -> Result<Option<Ended>> {
        if self.is_over() {
            return self.end().map(Some);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        Ok(None)
    }

    /// Interrupts it, and waits for its end.
    pub(crate) fn interrupt(mut self) -> Result<Ended> {
        self.go_on();
        self.signal(Signal::INT);
        self.end()
    }

    /// Waits for its end, half a minute at most.
    pub(crate) fn end(mut self) -> Result<Ended> {
        if self.stdout.is_none() {
            self.stdout = self.child.stdout.take().map(read_all);
        }
        if !self.is_over_within(Duration::from_secs(30)) {
            bail!("{} does not end", self.name);
        }
        let status = self.child.wait()?;
        let collect =
            |thread: Option<JoinHandle<Vec<u8>>>| thread.and_then(|it| it.join().ok()).unwrap_or_default();
        let (stdout, stderr) = (collect(self.stdout.take()), collect(self.stderr.take()));
        let said = String::from_utf8_lossy(&stderr).trim().replace('\n', " | ");
        Ok(Ended { name: std::mem::take(&mut self.name), status, stdout, said })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}
