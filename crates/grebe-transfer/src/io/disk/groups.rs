//! Groups: how files become one stream of bytes, and which parts of it have a hash each.
//!
//! ```text
//!  content   index, first file, second file, ...
//!  stream    256 KiB of content, its BLAKE3, 256 KiB, its BLAKE3, ..., what is left, its BLAKE3
//! ```

use std::ops::Range;

/// A group: content that is hashed, written and noted in the journal as one.
pub(in crate::io) const GROUP_BYTES: u64 = 256 << 10;

pub(in crate::io) const HASH_BYTES: u64 = 32;

const STRIDE_BYTES: u64 = GROUP_BYTES + HASH_BYTES;

/// Bytes of the stream that carries so much content.
pub(in crate::io) fn stream_bytes(content_bytes: u64) -> u64 {
    content_bytes + content_bytes.div_ceil(GROUP_BYTES) * HASH_BYTES
}

/// Bytes of content in a stream; `None` for a length that no stream has.
pub(in crate::io) fn content_bytes(stream_bytes: u64) -> Option<u64> {
    let content_bytes = stream_bytes.checked_sub(count(stream_bytes) * HASH_BYTES)?;
    (self::stream_bytes(content_bytes) == stream_bytes).then_some(content_bytes)
}

/// Groups in a stream.
pub(in crate::io) fn count(stream_bytes: u64) -> u64 {
    stream_bytes.div_ceil(STRIDE_BYTES)
}

/// The group that a byte of the stream belongs to.
pub(in crate::io) fn group_of(at: u64) -> u64 {
    at / STRIDE_BYTES
}

/// Where a group lies in a stream, its hash included.
pub(in crate::io) fn group_range(group: u64, stream_bytes: u64) -> Range<u64> {
    let start = group * STRIDE_BYTES;
    start.min(stream_bytes)..(start + STRIDE_BYTES).min(stream_bytes)
}

/// Where a group's content lies in the content.
pub(in crate::io) fn content_range(group: u64, stream_bytes: u64) -> Range<u64> {
    let range = group_range(group, stream_bytes);
    let start = group * GROUP_BYTES;
    start..start + (range.end - range.start).saturating_sub(HASH_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn groups_cover_content_and_stream_without_a_gap(content in 1..3 * GROUP_BYTES + 5) {
            let stream = stream_bytes(content);
            prop_assert_eq!(content_bytes(stream), Some(content));
            let (mut at, mut content_at) = (0, 0);
            for group in 0..count(stream) {
                let (range, content_range) = (group_range(group, stream), content_range(group, stream));
                prop_assert_eq!((range.start, content_range.start), (at, content_at));
                prop_assert_eq!(range.end - range.start, content_range.end - content_range.start + HASH_BYTES);
                prop_assert_eq!((group_of(range.start), group_of(range.end - 1)), (group, group));
                (at, content_at) = (range.end, content_range.end);
            }
            prop_assert_eq!((at, content_at), (stream, content));
        }

        #[test]
        fn a_length_that_no_stream_has_is_known(stream in 0..3 * STRIDE_BYTES) {
            if let Some(content) = content_bytes(stream) {
                prop_assert_eq!(stream_bytes(content), stream);
            }
        }
    }
}
