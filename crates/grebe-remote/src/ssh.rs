//! A command on another host, started by the user's own `ssh`, which knows their keys, aliases and gateways.
//!
//! ```text
//!  this process <=stdout== ssh <~~~ whatever a login there prints, then the mark of the command
//!               ==stdin==>          its task, if it needs one
//!               <=stdout==          one line when it is ready, then whatever it likes
//!               <=stderr==          what it and ssh say, and lines for this process
//! ```
//!
//! However this process ends, the pipe to `ssh` closes, `ssh` passes that on, and the command there can end too.

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
use self::output::{Output, SHOWN_AFTER, Said, await_ready, listen};
pub(crate) use self::why::{Ended, Purpose};

/// How `ssh` is started.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// Tells a person.
    note: fn(&str),
    program: String,
    options: Vec<String>,
    /// Ctrl-C does not end it.
    is_shielded: bool,
    /// Nobody is there to answer it.
    is_unattended: bool,
}

/// The `ssh` that a command there runs under.
pub(crate) struct SshProcess {
    child: Child,
    output: Receiver<Output>,
    login: Login,
    noise: Noise,
    /// Whether `ssh` was made to say when it has logged in.
    says_login: bool,
    host_name: Option<String>,
    said: Said,
    /// Its lines for this process that nobody has taken yet.
    events: Vec<String>,
    is_let_go: bool,
    /// It has ended, and all that it said has been taken in.
    is_drained: bool,
}

/// Why a command did not become ready.
pub(crate) enum NotReady {
    Interrupted,
    Ended(Ended),
}

/// A word for the shell there, whichever that is; `~/` stays the home of who logs in.
pub fn word_there(word: &str) -> String {
    let (home, rest) = word.strip_prefix("~/").map_or(("", word), |rest| ("~/", rest));
    if !rest.is_empty() && rest.chars().all(is_plain) {
        return word.to_owned();
    }
    let (mut quoted, mut is_open) = (home.to_owned(), false);
    for letter in rest.chars() {
        // Within quotes csh sees `!` and fish `\\`; outside, a backslash before them means the same to all.
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

/// Whether a letter means nothing to any shell.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter)
}

impl Ssh {
    /// By the words of the user, such as `ssh -p 2222`, quoted as for a shell; without any, the plain one. `note` tells a person.
    ///
    /// # Errors
    /// [`Error::Usage`] where the words are no command.
    pub fn by(words: Option<&str>, note: fn(&str)) -> Result<Self> {
        let words = words.unwrap_or("ssh");
        let mut options = shlex::split(words)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| Error::Usage(format!("--ssh {words:?}: give a command, with quotes closed")))?;
        let program = options.remove(0);
        Ok(Self { note, program, options, is_shielded: false, is_unattended: false }.for_channel())
    }

    /// With what keeps a user's configuration for logging in from what is only a channel: as `scp` does it.
    fn for_channel(mut self) -> Self {
        if self.is_openssh() {
            self.options.push("-x".to_owned());
        }
        self.with_options(&["PermitLocalCommand=no", "ClearAllForwardings=yes", "RemoteCommand=none"])
    }

    /// With options of OpenSSH's, where it is that.
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

    /// Such that it ends where nothing comes from the other end for some fifteen seconds: its connection has been cut.
    #[must_use]
    pub fn watched(self) -> Self {
        self.with_options(&["ServerAliveInterval=5", "ServerAliveCountMax=3"])
    }

    /// Such that it asks nobody, waits for no host that does not answer, and prints nothing as it goes on: the terminal may be a scope.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { is_unattended: true, ..self }.with_options(&["BatchMode=yes", "ConnectTimeout=10"])
    }

    /// Such that Ctrl-C, which the terminal sends to all its processes, does not end it: what runs there is to end in order.
    #[must_use]
    pub fn shielded(self) -> Self {
        Self { is_shielded: cfg!(unix), ..self }
    }

    /// Tells a person, where one is there.
    pub(crate) fn tell(&self, text: &str) {
        if !self.is_unattended {
            (self.note)(text);
        }
    }

    /// Starts a command, a line for the shell there. Its output is passed over up to [`MARK`], and then up to the line of which
    /// `is_ready` says so.
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
                "there is no `{}` on this machine: install OpenSSH{instead}",
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
            said: Said::new((!self.is_unattended).then_some(self.note)),
            events: Vec::new(),
            is_let_go: false,
            is_drained: false,
        })
    }

    /// What `ssh` calls a host, and whether it may be made to say more: where the user wants to hear less or more than usual, it may not.
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
            // `ssh` leaves a signal ignored that it finds so.
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
    /// What it reads. When this is dropped, it reads the end.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// What `ssh` calls the host.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.host_name.as_deref()
    }

    /// Waits until it has begun, gives it its task, and waits until it is ready: as long as `ssh` takes, which may ask for a password, and
    /// as long as the command takes. A login that never comes to the command is given up.
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
                        // A long one does not fit into a pipe.
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
            // A master that `ssh` leaves behind may keep its pipes.
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

    /// Takes in what it said meanwhile, and shows what is for the person; its lines for this process.
    pub(crate) fn poll(&mut self) -> Vec<String> {
        self.take_in();
        self.said.show();
        std::mem::take(&mut self.events)
    }

    /// As [`poll`](Self::poll), and shows nothing: the terminal may be a scope.
    pub(crate) fn poll_quietly(&mut self) -> Vec<String> {
        self.take_in();
        std::mem::take(&mut self.events)
    }

    /// Waits until it ends, `patience` at most.
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

    /// Whether it has ended in another way than well: it was killed, or what it ran was.
    pub(crate) fn is_lost(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Waits for its end, and says how that was.
    pub(crate) fn ended(&mut self) -> Ended {
        drop(self.child.stdin.take());
        let status = self.child.wait().ok().and_then(|status| status.code());
        self.take_in();
        let noise = self.noise.last();
        let noise: String = noise.lines().map(|line| printable(line.as_bytes()) + "\n").collect();
        Ended { status, printed: noise.clone(), said: noise + &self.said.text(), stuck: None }
    }

    /// The last line that it said.
    pub(crate) fn last_words(&mut self) -> Option<&str> {
        self.take_in();
        self.said.last()
    }

    /// Ends the `ssh`: its pipes break, and the command there reads the end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Leaves it to end by itself: once its input is closed, nobody has to wait for it.
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
        // What it said last may not have been read yet. A connection that it leaves to others keeps its outputs open.
        self.is_drained = true;
        let until = Instant::now() + LAST_LINES_WITHIN;
        while let Ok(output) = self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.take(output);
        }
    }

    fn take(&mut self, output: Output) {
        let Output::Err(line) = output else { return };
        self.login.heard();
        // A login may print there, too, without a line end.
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

/// The input of a command that has read its task; `None` where it has not, although it said so.
fn given(giving: JoinHandle<io::Result<ChildStdin>>) -> Option<ChildStdin> {
    let until = Instant::now() + PATIENCE;
    while !giving.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    giving.is_finished().then(|| giving.join().ok()?.ok()).flatten()
}

/// Whether there is a program of this name: `sh` would say otherwise that it is missing there.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.contains('/') || std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The first address of a host.
///
/// # Errors
/// [`Error::System`] where it has none.
pub fn resolve(host: &str) -> Result<IpAddr> {
    let found = Address::new(host, 0).map_err(grebe_connection::Error::from)?.to_socket_addrs();
    let what = || format!("cannot find `{host}`");
    let none = || Error::System { what: what(), source: ErrorKind::NotFound.into() };
    found.during(what())?.next().map(|address| address.ip()).ok_or_else(none)
}

const POLL: Duration = Duration::from_millis(100);
/// How long the command may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take to read what the command said before it ended.
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
