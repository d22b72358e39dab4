//! The consuming side of a run, a process of its own.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use grebe_shm::{Error as ShmError, Policy, Subscriber, SubscriberOptions};
use serde::Serialize;

use super::check::{Checker, parse};
use super::ingress;
use super::plan::{Job, Technique};
#[cfg(unix)]
use super::run::SOCKET;
use super::run::STREAM;
use crate::{Error, Result};

/// Runs a consumer as a process: the job comes as a line of JSON on standard input, the report goes out on standard output.
///
/// # Errors
/// Where the job cannot be read, or the stream fails.
pub fn peer_main() -> Result<()> {
    let mut stdin = io::stdin().lock();
    let job: Job = serde_json::from_slice(&line(&mut stdin)?).map_err(|error| failed(&error))?;
    job.settle();
    if job.in_graph {
        return say(&ingress::consume(&job)?);
    }
    let mut checker = Checker::new(&job)?;
    match job.technique {
        Technique::Shm => lent(&job, &mut checker)?,
        Technique::UnixStream => read_all(connect(&job)?, &job, &mut checker)?,
        Technique::Pipe | Technique::PlainPipe => {
            // What was to be prepared is: it takes a while, in which nothing is to be sent.
            say(&"ready")?;
            read_all(unbuffered()?, &job, &mut checker)?;
        }
        Technique::Udp | Technique::Embedded | Technique::Other => {
            return Err(failed(&"this is no consumer of that kind"));
        }
    }
    say(&checker.finish())
}

/// Reads what is lent until the stream ends.
fn lent(job: &Job, checker: &mut Checker) -> Result<()> {
    let options = SubscriberOptions {
        policy: if job.target_msps.is_some() { Policy::DropOldest } else { Policy::Block },
        queue_batches: job.queue_batches,
        name: "bench".to_owned(),
        directory: Some(job.directory.clone()),
        ..SubscriberOptions::default()
    };
    let mut subscriber = join(&options)?;
    while !subscriber.is_ended() {
        while let Some(batch) = subscriber.pop()? {
            let now_ns = Checker::now_ns();
            for frame in batch.frames() {
                checker.frame(&frame.header(), frame.payload(), now_ns);
            }
        }
        subscriber.wait(Duration::from_millis(100))?;
    }
    if let Some(end) = subscriber.end_header() {
        checker.end(&end);
    }
    Ok(())
}

fn join(options: &SubscriberOptions) -> Result<Subscriber> {
    let until = Instant::now() + PATIENCE;
    loop {
        match Subscriber::connect(STREAM, options) {
            Err(ShmError::NoStream { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return Ok(other?),
        }
    }
}

/// Reads frames back to back until the stream ends.
fn read_all(mut from: impl Read, job: &Job, checker: &mut Checker) -> Result<()> {
    let frame_bytes = job.frame_bytes();
    // Frames are multiples of 64 bytes, so that each but one that straddles the end stands aligned.
    let mut buffer = vec![0; (READ_BYTES / frame_bytes).max(1) * frame_bytes];
    let mut filled = 0;
    while !checker.is_ended() {
        let read = from.read(&mut buffer[filled..]).map_err(Error::io("read the stream"))?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let now_ns = Checker::now_ns();
        let mut at = 0;
        while let Some((header, payload)) = parse(&buffer[at..filled]) {
            checker.frame(&header, payload, now_ns);
            at += header.frame_bytes();
        }
        if at > 0 {
            // What has begun moves to the front.
            checker.copied(filled - at);
            buffer.copy_within(at..filled, 0);
            filled -= at;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn connect(job: &Job) -> Result<std::os::unix::net::UnixStream> {
    std::os::unix::net::UnixStream::connect(job.directory.join(SOCKET))
        .map_err(Error::io("connect to the producer"))
}

#[cfg(unix)]
pub(super) fn unbuffered() -> Result<std::fs::File> {
    use std::os::fd::AsFd;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Error::io("use standard input"))?;
    Ok(std::fs::File::from(stdin))
}

#[cfg(not(unix))]
fn connect(_: &Job) -> Result<io::Empty> {
    Err(failed(&"there are no Unix sockets here"))
}

#[cfg(not(unix))]
pub(super) fn unbuffered() -> Result<io::Stdin> {
    Ok(io::stdin())
}

/// A line, and not a byte more: what follows may be samples.
#[cfg(unix)]
fn line(_: &mut impl Read) -> Result<Vec<u8>> {
    read_line(&mut unbuffered()?)
}

#[cfg(not(unix))]
fn line(stdin: &mut impl Read) -> Result<Vec<u8>> {
    read_line(stdin)
}

fn read_line(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while from.read(&mut byte).map_err(Error::io("read the job"))? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(line)
}

/// Tells the producer's side something, as a line of JSON.
pub(super) fn say(what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(what).map_err(|error| failed(&error))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::io("answer"))
}

fn failed(reason: &impl ToString) -> Error {
    Error::Peer { side: "consumer", reason: reason.to_string() }
}

const PATIENCE: Duration = Duration::from_secs(10);
/// As much as a pipe holds at most is read at once, while it stays in cache.
const READ_BYTES: usize = 256 << 10;
