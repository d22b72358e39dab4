//! A batch: one lease on a chunk and the frames in it. The unit of ownership, queueing, dropping and counting.
//!
//! Paper budget, at 1400-byte frames, 46 a chunk (64 KiB): taking and freeing a chunk 2 contended lines, handing it on 1 a
//! consumer; at 100 ns a contended line (near; 480 far) that is 4 ns a frame for a fan-out to two, 20 far.

use std::sync::Arc;

use grebe_ring::{ChunkMut, Import, Lease, Memory, Pool, Signal};

use crate::frame::{Frame, view};
use crate::{HEADER_BYTES, Header};

/// A fixed number of chunks to build batches in. Nothing is allocated after it is made.
#[derive(Debug)]
pub struct BatchPool {
    pool: Pool<Table>,
}

/// A batch being built, by its only owner.
#[derive(Debug)]
pub struct BatchMut {
    chunk: ChunkMut<Table>,
}

/// Frames lent to whoever reads them. A clone costs one atomic increment, however many frames there are.
#[derive(Debug, Clone)]
pub struct Batch {
    lease: Lease<Table>,
}

/// The frames of a batch, in order.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
}

/// The batch has no room for the frame: freeze it and go on with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the batch is full")]
pub struct Full;

impl BatchPool {
    /// `chunks` chunks of `chunk_bytes` each (rounded up to 64), from the heap.
    pub fn new(chunks: usize, chunk_bytes: usize) -> Self {
        Self { pool: Pool::with_meta(chunks, chunk_bytes, || Table::for_chunk(chunk_bytes)) }
    }

    /// As many chunks as fit into memory that another crate mapped.
    pub fn over(memory: Box<dyn Memory>, chunk_bytes: usize) -> Self {
        Self { pool: Pool::over(memory, chunk_bytes, || Table::for_chunk(chunk_bytes)) }
    }

    /// Wakes `signal` whenever a chunk comes back. To be set before the first batch is taken.
    pub fn wake_on_return(&mut self, signal: Arc<Signal>) {
        self.pool.wake_on_return(signal);
    }

    /// An empty batch in the chunk that came back last, or `None` where all chunks are lent.
    #[inline]
    pub fn acquire(&mut self) -> Option<BatchMut> {
        let mut chunk = self.pool.acquire()?;
        chunk.meta_mut().clear();
        Some(BatchMut { chunk })
    }

    /// Whether a batch can be taken now.
    pub fn has_free(&self) -> bool {
        self.pool.has_free()
    }

    /// Chunks that are free now.
    pub fn available(&self) -> usize {
        self.pool.available()
    }

    /// Chunks in all.
    pub fn chunks(&self) -> usize {
        self.pool.chunks()
    }

    /// Bytes a chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.pool.chunk_bytes()
    }
}

impl BatchMut {
    /// Appends a frame whose samples `fill` writes, one call a channel. The header's checksum is computed.
    ///
    /// # Errors
    /// [`Full`] where the frame does not fit; nothing is written then.
    #[inline]
    pub fn push(&mut self, header: &Header, mut fill: impl FnMut(usize, &mut [i16])) -> Result<(), Full> {
        let (bytes, table) = self.chunk.parts_mut();
        // Frames begin at multiples of 64, so that samples are aligned whatever the block's length.
        let offset = table.end.next_multiple_of(64);
        let end = offset + header.frame_bytes();
        let frame = bytes.get_mut(offset..end).filter(|_| table.has_room()).ok_or(Full)?;
        let (head, payload) = frame.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Full)?;
        header.write(head);
        let block = header.block_length_samples as usize;
        let samples = view::cast_mut(payload).ok_or(Full)?;
        for channel in 0..header.channel_count as usize {
            let samples = &mut samples[channel * block..(channel + 1) * block];
            fill(channel, samples);
            if cfg!(target_endian = "big") {
                samples.iter_mut().for_each(|sample| *sample = sample.to_le());
            }
        }
        table.add(offset, header);
        Ok(())
    }

    /// Appends a copy of a validated frame (compaction of sparse or misaligned slabs; callers count these copies).
    ///
    /// # Errors
    /// [`Full`] where it does not fit.
    pub fn push_copy(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let (bytes, table) = self.chunk.parts_mut();
        let offset = table.end.next_multiple_of(64);
        let end = offset + HEADER_BYTES + frame.payload().len();
        let place = bytes.get_mut(offset..end).filter(|_| table.has_room()).ok_or(Full)?;
        place[..HEADER_BYTES].copy_from_slice(frame.header_bytes());
        place[HEADER_BYTES..].copy_from_slice(frame.payload());
        table.add(offset, &frame.header());
        Ok(())
    }

    /// Enters a frame that already stands in the chunk at `offset`, validated as `header` (a received datagram).
    ///
    /// # Errors
    /// [`Full`] where the table has no room, or the frame does not lie within the chunk.
    #[inline]
    pub fn adopt(&mut self, offset: usize, header: &Header) -> Result<(), Full> {
        let (bytes, table) = self.chunk.parts_mut();
        if !table.has_room() || offset + header.frame_bytes() > bytes.len() {
            return Err(Full);
        }
        table.add(offset, header);
        Ok(())
    }

    /// The whole chunk, for a kernel or a reader to fill; frames in it are entered with [`adopt`](Self::adopt).
    #[inline]
    pub fn chunk(&mut self) -> &mut [u8] {
        self.chunk.bytes_mut()
    }

    /// Rewrites the samples of each channel of each frame in place.
    pub fn update(&mut self, mut change: impl FnMut(&Header, usize, &mut [i16])) {
        let (bytes, table) = self.chunk.parts_mut();
        for span in &table.spans {
            let Some(frame) = Frame::trusted(&bytes[span.range()]) else { continue };
            let header = frame.header();
            let block = header.block_length_samples as usize;
            for channel in 0..header.channel_count as usize {
                let at = span.offset as usize + HEADER_BYTES + channel * block * 2;
                let place = &mut bytes[at..at + block * 2];
                change_samples(place, |samples| change(&header, channel, samples));
            }
        }
    }

    /// Rewrites the header of each frame in place. Channels and block length stay as they are: they say where the samples lie.
    pub fn update_headers(&mut self, mut change: impl FnMut(&mut Header)) {
        let (bytes, table) = self.chunk.parts_mut();
        for span in &table.spans {
            let Some((head, _)) = bytes[span.range()].split_first_chunk_mut::<HEADER_BYTES>() else {
                continue;
            };
            let before = Header::trusted(head);
            let mut header = before;
            change(&mut header);
            let (channel_count, block_length_samples) = (before.channel_count, before.block_length_samples);
            Header { channel_count, block_length_samples, ..header }.write(head);
        }
    }

    /// The frames so far, in order.
    pub fn frames(&self) -> Frames<'_> {
        Frames { bytes: self.chunk.bytes(), spans: self.chunk.meta().spans.iter() }
    }

    /// Bytes of the chunk up to the end of the last frame.
    pub fn filled_bytes(&self) -> usize {
        self.chunk.meta().end
    }

    /// Bytes of the whole chunk.
    pub fn capacity_bytes(&self) -> usize {
        self.chunk.bytes().len()
    }

    /// Frames so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.chunk.meta().spans.len()
    }

    /// Whether there is no frame yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which chunk of its pool this is: what another process is told.
    pub fn index(&self) -> u32 {
        self.chunk.index()
    }

    /// Forgets the frames.
    pub fn clear(&mut self) {
        self.chunk.meta_mut().clear();
    }

    /// Ends building: from here on the batch can be lent.
    #[inline]
    pub fn freeze(self) -> Batch {
        Batch { lease: self.chunk.freeze() }
    }
}

/// The whole chunk, for a receiver that takes any buffer.
impl AsMut<[u8]> for BatchMut {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self.chunk()
    }
}

impl Batch {
    /// The frames, in order.
    #[inline]
    pub fn frames(&self) -> Frames<'_> {
        Frames { bytes: self.lease.bytes(), spans: self.lease.meta().spans.iter() }
    }

    /// How many frames there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.lease.meta().spans.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples a channel, over all frames.
    #[inline]
    pub fn samples(&self) -> u64 {
        self.lease.meta().samples
    }

    /// Offset of each frame in the chunk, in order: what another process is told, with [`chunk`](Self::chunk).
    #[inline]
    pub fn offsets(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.lease.meta().spans.iter().map(|span| span.offset)
    }

    /// The whole chunk that the frames stand in.
    #[inline]
    pub fn chunk(&self) -> &[u8] {
        self.lease.bytes()
    }

    /// Bytes of the chunk that this batch keeps from being reused.
    pub fn pinned_bytes(&self) -> usize {
        self.lease.bytes().len()
    }

    /// The frames' bytes as they stand in memory, where the frames are of one size and follow each other without a hole:
    /// what can be sent with one scatter element. The size of a frame beside it.
    pub fn contiguous(&self) -> Option<(&[u8], usize)> {
        let spans = &self.lease.meta().spans;
        let first = spans.first()?;
        let stride = first.bytes;
        let mut next = first.offset;
        for span in spans {
            if span.offset != next || span.bytes != stride {
                return None;
            }
            next += stride;
        }
        Some((&self.lease.bytes()[first.offset as usize..next as usize], stride as usize))
    }

    /// The batch to change in place, where nobody else holds it and its memory is this process's own.
    ///
    /// # Errors
    /// The batch itself: copy what is to be changed, and count the copy.
    pub fn try_unique(self) -> Result<BatchMut, Batch> {
        self.lease.try_unique().map(|chunk| BatchMut { chunk }).map_err(|lease| Batch { lease })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let span = self.spans.next()?;
        Frame::trusted(&self.bytes[span.range()])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for Frames<'_> {}

/// Batches that another process lends to this one.
#[derive(Debug)]
pub struct BatchImport {
    import: Import<Table>,
}

impl BatchImport {
    /// Reads `memory` in chunks of `chunk_bytes`; `home` is told each chunk that nobody here reads any more.
    pub fn new(
        memory: Box<dyn Memory>,
        chunk_bytes: usize,
        home: impl Fn(u32) + Send + Sync + 'static,
    ) -> Self {
        Self { import: Import::new(memory, chunk_bytes, || Table::for_chunk(chunk_bytes), home) }
    }

    /// The batch in chunk `index`, its frames at `offsets` (each validated again here: the other side is not trusted).
    ///
    /// Answers `None` where there is no such chunk or it is held already. Frames that do not parse are left out, and counted
    /// in the second value.
    pub fn batch(&mut self, index: u32, offsets: impl Iterator<Item = u32>) -> Option<(Batch, usize)> {
        let mut refused = 0;
        let lease = self.import.lease(index, |table, bytes| {
            table.clear();
            for offset in offsets {
                let rest = bytes.get(offset as usize..).unwrap_or_default();
                match Header::parse(rest) {
                    Ok(header) if header.frame_bytes() <= rest.len() && table.has_room() => {
                        table.add(offset as usize, &header);
                    }
                    _ => refused += 1,
                }
            }
        })?;
        Some((Batch { lease }, refused))
    }
}

fn change_samples(bytes: &mut [u8], change: impl FnOnce(&mut [i16])) {
    if cfg!(target_endian = "little")
        && let Some(samples) = view::cast_mut(bytes)
    {
        return change(samples);
    }
    let mut samples: Vec<i16> =
        bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    change(&mut samples);
    for (pair, sample) in bytes.chunks_exact_mut(2).zip(samples) {
        pair.copy_from_slice(&sample.to_le_bytes());
    }
}

/// Where the frames of a chunk are. Rides with the chunk; its capacity is set when the pool is made.
#[derive(Debug)]
struct Table {
    spans: Vec<Span>,
    /// Behind the last frame.
    end: usize,
    samples: u64,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    offset: u32,
    bytes: u32,
}

impl Table {
    fn for_chunk(chunk_bytes: usize) -> Self {
        Self { spans: Vec::with_capacity(chunk_bytes / HEADER_BYTES + 1), end: 0, samples: 0 }
    }

    fn clear(&mut self) {
        self.spans.clear();
        (self.end, self.samples) = (0, 0);
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.spans.len() < self.spans.capacity()
    }

    #[inline]
    fn add(&mut self, offset: usize, header: &Header) {
        let bytes = header.frame_bytes();
        self.spans.push(Span { offset: offset as u32, bytes: bytes as u32 });
        self.end = self.end.max(offset + bytes);
        self.samples += u64::from(header.block_length_samples);
    }
}

impl Span {
    #[inline]
    fn range(self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u64, block: u32) -> Header {
        Header { sequence, channel_count: 2, block_length_samples: block, ..Header::default() }
    }

    #[test]
    fn a_batch_takes_frames_until_it_is_full_and_keeps_them_apart() {
        let mut pool = BatchPool::new(1, 1024);
        let mut batch = pool.acquire().unwrap();
        let mut sequence = 0;
        while batch
            .push(&header(sequence, 33), |channel, samples| {
                samples.fill((sequence * 2) as i16 + channel as i16)
            })
            .is_ok()
        {
            sequence += 1;
        }
        // 64 + 132 bytes a frame, rounded up to 256.
        assert_eq!((sequence, batch.len()), (4, 4));
        let batch = batch.freeze();
        assert_eq!(batch.samples(), 4 * 33);
        for (position, frame) in batch.frames().enumerate() {
            assert_eq!(frame.header().sequence, position as u64);
            assert!(frame.channel(1).iter().all(|&sample| sample == position as i16 * 2 + 1));
        }
        assert!(pool.acquire().is_none());
        drop(batch);
        assert!(pool.acquire().unwrap().is_empty());
    }

    #[test]
    fn whole_blocks_of_32_samples_lie_back_to_back() {
        let mut pool = BatchPool::new(1, 4096);
        let mut batch = pool.acquire().unwrap();
        for sequence in 0..3 {
            batch.push(&header(sequence, 32), |_, _| ()).unwrap();
        }
        let batch = batch.freeze();
        let (bytes, stride) = batch.contiguous().unwrap();
        assert_eq!((bytes.len(), stride), (3 * 192, 192));
        drop(batch);
        let mut batch = pool.acquire().unwrap();
        batch.push(&header(0, 32), |_, _| ()).unwrap();
        batch.push(&header(1, 33), |_, _| ()).unwrap();
        assert!(batch.freeze().contiguous().is_none());
    }

    #[test]
    fn headers_are_rewritten_and_the_shape_stays() {
        let mut batch = BatchPool::new(1, 1024).acquire().unwrap();
        for sequence in 0..2 {
            batch.push(&header(sequence, 5), |_, samples| samples.fill(7)).unwrap();
        }
        batch.update_headers(|header| {
            *header = Header { sequence: header.sequence + 10, first_sample_index: 3, ..Header::default() };
        });
        let batch = batch.freeze();
        for (position, frame) in batch.frames().enumerate() {
            let expected = Header { first_sample_index: 3, ..header(position as u64 + 10, 5) };
            assert_eq!(frame.header(), expected);
            assert_eq!(frame.channel(1).as_ref(), [7; 5]);
            assert_eq!(Header::parse(frame.header_bytes()).unwrap(), expected, "its checksum is right");
        }
    }

    #[test]
    fn a_shared_batch_is_not_changed_in_place() {
        let mut pool = BatchPool::new(1, 1024);
        let mut batch = pool.acquire().unwrap();
        batch.push(&header(0, 4), |_, samples| samples.fill(1)).unwrap();
        let batch = batch.freeze();
        let reader = batch.clone();
        let batch = batch.try_unique().unwrap_err();
        drop(reader);
        let mut batch = batch.try_unique().unwrap();
        batch.update(|_, channel, samples| samples.iter_mut().for_each(|sample| *sample += channel as i16));
        let batch = batch.freeze();
        let frame = batch.frames().next().unwrap();
        assert_eq!((frame.channel(0)[0], frame.channel(1)[3]), (1, 2));
    }

    #[test]
    fn adopting_beyond_the_chunk_is_refused() {
        let mut pool = BatchPool::new(1, 1024);
        let mut batch = pool.acquire().unwrap();
        assert_eq!(batch.adopt(1000, &header(0, 4)), Err(Full));
        assert_eq!(batch.adopt(944, &header(0, 4)), Ok(()));
    }
}
