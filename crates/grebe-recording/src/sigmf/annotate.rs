//! Changes the annotations of an existing recording. Its metadata are replaced in one step, its samples are not
//! touched. If the metadata cannot be written, the annotations go to a file beside it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_frame::AnnotationEdit;
use serde_json::{Value, json};

use super::annotation_list::AnnotationList;
use super::archive::Files;
use super::captures::annotations;
use super::collection::{self, Summing, members};
use super::layout::{ANNOTATIONS, Base, Meta, NOT_CLOSED, VERSION, datatype};
use super::metadata_text::{read_json, read_meta, read_meta_text, read_text};
use super::reader::open_one;
use super::staged::{Staged, sync_folder};
use crate::error::Error;
use crate::output::NameLock;
use crate::sample_file::{Annotation, AnnotationsEdited, Piece, SampleFile, pieces_by_time};
use crate::summary::named_beside;

/// Changes the annotations of a recording, or of each recording of a collection. If its recordings are aligned by
/// time, each gets the annotations of its own samples.
pub(crate) fn edit(
    path: &Path,
    edits: &[AnnotationEdit<Annotation>],
    is_sigmf: bool,
) -> Result<AnnotationsEdited, Error> {
    let place = beside_of(path);
    let _place = patiently(|| NameLock::take(lock_of(&place), &place))?;
    let mut is_done = vec![false; edits.len()];
    let mut edited = AnnotationsEdited::default();
    let mut staged = Staged::default();
    let mut names = Vec::new();
    let mut recording = None;
    if is_sigmf && let Some(there) = Recording::open(path)? {
        names = patiently(|| there.lock())?;
        // Opens it again, because now nobody else can write the metadata.
        recording = Recording::open(path)?;
    }
    if let Some(recording) = &mut recording {
        recording.apply(edits, &mut is_done, &mut edited)?;
    }
    let left = |(edit, is_done): (&AnnotationEdit<Annotation>, &bool)| (!is_done).then(|| edit.clone());
    let left: Vec<AnnotationEdit<Annotation>> = edits.iter().zip(&is_done).filter_map(left).collect();
    if !left.is_empty() {
        edit_beside(path, &place, &left, &mut edited, &mut staged)?;
    }
    recording.map(|recording| recording.stage(&mut edited, &mut staged)).transpose()?;
    staged.commit()?;
    edited.places.iter().for_each(|place| sync_folder(place));
    drop(names);
    Ok(edited)
}

/// Where annotations would be written.
pub(crate) fn place(path: &Path, is_sigmf: bool) -> Result<PathBuf, Error> {
    match is_sigmf.then(|| Recording::open(path)).transpose()?.flatten() {
        Some(recording) => Ok(recording.base.meta()),
        None => Ok(beside_of(path)),
    }
}

/// The metadata of each recording of a collection of channels; none where they cannot be written, and for others.
pub(crate) fn channel_metas(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let recording = Recording::open(path)?.filter(|recording| recording.collection.is_some());
    let metas = recording.into_iter().flat_map(|recording| recording.metas);
    Ok(metas.map(|(base, _)| base.meta()).collect())
}

/// The recording with the annotations of the file beside it.
pub(crate) fn with_those_beside(path: &Path, file: SampleFile) -> SampleFile {
    let place = beside_of(path);
    let mut notes = Vec::new();
    let there = match read_meta(&Files::Folder, &place) {
        Err(Error::File { source, .. })
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            return file;
        }
        Err(error) => {
            notes.push(format!("is ignored: {error}"));
            Vec::new()
        }
        Ok((meta, _)) if !is_of(&meta, &file) => {
            notes.push("is of another file of this name, and ignored: remove it".to_owned());
            Vec::new()
        }
        Ok((meta, said)) => {
            notes.extend(said);
            annotations(meta, file.len_samples(), !file.is_being_recorded(), &mut notes)
        }
    };
    let notes = notes.into_iter().map(|note| format!("{}: {note}", place.display()));
    file.annotated_also(there, notes.collect())
}

fn is_of(meta: &Meta, file: &SampleFile) -> bool {
    let samples = meta.global.rest.get(SAMPLES).and_then(Value::as_u64);
    samples.is_none_or(|samples| samples == file.len_samples())
}

/// The file of annotations of a recording: `x.sigmf-annotations`, `x.wav.sigmf-annotations`.
pub(crate) fn beside_of(path: &Path) -> PathBuf {
    let (plain, _) = crate::path_query::split(path);
    let archive = plain.ancestors().skip(1).find(|at| at.extension().is_some() && at.is_file());
    let Some(archive) = archive else { return named_beside(path, ANNOTATIONS) };
    // A recording in an archive: x.sigmf/one/one.sigmf-meta.
    let within = Base::of(&plain);
    let within = within.path().strip_prefix(archive).unwrap_or(within.path());
    let within: Vec<_> = within.iter().map(|part| part.to_string_lossy()).collect();
    let mut name = archive.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{ANNOTATIONS}", within.join(".")));
    archive.with_file_name(name)
}

fn lock_of(place: &Path) -> PathBuf {
    place.with_file_name(format!(".{}.lock", place.file_name().unwrap_or_default().to_string_lossy()))
}

fn edit_beside(
    path: &Path,
    place: &Path,
    edits: &[AnnotationEdit<Annotation>],
    edited: &mut AnnotationsEdited,
    staged: &mut Staged,
) -> Result<(), Error> {
    let text = match fs::read_to_string(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => text_beside(path, &SampleFile::open(path)?),
        text => text.map_err(Error::file("open", place))?,
    };
    let mut list = AnnotationList::parse(place, text)?;
    let mut is_done = vec![false; edits.len()];
    edited.added += apply(&mut list, edits, &mut is_done, edited, &end_of(path))?;
    if is_done.contains(&false) {
        let what = "the annotation no longer exists: list them again".to_owned();
        return Err(Error::Field { path: path.into(), what });
    }
    if list.is_changed() {
        edited.places.push(place.to_owned());
        staged.text(place.to_owned(), &list.into_text(), true)?;
    }
    Ok(())
}

/// Annotations in the text of metadata, within the samples of a recording.
pub(crate) fn annotations_in(path: &Path, text: &str, file: &SampleFile) -> Result<Vec<Annotation>, Error> {
    let (meta, _) = read_meta_text(path, text.as_bytes())?;
    Ok(annotations(meta, file.len_samples(), true, &mut Vec::new()))
}

/// Annotations of a recording as a file of SigMF without samples.
pub(crate) fn annotation_file(
    path: &Path,
    file: &SampleFile,
    annotations: &[Annotation],
) -> Result<String, Error> {
    let adds: Vec<_> = annotations.iter().cloned().map(AnnotationEdit::Add).collect();
    let mut list = AnnotationList::parse(path, text_beside(file.name(), file))?;
    apply(&mut list, &adds, &mut vec![false; adds.len()], &mut AnnotationsEdited::default(), &|| None)?;
    Ok(list.into_text())
}

/// A file of annotations without any.
fn text_beside(path: &Path, file: &SampleFile) -> String {
    let (plain, _) = crate::path_query::split(path);
    let global = json!({
        "core:datatype": datatype(file.format()),
        "core:dataset": plain.file_name().unwrap_or_default().to_string_lossy(),
        "core:num_channels": file.channels(),
        "core:recorder": format!("grebe {}", env!("CARGO_PKG_VERSION")),
        "core:sample_rate": file.rate_hz(),
        "core:version": VERSION,
        // Another file of this name has other annotations.
        SAMPLES: file.len_samples(),
    });
    let mut meta = json!({ "annotations": [], "captures": [{ "core:sample_start": 0 }], "global": global });
    let left_out = [("core:sample_rate", file.rate_hz().is_none()), (SAMPLES, !file.is_whole())];
    if let Some(global) = meta["global"].as_object_mut() {
        global.retain(|name, _| !left_out.contains(&(name.as_str(), true)));
    }
    format!("{meta:#}\n")
}

/// Applies the edits to the annotations of a list; returns the number added.
fn apply(
    list: &mut AnnotationList,
    edits: &[AnnotationEdit<Annotation>],
    is_done: &mut [bool],
    edited: &mut AnnotationsEdited,
    end: &dyn Fn() -> Option<u64>,
) -> Result<usize, Error> {
    let mut added = 0;
    for (edit, is_done) in edits.iter().zip(is_done) {
        let before = list.len();
        let is_there = list.apply(edit, end)?;
        let is_first = usize::from(is_there && !*is_done);
        *is_done |= is_there;
        match edit {
            AnnotationEdit::Add(_) => added += list.len() - before,
            AnnotationEdit::Replace { .. } => edited.changed += is_first,
            AnnotationEdit::Remove(_) => edited.removed += is_first,
        }
    }
    Ok(added)
}

/// The samples of a recording.
fn end_of(path: &Path) -> impl Fn() -> Option<u64> {
    move || Some(SampleFile::open(path).ok()?.len_samples())
}

/// Another editor is done in a moment, but a recorder is not.
fn patiently<T>(take: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..TRIES {
        match take() {
            Err(Error::Busy { .. }) => std::thread::sleep(Duration::from_millis(20)),
            taken => return taken,
        }
    }
    take()
}

/// The metadata of a recording in plain files.
struct Recording {
    base: Base,
    metas: Vec<(Base, AnnotationList)>,
    /// The collection of the channels of one stream.
    collection: Option<Value>,
    /// Others that have sums of these metadata: of several streams, or of a channel's collection.
    others: Vec<Summing>,
    /// Pieces of each recording that are aligned, for several streams.
    places: Vec<Vec<Piece>>,
}

impl Recording {
    /// `None` where its metadata cannot be written: in an archive, before they are closed, or read-only.
    fn open(path: &Path) -> Result<Option<Self>, Error> {
        let (files, path) = Files::of(path)?;
        if !matches!(files, Files::Folder) {
            return Ok(None);
        }
        let base = Base::of(&path);
        let members = members(&files, &path)?;
        let is_aligned = members.as_ref().is_some_and(|members| members.is_aligned);
        let own = members.as_ref().filter(|_| !is_aligned);
        let collection = own.map(|members| collection::value(&files, &base, members)).transpose()?;
        let bases = members.map_or_else(|| vec![base.clone()], |members| members.bases);
        let mut metas = Vec::new();
        for base in bases {
            let meta: Value = read_json(&files, &base.meta())?;
            let recorder = meta.pointer("/global/core:recorder").and_then(Value::as_str);
            let is_open = recorder.is_some_and(|recorder| recorder.ends_with(NOT_CLOSED));
            if is_open || fs::metadata(base.meta()).is_ok_and(|meta| meta.permissions().readonly()) {
                return Ok(None);
            }
            if meta.pointer("/global/grebe:stripes").is_some() {
                let what =
                    "it takes turns with recordings on other disks: convert them to one recording first";
                return Err(Error::Field { path, what: what.to_owned() });
            }
            let list = AnnotationList::parse(&base.meta(), read_text(&base.meta())?)?;
            metas.push((base, list));
        }
        let bases: Vec<Base> = metas.iter().map(|(base, _)| base.clone()).collect();
        let others = Summing::of(&base, &bases, collection.is_some().then_some(&base))?;
        let places = if is_aligned {
            let recordings = bases.iter().map(|base| Ok(open_one(&files, &base.meta())?.file));
            pieces_by_time(&recordings.collect::<Result<Vec<_>, Error>>()?)?
        } else {
            Vec::new()
        };
        Ok(Some(Self { base, metas, collection, others, places }))
    }

    /// Locks the names of all metadata to replace, and of the files with their sums.
    fn lock(&self) -> Result<Vec<NameLock>, Error> {
        let bases = self.metas.iter().map(|(base, _)| base).chain(self.others.iter().map(Summing::base));
        let mut bases: Vec<&Base> = bases.chain([&self.base]).collect();
        bases.sort_by_key(|base| base.path());
        bases.dedup();
        bases.into_iter().map(Base::lock).collect()
    }

    /// Makes the changes that are of it, in each of its recordings.
    fn apply(
        &mut self,
        edits: &[AnnotationEdit<Annotation>],
        is_done: &mut [bool],
        edited: &mut AnnotationsEdited,
    ) -> Result<(), Error> {
        for (number, (base, list)) in self.metas.iter_mut().enumerate() {
            let read = |it: &Annotation| {
                self.places.get(number).map_or_else(|| it.clone(), |places| it.read_from(places))
            };
            let own: Vec<AnnotationEdit<Annotation>> = edits.iter().map(|edit| edit.each(read)).collect();
            edited.added = apply(list, &own, is_done, edited, &end_of(&base.meta()))?.max(edited.added);
        }
        Ok(())
    }

    fn stage(self, edited: &mut AnnotationsEdited, staged: &mut Staged) -> Result<(), Error> {
        let mut hashes = Vec::new();
        for (base, list) in self.metas {
            if list.is_changed() {
                edited.places.push(base.meta());
                hashes.push((base.name(), staged.text(base.meta(), &list.into_text(), true)?));
            }
        }
        if hashes.is_empty() {
            return Ok(());
        }
        if let Some(collection) = self.collection {
            collection::stage(&self.base, collection, &hashes, staged)?;
        }
        for other in self.others {
            other.take_out(&hashes)?;
            other.stage(&hashes, staged)?;
        }
        Ok(())
    }
}

const SAMPLES: &str = "grebe:samples";
const TRIES: usize = 50;

#[cfg(test)]
mod tests;
