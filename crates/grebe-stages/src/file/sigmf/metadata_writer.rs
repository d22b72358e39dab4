//! The metadata writer: a thread beside the recording that does what may take long.
//!
//! It rewrites the metadata when segments are added, so that a recorder that is killed leaves a recording. It also computes the
//! checksum of the data, by reading them behind the writer while they are still in the page cache. The writer of the samples
//! only sends it events, and stores how many samples the system has taken.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::checksum::Sum;
use super::metadata::{Captured, Metadata};
use crate::error::Error;

/// The thread, as the writer of the samples holds it.
#[derive(Debug)]
pub(super) struct MetadataWriter {
    events: Sender<Event>,
    progress: Arc<Progress>,
    thread: JoinHandle<Result<u64, Error>>,
}

/// What the writer of the samples and the metadata writer share all the time.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Samples per channel that the system has taken.
    good_samples: AtomicU64,
    /// The writer has not written its buffers for a second.
    flush_due: AtomicBool,
}

#[derive(Debug)]
pub(super) enum Event {
    Segment(Captured),
    Annotation { first_sample_index: u64, length_samples: u64, label: String },
    Finish,
}

/// When the data are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summation {
    Never,
    WhileRecording,
    /// At the end, all channels at once.
    Afterwards,
}

impl MetadataWriter {
    /// Starts the thread. `data`: each channel's file, to read.
    pub(super) fn start(metadata: Metadata, data: Vec<File>, summation: Summation) -> io::Result<Self> {
        let (events, inbox) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let task = Task { metadata, inbox, progress: progress.clone(), summation };
        let sums = data.into_iter().map(Sum::new).collect();
        let thread = thread::Builder::new().name("sigmf-metadata".into()).spawn(move || task.run(sums))?;
        Ok(Self { events, progress, thread })
    }

    pub(super) fn tell(&self, event: Event) {
        // It ends only after `Finish`.
        let _ = self.events.send(event);
    }

    /// The data up to here are in the system's hands.
    pub(super) fn publish(&self, good_samples: u64) {
        self.progress.good_samples.store(good_samples, Ordering::Release);
        self.progress.flush_due.store(false, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_flush_due(&self) -> bool {
        self.progress.flush_due.load(Ordering::Relaxed)
    }

    /// Waits for its end: the recording is closed where [`Event::Finish`] came before, else it stays "not closed". The number
    /// of segments.
    pub(super) fn join(self) -> Result<u64, Error> {
        drop(self.events);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The work of the thread.
struct Task {
    metadata: Metadata,
    inbox: Receiver<Event>,
    progress: Arc<Progress>,
    summation: Summation,
}

impl Task {
    fn run(mut self, mut sums: Vec<Sum>) -> Result<u64, Error> {
        let (mut next_write, mut next_flush) = (Instant::now(), Instant::now());
        let mut is_changed = false;
        loop {
            let now = Instant::now();
            if now >= next_flush {
                self.progress.flush_due.store(true, Ordering::Relaxed);
                next_flush = now + INTERVAL;
            }
            if is_changed && now >= next_write {
                // What cannot be written now is tried again, and told at the end; the metadata before stay good.
                is_changed = self.metadata.write(None).is_err();
                // Metadata of millions of segments take long: a twentieth of the time at most.
                next_write = Instant::now() + INTERVAL.max(now.elapsed() * 20);
            }
            let idle = self.sum_step(&mut sums);
            match self.inbox.recv_timeout(idle) {
                Err(RecvTimeoutError::Timeout) => continue,
                Ok(Event::Finish) => return self.finish(sums),
                Ok(Event::Segment(segment)) => self.metadata.segments.push(segment),
                Ok(Event::Annotation { first_sample_index, length_samples, label }) => {
                    self.metadata.annotate(first_sample_index, length_samples, label);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if is_changed {
                        self.metadata.write(None)?;
                    }
                    return Ok(self.metadata.segments.len() as u64);
                }
            }
            is_changed = true;
        }
    }

    /// Sums a piece of the channel that is the furthest behind; returns how long there is nothing to do afterwards.
    fn sum_step(&mut self, sums: &mut [Sum]) -> Duration {
        let good_bytes = self.progress.good_samples.load(Ordering::Acquire) * 2;
        if self.summation == Summation::WhileRecording
            && let Some(sum) = sums.iter_mut().min_by_key(|sum| sum.bytes())
            && sum.bytes() < good_bytes
        {
            match sum.step(good_bytes) {
                Ok(()) => return Duration::ZERO,
                // Tried again, and told, at the end.
                Err(_) => self.summation = Summation::Afterwards,
            }
        }
        TICK
    }

    /// Closes the recording, without checksums where they cannot be computed.
    fn finish(mut self, sums: Vec<Sum>) -> Result<u64, Error> {
        let good_samples = self.progress.good_samples.load(Ordering::Acquire);
        let sums = match self.summation {
            Summation::Never => Ok(None),
            _ => finish_sums(sums, good_samples * 2).map(Some),
        };
        self.metadata.cut(good_samples);
        let (sums, failed) = match sums {
            Ok(sums) => (sums, None),
            Err(source) => (None, Some(source)),
        };
        self.metadata.write(Some(sums))?;
        match failed {
            None => Ok(self.metadata.segments.len() as u64),
            Some(source) => Err(Error::file("read", &self.metadata.recordings[0].data())(source)),
        }
    }
}

fn finish_sums(sums: Vec<Sum>, bytes: u64) -> io::Result<Vec<String>> {
    thread::scope(|scope| {
        let threads: Vec<_> = sums.into_iter().map(|sum| scope.spawn(move || sum.finish(bytes))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// How late the metadata writer may notice that samples were added.
const TICK: Duration = Duration::from_millis(50);
/// The most that a killed recorder loses of a slow stream, and how often metadata are written at most.
const INTERVAL: Duration = Duration::from_secs(1);
