//! Checksums of written data, from memory: nothing is read again.

use std::fmt;
use std::hash::Hasher;

use ring::digest::{Context, SHA512};
use twox_hash::XxHash3_64;

use crate::hexadecimal::hex;

/// Partial sums of a file up to its last write.
#[derive(Default)]
pub(super) struct Sums {
    /// `None` without checksums.
    pieces: Option<Pieces>,
    /// `None` if not requested, or if some bytes were skipped.
    sha512: Option<Context>,
    bytes: u64,
}

/// One sum for each stretch of [`SUMMED_BYTES`].
struct Pieces {
    /// Sums of complete stretches; `None` if skipped for lack of time.
    sums: Vec<Option<u64>>,
    open: XxHash3_64,
    /// Bytes of the stretch that is not complete, and whether all of them are in `open`.
    open_bytes: u64,
    is_broken: bool,
}

/// The sums of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summed {
    /// XXH3 (64 bits) of each block of [`SUMMED_BYTES`], the last one shorter; `None` for a skipped block. Empty if
    /// not requested.
    pub(crate) xxh3: Vec<Option<u64>>,
    /// In hexadecimal.
    pub(crate) sha512: Option<String>,
}

impl Sums {
    pub(super) fn new(is_wanted: bool, sha512: bool) -> Self {
        let pieces = is_wanted.then(Pieces::new);
        Self { pieces, sha512: (is_wanted && sha512).then(|| Context::new(&SHA512)), bytes: 0 }
    }

    /// Adds the next `length` bytes; `bytes` is `None` to skip them. Returns the skipped bytes.
    pub(super) fn add(&mut self, bytes: Option<&[u8]>, length: usize) -> u64 {
        self.bytes += length as u64;
        match (bytes, &mut self.sha512) {
            (Some(bytes), Some(sum)) => sum.update(bytes),
            _ => self.sha512 = None,
        }
        let Some(pieces) = &mut self.pieces else { return 0 };
        pieces.add(bytes, length);
        if bytes.is_none() { length as u64 } else { 0 }
    }

    /// The sums of the first `bytes` bytes. The last stretch has none if the sum does not end exactly there.
    pub(super) fn summed(&self, bytes: u64) -> Summed {
        let is_all = self.bytes == bytes;
        let sha512 = self.sha512.as_ref().filter(|_| is_all);
        let sha512 = sha512.map(|sum| hex(sum.clone().finish().as_ref()));
        let mut xxh3 = Vec::new();
        if let Some(pieces) = &self.pieces {
            let whole = (bytes / SUMMED_BYTES) as usize;
            xxh3.extend(pieces.sums.iter().take(whole));
            if !bytes.is_multiple_of(SUMMED_BYTES) {
                let is_good = is_all && !pieces.is_broken;
                xxh3.push(is_good.then(|| pieces.open.finish()));
            }
        }
        Summed { xxh3, sha512 }
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums = self.pieces.as_ref().map(|pieces| &pieces.sums);
        f.debug_struct("Sums").field("sums", &sums).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Pieces {
    fn new() -> Self {
        Self { sums: Vec::new(), open: XxHash3_64::new(), open_bytes: 0, is_broken: false }
    }

    fn add(&mut self, bytes: Option<&[u8]>, length: usize) {
        let mut done = 0;
        while done < length {
            let count = (SUMMED_BYTES - self.open_bytes).min((length - done) as u64) as usize;
            match bytes {
                Some(bytes) => self.open.write(&bytes[done..done + count]),
                None => self.is_broken = true,
            }
            done += count;
            self.open_bytes += count as u64;
            if self.open_bytes == SUMMED_BYTES {
                self.sums.push((!self.is_broken).then(|| self.open.finish()));
                (self.open, self.open_bytes, self.is_broken) = (XxHash3_64::new(), 0, false);
            }
        }
    }
}

/// A TB has 4,000 of them, which its metadata hold.
pub(crate) const SUMMED_BYTES: u64 = 256 << 20;
