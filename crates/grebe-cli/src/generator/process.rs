//! A generator's process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, anyhow};
use grebe_stages::Uri;
use grebe_view::GeneratorRemote;

use super::recipe::Recipe;
use super::remote::remote;
use crate::show::Failure;

/// The process of a generator. It ends with this value, and also when this process is killed.
pub(crate) struct Generator {
    child: Child,
    /// Carries commands to it; the generator ends when it is closed.
    stdin: Option<Arc<Mutex<ChildStdin>>>,
    is_remote: bool,
    /// Its last error, for the screen.
    said: Failure,
    listener: Option<JoinHandle<()>>,
}

impl Generator {
    /// Starts what a person wants.
    pub(crate) fn start(recipe: Recipe) -> Result<(Self, Option<ChildStdout>)> {
        let Recipe { mut command, uri, is_remote } = recipe;
        let is_pipe = matches!(uri, Uri::Pipe);
        command.stdout(if is_pipe { Stdio::piped() } else { Stdio::null() });
        let mut generator = Self::spawn(&mut command)?;
        generator.is_remote = is_remote;
        if !is_remote {
            // Another program may wait for the end of its input; our own ends with it.
            let stdin = generator.stdin.take();
            generator.stdin = stdin.filter(|_| command.get_args().any(|word| word == "--tethered"));
        }
        let stdout = generator.child.stdout.take();
        Ok((generator, stdout))
    }

    /// Starts it; what it says on standard error is kept.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let stdin = child.stdin.take().map(|stdin| Arc::new(Mutex::new(stdin)));
        let said = Failure::default();
        let listener = child.stderr.take().map(|stderr| {
            let said = said.clone();
            std::thread::spawn(move || {
                // Its errors begin with the name of the command; the rest is about its progress.
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    if let Some(error) = line.strip_prefix("grebe: ") {
                        said.set(error.to_owned());
                    }
                }
            })
        });
        Ok(Self { child, stdin, is_remote: true, said, listener })
    }

    /// Its last error.
    pub(crate) fn said(&self) -> Failure {
        self.said.clone()
    }

    /// What the scope's controls call. Commands go through a pipe that holds thousands of them, so that no call waits.
    pub(crate) fn remote(&self) -> Option<GeneratorRemote> {
        let stdin = self.stdin.clone().filter(|_| self.is_remote)?;
        Some(remote(move |command| {
            let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
            stdin.write_all(&command.to_bytes()).map_err(|_| "the generator has ended".to_owned())
        }))
    }

    /// The reason, where it has ended with a failure.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(Some(status)) if !status.success() => {
                // Its standard error ended with it.
                let _ = self.listener.take().map(JoinHandle::join);
                let said = self.said.get();
                Err(anyhow!("the generator failed: {}", said.unwrap_or_else(|| status.to_string())))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
