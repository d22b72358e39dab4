//! Writing labels into a recording that is there: its metadata are replaced in one step, its samples are not touched.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::archive::Files;
use super::collection::{self, Summing, members};
use super::layout::{Base, NOT_CLOSED};
use super::metadata_text::read_json;
use super::reader::open_one;
use super::staged::Staged;
use crate::error::{Error, ProcessError};
use crate::output::NameLock;
use crate::sample_file::{Annotation, Piece, pieces_by_time};

/// Adds annotations to a recording, or to each recording of a collection. If its recordings are aligned by
/// time, each gets the annotations of its own samples. Returns their number, without those present already.
pub(crate) fn annotate(path: &Path, annotations: &[Annotation]) -> Result<usize, Error> {
    let _names = Recording::open(path)?.lock()?;
    // Opens it again, because now nobody else can write the metadata.
    let Recording { base, mut metas, collection, others, places } = Recording::open(path)?;
    let mut staged = Staged::default();
    let mut added = 0;
    let mut hashes = Vec::new();
    for (number, (base, meta)) in metas.iter_mut().enumerate() {
        let own =
            places.get(number).map(|places| annotations.iter().map(|it| it.read_from(places)).collect());
        let own: Cow<'_, [Annotation]> = own.map_or(Cow::Borrowed(annotations), Cow::Owned);
        added = add(&base.meta(), meta, &own)?.max(added);
        hashes.push((base.name(), staged.json(base.meta(), meta, true)?));
    }
    if let Some(collection) = collection {
        collection::stage(&base, collection, &hashes, &mut staged)?;
    }
    for other in others {
        other.take_out(&hashes)?;
        other.stage(&hashes, &mut staged)?;
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
    /// The collection of the channels of one stream.
    collection: Option<Value>,
    /// Others that have sums of these metadata: of several streams, or of a channel's collection.
    others: Vec<Summing>,
    /// Pieces of each recording that are aligned, for several streams.
    places: Vec<Vec<Piece>>,
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
        let is_aligned = members.as_ref().is_some_and(|members| members.is_aligned);
        let own = members.as_ref().filter(|_| !is_aligned);
        let collection = own.map(|members| collection::value(&files, &base, members)).transpose()?;
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
        let bases: Vec<Base> = metas.iter().map(|(base, _)| base.clone()).collect();
        let others = Summing::of(&base, &bases, collection.is_some().then_some(&base))?;
        let places = if is_aligned {
            let recordings = bases.iter().map(|base| Ok(open_one(&files, &base.meta())?.file));
            pieces_by_time(&recordings.collect::<Result<Vec<_>, Error>>()?)?
        } else {
            Vec::new()
        };
        Ok(Self { base, metas, collection, others, places })
    }

    /// Locks the names of all metadata to replace, and of the files with their sums.
    fn lock(&self) -> Result<Vec<NameLock>, Error> {
        let bases = self.metas.iter().map(|(base, _)| base).chain(self.others.iter().map(Summing::base));
        let mut bases: Vec<&Base> = bases.chain([&self.base]).collect();
        bases.sort_by_key(|base| base.path());
        bases.dedup();
        bases.into_iter().map(Base::lock).collect()
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
        return Err(ProcessError::Setting {
            what,
            got,
            must: "a recording has a million at most: look for less",
        }
        .into());
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
    use crate::sample_file::SampleFile;
    use crate::sigmf::{RecordingSet, SigmfSettings, SigmfWriter};

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

    /// Whether each sum in a collection is that of the metadata that are there.
    fn check_sums(collection: &Path) {
        let said: Value = serde_json::from_slice(&std::fs::read(collection).unwrap()).unwrap();
        for stream in said["collection"]["core:streams"].as_array().unwrap() {
            let base = Base::of(collection).beside(stream["name"].as_str().unwrap());
            let sum = collection::sum_of(&base).unwrap();
            assert_eq!(stream["hash"], json!(sum), "{} in {}", base.name(), collection.display());
        }
    }

    #[test]
    fn labels_of_one_recording_leave_no_old_sum_in_the_collections_that_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let set = RecordingSet::create(&folder.path().join("both"), false).unwrap();
        for (number, channels) in [(1, 1), (2, 2)] {
            let settings = SigmfSettings { channels, sample_rate_hz: 1e3, ..SigmfSettings::default() };
            let mut writer = SigmfWriter::create(&set.recording(number), &settings).unwrap();
            writer.write(0, &vec![&[1i16; 5_000][..]; channels]).unwrap();
            writer.finish().unwrap();
        }
        let both = set.tie(&[set.recording(1), set.recording(2)]).unwrap();
        drop(set);
        let second = folder.path().join("both_2.sigmf-collection");
        for (number, name) in
            ["both_1.sigmf-meta", "both_2.sigmf-meta", "both_2_ch2.sigmf-meta"].iter().enumerate()
        {
            let label = annotation(number as u64, 1, name);
            assert_eq!(annotate(&folder.path().join(name), &[label]).unwrap(), 1);
            check_sums(&both);
            check_sums(&second);
        }
        let said: Value = serde_json::from_slice(&std::fs::read(&both).unwrap()).unwrap();
        assert_eq!(said["collection"]["grebe:alignment"], "time", "all else stays");
        assert_eq!(SampleFile::open(&both).unwrap().channels(), 3);
        // A recording without sums gets none, and stays valid.
        let unsummed =
            json!({ "collection": { "core:version": "1.2.0", "core:streams": [{ "name": "both_1" }] } });
        std::fs::write(&both, unsummed.to_string()).unwrap();
        annotate(&folder.path().join("both_1.sigmf-meta"), &[annotation(9, 1, "later")]).unwrap();
        let said: Value = serde_json::from_slice(&std::fs::read(&both).unwrap()).unwrap();
        assert_eq!(said, unsummed);
    }

    /// Records a stream that began `later_ms` later, at 1,000 samples per second.
    fn recorded(folder: &Path, name: &str, later_ms: u64) {
        let global = json!({ "core:datatype": "ri8", "core:sample_rate": 1_000, "core:version": "1.2.0" });
        let began = format!("2026-01-02T03:04:05.{later_ms:03}Z");
        let captures = json!([{ "core:sample_start": 0, "core:datetime": began }]);
        let meta = json!({ "global": global, "captures": captures, "annotations": [] });
        std::fs::write(folder.join(format!("{name}.sigmf-data")), [1; 500]).unwrap();
        std::fs::write(folder.join(format!("{name}.sigmf-meta")), meta.to_string()).unwrap();
    }

    #[test]
    fn labels_of_several_streams_stand_in_each_where_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        recorded(folder.path(), "both_1", 100);
        recorded(folder.path(), "both_2", 140);
        let set = RecordingSet::create(&folder.path().join("both"), false).unwrap();
        let both = set.tie(&[set.recording(1), set.recording(2)]).unwrap();
        drop(set);
        let found = [annotation(10, 20, "loud"), annotation(50, 0, "click")];
        assert_eq!(annotate(&both, &found).unwrap(), 2);
        assert_eq!(annotate(&both, &found).unwrap(), 0, "they are there");
        let there = |name: &str| SampleFile::open(folder.path().join(name)).unwrap().annotations().to_vec();
        assert_eq!(there("both_1.sigmf-meta"), [annotation(50, 20, "loud"), annotation(90, 0, "click")]);
        assert_eq!(there("both_2.sigmf-meta"), found);
        assert_eq!(there("both.sigmf-collection"), found, "and once where they are side by side");
        check_sums(&both);
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
