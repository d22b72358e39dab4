//! Other programs of a run: found, started, kept running, and run to their end. None outlives it.

use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use grebe_transfer::Cancel;

use super::kept::ENDING_TIME;
use super::tasks::{LOOPBACK, TransferTask};
use crate::error::{Error, Result};
use crate::peer::{Peer, on_its_own};

/// A program that runs until this is dropped, and is then interrupted.
pub(super) struct Kept(Peer);

impl Kept {
    /// Starts it under a process of ours that ends it even where this one is killed.
    pub(super) fn start(
        command: Command,
        side: &'static str,
        program: impl Into<PathBuf>,
        arguments: &[impl AsRef<OsStr>],
        cancel: &Cancel,
    ) -> Result<Self> {
        let text = |argument: &OsStr| argument.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|argument| text(argument.as_ref())).collect();
        let task = TransferTask::Keep { program: program.into(), arguments };
        task.start(command, side, cancel).map(Self)
    }

    /// Waits until `is_ready`, ten seconds at most.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Peer`] with what the program said where it ended, or where it is not ready in time.
    pub(super) fn wait_until(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            self.0.check_cancel()?;
            // Its only answer is its end.
            if self.0.answer_within::<String>(Duration::from_millis(20))?.is_some() {
                return Err(self.0.failed("it ended"));
            }
            if is_ready() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(self.0.failed("it is not ready after 10 s"));
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.0.stdin());
        // Its last words, or that it is gone: either way it has ended.
        let _ = self.0.answer_within::<String>(ENDING_TIME + Duration::from_secs(1));
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
    pub(super) fn run(command: &mut Command, cancel: &Cancel) -> Result<Self> {
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
    pub(super) fn why(&self) -> String {
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
    let listener = std::net::TcpListener::bind((LOOPBACK, 0)).map_err(Error::io("find a free port"))?;
    Ok(listener.local_addr().map_err(Error::io("find a free port"))?.port())
}
