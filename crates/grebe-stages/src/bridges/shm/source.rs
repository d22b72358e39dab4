//! `shm://` as a source: reads frames of this user in the producer's memory.

use std::time::Duration;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{BatchPool, Header, StreamTracker};
use grebe_link::arrival::ArrivalCounters;
use grebe_shm::{Error as ShmError, Subscriber, SubscriberOptions};

use crate::session::{Bounded, Limit, Silence};

/// Reads the stream of this name from its producer. From a trusted producer ([`grebe_shm::Trust`]) nothing is copied:
/// batches stay in its memory, and return to it when the last stage has released them.
#[derive(Debug)]
pub struct ShmSource {
    subscriber: Subscriber,
    silence: Silence,
    tracker: StreamTracker,
    counters: ArrivalCounters,
    limit: Limit,
    /// The stream to join when this one ends.
    next: Option<(String, SubscriberOptions)>,
    is_between: bool,
}

impl ShmSource {
    /// Joins the stream at its newest batch.
    ///
    /// # Errors
    /// The stream does not exist, its producer refuses, or this system has no shared memory.
    pub fn connect(name: &str, options: &SubscriberOptions) -> Result<Self, ShmError> {
        Ok(Self {
            subscriber: Subscriber::connect(name, options)?,
            silence: Silence::begin(),
            tracker: StreamTracker::new(),
            counters: ArrivalCounters::default(),
            limit: Limit::default(),
            next: None,
            is_between: false,
        })
    }

    /// Maximum batches on loan to this reader, waiting and held. With as many it gets no more.
    pub fn lent_max(&self) -> usize {
        self.subscriber.quota_chunks() as usize
    }

    /// Samples per channel that may still pass; `None`: all.
    pub(crate) fn left_samples(&self) -> Option<u64> {
        self.limit.left()
    }

    /// Waits for the next stream of this name when this one ends.
    pub(crate) fn listens_on(mut self, next: Option<(String, SubscriberOptions)>) -> Self {
        self.next = next;
        self
    }

    /// The end header, if the producer sent one.
    fn end(&mut self) -> Option<Header> {
        let end = self.subscriber.end_header();
        if let Some(end) = &end {
            // It shows the samples missing at the tail.
            self.tracker.arrive(end);
        }
        self.counters.publish(&self.tracker);
        end
    }

    /// Looks for the next stream of this name, after its end was sent on.
    fn follow(&mut self, output: &mut Outputs, ctx: &Context) -> Result<(), ShmError> {
        if !self.is_between {
            self.is_between = true;
            let mut batch = BatchPool::new(1, 256).acquire();
            // A frame without samples always fits. A killed producer leaves none.
            if let (Some(end), Some(batch)) = (self.end(), &mut batch) {
                let _ = batch.push_bytes(&end, |_, _| {});
            }
            if let Some(batch) = batch.filter(|batch| !batch.is_empty()) {
                self.limit.send(batch.freeze(), output, ctx);
            }
        }
        let Some((name, options)) = &self.next else { return Ok(()) };
        match Subscriber::connect(name, options) {
            Ok(subscriber) => {
                self.subscriber = subscriber;
                self.tracker.forget();
                self.is_between = false;
                self.silence.hear();
            }
            Err(ShmError::NoStream { .. }) => ctx.waiting(|| std::thread::sleep(WAIT_MAX)),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Bounded for ShmSource {
    fn limit(&mut self) -> &mut Limit {
        &mut self.limit
    }

    fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }
}

impl Stage for ShmSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(batch) = self.subscriber.pop()? {
            for frame in batch.frames() {
                self.tracker.arrive(&frame.header());
            }
            self.silence.hear();
            self.counters.publish(&self.tracker);
            if self.subscriber.is_copied() {
                ctx.count_copied(batch.len());
            }
            if !batch.is_empty() {
                self.limit.send(batch, output, ctx);
            }
            return Ok(if self.limit.is_reached() { Outcome::End } else { Outcome::Produced });
        }
        if self.subscriber.is_ended() {
            if self.next.is_some() {
                self.follow(output, ctx)?;
                return Ok(Outcome::Produced);
            }
            self.end();
            return Ok(Outcome::End);
        }
        if !ctx.waiting(|| self.subscriber.wait(WAIT_MAX))? {
            self.silence.check()?;
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(end) = self.subscriber.end_header().filter(|_| self.subscriber.is_ended()) {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shared())
    }
}

/// Maximum wait, so that a stop takes effect.
const WAIT_MAX: Duration = Duration::from_millis(100);
