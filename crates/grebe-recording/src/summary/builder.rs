//! Making a summary: while a recording is written, or while it is read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use grebe_frame::SampleFormat;

use super::block::{BlockBuilder, SUMS_LOG2};
use super::format::{HEAD_BYTES, Head, Stamp, block_log2};
use super::nodes::{Lanes, LevelSums};
use super::reader::Summary;

/// Writes the summary of a recording, block by block, beside its final name; written blocks are readable at
/// once.
///
/// Costs a pass over the samples while they are in the cache, and a write of about 1.3 % of their bytes for
/// each block of about 32 MB.
#[derive(Debug)]
pub(super) struct SummaryWriter {
    lanes: Lanes,
    channels: u32,
    block_log2: u32,
    file: File,
    /// Temporary path, and final path.
    beside: PathBuf,
    path: PathBuf,
    block: BlockBuilder,
    bytes: Vec<u8>,
    /// Sums of the stretches that ended since the last block, and of the one that has not.
    sums: Vec<(Vec<LevelSums>, LevelSums)>,
    samples: u64,
    summary: Arc<Summary>,
    is_whole: bool,
}

impl SummaryWriter {
    /// Begins a summary that will be called `path`.
    ///
    /// # Errors
    /// The system's error for the file that is written beside the recording.
    pub(super) fn create(path: &Path, format: SampleFormat, channels: usize) -> io::Result<Self> {
        let lanes = Lanes::new(format, channels);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        remove_left_over(path);
        // One of two that make the same is the last.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_file_name(format!(".{name}.{}.{number}{PART}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&beside)?;
        if cfg!(unix) {
            // Marks it as being written; a file system without locks does not block anyone.
            let _ = file.try_lock();
        }
        file.write_all(&[0; HEAD_BYTES])?;
        let summary = Arc::new(Summary::begin(lanes, File::open(&beside)?));
        Ok(Self {
            lanes,
            channels: channels as u32,
            block_log2: block_log2(lanes),
            file,
            beside,
            path: path.to_owned(),
            block: BlockBuilder::new(lanes, block_log2(lanes)),
            bytes: Vec::new(),
            sums: vec![Default::default(); lanes.count],
            samples: 0,
            summary,
            is_whole: false,
        })
    }

    /// The summary of the samples so far, which grows.
    pub(super) fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    /// Its final path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Samples per channel that were appended.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Bytes of these samples.
    pub(super) fn data_bytes(&self) -> u64 {
        self.samples * self.lanes.format.bytes() as u64 * u64::from(self.channels)
    }

    /// Takes the next samples: the bytes of each channel as a frame has them, all of one length.
    ///
    /// # Errors
    /// The system's error for the file. Drop the summary then.
    pub(super) fn append(&mut self, channels: &[&[u8]]) -> io::Result<()> {
        let sample_bytes = self.lanes.format.bytes();
        let length = channels.iter().map(|channel| channel.len() / sample_bytes).min().unwrap_or(0);
        let mut part = Vec::with_capacity(channels.len());
        let mut at = 0;
        while at < length {
            let to_step = STEP_SAMPLES - self.samples % STEP_SAMPLES;
            let now = (length - at).min(to_step as usize);
            part.clear();
            part.extend(
                channels.iter().map(|channel| &channel[at * sample_bytes..(at + now) * sample_bytes]),
            );
            self.samples += now as u64;
            let sums = &mut self.sums;
            self.block.add(&part, now as u64, |lane, sum| sums[lane].1.merge(sum));
            if self.samples.is_multiple_of(1 << SUMS_LOG2) {
                for (ended, open) in &mut self.sums {
                    ended.push(std::mem::take(open));
                }
            }
            if self.samples.is_multiple_of(1 << self.block_log2) {
                self.end_block()?;
            }
            at += now;
        }
        Ok(())
    }

    /// Writes the rest and gives the summary its name, for the data that `stamp` identifies.
    ///
    /// # Errors
    /// The system's error for the file.
    pub(super) fn finish(mut self, stamp: Stamp) -> io::Result<Arc<Summary>> {
        if self.block.samples() > 0 {
            for (ended, open) in &mut self.sums {
                if open.count > 0 {
                    ended.push(std::mem::take(open));
                }
            }
            self.end_block()?;
        }
        let coarse = self.summary.coarse().encode();
        self.file.write_all(&coarse)?;
        let head = Head {
            format: self.lanes.format,
            channels: self.channels,
            block_log2: self.block_log2,
            samples: self.samples,
            stamp,
            coarse_checksum: crc32c::crc32c(&coarse),
        };
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&head.encode())?;
        fs::rename(&self.beside, &self.path)?;
        self.is_whole = true;
        Ok(Arc::clone(&self.summary))
    }

    fn end_block(&mut self) -> io::Result<()> {
        let nodes = self.block.take(&mut self.bytes);
        self.file.write_all(&self.bytes)?;
        let lanes = self.lanes;
        let sums = &mut self.sums;
        self.summary.learn(self.samples, |coarse| {
            for (lane, nodes) in nodes.iter().enumerate() {
                coarse.append(lanes, lane, nodes);
                coarse.sums[lane].append(&mut sums[lane].0);
            }
        });
        Ok(())
    }
}

/// Removes files of killed processes: they hold no lock any more.
pub(crate) fn remove_left_over(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_ours = |file: &str| file.starts_with(&format!(".{name}.")) && file.ends_with(PART);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_left = || {
            let mut options = OpenOptions::new();
            options.write(true);
            // A lock would keep its own writer from reading it.
            #[cfg(windows)]
            std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
            let file = options.open(entry.path()).ok()?;
            if cfg!(unix) { file.try_lock().ok() } else { Some(()) }
        };
        if entry.file_name().to_str().is_some_and(is_ours) && is_left().is_some() {
            // A process that cannot remove it cannot write here either.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Samples processed at a time, lane after lane: they fit into part of the second-level cache, with all nodes
/// that end with a sample.
const STEP_SAMPLES: u64 = 1 << 13;
/// How a summary is called that is not whole.
const PART: &str = ".part";

impl Drop for SummaryWriter {
    fn drop(&mut self) {
        if !self.is_whole {
            // Nobody can use it; where it cannot be removed, it is only in the way.
            let _ = fs::remove_file(&self.beside);
        }
    }
}
