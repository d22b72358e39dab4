//! Runs a command on another host by the user's own `ssh`, which knows the user's keys, aliases and gateways.
//!
//! ```text
//!  this process <=stdout== ssh <~~~ output of the login, then the mark of the command
//!               ==stdin==>          its task, if any
//!               <=stdout==          one line when it is ready, then its own output
//!               <=stderr==          messages of ssh and the command, and lines for this process
//! ```
//!
//! However this process ends, the pipe to `ssh` closes. `ssh` passes that on, so the remote command can end
//! too.

mod login;
mod output;
mod why;

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grebe_connection::{Address, printable};

use crate::error::{During, Error, Result};
use crate::hello::EVENT;
use crate::host::SshHost;

pub(crate) use self::login::MARK;
use self::login::{Login, Noise};
pub(crate) use self::output::Began;
use self::output::{LastLines, Output, SHOWN_AFTER, await_ready, listen};
pub(crate) use self::why::{Ended, Purpose};

/// How to start `ssh`.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// Shows a message to the user.
    note: fn(&str),
    program: String,
    options: Vec<String>,
    /// Survives Ctrl-C.
    is_shielded: bool,
    /// Runs without a user to answer it.
    is_unattended: bool,
}

/// The `ssh` process of a remote command.
pub(crate) struct SshProcess {
    child: Child,
    output: Receiver<Output>,
    login: Login,
    noise: Noise,
    /// Whether `ssh` reports a successful login.
    says_login: bool,
    host_name: Option<String>,
    said: LastLines,
    /// Unread lines for this process.
    events: Vec<String>,
    is_let_go: bool,
    /// It has ended, and all its output was read.
    is_drained: bool,
}

/// Reason why a command did not become ready.
pub(crate) enum NotReady {
    Interrupted,
    Ended(Ended),
}

/// Quotes a word for any remote shell. `~/` stays the home of the remote user.
pub fn word_there(word: &str) -> String {
    let (home, rest) = word.strip_prefix("~/").map_or(("", word), |rest| ("~/", rest));
    if !rest.is_empty() && rest.chars().all(is_plain) {
        return word.to_owned();
    }
    let (mut quoted, mut is_open) = (home.to_owned(), false);
    for letter in rest.chars() {
        // Inside quotes csh interprets `!` and fish `\\`; outside, a backslash before them works in every
        // shell.
        let stands_alone = matches!(letter, '\'' | '!' | '\\');
        if is_open == stands_alone {
            quoted.push('\'');
            is_open = !is_open;
        }
        quoted.extend(stands_alone.then_some('\\'));
        quoted.push(letter);
    }
    quoted
        + if is_open {
            "'"
        } else if rest.is_empty() && home.is_empty() {
            "''"
        } else {
            ""
        }
}

/// Whether a character is plain in every shell.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter)
}

impl Ssh {
    /// Parses the user's command, such as `ssh -p 2222`, with shell quoting; the default is plain `ssh`.
    /// `note` shows messages to the user.
    ///
    /// # Errors
    /// [`Error::Usage`] if the words are not a command.
    pub fn by(words: Option<&str>, note: fn(&str)) -> Result<Self> {
        let words = words.unwrap_or("ssh");
        let mut options = shlex::split(words)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| Error::Usage(format!("--ssh {words:?}: give a command, with quotes closed")))?;
        let program = options.remove(0);
        Ok(Self { note, program, options, is_shielded: false, is_unattended: false }.for_channel())
    }

    /// Disables settings of the user's configuration that are only for logins, like `scp` does.
    fn for_channel(mut self) -> Self {
        if self.is_openssh() {
            self.options.push("-x".to_owned());
        }
        self.with_options(&["PermitLocalCommand=no", "ClearAllForwardings=yes", "RemoteCommand=none"])
    }

    /// Adds options of OpenSSH, if it is that.
    fn with_options(mut self, options: &[&str]) -> Self {
        if self.is_openssh() {
            self.options.extend(options.iter().flat_map(|&option| ["-o".to_owned(), option.to_owned()]));
        }
        self
    }

    fn is_openssh(&self) -> bool {
        let name = self.program.rsplit(['/', '\\']).next().unwrap_or_default();
        name.trim_end_matches(".exe") == "ssh"
    }

    /// Makes it end after some fifteen seconds without a sign of the other end, because the connection is
    /// dead.
    #[must_use]
    pub fn watched(self) -> Self {
        self.with_options(&["ServerAliveInterval=5", "ServerAliveCountMax=3"])
    }

    /// Makes it ask nothing, give up on silent hosts, and print nothing later, because the terminal may show
    /// a scope.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { is_unattended: true, ..self }.with_options(&["BatchMode=yes", "ConnectTimeout=10"])
    }

    /// Shields it from Ctrl-C, which the terminal sends to all its processes, so that the remote command can
    /// end in order.
    #[must_use]
    pub fn shielded(self) -> Self {
        Self { is_shielded: cfg!(unix), ..self }
    }

    /// Shows a message to the user, if there is one.
    pub(crate) fn tell(&self, text: &str) {
        if !self.is_unattended {
            (self.note)(text);
        }
    }

    /// Starts a command, a line for the remote shell. Skips its output up to [`MARK`], and then up to the
    /// line for which `is_ready` returns true.
    pub(crate) fn start(
        &self,
        host: &SshHost,
        line: &str,
        is_ready: fn(&str) -> bool,
        instead: &str,
    ) -> Result<SshProcess> {
        let (host_name, says_login) = self.asked(host);
        let mut command = self.command(host);
        if says_login {
            command.args(["-o", "LogLevel=VERBOSE"]);
        }
        command.arg("--").arg(host.to_string()).arg(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = match self.is_shielded && !is_there(&self.program) {
            true => Err(ErrorKind::NotFound.into()),
            false => command.spawn(),
        };
        let mut child = spawned.map_err(|error: io::Error| match error.kind() {
            ErrorKind::NotFound => Error::not_started(format!(
                "`{}` is not installed on this machine: install OpenSSH{instead}",
                self.program
            )),
            _ => Error::System { what: format!("cannot run `{}`", self.program), source: error },
        })?;
        let (tells, output) = mpsc::sync_channel(OUTPUT_LINES_MAX);
        let noise = Noise::default();
        if let Some(pipe) = child.stdout.take() {
            let (tells, noise) = (tells.clone(), noise.clone());
            thread::spawn(move || await_ready(pipe, &tells, &noise, is_ready));
        }
        if let Some(pipe) = child.stderr.take() {
            thread::spawn(move || listen(pipe, &tells));
        }
        Ok(SshProcess {
            child,
            output,
            login: Login::new(noise.clone()),
            noise,
            says_login,
            host_name,
            said: LastLines::new((!self.is_unattended).then_some(self.note)),
            events: Vec::new(),
            is_let_go: false,
            is_drained: false,
        })
    }

    /// Host name that `ssh` resolves to, and whether its log level may be raised. It may not if the user has
    /// set another one.
    fn asked(&self, host: &SshHost) -> (Option<String>, bool) {
        let mut command = self.command(host);
        command.arg("-G").arg("--").arg(host.to_string());
        let told = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let told = told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned()).unwrap_or_default();
        let of = |key: &str| told.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        (of("hostname ").map(str::to_owned), self.is_openssh() && of("loglevel ") == Some("INFO"))
    }

    fn command(&self, host: &SshHost) -> Command {
        let mut command = Command::new(if self.is_shielded { "sh" } else { &self.program });
        if self.is_shielded {
            // `ssh` inherits an ignored signal and leaves it ignored.
            command.args(["-c", "trap '' INT; exec \"$@\"", "sh", &self.program]);
        }
        command.arg("-T").args(&self.options);
        if let Some(port) = host.port {
            command.arg("-p").arg(port.to_string());
        }
        command
    }
}

impl SshProcess {
    /// Its input. Dropping this ends it.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Host name that `ssh` resolves to.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.host_name.as_deref()
    }

    /// Waits for the mark, sends the task, and waits until the command is ready. `ssh` and the command may
    /// take their time, for instance to ask for a password. Gives up on a login that never reaches the
    /// command.
    pub(crate) fn ready(&mut self, task: &[u8], is_cancelled: impl Fn() -> bool) -> Result<Began, NotReady> {
        let (mut has_begun, mut ended_at) = (false, None);
        let mut giving: Option<JoinHandle<io::Result<ChildStdin>>> = None;
        loop {
            if is_cancelled() {
                return Err(NotReady::Interrupted);
            }
            match self.output.recv_timeout(POLL) {
                Ok(Output::Begun) => {
                    has_begun = true;
                    if let Some(mut stdin) = self.child.stdin.take_if(|_| !task.is_empty()) {
                        // A long task does not fit into a pipe.
                        let task = task.to_vec();
                        giving = Some(thread::spawn(move || stdin.write_all(&task).map(|()| stdin)));
                    }
                }
                Ok(Output::Ready(ready)) => {
                    if let Some(giving) = giving {
                        self.child.stdin = given(giving);
                    }
                    return Ok(ready);
                }
                Ok(Output::Flood) => {
                    return Err(self.give_up("what it left running prints, too".to_owned()));
                }
                Ok(output) => self.take(output),
                Err(RecvTimeoutError::Timeout) => self.said.show(),
                Err(RecvTimeoutError::Disconnected) => return Err(NotReady::Ended(self.ended())),
            }
            // A background master of `ssh` may keep its pipes open.
            if ended_at.is_none() && matches!(self.child.try_wait(), Ok(Some(_))) {
                ended_at = Some(Instant::now());
            }
            if ended_at.is_some_and(|at: Instant| at.elapsed() > SHOWN_AFTER) {
                return Err(NotReady::Ended(self.ended()));
            }
            if !has_begun && let Some(why) = self.login.is_stuck() {
                return Err(self.give_up(why));
            }
        }
    }

    fn give_up(&mut self, why: String) -> NotReady {
        self.kill();
        NotReady::Ended(Ended { stuck: Some(why), ..self.ended() })
    }

    /// Reads new output and shows the user's part. Returns the lines for this process.
    pub(crate) fn poll(&mut self) -> Vec<String> {
        self.take_in();
        self.said.show();
        std::mem::take(&mut self.events)
    }

    /// Like [`poll`](Self::poll), but prints nothing, because the terminal may show a scope.
    pub(crate) fn poll_quietly(&mut self) -> Vec<String> {
        self.take_in();
        std::mem::take(&mut self.events)
    }

    /// Waits for its end, for at most `patience`.
    pub(crate) fn has_ended_within(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it ended with an error: it, or its remote command, was killed.
    pub(crate) fn is_lost(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Waits for its end and returns the result.
    pub(crate) fn ended(&mut self) -> Ended {
        drop(self.child.stdin.take());
        let status = self.child.wait().ok().and_then(|status| status.code());
        self.take_in();
        let noise = self.noise.last();
        let noise: String = noise.lines().map(|line| printable(line.as_bytes()) + "\n").collect();
        Ended { status, printed: noise.clone(), said: noise + &self.said.text(), stuck: None }
    }

    /// Its last line of output.
    pub(crate) fn last_words(&mut self) -> Option<&str> {
        self.take_in();
        self.said.last()
    }

    /// Kills `ssh`: its pipes break, and the remote command reads the end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Lets it end by itself. Once its input is closed, nobody has to wait for it.
    pub(crate) fn let_go(mut self) {
        self.is_let_go = true;
    }

    fn take_in(&mut self) {
        while let Ok(output) = self.output.try_recv() {
            self.take(output);
        }
        if self.is_drained || !self.has_ended_within(Duration::ZERO) {
            return;
        }
        // Its last output may not have been read yet. A shared connection can keep its outputs open.
        self.is_drained = true;
        let until = Instant::now() + LAST_LINES_WITHIN;
        while let Ok(output) = self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output) {
        let Output::Err(line) = output else { return };
        self.login.heard();
        // A login may print there too, without a line end.
        let (line, event) = line.split_at(line.find(EVENT).unwrap_or(line.len()));
        if !event.is_empty() {
            self.events.push(event.to_owned());
        }
        let is_login = line.starts_with("Authenticated to ");
        if is_login {
            self.login.has_logged_in();
        }
        let is_unasked = is_login
            || ["Transferred: sent ", "Bytes per second: sent "].iter().any(|words| line.starts_with(words));
        if !(line.is_empty() || is_unasked && self.says_login) {
            self.said.add(line);
        }
    }
}

impl Drop for SshProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.is_let_go || self.has_ended_within(PATIENCE) {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Input of a command that has read its task; `None` if it has not, although it claimed to be ready.
fn given(giving: JoinHandle<io::Result<ChildStdin>>) -> Option<ChildStdin> {
    let until = Instant::now() + PATIENCE;
    while !giving.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    giving.is_finished().then(|| giving.join().ok()?.ok()).flatten()
}

/// Whether a program of this name exists, because `sh` would blame the other host.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.contains('/') || std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// First address of a host.
///
/// # Errors
/// [`Error::System`] if it has none.
pub fn resolve(host: &str) -> Result<IpAddr> {
    let found = Address::new(host, 0).map_err(grebe_connection::Error::from)?.to_socket_addrs();
    let what = || format!("cannot find `{host}`");
    let none = || Error::System { what: what(), source: ErrorKind::NotFound.into() };
    found.during(what())?.next().map(|address| address.ip()).ok_or_else(none)
}

const POLL: Duration = Duration::from_millis(100);
/// Time for a command to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time to read the last output of a command.
const LAST_LINES_WITHIN: Duration = Duration::from_millis(500);
const OUTPUT_LINES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_user_are_split_as_a_shell_does() {
        let by = |words| Ssh::by(words, |_| {});
        let ssh = by(Some("/usr/bin/ssh -i 'my key' -p 2222")).unwrap();
        assert_eq!(
            (ssh.program.as_str(), &ssh.options[..4]),
            ("/usr/bin/ssh", &words("-i|my key|-p|2222")[..])
        );
        assert!(ssh.options.contains(&"RemoteCommand=none".to_owned()));
        let other = by(Some("plink -batch")).unwrap();
        assert_eq!(other.options, words("-batch"));
        assert!(by(Some("")).is_err() && by(Some("ssh 'x")).is_err());
        assert_eq!(by(None).unwrap().program, "ssh");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [
            ("grebe", "grebe"),
            ("/opt/my grebe/grebe", "'/opt/my grebe/grebe'"),
            ("~/bin/grebe", "~/bin/grebe"),
            ("~/my bin/grebe", "~/'my bin/grebe'"),
            ("a;reboot", "'a;reboot'"),
            ("it's", "'it'\\''s'"),
            ("a!b c\\d", "'a'\\!'b c'\\\\'d'"),
            ("", "''"),
        ] {
            assert_eq!(word_there(path), word);
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }
}
