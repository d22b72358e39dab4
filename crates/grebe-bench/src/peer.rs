//! The processes of a run: the measuring process starts them, and none outlives it. A process gets its task as a line
//! of JSON on standard input, and answers with lines of JSON, `{"Ok": ...}` or `{"Err": "why"}`, on standard output.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use grebe_connection::Cancel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// Starts processes that call [`peer_main`](crate::peer_main) and do nothing else.
#[derive(Clone)]
pub struct Launcher(Arc<dyn Fn() -> Command + Send + Sync>);

impl Launcher {
    /// `command` makes the command of one process.
    pub fn new(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self(Arc::new(command))
    }

    pub(crate) fn command(&self) -> Command {
        (self.0)()
    }
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Launcher")
    }
}

/// The task of a process.
pub(crate) trait Task: Serialize + DeserializeOwned {
    /// The bench that it belongs to.
    const BENCH: &'static str;
}

/// The bench and the task of this process.
pub(crate) fn read_task() -> Result<(String, Value)> {
    let mut from = stdin_unbuffered()?;
    let (mut line, mut byte) = (Vec::new(), [0]);
    // A line, and not a byte more: what follows may be samples.
    while from.read(&mut byte).map_err(Error::io("read the task"))? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    serde_json::from_slice(&line).map_err(|error| Error::peer("task", error))
}

/// The task as its bench knows it.
pub(crate) fn task<T: Task>(task: Value) -> Result<T> {
    serde_json::from_value(task).map_err(|error| Error::peer("task", error))
}

/// The answer of a process.
pub(crate) type Answer<T> = std::result::Result<T, String>;

/// A process with a task, seen from the one that started it.
pub(crate) struct Peer {
    /// Its name in errors.
    side: &'static str,
    pub child: Child,
    stdin: Option<ChildStdin>,
    answers: mpsc::Receiver<String>,
    cancel: Cancel,
}

impl Peer {
    pub(crate) fn start<T: Task>(
        mut command: Command,
        side: &'static str,
        task: &T,
        cancel: &Cancel,
    ) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = on_its_own(&mut command).spawn().map_err(Error::io("start a process of the run"))?;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (told, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.map(BufReader::new).into_iter().flat_map(BufRead::lines);
            // Until it ends, or the receiver is gone.
            lines.map_while(|line| line.ok()).try_for_each(|line| told.send(line))
        });
        let text = serde_json::to_string(&(T::BENCH, task)).map_err(|error| Error::peer(side, error))?;
        let is_taken = stdin.as_mut().is_some_and(|stdin| writeln!(stdin, "{text}").is_ok());
        let peer = Self { side, child, stdin, answers, cancel: cancel.clone() };
        if is_taken { Ok(peer) } else { Err(peer.failed("it takes no task")) }
    }

    /// Its next answer.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Peer`] with its own message, or if it is gone.
    pub(crate) fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        loop {
            self.check_cancel()?;
            if let Some(answer) = self.answer_within(Duration::from_millis(20))? {
                return Ok(answer);
            }
        }
    }

    /// Its next answer, if it comes in time.
    pub(crate) fn answer_within<T: DeserializeOwned>(&mut self, time: Duration) -> Result<Option<T>> {
        let line = match self.answers.recv_timeout(time) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.failed("it is gone")),
        };
        match serde_json::from_str::<Answer<T>>(&line) {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(why)) => Err(self.failed(why)),
            Err(error) => Err(self.failed(format!("{error} in its answer {line:?}"))),
        }
    }

    /// Its standard input; when that is closed, a process that waits for it ends.
    pub(crate) fn stdin(&mut self) -> Result<ChildStdin> {
        self.stdin.take().ok_or_else(|| self.failed("it has no pipe"))
    }

    pub(crate) fn check_cancel(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    pub(crate) fn failed(&self, reason: impl ToString) -> Error {
        Error::peer(self.side, reason)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already, and then neither finds it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ctrl-C is for the process that started it, which ends it in order.
pub(crate) fn on_its_own(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Tells the process that started this one something.
pub(crate) fn say(answer: &impl Serialize) -> Result<()> {
    say_either(&Answer::Ok(answer))
}

/// Sends the result, or the error.
pub(crate) fn say_either<T: Serialize>(answer: &Answer<T>) -> Result<()> {
    let text = serde_json::to_string(answer).map_err(|error| Error::peer("task", error))?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Error::io("answer"))
}

/// Ends this process when standard input ends, because its parent is gone.
pub(crate) fn end_with_input() {
    thread::spawn(|| {
        wait_for_end_of_input();
        std::process::exit(1);
    });
}

pub(crate) fn wait_for_end_of_input() {
    // An input that cannot be read has ended.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

#[cfg(unix)]
pub(crate) fn stdin_unbuffered() -> Result<std::fs::File> {
    use std::os::fd::AsFd;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Error::io("use standard input"))?;
    Ok(std::fs::File::from(stdin))
}

#[cfg(not(unix))]
pub(crate) fn stdin_unbuffered() -> Result<io::Stdin> {
    Ok(io::stdin())
}
