//! The end that `ssh` started: reads its task, answers, and accepts the data by a ticket or through `ssh`.
//!
//! Its input is its tether. When that ends, the other end is gone, and this one follows soon.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use grebe_connection::{Address, Cancel, ConnectionListener, Purpose, listen_anywhere};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{During, Error, Result};
use crate::hello::{Call, Hello, Meet, Ready, Turn};
use crate::host;
use crate::remote::ticket_of;
use crate::route::{Channel, Dialer, Via};
use crate::ssh::MARK;

/// Callbacks of the serving process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Shows a message to the user.
    pub note: fn(&str),
    /// Ends the process in order, like Ctrl-C.
    pub end: fn(),
    /// Registers a flag to be cancelled at the end.
    pub ends_too: fn(Cancel),
}

/// Its input, from the first line on.
pub type Input = BufReader<File>;

/// Prints the mark and reads the first line. `None`: the versions differ, and the other end was informed.
///
/// # Errors
/// [`Error::Peer`] if the line is not a hello.
pub fn hello<T: DeserializeOwned>(input: &mut Input, call: &Call) -> Result<Option<Hello<T>>> {
    print(MARK)?;
    let command = call.arguments.split_whitespace().next().unwrap_or_default();
    let wrong =
        |why: serde_json::Error| Error::Peer(format!("the other end is not `grebe {command}`: {why}"));
    let line = line(input)?.ok_or_else(|| Error::Peer("nothing came from the other end".to_owned()))?;
    // Only this number is certain to exist in every version.
    let value: Value = serde_json::from_slice(&line).map_err(wrong)?;
    if value.get("protocol").and_then(Value::as_u64) != Some(call.protocol.into()) {
        answer(&Ready::of(call.protocol))?;
        return Ok(None);
    }
    serde_json::from_value(value).map(Some).map_err(wrong)
}

/// Announces that it is ready.
///
/// # Errors
/// [`Error::System`] if `ssh` is gone.
pub fn answer(ready: &Ready) -> Result<()> {
    print(&ready.line())
}

/// Announces that it is ready, and waits for the data on any route.
///
/// # Errors
/// Those of the connection, and [`Error::Peer`] if the other end is gone.
pub fn accept(meet: &Meet, dialer: &Dialer, ready: Ready, input: Input, process: Process) -> Result<Channel> {
    match meet {
        Meet::Here => {
            answer(&ready)?;
            through_ssh(input, dialer)
        }
        Meet::Connect { ticket } => {
            let channel = dialer.reach(&ticket_of(ticket, Purpose::Connection)?)?;
            let route = channel.as_ref().map(|channel| channel.route);
            answer(&Ready { route, ..ready })?;
            match channel {
                Some(channel) => {
                    tether(input, process.end);
                    Ok(channel)
                }
                None => through_ssh(input, dialer),
            }
        }
        Meet::Listen { port, relay } => listen((*port, relay.as_deref()), dialer, ready, input, process),
    }
}

/// Waits at a port, and for the line that switches the data to `ssh`.
fn listen(
    (port, relay): (u16, Option<&str>),
    dialer: &Dialer,
    ready: Ready,
    input: Input,
    process: Process,
) -> Result<Channel> {
    let bound =
        listen_anywhere(port, |any| ConnectionListener::bind(any, Purpose::Connection, TICKET_GOOD_FOR));
    let mut listener = match bound {
        Ok(listener) => listener,
        // Another route exists.
        Err(error) if dialer.terms.via == Via::Auto => {
            (process.note)(&format!("the data can only go through ssh: {error}"));
            answer(&ready)?;
            return through_ssh(input, dialer);
        }
        Err(error) => return Err(error.into()),
    };
    listener.ticket.relay = relay.map(|relay| found_relay(relay, process.note)).transpose()?.flatten();
    let reached_at = reached_at().map(|ip| ip.to_string());
    answer(&Ready { reached_at, ..ready.with_ticket(&listener.ticket) })?;

    let (tells, told) = mpsc::channel();
    let waits = Cancel::default();
    let options = { Dialer { cancel: waits.clone(), ..dialer.clone() }.options(relay.is_some()) };
    let accepted = tells.clone();
    thread::spawn(move || {
        let channel = listener.accept(&options).map_err(Error::from);
        let channel =
            channel.and_then(|connection| Channel::accepted(connection).during("cannot use the connection"));
        let _ = accepted.send(Met::Beside(channel));
    });
    watch(input, tells);
    let met = told.recv().unwrap_or(Met::Gone);
    if let Met::Beside(channel) = met {
        (process.ends_too)(waits);
        thread::spawn(move || end_with(&told, process.end));
        return channel;
    }
    waits.cancel();
    match met {
        Met::Through(input) => through_ssh(input, dialer),
        Met::Gone | Met::Beside(_) => {
            (process.end)();
            Err(Error::Peer("the other end is gone".to_owned()))
        }
    }
}

/// The relay, if its name can be resolved here; otherwise other routes remain.
fn found_relay(relay: &str, note: fn(&str)) -> Result<Option<Address>> {
    let address = host::relay(relay).map_err(|error| Error::Usage(format!("the relay {relay}: {error}")))?;
    Ok(match address.to_socket_addrs() {
        Ok(_) => Some(address),
        Err(error) => {
            note(&format!("cannot resolve the relay {relay}: {error}"));
            None
        }
    })
}

/// Event while waiting.
enum Met {
    Beside(Result<Channel>),
    Through(Input),
    Gone,
}

/// Continues reading: another line, or the end.
fn watch(mut input: Input, tells: Sender<Met>) {
    thread::spawn(move || {
        let turn = line(&mut input).ok().flatten();
        let turn = turn.and_then(|line| serde_json::from_slice(&line).ok());
        let _ = match turn {
            Some(Turn::DataFollows) => tells.send(Met::Through(input)),
            None => tells.send(Met::Gone),
        };
    });
}

/// Ends this process once the other end is gone.
fn end_with(told: &Receiver<Met>, end: fn()) {
    while let Ok(met) = told.recv() {
        if matches!(met, Met::Gone) {
            end();
        }
    }
}

/// Ends this process once its input ends.
pub fn tether(mut input: Input, end: fn()) {
    thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        end();
    });
}

fn through_ssh(input: Input, dialer: &Dialer) -> Result<Channel> {
    Ok(Channel::by_pipes(input, own_output()?, dialer.terms.limit_bits_per_s))
}

/// Address of this machine to which `ssh` connected: `CLIENT PORT SERVER PORT`.
fn reached_at() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split_whitespace().nth(2)?.parse().ok()
}

/// Reads a line; `None` at the end.
fn line(input: &mut Input) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).during("cannot read from ssh")?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

fn print(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).during("cannot write to ssh")
}

/// Standard input without the library's buffer.
///
/// # Errors
/// [`Error::System`] if it is missing.
pub fn own_input() -> Result<Input> {
    Ok(BufReader::with_capacity(PIPE_BYTES, own_input_file()?))
}

#[cfg(unix)]
fn own_input_file() -> Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned().during("cannot read from ssh")?.into())
}

/// Standard output without the library's line buffer.
#[cfg(unix)]
fn own_output() -> Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned().during("cannot write to ssh")?.into())
}

#[cfg(windows)]
fn own_input_file() -> Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned().during("cannot read from ssh")?.into())
}

#[cfg(windows)]
fn own_output() -> Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned().during("cannot write to ssh")?.into())
}

const LINE_BYTES_MAX: u64 = 16 << 20;
const PIPE_BYTES: usize = 256 << 10;
/// Only a round trip passes from the ready line to the first packet.
const TICKET_GOOD_FOR: Duration = Duration::from_secs(120);
