//! The recordings of a collection, even while its file is missing.
//!
//! A collection has the sums of its recordings' metadata, and cannot be replaced atomically with them. So its
//! file is removed before and written again after them ([`Staged`](super::staged::Staged)). A process killed
//! in between leaves recordings that name a missing collection.
//! Other collections may have sums of the same metadata: those of several streams, whose recordings do not
//! name them. They stay, without these sums meanwhile ([`Summing`]).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::Files;
use super::checksum::Sum;
use super::layout::{
    BY_TIME, Base, CHANNELS_APART_MAX, CollectionFile, Meta, Stream, VERSION, is_plain_name,
};
use super::metadata_text::read_json;
use super::staged::Staged;
use crate::error::Error;

/// The recordings of a collection.
pub(super) struct Members {
    pub(super) bases: Vec<Base>,
    /// Notice for the user.
    pub(super) note: Option<String>,
    /// Whether they are of several streams, aligned by sample time.
    pub(super) is_aligned: bool,
}

/// The recordings of the collection at `path`; `None` if `path` is a recording.
///
/// # Errors
/// [`Error::File`] if neither the collection nor recordings that name it exist, [`Error::Content`], [`Error::Field`].
pub(super) fn members(files: &Files, path: &Path) -> Result<Option<Members>, Error> {
    let base = Base::of(path);
    let is_collection = path.extension().is_some_and(|extension| extension == "sigmf-collection");
    // With several channels, a recording of this name became a collection.
    if !is_collection && files.holds(&base.meta()) {
        return Ok(None);
    }
    let path = base.collection();
    let file: CollectionFile = match read_json(files, &path) {
        Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let bases = channels(files, &base);
            return match bases.len() {
                0 if is_collection => Err(Error::file("open", &path)(source)),
                0 => Ok(None),
                count => Ok(Some(Members { bases, note: Some(missing(&path, count)), is_aligned: false })),
            };
        }
        file => file?,
    };
    let mut bases = Vec::new();
    for (position, stream) in file.collection.streams.iter().enumerate() {
        let name = stream.name();
        if !is_plain_name(name) {
            let must = "it must name a recording in the same folder";
            return Err(Error::field(&path, &format!("core:streams[{position}]"), name, must));
        }
        bases.push(files.of_collection(&base, name));
    }
    let is_aligned = file.collection.alignment.as_deref() == Some(BY_TIME);
    Ok(Some(Members { bases, note: None, is_aligned }))
}

/// Content of its file, generated if the file is missing.
pub(super) fn value(files: &Files, base: &Base, members: &Members) -> Result<Value, Error> {
    if members.note.is_none() {
        return read_json(files, &base.collection());
    }
    let streams: Vec<Value> = members.bases.iter().map(|base| json!({"name": base.name()})).collect();
    Ok(json!({"collection": {"core:version": VERSION, "core:streams": streams}}))
}

/// Writes it with the sums of its recordings' metadata, by name, to take its place after them.
pub(super) fn stage(
    base: &Base,
    mut value: Value,
    hashes: &[(String, String)],
    staged: &mut Staged,
) -> Result<(), Error> {
    for stream in streams_of(&mut value) {
        let hash = sum_in(hashes, stream);
        match stream {
            Value::Object(fields) => {
                hash.map(|hash| fields.insert("hash".to_owned(), hash));
            }
            // As older files have it.
            Value::Array(pair) => {
                if let Some((hash, place)) = hash.zip(pair.get_mut(1)) {
                    *place = hash;
                }
            }
            _ => {}
        }
    }
    staged.json(base.collection(), &value, true)?;
    staged.remove_first(&base.collection())
}

/// A collection that has sums of recordings' metadata that are about to be replaced.
pub(super) struct Summing {
    base: Base,
    value: Value,
}

impl Summing {
    /// Collections beside `base` with the sum of one of these recordings, except the collection of `own`.
    pub(super) fn of(base: &Base, recordings: &[Base], own: Option<&Base>) -> Result<Vec<Self>, Error> {
        let folder = base.path().parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let names: Vec<String> = recordings.iter().map(Base::name).collect();
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(Error::file("open", folder))?.flatten() {
            let path = entry.path();
            let other = Base::of(&path);
            if path.extension().is_none_or(|it| it != "sigmf-collection")
                || own.is_some_and(|own| own.name() == other.name())
            {
                continue;
            }
            // An unreadable file is not a collection.
            let Ok(file) = read_json::<CollectionFile>(&Files::Folder, &path) else { continue };
            let has_sum =
                |stream: &Stream| stream.hash().is_some() && names.iter().any(|name| name == stream.name());
            if file.collection.streams.iter().any(has_sum) {
                found.push(Self { base: other, value: read_json(&Files::Folder, &path)? });
            }
        }
        Ok(found)
    }

    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// Takes its place without the sums of these recordings: so it stays true until their metadata are there.
    pub(super) fn take_out(&self, hashes: &[(String, String)]) -> Result<(), Error> {
        let mut value = self.value.clone();
        for stream in streams_of(&mut value) {
            if sum_in(hashes, stream).is_some() {
                match stream {
                    Value::Object(fields) => drop(fields.remove("hash")),
                    Value::Array(pair) => *stream = json!({ "name": pair[0] }),
                    _ => {}
                }
            }
        }
        let mut staged = Staged::default();
        staged.json(self.base.collection(), &value, true)?;
        staged.commit()
    }

    /// With the new sums, to take its place after the metadata.
    pub(super) fn stage(mut self, hashes: &[(String, String)], staged: &mut Staged) -> Result<(), Error> {
        for stream in streams_of(&mut self.value) {
            let hash = sum_in(hashes, stream);
            let place = match stream {
                Value::Object(fields) => fields.get_mut("hash"),
                Value::Array(pair) => pair.get_mut(1),
                _ => None,
            };
            if let Some((hash, place)) = hash.zip(place) {
                *place = hash;
            }
        }
        staged.json(self.base.collection(), &self.value, true).map(drop)
    }
}

fn streams_of(collection: &mut Value) -> impl Iterator<Item = &mut Value> {
    let streams = collection.pointer_mut("/collection/core:streams").and_then(Value::as_array_mut);
    streams.into_iter().flatten()
}

/// The sum of a stream's metadata, by its name.
fn sum_in(hashes: &[(String, String)], stream: &Value) -> Option<Value> {
    let name = stream.get("name").or_else(|| stream.get(0))?.as_str()?;
    let (_, hash) = hashes.iter().find(|(of, _)| of == name)?;
    Some(Value::from(hash.clone()))
}

/// Whether its file is there and has the sum of each of its recordings' metadata.
pub(super) fn has_sums(base: &Base) -> bool {
    let file = read_json::<CollectionFile>(&Files::Folder, &base.collection());
    file.is_ok_and(|file| file.collection.streams.iter().all(|stream| stream.hash().is_some()))
}

/// Whether its file exists, and its sums match its recordings' metadata.
pub(super) fn fits(base: &Base, members: &Members) -> bool {
    let Ok(file) = read_json::<CollectionFile>(&Files::Folder, &base.collection()) else { return false };
    file.collection.streams.iter().zip(&members.bases).all(|(stream, base)| {
        stream.hash().is_none_or(|hash| sum_of(base).is_ok_and(|sum| sum.eq_ignore_ascii_case(hash)))
    })
}

/// The sum of a recording's metadata.
pub(super) fn sum_of(base: &Base) -> io::Result<String> {
    let meta = File::open(base.meta())?;
    let bytes = meta.metadata()?.len();
    Sum::new(meta).finish(bytes)
}

/// The collection that a channel's recording names, where its file is not there.
pub(crate) fn missing_collection_of(path: &Path) -> Option<PathBuf> {
    let name = Base::of(path).name();
    let collection = path.with_file_name(format!("{}.sigmf-collection", name.rsplit_once("_ch")?.0));
    let members = members(&Files::Folder, &collection).ok()??;
    (members.note.is_some() && members.bases.contains(&Base::of(path))).then_some(collection)
}

/// The recordings that a recorder ties together by this name: their metadata say so.
fn channels(files: &Files, base: &Base) -> Vec<Base> {
    if files.is_arriving() {
        // Others may be on their way.
        return Vec::new();
    }
    let names_it = |channel: &Base| {
        let meta: Result<Meta, Error> = read_json(files, &channel.meta());
        meta.is_ok_and(|meta| meta.global.collection.is_some_and(|name| name == base.name()))
    };
    (0..CHANNELS_APART_MAX).map(|channel| base.channel(channel)).take_while(names_it).collect()
}

fn missing(path: &Path, count: usize) -> String {
    let path = path.display();
    format!(
        "{path} is missing, as where its recorder was cut off; the {count} recordings that name it are read, and grebe repair ties them together again"
    )
}
