//! How the end that `ssh` started and the one that started it meet: by a ticket, or through `ssh`.
//!
//! Its input is its tether: when that ends, the other end is gone, and so is this one soon.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grebe_transfer::{Address, Cancel, ConnectionListener, Purpose, Ticket, listen_anywhere};
use serde::de::DeserializeOwned;

use super::lines::{Meet, Ready, Turn};
use super::way::{Beside, Channel};
use crate::cli::{self, Via};
use crate::ending::Usage;
use crate::interrupt;
use crate::output::{self, note, out};
use crate::ssh;

/// Its input, from the first line on.
pub(in crate::command) type Input = BufReader<File>;

/// Says that it has begun, and reads the first line, of the other end of `called`; `None` where that speaks otherwise, which it has been told.
pub(in crate::command) fn hello<T: DeserializeOwned>(
    input: &mut Input,
    protocol: u32,
    called: &str,
) -> Result<Option<T>> {
    out!("{}", ssh::MARK)?;
    let line = line(input)?.context("nothing came from the other end")?;
    let is_none = || format!("the other end is no `{called}`");
    // Only the number is sure to be there in every version.
    let value: serde_json::Value = serde_json::from_str(&line).with_context(is_none)?;
    if value.get("protocol").and_then(serde_json::Value::as_u64) != Some(protocol.into()) {
        output::json(&Ready::of(protocol).line())?;
        return Ok(None);
    }
    Ok(Some(serde_json::from_value(value).with_context(is_none)?))
}

/// Says that it is ready, and waits for the data to come, whichever way that is.
pub(in crate::command) fn meet(meet: &Meet, beside: &Beside, ready: Ready, input: Input) -> Result<Channel> {
    match meet {
        Meet::Here => {
            output::json(&ready.line())?;
            through_ssh(input, beside)
        }
        Meet::Connect { ticket } => {
            let ticket = Ticket::from_word(ticket, Purpose::Connection)?;
            let channel = beside.reach(&ticket)?;
            let way = channel.as_ref().map(|channel| channel.way);
            output::json(&Ready { way, ..ready }.line())?;
            match channel {
                Some(channel) => {
                    tether(input);
                    Ok(channel)
                }
                None => through_ssh(input, beside),
            }
        }
        Meet::Listen { port, relay } => listen(*port, relay.as_deref(), beside, ready, input),
    }
}

/// Waits at a port, and for the line that says that the data comes through `ssh` after all.
fn listen(port: u16, relay: Option<&str>, beside: &Beside, ready: Ready, input: Input) -> Result<Channel> {
    let bound =
        listen_anywhere(port, |any| ConnectionListener::bind(any, Purpose::Connection, TICKET_GOOD_FOR));
    let mut listener = match bound {
        Ok(listener) => listener,
        // There is another way.
        Err(error) if beside.terms.via == Via::Auto => {
            note!("there is only ssh as a way: {error}");
            output::json(&ready.line())?;
            return through_ssh(input, beside);
        }
        Err(error) => return Err(error.into()),
    };
    listener.ticket.relay = relay.map(found_relay).transpose()?.flatten();
    let ticket = Some(listener.ticket.word().to_string());
    let reached_at = reached_at().map(|ip| ip.to_string());
    output::json(&Ready { ticket, reached_at, ..ready }.line())?;

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
        interrupt::then(move || waits.cancel()).for_good();
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

fn through_ssh(input: Input, beside: &Beside) -> Result<Channel> {
    Ok(Channel::by_pipes(input, own_output()?, beside.terms.limit_bits_per_s))
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
pub(in crate::command) fn own_input() -> Result<Input> {
    Ok(BufReader::with_capacity(PIPE_BYTES, own_input_file()?))
}

#[cfg(unix)]
fn own_input_file() -> Result<File> {
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
fn own_input_file() -> Result<File> {
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
