//! Keeping a stretch of a ring for good, while it is being recorded or after its recorder was killed.
//!
//! The ring's files are sufficient: open files keep their samples, whatever the recorder removes, and no
//! request goes to the recorder. The system copies the bytes, or shares them if the file system can.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use grebe_ring::Cancel;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::parts::{Part, Parts};
use crate::disk::free_bytes;
use crate::error::{Error, ProcessError};
use crate::sample_file::{Annotation, SampleFile};
use crate::sigmf::{Assembler, Base};

/// Stretch of a ring to save.
#[derive(Debug, Clone, Default)]
pub struct RingStretch {
    /// Length before the moment.
    pub before: Duration,
    /// Length after the moment.
    pub after: Duration,
    /// The moment: the sample of this index in the stream; `None`: now.
    pub at: Option<u64>,
    /// Label at the moment.
    pub label: Option<RingLabel>,
    /// Replaces a recording of the same name.
    pub overwrite: bool,
}

/// An annotation at the moment for which a stretch is kept.
#[derive(Debug, Clone, Default)]
pub struct RingLabel {
    /// How long it lasts; 0: a point.
    pub length_samples: u64,
    /// In SigMF's words: `core:label` and others.
    pub fields: Map<String, Value>,
}

/// Result of saving a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct RingSaved {
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
    /// Samples per channel.
    pub len_samples: u64,
    /// Their rate, in Hz.
    pub sample_rate_hz: f64,
    /// Part of the requested stretch before the oldest sample of the ring.
    pub missing_before: Duration,
    /// Part that did not arrive: the recorder has ended, its stream stands still, or the wait was cancelled.
    pub missing_after: Duration,
}

/// Keeps a stretch of the ring in a folder as a SigMF recording of its own: `to`, or a name with the time in the same folder. Returns when the
/// stretch is complete. Any number of processes may do so at a time, also when the ring's recorder is gone.
///
/// Includes samples that arrived before the call, although the disk gets them some tenths of a second later.
/// If the stream has no time, or one by another clock, it may be up to a second longer. `cancel` ends the
/// wait for later samples.
///
/// ```
/// use grebe_recording::{Cancel, RingStretch, save_ring};
///
/// let folder = tempfile::tempdir()?;
/// let error = save_ring(folder.path(), None, &RingStretch::default(), &Cancel::default()).unwrap_err();
/// assert!(error.to_string().contains("holds no sample of a ring"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// [`Error::Content`] if there is no ring; [`Error::Empty`] if it has no sample of the stretch;
/// [`Error::Process`] if the rate is unknown; [`Error::Room`] if the disk has no room for it beside the ring;
/// [`Error::Exists`], [`Error::Busy`], [`Error::File`] as for any recording.
pub fn save_ring(
    folder: &Path,
    to: Option<&Path>,
    stretch: &RingStretch,
    cancel: &Cancel,
) -> Result<RingSaved, Error> {
    let began = Instant::now();
    // First of all: from here on nothing of it is lost.
    let mut parts = Parts::open(folder, PATIENCE, cancel)?;
    remove_abandoned(folder);
    let default;
    let to = match to {
        Some(to) => to,
        None => {
            default = named_by_time(folder);
            &default
        }
    };
    let Some(rate_hz) = parts.first().and_then(|part| part.file.rate_hz()) else {
        let got = format!("{:?}", stretch.before + stretch.after);
        let must = "the sample rate of the ring is unknown: convert its parts instead";
        return Err(ProcessError::Setting { what: "the length of the stretch", got, must }.into());
    };
    let samples = |time: Duration| (time.as_secs_f64() * rate_hz).round() as u64;
    let length_samples = stretch.label.as_ref().map_or(0, |label| label.length_samples);
    let Moment { signal: moment, cut, slack } =
        find_moment(&mut parts, stretch.at, length_samples, samples(SLACK), cancel)?;
    let begin = moment.saturating_sub(samples(stretch.before));
    let end = moment.saturating_add(samples(stretch.after).saturating_sub(cut));
    // Also where it is not known how much came until the call.
    let wanted = begin..end.saturating_add(slack);
    let label = stretch.label.clone().map(|label| (moment, label.without_begin(cut)));
    let mut save = Save::begin(parts, to, wanted, label, stretch.overwrite)?;
    let mut patience = Patience::new(&save.parts);
    loop {
        save.copy_on()?;
        if save.has_all() || cancel.is_cancelled() {
            break;
        }
        let has_enough = save.reached() >= end && began.elapsed() > SLACK;
        if has_enough || save.is_over() || patience.is_out(&save.parts) {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
        save.parts.refresh();
    }
    let missing = |samples: u64| Duration::from_secs_f64(samples as f64 / rate_hz);
    let missing_before = missing(samples(stretch.before).saturating_sub(moment).saturating_add(cut));
    let missing_after = missing(end.saturating_sub(save.reached()));
    let len_samples = save.assembler.len_samples();
    let files = save.finish()?;
    Ok(RingSaved { files, len_samples, sample_rate_hz: rate_hz, missing_before, missing_after })
}

/// Place of the moment.
struct Moment {
    /// In the signal; if the ring no longer has it, its oldest sample of that stream.
    signal: u64,
    /// Samples from the moment to there.
    cut: u64,
    /// Uncertainty about samples that arrived before the moment.
    slack: u64,
}

/// Finds the moment. An event of which the ring has only the end is cut.
fn find_moment(
    parts: &mut Parts,
    at: Option<u64>,
    length_samples: u64,
    slack: u64,
    cancel: &Cancel,
) -> Result<Moment, Error> {
    let Some(index) = at else {
        let now = if parts.is_recorded() { parts.now() } else { Some(parts.end()) };
        return Ok(match now {
            Some(signal) => Moment { signal, cut: 0, slack: 0 },
            None => Moment { signal: parts.end(), cut: 0, slack },
        });
    };
    let mut patience = Patience::new(parts);
    loop {
        if let Some((signal, cut)) = parts.signal_of_event(index, length_samples) {
            return Ok(Moment { signal, cut, slack: 0 });
        }
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let is_over = patience.is_out(parts) || !parts.is_recorded();
        std::thread::sleep(LOOK_EVERY);
        parts.refresh();
        if is_over && parts.signal_of_event(index, length_samples).is_none() {
            let (what, got) = ("the sample to keep", index.to_string());
            return Err(ProcessError::Setting { what, got, must: "the ring does not have it" }.into());
        }
    }
}

impl RingLabel {
    /// The label of the rest, which states how much is missing.
    fn without_begin(mut self, cut: u64) -> Self {
        if cut > 0 {
            self.length_samples = self.length_samples.saturating_sub(cut);
            let comment = self.fields.get("core:comment").and_then(Value::as_str);
            let comment = comment.map(|comment| format!("{comment}, ")).unwrap_or_default();
            let comment = format!("{comment}began {cut} samples before this recording");
            self.fields.insert("core:comment".to_owned(), comment.into());
        }
        self
    }
}

/// How long nothing has come.
struct Patience {
    activity: (u64, u64, Option<SystemTime>),
    since: Instant,
}

impl Patience {
    fn new(parts: &Parts) -> Self {
        Self { activity: parts.activity(), since: Instant::now() }
    }

    /// Whether nothing came for so long that nothing will.
    fn is_out(&mut self, parts: &Parts) -> bool {
        if parts.activity() != self.activity {
            *self = Self::new(parts);
        }
        self.since.elapsed() > PATIENCE
    }
}

/// A stretch that is being copied.
struct Save {
    parts: Parts,
    assembler: Assembler,
    /// The stretch, in the signal.
    wanted: Range<u64>,
    /// End of the copied range, in the file of the oldest part.
    position: u64,
    /// Begin of that part: in its own file, and in the recording.
    placed: (u64, u64),
    /// The label, and its position in the signal.
    label: Option<(u64, RingLabel)>,
    /// The label's samples in the recording, of the parts that are copied.
    labelled: Option<Range<u64>>,
    refreshed: Instant,
}

impl Save {
    fn begin(
        mut parts: Parts,
        to: &Path,
        wanted: Range<u64>,
        label: Option<(u64, RingLabel)>,
        overwrite: bool,
    ) -> Result<Self, Error> {
        while parts.first().is_some_and(|first| first.position_at(wanted.start) == first.file.len_samples())
            && parts.pass_first().is_some()
        {}
        let Some(first) = parts.first() else { return Err(Error::Empty { path: to.into() }) };
        check_room(&parts, &first.file, to, wanted.end.min(parts.end()).saturating_sub(wanted.start))?;
        let assembler = Assembler::create(to, &first.file, overwrite)?;
        let refreshed = Instant::now();
        Ok(Self { parts, assembler, wanted, position: 0, placed: (0, 0), label, labelled: None, refreshed })
    }

    /// Copies what there is, part after part.
    fn copy_on(&mut self) -> Result<(), Error> {
        while let Some(first) = self.parts.first() {
            if self.assembler.len_samples() == 0 {
                self.position = first.position_at(self.wanted.start);
                self.placed = (self.position, 0);
            }
            let end = first.position_at(self.wanted.end);
            if self.position < end {
                let now = end.min(self.position + piece_samples(&first.file));
                self.assembler.append(&first.file, self.position..now)?;
                self.position = now;
            } else if end < first.file.len_samples() || !self.go_on() {
                break;
            }
            // Parts that appear during a long copy must be opened before their removal.
            if self.refreshed.elapsed() > LOOK_EVERY {
                self.parts.refresh();
                self.refreshed = Instant::now();
            }
        }
        Ok(())
    }

    /// Goes on with the next part, where nothing more comes of the oldest.
    fn go_on(&mut self) -> bool {
        if self.parts.len() < 2 || self.parts.first_is_written() {
            return false;
        }
        // It may have been closed since the last look.
        let len_samples = |parts: &Parts| parts.first().map(|part| part.file.len_samples());
        let before = len_samples(&self.parts);
        self.parts.refresh();
        if len_samples(&self.parts) == before
            && let Some(part) = self.parts.pass_first()
        {
            self.say(&part);
            (self.position, self.placed) = (0, (0, self.assembler.len_samples()));
        }
        true
    }

    /// Enters the metadata of the copied range of a part.
    fn say(&mut self, part: &Part) {
        let (begin, at) = self.placed;
        let copied = begin..self.position;
        for Annotation { position, length_samples, fields } in part.file.annotations() {
            let label = *position..position.saturating_add(*length_samples);
            if let Some(label) = within(&copied, label) {
                self.assembler.annotate(at + (label.start - begin), label.end - label.start, fields.clone());
            }
        }
        if let Some((moment, label)) = &self.label {
            let end = moment.saturating_add(label.length_samples);
            let samples = part.position_at(*moment)..part.position_at(end);
            // No later part has an end of it: only what goes on there is added.
            if (self.labelled.is_none() || !samples.is_empty())
                && let Some(label) = within(&copied, samples)
            {
                let end = at + (label.end - begin);
                self.labelled.get_or_insert(at + (label.start - begin)..end).end = end;
            }
        }
    }

    /// Up to where the signal is copied, as far as it came.
    fn reached(&self) -> u64 {
        match self.parts.first() {
            Some(first) if self.parts.len() > 1 => first.signal_behind(self.position),
            _ => self.parts.end(),
        }
    }

    /// Whether all of the stretch is copied.
    fn has_all(&self) -> bool {
        self.parts.end() >= self.wanted.end
            && self.parts.first().is_none_or(|part| {
                let end = part.position_at(self.wanted.end);
                self.position >= end && (self.parts.len() == 1 || end < part.file.len_samples())
            })
    }

    /// Whether nothing more can come.
    fn is_over(&mut self) -> bool {
        if self.parts.len() > 1 || self.parts.is_recorded() {
            return false;
        }
        // The recorder's last samples.
        let before = self.parts.end();
        self.parts.refresh();
        self.parts.len() == 1 && self.parts.end() == before
    }

    fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        if let Some(last) = self.parts.take_first() {
            self.say(&last);
        }
        if let (Some((_, label)), Some(samples)) = (self.label, self.labelled) {
            self.assembler.annotate(samples.start, samples.end - samples.start, label.fields);
        }
        self.assembler.finish()
    }
}

/// The samples of a label among those copied. A label without length is a point.
fn within(copied: &Range<u64>, label: Range<u64>) -> Option<Range<u64>> {
    let samples = label.start.max(copied.start)..label.end.min(copied.end);
    let is_point = label.is_empty() && copied.contains(&label.start);
    (samples.start < samples.end || is_point).then_some(samples)
}

/// A disk that a kept stretch fills ends the recording of the ring: then it is not kept.
fn check_room(parts: &Parts, like: &SampleFile, to: &Path, samples: u64) -> Result<(), Error> {
    let frame_bytes = (like.format().bytes() * like.channels()) as u64;
    let needs_bytes = samples.saturating_mul(frame_bytes).saturating_add(2 * parts.largest_bytes());
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match free_bytes(folder) {
        Some(free_bytes) if free_bytes < needs_bytes => {
            let what = "the stretch, with what the ring may need meanwhile,";
            Err(Error::Room { path: folder.into(), what, needs_bytes, free_bytes })
        }
        _ => Ok(()),
    }
}

/// Removes leftovers of killed saves.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".partial")) else {
            continue;
        };
        let base = Base::of(&folder.join(format!("{name}.sigmf-meta")));
        if let Ok(_name) = base.lock() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// `save_20261123T021314_123`, in UTC.
fn named_by_time(folder: &Path) -> PathBuf {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    folder.join(format!("save_{}.sigmf-meta", now.strftime("%Y%m%dT%H%M%S_%3f")))
}

/// As much as is copied in some tens of milliseconds.
fn piece_samples(file: &SampleFile) -> u64 {
    (PIECE_BYTES / (file.format().bytes() * file.channels()) as u64).max(1)
}

const PIECE_BYTES: u64 = 16 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum delay with which a recorder that keeps up reports samples.
const SLACK: Duration = Duration::from_secs(1);
/// Time without samples after which a stream, or its disk, counts as stopped.
const PATIENCE: Duration = Duration::from_secs(10);
