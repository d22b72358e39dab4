//! A file that is being written, as all sides share it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use grebe_ring::Lease;

use super::sums::{Summed, Sums};
use super::sys::{self, Direct};

/// A file that is being written from its beginning to its end.
#[derive(Debug)]
pub(crate) struct DiskFile {
    path: PathBuf,
    file: File,
    /// The way past the page cache, if the file has one.
    direct: Option<Direct>,
    is_direct: AtomicBool,
    /// From the beginning on, without a hole.
    good_bytes: AtomicU64,
    /// Pieces handed over and not yet written. Atomic, like the next field, because the state is locked while
    /// the system makes room and sums are computed: the producer never waits for that.
    under_way: AtomicUsize,
    /// Bytes reserved on the disk after the begun ones.
    spare_bytes: AtomicU64,
    has_failed: AtomicBool,
    state: Mutex<State>,
    /// Something was written, or the file has failed.
    changed: Condvar,
    #[cfg(test)]
    room_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Pieces that the system has.
    in_flight: usize,
    /// End of the bytes handed to the system, padding included.
    begun_bytes: u64,
    /// End of the range that was requested from the disk, that the disk granted, and of the file.
    reserved_bytes: u64,
    taken_bytes: u64,
    long_bytes: u64,
    /// Ranges written after a hole.
    beyond: Vec<(u64, u64)>,
    /// Reason why the file ends before the handed-over data.
    failure: Option<Failure>,
    sums: Sums,
}

/// A copyable error of the system.
#[derive(Debug)]
struct Failure {
    code: Option<i32>,
    kind: io::ErrorKind,
    words: String,
}

/// Next step for a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Write,
    /// It begins where a piece in flight ends.
    Wait,
    /// The file has failed.
    Drop,
}

/// A stretch of a file, on its way to the disk.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) file: Arc<DiskFile>,
    pub(super) lease: Lease<()>,
    /// Range of the block that is written, and where its new bytes begin.
    pub(super) range: Range<usize>,
    pub(super) new: Range<usize>,
    /// Position of the block in the file.
    pub(super) offset: u64,
}

impl DiskFile {
    /// A file that is empty and open for writing. `past_cache`: where the system and the file system let writes
    /// bypass the page cache, they do. `sha512`: whether that is computed, too.
    pub(crate) fn new(path: PathBuf, file: File, past_cache: bool, sums: bool, sha512: bool) -> Self {
        let direct = if past_cache { sys::go_direct(&file) } else { None };
        Self {
            path,
            file,
            is_direct: direct.is_some().into(),
            direct,
            good_bytes: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            spare_bytes: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            state: Mutex::new(State { sums: Sums::new(sums, sha512), ..State::default() }),
            changed: Condvar::new(),
            #[cfg(test)]
            room_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// A file that already has `bytes` bytes, which stay.
    pub(crate) fn begun(mut self, bytes: u64) -> Self {
        self.good_bytes = bytes.into();
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).begun_bytes = bytes;
        self
    }

    /// A file that will have `bytes` bytes. Reserves all of them at once if the disk has that room, else in
    /// steps.
    pub(crate) fn expecting(mut self, bytes: u64) -> Self {
        let bytes = bytes.next_multiple_of(self.alignment() as u64);
        let begun = self.good_bytes.load(Ordering::Relaxed);
        if self.is_direct()
            && bytes > begun
            && sys::reserve(&self.file, begun, bytes).is_ok()
            && self.file.set_len(bytes).is_ok()
        {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            (state.reserved_bytes, state.taken_bytes, state.long_bytes) = (bytes, bytes, bytes);
        }
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether it bypasses the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct.load(Ordering::Relaxed)
    }

    /// Bytes from the beginning on that the system has written.
    pub(crate) fn good_bytes(&self) -> u64 {
        self.good_bytes.load(Ordering::Acquire)
    }

    /// Room on the disk that was taken ahead of the writing.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.spare_bytes.load(Ordering::Relaxed)
    }

    /// Why nothing more can be written, where that is so.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        if !self.has_failed.load(Ordering::Acquire) {
            return None;
        }
        self.state().failure.as_ref().map(Failure::error)
    }

    /// Waits until all that was handed over is written, or will never be.
    pub(crate) fn settle(&self) {
        let mut state = self.state();
        while self.under_way.load(Ordering::Acquire) > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The sums of the first `bytes` bytes, as far as there are any.
    pub(crate) fn summed(&self, bytes: u64) -> Summed {
        self.state().sums.summed(bytes)
    }

    /// Waits until the written data and the file's length are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let result = self.file.sync_data();
        // The system reports lost data only once.
        if let Err(error) = &result {
            self.note(&mut self.state(), error);
        }
        result
    }

    /// Truncates the completely written file to its length, and waits until it is on the disk.
    pub(crate) fn close(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.file.sync_all()
    }

    /// Writes begin and end at multiples of it.
    pub(crate) fn alignment(&self) -> usize {
        if self.direct.is_some() { sys::ALIGNMENT } else { 1 }
    }

    /// One write; how much of it was taken.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let direct = self.direct.as_ref().filter(|_| self.is_direct());
        sys::write_at(&self.file, direct, bytes, offset)
    }

    /// One more piece will come.
    pub(super) fn expect(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides whether a waiting piece may be written now. It may if the answer is [`Turn::Write`].
    pub(super) fn begin(&self, piece: &Piece) -> Turn {
        let mut state = self.state();
        if state.failure.is_some() {
            self.under_way.fetch_sub(1, Ordering::Release);
            self.changed.notify_all();
            return Turn::Drop;
        }
        let begin_bytes = piece.offset + piece.range.start as u64;
        if begin_bytes < state.begun_bytes && state.in_flight > 0 {
            return Turn::Wait;
        }
        state.in_flight += 1;
        state.begun_bytes = state.begun_bytes.max(piece.offset + piece.range.end as u64);
        if self.is_direct() {
            state.make_room(&self.file);
            let spare_bytes = state.taken_bytes.saturating_sub(state.begun_bytes);
            self.spare_bytes.store(spare_bytes, Ordering::Relaxed);
        }
        Turn::Write
    }

    /// A piece was written.
    pub(super) fn complete(&self, piece: &Piece) {
        let mut state = self.state();
        let new = (piece.offset + piece.new.start as u64, piece.offset + piece.new.end as u64);
        let good_bytes = state.enter(self.good_bytes.load(Ordering::Relaxed), new);
        self.good_bytes.store(good_bytes, Ordering::Release);
        self.leave(state);
    }

    /// A piece cannot be written.
    pub(super) fn fail(&self, error: &io::Error) {
        let mut state = self.state();
        self.note(&mut state, error);
        self.leave(state);
    }

    /// From here on through the page cache.
    pub(super) fn go_buffered(&self) {
        self.is_direct.store(false, Ordering::Relaxed);
        sys::go_buffered(&self.file);
    }

    /// Sums the next `length` bytes; `bytes` is `None` to skip them. Returns the skipped bytes.
    pub(super) fn sum(&self, bytes: Option<&[u8]>, length: usize) -> u64 {
        self.state().sums.add(bytes, length)
    }

    /// Whether the disk has no room up to there.
    #[cfg(test)]
    pub(super) fn is_full(&self, end: u64) -> bool {
        end > self.room_bytes.load(Ordering::Relaxed)
    }

    /// Simulates a disk that is full after `room_bytes`.
    #[cfg(test)]
    pub(crate) fn limit(&self, room_bytes: u64) {
        self.room_bytes.store(room_bytes, Ordering::Relaxed);
    }

    fn note(&self, state: &mut State, error: &io::Error) {
        state.failure.get_or_insert(Failure::of(error));
        self.has_failed.store(true, Ordering::Release);
    }

    fn leave(&self, mut state: MutexGuard<'_, State>) {
        state.in_flight -= 1;
        self.under_way.fetch_sub(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Extends the file on the disk ahead of the begun writes, because a write that extends it blocks all
    /// others. The steps grow with the file, so a short one takes little. Without room or support, the
    /// writes find out.
    fn make_room(&mut self, file: &File) {
        if self.begun_bytes > self.reserved_bytes {
            let step_bytes = (self.begun_bytes / 2).clamp(RESERVED_BYTES_MIN, RESERVED_BYTES_MAX);
            let end_bytes = self.begun_bytes + step_bytes;
            // Closing the file returns the unused part.
            if sys::reserve(file, self.reserved_bytes, end_bytes).is_ok() {
                self.taken_bytes = end_bytes;
            }
            self.reserved_bytes = end_bytes;
        }
        if self.begun_bytes > self.long_bytes {
            // Less than the reserved range, because a killed recorder leaves this many zeros at the end.
            self.long_bytes = self.begun_bytes + (self.begun_bytes / 2).min(LONGER_BYTES_MAX);
            let _ = file.set_len(self.long_bytes);
        }
    }

    /// Enters written bytes; returns the end of the range without a hole.
    fn enter(&mut self, mut good_bytes: u64, new: (u64, u64)) -> u64 {
        self.beyond.push(new);
        while let Some(next) = self.beyond.iter().position(|&(begin, _)| begin <= good_bytes) {
            good_bytes = good_bytes.max(self.beyond.swap_remove(next).1);
        }
        good_bytes
    }
}

impl Failure {
    fn of(error: &io::Error) -> Self {
        Self { code: error.raw_os_error(), kind: error.kind(), words: error.to_string() }
    }

    fn error(&self) -> io::Error {
        let told = || io::Error::new(self.kind, self.words.clone());
        self.code.map_or_else(told, io::Error::from_raw_os_error)
    }
}

const RESERVED_BYTES_MIN: u64 = 1 << 20;
/// Reserving waits for all writes under way: twice a second at the rate of a fast disk.
const RESERVED_BYTES_MAX: u64 = 1 << 30;
const LONGER_BYTES_MAX: u64 = 64 << 20;
