//! Bytes of a connection's stream: unconfirmed ones at the sender, unordered ones at the receiver.
//!
//! ```text
//!  written blocks --push--> [ SendBuffer ] --fill--> packets ~~~> put --> [ ReceiveBuffer ] --pass--> chunks in order
//! ```
//!
//! A byte is copied once into a packet and once out of it. Blocks move by ownership and are reused.

use std::collections::VecDeque;

/// Written bytes that may have to be retransmitted.
#[derive(Debug, Default)]
pub struct SendBuffer {
    /// Start of each block in the stream. Blocks are contiguous.
    blocks: VecDeque<(u64, Vec<u8>)>,
    end: u64,
}

/// Received bytes that are not passed on yet.
#[derive(Debug, Default)]
pub struct ReceiveBuffer {
    /// Number of the first block.
    first: u64,
    /// Blocks of [`BLOCK_BYTES`]; `None` if nothing of a block has arrived.
    blocks: VecDeque<Option<Vec<u8>>>,
    /// All bytes below were passed on.
    passed: u64,
    /// Blocks to reuse.
    spare: Vec<Vec<u8>>,
}

/// Bytes of a stream, in order.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Chunk {
    /// Makes a chunk that no stream carried.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { from: 0, to: bytes.len(), bytes }
    }
}

impl SendBuffer {
    /// Appends written bytes. A short block is copied into the last one and returned for reuse.
    pub fn push(&mut self, block: Vec<u8>) -> Option<Vec<u8>> {
        let bytes = block.len();
        self.end += bytes as u64;
        if let Some((_, last)) = self.blocks.back_mut()
            && bytes <= COPIED_BYTES_MAX
            && last.capacity() - last.len() >= bytes
        {
            last.extend_from_slice(&block);
            return Some(block);
        }
        self.blocks.push_back((self.end - bytes as u64, block));
        None
    }

    /// Number of bytes written so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Copies the bytes from `offset` on. Bytes beyond the end, or already released, are zero.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        let mut at = self.blocks.partition_point(|(start, block)| start + block.len() as u64 <= offset);
        let (mut offset, mut out) = (offset, out);
        while !out.is_empty() {
            let Some((block, from)) = self.blocks.get(at).and_then(|(start, block)| {
                let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
                Some((block, from))
            }) else {
                return out.fill(0);
            };
            let bytes = out.len().min(block.len() - from);
            let (filled, rest) = std::mem::take(&mut out).split_at_mut(bytes);
            filled.copy_from_slice(&block[from..from + bytes]);
            (offset, out, at) = (offset + bytes as u64, rest, at + 1);
        }
    }

    /// Releases the bytes below `confirmed`. Returns the next block that becomes free.
    pub fn release(&mut self, confirmed: u64) -> Option<Vec<u8>> {
        let (start, block) = self.blocks.front()?;
        // The last block may still grow.
        let is_free = start + block.len() as u64 <= confirmed && self.blocks.len() > 1;
        if is_free { self.blocks.pop_front().map(|(_, block)| block) } else { None }
    }
}

impl ReceiveBuffer {
    /// Stores bytes at their offset. Bytes that were passed on stay unchanged.
    pub fn put(&mut self, offset: u64, payload: &[u8]) {
        let skipped = self.passed.saturating_sub(offset).min(payload.len() as u64);
        let (mut offset, mut payload) = (offset + skipped, &payload[skipped as usize..]);
        while !payload.is_empty() {
            let from = (offset % BLOCK_BYTES as u64) as usize;
            let bytes = payload.len().min(BLOCK_BYTES - from);
            let index = (offset / BLOCK_BYTES as u64 - self.first) as usize;
            if index >= self.blocks.len() {
                self.blocks.resize_with(index + 1, || None);
            }
            let Self { blocks, spare, .. } = self;
            let block =
                blocks[index].get_or_insert_with(|| spare.pop().unwrap_or_else(|| vec![0; BLOCK_BYTES]));
            block[from..from + bytes].copy_from_slice(&payload[..bytes]);
            (offset, payload) = (offset + bytes as u64, &payload[bytes..]);
        }
    }

    /// Passes on the contiguous bytes below `until`, all of which must have arrived. Whole blocks move; the
    /// start of the last block is copied.
    pub fn pass(&mut self, until: u64, mut take: impl FnMut(Chunk)) {
        while self.passed < until {
            let start = self.first * BLOCK_BYTES as u64;
            let from = (self.passed - start) as usize;
            let to = (until - start).min(BLOCK_BYTES as u64) as usize;
            if to == BLOCK_BYTES {
                let Some(bytes) = self.blocks.pop_front().flatten() else { return };
                self.first += 1;
                take(Chunk { bytes, from, to });
            } else {
                let Some(Some(block)) = self.blocks.front() else { return };
                take(Chunk { bytes: block[from..to].to_vec(), from: 0, to: to - from });
            }
            self.passed = start + to as u64;
        }
    }

    /// Number of bytes passed on so far.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Takes back the memory of a chunk that was read.
    pub fn reuse(&mut self, bytes: Vec<u8>) {
        if bytes.len() == BLOCK_BYTES && self.spare.len() < SPARE_BLOCKS_MAX {
            self.spare.push(bytes);
        }
    }
}

impl Chunk {
    /// Bytes that are not consumed yet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Consumes the first bytes.
    pub fn consume(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
    }

    /// Returns the memory of the chunk.
    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }
}

/// Block length: small enough to stay in a core's cache until it is read, and to be cheap for a few bytes.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;

/// Length up to which copying is cheaper than a block of its own.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// Maximum spare blocks.
const SPARE_BLOCKS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn stretch(from: u64, bytes: usize) -> Vec<u8> {
        (from..from + bytes as u64).map(byte).collect()
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again_wherever_it_lies(
            blocks in prop::collection::vec((1..9_000_usize, 0..9_000_usize), 1..20),
            reads in prop::collection::vec((0..100_000_u64, 1..3_000_usize), 1..30), released in 0..100_000_u64,
        ) {
            let mut buffer = SendBuffer::default();
            for (bytes, spare) in blocks {
                let mut block = Vec::with_capacity(bytes + spare);
                block.extend(stretch(buffer.end(), bytes));
                if let Some(free) = buffer.push(block) {
                    prop_assert!(free.len() <= COPIED_BYTES_MAX);
                }
            }
            let released = released % (buffer.end() + 1);
            while buffer.release(released).is_some() {}
            for (offset, bytes) in reads {
                let offset = released + offset % (buffer.end() + 1 - released);
                let mut out = vec![9; bytes];
                buffer.fill(offset, &mut out);
                let there = (buffer.end() - offset).min(bytes as u64) as usize;
                prop_assert_eq!(&out[..there], &stretch(offset, there)[..]);
                prop_assert!(out[there..].iter().all(|byte| *byte == 0), "behind the end");
            }
        }

        #[test]
        fn bytes_pass_in_order_however_they_come(
            lengths in prop::collection::vec(1..70_000_usize, 1..30), order in prop::collection::vec(any::<u32>(), 30),
        ) {
            let mut pieces: Vec<(u64, usize)> = Vec::new();
            let mut end = 0;
            for bytes in lengths {
                pieces.push((end, bytes));
                end += bytes as u64;
            }
            let mut shuffled: Vec<usize> = (0..pieces.len()).collect();
            shuffled.sort_by_key(|at| order[*at]);
            let mut buffer = ReceiveBuffer::default();
            let mut there = crate::proto::ranges::RangeSet::default();
            let mut read = Vec::new();
            for at in shuffled {
                let (offset, bytes) = pieces[at];
                // A retransmission overlaps data that is already there.
                let before = offset.min(100);
                buffer.put(offset, &stretch(offset, bytes));
                let is_known = there.contains(&(offset - before..offset));
                if is_known {
                    buffer.put(offset - before, &stretch(offset - before, before as usize));
                }
                there.insert(offset..offset + bytes as u64);
                let mut chunks = Vec::new();
                buffer.pass(there.prefix_end(), |chunk| chunks.push(chunk));
                for mut chunk in chunks {
                    let half = chunk.bytes().len() / 2;
                    read.extend_from_slice(&chunk.bytes()[..half]);
                    chunk.consume(half);
                    read.extend_from_slice(chunk.bytes());
                    buffer.reuse(chunk.into_memory());
                }
                prop_assert_eq!(read.len() as u64, there.prefix_end());
                prop_assert_eq!(buffer.passed(), there.prefix_end());
            }
            prop_assert!(read == stretch(0, end as usize));
        }
    }

    #[test]
    fn a_block_that_was_read_is_used_again() {
        let mut buffer = ReceiveBuffer::default();
        buffer.put(0, &vec![1; BLOCK_BYTES]);
        let mut memory = Vec::new();
        buffer.pass(BLOCK_BYTES as u64, |chunk| memory.push(chunk.into_memory()));
        let place = memory[0].as_ptr();
        buffer.reuse(memory.remove(0));
        buffer.put(BLOCK_BYTES as u64, &[2; 10]);
        assert_eq!(buffer.blocks[0].as_ref().unwrap().as_ptr(), place);
    }
}
