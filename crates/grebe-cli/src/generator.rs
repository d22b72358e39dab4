//! Generator processes, and remote control of generators.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use clap::Parser as _;
use grebe_process::synth::{GeneratorCommand, SynthRemote, WaveName};
use grebe_stages::Uri;
use grebe_view::{GeneratorRemote, GeneratorWish};

use crate::cli::{self, Cli};
use crate::ending::{Usage, one_line_of_clap};
use crate::interrupt;
use crate::output::note;
use crate::show::Failure;
use crate::this_command::this_command;

/// Command of a generator: `sg ...`, `play ...`, or another program that writes frames to standard output.
pub(crate) struct Recipe {
    command: Command,
    /// URI of its stream for the reader.
    pub(crate) uri: Uri,
    /// Whether it takes commands.
    is_remote: bool,
}

impl Recipe {
    /// Parses a command; `uri` is the destination if the command has none.
    pub(crate) fn parse(text: &str, uri: Option<&Uri>) -> Result<Self> {
        let mut words = split(text)?;
        let name = words
            .first()
            .cloned()
            .ok_or_else(|| Usage("--spawn: no command: give one, such as 'sg --rate 1M'".into()))?;
        if !matches!(name.as_str(), "sg" | "play") {
            let mut command = Command::new(&name);
            command.args(&words[1..]);
            return Ok(Self { command, uri: uri.cloned().unwrap_or(Uri::pipe()), is_remote: false });
        }
        if !words.iter().any(|word| word == "--to" || word.starts_with("--to=")) {
            words.extend(["--to".into(), uri.unwrap_or(&Uri::pipe()).to_string()]);
        }
        let read = Cli::try_parse_from(std::iter::once("grebe".to_owned()).chain(words.iter().cloned()));
        let read = read.map_err(|error| Usage(format!("--spawn: {}", one_line_of_clap(&error))))?;
        let (to, is_remote) = match read.command {
            Some(cli::Command::Sg(sg)) => (sg.to.clone().unwrap_or_default(), sg.as_play().is_none()),
            Some(cli::Command::Play(play)) => (play.to.first().cloned().unwrap_or_default(), false),
            _ => (Uri::pipe(), false),
        };
        let mut command = this_command()?;
        command.args(&words).arg(if is_remote { "--remote" } else { "--tethered" });
        Ok(Self { command, uri: uri.cloned().unwrap_or(to), is_remote })
    }
}

/// Splits words at spaces, except between quotation marks.
pub(crate) fn split(text: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(mark)) if c == mark => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Usage(format!("--spawn: unbalanced quotation mark: {text}")).into());
    }
    words.extend(word);
    Ok(words)
}

/// Generator process. It ends when this value is dropped, or this process is killed.
pub(crate) struct Generator {
    child: Child,
    /// Carries commands; the generator ends when it is closed.
    stdin: Option<Arc<Mutex<ChildStdin>>>,
    is_remote: bool,
    /// Its last error, for the screen.
    said: Failure,
    listener: Option<JoinHandle<()>>,
}

impl Generator {
    /// Starts a generator.
    pub(crate) fn start(recipe: Recipe) -> Result<(Self, Option<ChildStdout>)> {
        let Recipe { mut command, uri, is_remote } = recipe;
        let is_pipe = uri.traits().is_pipe;
        command.stdout(if is_pipe { Stdio::piped() } else { Stdio::null() });
        let mut generator = Self::spawn(&mut command)?;
        generator.is_remote = is_remote;
        if !is_remote {
            // Other programs may wait for the end of their input; our own end with it.
            let stdin = generator.stdin.take();
            generator.stdin = stdin.filter(|_| command.get_args().any(|word| word == "--tethered"));
        }
        let stdout = generator.child.stdout.take();
        Ok((generator, stdout))
    }

    /// Starts it, and keeps its last error.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let stdin = child.stdin.take().map(|stdin| Arc::new(Mutex::new(stdin)));
        let said = Failure::default();
        let listener = child.stderr.take().map(|stderr| {
            let said = said.clone();
            std::thread::spawn(move || {
                // Lines of errors begin with the command's name; others are progress.
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
    pub(crate) fn last_error(&self) -> Failure {
        self.said.clone()
    }

    /// Controls for the scope. The pipe holds thousands of commands, so no call blocks.
    pub(crate) fn remote(&self) -> Option<GeneratorRemote> {
        let stdin = self.stdin.clone().filter(|_| self.is_remote)?;
        Some(remote(move |command| {
            let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
            stdin.write_all(&command.to_bytes()).map_err(|_| "the generator has ended".to_owned())
        }))
    }

    /// As [`check`](Self::check), after the end of its stream: the process ends a moment after its pipe.
    pub(crate) fn check_at_end(&mut self) -> Result<()> {
        let until = Instant::now() + ENDS_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.check()
    }

    /// The reason, if it has failed.
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

/// Controls of a generator in this process.
pub(crate) fn remote_of(synth: SynthRemote) -> GeneratorRemote {
    let synth = Mutex::new(synth);
    remote(move |command| {
        let mut synth = synth.lock().unwrap_or_else(PoisonError::into_inner);
        synth.obey(command).map_err(|error| error.to_string())
    })
}

/// Controls for the scope; `obey` passes commands on.
fn remote(obey: impl Fn(GeneratorCommand) -> Result<(), String> + Send + 'static) -> GeneratorRemote {
    let tell = move |wish| {
        obey(match wish {
            GeneratorWish::Rate(rate_hz) => GeneratorCommand::Rate(rate_hz),
            GeneratorWish::TogglePause => GeneratorCommand::TogglePause,
            GeneratorWish::Wave(name) => {
                GeneratorCommand::Wave(name.parse().map_err(|error: grebe_process::Error| error.to_string())?)
            }
        })
    };
    GeneratorRemote {
        waves: WaveName::ALL.iter().map(|wave| wave.name().to_owned()).collect(),
        tell: Box::new(tell),
    }
}

/// Obeys commands on standard input, and ends this command when it is closed, because its starter is gone.
pub(crate) fn obey_stdin(mut remote: SynthRemote) {
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = [0; GeneratorCommand::BYTES];
        while stdin.read_exact(&mut bytes).is_ok() {
            let obeyed = GeneratorCommand::from_bytes(&bytes).and_then(|command| remote.obey(command));
            if let Err(error) = obeyed {
                note!("grebe: {error}");
            }
        }
        interrupt::raise();
    });
}

/// Time for a command to end after its pipe was closed.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        assert_eq!(split(" sg  --wave 'a b.wav' \"\" x").unwrap(), ["sg", "--wave", "a b.wav", "", "x"]);
        assert!(split("sg 'open").is_err());
    }

    #[test]
    fn a_generator_sends_where_the_viewer_looks() {
        let uri = |text, uri: Option<&str>| {
            let uri: Option<Uri> = uri.map(|uri| uri.parse().unwrap());
            Recipe::parse(text, uri.as_ref()).map(|recipe| (recipe.uri.to_string(), recipe.is_remote))
        };
        assert_eq!(uri("sg --rate 1M", None).unwrap(), ("pipe:".into(), true));
        assert_eq!(uri("sg", Some("shm://lab")).unwrap(), ("shm://lab".into(), true));
        assert_eq!(uri("sg --to shm://lab", None).unwrap(), ("shm://lab".into(), true));
        assert_eq!(uri("sg --wave a.wav", None).unwrap(), ("pipe:".into(), false));
        assert_eq!(uri("play a.wav", None).unwrap(), ("pipe:".into(), false));
        assert_eq!(uri("my-adc --fast", None).unwrap(), ("pipe:".into(), false));
        assert!(uri("sg --rate much", None).unwrap_err().to_string().contains("much"));
        assert!(uri("", None).is_err());
    }
}
