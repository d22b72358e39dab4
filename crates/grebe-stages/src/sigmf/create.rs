//! Creating a recording's files: all of them, or none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use grebe_frame::MAX_CHANNELS;

use super::SigmfSettings;
use super::keeper::{Keeper, Staged};
use super::meta::CollectionFile;
use super::names::{Base, temporary};
use crate::StagesError;

/// A channel's data.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes to be written.
    pub(super) buffer: Vec<u8>,
}

/// Creates the files; each channel's, the metadata's keeper, and all of their paths, the one to open first.
pub(super) fn create(
    path: &Path,
    settings: &SigmfSettings,
) -> Result<(Vec<Channel>, Keeper, Vec<PathBuf>), StagesError> {
    settings.check()?;
    if path.extension().is_some_and(|extension| extension == "sigmf") || path.file_name().is_none() {
        return Err(StagesError::Kind {
            path: path.into(),
            known: "NAME.sigmf-meta (a .sigmf archive cannot be written)",
        });
    }
    let base = Base::of(path);
    let existing = existing(&base, settings.channels);
    if !settings.overwrite
        && let Some(path) = existing.first()
    {
        return Err(StagesError::Exists { path: path.clone() });
    }
    if let Some(path) = existing.iter().find(|path| path.is_dir()) {
        let source = io::ErrorKind::IsADirectory.into();
        return Err(StagesError::Create { path: path.clone(), source });
    }
    let notebook = settings.notebook(&base);
    let mut created = Created::default();
    let mut channels = Vec::new();
    for recording in &notebook.recordings {
        channels.push(Channel::create(recording.data(), settings.overwrite, &mut created)?);
    }
    created.staged.append(notebook.stage(None)?);
    let mut data = Vec::new();
    for path in &created.data_paths {
        data.push(File::open(path).map_err(|source| StagesError::Open { path: path.clone(), source })?);
    }
    let mut files = Vec::new();
    files.extend(notebook.collection.as_ref().map(Base::collection));
    files.extend(notebook.recordings.iter().flat_map(|recording| [recording.meta(), recording.data()]));
    let summation = settings.summation();
    let keeper = Keeper::start(notebook, data, summation)
        .map_err(|source| StagesError::Create { path: files[0].clone(), source })?;
    created.commit()?;
    for stale in existing.iter().filter(|stale| !files.contains(stale)) {
        let _ = fs::remove_file(stale);
    }
    Ok((channels, keeper, files))
}

/// Files of a recording that is being created; removed where that fails.
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
    fn commit(mut self) -> Result<(), StagesError> {
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
    fn create(path: PathBuf, overwrite: bool, created: &mut Created) -> Result<Self, StagesError> {
        let file = if overwrite {
            let file = created.staged.create(path.clone())?;
            created.data_paths.push(temporary(&path));
            file
        } else {
            // Where two recorders want the same name, one of them gets it.
            let file =
                OpenOptions::new().write(true).create_new(true).open(&path).map_err(|source| match source
                    .kind()
                {
                    io::ErrorKind::AlreadyExists => StagesError::Exists { path: path.clone() },
                    _ => StagesError::Create { path: path.clone(), source },
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
    // Of a collection only what it names: NAME_ch7 may be somebody else's.
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

/// A channel: writes of this size reach the speed of the disk.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
