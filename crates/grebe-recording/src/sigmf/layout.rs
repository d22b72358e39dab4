//! Reading and writing SigMF 1.2: the files of a recording, and their fields in the specification's order.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use grebe_frame::{AxisTime, ChannelDescription, SampleFormat};
use jiff::Timestamp;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::stripe_set::StripeSet;
use crate::disk::{SUMMED_BYTES, Summed};
use crate::error::Error;
use crate::kinds::is_raw;
use crate::kinds::{Kind, is_csv, is_stream, kind_of};
use crate::output::{NameLock, followed};
use crate::sample_file::RecordedAt;
use crate::summary::SummaryKind;
use crate::unpacked::is_packed;

/// A recording's path without what follows the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base(PathBuf);

impl Base {
    /// Base of any file of the recording; a name without a SigMF extension is the base itself.
    pub(crate) fn of(path: &Path) -> Self {
        let known = path
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)));
        Self(if known { path.with_extension("") } else { path.into() })
    }

    /// Base of a recording to be made, after following the symbolic links of its own file.
    pub(crate) fn to_record(path: &Path) -> Result<Self, Error> {
        Self::check_to_record(path)?;
        if path.is_dir() {
            let what = "is a folder: name the recording, as FOLDER/NAME.sigmf-meta";
            return Err(Error::Content { path: path.into(), what: what.to_owned() });
        }
        if path
            .as_os_str()
            .as_encoded_bytes()
            .last()
            .is_some_and(|last| std::path::is_separator(char::from(*last)))
        {
            let what = "names a folder that is not there: make it, or name a recording NAME.sigmf-meta";
            return Err(Error::Content { path: path.into(), what: what.to_owned() });
        }
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            let what = "is not a regular file, and a recording is several of them: name it NAME.sigmf-meta";
            return Err(Error::Content { path: path.into(), what: what.to_owned() });
        }
        let meta = Self::of(path).meta();
        Ok(Self::of(&followed(&meta).map_err(Error::file("create", &meta))?))
    }

    /// Whether a recording can have this name; nothing is looked up.
    pub(crate) fn check_to_record(path: &Path) -> Result<(), Error> {
        let refused = |what: &str| Err(Error::Field { path: path.into(), what: what.to_owned() });
        if path.as_os_str() == "-" {
            return refused(
                "a recording is several files, and cannot be standard output: name it NAME.sigmf-meta",
            );
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wav")) {
            return refused(
                "recordings are SigMF, as a WAV cannot say where samples are missing: name it NAME.sigmf-meta; grebe convert makes a WAV of it",
            );
        }
        if is_stream(path) {
            return refused("is a stream, and a recording is a file: name it NAME.sigmf-meta");
        }
        if kind_of(path).is_some_and(|kind| kind != Kind::SigMf) || is_csv(path) || is_packed(path) {
            return refused(
                "recordings are SigMF: name it NAME.sigmf-meta; grebe convert makes another kind of file of it",
            );
        }
        if is_raw(path) {
            return refused(
                "recordings are SigMF, with samples in a separate raw file: name it NAME.sigmf-meta",
            );
        }
        if path.file_name().is_none() || path.extension().is_some_and(|it| it == "sigmf") {
            return refused(NO_RECORDING);
        }
        Ok(())
    }

    /// Takes the name, for one recorder.
    pub(crate) fn lock(&self) -> Result<NameLock, Error> {
        NameLock::take(self.lock_path(), &self.meta())
    }

    /// Whether a recorder has the name.
    pub(crate) fn is_locked(&self) -> bool {
        NameLock::is_taken(&self.lock_path())
    }

    /// The first of NAME, NAME_2, NAME_3, ... that no recording has, nor a recorder.
    pub(crate) fn first_free(&self) -> Self {
        let folder =
            self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let there: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        let is_free = |base: &Self| {
            let name = base.name();
            let is_of_it = |file: &String| {
                let rest = file.strip_prefix(&name);
                rest.is_some_and(|rest| rest.starts_with(".sigmf") || rest.starts_with("_ch"))
            };
            !there.iter().any(is_of_it) && !base.is_locked()
        };
        let numbered = (2u64..).map(|number| Self(self.with(&format!("_{number}"))));
        // Never none: a folder has not that many files.
        std::iter::once(self.clone()).chain(numbered).find(is_free).unwrap_or_else(|| self.clone())
    }

    fn lock_path(&self) -> PathBuf {
        self.0.with_file_name(format!(".{}.sigmf-lock", self.name()))
    }

    /// Base of a recording beside this one.
    pub(super) fn beside(&self, name: &str) -> Self {
        Self(self.0.with_file_name(name))
    }

    /// Base of channel `channel` (from 0) of a collection; the files count from 1.
    pub(super) fn channel(&self, channel: usize) -> Self {
        Self(self.with(&format!("_ch{}", channel + 1)))
    }

    /// One of several that are recorded together.
    pub(super) fn numbered(&self, number: usize) -> Self {
        Self(self.with(&format!("_{number}")))
    }

    /// A part of a recording that is rotated.
    pub(crate) fn part(&self, number: u64) -> Self {
        Self(self.with(&format!("_{number:0PART_DIGITS$}")))
    }

    /// Number of the part with a file of this name.
    pub(crate) fn part_number(&self, file_name: &str) -> Option<u64> {
        let rest = file_name.strip_prefix(&self.name())?.strip_prefix('_')?;
        let (rest, extension) = rest.split_once('.')?;
        let number = rest.split_once("_ch").map_or(rest, |(number, _)| number);
        let is_ours = (EXTENSIONS.contains(&extension)
            || extension == ANNOTATIONS
            || SummaryKind::ALL.iter().any(|kind| kind.extension() == extension))
            && number.len() >= PART_DIGITS
            && number.bytes().all(|digit| digit.is_ascii_digit());
        number.parse().ok().filter(|_| is_ours)
    }

    pub(super) fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn meta(&self) -> PathBuf {
        self.with(".sigmf-meta")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.with(".sigmf-data")
    }

    pub(crate) fn collection(&self) -> PathBuf {
        self.with(".sigmf-collection")
    }

    fn with(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(&self.0);
        name.push(end);
        name.into()
    }
}

/// Whether it has samples, and is named by others.
pub(super) fn is_data(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sigmf-data")
}

/// Temporary path of a file that will take the place of `path`.
pub(super) fn temporary(path: &Path) -> PathBuf {
    hidden(path, ".tmp")
}

/// Path of a file at `path` while its successor takes its place.
pub(super) fn old(path: &Path) -> PathBuf {
    hidden(path, ".old")
}

fn hidden(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

/// `.sigmf-meta`, as read.
#[derive(Debug, Deserialize)]
pub(super) struct Meta {
    pub(super) global: Global,
    #[serde(default)]
    pub(super) captures: Vec<Capture>,
    #[serde(default)]
    pub(super) annotations: Vec<Annotation>,
}

/// `.sigmf-meta`, as written from lists of any length.
#[derive(Serialize)]
pub(super) struct MetaOut<'a, C, A>
where
    C: Iterator<Item = Capture> + Clone,
    A: Iterator<Item = &'a Annotation> + Clone,
{
    pub(super) global: &'a Global,
    #[serde(serialize_with = "list")]
    pub(super) captures: C,
    #[serde(serialize_with = "list")]
    pub(super) annotations: A,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Global {
    #[serde(rename = "core:datatype")]
    pub(super) datatype: String,
    #[serde(rename = "core:sample_rate", skip_serializing_if = "Option::is_none", serialize_with = "number")]
    #[serde(default)]
    pub(super) sample_rate: Option<f64>,
    #[serde(rename = "core:version", default)]
    pub(super) version: String,
    #[serde(rename = "core:num_channels", skip_serializing_if = "Option::is_none")]
    pub(super) num_channels: Option<u64>,
    #[serde(rename = "core:recorder", skip_serializing_if = "Option::is_none")]
    pub(super) recorder: Option<String>,
    #[serde(rename = "core:collection", skip_serializing_if = "Option::is_none")]
    pub(super) collection: Option<String>,
    #[serde(rename = "core:dataset", skip_serializing_if = "Option::is_none")]
    pub(super) dataset: Option<String>,
    #[serde(rename = "core:metadata_only", skip_serializing_if = "Option::is_none")]
    pub(super) metadata_only: Option<bool>,
    #[serde(rename = "core:offset", skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<u64>,
    #[serde(rename = "core:trailing_bytes", skip_serializing_if = "Option::is_none")]
    pub(super) trailing_bytes: Option<u64>,
    #[serde(rename = "core:sha512", skip_serializing_if = "Option::is_none")]
    pub(super) sha512: Option<String>,
    /// While recording: samples per channel before which no gap is missing in the captures.
    #[serde(rename = "grebe:known_samples", skip_serializing_if = "Option::is_none")]
    pub(super) known_samples: Option<u64>,
    /// Checksums of stretches of the data file.
    #[serde(rename = "grebe:checksums", skip_serializing_if = "Option::is_none")]
    pub(super) checksums: Option<Checksums>,
    /// Recordings on other disks that alternate with this one.
    #[serde(rename = "grebe:stripes", skip_serializing_if = "Option::is_none")]
    pub(super) stripes: Option<StripeSet>,
    /// Fields of the stream's description.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// Sums of a data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksums {
    /// `xxh3-64`.
    pub(super) algorithm: String,
    /// Bytes of each stretch; the last one is shorter.
    pub(super) stretch_bytes: u64,
    /// Sixteen hexadecimal digits each; null if skipped for lack of time.
    pub(super) sums: Vec<Option<String>>,
}

impl Checksums {
    pub(super) fn of(summed: &Summed) -> Self {
        let hex = |sum: &Option<u64>| sum.map(|sum| format!("{sum:016x}"));
        let sums = summed.xxh3.iter().map(hex).collect();
        Self { algorithm: XXH3.to_owned(), stretch_bytes: SUMMED_BYTES, sums }
    }

    /// Whether they are of a kind that can be compared.
    pub(super) fn is_known(&self) -> bool {
        self.algorithm == XXH3 && self.stretch_bytes > 0
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Capture {
    #[serde(rename = "core:sample_start")]
    pub(super) sample_start: u64,
    #[serde(rename = "core:global_index", skip_serializing_if = "Option::is_none")]
    pub(super) global_index: Option<u64>,
    /// For alternating recordings: the samples of the whole before it.
    #[serde(rename = "grebe:stripe_start", skip_serializing_if = "Option::is_none")]
    pub(super) stripe_start: Option<u64>,
    #[serde(rename = "core:header_bytes", skip_serializing_if = "Option::is_none")]
    pub(super) header_bytes: Option<u64>,
    #[serde(rename = "core:datetime", skip_serializing_if = "Option::is_none")]
    pub(super) datetime: Option<String>,
    #[serde(rename = "grebe:datetime_error_ns", skip_serializing_if = "Option::is_none")]
    pub(super) datetime_error_ns: Option<u64>,
    /// The same by the monotonic clock of a host.
    #[serde(rename = "grebe:axis", skip_serializing_if = "Option::is_none")]
    pub(super) axis: Option<AxisTime>,
    #[serde(rename = "core:frequency", skip_serializing_if = "Option::is_none", serialize_with = "number")]
    #[serde(default)]
    pub(super) frequency: Option<f64>,
    #[serde(rename = "capture_details:acquisition_bandwidth", skip_serializing_if = "Option::is_none")]
    pub(super) bandwidth: Option<f64>,
    #[serde(rename = "capture_details:gain", skip_serializing_if = "Option::is_none")]
    pub(super) gain: Option<f64>,
    /// Channels, if they differ from `global`.
    #[serde(rename = "grebe:channels", skip_serializing_if = "Option::is_none")]
    pub(super) channels: Option<Vec<ChannelDescription>>,
    /// Fields of other programs, such as the receiver's position.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub(super) struct Annotation {
    #[serde(rename = "core:sample_start")]
    pub(super) sample_start: u64,
    /// `None`: to the end of the file.
    #[serde(rename = "core:sample_count", skip_serializing_if = "Option::is_none")]
    pub(super) sample_count: Option<u64>,
    /// The label and other fields.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// `.sigmf-collection`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CollectionFile {
    pub(super) collection: Collection,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Collection {
    #[serde(rename = "core:version")]
    pub(super) version: String,
    #[serde(rename = "core:description", skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(rename = "core:extensions", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extensions: Vec<Value>,
    /// `time`: its recordings are of several streams, aligned by sample time.
    #[serde(rename = "grebe:alignment", skip_serializing_if = "Option::is_none")]
    pub(super) alignment: Option<String>,
    #[serde(rename = "core:streams", default)]
    pub(super) streams: Vec<Stream>,
    /// Fields of other programs.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// One recording of a collection; older files have a pair in its place.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Stream {
    Object {
        name: String,
        /// Not while its recorder is at it: what would replace its metadata cannot replace the collection with them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
        /// When its first sample was made, by the clock that all of the collection know.
        #[serde(rename = "grebe:axis", default, skip_serializing_if = "Option::is_none")]
        axis: Option<AxisTime>,
    },
    Pair(String, String),
}

impl Stream {
    pub(super) fn name(&self) -> &str {
        match self {
            Stream::Object { name, .. } | Stream::Pair(name, _) => name,
        }
    }

    /// The sum of its metadata, if stated.
    pub(super) fn hash(&self) -> Option<&str> {
        match self {
            Stream::Object { hash, .. } => hash.as_deref(),
            Stream::Pair(_, hash) => Some(hash),
        }
    }
}

/// How SigMF calls samples as a stream has them.
pub(super) fn datatype(format: SampleFormat) -> String {
    let kind = if format.is_complex() { "" } else { "r" };
    let order = if format.component().bytes() == 1 { "" } else { "_le" };
    format!("{kind}{format}{order}")
}

/// RFC 3339 in UTC, to the microsecond: `2026-01-02T03:04:05.678901Z`; to the nanosecond where samples are closer than that,
/// or the error is smaller.
pub(super) fn datetime(at: RecordedAt, sample_rate_hz: f64) -> Option<String> {
    let is_fine = sample_rate_hz > 1e6 || at.error_ns.is_some_and(|error_ns| error_ns < 1_000);
    let digits = if is_fine { 9 } else { 6 };
    Timestamp::try_from(at.time).ok().map(|time| format!("{time:.digits$}"))
}

const NO_RECORDING: &str =
    "unknown kind of file; known are NAME.sigmf-meta (a .sigmf archive cannot be written)";

/// Extension of annotations beside a recording.
pub(super) const ANNOTATIONS: &str = "sigmf-annotations";

const EXTENSIONS: [&str; 3] = ["sigmf-meta", "sigmf-data", "sigmf-collection"];

const XXH3: &str = "xxh3-64";

/// Files sort in order in a folder: with ten seconds each, for four months.
const PART_DIGITS: usize = 6;

pub(super) const VERSION: &str = "1.2.0";

/// How recordings of a collection are aligned that begin when they do.
pub(super) const BY_TIME: &str = "time";

/// `core:recorder` while recording. If it remains afterwards, the recorder was killed.
pub(super) const NOT_CLOSED: &str = ", not closed";

fn list<S: Serializer, T: Serialize>(
    items: &(impl Iterator<Item = T> + Clone),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items.clone())
}

/// Whole numbers without a point.
fn number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.fract() == 0.0 && *value < 1e15 => serializer.serialize_u64(*value as u64),
        other => other.serialize(serializer),
    }
}

/// A recording names its files; it must not reach out of its folder.
pub(super) fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none()
}

/// For more channels, a file each would be too many to handle.
pub(super) const CHANNELS_APART_MAX: usize = 8;
