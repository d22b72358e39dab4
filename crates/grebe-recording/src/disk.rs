//! Writing files at the rate of the disk.
//!
//! ```text
//!   Appender --blocks, filled--> Engine (a thread) --> io_uring, direct        8 writes of 4 MiB under way (Linux)
//!   (copies     lent to it          |   |              threads,  direct        without io_uring; macOS, Windows
//!    once)                          |   +-- sums       threads,  page cache    where direct writes are refused
//!      ^                            v
//!      +------ Pool of blocks <-- DiskFile: how much of it is written
//! ```
//! A [`Tap`] also lends the blocks to a second reader, which may be late.
//!
//! The producer fills blocks and lends them to the engine. It waits only when all blocks are lent, so the
//! granted memory covers a stall of the disk. The page cache cannot do that: it accepts everything up to a
//! limit, and then nothing for seconds.
//!
//! A direct write, one that bypasses the page cache, begins and ends at multiples of the device's block. Bytes after the
//! last multiple move to the front of the next block. At the end, and when slow samples cannot wait for a
//! full block, they are written padded with zeros, and the next write replaces them.

mod backend;
mod engine;
mod file;
mod mailbox;
mod measure;
mod sums;
mod sys;
mod tap;
mod threads;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "hands memory to the kernel that it reads later")]
mod uring;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grebe_ring::{ChunkMut, Pool, Signal};

pub use self::backend::WriteMethod;
use self::engine::Engine;
pub(super) use self::file::DiskFile;
use self::file::Piece;
use self::mailbox::{Mailbox, Message, Progress};
pub use self::measure::{DiskMeasure, measure_disk};
pub(super) use self::sums::{SUMMED_BYTES, Summed};
pub(super) use self::tap::{Lag, Tap, Tapped};

/// Free bytes for this user on the file system of a folder; `None` if unknown.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    free_bytes_of(&open_folder(folder).ok()?)
}

/// The same for an open file or folder.
pub(super) fn free_bytes_of(file: &File) -> Option<u64> {
    sys::free_bytes(file)
}

/// Opens a folder for [`free_bytes_of`].
pub(super) fn open_folder(folder: &Path) -> io::Result<File> {
    sys::open_folder(folder)
}

/// Memory, and a thread that writes its content. When dropped, it ends after all handed-over blocks.
#[derive(Debug)]
pub(super) struct Disk {
    pool: Pool<()>,
    home: Arc<Signal>,
    mailbox: Mailbox,
    progress: Arc<Progress>,
    method: WriteMethod,
    thread: Option<JoinHandle<()>>,
}

/// How the disk kept up with a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskReport {
    /// How the data are written: never [`WriteMethod::Best`].
    pub method: WriteMethod,
    /// Whether the page cache is bypassed.
    pub is_direct: bool,
    /// The longest time in which no write came back although some were under way.
    pub longest_stall: Duration,
    /// Total time for which memory was exhausted and the recorder waited for the disk.
    pub waited: Duration,
    /// Bytes that wait for the disk, or are on the way to it, now.
    pub fill_bytes: u64,
    /// The most that they were.
    pub fill_bytes_max: u64,
    /// The most that they can be.
    pub buffer_bytes: u64,
    /// Bytes of which no checksum was made, because the disk took all the time there was.
    pub unsummed_bytes: u64,
    /// Recordings, or parts of one, without a summary, because the processor had no time for it.
    pub lost_summaries: u64,
    /// The same of spectral summaries.
    pub lost_spectra: u64,
}

impl DiskReport {
    /// Combines the reports of two disks of a recording: sums of counts, the longer of maxima.
    pub(super) fn beside(&self, other: &Self) -> Self {
        Self {
            method: if self.method == other.method { self.method } else { WriteMethod::Threads },
            is_direct: self.is_direct && other.is_direct,
            longest_stall: self.longest_stall.max(other.longest_stall),
            waited: self.waited + other.waited,
            fill_bytes: self.fill_bytes + other.fill_bytes,
            fill_bytes_max: self.fill_bytes_max + other.fill_bytes_max,
            buffer_bytes: self.buffer_bytes + other.buffer_bytes,
            unsummed_bytes: self.unsummed_bytes + other.unsummed_bytes,
            lost_summaries: self.lost_summaries + other.lost_summaries,
            lost_spectra: self.lost_spectra + other.lost_spectra,
        }
    }
}

/// The end of a file, held by its producer.
#[derive(Debug)]
pub(super) struct Appender {
    file: Arc<DiskFile>,
    block: Option<ChunkMut<()>>,
    /// Bytes in the block; the first `carried` of them were handed over before.
    fill: usize,
    carried: usize,
    /// Offset of the block in the file.
    offset: u64,
    /// Whether a block was handed over since the last call of [`Appender::cut_if_idle`].
    is_moving: bool,
    /// Other readers of the blocks.
    taps: Vec<Tap>,
}

impl Disk {
    /// Begins to write for `files` files at a time with this much memory.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(buffer_bytes: usize, files: usize, method: WriteMethod) -> io::Result<Self> {
        let block_bytes = block_bytes(buffer_bytes, files);
        // One block to fill per file, and as many again; otherwise the producer would wait for each write.
        let blocks = (buffer_bytes / block_bytes).max(2 * files + 1);
        let home = Arc::new(Signal::new());
        let mut pool = Pool::new(blocks, block_bytes, || ());
        pool.wake_on_return(home.clone());
        let progress = Arc::new(Progress::default());
        let (messages, inbox) = mpsc::channel();
        let backend = engine::backend(method, messages.clone());
        let mailbox = Mailbox { messages, bell: backend.bell() };
        let method = backend.method();
        let engine = Engine::new(inbox, backend, progress.clone(), blocks, block_bytes);
        let thread = thread::Builder::new().name("disk".into()).spawn(move || engine.run())?;
        Ok(Self { pool, home, mailbox, progress, method, thread: Some(thread) })
    }

    /// Continues after the bytes that a file has ([`DiskFile::begun`]); `tail` holds those after the last
    /// multiple of its alignment.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append_behind(&mut self, file: DiskFile, tail: &[u8]) -> io::Result<Appender> {
        let offset = file.good_bytes() - tail.len() as u64;
        let mut end = Appender::new(file);
        end.make_room(self)?;
        end.extend(tail.len()).copy_from_slice(tail);
        (end.offset, end.carried) = (offset, tail.len());
        Ok(end)
    }

    /// Lends the blocks of these files to a second reader, with up to half of the memory. `may_wait`: the
    /// producer waits for that reader.
    pub(super) fn tap<'a>(
        &self,
        files: impl ExactSizeIterator<Item = &'a mut Appender>,
        may_wait: bool,
    ) -> (Receiver<Tapped>, Arc<Lag>) {
        let blocks_max = (self.pool.chunks() / 2).max(files.len());
        let (taps, blocks, lag) = tap::taps(files.len(), blocks_max, may_wait);
        files.zip(taps).for_each(|(file, tap)| file.taps.push(tap));
        (blocks, lag)
    }

    /// Whether files are to be opened so that they bypass the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.method != WriteMethod::PageCache
    }

    /// Blocks that can be had without a wait: a walk of their list, for once a block.
    pub(super) fn free_blocks(&self) -> usize {
        self.pool.available()
    }

    /// Memory that is being filled, or waits for the disk; the same walk.
    pub(super) fn lent_bytes(&self) -> u64 {
        ((self.pool.chunks() - self.pool.available()) * self.pool.chunk_bytes()) as u64
    }

    /// Totals so far, including those of earlier files.
    pub(super) fn report(&self, file: &DiskFile) -> DiskReport {
        let value = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let progress = &*self.progress;
        DiskReport {
            method: self.method,
            is_direct: file.is_direct(),
            longest_stall: Duration::from_micros(value(&progress.longest_stall_us)),
            waited: Duration::from_micros(value(&progress.waited_us)),
            fill_bytes: value(&progress.fill_bytes),
            fill_bytes_max: value(&progress.fill_bytes_max),
            buffer_bytes: (self.pool.chunks() * self.pool.chunk_bytes()) as u64,
            unsummed_bytes: value(&progress.unsummed_bytes),
            lost_summaries: 0,
            lost_spectra: 0,
        }
    }

    /// A block, once there is one; `None` after a while without.
    fn block(&mut self) -> Option<ChunkMut<()>> {
        if let Some(block) = self.pool.acquire() {
            return Some(block);
        }
        let began = Instant::now();
        self.home.wait(LOOK_EVERY, || self.pool.has_free());
        let waited_us = began.elapsed().as_micros() as u64;
        // Only this thread writes it.
        let before_us = self.progress.waited_us.load(Ordering::Relaxed);
        self.progress.waited_us.store(before_us + waited_us, Ordering::Relaxed);
        self.pool.acquire()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.mailbox.send(Message::End);
        if let Some(thread) = self.thread.take() {
            // A panic of the engine is already printed; its writes are counted.
            let _ = thread.join();
        }
    }
}

impl Appender {
    /// Begins a file at its first byte. The file is empty, open for writing, and has no other writer.
    pub(super) fn new(file: DiskFile) -> Self {
        let file = Arc::new(file);
        Self { file, block: None, fill: 0, carried: 0, offset: 0, is_moving: false, taps: Vec::new() }
    }

    /// The file.
    pub(super) fn file(&self) -> &Arc<DiskFile> {
        &self.file
    }

    /// Appends bytes, however many; waits for memory as [`make_room`](Self::make_room) does.
    ///
    /// # Errors
    /// The file cannot be written any further.
    pub(super) fn write(&mut self, disk: &mut Disk, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.room().min(bytes.len());
            if count == 0 {
                self.make_room(disk)?;
                continue;
            }
            let (now, rest) = bytes.split_at(count);
            self.extend(count).copy_from_slice(now);
            bytes = rest;
        }
        Ok(())
    }

    /// Bytes that can be appended until the block has to be handed over; 0 until there is one.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes().len() - self.fill)
    }

    /// The next `length` bytes of the file, to be written by the caller; there is room.
    #[inline]
    pub(super) fn extend(&mut self, length: usize) -> &mut [u8] {
        let begin = self.fill;
        self.fill += length;
        match &mut self.block {
            Some(block) => &mut block.bytes_mut()[begin..begin + length],
            None => &mut [],
        }
    }

    /// Hands over full blocks, and gets memory for more; waits while all memory is on its way to the disk.
    ///
    /// # Errors
    /// The file cannot be written any further.
    #[cold]
    pub(super) fn make_room(&mut self, disk: &mut Disk) -> io::Result<()> {
        loop {
            if let Some(error) = self.file.failure() {
                return Err(error);
            }
            if let Some(next) = disk.block() {
                let whole = self.fill - self.fill % self.file.alignment();
                self.replace(disk, next, whole);
                return Ok(());
            }
        }
    }

    /// Hands over data that have waited since the last call; does not wait.
    pub(super) fn cut_if_idle(&mut self, disk: &mut Disk) {
        if !std::mem::take(&mut self.is_moving)
            && self.fill > self.carried
            && let Some(next) = disk.pool.acquire()
        {
            self.replace(disk, next, self.fill);
        }
        self.is_moving = false;
    }

    /// Hands over all there is; waits for memory to go on in.
    ///
    /// # Errors
    /// The file cannot be written any further.
    pub(super) fn cut(&mut self, disk: &mut Disk) -> io::Result<()> {
        while self.fill > self.carried {
            if let Some(error) = self.file.failure() {
                return Err(error);
            }
            if let Some(next) = disk.block() {
                self.replace(disk, next, self.fill);
            }
        }
        Ok(())
    }

    /// Hands over all there is; nothing is appended afterwards.
    pub(super) fn finish(&mut self, disk: &Disk) {
        if let Some(block) = self.block.take().filter(|_| self.fill > self.carried) {
            self.hand_over(disk, block, self.fill);
        }
    }

    /// Nobody else gets to see any more of it.
    pub(super) fn untap(&mut self) {
        self.taps.clear();
    }

    /// Discards data not yet handed over.
    pub(super) fn discard(&mut self) {
        self.block = None;
        (self.fill, self.carried) = (0, 0);
    }

    /// Hands over `length` bytes of the block. The next block begins with the bytes that must be written
    /// again or were not yet written.
    fn replace(&mut self, disk: &Disk, mut next: ChunkMut<()>, length: usize) {
        let Some(block) = self.block.take() else {
            self.block = Some(next);
            return;
        };
        let whole = length - length % self.file.alignment();
        let rest = whole..self.fill;
        next.bytes_mut()[..rest.len()].copy_from_slice(&block.bytes()[rest.clone()]);
        let (offset, carried) = (self.offset + whole as u64, length - whole);
        if length > self.carried {
            self.hand_over(disk, block, length);
        }
        (self.block, self.fill, self.carried, self.offset) = (Some(next), rest.len(), carried, offset);
    }

    fn hand_over(&mut self, disk: &Disk, mut block: ChunkMut<()>, length: usize) {
        let padded = length.next_multiple_of(self.file.alignment());
        block.bytes_mut()[length..padded].fill(0);
        self.file.expect();
        let (file, lease, new) = (self.file.clone(), block.freeze(), self.carried..length);
        for tap in &self.taps {
            tap.take(&lease, new.clone());
        }
        disk.mailbox.send(Message::Write(Piece { file, lease, range: 0..padded, new, offset: self.offset }));
        (self.fill, self.carried, self.is_moving) = (0, 0, true);
    }
}

/// As large as a disk wants, and small enough that the buffer has several per file and for writes in flight.
fn block_bytes(buffer_bytes: usize, files: usize) -> usize {
    let share = buffer_bytes / (2 * files + backend::DEPTH);
    share.checked_ilog2().map_or(0, |bits| 1 << bits).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
}

/// With 8 of them under way: docs/benchmarks-recording.md has what others reach.
const BLOCK_BYTES_MAX: usize = 4 << 20;
const BLOCK_BYTES_MIN: usize = 64 << 10;
/// Maximum delay until a producer that waits for memory notices a failed file.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
