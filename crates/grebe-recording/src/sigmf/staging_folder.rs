//! A recording that is written out of sight, and takes its place when it is whole.

use std::fs;
use std::path::{Path, PathBuf};

use super::create::{SigmfSettings, existing_files};
use super::layout::{Base, is_data};
use super::staged::{Staged, sync_folder};
use super::writer::SigmfWriter;
use crate::error::Error;
use crate::output::NameLock;
use crate::summary::{SummaryKind, summary_beside};

/// A folder beside the recording's place, with the files that it will have.
#[derive(Debug)]
pub(crate) struct StagingFolder {
    base: Base,
    folder: PathBuf,
    /// Files that it replaces.
    existing: Vec<PathBuf>,
    _name: NameLock,
}

impl StagingFolder {
    /// Begins a recording that will take the place of `to`. Removes leftovers of an earlier killed one from
    /// its folder.
    pub(crate) fn create(to: &Path, settings: &SigmfSettings) -> Result<Self, Error> {
        let base = Base::to_record(to)?;
        let name = base.lock()?;
        let existing = existing_files(&base, settings);
        if !settings.overwrite
            && let Some(path) = existing.first()
        {
            return Err(Error::Exists { path: path.clone() });
        }
        if let Some(path) =
            existing.iter().find(|path| fs::metadata(path).is_ok_and(|there| !there.is_file()))
        {
            let what = "is not a regular file, and is not replaced: choose another name".to_owned();
            return Err(Error::Content { path: path.clone(), what });
        }
        let folder = base.path().with_file_name(format!(".{}.partial", base.name()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(Error::file("create", to))?;
        Ok(Self { base, folder, existing, _name: name })
    }

    /// Writes the recording.
    pub(crate) fn writer(&self, settings: &SigmfSettings) -> Result<SigmfWriter, Error> {
        let settings = SigmfSettings { overwrite: false, ..settings.clone() };
        SigmfWriter::create_waiting(&self.base().meta(), &settings)
    }

    /// The recording, where it is until it has its place.
    pub(super) fn base(&self) -> Base {
        Base::of(&self.folder.join(self.base.name()).with_added_extension("sigmf-meta"))
    }

    /// Gives the recording, which is whole and on the disk, its place; its files, the one to open first.
    pub(crate) fn publish(self, files: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let place = |file: &PathBuf| self.base.path().with_file_name(file.file_name().unwrap_or_default());
        let places: Vec<PathBuf> = files.iter().map(place).collect();
        self.staged(files, &places)?.commit()?;
        // A recording is whole without.
        for kind in SummaryKind::ALL {
            let _ = fs::rename(summary_beside(&files[0], kind), summary_beside(&places[0], kind));
        }
        for stale in self.existing.iter().filter(|stale| !places.contains(stale)) {
            let _ = fs::remove_file(stale);
        }
        sync_folder(self.base.path());
        Ok(places)
    }

    /// Files that name others come after them, the first channel after the others: data, metadata, the
    /// collection.
    pub(super) fn staged(&self, files: &[PathBuf], places: &[PathBuf]) -> Result<Staged, Error> {
        let mut staged = Staged::default();
        let named = || files.iter().zip(places).rev();
        let data = named().filter(|(_, place)| is_data(place));
        for (file, place) in data.chain(named().filter(|(_, place)| !is_data(place))) {
            staged.name(file, place);
        }
        for replaced in self.existing.iter().rev().filter(|path| places.contains(path) && !is_data(path)) {
            staged.remove_first(replaced)?;
        }
        Ok(staged)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
