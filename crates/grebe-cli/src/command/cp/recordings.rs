//! Completes recordings for a progressive copy: all their files, and a summary.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use grebe_connection::Cancel;
use grebe_recording::{SampleFile, SummarizedFile, Summary, SummaryState};
use tempfile::TempDir;

use crate::output::note;

/// Adds the other files of each recording, and makes missing summaries that take little time compared with sending.
/// Summaries that cannot be written beside their recordings are in a temporary folder, which the returned value
/// removes.
pub(super) fn complete(sources: &mut Vec<PathBuf>, cancel: &Cancel) -> Option<TempDir> {
    let mut left = MAKING_MAX;
    let mut borrowed = None;
    let mut all: Vec<PathBuf> = Vec::new();
    for source in sources.drain(..) {
        let Some(base) = base_of(&source) else {
            if source.is_dir() {
                for recording in recordings_below(&source) {
                    summarize(&recording, &mut left, cancel);
                }
            }
            // A summary may be among the sources already.
            if !all.contains(&source) {
                all.push(source);
            }
            continue;
        };
        let named = named_by(&base, &source);
        summarize(&named, &mut left, cancel);
        let mut files = files_of(&base);
        if !files.contains(&source) {
            // Opening it reports that it is missing.
            files.push(source);
        }
        if !Summary::place(&named).is_file() {
            files.extend(lend(&named, &mut borrowed));
        }
        for file in files {
            if !all.contains(&file) {
                all.push(file);
            }
        }
    }
    *sources = all;
    borrowed
}

/// Name of a recording without the extension; `None` if it is not SigMF.
fn base_of(path: &Path) -> Option<PathBuf> {
    let extension = path.extension()?;
    EXTENSIONS.iter().any(|known| extension == *known).then(|| path.with_extension(""))
}

/// The file that opens the whole recording.
fn named_by(base: &Path, source: &Path) -> PathBuf {
    [META, COLLECTION]
        .map(|extension| with(base, extension))
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| source.into())
}

/// Files of a recording, and of the channels of a collection.
fn files_of(base: &Path) -> Vec<PathBuf> {
    let mut bases = vec![base.to_path_buf()];
    if with(base, COLLECTION).is_file() {
        let channel = |number: usize| {
            let mut name = base.as_os_str().to_owned();
            name.push(format!("_ch{number}"));
            PathBuf::from(name)
        };
        bases.extend((1..=CHANNEL_FILES_MAX).map(channel));
    }
    let extensions = [META, COLLECTION, SUMMARY, DATA];
    let files = bases.iter().flat_map(|base| extensions.map(|extension| with(base, extension)));
    files.filter(|file| file.is_file()).collect()
}

fn with(base: &Path, extension: &str) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// Recordings in a tree, up to a bound; links are not followed.
fn recordings_below(root: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found, mut seen) = (vec![root.to_path_buf()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > NAMES_MAX {
                return found;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && path.extension().is_some_and(is_opening) => found.push(path),
                _ => {}
            }
        }
    }
    found
}

fn is_opening(extension: &OsStr) -> bool {
    extension == META || extension == COLLECTION
}

/// Makes the summary of a recording, if the remaining time allows.
fn summarize(path: &Path, left: &mut Duration, cancel: &Cancel) {
    let Ok(mut file) = SampleFile::open(path) else { return };
    let bytes = file.len_samples() * (file.format().bytes() * file.channels()) as u64;
    if bytes < SUMMARIZED_BYTES_MIN || Summary::find(path, &mut file).is_some() {
        return;
    }
    let Ok(making) = SummarizedFile::open(path) else { return };
    let began = Instant::now();
    let samples = file.len_samples().max(1) as f64;
    while making.state() == SummaryState::Making && !cancel.is_cancelled() {
        let done = making.known_samples() as f64 / samples;
        let is_too_slow = began.elapsed() > JUDGED_AFTER
            && began.elapsed().as_secs_f64() / done.max(1e-9) > left.as_secs_f64();
        if began.elapsed() > *left || is_too_slow {
            note!(
                "{}: no summary, because making one takes longer than {} s; grebe view makes it later",
                path.display(),
                MAKING_MAX.as_secs()
            );
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    *left = left.saturating_sub(began.elapsed());
}

/// A summary from another folder, under the name that it would have beside its recording.
fn lend(path: &Path, folder: &mut Option<TempDir>) -> Option<PathBuf> {
    let mut file = SampleFile::open(path).ok()?;
    let elsewhere = Summary::elsewhere(path, &mut file)?;
    if folder.is_none() {
        *folder = tempfile::Builder::new().prefix("grebe-cp-").tempdir().ok();
    }
    let lent = folder.as_ref()?.path().join(Summary::place(path).file_name()?);
    // A hard link costs nothing on the same file system.
    fs::hard_link(&elsewhere, &lent).or_else(|_| fs::copy(&elsewhere, &lent).map(drop)).ok()?;
    Some(lent)
}

const META: &str = "sigmf-meta";
const DATA: &str = "sigmf-data";
const COLLECTION: &str = "sigmf-collection";
const SUMMARY: &str = "grebe-summary";
const EXTENSIONS: [&str; 3] = [META, DATA, COLLECTION];
/// Maximum channels with a file each.
const CHANNEL_FILES_MAX: usize = 8;
/// Smaller recordings are viewed without a summary.
const SUMMARIZED_BYTES_MIN: u64 = 32 << 20;
/// Maximum delay of the other end by summaries.
const MAKING_MAX: Duration = Duration::from_secs(10);
const JUDGED_AFTER: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum names of a tree to search for recordings.
const NAMES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_a_recording_selects_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let names = [
            "a.sigmf-meta",
            "a.sigmf-data",
            "a.grebe-summary",
            "b.sigmf-meta",
            "x.bin",
            "c.sigmf-collection",
            "c_ch1.sigmf-meta",
            "c_ch2.sigmf-data",
        ];
        names.iter().for_each(|name| fs::write(at(name), name).unwrap());
        let complete = |named: &[&str]| {
            let mut sources: Vec<PathBuf> = named.iter().map(|name| at(name)).collect();
            assert!(super::complete(&mut sources, &Cancel::default()).is_none());
            let mut names: Vec<String> =
                sources.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(
            complete(&["a.sigmf-data", "x.bin", "a.sigmf-meta"]),
            "a.grebe-summary a.sigmf-data a.sigmf-meta x.bin"
        );
        let all = ["a.grebe-summary", "a.sigmf-data", "a.sigmf-meta", "a.grebe-summary"];
        assert_eq!(complete(&all[..3]), "a.grebe-summary a.sigmf-data a.sigmf-meta", "each once");
        assert_eq!(complete(&all[1..]), "a.grebe-summary a.sigmf-data a.sigmf-meta", "in whatever order");
        assert_eq!(complete(&["b.sigmf-meta"]), "b.sigmf-meta");
        assert_eq!(complete(&["c.sigmf-collection"]), "c.sigmf-collection c_ch1.sigmf-meta c_ch2.sigmf-data");
        assert_eq!(
            complete(&["none.sigmf-meta"]),
            "none.sigmf-meta",
            "whoever opens it says that it is not there"
        );
    }
}
