//! The metadata writer: a thread beside the recording that does what may take long.
//!
//! It rewrites the metadata once a second, so that a recorder that is killed leaves a recording, and says in them up to which
//! sample all gaps are known. It also computes the checksum of the data, by reading them behind the writer while they are still
//! in the page cache. The writer of the samples only sends it events, and stores how many samples the system has taken.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grebe_frame::Description;
use serde_json::{Map, Value};

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
    /// One that needs no segment of its own.
    Description(Arc<Description>),
    Annotation {
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    },
    Finish,
}

impl MetadataWriter {
    /// Starts the thread. `data`: the data files, to read and to sum; none where no checksum is wanted. A fast recording is
    /// not summed meanwhile.
    pub(super) fn start(metadata: Metadata, data: Vec<File>, is_fast: bool) -> io::Result<Self> {
        let (events, inbox) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let sums = data.into_iter().map(Sum::new).collect();
        let task = Task { metadata, inbox, progress: progress.clone(), sums, is_fast };
        let thread = thread::Builder::new().name("sigmf-metadata".into()).spawn(move || task.run())?;
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
    /// By data file; none where no checksum is wanted, or where one cannot be computed.
    sums: Vec<Sum>,
    is_fast: bool,
}

impl Task {
    fn run(mut self) -> Result<u64, Error> {
        let began = Instant::now();
        let (mut next_write, mut next_flush) = (began, began);
        // Events that came since the metadata were written.
        let mut is_changed = false;
        loop {
            let now = Instant::now();
            if now >= next_flush {
                self.progress.flush_due.store(true, Ordering::Relaxed);
                next_flush = now + INTERVAL;
            }
            let good_samples = self.good_samples();
            if now >= next_write && (is_changed || good_samples > self.metadata.known_samples) {
                // Every segment that begins before these samples was told before they were written.
                if let Some(last) = self.take_events() {
                    return last;
                }
                self.metadata.known_samples = good_samples;
                // What cannot be written now is tried again, and told at the end; the metadata before stay good.
                is_changed = self.metadata.write(None).is_err();
                // Often at first, so that little is lost. Metadata of millions of segments take long: a twentieth of the time.
                next_write = Instant::now() + (now - began).clamp(TICK, INTERVAL).max(now.elapsed() * 20);
            }
            let idle = self.sum_step();
            match self.inbox.recv_timeout(idle) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(event) => {
                    is_changed = true;
                    if self.take(event) {
                        return self.finish();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.leave_open(),
            }
        }
    }

    fn good_samples(&self) -> u64 {
        self.progress.good_samples.load(Ordering::Acquire)
    }

    /// Takes the events that have come; the result of the thread, where they say that it is over.
    fn take_events(&mut self) -> Option<Result<u64, Error>> {
        loop {
            match self.inbox.try_recv() {
                Ok(event) => {
                    if self.take(event) {
                        return Some(self.finish());
                    }
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return Some(self.leave_open()),
            }
        }
    }

    /// Whether the event is the last.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Finish => return true,
            Event::Segment(segment) => self.metadata.enter(segment),
            Event::Description(description) => self.metadata.describe(Some(&description)),
            Event::Annotation { first_sample_index, length_samples, rest } => {
                self.metadata.annotate(first_sample_index, length_samples, rest);
            }
        }
        false
    }

    /// Sums a piece of the file that is the furthest behind; returns how long there is nothing to do afterwards.
    fn sum_step(&mut self) -> Duration {
        let good_bytes = self.good_samples() * self.metadata.frame_bytes();
        if !self.is_fast
            && let Some(sum) = self.sums.iter_mut().min_by_key(|sum| sum.bytes())
            && sum.bytes() < good_bytes
        {
            match sum.step(good_bytes) {
                Ok(()) => return Duration::ZERO,
                Err(_) => self.sums.clear(),
            }
        }
        TICK
    }

    /// Closes the recording; without checksums where they cannot be computed, or not soon.
    fn finish(&mut self) -> Result<u64, Error> {
        let good_samples = self.good_samples();
        let bytes = good_samples * self.metadata.frame_bytes();
        let sums = std::mem::take(&mut self.sums);
        let left_bytes: u64 = sums.iter().map(|sum| bytes.saturating_sub(sum.bytes())).sum();
        let is_soon = !sums.is_empty() && left_bytes <= CLOSING_BYTES_MAX;
        let sums = is_soon.then(|| sums.into_iter().map(|sum| sum.finish(bytes)).collect());
        self.metadata.cut(good_samples);
        self.metadata.write(Some(sums.and_then(io::Result::ok)))?;
        Ok(self.metadata.segments.len() as u64)
    }

    /// The writer was dropped: all that it wrote is known, and the recording stays "not closed".
    fn leave_open(&mut self) -> Result<u64, Error> {
        self.metadata.known_samples = self.good_samples();
        self.metadata.write(None)?;
        Ok(self.metadata.segments.len() as u64)
    }
}

/// How late the metadata writer may notice that samples were added.
const TICK: Duration = Duration::from_millis(50);
/// The most that a killed recorder loses, and how often metadata are written at most.
const INTERVAL: Duration = Duration::from_secs(1);
/// Over all files, what may still be summed when the recording is closed: a tenth of a second.
const CLOSING_BYTES_MAX: u64 = 64 << 20;
