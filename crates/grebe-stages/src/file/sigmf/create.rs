//! How to record, and creating a recording's files: all of them, or none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use grebe_frame::{MAX_CHANNELS, SampleFormat};

use super::layout::{Base, CollectionFile};
use super::metadata::{Metadata, Staged};
use super::metadata_writer::MetadataWriter;
use crate::error::Error;
use crate::file::encoding::Encoding;

/// How to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfSettings {
    /// What the samples are.
    pub format: SampleFormat,
    /// 1 to 255. Up to 8 have a recording each, tied together by a collection; more are interleaved in one.
    pub channels: usize,
    /// Samples per second and channel, up to 10^12; 0 = unknown.
    pub sample_rate_hz: f64,
    /// Whether a recording of the same name is replaced.
    pub overwrite: bool,
    /// Whether the SHA-512 of the data is entered. Up to 100 MB/s it is computed while recording, on another thread that
    /// reads the data behind the writer (a tenth to a fifth of a core). Where more than 64 MiB are not summed yet when the
    /// recording is finished, it has none: closing a recording does not read it again.
    pub checksum: bool,
    /// What a person should know of the recording.
    pub description: Option<String>,
}

impl SigmfSettings {
    fn data_files(&self) -> usize {
        if self.channels <= CHANNELS_APART_MAX { self.channels } else { 1 }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let setting = |what, got: String, must| Err(Error::Setting { what, got, must });
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
            description: None,
        }
    }
}

/// A data file: of one channel, or of all of them.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes to be written.
    pub(super) buffer: Vec<u8>,
    format: SampleFormat,
    pub(super) channels: Range<usize>,
}

/// Creates the files of the recording; returns the data files, the metadata writer, and all paths, the one to
/// open first.
pub(super) fn create(
    base: &Base,
    settings: &SigmfSettings,
) -> Result<(Vec<DataFile>, MetadataWriter, Vec<PathBuf>), Error> {
    settings.check()?;
    let existing = existing(base, settings.data_files());
    if !settings.overwrite
        && let Some(path) = existing.first()
    {
        return Err(Error::Exists { path: path.clone() });
    }
    if let Some(path) = existing.iter().find(|path| fs::metadata(path).is_ok_and(|there| !there.is_file())) {
        let what = "is no regular file, and is not replaced: choose another name".to_owned();
        return Err(Error::Content { path: path.clone(), what });
    }
    let metadata = metadata(settings, base);
    let mut created = Created::default();
    let mut parts = Vec::new();
    for (number, recording) in metadata.recordings.iter().enumerate() {
        let first = number * metadata.channels;
        let channels = first..first + metadata.channels;
        parts.push(DataFile::create(recording.data(), settings, channels, &mut created)?);
    }
    created.staged.append(metadata.stage(None)?);
    let mut data = Vec::new();
    for path in created.data_paths.iter().filter(|_| settings.checksum) {
        data.push(File::open(path).map_err(Error::file("open", path))?);
    }
    let mut files = Vec::new();
    files.extend(metadata.collection.as_ref().map(Base::collection));
    files.extend(metadata.recordings.iter().flat_map(|recording| [recording.meta(), recording.data()]));
    let metadata_writer =
        MetadataWriter::start(metadata, data, is_fast(settings)).map_err(Error::file("create", &files[0]))?;
    created.commit()?;
    for stale in existing.iter().filter(|stale| !files.contains(stale)) {
        let _ = fs::remove_file(stale);
    }
    Ok((parts, metadata_writer, files))
}

fn metadata(settings: &SigmfSettings, base: &Base) -> Metadata {
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
        has_details: false,
        segments: Vec::new(),
        annotations: Vec::new(),
        known_samples: 0,
    }
}

fn is_fast(settings: &SigmfSettings) -> bool {
    settings.sample_rate_hz * (settings.channels * settings.format.bytes()) as f64
        > SUM_WHILE_RECORDING_BYTES_PER_SECOND
}

/// The files of a recording that is being created. They are removed where that fails.
#[derive(Default)]
struct Created {
    /// Under temporary names.
    staged: Staged,
    /// Where the data are until the end of the creation.
    data_paths: Vec<PathBuf>,
    /// Under their own names.
    files: Vec<PathBuf>,
}

impl Created {
    fn commit(mut self) -> Result<(), Error> {
        std::mem::take(&mut self.staged).commit()?;
        self.files.clear();
        Ok(())
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        for path in &self.files {
            let _ = fs::remove_file(path);
        }
    }
}

impl DataFile {
    fn create(
        path: PathBuf,
        settings: &SigmfSettings,
        channels: Range<usize>,
        created: &mut Created,
    ) -> Result<Self, Error> {
        let file = if settings.overwrite {
            let (file, temporary) = created.staged.create(&path)?;
            created.data_paths.push(temporary);
            file
        } else {
            // Where two recorders want the same name, one of them gets it.
            let file =
                OpenOptions::new().write(true).create_new(true).open(&path).map_err(|source| match source
                    .kind()
                {
                    io::ErrorKind::AlreadyExists => Error::Exists { path: path.clone() },
                    _ => Error::file("create", &path)(source),
                })?;
            created.files.push(path.clone());
            created.data_paths.push(path.clone());
            file
        };
        let format = settings.format;
        Ok(Self { path, file, buffer: Vec::with_capacity(BUFFER_BYTES), format, channels })
    }

    /// Of one sample of each channel.
    pub(super) fn frame_bytes(&self) -> usize {
        self.format.bytes() * self.channels.len()
    }

    /// Samples per channel that the buffer has room for.
    #[inline]
    pub(super) fn room(&self) -> usize {
        (BUFFER_BYTES - self.buffer.len()) / self.frame_bytes()
    }

    /// Appends `count` samples of each channel; `samples` has those of one as a stream has them.
    #[inline]
    pub(super) fn push<'a>(&mut self, count: usize, samples: impl Fn(usize) -> &'a [u8]) {
        if self.channels.len() == 1 {
            return self.buffer.extend_from_slice(samples(self.channels.start));
        }
        let begin = self.buffer.len();
        self.buffer.resize(begin + count * self.frame_bytes(), 0);
        let encoding = Encoding::of(self.format);
        for (number, channel) in self.channels.clone().enumerate() {
            encoding.put(samples(channel), number, self.channels.len(), &mut self.buffer[begin..]);
        }
    }
}

/// Files in the way of a recording: its own, and those of the recording or collection that has its name.
fn existing(base: &Base, data_files: usize) -> Vec<PathBuf> {
    let mut paths = vec![base.collection(), base.meta(), base.data()];
    let own = (0..data_files).filter(|_| data_files > 1).map(|channel| base.channel(channel));
    paths.extend(own.flat_map(|recording| [recording.meta(), recording.data()]));
    // Of an old collection, only the recordings that it names: NAME_ch7 may belong to somebody else.
    let old = fs::read(base.collection()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let streams = old.map_or(Vec::new(), |old: CollectionFile| old.collection.streams);
    for recording in (0..MAX_CHANNELS as usize).map(|channel| base.channel(channel)) {
        if streams.iter().any(|stream| stream.name() == recording.name()) {
            paths.extend([recording.meta(), recording.data()]);
        }
    }
    paths.retain(|path| path.symlink_metadata().is_ok());
    paths.dedup();
    paths
}

/// Per data file: writes of this size reach the speed of the disk.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
/// Of more channels, a file for each is more than a person can handle, and its buffer more than a cache holds.
const CHANNELS_APART_MAX: usize = 8;
const SUM_WHILE_RECORDING_BYTES_PER_SECOND: f64 = 100e6;
/// What SigMF allows.
const RATE_HZ_MAX: f64 = 1e12;
