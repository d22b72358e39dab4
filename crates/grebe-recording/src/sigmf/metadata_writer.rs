//! The metadata writer: a thread for slow operations of a recording.
//!
//! About once a second it waits until the written data are on the disk, then replaces the metadata. These
//! state the sample up to which the file is good and all gaps are known, which is the recording after a kill
//! or a power failure. The thread also closes the recording, so that another can begin meanwhile. The writer
//! of the samples only sends it events.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grebe_frame::Description;
use serde_json::{Map, Value};

use super::captured::Captured;
use super::checksum::Sum;
use super::layout::Annotation;
use super::metadata::{Metadata, State};
use super::stripe_set::StripeSet;
use super::unnamed::Unnamed;
use crate::disk::{DiskFile, Summed};
use crate::error::Error;

/// The thread, as the writer of the samples holds it.
#[derive(Debug)]
pub(super) struct MetadataWriter {
    events: Sender<Event>,
    /// Requests that data waiting in a block go to the disk now.
    cut_due: Arc<AtomicBool>,
    thread: JoinHandle<Result<Closed, Error>>,
}

/// Result of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) len_samples: u64,
    pub(super) segments: u64,
}

#[derive(Debug)]
pub(super) enum Event {
    Segment(Captured),
    /// A description that needs no new segment.
    Description(Arc<Description>),
    /// On a stretch of the stream.
    Annotation {
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    },
    /// On a stretch of the file.
    Placed(Annotation),
    /// Final set of alternating recordings.
    Stripes(Option<StripeSet>),
    Finish,
}

impl MetadataWriter {
    /// Starts the thread, for the data in these files.
    pub(super) fn start(
        metadata: Metadata,
        unnamed: Unnamed,
        data: Vec<Arc<DiskFile>>,
        checksum: bool,
    ) -> io::Result<Self> {
        let (events, inbox) = mpsc::channel();
        let cut_due = Arc::new(AtomicBool::new(false));
        let unnamed = Some(unnamed);
        let task = Task { metadata, unnamed, inbox, cut_due: cut_due.clone(), data, checksum };
        let thread = thread::Builder::new().name("sigmf-metadata".into()).spawn(move || task.run())?;
        Ok(Self { events, cut_due, thread })
    }

    pub(super) fn tell(&self, event: Event) {
        // It ends only after `Finish`.
        let _ = self.events.send(event);
    }

    /// Whether what waits should go to the disk now; then not again for a while.
    #[inline]
    pub(super) fn is_cut_due(&self) -> bool {
        self.cut_due.load(Ordering::Relaxed) && self.cut_due.swap(false, Ordering::Relaxed)
    }

    /// Waits for its end: the recording is closed where [`Event::Finish`] came before, else it stays "not closed".
    pub(super) fn join(self) -> Result<Closed, Error> {
        drop(self.events);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The work of the thread.
struct Task {
    metadata: Metadata,
    /// The data, until there are metadata of theirs.
    unnamed: Option<Unnamed>,
    inbox: Receiver<Event>,
    cut_due: Arc<AtomicBool>,
    data: Vec<Arc<DiskFile>>,
    checksum: bool,
}

impl Task {
    fn run(mut self) -> Result<Closed, Error> {
        let began = Instant::now();
        let (mut next_write, mut next_sync, mut next_cut) = (began, began + INTERVAL, began);
        // Events that came since the metadata were written.
        let mut is_changed = false;
        loop {
            let now = Instant::now();
            if now >= next_cut {
                self.cut_due.store(true, Ordering::Relaxed);
                next_cut = now + CUT_EVERY;
            }
            let good_samples = self.good_samples();
            let has_news = is_changed && self.unnamed.is_none() || good_samples > self.metadata.known_samples;
            if now >= next_write && has_news {
                // The recorder reported each segment that begins before these samples before it wrote them.
                if let Some(last) = self.take_events() {
                    return last;
                }
                let is_durable = now >= next_sync;
                if is_durable {
                    next_sync = now + INTERVAL;
                }
                // A failed write is retried, and reported at the end; the previous metadata stay good.
                is_changed = self.say(good_samples, is_durable).is_err();
                next_write = now + self.pause(now - began, now.elapsed());
            }
            match self.inbox.recv_timeout(TICK) {
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

    /// Pause between two starts of writing metadata, when the last write took `took`.
    fn pause(&self, since_begin: Duration, took: Duration) -> Duration {
        // Frequent at first, to lose little; at most half of the time waiting for a slow disk.
        let pause = since_begin.clamp(TICK, INTERVAL).max(took * 2);
        // Metadata of millions of segments take long to make: a twentieth of the time.
        if self.metadata.segments.len() > MANY_SEGMENTS { pause.max(took * 20) } else { pause }
    }

    /// Writes the current state; `is_durable`: after syncing the data.
    fn say(&mut self, good_samples: u64, is_durable: bool) -> Result<(), Error> {
        if is_durable {
            for file in &self.data {
                file.sync().map_err(Error::file("write", file.path()))?;
            }
        }
        self.metadata.known_samples = good_samples;
        let sums = self.summed(good_samples);
        self.write(&State { is_closed: false, is_durable, sums: &sums })
    }

    /// Writes the metadata; the first time they come with the data's names.
    fn write(&mut self, state: &State<'_>) -> Result<(), Error> {
        let staged = self.metadata.stage(state)?;
        if let Some(unnamed) = &mut self.unnamed {
            unnamed.name()?;
            self.unnamed = None;
        }
        self.metadata.commit(staged, state)
    }

    /// Samples that are good in every file.
    fn good_samples(&self) -> u64 {
        let good_bytes = self.data.iter().map(|file| file.good_bytes()).min().unwrap_or(0);
        good_bytes / self.metadata.frame_bytes()
    }

    fn summed(&self, good_samples: u64) -> Vec<Summed> {
        let bytes = good_samples * self.metadata.frame_bytes();
        self.data.iter().map(|file| file.summed(bytes)).collect()
    }

    /// Takes the waiting events; returns the thread's result after the last.
    fn take_events(&mut self) -> Option<Result<Closed, Error>> {
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
            Event::Placed(annotation) => self.metadata.annotations.place(annotation),
            Event::Stripes(stripes) => self.metadata.set_stripes(stripes),
        }
        false
    }

    /// Closes the recording.
    fn finish(&mut self) -> Result<Closed, Error> {
        self.data.iter().for_each(|file| file.settle());
        let mut closed = self.close(self.good_samples());
        // Nothing is left for the metadata: the last samples make room for them.
        if closed.as_ref().is_err_and(Error::is_full) {
            let bytes = ROOM_BYTES * self.data.len() as u64;
            closed = self.close(self.good_samples().saturating_sub(bytes / self.metadata.frame_bytes()));
        }
        if closed.is_err()
            && self.good_samples() > 0
            && let Some(unnamed) = self.unnamed.take()
        {
            // No metadata describe the samples, but they stay on the disk.
            unnamed.leave();
        }
        closed
    }

    fn close(&mut self, good_samples: u64) -> Result<Closed, Error> {
        let bytes = good_samples * self.metadata.frame_bytes();
        for file in &self.data {
            let path = || file.path().to_owned();
            file.close(bytes).map_err(|source| Error::Write { path: path(), source, good_samples })?;
        }
        let mut sums = self.summed(good_samples);
        self.sum_short(bytes, &mut sums);
        self.metadata.cut(good_samples);
        self.write(&State { is_closed: true, is_durable: true, sums: &sums })?;
        Ok(Closed { len_samples: good_samples, segments: self.metadata.segments.len() as u64 })
    }

    /// The SHA-512 of a short recording, which came too fast for it.
    fn sum_short(&self, bytes: u64, sums: &mut [Summed]) {
        if !self.checksum || bytes * self.data.len() as u64 > CLOSING_BYTES_MAX {
            return;
        }
        for (file, sums) in self.data.iter().zip(sums).filter(|(_, sums)| sums.sha512.is_none()) {
            // A file that cannot be read now has no such sum.
            let path = self.unnamed.as_ref().map(|unnamed| unnamed.place_of(file.path()));
            let path = path.as_deref().unwrap_or(file.path());
            sums.sha512 = File::open(path).and_then(|file| Sum::new(file).finish(bytes)).ok();
        }
    }

    /// The writer was dropped: all that it wrote is known, and the recording stays "not closed".
    fn leave_open(&mut self) -> Result<Closed, Error> {
        self.data.iter().for_each(|file| file.settle());
        let good_samples = self.good_samples();
        for file in &self.data {
            // The file continues with zeros.
            let _ = file.close(good_samples * self.metadata.frame_bytes());
        }
        if good_samples > 0 {
            self.say(good_samples, true)?;
        }
        Ok(Closed { len_samples: good_samples, segments: self.metadata.segments.len() as u64 })
    }
}

/// How late the metadata writer may notice that samples were added.
const TICK: Duration = Duration::from_millis(50);
/// Minimum interval of writing metadata and syncing the data that they cover.
const INTERVAL: Duration = Duration::from_millis(300);
/// Maximum time that samples wait for more. A killed recorder loses the samples of this time and the
/// interval.
const CUT_EVERY: Duration = Duration::from_millis(250);
/// Some milliseconds of writing metadata.
const MANY_SEGMENTS: usize = 10_000;
/// Bytes of all files to read again at closing: a tenth of a second.
const CLOSING_BYTES_MAX: u64 = 64 << 20;
/// Given up in each data file on a disk that is full, for the metadata.
const ROOM_BYTES: u64 = 256 << 10;
