//! One kind of summary of a recording: an existing one, or one that a thread makes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use grebe_frame::SampleFormat;

use super::format::{Head, Kind, Stamp};
use super::nodes::Lanes;
use super::place;
use crate::error::Error;
use crate::sample_file::SampleFile;

/// Writes a kind of summary beside its final name; what was written is readable at once.
pub(super) trait Writer: Sized + Send + 'static {
    const KIND: Kind;
    type Summary: Send + Sync + 'static;

    /// Begins a summary that will be called `path`.
    ///
    /// # Errors
    /// The system's error for the file that is written beside the recording.
    fn create(path: &Path, format: SampleFormat, channels: usize) -> io::Result<Self>;

    /// The summary of the samples so far, which grows.
    fn summary(&self) -> &Arc<Self::Summary>;

    /// Its final path.
    fn path(&self) -> &Path;

    /// Samples per channel that were appended.
    fn samples(&self) -> u64;

    /// Takes the next samples: the bytes of each channel as a frame has them, all of one length.
    ///
    /// # Errors
    /// The system's error for the file. Drop the summary then.
    fn append(&mut self, channels: &[&[u8]]) -> io::Result<()>;

    /// Writes the rest and gives the summary its name, for the data that `stamp` identifies.
    ///
    /// # Errors
    /// The system's error for the file.
    fn finish(self, stamp: Stamp) -> io::Result<Arc<Self::Summary>>;

    /// Opens a summary; `None` if it is not wanted, or damaged.
    ///
    /// # Errors
    /// The system's error.
    fn open_if(path: &Path, is_wanted: impl Fn(&Head) -> bool) -> io::Result<Option<Self::Summary>>;

    /// Samples per channel, from the first on, that a summary knows.
    fn known_samples(summary: &Self::Summary) -> u64;
}

/// How a recording changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// It has at least the samples that it had.
    pub(super) grows: bool,
    /// Its recorder has ended, so that it will not change any more.
    pub(super) is_closed: bool,
}

/// How far the summary of a recording is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SummaryState {
    /// It is complete, or the data are too short to need one.
    #[default]
    Whole,
    /// The recording is being read.
    Making,
    /// It cannot be made or kept: a one-line reason.
    Failed(String),
}

/// The summary beside a recording or in the user's cache, with its path; `None` if none fits these samples.
pub(super) fn find<W: Writer>(path: &Path, file: &mut SampleFile) -> Option<(W::Summary, PathBuf)> {
    let lanes = Lanes::new(file.format(), file.channels());
    let places = [Some(place::beside(path, W::KIND)), place::in_cache(path, W::KIND)];
    let mut there = places.into_iter().flatten().filter(|place| place.is_file()).peekable();
    there.peek()?;
    let stamp = stamp(file).ok()?;
    let is_wanted = |head: &Head| head.is_of(lanes, file.len_samples(), &stamp);
    there.find_map(|place| Some((W::open_if(&place, is_wanted).ok()??, place)))
}

/// A summary that is used, and the thread that makes it.
pub(super) struct Kept<W: Writer> {
    shared: Arc<Shared<W::Summary>>,
    maker: Option<JoinHandle<()>>,
}

/// State shared by the thread that makes the summary and its readers.
struct Shared<S> {
    is_over: AtomicBool,
    now: Mutex<Now<S>>,
}

struct Now<S> {
    summary: Option<Arc<S>>,
    state: SummaryState,
    /// Its path while it is made.
    place: Option<PathBuf>,
}

impl<W: Writer> Default for Kept<W> {
    fn default() -> Self {
        Self { shared: Arc::new(Shared::new(Now::default())), maker: None }
    }
}

impl<S> Default for Now<S> {
    fn default() -> Self {
        Self { summary: None, state: SummaryState::Whole, place: None }
    }
}

impl<S> Shared<S> {
    fn new(now: Now<S>) -> Self {
        Self { is_over: AtomicBool::new(false), now: Mutex::new(now) }
    }

    fn now(&self) -> MutexGuard<'_, Now<S>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_with(&self, summary: Arc<S>) {
        let mut now = self.now();
        (now.summary, now.state) = (Some(summary), SummaryState::Whole);
    }
}

impl<W: Writer> Kept<W> {
    /// The available part of the summary.
    pub(super) fn summary(&self) -> Option<Arc<W::Summary>> {
        self.shared.now().summary.clone()
    }

    pub(super) fn state(&self) -> SummaryState {
        self.shared.now().state.clone()
    }

    /// Where it is made.
    pub(super) fn place(&self) -> Option<PathBuf> {
        self.shared.now().place.clone()
    }

    pub(super) fn known_samples(&self) -> u64 {
        self.summary().map_or(0, |summary| W::known_samples(&summary))
    }

    /// Uses the summary of a recording, or makes one; one of fewer bytes than `least_bytes` has none. `is_closed`: as of
    /// [`Change`].
    pub(super) fn find_or_make(
        &mut self,
        path: &Path,
        file: &mut SampleFile,
        least_bytes: u64,
        is_closed: bool,
    ) {
        self.stop();
        if file.len_samples() * (file.format().bytes() * file.channels()) as u64 >= least_bytes {
            match find::<W>(path, file) {
                Some((summary, _)) => {
                    *self.shared.now() = Now { summary: Some(Arc::new(summary)), ..Now::default() };
                }
                None => self.make(path, is_closed),
            }
        } else {
            *self.shared.now() = Now::default();
        }
    }

    /// The same for a recording that changed. One that only `grows` lets its maker continue, which sees that.
    pub(super) fn follow(&mut self, path: &Path, file: &mut SampleFile, least_bytes: u64, change: Change) {
        if !change.grows || self.state() != SummaryState::Making {
            self.find_or_make(path, file, least_bytes, change.is_closed);
        }
    }

    /// Makes a summary in a thread, in place of one that there may be. `is_closed`: unless the recorder makes one.
    pub(super) fn make(&mut self, path: &Path, is_closed: bool) {
        self.stop();
        let shared = Arc::new(Shared::new(Now { state: SummaryState::Making, ..Now::default() }));
        self.shared = Arc::clone(&shared);
        let path = path.to_owned();
        let make = move || {
            // Viewers wait for pictures from the same disk and processors meanwhile, and so do other
            // programs. Read-ahead threads inherit the priority.
            grebe_flow::idle_disk_priority();
            give_way();
            if let Err(why) = Maker::<W>::new(&path, &shared, is_closed).and_then(Maker::run) {
                let mut now = shared.now();
                *now = Now { state: SummaryState::Failed(why), ..Now::default() };
            }
        };
        let maker = std::thread::Builder::new().name(W::KIND.extension().into()).spawn(make);
        match maker {
            Ok(maker) => self.maker = Some(maker),
            Err(error) => self.shared.now().state = SummaryState::Failed(error.to_string()),
        }
    }

    fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(maker) = self.maker.take() {
            // It ends within a read; the shared state has its error.
            let _ = maker.join();
        }
        self.shared.is_over.store(false, Ordering::Release);
    }
}

impl<W: Writer> std::fmt::Debug for Kept<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl<W: Writer> Drop for Kept<W> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads a recording from its beginning to its end, which may move.
struct Maker<'a, W: Writer> {
    path: &'a Path,
    shared: &'a Shared<W::Summary>,
    file: SampleFile,
    writer: W,
    bytes: Vec<u8>,
    grew: Instant,
    /// Whether its recorder has ended.
    is_closed: bool,
}

impl<'a, W: Writer> Maker<'a, W> {
    fn new(path: &'a Path, shared: &'a Shared<W::Summary>, is_closed: bool) -> Result<Self, String> {
        let file = SampleFile::open(path).map_err(|error| error.to_string())?;
        let writer: W = create(path, &file)?;
        let mut now = shared.now();
        (now.summary, now.place) = (Some(Arc::clone(writer.summary())), Some(writer.path().to_owned()));
        drop(now);
        Ok(Self { path, shared, file, writer, bytes: Vec::new(), grew: Instant::now(), is_closed })
    }

    fn run(mut self) -> Result<(), String> {
        let step = (STEP_BYTES / (self.file.format().bytes() * self.file.channels())).max(1) as u64;
        let mut looked: Option<Instant> = None;
        while !self.shared.is_over.load(Ordering::Acquire) {
            // The summary of a recorder comes a moment after its recording is closed.
            if self.is_closed && looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
                looked = Some(Instant::now());
                if let Some((summary, _)) = find::<W>(self.path, &mut self.file) {
                    self.shared.end_with(Arc::new(summary));
                    return Ok(());
                }
            }
            let position = self.writer.samples();
            let length = step.min(self.file.len_samples().saturating_sub(position)) as usize;
            if length > 0 {
                self.file.read(position, length, &mut self.bytes).map_err(|error| error.to_string())?;
                let channel_bytes = self.bytes.len() / self.file.channels();
                let channels: Vec<&[u8]> = self.bytes.chunks_exact(channel_bytes).collect();
                self.writer.append(&channels).map_err(|error| self.not_kept(&error))?;
                self.grew = Instant::now();
            } else if self.look() {
                continue;
            } else if self.is_closed || self.is_at_rest() {
                return self.finish();
            } else {
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Takes over new samples, or the end of the recorder; returns whether there was any.
    fn look(&mut self) -> bool {
        let Ok(file) = SampleFile::open(self.path) else { return false };
        let grows = file.len_samples() > self.file.len_samples();
        let ends = self.file.is_being_recorded() && file.is_whole();
        let is_same = (file.format(), file.channels()) == (self.file.format(), self.file.channels());
        if !is_same || file.len_samples() < self.file.len_samples() || !(grows || ends) {
            return false;
        }
        self.is_closed |= ends;
        self.grew = Instant::now();
        self.file = file;
        true
    }

    /// Whether the recording has not grown for a while.
    fn is_at_rest(&self) -> bool {
        let changed = self.file.data_size().1.and_then(|at| SystemTime::now().duration_since(at).ok());
        changed.is_none_or(|age| age > REST) || self.grew.elapsed() > REST
    }

    fn finish(mut self) -> Result<(), String> {
        let stamp = stamp(&mut self.file).map_err(|error| error.to_string())?;
        let path = self.path;
        let summary = self.writer.finish(stamp);
        let summary =
            summary.map_err(|error| format!("the summary of {} is not kept: {error}", path.display()))?;
        self.shared.end_with(summary);
        Ok(())
    }

    fn not_kept(&self, error: &io::Error) -> String {
        format!("the summary of {} is not kept: {error}", self.path.display())
    }
}

/// Begins a summary beside the recording, or in the user's cache where that folder cannot be written to.
fn create<W: Writer>(path: &Path, file: &SampleFile) -> Result<W, String> {
    let create = |place: &Path| W::create(place, file.format(), file.channels());
    let beside = place::beside(path, W::KIND);
    let error = match create(&beside) {
        Ok(writer) => return Ok(writer),
        Err(error) => error,
    };
    let in_cache = place::in_cache(path, W::KIND).and_then(|place| {
        fs::create_dir_all(place.parent()?).ok()?;
        create(&place).ok()
    });
    in_cache.ok_or_else(|| format!("no summary can be written to {}: {error}", beside.display()))
}

/// Tells the data from others.
pub(super) fn stamp(file: &mut SampleFile) -> Result<Stamp, Error> {
    let (bytes, modified) = file.data_size();
    let modified = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    let fingerprint = file.fingerprint()?;
    Ok(Stamp { bytes, modified_ns: modified.as_nanos() as u64, fingerprint })
}

/// Less data is read as a whole in the time that a person waits for.
pub(super) const SMALL_BYTES: u64 = 32 << 20;
/// Large enough for a disk; all of it fits into a cache.
const STEP_BYTES: usize = 1 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A recording without changes for this time counts as finished.
pub(super) const REST: Duration = Duration::from_secs(3);

/// Lowers the priority of this thread, and of threads that it starts later, in favour of streams and people.
#[cfg(target_os = "linux")]
pub(super) fn give_way() {
    // Linux sets it for this thread alone; elsewhere it competes like any other.
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_way() {}

/// A tenth of the processor time of a thread that competes with it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;
