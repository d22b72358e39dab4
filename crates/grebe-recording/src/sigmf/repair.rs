//! Closes a recording whose recorder was killed, in place: nothing is copied, and no good sample is lost.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::archive::Files;
use super::collection::{self, Members, Summing, members};
use super::layout::{Base, Meta, NOT_CLOSED};
use super::metadata_text::read_json;
use super::reader::open_one;
use super::recording_set::{self, Sums};
use super::staged::{Staged, sync_folder};
use super::stripe_set::StripeSet;
use super::stripes::all_bases;
use crate::error::Error;
use crate::kinds::{Kind, is_recording, kind_of};
use crate::repaired::Repaired;
use crate::sample_file::SampleFile;
use crate::summary::remove_summary_parts;
use crate::unpacked::is_packed;
use crate::wav;

/// Closes a SigMF recording or a WAV whose recorder was cut off, in place: up to its last good sample, with a
/// collection that matches its channels. If recordings on several disks alternate, it closes all that are
/// present. Of a collection of several streams it closes each, then the collection. A complete recording does
/// not change.
///
/// ```
/// use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter, repair};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.sigmf-meta");
/// let mut writer = SigmfWriter::create(&path, &SigmfSettings::default())?;
/// writer.write(0, &[&[1i16, 2, 3]])?;
/// drop(writer); // without finish
/// assert!(!SampleFile::open(&path)?.is_whole());
/// assert!(repair(&path)?[0].is_changed);
/// assert!(SampleFile::open(&path)?.is_whole());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As for [`SampleFile::open`](crate::SampleFile::open); [`Error::Content`] while its recorder is running;
/// [`Error::File`] if it cannot be written: it then opens as before.
pub fn repair(path: &Path) -> Result<Vec<Repaired>, Error> {
    if kind_of(path) == Some(Kind::Wav) && !is_packed(path) {
        remove_summary_parts(path);
        return Ok(vec![wav::repair(path)?]);
    }
    let named = SampleFile::named(path).filter(|_| !is_recording(path));
    let (files, path) = Files::of(named.as_deref().unwrap_or(path))?;
    if SampleFile::format_name(&path) != Some("SigMF") || !matches!(files, Files::Folder) {
        let what =
            "only SigMF recordings in files of their own, and WAV, are closed in place: NAME.sigmf-meta"
                .to_owned();
        return Err(Error::Field { path, what });
    }
    let base = whole_of(&Base::of(&path));
    let members = members(&files, &base.meta())?;
    if let Some(members) = members.as_ref().filter(|members| members.is_aligned) {
        return close_together(&base, members);
    }
    let first = members.map_or_else(|| base.clone(), |members| members.bases[0].clone());
    let meta: Meta = read_json(&files, &first.meta())?;
    match meta.global.stripes.filter(StripeSet::is_valid) {
        Some(set) => all_bases(&base, &set).iter().map(close).collect(),
        None => Ok(vec![close(&base)?]),
    }
}

/// The collection that a recording belongs to, or the recording: metadata of a channel alone must not be changed.
fn whole_of(base: &Base) -> Base {
    let named = || {
        let meta: Meta = read_json(&Files::Folder, &base.meta()).ok()?;
        let whole = base.beside(&meta.global.collection?);
        let members = members(&Files::Folder, &whole.collection()).ok()??;
        members.bases.contains(base).then_some(whole)
    };
    named().unwrap_or_else(|| base.clone())
}

/// Closes recordings of several streams, each as far as its own samples are good, and the collection of them.
fn close_together(base: &Base, members: &Members) -> Result<Vec<Repaired>, Error> {
    let _name = base.lock().map_err(busy)?;
    let mut wholes: Vec<Base> = Vec::new();
    for whole in members.bases.iter().map(whole_of) {
        if !wholes.contains(&whole) {
            wholes.push(whole);
        }
    }
    let paths: Vec<PathBuf> = wholes.iter().map(Base::meta).collect();
    let is_tied = collection::has_sums(base) && collection::fits(base, members);
    let is_whole = |path: &PathBuf| open_one(&Files::Folder, path).is_ok_and(|opened| opened.file.is_whole());
    if !paths.iter().all(is_whole) {
        // Sums that it has are those of metadata that will be replaced.
        recording_set::write(base, &paths, Sums::None)?;
    }
    let mut repaired = wholes.iter().map(close).collect::<Result<Vec<_>, _>>()?;
    let is_changed = !is_tied || repaired.iter().any(|repaired| repaired.is_changed);
    if is_changed {
        recording_set::write(base, &paths, Sums::Whole)?;
        sync_folder(base.path());
    }
    let path = base.collection();
    // Empty if they have no common time.
    let len_samples = open_one(&Files::Folder, &path).map_or(0, |opened| opened.file.len_samples());
    repaired.push(Repaired { path, len_samples, is_changed, cut_bytes: 0 });
    Ok(repaired)
}

fn busy(error: Error) -> Error {
    match error {
        Error::Busy { path } => {
            Error::Content { path, what: "is being recorded: its recorder will close it".to_owned() }
        }
        error => error,
    }
}

fn close(base: &Base) -> Result<Repaired, Error> {
    let files = Files::Folder;
    let _name = base.lock().map_err(busy)?;
    remove_summary_parts(&base.meta());
    let opened = open_one(&files, &base.meta())?.file;
    let members = members(&files, &base.meta())?;
    let path = members.as_ref().map_or_else(|| base.meta(), |_| base.collection());
    let len_samples = opened.len_samples();
    let mut repaired = Repaired { path, len_samples, is_changed: false, cut_bytes: 0 };
    if opened.is_whole() && members.as_ref().is_none_or(|members| collection::fits(base, members)) {
        return Ok(repaired);
    }
    repaired.is_changed = true;
    let collection = members.as_ref().map(|members| collection::value(&files, base, members)).transpose()?;
    let own = members.is_some().then_some(base);
    let bases = members.map_or_else(|| vec![base.clone()], |Members { bases, .. }| bases);
    let others = Summing::of(base, &bases, own)?;
    let metas = bases.iter().map(|base| read_json::<Value>(&files, &base.meta()));
    let metas = metas.collect::<Result<Vec<_>, _>>()?;
    let closed = metas.iter().find(|meta| !is_open(meta)).cloned();
    let mut staged = Staged::default();
    let mut hashes = Vec::new();
    // The first channel comes last, so that its presence implies all others.
    for (base, mut meta) in bases.iter().zip(metas).rev() {
        if !is_open(&meta) {
            let hash = collection::sum_of(base).map_err(Error::file("read", &base.meta()))?;
            hashes.push((base.name(), hash));
            continue;
        }
        let channels = meta.pointer("/global/core:num_channels").and_then(Value::as_u64).unwrap_or(1);
        let bytes = len_samples * channels * opened.format().bytes() as u64;
        repaired.cut_bytes += cut(base, bytes)?;
        if let Some(closed) = &closed {
            take_over(&mut meta, closed);
        }
        end_at(&mut meta, len_samples, bytes);
        hashes.push((base.name(), staged.json(base.meta(), &meta, true)?));
    }
    if let Some(collection) = collection {
        collection::stage(base, collection, &hashes, &mut staged)?;
    }
    for other in others {
        other.take_out(&hashes)?;
        other.stage(&hashes, &mut staged)?;
    }
    staged.commit()?;
    sync_folder(base.path());
    Ok(repaired)
}

/// Whether a recorder did not come to its end.
fn is_open(meta: &Value) -> bool {
    let recorder = meta.pointer("/global/core:recorder").and_then(Value::as_str);
    recorder.is_some_and(|recorder| recorder.ends_with(NOT_CLOSED))
}

/// Shortens the data to `bytes`; returns the bytes cut off.
fn cut(base: &Base, bytes: u64) -> Result<u64, Error> {
    let path = base.data();
    let cut = || {
        let file = OpenOptions::new().write(true).open(&path)?;
        let there = file.metadata()?.len();
        file.set_len(bytes.min(there))?;
        file.sync_all()?;
        Ok(there.saturating_sub(bytes))
    };
    cut().map_err(Error::file("write", &path))
}

/// Takes the latest entries from another channel's metadata, which were written later.
fn take_over(meta: &mut Value, closed: &Value) {
    let known = meta.pointer("/global/grebe:known_samples").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let later = closed.get("captures").and_then(Value::as_array).into_iter().flatten();
    let later =
        later.filter(|capture| start_of(capture).is_some_and(|start| start >= known)).map(|capture| {
            let mut capture = capture.clone();
            // Its fields about the other channel.
            capture.as_object_mut().map(|capture| capture.remove("grebe:channels"));
            capture
        });
    if let Some(captures) = meta.get_mut("captures").and_then(Value::as_array_mut) {
        captures.retain(|capture| start_of(capture).is_none_or(|start| start < known));
        captures.extend(later);
    }
    // Each channel has those of all.
    if let Some(annotations) = closed.get("annotations") {
        meta["annotations"] = annotations.clone();
    }
}

/// Metadata of a recorder that was cut off become those of a recording that ends there.
fn end_at(meta: &mut Value, len_samples: u64, bytes: u64) {
    if let Some(global) = meta.get_mut("global").and_then(Value::as_object_mut) {
        global.remove("grebe:known_samples");
        if let Some(Value::String(recorder)) = global.get_mut("core:recorder") {
            recorder.truncate(recorder.len().saturating_sub(NOT_CLOSED.len()));
        }
        end_sums(global, bytes);
    }
    for list in ["captures", "annotations"] {
        if let Some(list) = meta.get_mut(list).and_then(Value::as_array_mut) {
            list.retain(|it| start_of(it).is_none_or(|start| start < len_samples));
        }
    }
    for annotation in meta.get_mut("annotations").and_then(Value::as_array_mut).into_iter().flatten() {
        let left = len_samples.saturating_sub(start_of(annotation).unwrap_or(0));
        if let Some(count) = annotation.get_mut("core:sample_count")
            && let Some(samples) = count.as_u64()
        {
            *count = samples.min(left).into();
        }
    }
}

fn start_of(entry: &Value) -> Option<u64> {
    entry.get("core:sample_start").and_then(Value::as_u64)
}

/// The last sum of a recorder that was cut off covers an unknown part of a stretch.
fn end_sums(global: &mut Map<String, Value>, bytes: u64) {
    let Some(checksums) = global.get_mut("grebe:checksums") else { return };
    let stretch_bytes = checksums.get("stretch_bytes").and_then(Value::as_u64).unwrap_or(0).max(1);
    if let Some(sums) = checksums.get_mut("sums").and_then(Value::as_array_mut) {
        sums.truncate((bytes / stretch_bytes) as usize);
        if sums.is_empty() {
            global.remove("grebe:checksums");
        } else if !bytes.is_multiple_of(stretch_bytes) {
            sums.push(Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sigmf::{RecordingSet, SigmfSettings, SigmfWriter};

    #[test]
    fn metadata_end_where_the_samples_do() {
        let mut meta = json!({
            "global": {
                "core:recorder": "grebe 1.0, not closed", "grebe:known_samples": 100, "core:author": "A",
                "grebe:checksums": {"algorithm": "xxh3-64", "stretch_bytes": 64, "sums": ["1", "2", "3", "4"]},
            },
            "captures": [{"core:sample_start": 0}, {"core:sample_start": 60}, {"core:sample_start": 90}],
            "annotations": [{"core:sample_start": 10, "core:sample_count": 90}, {"core:sample_start": 20}, {"core:sample_start": 90}],
        });
        end_at(&mut meta, 80, 160);
        let expected = json!({
            "global": {
                "core:recorder": "grebe 1.0", "core:author": "A",
                "grebe:checksums": {"algorithm": "xxh3-64", "stretch_bytes": 64, "sums": ["1", "2", null]},
            },
            "captures": [{"core:sample_start": 0}, {"core:sample_start": 60}],
            "annotations": [{"core:sample_start": 10, "core:sample_count": 70}, {"core:sample_start": 20}],
        });
        assert_eq!(meta, expected);
    }

    /// A set of two recordings of one stream each, and the path of their collection.
    fn both(folder: &Path) -> PathBuf {
        let set = RecordingSet::create(&folder.join("both"), false).unwrap();
        for number in 1..=2 {
            let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
            let mut writer = SigmfWriter::create(&set.recording(number), &settings).unwrap();
            writer.write(0, &[&[1i16; 5_000]]).unwrap();
            writer.finish().unwrap();
        }
        set.tie(&[set.recording(1), set.recording(2)]).unwrap()
    }

    fn change(path: &Path, change: impl FnOnce(&mut Value)) {
        let mut value = read_json(&Files::Folder, path).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }

    fn fits(collection: &Path) -> bool {
        let members = members(&Files::Folder, collection).unwrap().unwrap();
        collection::has_sums(&Base::of(collection)) && collection::fits(&Base::of(collection), &members)
    }

    #[test]
    fn closing_one_recording_leaves_no_old_checksum_in_its_collection() {
        let folder = tempfile::tempdir().unwrap();
        let both = both(folder.path());
        let second = folder.path().join("both_2.sigmf-meta");
        change(&second, |meta| {
            let recorder = meta["global"]["core:recorder"].as_str().unwrap().to_owned() + NOT_CLOSED;
            meta["global"]["core:recorder"] = recorder.into();
        });
        let sum = collection::sum_of(&Base::of(&second)).unwrap();
        change(&both, |set| set["collection"]["core:streams"][1]["hash"] = sum.into());
        assert!(fits(&both));
        assert!(repair(&second).unwrap()[0].is_changed);
        assert!(fits(&both));
    }

    #[test]
    fn a_repaired_collection_keeps_foreign_fields() {
        let folder = tempfile::tempdir().unwrap();
        let both = both(folder.path());
        let sigma = json!({ "name": "sigma", "version": "1", "optional": true });
        change(&both, |set| {
            set["collection"]["core:description"] = "a walk".into();
            set["collection"]["core:author"] = "A".into();
            set["collection"]["core:extensions"].as_array_mut().unwrap().push(sigma.clone());
            set["collection"]["core:streams"][0]["hash"] = "0".into();
        });
        assert!(!fits(&both));
        repair(&both).unwrap();
        assert!(fits(&both));
        let set: Value = read_json(&Files::Folder, &both).unwrap();
        let set = &set["collection"];
        assert_eq!((&set["core:description"], &set["core:author"]), (&json!("a walk"), &json!("A")));
        let extensions = set["core:extensions"].as_array().unwrap();
        assert_eq!((extensions.len(), &extensions[1]), (2, &sigma));
    }

    #[test]
    fn a_channel_has_the_last_captures_of_another_that_was_closed() {
        let mut meta = json!({
            "global": {"grebe:known_samples": 50},
            "captures": [{"core:sample_start": 0, "grebe:channels": ["own"]}],
            "annotations": [],
        });
        let closed = json!({
            "captures": [{"core:sample_start": 0}, {"core:sample_start": 50, "core:global_index": 70, "grebe:channels": ["its"]}],
            "annotations": [{"core:sample_start": 55}],
        });
        take_over(&mut meta, &closed);
        assert_eq!(
            meta["captures"],
            json!([{"core:sample_start": 0, "grebe:channels": ["own"]}, {"core:sample_start": 50, "core:global_index": 70}])
        );
        assert_eq!(meta["annotations"], closed["annotations"]);
    }
}
