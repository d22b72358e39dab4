//! Opens the target of a path: a recording, a collection, or a set of alternating recordings.

use std::path::{Path, PathBuf};

use super::archive::Files;
use super::collection::members;
use super::layout::Base;
use super::metadata_text::read_meta;
use super::reader::{data_path, open_one};
use super::stripes;
use crate::error::Error;
use crate::sample_file::SampleFile;

/// Opens the recording or the collection that a file belongs to, and where it took turns with others, all of them as one.
pub(crate) fn open(path: &Path) -> Result<SampleFile, Error> {
    let (files, path) = Files::of(path)?;
    let opened = open_one(&files, &path)?;
    match files {
        Files::Folder => stripes::open_all(&path, opened),
        // The others are on other disks.
        Files::Archive(_) | Files::Arriving(_) => Ok(opened.file),
    }
}

/// Opens a recording while some data files are still being copied. `place` returns the current path of each, at its full
/// length.
pub(crate) fn open_arriving(
    path: &Path,
    place: &mut dyn FnMut(&Path) -> Option<PathBuf>,
) -> Result<SampleFile, Error> {
    let members = members(&Files::Arriving(Vec::new()), path)?;
    let bases = members.map_or_else(|| vec![Base::of(path)], |members| members.bases);
    let mut elsewhere = Vec::new();
    for base in bases {
        let meta = read_meta(&Files::Folder, &base.meta())?.0;
        let data = data_path(&base, &meta.global)?;
        elsewhere.extend(place(&data).map(|place| (data, place)));
    }
    Ok(open_one(&Files::Arriving(elsewhere), path)?.file)
}

/// The recordings that a path names: all those of an archive, else the path itself.
pub(crate) fn recordings(path: &Path) -> Result<Vec<PathBuf>, Error> {
    Files::recordings(path)
}
