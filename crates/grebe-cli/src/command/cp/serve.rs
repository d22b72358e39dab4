//! The end that `ssh` started: `grebe cp --serve`.
//!
//! Its input is its tether: when that ends, the other end is gone, and so is this one soon. Its output carries one line, and the data
//! where no other way leads here. What it has to say goes to standard error, in lines for the process that started it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grebe_transfer::{Address, Cancel, ConnectionListener, Purpose, Ticket};
use grebe_tree::Progress;

use super::bootstrap;
use super::figures::Figures;
use super::lines::{Event, FileDone, Hello, Meet, PROTOCOL, Ready, Task, Tells, Turn};
use super::tree;
use super::way::{Beside, Channel};
use crate::cli::{self, Cp, Via};
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::{event, note, out};
use crate::transfer;

/// Its input, from the first line on.
type Input = BufReader<File>;

pub(super) fn run(options: &Cp) -> Result<Ending> {
    if io::stdin().is_terminal() {
        return Err(Usage("--serve is for `grebe cp` at the other end, which starts it by ssh".into()).into());
    }
    serve(options).or_else(|error| Ok(failed(&error)))
}

/// Says why it could not, unless the other end is gone, and knows.
fn failed(error: &anyhow::Error) -> Ending {
    if interrupt::is_pending() {
        return Ending::Interrupted;
    }
    let status = ending::exit_status(error);
    event(&Event::Failed { why: ending::one_line(error), status }.line());
    Ending::Told(status)
}

fn serve(options: &Cp) -> Result<Ending> {
    if let Some(hash) = &options.is {
        bootstrap::check_self(hash)?;
    }
    let cancel = interrupt::cancel();
    let mut input = BufReader::with_capacity(PIPE_BYTES, own_input()?);
    let Some(hello) = hello(&mut input)? else { return Ok(Ending::Good) };
    interrupt::then(end_soon);
    let is_fresh = is_fresh(&hello.task);
    let channel = meet(&hello, is_fresh, input, &cancel)?;
    let status = channel.status.clone();
    let progress = Arc::new(match hello.tells {
        Tells::Files => Progress::with_notify(|done| event(&Event::File(FileDone::of(done)).line())),
        _ => Progress::default(),
    });
    let outcome = thread::scope(|scope| {
        let (is_over, over) = mpsc::channel::<()>();
        if hello.tells >= Tells::Figures {
            scope.spawn(|| tell(&progress, over));
        }
        let outcome = tree::run(&hello.task, hello.what.as_ref(), is_fresh, channel, &progress, &cancel);
        drop(is_over);
        outcome
    });
    // Before the other end hears of it by the data's way, and goes.
    let ended = match outcome {
        Ok(outcome) if hello.tells >= Tells::Figures => {
            event(&Event::Result(outcome).line());
            Ending::Good
        }
        Ok(_) => Ending::Good,
        Err(error) => failed(&error),
    };
    if let Some(status) = status {
        // What it said last is to arrive; where that cannot be, the other end has gone, and has all.
        let _ = status.close();
    }
    Ok(ended)
}

/// The first line; `None` where the other end speaks otherwise, which it has been told.
fn hello(input: &mut Input) -> Result<Option<Hello>> {
    let line = line(input)?.context("nothing came from the other end")?;
    // Only the number is sure to be there in every version.
    let value: serde_json::Value = serde_json::from_str(&line).context("the other end is no `grebe cp`")?;
    if value.get("protocol").and_then(serde_json::Value::as_u64) != Some(PROTOCOL.into()) {
        out!("{}", ready().line())?;
        return Ok(None);
    }
    Ok(Some(serde_json::from_value(value).context("the other end is no `grebe cp`")?))
}

/// Whether it receives, and nothing is there: what is then promised, the receiver keeps.
fn is_fresh(task: &Task) -> bool {
    match task {
        Task::Receive { destination } => destination.path().is_ok_and(|path| grebe_tree::is_fresh(&path)),
        Task::Send { is_fresh, .. } => *is_fresh,
    }
}

/// Says that it is ready, and waits for the data to come, whichever way that is.
fn meet(hello: &Hello, is_fresh: bool, input: Input, cancel: &Cancel) -> Result<Channel> {
    let beside = Beside {
        via: hello.via,
        mode: hello.mode,
        limit_bits_per_s: hello.limit_bits_per_s,
        cancel: cancel.clone(),
        // The other end says it.
        notify: Arc::new(|_| {}),
    };
    let ready = Ready { is_fresh, ..ready() };
    match &hello.meet {
        Meet::Here => {
            out!("{}", ready.line())?;
            through_ssh(input, &beside)
        }
        Meet::Connect { ticket } => {
            let ticket = Ticket::from_word(ticket, Purpose::Connection)?;
            let channel = beside.reach(&ticket)?;
            let way = channel.as_ref().map(|channel| channel.way);
            out!("{}", Ready { way, ..ready }.line())?;
            match channel {
                Some(channel) => {
                    tether(input);
                    Ok(channel)
                }
                None => through_ssh(input, &beside),
            }
        }
        Meet::Listen { port, relay } => listen(*port, relay.as_deref(), ready, &beside, input),
    }
}

/// Waits at a port, and for the line that says that the data comes through `ssh` after all.
fn listen(port: u16, relay: Option<&str>, ready: Ready, beside: &Beside, input: Input) -> Result<Channel> {
    let bound = transfer::listen_anywhere(port, |any| ConnectionListener::bind(any, TICKET_GOOD_FOR));
    let mut listener = match bound {
        Ok(listener) => listener,
        // There is another way.
        Err(error) if beside.via == Via::Auto => {
            note!("there is only ssh as a way: {error}");
            out!("{}", ready.line())?;
            return through_ssh(input, beside);
        }
        Err(error) => return Err(error.into()),
    };
    listener.ticket.relay = relay.map(found_relay).transpose()?.flatten();
    let ticket = Some(listener.ticket.word().to_string());
    let reached_at = reached_at().map(|ip| ip.to_string());
    out!("{}", Ready { ticket, reached_at, ..ready }.line())?;

    let (tells, told) = mpsc::channel();
    let waits = Cancel::default();
    let options = { Beside { cancel: waits.clone(), ..beside.clone() }.options(relay.is_some()) };
    let accepted = tells.clone();
    thread::spawn(move || {
        let channel = listener.accept(&options).map_err(anyhow::Error::from);
        let channel = channel.and_then(|connection| Ok(Channel::accepted(connection)?));
        let _ = accepted.send(Met::Beside(channel));
    });
    watch(input, tells);
    let met = told.recv().context("nobody came")?;
    if let Met::Beside(channel) = met {
        interrupt::then(move || waits.cancel());
        thread::spawn(move || end_with(&told));
        return channel;
    }
    waits.cancel();
    match met {
        Met::Through(input) => through_ssh(input, beside),
        Met::Gone | Met::Beside(_) => {
            interrupt::raise();
            bail!("the other end is gone")
        }
    }
}

/// The relay, if its name is known here: else there are other ways.
fn found_relay(relay: &str) -> Result<Option<Address>> {
    let address = cli::relay(relay).map_err(|error| Usage(format!("the relay {relay}: {error}")))?;
    Ok(match address.to_socket_addrs() {
        Ok(_) => Some(address),
        Err(error) => {
            note!("the relay {relay} is not found from here: {error}");
            None
        }
    })
}

/// What may happen while it waits.
enum Met {
    Beside(Result<Channel>),
    Through(Input),
    Gone,
}

/// Reads on: another line, or the end.
fn watch(mut input: Input, tells: Sender<Met>) {
    thread::spawn(move || {
        let turn = line(&mut input).ok().flatten();
        let turn = turn.and_then(|line| serde_json::from_str(&line).ok());
        let _ = match turn {
            Some(Turn::DataFollows) => tells.send(Met::Through(input)),
            None => tells.send(Met::Gone),
        };
    });
}

/// Ends this process once the other end is gone.
fn end_with(told: &Receiver<Met>) {
    while let Ok(met) = told.recv() {
        if matches!(met, Met::Gone) {
            interrupt::raise();
        }
    }
}

fn tether(mut input: Input) {
    thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        interrupt::raise();
    });
}

/// What can be ended in order is; a disk that hangs keeps nobody.
fn end_soon() {
    thread::spawn(|| {
        thread::sleep(ENDING_TIME);
        std::process::exit(ending::INTERRUPTED.into());
    });
}

fn through_ssh(input: Input, beside: &Beside) -> Result<Channel> {
    Ok(Channel::by_pipes(input, own_output()?, beside.limit_bits_per_s))
}

/// Says twice a second how far it is.
fn tell(progress: &Progress, over: Receiver<()>) {
    while matches!(over.recv_timeout(TOLD_EVERY), Err(mpsc::RecvTimeoutError::Timeout)) {
        event(&Event::Progress(Figures::from(progress.snapshot())).line());
    }
}

fn ready() -> Ready {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ready {
        protocol: PROTOCOL,
        version,
        ticket: None,
        reached_at: None,
        way: None,
        knows_order: true,
        is_fresh: false,
    }
}

/// The address of this machine to which `ssh` came: `CLIENT PORT SERVER PORT`.
fn reached_at() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split_whitespace().nth(2)?.parse().ok()
}

/// A line; `None` at the end.
fn line(input: &mut Input) -> Result<Option<String>> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("cannot read from ssh")?;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(Some(String::from_utf8(line).context("the other end is no `grebe cp`")?))
}

/// Standard input without the buffer that the library has for it.
#[cfg(unix)]
fn own_input() -> Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned().context("cannot read from ssh")?.into())
}

/// Standard output without the buffer that the library has for it, which looks for line ends.
#[cfg(unix)]
fn own_output() -> Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned().context("cannot write to ssh")?.into())
}

#[cfg(windows)]
fn own_input() -> Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned().context("cannot read from ssh")?.into())
}

#[cfg(windows)]
fn own_output() -> Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned().context("cannot write to ssh")?.into())
}

const LINE_BYTES_MAX: u64 = 16 << 20;
const PIPE_BYTES: usize = 256 << 10;
/// From the ready line to the first packet passes a round trip.
const TICKET_GOOD_FOR: Duration = Duration::from_secs(120);
const TOLD_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to bring to the disk what has come, once the other end is gone.
const ENDING_TIME: Duration = Duration::from_secs(5);
