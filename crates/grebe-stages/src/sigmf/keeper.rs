//! The metadata's keeper: a thread beside the recording that does what may take long.
//!
//! It rewrites the metadata when segments are added, so that a recorder that is killed leaves a recording; and it sums the
//! data, by reading them behind the writer while they are still in the page cache. The writer only tells it of segments, and
//! stores how far the data are good.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use super::check::{Sum, Summing};
use super::meta::{
    Annotation, Capture, Collection, CollectionFile, Global, MetaOut, NOT_CLOSED, Stream, VERSION, datetime,
};
use super::names::{Base, temporary};
use crate::StagesError;

/// The writer's end.
#[derive(Debug)]
pub(super) struct Keeper {
    events: Sender<Event>,
    progress: Arc<Progress>,
    thread: JoinHandle<Result<u64, StagesError>>,
}

/// What the writer and its keeper tell each other all the time.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Samples a channel that the system has taken.
    good_samples: AtomicU64,
    /// The writer's buffers were not written for a second.
    flush_due: AtomicBool,
}

#[derive(Debug)]
pub(super) enum Event {
    Segment(Captured),
    Annotation { first_sample_index: u64, length_samples: u64, label: String },
    Finish,
}

/// Where samples go on after a gap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Captured {
    pub(super) position: u64,
    pub(super) first_sample_index: u64,
    pub(super) received_at: SystemTime,
}

/// When the data are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summation {
    Never,
    WhileRecording,
    /// At the end, all channels at once.
    Afterwards,
}

impl Keeper {
    /// Starts the thread. `data`: each channel's file, to read.
    pub(super) fn start(notebook: Notebook, data: Vec<File>, summation: Summation) -> io::Result<Self> {
        let (events, inbox) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let desk = Desk { notebook, inbox, progress: progress.clone(), summation };
        let sums = data.into_iter().map(Sum::new).collect();
        let thread = thread::Builder::new().name("sigmf-keeper".into()).spawn(move || desk.run(sums))?;
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
    pub(super) fn join(self) -> Result<u64, StagesError> {
        drop(self.events);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The thread's side.
struct Desk {
    notebook: Notebook,
    inbox: Receiver<Event>,
    progress: Arc<Progress>,
    summation: Summation,
}

impl Desk {
    fn run(mut self, mut sums: Vec<Sum>) -> Result<u64, StagesError> {
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
                is_changed = self.notebook.write(None).is_err();
                // Metadata of millions of segments take long: a twentieth of the time at most.
                next_write = Instant::now() + INTERVAL.max(now.elapsed() * 20);
            }
            let idle = self.sum_step(&mut sums);
            match self.inbox.recv_timeout(idle) {
                Err(RecvTimeoutError::Timeout) => continue,
                Ok(Event::Finish) => return self.finish(sums),
                Ok(Event::Segment(segment)) => self.notebook.segments.push(segment),
                Ok(Event::Annotation { first_sample_index, length_samples, label }) => {
                    self.notebook.annotate(first_sample_index, length_samples, label);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if is_changed {
                        self.notebook.write(None)?;
                    }
                    return Ok(self.notebook.segments.len() as u64);
                }
            }
            is_changed = true;
        }
    }

    /// Sums a piece of the channel that is behind most; how long there is nothing to do afterwards.
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

    /// Closes the recording, without sums where they cannot be had.
    fn finish(mut self, sums: Vec<Sum>) -> Result<u64, StagesError> {
        let good_samples = self.progress.good_samples.load(Ordering::Acquire);
        let sums = match self.summation {
            Summation::Never => Ok(None),
            _ => finish_sums(sums, good_samples * 2).map(Some),
        };
        self.notebook.cut(good_samples);
        let (sums, failed) = match sums {
            Ok(sums) => (sums, None),
            Err(source) => (None, Some(source)),
        };
        self.notebook.write(Some(sums))?;
        match failed {
            None => Ok(self.notebook.segments.len() as u64),
            Some(source) => Err(StagesError::Read { path: self.notebook.recordings[0].data(), source }),
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

/// What the metadata say, and where.
#[derive(Debug)]
pub(super) struct Notebook {
    /// One a channel.
    pub(super) recordings: Vec<Base>,
    /// What ties more than one together.
    pub(super) collection: Option<Base>,
    pub(super) sample_rate_hz: f64,
    pub(super) description: Option<String>,
    pub(super) segments: Vec<Captured>,
    pub(super) annotations: Vec<Annotation>,
}

impl Notebook {
    /// Writes the metadata in place of what is there; `closed` with the sums, where there are any.
    fn write(&self, closed: Option<Option<Vec<String>>>) -> Result<(), StagesError> {
        let durable = closed.is_some();
        self.stage(closed)?.commit()?;
        if durable {
            self.sync_folder();
        }
        Ok(())
    }

    /// Writes the metadata beside what is there.
    pub(super) fn stage(&self, closed: Option<Option<Vec<String>>>) -> Result<Staged, StagesError> {
        let mut staged = Staged::default();
        let mut streams = Vec::new();
        let durable = closed.is_some();
        for (channel, base) in self.recordings.iter().enumerate() {
            let global =
                self.global(closed.as_ref().map(|sums| sums.as_ref().map(|sums| sums[channel].clone())));
            let meta = MetaOut {
                global: &global,
                captures: self.segments.iter().map(Capture::from),
                annotations: self.annotations.iter(),
            };
            let hash = staged.json(base.meta(), &meta, durable)?;
            streams.push(Stream::Object { name: base.name(), hash: Some(hash) });
        }
        if let Some(base) = &self.collection {
            let (version, description) = (VERSION.into(), self.description.clone());
            let file = CollectionFile { collection: Collection { version, description, streams } };
            staged.json(base.collection(), &file, durable)?;
        }
        Ok(staged)
    }

    fn global(&self, closed: Option<Option<String>>) -> Global {
        let state = if closed.is_some() { "" } else { NOT_CLOSED };
        Global {
            datatype: "ri16_le".into(),
            sample_rate: Some(self.sample_rate_hz).filter(|&rate_hz| rate_hz > 0.0),
            version: VERSION.into(),
            num_channels: Some(1),
            description: self.description.clone(),
            recorder: Some(format!("grebe {}{state}", env!("CARGO_PKG_VERSION"))),
            collection: self.collection.as_ref().map(Base::name),
            dataset: None,
            metadata_only: None,
            offset: None,
            trailing_bytes: None,
            sha512: closed.flatten(),
        }
    }

    /// Enters a stretch of the stream where it stands in the file; what lies in a gap is left out of it.
    fn annotate(&mut self, first_sample_index: u64, length_samples: u64, label: String) {
        let sample_start = self.position(first_sample_index);
        let end = self.position(first_sample_index.saturating_add(length_samples));
        let annotation = Annotation { sample_start, sample_count: end.saturating_sub(sample_start), label };
        let place = self.annotations.partition_point(|other| other.sample_start <= sample_start);
        self.annotations.insert(place, annotation);
    }

    /// Where a sample of the stream stands in the file, or what follows it there. The newest segments come first: those of
    /// a stream that began again hide older ones, and most notes are on what just happened.
    fn position(&self, index: u64) -> u64 {
        let mut end = u64::MAX;
        for segment in self.segments.iter().rev() {
            if segment.first_sample_index <= index {
                return segment.position.saturating_add(index - segment.first_sample_index).min(end);
            }
            end = segment.position;
        }
        0
    }

    /// Leaves out what lies behind the end.
    fn cut(&mut self, len_samples: u64) {
        self.segments.retain(|segment| segment.position < len_samples);
        self.annotations.retain(|annotation| annotation.sample_start < len_samples);
        for annotation in &mut self.annotations {
            annotation.sample_count = annotation.sample_count.min(len_samples - annotation.sample_start);
        }
    }

    /// So that the new names survive a loss of power too. Not every system can; the data are safe without.
    fn sync_folder(&self) {
        if cfg!(unix) {
            let folder = self.recordings[0].path().parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        }
    }
}

impl From<&Captured> for Capture {
    fn from(segment: &Captured) -> Self {
        Capture {
            sample_start: segment.position,
            // SigMF's largest index.
            global_index: Some(segment.first_sample_index.min(i64::MAX as u64)),
            header_bytes: None,
            datetime: datetime(segment.received_at),
        }
    }
}

/// Files under temporary names, which take their places together, or are removed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    files: Vec<(PathBuf, PathBuf)>,
}

impl Staged {
    /// A new file that will be `path`.
    pub(super) fn create(&mut self, path: PathBuf) -> Result<File, StagesError> {
        let temporary = temporary(&path);
        let file =
            File::create(&temporary).map_err(|source| StagesError::Create { path: path.clone(), source })?;
        self.files.push((temporary, path));
        Ok(file)
    }

    /// Writes a value; the sum of the file.
    fn json(
        &mut self,
        path: PathBuf,
        value: &impl serde::Serialize,
        durable: bool,
    ) -> Result<String, StagesError> {
        let failed = |source| StagesError::Create { path: path.clone(), source };
        let mut out = Summing::new(BufWriter::with_capacity(BUFFER_BYTES, self.create(path.clone())?));
        serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
        out.write_all(b"\n").map_err(failed)?;
        let (out, sum) = out.finish();
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if durable {
            file.sync_all().map_err(failed)?;
        }
        Ok(sum)
    }

    pub(super) fn append(&mut self, mut other: Staged) {
        self.files.append(&mut other.files);
    }

    /// Gives all files their names.
    pub(super) fn commit(mut self) -> Result<(), StagesError> {
        for (temporary, path) in &self.files {
            fs::rename(temporary, path)
                .map_err(|source| StagesError::Create { path: path.clone(), source })?;
        }
        self.files.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// How late the keeper may be.
const TICK: Duration = Duration::from_millis(50);
/// The most that a killed recorder loses of a slow stream, and how often metadata are written at most.
const INTERVAL: Duration = Duration::from_secs(1);
const BUFFER_BYTES: usize = 256 << 10;
