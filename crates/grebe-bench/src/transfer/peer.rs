//! The processes of a run, seen from the one that started them. None outlives it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use grebe_transfer::Cancel;
use serde::de::DeserializeOwned;

use super::job::{Answer, Job, KEPT_PATIENCE};
use crate::{Error, Result};

/// This command again, with a [`Job`].
pub(super) struct Peer {
    side: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: mpsc::Receiver<String>,
    cancel: Cancel,
}

impl Peer {
    /// Starts it. `side` is what it is called in errors.
    pub fn start(mut command: Command, side: &'static str, job: &Job, cancel: &Cancel) -> Result<Self> {
        let mut child = on_its_own(&mut command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a process of the run"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (told, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in
                stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(|line| line.ok())
            {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        let mut peer = Self { side, child, stdin, answers, cancel: cancel.clone() };
        let text = serde_json::to_string(job).map_err(|error| peer.lost(&error.to_string()))?;
        let written = peer.stdin.as_mut().map(|stdin| writeln!(stdin, "{text}"));
        match written {
            Some(Ok(())) => Ok(peer),
            _ => Err(peer.lost("it takes no job")),
        }
    }

    /// Its next answer.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Process`] with what it says went wrong, or where it is gone.
    pub fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if let Some(answer) = self.answer_within(Duration::from_millis(20))? {
                return Ok(answer);
            }
        }
    }

    /// Its next answer, if it comes in time.
    pub fn answer_within<T: DeserializeOwned>(&mut self, time: Duration) -> Result<Option<T>> {
        let line = match self.answers.recv_timeout(time) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.lost("it is gone")),
        };
        match serde_json::from_str::<Answer<T>>(&line) {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(why)) => Err(self.lost(&why)),
            Err(error) => Err(self.lost(&format!("{error} in its answer {line:?}"))),
        }
    }

    fn lost(&self, reason: &str) -> Error {
        Error::Process { side: self.side, reason: reason.to_owned() }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already, and then neither finds it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that runs until this is dropped, and is then interrupted.
pub(super) struct Kept(Peer);

impl Kept {
    /// Starts it under a process of ours that ends it even where this one is killed.
    pub fn start(
        command: Command,
        side: &'static str,
        program: impl Into<PathBuf>,
        arguments: &[impl AsRef<OsStr>],
        cancel: &Cancel,
    ) -> Result<Self> {
        let text = |argument: &OsStr| argument.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|argument| text(argument.as_ref())).collect();
        Peer::start(command, side, &Job::Keep { program: program.into(), arguments }, cancel).map(Self)
    }

    /// Waits until `is_ready`, ten seconds at most.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Process`] with what the program said where it ended, or where it is not ready in time.
    pub fn wait_until(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            if self.0.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            // Its only answer is its end.
            if self.0.answer_within::<String>(Duration::from_millis(20))?.is_some() {
                return Err(self.0.lost("it ended"));
            }
            if is_ready() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(self.0.lost("it is not ready after 10 s"));
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its last words, or that it is gone: either way it has ended.
        let _ = self.0.answer_within::<String>(KEPT_PATIENCE + Duration::from_secs(1));
    }
}

/// What a program said until its end.
pub(super) struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Finished {
    /// Runs a program to its end; it is killed where the user ends the run.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; where it cannot be started.
    pub fn run(command: &mut Command, cancel: &Cancel) -> Result<Self> {
        let began = Instant::now();
        let mut child = on_its_own(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a program to compare with"))?;
        let (stdout, stderr) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
        loop {
            if let Some(status) = child.try_wait().map_err(Error::io("wait for a program"))? {
                let took = began.elapsed();
                let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
                return Ok(Self { status, stdout: text(stdout), stderr: text(stderr), took });
            }
            if cancel.is_cancelled() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Cancelled);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Why it failed, in a line.
    pub fn why(&self) -> String {
        let said = self.stderr.trim();
        match said.lines().last() {
            Some(line) => line.to_owned(),
            None => self.status.to_string(),
        }
    }
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could be read of it is better than nothing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A program where it is installed.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers lie where a user's path often does not lead.
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A port that was free a moment ago.
pub(super) fn free_port() -> Result<u16> {
    let listener =
        std::net::TcpListener::bind((super::job::LOOPBACK, 0)).map_err(Error::io("find a free port"))?;
    Ok(listener.local_addr().map_err(Error::io("find a free port"))?.port())
}

/// Ctrl-C is for the process that started it, which ends it in order.
fn on_its_own(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}
