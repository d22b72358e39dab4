//! Other programs of a run: found, started, kept running, and run to their end. None outlives it.

use std::ffi::OsStr;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use grebe_connection::Cancel;
use serde_json::Value;

use super::options::{LOOPBACK, Options, TransferTask};
use super::room::Room;
use crate::error::{Error, Result};
use crate::peer::{Answer, Peer, on_its_own, wait_for_end_of_input};
use crate::system::free_port;

/// A program that runs until this is dropped, and is then interrupted, so that it can tidy up.
pub(super) struct Kept(Peer);

impl Kept {
    /// Starts it under a process of ours that ends it even where this one is killed.
    pub(super) fn start(
        options: &Options,
        side: &'static str,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<Self> {
        let text = |argument: &OsStr| argument.to_string_lossy().into_owned();
        let arguments = arguments.iter().map(|argument| text(argument.as_ref())).collect();
        options.start(side, TransferTask::Keep { program: program.to_owned(), arguments }).map(Self)
    }

    /// Waits until `is_ready`, up to ten seconds.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Peer`] with the program's message if it has ended, or if it is not ready in time.
    pub(super) fn wait_until(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let until = Instant::now() + READY_WITHIN;
        while !is_ready() {
            self.0.check_cancel()?;
            // Its only answer is its end.
            self.0.answer_within::<()>(Duration::from_millis(20))?;
            if Instant::now() >= until {
                return Err(self.0.failed(format!("it is not ready after {} s", READY_WITHIN.as_secs())));
            }
        }
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.0.stdin());
        // That it ended, or that it is gone.
        let _ = self.0.answer_within::<()>(ENDING_TIME + Duration::from_secs(1));
    }
}

/// The process that keeps a program: runs it until standard input ends. An error where the program ended by itself.
pub(super) fn keep(program: &Path, arguments: &[String]) -> Answer<()> {
    let is_over = Cancel::default();
    let over = is_over.clone();
    thread::spawn(move || {
        wait_for_end_of_input();
        over.cancel();
    });
    match Finished::run(Command::new(program).args(arguments), &is_over) {
        Err(Error::Cancelled) => Ok(()),
        Err(error) => Err(format!("{}: {error}", program.display())),
        Ok(finished) => Err(format!("{} ended: {}", program.display(), finished.why())),
    }
}

/// The process that removes a directory once standard input ends.
pub(super) fn guard(directory: &Path) {
    wait_for_end_of_input();
    // Its writers end at the same time, but perhaps a moment later.
    for _ in 0..10 {
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Output of a finished program.
struct Finished {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Finished {
    /// Runs a program to its end; it is interrupted where the user ends the run.
    fn run(command: &mut Command, cancel: &Cancel) -> Result<Self> {
        let began = Instant::now();
        let mut child = on_its_own(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a program"))?;
        let (stdout, stderr) = (last_words(child.stdout.take()), last_words(child.stderr.take()));
        let mut ends_by = None;
        loop {
            if let Some(status) = child.try_wait().map_err(Error::io("wait for a program"))? {
                let took = began.elapsed();
                if ends_by.is_some() {
                    return Err(Error::Cancelled);
                }
                let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
                return Ok(Self { status, stdout: text(stdout), stderr: text(stderr), took });
            }
            if cancel.is_cancelled() && ends_by.is_none() {
                ends_by = Some(Instant::now() + ENDING_TIME);
                interrupt(&mut child);
            }
            if ends_by.is_some_and(|by| Instant::now() >= by) {
                let _ = child.kill();
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Why it failed, in a line.
    fn why(&self) -> String {
        let said = self.stderr.trim().lines().last();
        said.map_or_else(|| self.status.to_string(), |line| format!("{line} ({})", self.status))
    }
}

/// How long a server may take to listen: a loaded machine starts slowly.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long a program that was interrupted may take to end.
const ENDING_TIME: Duration = Duration::from_secs(5);

#[cfg(unix)]
fn interrupt(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // It was not waited for since it ended, so that its number is still its own.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
}

#[cfg(not(unix))]
fn interrupt(child: &mut Child) {
    let _ = child.kill();
}

/// The end of a program's output, whatever its length.
fn last_words(mut pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut words, mut block) = (Vec::new(), [0; 4_096]);
        while let Some(Ok(now @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut block)) {
            words.extend_from_slice(&block[..now]);
            words.drain(..words.len().saturating_sub(LAST_WORDS_BYTES));
        }
        String::from_utf8_lossy(&words).into_owned()
    })
}

const LAST_WORDS_BYTES: usize = 64 << 10;

/// A program where it is installed.
pub(super) fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers lie where a user's path often does not lead.
    let more = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let mut files = std::env::split_paths(&path).chain(more).map(|folder| folder.join(program));
    files.find(|file| file.is_file()).ok_or_else(|| Error::Failed(format!("{program} is not installed")))
}

/// Seconds for the file's size by `iperf3` with TCP: no file, no hash, no encryption.
pub(super) fn iperf(iperf: &Path, options: &Options) -> Result<f64> {
    let (port, bytes) = (free_port()?.to_string(), options.file_size.to_string());
    let arguments = ["-s", "-1", "-B", "127.0.0.1", "-p", &port];
    let mut server = Kept::start(options, "iperf3 server", iperf, &arguments)?;
    let mut measured = Ok(None);
    // The server may not listen yet; it takes one client, so that the first that reaches it measures.
    server.wait_until(|| {
        let mut client = Command::new(iperf);
        client.args(["-c", "127.0.0.1", "-p", &port, "-n", &bytes, "-J"]);
        measured = Finished::run(&mut client, &options.cancel).map(|it| seconds_per_byte(&it.stdout));
        !matches!(measured, Ok(None))
    })?;
    match measured? {
        Some(seconds) => Ok(seconds * options.file_size as f64),
        None => Err(server.0.failed("it measured nothing")),
    }
}

/// Result of an `iperf3` report; `None` for an error or an empty report.
fn seconds_per_byte(json: &str) -> Option<f64> {
    let report: Value = serde_json::from_str(json).ok()?;
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).filter(|&number| number > 0.0);
    let per_byte = |sum: &str| {
        let measured = number(&format!("{sum}/seconds")).zip(number(&format!("{sum}/bytes")));
        measured.map(|(seconds, bytes)| seconds / bytes)
    };
    // Of a small file its server may have counted nothing when the client asks.
    per_byte("/end/sum_received").or_else(|| per_byte("/end/sum_sent"))
}

/// `scp` to this machine, through our own ssh server with its own keys, all removed at the end.
pub(super) struct Scp {
    scp: PathBuf,
    port: u16,
    keys: PathBuf,
    _server: Kept,
}

impl Scp {
    /// Starts the server, and logs in once.
    ///
    /// # Errors
    /// Why it cannot be measured here.
    pub(super) fn start(options: &Options, room: &Room) -> Result<Self> {
        let (sshd, keygen, scp) = (find("sshd")?, find("ssh-keygen")?, find("scp")?);
        let keys = room.keys();
        std::fs::create_dir(&keys).map_err(Error::io("make a directory for keys"))?;
        for key in ["host", "user"] {
            let mut make = Command::new(&keygen);
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", "grebe bench", "-f"]).arg(keys.join(key));
            let made = Finished::run(&mut make, &options.cancel)?;
            if !made.status.success() {
                return Err(Error::peer("ssh-keygen", made.why()));
            }
        }
        let port = free_port()?;
        let mut server = Kept::start(options, "ssh server", &sshd, &server_arguments(port, &keys))?;
        let address = SocketAddr::new(LOOPBACK, port);
        server.wait_until(|| TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok())?;
        let this = Self { scp, port, _server: server, keys };
        // A machine may refuse a login that its server takes: better known before anything is measured.
        let tried = this.copy(&this.keys.join("user.pub"), &this.keys.join("copy"), options);
        match tried {
            Err(Error::Peer { reason, .. }) => {
                Err(Error::Failed(format!("this user cannot log in here, even with a key ({reason})")))
            }
            tried => tried.map(|_| this),
        }
    }

    /// Seconds for a file, connecting and logging in with them.
    pub(super) fn copy(&self, from: &Path, to: &Path, options: &Options) -> Result<f64> {
        let known = format!("UserKnownHostsFile={}", self.keys.join("known").display());
        let mut scp = Command::new(&self.scp);
        scp.args(["-q", "-F", "/dev/null", "-P", &self.port.to_string(), "-i"]).arg(self.keys.join("user"));
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "StrictHostKeyChecking=no",
            "LogLevel=ERROR",
            "Compression=no",
            &known,
        ] {
            scp.args(["-o", option]);
        }
        scp.arg(from).arg(format!("{LOOPBACK}:{}", to.display()));
        let copied = Finished::run(&mut scp, &options.cancel)?;
        if copied.status.success() {
            Ok(copied.took.as_secs_f64())
        } else {
            Err(Error::peer("scp", copied.why()))
        }
    }
}

/// A server for this user's one key, that reads no configuration but this.
fn server_arguments(port: u16, keys: &Path) -> Vec<String> {
    let key = |name: &str| keys.join(name).display().to_string();
    let options = [
        format!("Port={port}"),
        format!("ListenAddress={LOOPBACK}"),
        format!("HostKey={}", key("host")),
        format!("AuthorizedKeysFile={}", key("user.pub")),
        "PidFile=none".to_owned(),
        "UsePAM=no".to_owned(),
        // The keys are in a private directory, but below a public one.
        "StrictModes=no".to_owned(),
        "PasswordAuthentication=no".to_owned(),
        "KbdInteractiveAuthentication=no".to_owned(),
        "PermitRootLogin=prohibit-password".to_owned(),
        "Subsystem=sftp internal-sftp".to_owned(),
    ];
    let flags = ["-D", "-e", "-f", "/dev/null"].map(str::to_owned).into_iter();
    flags.chain(options.into_iter().flat_map(|option| ["-o".to_owned(), option])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_last_words() {
        let many = "x".repeat(1_000_000) + "the end";
        let words = last_words(Some(std::io::Cursor::new(many))).join().unwrap();
        assert!(words.len() == LAST_WORDS_BYTES && words.ends_with("the end"));
    }

    #[test]
    fn a_report_of_iperf3_is_read_and_its_error_gives_no_result() {
        let good = r#"{"end": {"sum_received": {"seconds": 0.5, "bytes": 1000}}}"#;
        assert_eq!(seconds_per_byte(good), Some(0.0005));
        let small = r#"{"end": {"sum_received": {"seconds": 0.5, "bytes": 0}, "sum_sent": {"seconds": 1, "bytes": 1000}}}"#;
        assert_eq!(seconds_per_byte(small), Some(0.001));
        let bad = r#"{"end": {}, "error": "unable to connect"}"#;
        assert_eq!(seconds_per_byte(bad), None);
        assert_eq!(seconds_per_byte("not json"), None);
    }
}
