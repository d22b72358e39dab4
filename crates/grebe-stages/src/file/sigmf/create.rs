//! How to record, and creating a recording's files: all of them, or none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;

use grebe_frame::MAX_CHANNELS;

use super::layout::{Base, CollectionFile};
use super::metadata::{Metadata, Staged};
use super::metadata_writer::MetadataWriter;
use crate::error::Error;

/// How to record.
#[derive(Debug, Clone, PartialEq)]
pub struct SigmfSettings {
    /// 1 to 8.
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
    pub(super) fn check(&self) -> Result<(), Error> {
        let setting = |what, got: String, must| Err(Error::Setting { what, got, must });
        if self.channels == 0 || self.channels > MAX_CHANNELS as usize {
            return setting("number of channels", self.channels.to_string(), "give 1 to 8");
        }
        if !(0.0..=RATE_HZ_MAX).contains(&self.sample_rate_hz) {
            return setting("sample rate", self.sample_rate_hz.to_string(), "give 0 (unknown) to 10^12 Hz");
        }
        Ok(())
    }
}

impl Default for SigmfSettings {
    /// One channel of unknown rate, with a checksum; nothing is overwritten.
    fn default() -> Self {
        Self { channels: 1, sample_rate_hz: 0.0, overwrite: false, checksum: true, description: None }
    }
}

/// A channel's data.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes to be written.
    pub(super) buffer: Vec<u8>,
}

/// Creates the files of the recording; returns the data file of each channel, the metadata writer, and all paths, the one to
/// open first.
pub(super) fn create(
    base: &Base,
    settings: &SigmfSettings,
) -> Result<(Vec<Channel>, MetadataWriter, Vec<PathBuf>), Error> {
    settings.check()?;
    let existing = existing(base, settings.channels);
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
    let mut channels = Vec::new();
    for recording in &metadata.recordings {
        channels.push(Channel::create(recording.data(), settings.overwrite, &mut created)?);
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
    Ok((channels, metadata_writer, files))
}

fn metadata(settings: &SigmfSettings, base: &Base) -> Metadata {
    let recordings = match settings.channels {
        1 => vec![base.clone()],
        channels => (0..channels).map(|channel| base.channel(channel)).collect(),
    };
    Metadata {
        recordings,
        collection: (settings.channels > 1).then(|| base.clone()),
        sample_rate_hz: settings.sample_rate_hz,
        description: settings.description.clone(),
        segments: Vec::new(),
        annotations: Vec::new(),
        known_samples: 0,
    }
}

fn is_fast(settings: &SigmfSettings) -> bool {
    settings.sample_rate_hz * settings.channels as f64 * 2.0 > SUM_WHILE_RECORDING_BYTES_PER_SECOND
}

/// The files of a recording that is being created. They are removed where that fails.
#[derive(Default)]
struct Created {
    /// Under temporary names.
    staged: Staged,
    /// Where each channel's data are until the end of the creation.
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

impl Channel {
    fn create(path: PathBuf, overwrite: bool, created: &mut Created) -> Result<Self, Error> {
        let file = if overwrite {
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
        Ok(Self { path, file, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }
}

/// Files in the way of a recording: its own, and those of the recording or collection that has its name.
fn existing(base: &Base, channels: usize) -> Vec<PathBuf> {
    let mut paths = vec![base.collection(), base.meta(), base.data()];
    let own = (0..channels).filter(|_| channels > 1).map(|channel| base.channel(channel));
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

/// Per channel: writes of this size reach the speed of the disk.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
const SUM_WHILE_RECORDING_BYTES_PER_SECOND: f64 = 100e6;
/// What SigMF allows.
const RATE_HZ_MAX: f64 = 1e12;
