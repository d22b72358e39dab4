//! How to record, and creating a recording's files: all of them, or none.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use grebe_frame::{MAX_CHANNELS, SampleFormat};

use super::annotations::Annotations;
use super::archive::Files;
use super::collection::members;
use super::layout::{Base, CHANNELS_APART_MAX, is_data};
use super::metadata::{Metadata, State};
use super::metadata_writer::MetadataWriter;
use super::staged::Staged;
use super::stripe_set::StripeSet;
use super::unnamed::Unnamed;
use crate::disk::{Appender, DiskFile, WriteMethod};
use crate::encoding::Encoding;
use crate::error::{Error, ProcessError};
use crate::output::{check_replaceable, is_device};

/// How to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfSettings {
    /// Sample format.
    pub format: SampleFormat,
    /// 1 to 255. Up to 8 have a recording each, tied together by a collection; more are interleaved in one.
    pub channels: usize,
    /// Samples per second and channel, up to 10^12; 0 = unknown.
    pub sample_rate_hz: f64,
    /// Whether a recording of the same name is replaced.
    pub overwrite: bool,
    /// Store checksums of the data: XXH3 of each 256 MiB; also SHA-512, as in SigMF, up to 100 MB/s or 64 MiB
    /// in all. They are computed from memory during the write, and omitted if time is short.
    pub checksum: bool,
    /// Memory for data that wait for the disk; it bounds the stall that the disk may have. Touched only as
    /// needed.
    pub buffer_bytes: usize,
    /// Whether to make a summary while recording, so that a scope shows all of it at once. Only from 32 MiB on, for
    /// up to 8 channels, and with spare CPU time.
    pub summary: bool,
    /// How the data are written.
    pub write_method: WriteMethod,
    /// Description for readers.
    pub description: Option<String>,
}

impl SigmfSettings {
    pub(super) fn data_files(&self) -> usize {
        if self.channels <= CHANNELS_APART_MAX { self.channels } else { 1 }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let setting = |what, got: String, must| Err(ProcessError::Setting { what, got, must }.into());
        if self.channels == 0 || self.channels > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.to_string(), "give 1 to 255");
        }
        if !(0.0..=RATE_HZ_MAX).contains(&self.sample_rate_hz) {
            return setting("sample rate", self.sample_rate_hz.to_string(), "give 0 (unknown) to 10^12 Hz");
        }
        Ok(())
    }
}

impl Default for SigmfSettings {
    /// One channel of 16-bit integers of unknown rate, with a checksum; nothing is overwritten.
    fn default() -> Self {
        Self {
            format: SampleFormat::I16,
            channels: 1,
            sample_rate_hz: 0.0,
            overwrite: false,
            checksum: true,
            buffer_bytes: BUFFER_BYTES,
            summary: true,
            write_method: WriteMethod::Best,
            description: None,
        }
    }
}

/// A data file: of one channel, or of all of them.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) end: Appender,
    format: SampleFormat,
    pub(super) channels: Range<usize>,
}

/// The files of a recording that has not begun.
#[derive(Debug)]
pub(crate) struct Prepared {
    parts: Vec<DataFile>,
    metadata: Metadata,
    unnamed: Unnamed,
    checksum: bool,
    /// All paths, the one to open first.
    files: Vec<PathBuf>,
}

/// The files of a recording that begins.
pub(super) struct Begun {
    pub(super) parts: Vec<DataFile>,
    pub(super) metadata: MetadataWriter,
    pub(super) files: Vec<PathBuf>,
}

/// Creates the files of a recording whose name is taken. `past_cache`: where the system lets writes bypass the page
/// cache, they do.
pub(crate) fn prepare(base: &Base, settings: &SigmfSettings, past_cache: bool) -> Result<Prepared, Error> {
    settings.check()?;
    let existing = existing(base, settings.data_files());
    if !settings.overwrite
        && let Some(path) = existing.first()
    {
        return Err(Error::Exists { path: path.clone() });
    }
    if let Some(path) = existing.iter().find(|path| fs::metadata(path).is_ok_and(|there| !there.is_file())) {
        let what = "is not a regular file, and is not replaced: choose another name".to_owned();
        return Err(Error::Content { path: path.clone(), what });
    }
    for path in &existing {
        check_replaceable(path).map_err(Error::file("replace", path))?;
    }
    let metadata = metadata(settings, base);
    let mut files = Vec::new();
    files.extend(metadata.collection.as_ref().map(Base::collection));
    files.extend(metadata.recordings.iter().flat_map(|recording| [recording.meta(), recording.data()]));
    if let Some(path) = files.iter().find(|path| is_device(path)) {
        let what = "Windows reserves this name for a device: choose another name".to_owned();
        return Err(Error::Content { path: path.clone(), what });
    }
    let mut data = Staged::default();
    let mut parts = Vec::new();
    for (number, recording) in metadata.recordings.iter().enumerate() {
        let first = number * metadata.channels;
        let channels = first..first + metadata.channels;
        parts.push(DataFile::create(recording.data(), settings, channels, past_cache, &mut data)?);
    }
    // Finds obstacles to the metadata now, not after the first samples.
    drop(metadata.stage(&State { is_closed: false, is_durable: false, sums: &[] })?);
    // A process killed while the data take their places must leave no metadata that contradict them.
    let (replaced, stale): (Vec<_>, Vec<_>) = existing.into_iter().partition(|path| files.contains(path));
    for path in replaced.iter().rev().filter(|path| !is_data(path)) {
        data.remove_first(path)?;
    }
    let in_the_way = if settings.overwrite { Vec::new() } else { files.clone() };
    let unnamed = Unnamed { data, in_the_way, stale };
    Ok(Prepared { parts, metadata, unnamed, checksum: settings.checksum, files })
}

impl Prepared {
    /// Says which others take turns with it.
    pub(super) fn striped(mut self, stripes: Option<StripeSet>) -> Self {
        self.metadata.stripes = stripes;
        self
    }

    /// Simulates a process killed after `steps` of the steps that name the data; returns whether that was
    /// before the last.
    #[cfg(test)]
    pub(super) fn kill_behind(self, steps: usize) -> bool {
        self.unnamed.data.kill_behind(steps)
    }

    /// Begins the recording, without a request to the disk.
    pub(super) fn begin(self) -> Result<Begun, Error> {
        let Self { parts, metadata, unnamed, checksum, files } = self;
        let data = parts.iter().map(|part| part.end.file().clone()).collect();
        let metadata = MetadataWriter::start(metadata, unnamed, data, checksum)
            .map_err(Error::file("create", &files[0]))?;
        Ok(Begun { parts, metadata, files })
    }
}

pub(super) fn metadata(settings: &SigmfSettings, base: &Base) -> Metadata {
    let recordings: Vec<Base> = match settings.data_files() {
        1 => vec![base.clone()],
        files => (0..files).map(|channel| base.channel(channel)).collect(),
    };
    Metadata {
        format: settings.format,
        channels: settings.channels / recordings.len(),
        collection: (recordings.len() > 1).then(|| base.clone()),
        recordings,
        sample_rate_hz: settings.sample_rate_hz,
        notes: settings.description.clone(),
        description: None,
        capture_extensions: BTreeSet::new(),
        has_errors: false,
        segments: Vec::new(),
        annotations: Annotations::default(),
        known_samples: 0,
        stripes: None,
    }
}

fn is_fast(settings: &SigmfSettings) -> bool {
    settings.sample_rate_hz * (settings.channels * settings.format.bytes()) as f64
        > SUM_WHILE_RECORDING_BYTES_PER_SECOND
}

impl DataFile {
    fn create(
        path: PathBuf,
        settings: &SigmfSettings,
        channels: Range<usize>,
        past_cache: bool,
        staged: &mut Staged,
    ) -> Result<Self, Error> {
        let file = staged.create(&path)?.0;
        let sha512 = settings.checksum && !is_fast(settings);
        let file = DiskFile::new(path, file, past_cache, settings.checksum, sha512);
        Ok(Self { end: Appender::new(file), format: settings.format, channels })
    }

    /// Bytes of one sample of each channel.
    pub(super) fn frame_bytes(&self) -> usize {
        self.format.bytes() * self.channels.len()
    }

    /// Samples per channel that there is room for.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.end.room() / self.frame_bytes()
    }

    /// Appends `count` samples of each channel, for which there is room; `samples` has those of one as a stream has
    /// them. The one copy on their way.
    #[inline]
    pub(super) fn push<'a>(&mut self, count: usize, samples: impl Fn(usize) -> &'a [u8]) {
        let place = self.end.extend(count * self.format.bytes() * self.channels.len());
        if self.channels.len() == 1 {
            return place.copy_from_slice(samples(self.channels.start));
        }
        let encoding = Encoding::of(self.format);
        for (number, channel) in self.channels.clone().enumerate() {
            encoding.put(samples(channel), number, self.channels.len(), place);
        }
    }
}

/// The files that a recording of this name replaces.
pub(super) fn existing_files(base: &Base, settings: &SigmfSettings) -> Vec<PathBuf> {
    existing(base, settings.data_files())
}

/// Existing files that collide with a recording: its own, and files of a recording or collection with its
/// name.
fn existing(base: &Base, data_files: usize) -> Vec<PathBuf> {
    let mut paths = vec![base.collection(), base.meta(), base.data()];
    let own = (0..data_files).filter(|_| data_files > 1).map(|channel| base.channel(channel));
    paths.extend(own.flat_map(|recording| [recording.meta(), recording.data()]));
    // Takes only the recordings that an old collection names: NAME_ch7 may be another user's.
    let old = members(&Files::Folder, &base.collection()).ok().flatten();
    let old = old.map_or(Vec::new(), |old| old.bases);
    for recording in (0..MAX_CHANNELS as usize).map(|channel| base.channel(channel)) {
        if old.contains(&recording) {
            paths.extend([recording.meta(), recording.data()]);
        }
    }
    let mut seen = HashSet::new();
    paths.retain(|path| path.symlink_metadata().is_ok() && seen.insert(path.clone()));
    paths
}

/// A seventh of a second at 1.8 GB/s, and seconds at the rates of most.
const BUFFER_BYTES: usize = 256 << 20;
const SUM_WHILE_RECORDING_BYTES_PER_SECOND: f64 = 100e6;
/// SigMF's limit.
const RATE_HZ_MAX: f64 = 1e12;
