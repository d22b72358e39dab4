//! A recording with its summary: opened where there is one, made in the background where there is none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use super::builder::SummaryWriter;
use super::format::Stamp;
use super::nodes::Lanes;
use super::place;
use super::reader::Summary;
use crate::error::Error;
use crate::sample_file::SampleFile;

/// A recording of any size to look at: its samples, and the [`Summary`] of it.
///
/// A summary beside the recording (or in the user's cache) is used if it is of these samples. Otherwise a thread reads the
/// recording, which may take as long as its disk does, and leaves one. A recording that grows is followed.
///
/// ```no_run
/// use grebe_recording::{SummarizedFile, Summary};
///
/// let mut recording = SummarizedFile::open("week.sigmf-meta".as_ref())?;
/// while recording.known_samples() < recording.file().len_samples() {
///     std::thread::sleep(std::time::Duration::from_millis(100));
/// }
/// let (level, mut nodes) = (Summary::level(20).unwrap(), Vec::new());
/// let count = recording.file().len_samples().div_ceil(1 << level);
/// recording.extremes(0, level, 0..count, &mut nodes)?;
/// println!("highest: {}", nodes.iter().map(|node| node.max).fold(f32::MIN, f32::max));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SummarizedFile {
    path: PathBuf,
    file: SampleFile,
    /// Size of the data at the last check, and of the file that opens them.
    size: Size,
    named: Size,
    shared: Arc<Shared>,
    maker: Option<JoinHandle<()>>,
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

/// State shared by the thread that makes the summary and its readers.
#[derive(Debug)]
struct Shared {
    is_over: AtomicBool,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    summary: Option<Arc<Summary>>,
    state: SummaryState,
    /// Its path while it is made.
    place: Option<PathBuf>,
}

impl Summary {
    /// The summary of a recording, beside it or in the user's cache; `None` where there is none of these samples. None is made:
    /// [`SummarizedFile`] does that.
    pub fn find(path: &Path, file: &mut SampleFile) -> Option<Self> {
        let lanes = Lanes::new(file.format(), file.channels());
        let places = [Some(place::beside(path)), place::in_cache(path)];
        let mut there = places.into_iter().flatten().filter(|place| place.is_file()).peekable();
        there.peek()?;
        let stamp = stamp(file).ok()?;
        there.find_map(|place| Self::open_of(&place, lanes, file.len_samples(), &stamp).ok()?)
    }
}

impl Summary {
    /// Path of a recording's summary that does not lie beside it, if it matches these samples.
    pub fn elsewhere(path: &Path, file: &mut SampleFile) -> Option<PathBuf> {
        let lanes = Lanes::new(file.format(), file.channels());
        let place = place::in_cache(path).filter(|place| place.is_file())?;
        let stamp = stamp(file).ok()?;
        Self::open_of(&place, lanes, file.len_samples(), &stamp).ok()?.map(|_| place)
    }
}

/// Cheap sign of changed data: bytes, and modification time.
type Size = (u64, Option<SystemTime>);

impl SummarizedFile {
    /// Opens a recording as [`SampleFile::open`] does, and its summary, which is made where it is missing.
    ///
    /// # Errors
    /// Those of [`SampleFile::open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = SampleFile::open(path)?;
        let mut opened = Self {
            path: path.to_owned(),
            size: file.data_size(),
            named: named(path),
            file,
            shared: Arc::new(Shared { is_over: AtomicBool::new(false), now: Mutex::new(Now::default()) }),
            maker: None,
        };
        opened.find_or_make();
        Ok(opened)
    }

    /// The recording, as of the last check.
    pub fn file(&self) -> &SampleFile {
        &self.file
    }

    /// Bytes of its samples.
    pub fn data_bytes(&self) -> u64 {
        self.file.len_samples() * (self.file.format().bytes() * self.file.channels()) as u64
    }

    /// Whether its data changed within the last seconds.
    pub fn is_fresh(&self) -> bool {
        let age = self.size.1.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age < REST)
    }

    /// Path where its summary is made, if not beside it.
    pub fn other_place(&self) -> Option<PathBuf> {
        self.shared.now().place.clone().filter(|place| *place != place::beside(&self.path))
    }

    /// Reads samples of all channels: the bytes of each channel in turn.
    ///
    /// # Errors
    /// Those of [`SampleFile::read`].
    pub fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.file.read(position, length, out)
    }

    /// Samples per channel, from the first on, whose extremes and sums are known.
    pub fn known_samples(&self) -> u64 {
        self.summary().map_or(0, |summary| summary.known_samples()).min(self.file.len_samples())
    }

    /// As [`Summary::extremes`]. Rebuilds a damaged summary.
    ///
    /// # Errors
    /// Those of [`Summary::extremes`], and a missing summary.
    pub fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: std::ops::Range<u64>,
        out: &mut Vec<super::Extremes>,
    ) -> io::Result<()> {
        let summary = self.summary().ok_or(io::ErrorKind::NotFound)?;
        let read = summary.extremes(lane, log2, nodes, out);
        if read.is_err() && self.state() == SummaryState::Whole {
            self.make();
        }
        read
    }

    /// The extremes of the samples of a lane from where a node of a level begins to `end`, which lies within it: of shorter nodes, and at
    /// its end of samples.
    ///
    /// # Errors
    /// Those of [`extremes`](Self::extremes) and [`read`](Self::read).
    pub fn extremes_up_to(
        &mut self,
        lane: usize,
        log2: u32,
        node: u64,
        end: u64,
    ) -> io::Result<super::Extremes> {
        let mut found = Vec::new();
        let (mut at, mut longest) = (node << log2, log2);
        while let Some(level) = longest.checked_sub(1).and_then(Summary::level) {
            let whole = end >> level;
            self.extremes(lane, level, at >> level..whole, &mut found)?;
            (at, longest) = (whole << level, level);
        }
        let mut bytes = Vec::new();
        self.read(at, end.saturating_sub(at) as usize, &mut bytes).map_err(io::Error::other)?;
        let lanes = Lanes::new(self.file.format(), self.file.channels());
        let channel_bytes = bytes.len() / self.file.channels();
        let own = &bytes[lane / lanes.of_channel * channel_bytes..][..channel_bytes];
        lanes.measure(lane, own, |extremes, _| found.push(extremes));
        Ok(found.into_iter().fold(super::Extremes::NONE, |mut all, one| {
            all.merge(one);
            all
        }))
    }

    /// The available part of the summary.
    pub fn summary(&self) -> Option<Arc<Summary>> {
        self.shared.now().summary.clone()
    }

    /// How far the summary is.
    pub fn state(&self) -> SummaryState {
        self.shared.now().state.clone()
    }

    /// Looks whether the recording changed; whether it did. Cheap enough for twice a second.
    pub fn refresh(&mut self) -> bool {
        let named = named(&self.path);
        if (self.file.data_size(), named) == (self.size, self.named) {
            return false;
        }
        // While the metadata are being replaced, the previous ones apply.
        let Ok(file) = SampleFile::open(&self.path) else { return false };
        self.named = named;
        let size = file.data_size();
        let is_closed_now = file.is_whole() != self.file.is_whole();
        if size == self.size && file.len_samples() == self.file.len_samples() && !is_closed_now {
            return false;
        }
        let is_same = file.format() == self.file.format() && file.channels() == self.file.channels();
        let grows = is_same && file.len_samples() >= self.file.len_samples() && size.0 >= self.size.0;
        (self.file, self.size) = (file, size);
        // The maker sees that the recording grew.
        if !grows || self.state() != SummaryState::Making {
            self.find_or_make();
        }
        true
    }

    fn find_or_make(&mut self) {
        self.stop();
        if self.data_bytes() < SMALL_BYTES {
            *self.shared.now() = Now::default();
            return;
        }
        match Summary::find(&self.path, &mut self.file) {
            Some(summary) => {
                *self.shared.now() = Now { summary: Some(Arc::new(summary)), ..Now::default() };
            }
            None => self.make(),
        }
    }

    /// Makes a summary in a thread.
    fn make(&mut self) {
        self.stop();
        let now = Now { state: SummaryState::Making, ..Now::default() };
        let shared = Arc::new(Shared { is_over: AtomicBool::new(false), now: Mutex::new(now) });
        self.shared = Arc::clone(&shared);
        let path = self.path.clone();
        let make = move || {
            // Viewers wait for pictures from the same disk and processors meanwhile, and so do other
            // programs. Read-ahead threads inherit the priority.
            grebe_flow::idle_disk_priority();
            give_way();
            if let Err(why) = Maker::new(&path, &shared).and_then(Maker::run) {
                let mut now = shared.now();
                *now = Now { state: SummaryState::Failed(why), ..Now::default() };
            }
        };
        let maker = std::thread::Builder::new().name("grebe-summary".into()).spawn(make);
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

impl Drop for SummarizedFile {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a recording from its beginning to its end, which may move.
struct Maker<'a> {
    path: &'a Path,
    shared: &'a Shared,
    file: SampleFile,
    writer: SummaryWriter,
    bytes: Vec<u8>,
    grew: Instant,
}

impl<'a> Maker<'a> {
    fn new(path: &'a Path, shared: &'a Shared) -> Result<Self, String> {
        let file = SampleFile::open(path).map_err(|error| error.to_string())?;
        let writer = create(path, &file)?;
        let mut now = shared.now();
        (now.summary, now.place) = (Some(Arc::clone(writer.summary())), Some(writer.path().to_owned()));
        drop(now);
        Ok(Self { path, shared, file, writer, bytes: Vec::new(), grew: Instant::now() })
    }

    fn run(mut self) -> Result<(), String> {
        let step = (STEP_BYTES / (self.file.format().bytes() * self.file.channels())).max(1) as u64;
        while !self.shared.is_over.load(Ordering::Acquire) {
            let position = self.writer.samples();
            let length = step.min(self.file.len_samples().saturating_sub(position)) as usize;
            if length > 0 {
                self.file.read(position, length, &mut self.bytes).map_err(|error| error.to_string())?;
                let channel_bytes = self.bytes.len() / self.file.channels();
                let channels: Vec<&[u8]> = self.bytes.chunks_exact(channel_bytes).collect();
                self.writer.append(&channels).map_err(|error| self.not_kept(&error))?;
                self.grew = Instant::now();
            } else if self.is_at_rest() {
                return self.finish();
            } else {
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Whether the recording has not grown for a while; takes over new samples.
    fn is_at_rest(&mut self) -> bool {
        if let Ok(file) = SampleFile::open(self.path)
            && file.len_samples() > self.file.len_samples()
            && (file.format(), file.channels()) == (self.file.format(), self.file.channels())
        {
            self.file = file;
            self.grew = Instant::now();
        }
        let changed = self.file.data_size().1.and_then(|at| SystemTime::now().duration_since(at).ok());
        changed.is_none_or(|age| age > REST) || self.grew.elapsed() > REST
    }

    fn finish(mut self) -> Result<(), String> {
        let stamp = stamp(&mut self.file).map_err(|error| error.to_string())?;
        let path = self.path;
        let summary = self.writer.finish(stamp);
        let summary =
            summary.map_err(|error| format!("the summary of {} is not kept: {error}", path.display()))?;
        let mut now = self.shared.now();
        (now.summary, now.state) = (Some(summary), SummaryState::Whole);
        Ok(())
    }

    fn not_kept(&self, error: &io::Error) -> String {
        format!("the summary of {} is not kept: {error}", self.path.display())
    }
}

/// Begins a summary beside the recording, or in the user's cache where that folder cannot be written to.
fn create(path: &Path, file: &SampleFile) -> Result<SummaryWriter, String> {
    let create = |place: &Path| SummaryWriter::create(place, file.format(), file.channels());
    let beside = place::beside(path);
    let error = match create(&beside) {
        Ok(writer) => return Ok(writer),
        Err(error) => error,
    };
    let in_cache = place::in_cache(path).and_then(|place| {
        fs::create_dir_all(place.parent()?).ok()?;
        create(&place).ok()
    });
    in_cache.ok_or_else(|| format!("no summary can be written to {}: {error}", beside.display()))
}

fn named(path: &Path) -> Size {
    fs::metadata(path).map_or((0, None), |file| (file.len(), file.modified().ok()))
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
const REST: Duration = Duration::from_secs(3);

/// Lets those threads come first that a stream or a person waits for: before this one, and those that it starts from now on.
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
