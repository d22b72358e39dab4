//! Writing labels into a recording that is there: its metadata are replaced in one step, its samples are not touched.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::archive::Files;
use super::collection::{self, members};
use super::layout::{Base, NOT_CLOSED};
use super::reader::read_json;
use super::staged::Staged;
use crate::error::Error;
use crate::file::sample_file::Annotation;

/// Adds annotations to a recording, or to each of a collection; how many, without those that it has already.
pub(crate) fn annotate(path: &Path, annotations: &[Annotation]) -> Result<usize, Error> {
    let recording = Recording::open(path)?;
    let _name = recording.base.lock()?;
    // Once more, as nobody else may write them now.
    let Recording { base, mut metas, collection } = Recording::open(path)?;
    let mut staged = Staged::default();
    let mut added = 0;
    let mut hashes = Vec::new();
    for (base, meta) in &mut metas {
        added = add(&base.meta(), meta, annotations)?;
        hashes.push((base.name(), staged.json(base.meta(), meta, true)?));
    }
    if let Some(collection) = collection {
        collection::stage(&base, collection, &hashes, &mut staged)?;
    }
    staged.commit()?;
    Ok(added)
}

/// Whether annotations can be written into it.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    Recording::open(path).map(drop)
}

/// The metadata of a recording that lies in files of its own.
struct Recording {
    base: Base,
    metas: Vec<(Base, Value)>,
    collection: Option<Value>,
}

impl Recording {
    fn open(path: &Path) -> Result<Self, Error> {
        let (files, path) = Files::of(path)?;
        let refused = |what: &str| Err(Error::Field { path: path.clone(), what: what.to_owned() });
        if !matches!(files, Files::Folder) {
            return refused("nothing is written into an archive: convert it to NAME.sigmf-meta first");
        }
        let base = Base::of(&path);
        let members = members(&files, &path)?;
        let collection =
            members.as_ref().map(|members| collection::value(&files, &base, members)).transpose()?;
        let bases = members.map_or_else(|| vec![base.clone()], |members| members.bases);
        let mut metas = Vec::new();
        for base in bases {
            let meta: Value = read_json(&files, &base.meta())?;
            let recorder = meta.pointer("/global/core:recorder").and_then(Value::as_str);
            if recorder.is_some_and(|recorder| recorder.ends_with(NOT_CLOSED)) {
                let what = "its recorder is still at it, or was cut off: then close it by grebe repair first";
                return Err(Error::Content { path: base.meta(), what: what.to_owned() });
            }
            if meta.pointer("/global/grebe:stripes").is_some() {
                return refused(
                    "it takes turns with recordings on other disks: convert them to one recording first",
                );
            }
            metas.push((base, meta));
        }
        Ok(Self { base, metas, collection })
    }
}

/// Adds those that are not there yet, in the order of the file; how many.
fn add(path: &Path, meta: &mut Value, annotations: &[Annotation]) -> Result<usize, Error> {
    let offset = meta.pointer("/global/core:offset").and_then(Value::as_u64).unwrap_or(0);
    let no_list = || Error::Field { path: path.into(), what: "annotations is no list".to_owned() };
    let list = meta
        .as_object_mut()
        .ok_or_else(no_list)?
        .entry("annotations")
        .or_insert_with(|| Vec::<Value>::new().into());
    let list = list.as_array_mut().ok_or_else(no_list)?;
    let mut there: HashSet<String> = list.iter().map(Value::to_string).collect();
    let before = list.len();
    for Annotation { position, length_samples, fields } in annotations {
        let mut annotation = Map::new();
        annotation.insert("core:sample_start".to_owned(), (position + offset).into());
        annotation.insert("core:sample_count".to_owned(), (*length_samples).into());
        annotation.extend(fields.clone());
        let annotation = Value::from(annotation);
        if there.insert(annotation.to_string()) {
            list.push(annotation);
        }
    }
    if list.len() > ANNOTATIONS_MAX {
        let (what, got) = ("number of annotations", list.len().to_string());
        return Err(Error::Setting { what, got, must: "a recording has a million at most: look for less" });
    }
    list.sort_by_key(|annotation| annotation.get("core:sample_start").and_then(Value::as_u64));
    Ok(list.len() - before)
}

/// As many as a recorder writes.
const ANNOTATIONS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::file::sample_file::SampleFile;
    use crate::file::sigmf::{SigmfSettings, SigmfWriter};

    fn annotation(position: u64, length_samples: u64, label: &str) -> Annotation {
        let fields = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
        Annotation { position, length_samples, fields }
    }

    #[test]
    fn annotations_come_between_those_that_are_there_once_and_nothing_else_changes() {
        let folder = tempfile::tempdir().unwrap();
        for channels in [1, 2] {
            let base = folder.path().join(format!("x{channels}"));
            let settings = SigmfSettings { channels, sample_rate_hz: 1e3, ..SigmfSettings::default() };
            let mut writer = SigmfWriter::create(&base, &settings).unwrap();
            writer.write(0, &vec![&[1i16, 2, 3, 4][..]; channels]).unwrap();
            writer.annotate(2, 1, "there").unwrap();
            let files = writer.finish().unwrap().files;
            let found = [annotation(3, 0, "late"), annotation(0, 2, "early"), annotation(2, 1, "there")];
            assert_eq!(annotate(&files[0], &found).unwrap(), 2);
            assert_eq!(annotate(&files[0], &found).unwrap(), 0, "they are there");
            let file = SampleFile::open(&files[0]).unwrap();
            assert_eq!(
                file.annotations(),
                [annotation(0, 2, "early"), annotation(2, 1, "there"), annotation(3, 0, "late")]
            );
            for meta in files.iter().filter(|path| path.extension().is_some_and(|it| it == "sigmf-meta")) {
                let meta: Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
                assert_eq!(meta["global"]["core:sample_rate"], json!(1000));
                assert_eq!(meta["annotations"].as_array().unwrap().len(), 3);
            }
        }
        // A collection names the sums of its files.
        let collection = std::fs::read(folder.path().join("x2.sigmf-collection")).unwrap();
        let collection: Value = serde_json::from_slice(&collection).unwrap();
        let first = &collection["collection"]["core:streams"][0];
        let meta = std::fs::File::open(folder.path().join("x2_ch1.sigmf-meta")).unwrap();
        let bytes = meta.metadata().unwrap().len();
        let sum = super::super::checksum::Sum::from(meta, 0).finish(bytes).unwrap();
        assert_eq!(first["hash"], json!(sum));
    }

    #[test]
    fn what_is_being_recorded_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sigmf-meta");
        let mut writer = SigmfWriter::create(&path, &SigmfSettings::default()).unwrap();
        writer.write(0, &[&[1i16]]).unwrap();
        writer.flush().unwrap();
        while !path.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let error = annotate(&path, &[annotation(0, 1, "a")]).unwrap_err().to_string();
        assert!(error.contains("its recorder is still at it"), "{error}");
        writer.finish().unwrap();
        check(&path).unwrap();
        std::fs::write(&path, "{\"global\": {}, \"annotations\": 5}").unwrap();
        let error = annotate(&path, &[annotation(0, 1, "a")]).unwrap_err().to_string();
        assert!(error.contains("annotations is no list"), "{error}");
    }
}
