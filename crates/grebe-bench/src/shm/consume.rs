//! The consuming side of a run, a process of its own.

use std::io::Read;
use std::time::{Duration, Instant};

use grebe_shm::{Error as ShmError, Policy, Subscriber, SubscriberOptions};

use super::{Other, PATIENCE, STREAM, ShmTask, Technique, graphs};
use crate::error::{Error, Result};
use crate::stream::Checker;
use crate::{peer, system};

/// Runs a consumer as a process: it says when it is ready, where it has to, and after the run what it saw.
pub(crate) fn peer(task: &ShmTask, other: Option<&dyn Other>) -> Result<()> {
    grebe_flow::short_slices();
    if task.core.is_some() {
        system::stay_on(task.core);
    }
    if !matches!(task.technique, Technique::Pipe | Technique::PlainPipe) {
        peer::end_with_input();
    }
    if task.in_graph {
        return peer::say(&graphs::consume(task)?);
    }
    let mut checker = Checker::new(task.plan.format, task.plan.channels, task.plan.block, task.work)?;
    match task.technique {
        Technique::Shm => lent(task, &mut checker)?,
        Technique::UnixStream => read_all(connect(task)?, task, &mut checker)?,
        Technique::Pipe | Technique::PlainPipe => {
            // What was to be prepared is: it takes a while, in which nothing is to be sent.
            peer::say(&())?;
            read_all(peer::stdin_unbuffered()?, task, &mut checker)?;
        }
        Technique::Other => {
            let other = other.ok_or_else(|| Error::peer("consumer", "it knows no other program"))?;
            other.consume(&task.for_other(), &mut |chunk| {
                checker.frames(chunk, Checker::now_ns());
                checker.is_ended()
            })?;
        }
        Technique::Udp | Technique::Embedded => {
            return Err(Error::peer("consumer", "this technique has no consumer of its own"));
        }
    }
    peer::say(&checker.finish())
}

/// Subscribes, as soon as the stream is there.
pub(super) fn subscribe<T>(
    task: &ShmTask,
    policy: Policy,
    connect: impl Fn(&SubscriberOptions) -> Result<T, ShmError>,
) -> Result<T> {
    let options = SubscriberOptions {
        policy,
        queue_batches: task.queue_batches,
        name: "bench".to_owned(),
        directory: Some(task.directory.clone()),
        ..SubscriberOptions::default()
    };
    let until = Instant::now() + PATIENCE;
    loop {
        match connect(&options) {
            Err(ShmError::NoStream { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return Ok(other?),
        }
    }
}

/// Reads what is lent until the stream ends.
fn lent(task: &ShmTask, checker: &mut Checker) -> Result<()> {
    let policy = if task.plan.target_msps.is_some() { Policy::DropOldest } else { Policy::Block };
    let mut subscriber = subscribe(task, policy, |options| Subscriber::connect(STREAM, options))?;
    while !subscriber.is_ended() {
        while let Some(batch) = subscriber.pop()? {
            let now_ns = Checker::now_ns();
            for frame in batch.frames() {
                checker.frame(&frame.header(), frame.payload(), now_ns);
            }
        }
        subscriber.wait(Duration::from_millis(100))?;
    }
    checker.end();
    Ok(())
}

/// Reads frames back to back until the stream ends.
fn read_all(mut from: impl Read, task: &ShmTask, checker: &mut Checker) -> Result<()> {
    let frame_bytes = task.plan.frame_bytes();
    // Frames are multiples of 64 bytes, so that each but one that straddles the end stands aligned.
    let mut buffer = vec![0; (READ_BYTES / frame_bytes).max(1) * frame_bytes];
    let mut filled = 0;
    while !checker.is_ended() {
        let read = from.read(&mut buffer[filled..]).map_err(Error::io("read the stream"))?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let taken = checker.frames(&buffer[..filled], Checker::now_ns());
        if taken > 0 {
            // What has begun moves to the front.
            checker.seen.copied += (filled - taken) as u64;
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
        }
    }
    Ok(())
}

/// As much as a pipe holds at most is read at once, while it stays in cache.
const READ_BYTES: usize = 256 << 10;

#[cfg(unix)]
fn connect(task: &ShmTask) -> Result<std::os::unix::net::UnixStream> {
    std::os::unix::net::UnixStream::connect(task.directory.join(STREAM))
        .map_err(Error::io("connect to the producer"))
}

#[cfg(not(unix))]
fn connect(_: &ShmTask) -> Result<std::io::Empty> {
    Err(Error::peer("consumer", "there are no Unix sockets here"))
}
