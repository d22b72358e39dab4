//! A recording in parts: `NAME_000001`, `NAME_000002`, ..., each a recording of its own.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use grebe_frame::Header;

use crate::disk::free_bytes;
use crate::error::{Error, ProcessError};
use crate::output::NameLock;
use crate::ring::RingPlan;
use crate::rotate::Rotate;
use crate::sigmf::{Base, Closing, Prepared, SigmfSettings, prepare};

/// Parts to keep on the disk, besides the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    All,
    /// Bytes, including the current one.
    Bytes(u64),
    /// Number of newest parts.
    Parts(u64),
}

/// The parts of a recording.
#[derive(Debug)]
pub(super) struct Series {
    base: Base,
    rotate: Rotate,
    keep: Keep,
    /// Number of the current part; 0 before the first.
    number: u64,
    /// The next part. A thread creates it during the current one, so that a stalled disk blocks nobody.
    next: Option<JoinHandle<Result<(Prepared, NameLock), Error>>>,
    /// Parts that are closing.
    closing: VecDeque<JoinHandle<Result<(), Error>>>,
}

impl Series {
    /// The next parts of `base`, after the existing ones.
    pub(super) fn new(base: Base, rotate: Rotate, keep: Keep) -> Result<Self, Error> {
        let setting = |what, got: String, must| Err(ProcessError::Setting { what, got, must }.into());
        match rotate {
            Rotate::After(time) if time < Duration::from_secs(1) => {
                return setting("the length of a part", format!("{time:?}"), "give a second or more");
            }
            Rotate::Bytes(bytes) if bytes < PART_BYTES_MIN => {
                return setting("the size of a part", bytes.to_string(), "give 1M (a megabyte) or more");
            }
            _ => {}
        }
        let number = parts(&base).keys().next_back().copied().unwrap_or(0);
        Ok(Self { base, rotate, keep, number, next: None, closing: VecDeque::new() })
    }

    /// The parts of a ring, after those of an earlier recorder.
    ///
    /// # Errors
    /// [`Error::Room`] where the disk has no room for it.
    pub(super) fn ring(base: Base, plan: &RingPlan) -> Result<Self, Error> {
        let series = Self::new(base, plan.part, Keep::Parts(plan.parts))?;
        let there_bytes: u64 = parts(&series.base).values().map(|files| bytes_of(files)).sum();
        let folder = series.folder();
        let free_bytes = free_bytes(&folder).map_or(u64::MAX, |free| free.saturating_add(there_bytes));
        if free_bytes < plan.disk_bytes {
            let (what, needs_bytes) = ("the ring", plan.disk_bytes);
            return Err(Error::Room { path: folder, what, needs_bytes, free_bytes });
        }
        Ok(series)
    }

    fn folder(&self) -> PathBuf {
        folder_of(&self.base)
    }

    /// The name of the first part.
    pub(super) fn begin(&mut self) -> Base {
        self.number += 1;
        self.base.part(self.number)
    }

    /// Has the next part created.
    pub(super) fn prepare(&mut self, settings: &SigmfSettings, past_cache: bool) {
        let (base, settings) = (self.base.part(self.number + 1), settings.clone());
        let create = move || create(&base, &settings, past_cache);
        // Without a thread, it is created when needed.
        self.next = thread::Builder::new().name("sigmf-next".into()).spawn(create).ok();
    }

    /// The part that comes now.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn next(
        &mut self,
        settings: &SigmfSettings,
        past_cache: bool,
    ) -> Result<(Prepared, NameLock), Error> {
        let next =
            self.next.take().map(|next| next.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let next = match next {
            Some(Ok(next)) => next,
            // The obstacle may be gone.
            Some(Err(_)) | None => create(&self.base.part(self.number + 1), settings, past_cache)?,
        };
        self.number += 1;
        Ok(next)
    }

    /// Whether a part with this number of samples, spanning `span_samples` of the signal, is full.
    pub(super) fn is_full(&self, header: &Header, samples: u64, span_samples: u64) -> bool {
        match self.rotate {
            Rotate::After(time) => span_samples >= samples_of(time, header.sample_rate_hz),
            Rotate::Bytes(bytes) => samples.saturating_mul(frame_bytes(header)) >= bytes,
        }
    }

    /// Closes a part, then removes the oldest without room, while others continue.
    pub(super) fn close(&mut self, part: Closing) -> Result<(), Error> {
        // A disk that cannot keep up with the closing holds up the recorder before it runs out of threads.
        while self.closing.len() >= CLOSING_MAX {
            self.settle_one()?;
        }
        let (base, number, keep) = (self.base.clone(), self.number, self.keep);
        let close = move || {
            part.join()?;
            tidy(&base, number, keep);
            Ok(())
        };
        let failed = Error::file("close", &self.base.meta());
        self.closing
            .push_back(thread::Builder::new().name("sigmf-close".into()).spawn(close).map_err(failed)?);
        Ok(())
    }

    /// Checks for errors of closed parts.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        while self.closing.front().is_some_and(JoinHandle::is_finished) {
            self.settle_one()?;
        }
        Ok(())
    }

    /// Waits until all parts that were handed over are closed.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        // The next part does not come.
        self.next.take().map(JoinHandle::join);
        let mut result = Ok(());
        while !self.closing.is_empty() {
            result = result.and(self.settle_one());
        }
        result
    }

    fn settle_one(&mut self) -> Result<(), Error> {
        let Some(closing) = self.closing.pop_front() else { return Ok(()) };
        closing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn create(base: &Base, settings: &SigmfSettings, past_cache: bool) -> Result<(Prepared, NameLock), Error> {
    let name = base.lock()?;
    Ok((prepare(base, settings, past_cache)?, name))
}

/// The existing parts: their files and bytes, by number. Excludes other recordings.
fn parts(base: &Base) -> BTreeMap<u64, Vec<(PathBuf, u64)>> {
    let mut parts: BTreeMap<u64, Vec<(PathBuf, u64)>> = BTreeMap::new();
    for entry in fs::read_dir(folder_of(base)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(number) = base.part_number(&name) {
            let bytes = entry.metadata().map_or(0, |file| file.len());
            parts.entry(number).or_default().push((entry.path(), bytes));
        }
    }
    parts
}

fn folder_of(base: &Base) -> PathBuf {
    let folder = base.meta().parent().map(Path::to_owned).unwrap_or_default();
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder }
}

/// Removes the oldest parts that are not to be kept. One that was just closed always is.
fn tidy(base: &Base, newest: u64, keep: Keep) {
    if keep == Keep::All {
        return;
    }
    let mut parts = parts(base);
    // Later parts are still being written.
    parts.split_off(&newest);
    let mut sum_bytes: u64 = parts.values().map(|files| bytes_of(files)).sum();
    // The one that is written will be as large as the last that was closed.
    let next_bytes = parts.values().next_back().map_or(0, |files| bytes_of(files));
    while parts.len() > 1 {
        let is_kept = match keep {
            Keep::All => true,
            Keep::Bytes(bytes) => sum_bytes.saturating_add(next_bytes) <= bytes,
            Keep::Parts(count) => parts.len() as u64 <= count,
        };
        let Some((_, mut files)) = parts.pop_first().filter(|_| !is_kept) else { return };
        sum_bytes -= bytes_of(&files);
        // Files that name others go first: a recording never appears without its samples.
        files.sort_by(|(one, _), (other, _)| removal_order(one).cmp(&removal_order(other)));
        for (path, _) in files {
            // A reader keeps an open file until it closes it. A failed removal is retried with the next part.
            let _ = fs::remove_file(path);
        }
    }
}

/// The collection names recordings, and their metadata name samples: a recorder killed between two removals
/// leaves no reference to a missing file. The first channel stands for all of them.
fn removal_order(path: &Path) -> (u8, &Path) {
    let order = match path.extension().and_then(OsStr::to_str) {
        Some("sigmf-collection") => 0,
        Some("sigmf-data") => 2,
        _ => 1,
    };
    (order, path)
}

fn bytes_of(files: &[(PathBuf, u64)]) -> u64 {
    files.iter().map(|(_, bytes)| bytes).sum()
}

const PART_BYTES_MIN: u64 = 1_000_000;
const CLOSING_MAX: usize = 8;

/// With an unknown rate a duration has no number of samples, and does not end the recording.
pub(super) fn samples_of(duration: Duration, rate_hz: f64) -> u64 {
    if rate_hz > 0.0 { (duration.as_secs_f64() * rate_hz).round() as u64 } else { u64::MAX }
}

/// Bytes of one sample of each channel.
pub(super) fn frame_bytes(header: &Header) -> u64 {
    header.format.bytes() as u64 * u64::from(header.channel_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collection_is_removed_before_its_recordings() {
        let mut files = [
            "a_ch1.sigmf-data",
            "a_ch2.sigmf-meta",
            "a.sigmf-collection",
            "a_ch1.sigmf-meta",
            "a_ch2.sigmf-data",
        ];
        files.sort_by_key(|file| removal_order(Path::new(*file)));
        assert_eq!(files[..3], ["a.sigmf-collection", "a_ch1.sigmf-meta", "a_ch2.sigmf-meta"]);
    }

    #[test]
    fn annotations_beside_a_part_are_removed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(folder.path().join(name), "x").unwrap();
        let extensions = ["sigmf-meta", "sigmf-data", "sigmf-annotations"];
        for number in 1..=3 {
            extensions.iter().for_each(|extension| write(&format!("x_{number:06}.{extension}")));
        }
        ["x.sigmf-annotations", "x_1.sigmf-annotations"].iter().for_each(|name| write(name));
        // The last is being written.
        tidy(&Base::of(&folder.path().join("x")), 3, Keep::Parts(1));
        let names = fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let (first, others): (Vec<String>, Vec<String>) = names.partition(|name| name.contains("000001"));
        assert_eq!((first, others.len()), (Vec::new(), 8));
    }
}
