//! A batch: one lease on a chunk and the frames in it.
//!
//! ```text
//!   BatchPool --acquire--> BatchMut --freeze--> Batch --clone--> Batch ...   last drop: the chunk is free again
//!
//!   chunk   | header | ch0 ... | ch1 ... | header | ch0 ... | ch1 ... |  ...   |      the bytes, as on the wire
//!   table     ^ offset, bytes              ^ offset, bytes                           rides with the chunk
//! ```
//!
//! **The batch is the unit** of ownership, queueing, dropping and counting. At 5.4 million frames per second a frame
//! of 1400 bytes has 185 ns in total, and one contended counter costs 100 ns (near cores) to 480 ns (far cores). So
//! there is one such counter per *chunk* of 64 KiB (46 frames), and none per frame. A fan-out to two consumers costs
//! 4 ns per frame (near) to 20 ns (far).
//!
//! **A receive buffer is the chunk.** The kernel writes up to 64 KiB of coalesced datagrams into [`BatchMut::chunk`].
//! Each is validated and entered with [`BatchMut::adopt`], and the chunk is lent on unchanged.
//!
//! **Sending a batch** takes one scatter element if its frames are contiguous ([`Batch::contiguous`]).

use std::sync::Arc;

use grebe_ring::{ChunkMut, Lease};

use crate::description::Description;
use crate::format::{Sample, SampleFormat, to_host};
use crate::frame::{ChannelError, Frame};
use crate::header::{HEADER_BYTES, Header, Refusal};
use crate::table::{Span, Table};

/// A batch being built, by its only owner.
#[derive(Debug)]
pub struct BatchMut {
    chunk: ChunkMut<Table>,
}

/// Frames lent to readers. A clone costs one atomic increment, independent of the number of frames.
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

/// Reason why a frame was not added to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The batch has no room: freeze it and continue with the next.
    #[error(transparent)]
    Full(#[from] Full),
    /// No receiver accepts a frame with this header.
    #[error("no receiver accepts such a frame: {0}")]
    Refused(Refusal),
    /// The header has another format than the samples.
    #[error("the samples are {is}, and the header says {header}")]
    Format {
        /// Format of the samples.
        is: SampleFormat,
        /// Format of the header.
        header: SampleFormat,
    },
}

impl BatchMut {
    /// An empty batch in a new chunk.
    #[inline]
    pub(crate) fn new(mut chunk: ChunkMut<Table>) -> Self {
        chunk.meta_mut().clear();
        Self { chunk }
    }

    /// Appends a frame whose samples `fill` writes, one call per channel. Computes the header's checksum.
    ///
    /// # Errors
    /// Writes nothing on an error. [`PushError::Full`] if the frame does not fit, [`PushError::Format`] if the header
    /// has another format than `T`, [`PushError::Refused`] for an invalid number of channels or rate.
    #[inline]
    pub fn push<T: Sample>(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [T]),
    ) -> Result<(), PushError> {
        if header.format != T::FORMAT {
            return Err(PushError::Format { is: T::FORMAT, header: header.format });
        }
        let (payload, channel_bytes) = self.append(header)?;
        let samples: &mut [T] = bytemuck::try_cast_slice_mut(payload).map_err(|_| Full)?;
        let block = channel_bytes / T::FORMAT.bytes();
        for channel in 0..header.channel_count as usize {
            fill(channel, &mut samples[channel * block..(channel + 1) * block]);
        }
        T::FORMAT.swap_to_host(bytemuck::cast_slice_mut(samples));
        Ok(())
    }

    /// Appends a frame whose channels `fill` writes as on the wire, in any format; one call per channel.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    pub fn push_bytes(
        &mut self,
        header: &Header,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), PushError> {
        let (payload, channel_bytes) = self.append(header)?;
        for channel in 0..header.channel_count as usize {
            fill(channel, &mut payload[channel * channel_bytes..(channel + 1) * channel_bytes]);
        }
        Ok(())
    }

    /// Adds a frame with this header after the others. Returns its payload, to be written, and the bytes of a channel.
    #[inline]
    fn append(&mut self, header: &Header) -> Result<(&mut [u8], usize), PushError> {
        header.check().map_err(PushError::Refused)?;
        let (bytes, table) = self.chunk.parts_mut();
        // Frames begin at multiples of 64, so that samples are aligned for every block length.
        let offset = table.end.next_multiple_of(64);
        let end = offset + header.frame_bytes();
        let frame = bytes.get_mut(offset..end).filter(|_| table.has_room()).ok_or(Full)?;
        let (head, payload) = frame.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Full)?;
        header.write(head);
        table.add(offset, header);
        Ok((payload, header.block_length_samples as usize * header.format.bytes()))
    }

    /// Appends a copy of a validated frame, to compact sparse or misaligned slabs. Callers count these copies.
    ///
    /// # Errors
    /// [`Full`] if it does not fit.
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

    /// Adds a frame that lies in the chunk at `offset`, validated as `header` (a received datagram).
    ///
    /// # Errors
    /// [`Full`] if the table has no room, or the frame exceeds the chunk.
    #[inline]
    pub fn adopt(&mut self, offset: usize, header: &Header) -> Result<(), Full> {
        let (bytes, table) = self.chunk.parts_mut();
        if !table.has_room() || offset + header.frame_bytes() > bytes.len() {
            return Err(Full);
        }
        table.add(offset, header);
        Ok(())
    }

    /// The whole chunk, for a kernel or a reader to fill. [`adopt`](Self::adopt) adds its frames.
    #[inline]
    pub fn chunk(&mut self) -> &mut [u8] {
        self.chunk.bytes_mut()
    }

    /// Rewrites the samples of each channel of each frame in place.
    ///
    /// # Errors
    /// A frame has another format. The frames before it are rewritten.
    pub fn update<T: Sample>(
        &mut self,
        mut change: impl FnMut(&Header, usize, &mut [T]),
    ) -> Result<(), ChannelError> {
        let (bytes, table) = self.chunk.parts_mut();
        for span in &table.spans {
            let Some(frame) = Frame::trusted(&bytes[span.range()]) else { continue };
            let header = frame.header();
            if header.format != T::FORMAT {
                return Err(ChannelError::Format { asked: T::FORMAT, is: header.format });
            }
            let channel_bytes = header.block_length_samples as usize * T::FORMAT.bytes();
            for channel in 0..header.channel_count as usize {
                let at = span.offset as usize + HEADER_BYTES + channel * channel_bytes;
                let place = &mut bytes[at..at + channel_bytes];
                change_samples(place, |samples| change(&header, channel, samples));
            }
        }
        Ok(())
    }

    /// Rewrites the bytes of each channel of each frame in place, as on the wire, in any format.
    pub fn update_bytes(&mut self, mut change: impl FnMut(&Header, usize, &mut [u8])) {
        let (bytes, table) = self.chunk.parts_mut();
        for span in &table.spans {
            let Some(frame) = Frame::trusted(&bytes[span.range()]) else { continue };
            let header = frame.header();
            let channel_bytes = header.block_length_samples as usize * header.format.bytes();
            for channel in 0..header.channel_count as usize {
                let at = span.offset as usize + HEADER_BYTES + channel * channel_bytes;
                change(&header, channel, &mut bytes[at..at + channel_bytes]);
            }
        }
    }

    /// Rewrites the header of each frame in place. Channels, format and block length do not change, because they
    /// determine the layout.
    pub fn update_headers(&mut self, mut change: impl FnMut(&mut Header)) {
        let (bytes, table) = self.chunk.parts_mut();
        for span in &table.spans {
            let Some((head, _)) = bytes[span.range()].split_first_chunk_mut::<HEADER_BYTES>() else {
                continue;
            };
            let before = Header::trusted(head);
            let mut header = before;
            change(&mut header);
            let Header { channel_count, format, block_length_samples, .. } = before;
            Header { channel_count, format, block_length_samples, ..header }.write(head);
        }
    }

    /// Sets the description of the stream, one per batch, so that no stage and no queue can lose another. A source
    /// whose stream changes starts another batch. A new batch has the description of its pool
    /// ([`BatchPool::describe`](crate::BatchPool::describe)).
    #[inline]
    pub fn describe(&mut self, description: Option<&Arc<Description>>) {
        self.chunk.meta_mut().describe(description);
    }

    /// The description of the stream, if known.
    #[inline]
    pub fn description(&self) -> Option<&Arc<Description>> {
        self.chunk.meta().description.as_ref()
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

    /// Whether the batch has no frame.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Index of the chunk in its pool, for another process.
    pub fn index(&self) -> u32 {
        self.chunk.index()
    }

    /// Removes the frames.
    pub fn clear(&mut self) {
        self.chunk.meta_mut().clear();
    }

    /// Ends building, so that the batch can be lent.
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
    /// The frames in the lease's table.
    pub(crate) fn new(lease: Lease<Table>) -> Self {
        Self { lease }
    }

    /// The frames, in order.
    #[inline]
    pub fn frames(&self) -> Frames<'_> {
        Frames { bytes: self.lease.bytes(), spans: self.lease.meta().spans.iter() }
    }

    /// The description of the stream, if known. It holds from its
    /// [`first_sample_index`](Description::first_sample_index) on, which may lie within the batch or after it. The
    /// previous description holds for earlier samples. It is the same `Arc` until it changes.
    #[inline]
    pub fn description(&self) -> Option<&Arc<Description>> {
        self.lease.meta().description.as_ref()
    }

    /// Number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.lease.meta().spans.len()
    }

    /// Whether the batch has no frame.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Samples per channel, over all frames.
    #[inline]
    pub fn samples(&self) -> u64 {
        self.lease.meta().samples
    }

    /// Offset of each frame in the chunk, in order, for another process: see [`chunk`](Self::chunk).
    #[inline]
    pub fn offsets(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.lease.meta().spans.iter().map(|span| span.offset)
    }

    /// The whole chunk of the frames.
    #[inline]
    pub fn chunk(&self) -> &[u8] {
        self.lease.bytes()
    }

    /// Bytes of the chunk that this batch keeps from being reused.
    pub fn pinned_bytes(&self) -> usize {
        self.lease.bytes().len()
    }

    /// The frames' bytes, if the frames have one size and are contiguous, for sending with one scatter element. Also
    /// the size of a frame.
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

    /// The batch for changes in place, if nobody else holds it and its memory belongs to this process.
    ///
    /// # Errors
    /// The batch itself: copy what you change, and count the copy.
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

impl DoubleEndedIterator for Frames<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let span = self.spans.next_back()?;
        Frame::trusted(&self.bytes[span.range()])
    }
}

impl ExactSizeIterator for Frames<'_> {}

fn change_samples<T: Sample>(bytes: &mut [u8], change: impl FnOnce(&mut [T])) {
    if cfg!(target_endian = "little")
        && let Ok(samples) = bytemuck::try_cast_slice_mut(bytes)
    {
        return change(samples);
    }
    let mut samples = to_host(bytes);
    change(&mut samples);
    T::FORMAT.swap_to_host(bytemuck::cast_slice_mut(&mut samples));
    bytes.copy_from_slice(bytemuck::cast_slice(&samples));
}

#[cfg(test)]
mod tests;
