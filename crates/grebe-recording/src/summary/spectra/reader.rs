//! Answers from a spectral summary: one that is whole, or one that is still being made.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::layout::{LEVELS, Layout, SpectralRow, decode, rows_of};
use crate::summary::format::{Head, Kind, ROW_LOG2};
use crate::summary::nodes::Lanes;

/// The highest and the mean power of the samples of a recording by time and frequency, by place in its file: of transforms of 1024
/// samples with Hann's window, half over one another. 0 dBFS is what [`grebe_scope::Spectrum`] says.
///
/// A summary may still grow while it is read: [`known_samples`](Self::known_samples) is its current extent.
#[derive(Debug)]
pub struct SpectralSummary {
    lanes: Lanes,
    layout: Layout,
    known_samples: AtomicU64,
    /// Of the shortest rows.
    rows: AtomicU64,
    /// Whether the last row of each level is there, however short.
    is_whole: AtomicBool,
    file: Mutex<(File, Vec<u8>)>,
}

impl SpectralSummary {
    /// Opens a spectral summary of any recording; `None` if it is damaged.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::open_if(path, |_| true)
    }

    pub(super) fn open_if(path: &Path, is_wanted: impl Fn(&Head) -> bool) -> io::Result<Option<Self>> {
        let Some((file, head)) = Head::open(path, Kind::Spectra, is_wanted)? else { return Ok(None) };
        let summary = Self::begin(head.lanes(), file);
        let rows = head.samples.div_ceil(1 << ROW_LOG2);
        if summary.file().0.metadata()?.len() != summary.layout.file_bytes(rows) {
            return Ok(None);
        }
        summary.end(head.samples, rows);
        Ok(Some(summary))
    }

    /// One that begins: nothing is known yet.
    pub(super) fn begin(lanes: Lanes, file: File) -> Self {
        Self {
            lanes,
            layout: Layout::new(lanes),
            known_samples: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            is_whole: AtomicBool::new(false),
            file: Mutex::new((file, Vec::new())),
        }
    }

    /// So many of the shortest rows, and those that end with them, are written.
    pub(super) fn learn(&self, rows: u64) {
        self.rows.store(rows, Ordering::Release);
        self.known_samples.store(rows << ROW_LOG2, Ordering::Release);
    }

    /// All rows of these samples are written.
    pub(super) fn end(&self, samples: u64, rows: u64) {
        self.rows.store(rows, Ordering::Release);
        self.is_whole.store(true, Ordering::Release);
        self.known_samples.store(samples, Ordering::Release);
    }

    /// Samples per channel, from the first on, that it knows.
    pub fn known_samples(&self) -> u64 {
        self.known_samples.load(Ordering::Acquire)
    }

    /// log2 of the samples of the longest rows that are not longer than `1 << log2`; `None` below the shortest.
    pub fn level(log2: u32) -> Option<u32> {
        let levels = (0..LEVELS as u32).map(|level| ROW_LOG2 + 2 * level);
        levels.take_while(|&level| level <= log2).last()
    }

    /// Reads the row of a channel that is of the samples `number << log2 .. (number + 1) << log2`, as far as they are known; `log2` as
    /// [`level`](Self::level) says. Of samples that have no such row yet, it is made of shorter rows.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a row, channel or level that does not exist; [`ErrorKind::InvalidData`] if
    /// the file is damaged; the system's error.
    pub fn row(&self, channel: usize, log2: u32, number: u64, row: &mut SpectralRow) -> io::Result<()> {
        let level = log2.checked_sub(ROW_LOG2).filter(|above| above.is_multiple_of(2)).map(|above| above / 2);
        let level = level.map(|level| level as usize).filter(|&level| level < LEVELS);
        // In this order: rows are written before they count.
        let is_whole = self.is_whole.load(Ordering::Acquire);
        let rows = self.rows.load(Ordering::Acquire);
        match level {
            Some(level) if channel < self.channels() && number < rows_of(level, rows) => {
                self.row_of(channel, level, number, (rows, is_whole), row)
            }
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    fn row_of(
        &self,
        channel: usize,
        level: usize,
        number: u64,
        (rows, is_whole): (u64, bool),
        row: &mut SpectralRow,
    ) -> io::Result<()> {
        let is_there = if is_whole {
            level < Layout::levels(rows)
        } else {
            (number + 1).checked_shl(2 * level as u32).is_some_and(|end| end <= rows)
        };
        if is_there {
            return self.read(self.layout.row_at(level, number, channel, rows), level, row);
        }
        let bins = self.layout.bins(level);
        row.highest.clear();
        row.highest.resize(bins, f32::NEG_INFINITY);
        row.mean.clear();
        row.mean.resize(bins, 0.0);
        let shorter = number * 4..(number * 4 + 4).min(rows_of(level - 1, rows));
        let each = 1.0 / (shorter.end - shorter.start) as f32;
        let mut part = SpectralRow::default();
        for number in shorter {
            self.row_of(channel, level - 1, number, (rows, is_whole), &mut part)?;
            let wider = bins / part.mean.len();
            for bin in 0..bins {
                row.highest[bin] = row.highest[bin].max(part.highest[bin / wider]);
                row.mean[bin] += 10f32.powf(part.mean[bin / wider] / 10.0) * each;
            }
        }
        row.mean.iter_mut().for_each(|mean| *mean = 10.0 * mean.log10());
        Ok(())
    }

    fn read(&self, at: u64, level: usize, row: &mut SpectralRow) -> io::Result<()> {
        let (file, bytes) = &mut *self.file();
        bytes.resize(self.layout.row_bytes(level), 0);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)?;
        if decode(bytes, row) { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    fn channels(&self) -> usize {
        self.lanes.count / self.lanes.of_channel
    }

    fn file(&self) -> MutexGuard<'_, (File, Vec<u8>)> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
