//! `pipe:` frames back to back on standard input and output, or on a pipe to another program.

use std::io::{self, Read};
use std::sync::Arc;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{
    Arrival, BatchMut, BatchPool, Description, DescriptionReader, HEADER_BYTES, Header, Refusal, Refusals,
    StreamTracker,
};
use grebe_link::arrival::ArrivalCounters;

use crate::error::Error;
use crate::session::{Bounded, Limit, Silence};
#[cfg(target_os = "linux")]
use crate::transport::standard::enlarge;
#[cfg(unix)]
use crate::transport::standard::readable;

/// Reads frames from a byte stream: standard input, or a child's standard output.
///
/// A byte stream has no marks to resynchronise at. An invalid frame ends the stream with an error that gives its
/// position. The frames before it are good.
pub struct PipeSource<R> {
    from: R,
    pool: Option<BatchPool>,
    /// Bytes per chunk: sized for the caches, until a larger frame arrives.
    chunk_bytes: usize,
    /// The start of an incomplete frame, which moves to the next chunk. Or bytes that belong to the next batch, because
    /// a new description precedes them.
    rest: Vec<u8>,
    has_whole: bool,
    position: u64,
    tracker: StreamTracker,
    /// The header of the end of the stream, once received.
    end: Option<Header>,
    descriptions: DescriptionReader,
    description: Option<Arc<Description>>,
    /// Whether a description came since the last frame of samples.
    is_described_anew: bool,
    refusals: Refusals,
    ends_with_writer: bool,
    silence: Silence,
    counters: ArrivalCounters,
    limit: Limit,
    wait: Wait<R>,
}

/// Waits for up to 100 ms until there is something to read. Returns whether there is.
type Wait<R> = fn(&R) -> io::Result<bool>;

#[cfg(unix)]
impl<R: Read + std::os::fd::AsFd + Send> PipeSource<R> {
    /// Frames from `from`. A stop takes effect within 100 ms although nothing arrives.
    pub fn new(from: R) -> Self {
        #[cfg(target_os = "linux")]
        enlarge(&from);
        Self::waiting(from, readable)
    }
}

#[cfg(not(unix))]
impl<R: Read + Send> PipeSource<R> {
    /// Frames from `from`.
    pub fn new(from: R) -> Self {
        Self::waiting(from, |_| Ok(true))
    }
}

impl<R: Read + Send> PipeSource<R> {
    fn waiting(from: R, wait: Wait<R>) -> Self {
        Self {
            from,
            pool: None,
            chunk_bytes: CHUNK_BYTES,
            rest: Vec::with_capacity(FRAME_BYTES_MAX),
            has_whole: false,
            position: 0,
            tracker: StreamTracker::new(),
            end: None,
            descriptions: DescriptionReader::default(),
            description: None,
            is_described_anew: false,
            refusals: Refusals::default(),
            ends_with_writer: false,
            silence: Silence::begin(),
            counters: ArrivalCounters::default(),
            limit: Limit::default(),
            wait,
        }
    }

    /// Whether closing the pipe between two frames ends the stream normally. Otherwise it is an error without an end
    /// frame, because the writer may have been killed.
    pub fn ends_with_writer(mut self, ends: bool) -> Self {
        self.ends_with_writer = ends;
        self
    }

    /// Adds the whole frames of the chunk's first `filled` bytes, up to a new description. Keeps the rest for the next
    /// chunk.
    fn split(&mut self, batch: &mut BatchMut, filled: usize) -> Result<(), Error> {
        let mut at = 0;
        batch.describe(self.description.as_ref());
        self.has_whole = false;
        loop {
            let bytes = &batch.chunk()[at..filled];
            if bytes.len() < HEADER_BYTES {
                break;
            }
            let refused = |why: String| Error::Pipe { at: self.position, why };
            let header = match Header::parse(bytes) {
                Ok(header) => header,
                Err(Refusal::Description) => {
                    let length = DescriptionReader::frame_bytes(bytes);
                    let frame_bytes = length.map_err(|reason| refused(reason.to_string()))?;
                    let Some(frame) = bytes.get(..frame_bytes) else { break };
                    // Not a hot path: once per change.
                    let frame = frame.to_vec();
                    if !batch.is_empty() {
                        self.has_whole = true;
                        break;
                    }
                    self.describe(&frame);
                    batch.describe(self.description.as_ref());
                    at += frame_bytes;
                    self.position += frame_bytes as u64;
                    continue;
                }
                Err(reason) => return Err(refused(reason.to_string())),
            };
            let frame_bytes = header.frame_bytes();
            if frame_bytes > FRAME_BYTES_MAX {
                return Err(refused(format!(
                    "a frame of {frame_bytes} bytes; the largest is {FRAME_BYTES_MAX}"
                )));
            }
            if bytes.len() < frame_bytes {
                if frame_bytes > self.chunk_bytes {
                    self.chunk_bytes = frame_bytes.next_power_of_two();
                    self.pool = None;
                }
                break;
            }
            let is_another = !self.is_described_anew && self.tracker.begins_again(&header);
            if is_another && self.description.is_some() && !batch.is_empty() {
                self.has_whole = true;
                break;
            }
            let arrival = self.tracker.arrive(&header);
            if arrival == Arrival::Restart && !self.is_described_anew {
                // A new stream, without a description so far.
                self.description = None;
                self.descriptions.forget();
                batch.describe(None);
            }
            self.is_described_anew = false;
            if header.is_end_of_stream() {
                self.end = Some(header);
            } else if arrival.is_new() {
                // Never full: the frame table has room for a chunk of nothing but headers.
                let _ = batch.adopt(at, &header);
            }
            at += frame_bytes;
            self.position += frame_bytes as u64;
        }
        self.rest.clear();
        self.rest.extend_from_slice(&batch.chunk()[at..filled]);
        Ok(())
    }

    /// Reads a description. A malformed one is counted and skipped, because its length is known.
    fn describe(&mut self, frame: &[u8]) {
        self.is_described_anew = true;
        match self.descriptions.take(frame) {
            Ok(Some(description)) => self.description = Some(Arc::new(description)),
            Ok(None) => {}
            Err(reason) => self.refusals.add(reason),
        }
    }
}

impl<R: Read + Send> Bounded for PipeSource<R> {
    fn limit(&mut self) -> &mut Limit {
        &mut self.limit
    }

    fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }
}

impl<R: Read + Send> Stage for PipeSource<R> {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        // Made before the first byte arrives, because it takes a while.
        let pool = self.pool.get_or_insert_with(|| {
            // Larger chunks than elsewhere, so that one read empties a full pipe.
            let mut pool = BatchPool::new(
                ctx.batches_in_flight().min(POOL_CHUNKS_MAX).min(POOL_BYTES_MAX / self.chunk_bytes),
                self.chunk_bytes,
            );
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        if !self.has_whole && !ctx.waiting(|| (self.wait)(&self.from))? {
            self.silence.check()?;
            return Ok(Outcome::Produced);
        }
        self.silence.hear();
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        let begun = self.rest.len();
        batch.chunk()[..begun].copy_from_slice(&self.rest);
        let read = match self.has_whole {
            true => Ok(0),
            false => self.from.read(&mut batch.chunk()[begun..]),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Outcome::Produced),
            Err(error) => return Err(error.into()),
        };
        if read == 0 && !self.has_whole {
            return match begun {
                0 if self.ends_with_writer => Ok(Outcome::End),
                0 => Err(Error::Gone.into()),
                _ => {
                    let why = format!("it ended within a frame, of which {begun} bytes arrived");
                    Err(Error::Pipe { at: self.position, why }.into())
                }
            };
        }
        let result = self.split(&mut batch, begun + read);
        self.counters.publish(&self.tracker);
        self.counters.publish_refusals(&self.refusals);
        if !batch.is_empty() {
            self.limit.send(batch.freeze(), output, ctx);
        }
        if self.limit.is_reached() {
            // The requested samples are complete, so an error after them does not matter.
            return Ok(Outcome::End);
        }
        result?;
        Ok(if self.tracker.is_ended() { Outcome::End } else { Outcome::Produced })
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(end) = self.end {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shared())
    }
}

impl<R> std::fmt::Debug for PipeSource<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeSource").field("position", &self.position).finish_non_exhaustive()
    }
}

const CHUNK_BYTES: usize = 256 << 10;
/// Eight channels of 256 Ki samples. Other programs write pieces of a quarter of that.
pub(super) const FRAME_BYTES_MAX: usize = 4 << 20;
const POOL_CHUNKS_MAX: usize = 64;
/// Large frames get fewer chunks.
const POOL_BYTES_MAX: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_testing::stream::Pieces;
    use proptest::prelude::*;

    use super::*;

    fn stream(blocks: &[u32]) -> (Vec<u8>, Vec<Vec<i16>>) {
        let (mut bytes, mut samples) = (Vec::new(), Vec::new());
        let (mut index, mut sequence) = (0, 0);
        for &block in blocks {
            let header = Header {
                sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: index,
                ..Header::default()
            };
            let mut head = [0; HEADER_BYTES];
            header.write(&mut head);
            bytes.extend(head);
            let frame: Vec<i16> = (0..block).map(|sample| (index as u32 + sample) as i16).collect();
            frame.iter().for_each(|sample| bytes.extend(sample.to_le_bytes()));
            samples.push(frame);
            (index, sequence) = (index + u64::from(block), sequence + 1);
        }
        (bytes, samples)
    }

    /// As `stream`, with an end frame.
    fn whole_stream(blocks: &[u32]) -> (Vec<u8>, Vec<Vec<i16>>) {
        let (mut bytes, samples) = stream(blocks);
        let mut end = [0; HEADER_BYTES];
        let first_sample_index = blocks.iter().map(|&block| u64::from(block)).sum();
        let sequence = blocks.len() as u64;
        Header { sequence, channel_count: 1, first_sample_index, ..Header::default() }.write(&mut end);
        bytes.extend(end);
        (bytes, samples)
    }

    fn read(bytes: Vec<u8>, lengths: Vec<usize>) -> (Vec<Vec<i16>>, Result<(), String>) {
        let source = PipeSource::waiting(Pieces::new(bytes, lengths), |_| Ok(true));
        let mut bench = StageBench::new(source).unwrap();
        match bench.end() {
            Ok(batches) => {
                let frames = batches.iter().flat_map(|batch| batch.frames());
                (frames.map(|frame| frame.channel::<i16>(0).unwrap().to_vec()).collect(), Ok(()))
            }
            Err(error) => (Vec::new(), Err(error.to_string())),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The frames are the same for every cut of the bytes.
        #[test]
        fn read_boundaries_do_not_matter(
            blocks in prop::collection::vec(1u32..700, 1..40), lengths in prop::collection::vec(1usize..3000, 1..20),
        ) {
            let (bytes, samples) = whole_stream(&blocks);
            let (frames, result) = read(bytes, lengths);
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(frames, samples);
        }
    }

    #[test]
    fn a_frame_larger_than_a_chunk_gets_larger_chunks() {
        // The third is as large as other programs write: 1,048,640 bytes.
        let (bytes, samples) = whole_stream(&[100, 400_000, 524_288, 100, 1_500_000]);
        assert_eq!(read(bytes, vec![CHUNK_BYTES]), (samples, Ok(())));
        let (bytes, _) = stream(&[2_200_000]);
        let refused = read(bytes, vec![CHUNK_BYTES]).1.unwrap_err();
        assert!(refused.contains("4400064 bytes"), "{refused}");
    }

    #[test]
    fn a_pipe_source_ends_after_the_requested_samples() {
        let (bytes, _) = stream(&[10, 10, 10]);
        let pieces = Pieces::new(bytes, vec![84]);
        let source = PipeSource::waiting(pieces, |_| Ok(true)).samples(Some(13));
        let made = StageBench::new(source).unwrap().end().unwrap();
        let samples: Vec<i16> = made
            .iter()
            .flat_map(|batch| batch.frames())
            .flat_map(|frame| frame.channel::<i16>(0).unwrap().into_owned())
            .collect();
        assert_eq!(samples, (0..13).collect::<Vec<i16>>());
    }

    #[test]
    fn a_writer_that_knows_no_end_may_just_go() {
        let (bytes, samples) = stream(&[10, 10]);
        let pieces = Pieces::new(bytes, vec![1000]);
        let source = PipeSource::waiting(pieces, |_| Ok(true)).ends_with_writer(true);
        let made = StageBench::new(source).unwrap().end().unwrap();
        let frames = made.iter().flat_map(|batch| batch.frames());
        assert_eq!(
            frames.map(|frame| frame.channel::<i16>(0).unwrap().to_vec()).collect::<Vec<_>>(),
            samples
        );
    }

    #[test]
    fn a_writer_that_has_gone_between_two_frames_is_missed() {
        for blocks in [&[][..], &[10, 10]] {
            let gone = read(stream(blocks).0, vec![1000]).1.unwrap_err();
            assert!(gone.contains("closed without an end of stream"), "{gone}");
        }
    }

    #[test]
    fn a_stream_that_is_cut_says_where() {
        let (bytes, _) = stream(&[10, 10]);
        let cut = read(bytes[..bytes.len() - 3].to_vec(), vec![1000]).1.unwrap_err();
        assert_eq!(
            cut,
            "stage: invalid frame at byte 84 of the pipe: it ended within a frame, of which 81 bytes arrived"
        );
        let mut damaged = bytes;
        damaged[84] = 0;
        let lost = read(damaged, vec![1000]).1.unwrap_err();
        assert_eq!(lost, "stage: invalid frame at byte 84 of the pipe: does not begin with GFH2");
    }
}
