use std::time::{Duration, Instant};

use grebe_shm::{Error as ShmError, Policy, SubscriberOptions};

use super::task::ShmTask;
use crate::error::Result;

/// How a consumer subscribes.
pub(super) fn subscriber_options(task: &ShmTask, policy: Policy) -> SubscriberOptions {
    SubscriberOptions {
        policy,
        queue_batches: task.queue_batches,
        name: "bench".to_owned(),
        directory: Some(task.directory.clone()),
        ..SubscriberOptions::default()
    }
}

/// Tries until the stream is there.
pub(super) fn join<T>(connect: impl Fn() -> Result<T, ShmError>) -> Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        match connect() {
            Err(ShmError::NoStream { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return Ok(other?),
        }
    }
}

/// How long one side waits for the other to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
