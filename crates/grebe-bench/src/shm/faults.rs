//! One consumer is stopped and one is killed while others read: what these notice of it.

use std::time::{Duration, Instant};

use grebe_shm::Publisher;

use crate::stream::Faults;

/// Stops one process after a quarter of the run, and kills another in the middle.
pub(super) struct Havoc<'a> {
    stop: Option<&'a mut dyn FnMut()>,
    kill: Option<&'a mut dyn FnMut()>,
    began: Instant,
    duration: Duration,
    killed: Option<Instant>,
    pub faults: Faults,
}

impl<'a> Havoc<'a> {
    pub(super) fn new(duration: Duration, stop: &'a mut dyn FnMut(), kill: &'a mut dyn FnMut()) -> Self {
        Self {
            stop: Some(stop),
            kill: Some(kill),
            began: Instant::now(),
            duration,
            killed: None,
            faults: Faults::default(),
        }
    }

    /// Called by the producer between batches.
    pub(super) fn look(&mut self, publisher: &Publisher) {
        let elapsed = self.began.elapsed();
        if elapsed > self.duration / 4
            && let Some(stop) = self.stop.take()
        {
            stop();
        }
        if elapsed > self.duration / 2
            && let Some(kill) = self.kill.take()
        {
            self.killed = Some(Instant::now());
            kill();
        }
        if let Some(killed) = self.killed
            && self.faults.noticed_ms.is_none()
        {
            let status = publisher.status();
            if status.hung_up > 0 {
                self.faults.noticed_ms = Some(killed.elapsed().as_secs_f64() * 1e3);
            }
            self.faults.stopped_dropped = status.dropped_frames;
        }
    }
}
