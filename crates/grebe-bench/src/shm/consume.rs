//! How a consumer gets its frames.

use std::io::Read;
use std::time::{Duration, Instant};

use grebe_shm::{Error as ShmError, Policy, Subscriber, SubscriberOptions};

use super::options::{PATIENCE, STREAM, ShmTask};
use crate::error::{Error, Result};
use crate::stream::Checker;

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
pub(super) fn lent(task: &ShmTask, checker: &mut Checker) -> Result<()> {
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
pub(super) fn read_all(mut from: impl Read, task: &ShmTask, checker: &mut Checker) -> Result<()> {
    let frame_bytes = task.plan.frame_bytes();
    // Frames are multiples of 64 bytes, so every frame is aligned, except one that straddles the end.
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
            // The started frame moves to the front.
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
pub(super) fn connect(task: &ShmTask) -> Result<std::os::unix::net::UnixStream> {
    std::os::unix::net::UnixStream::connect(task.directory.join(STREAM))
        .map_err(Error::io("connect to the producer"))
}

#[cfg(not(unix))]
pub(super) fn connect(_: &ShmTask) -> Result<std::io::Empty> {
    Err(Error::peer("consumer", "there are no Unix sockets here"))
}
