//! Measures a disk with the write pattern of a recorder.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_ring::Cancel;

use super::{Appender, Disk, DiskFile, DiskReport, WriteMethod, sys};
use crate::error::Error;

/// Result of a disk measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskMeasure {
    /// Bytes written, and how long that took until they were on the disk.
    pub bytes: u64,
    /// See `bytes`.
    pub time: Duration,
    /// Bytes per second in each whole second of it; in the whole time where it was shorter than two.
    pub rates_bytes_s: Vec<f64>,
    /// How they were written, and the longest stall.
    pub report: DiskReport,
}

impl DiskMeasure {
    /// Rate of the slowest second.
    pub fn slowest_bytes_s(&self) -> f64 {
        self.rates_bytes_s.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Writes a file without a name into `folder`, as fast as the disk takes it, for `duration` or until it has
/// `bytes_max`, and removes it. Without `bytes_max` it takes a third of the room there is.
///
/// # Errors
/// [`Error::File`] where nothing can be written there, [`Error::Write`] where the disk is full or fails;
/// [`Error::Cancelled`].
pub fn measure_disk(
    folder: &Path,
    duration: Duration,
    bytes_max: Option<u64>,
    cancel: &Cancel,
    progress: &mut dyn FnMut(u64, Duration),
) -> Result<DiskMeasure, Error> {
    let path = folder.join(format!(".grebe-disk-{}", std::process::id()));
    let failed = |source| Error::File { action: "write into", path: folder.to_owned(), source };
    let mut disk = Disk::start(BUFFER_BYTES, 1, WriteMethod::Best).map_err(failed)?;
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    // Leaves nothing behind: where an open file must keep its name, it is removed at the end.
    let is_removed = cfg!(unix) && fs::remove_file(&path).is_ok();
    let room_bytes = sys::free_bytes(&file).map_or(UNKNOWN_ROOM_BYTES, |bytes| bytes / 3);
    let end = Appender::new(DiskFile::new(path.clone(), file, disk.is_direct(), false, false));
    let bytes_max = bytes_max.unwrap_or(room_bytes);
    let mut run = Run { began: Instant::now(), rates_bytes_s: Vec::new(), last: (Instant::now(), 0) };
    let result = run.write(&mut disk, end, duration, bytes_max, cancel, progress);
    if !is_removed {
        let _ = fs::remove_file(&path);
    }
    result
}

struct Run {
    began: Instant,
    rates_bytes_s: Vec<f64>,
    /// When the last second began, and how much was written until then.
    last: (Instant, u64),
}

impl Run {
    fn write(
        &mut self,
        disk: &mut Disk,
        mut end: Appender,
        duration: Duration,
        bytes_max: u64,
        cancel: &Cancel,
        progress: &mut dyn FnMut(u64, Duration),
    ) -> Result<DiskMeasure, Error> {
        let noise = noise();
        let file = end.file().clone();
        let failed = |source| Error::Write { path: file.path().to_owned(), source, good_samples: 0 };
        if bytes_max == 0 {
            return Err(failed(io::ErrorKind::StorageFull.into()));
        }
        let mut taken_bytes = 0;
        while self.began.elapsed() < duration && taken_bytes < bytes_max {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if end.room() == 0 {
                end.make_room(disk).map_err(failed)?;
            }
            let length = end.room().min(noise.len());
            end.extend(length).copy_from_slice(&noise[..length]);
            taken_bytes += length as u64;
            self.look(file.good_bytes(), progress);
        }
        end.finish(disk);
        file.settle();
        if let Some(source) = file.failure() {
            return Err(failed(source));
        }
        let bytes = file.good_bytes();
        self.look(bytes, progress);
        file.sync().map_err(failed)?;
        let (time, report) = (self.began.elapsed(), disk.report(&file));
        if self.rates_bytes_s.is_empty() {
            self.rates_bytes_s.push(bytes as f64 / time.as_secs_f64());
        }
        Ok(DiskMeasure { bytes, time, rates_bytes_s: std::mem::take(&mut self.rates_bytes_s), report })
    }

    /// Notes the rate once a second.
    fn look(&mut self, good_bytes: u64, progress: &mut dyn FnMut(u64, Duration)) {
        let (since, before) = self.last;
        let time = since.elapsed();
        if time >= Duration::from_secs(1) {
            self.rates_bytes_s.push((good_bytes - before) as f64 / time.as_secs_f64());
            self.last = (Instant::now(), good_bytes);
            progress(good_bytes, self.began.elapsed());
        }
    }
}

/// Data that no disk can compress.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..NOISE_BYTES / 8).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Assumed if the system does not report the free space.
const UNKNOWN_ROOM_BYTES: u64 = 8 << 30;
/// As a recorder has it.
const BUFFER_BYTES: usize = 256 << 20;
/// Longer than the window in which a disk looks for repetitions, small enough for a cache.
const NOISE_BYTES: usize = 1 << 20;
