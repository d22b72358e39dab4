//! Extent of the samples in a file. The header is often wrong: a killed recorder leaves its initial value,
//! and a size above 4 GiB wraps or is clamped. The length of the file, and the bytes after the samples,
//! decide.

use super::chunks::{Behind, Chunks, Found};
use crate::error::Error;

/// The bytes that are samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
    pub(super) is_whole: bool,
}

impl Chunks<'_> {
    pub(super) fn extent(&mut self, found: &Found) -> Result<Extent, Error> {
        let Found { offset_bytes, file_bytes, declared, large, .. } = *found;
        let frame_bytes = found.format.frame_bytes();
        let present = file_bytes - offset_bytes;
        let declared = match declared {
            // A `ds64` has zeros or ones if its writer never updated it.
            u32::MAX => large.filter(|&bytes| bytes != 0 && bytes != u64::MAX),
            other => Some(other.into()),
        };
        let (bytes, mut is_whole) = match declared {
            Some(declared) if declared > present && !is_placeholder(declared) => {
                return self.truncated_extent(found, declared);
            }
            Some(declared) if declared <= present => self.told(found, declared)?,
            _ => {
                if present > 0 {
                    self.notes.push(NO_LENGTH.to_owned());
                }
                self.open_end(found)?
            }
        };
        let odd_bytes = bytes % frame_bytes;
        if bytes < frame_bytes {
            return Err(Error::Empty { path: self.path.into() });
        }
        if odd_bytes > 0 && declared == Some(bytes) {
            is_whole = false;
            self.notes
                .push(format!("the last sample is incomplete: {odd_bytes} bytes of {frame_bytes}, ignored"));
        }
        Ok(Extent { offset_bytes, bytes, is_whole })
    }

    /// The file has at least as much as it says: it may go on.
    fn told(&mut self, found: &Found, declared: u64) -> Result<(u64, bool), Error> {
        let Found { offset_bytes, file_bytes, .. } = *found;
        let (present, frame_bytes) = (file_bytes - offset_bytes, found.format.frame_bytes());
        match self.behind(offset_bytes + declared, file_bytes)? {
            Behind::Nothing | Behind::Chunks { more_samples: false } => return Ok((declared, true)),
            Behind::Chunks { more_samples: true } => {
                self.notes.push(
                    "samples stand in several data chunks: only those of the first are read; convert the file with the program that wrote it"
                        .to_owned(),
                );
                return Ok((declared, false));
            }
            Behind::Few(few) if declared > 0 => {
                self.notes.push(format!("{few} bytes after the samples are not a chunk: ignored"));
                return Ok((declared, true));
            }
            Behind::Few(_) | Behind::Samples => {}
        }
        if found.ds64_at.is_none() {
            for wraps in (1..=(present - declared) >> 32).rev() {
                let bytes = declared + (wraps << 32);
                if self.behind(offset_bytes + bytes, file_bytes)? != Behind::Samples {
                    self.notes.push(format!(
                        "its size is beyond the 4 GiB that its header can say: {} samples per channel are read, as the length of the file has it",
                        bytes / frame_bytes
                    ));
                    return Ok((bytes, true));
                }
            }
        }
        let note = if declared == 0 {
            NO_LENGTH.to_owned()
        } else {
            format!(
                "the header says {} samples per channel, and the file goes on: it is read to its end, all {}; who wrote it did not close it",
                declared / frame_bytes,
                present / frame_bytes
            )
        };
        self.notes.push(note);
        self.open_end(found)
    }

    /// All bytes up to the chunks at the end, which who closes a file writes, or to the end.
    fn open_end(&mut self, found: &Found) -> Result<(u64, bool), Error> {
        let Found { offset_bytes, file_bytes, .. } = *found;
        let tail = self.tail(offset_bytes, file_bytes)?;
        Ok((tail.unwrap_or(file_bytes) - offset_bytes, tail.is_some()))
    }

    fn truncated_extent(&mut self, found: &Found, declared: u64) -> Result<Extent, Error> {
        let Found { offset_bytes, file_bytes, .. } = *found;
        let (bytes, frame_bytes) = (file_bytes - offset_bytes, found.format.frame_bytes());
        let (len_samples, announced) = (bytes / frame_bytes, declared / frame_bytes);
        if len_samples == 0 {
            let why = format!("{announced} samples per channel are announced and none is there");
            return Err(self.truncated(&why));
        }
        let missing = announced.saturating_sub(len_samples);
        self.notes.push(format!(
            "the file is truncated: {len_samples} of {announced} samples per channel are there and are read, {missing} are missing"
        ));
        Ok(Extent { offset_bytes, bytes, is_whole: false })
    }
}

/// Whether a size is what programs write that do not know it, or that cannot say it: the greatest of signed and unsigned numbers, less a
/// header.
fn is_placeholder(bytes: u64) -> bool {
    let greatest = |power: u64| (power - PLACEHOLDER_BYTES..=power).contains(&bytes);
    greatest(1 << 31) || greatest(1 << 32)
}

/// `sox` takes 4 KiB off, others their header.
const PLACEHOLDER_BYTES: u64 = 4 << 10;

const NO_LENGTH: &str = "the header does not say how long the file is: it is read to its end";
