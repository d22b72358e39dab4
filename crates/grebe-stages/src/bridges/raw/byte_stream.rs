//! Samples back to back in a pipe or a TCP connection.

use std::io::{self, Read, Write};
use std::sync::Arc;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, monotonic_ns};
use grebe_frame::{BatchPool, Description, Frame, Header};
use grebe_process::stream::{CHUNK_BYTES, block_length};

use crate::bridges::raw::uri::RawStream;
use crate::error::{Error, channels_text};
use crate::session::{Bounded, Gaps, Limit, Shortfall, Silence};
use crate::transport::{Link, Outgoing, ReadResult, Reconnect, Wait, Written};

/// Reads samples from a byte stream. The stream ends when its writer closes it, or continues after a gap once it
/// reconnects.
///
/// A byte stream loses nothing until it is cut off. Only the clock shows what the writer dropped.
pub(crate) struct RawSource<R> {
    link: Link<R>,
    raw: RawStream,
    description: Option<Arc<Description>>,
    block_samples: usize,
    pool: Option<BatchPool>,
    /// Bytes read and not yet sent.
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    next: Header,
    limit: Limit,
    remote: Option<Box<dyn Retune<R>>>,
    /// Of a stream that is made as it comes.
    shortfall: Option<Shortfall>,
    counters: SourceCounted,
}

/// Forwards changes of the tuning to the device that makes the samples.
pub(crate) trait Retune<R>: Send {
    /// Sends the changes since the last call. `None`: there were none.
    fn retune(&mut self, to: &mut R) -> io::Result<Option<Retuned>>;
}

/// Properties that hold from the next sample on.
pub(crate) struct Retuned {
    /// Samples missing before it.
    pub(crate) gap_samples: u64,
    /// Skipped messages, which do not hold whole samples.
    pub(crate) odd_messages: u64,
    pub(crate) rate_hz: f64,
    /// `None`: unchanged.
    pub(crate) description: Option<Arc<Description>>,
}

impl<R: Read + Send + 'static> RawSource<R> {
    /// Samples from `from`. `wait` waits for up to 100 ms until there is something to read, and returns whether there
    /// is.
    pub(crate) fn new(from: R, wait: Wait<R>, raw: RawStream) -> Self {
        let frame_bytes = raw.frame_bytes();
        Self {
            link: Link::new(from, wait),
            description: raw.description(),
            block_samples: block_length(CHUNK_BYTES, raw.channels, raw.encoding.format, raw.rate_hz) as usize,
            pool: None,
            bytes: vec![0; BUFFER_BYTES.max(frame_bytes)],
            begin: 0,
            end: 0,
            next: raw.header(),
            raw,
            limit: Limit::default(),
            remote: None,
            shortfall: None,
            counters: SourceCounted::default(),
        }
    }

    /// Reconnects after a lost connection, and continues.
    pub(crate) fn reconnects(mut self, reconnect: Option<Reconnect<R>>) -> Self {
        self.link = self.link.reconnects(reconnect);
        self
    }

    /// Sets the description of the stream.
    pub(crate) fn described(mut self, description: Arc<Description>) -> Self {
        self.description = Some(description);
        self
    }

    /// Lets the user tune the device while the stream runs.
    pub(crate) fn retune(mut self, remote: Box<dyn Retune<R>>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Declares that the samples arrive as they are made, and counts those that are missing by the clock.
    pub(crate) fn by_the_clock(mut self) -> Self {
        self.shortfall = Some(Shortfall::default());
        self
    }

    /// Declares that the device drops samples without reporting it.
    pub(crate) fn loses_unseen(self) -> Self {
        self.counters.unseen_loss.set(1);
        self
    }

    /// Sends the bytes read, up to a full chunk.
    fn hand_on(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self.pool.get_or_insert_with(|| {
            let mut pool = BatchPool::new(ctx.batches_in_flight(), CHUNK_BYTES);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        batch.describe(self.description.as_ref());
        let frame_bytes = self.raw.frame_bytes();
        loop {
            let samples = ((self.end - self.begin) / frame_bytes).min(self.block_samples);
            if samples == 0 {
                break;
            }
            let bytes = &self.bytes[self.begin..self.begin + samples * frame_bytes];
            let header =
                Header { block_length_samples: samples as u32, producer_ts_ns: monotonic_ns(), ..self.next };
            let raw = &self.raw;
            if batch.push_bytes(&header, |channel, out| raw.take(bytes, channel, out)).is_err() {
                // The chunk is full: the rest goes into the next one.
                break;
            }
            self.begin += bytes.len();
            self.next.sequence += 1;
            self.next.first_sample_index += samples as u64;
        }
        if !batch.is_empty() {
            self.limit.send(batch.freeze(), output, ctx);
        }
        Ok(if self.limit.is_reached() { Outcome::End } else { Outcome::Produced })
    }

    /// Reads more bytes, if there are any.
    fn read(&mut self, ctx: &Context) -> StageResult<ReadResult> {
        if let Some(remote) = &mut self.remote
            && let Some(from) = self.link.get_mut()
        {
            match remote.retune(from) {
                Ok(Some(retuned)) => self.take(retuned),
                Ok(None) => {}
                Err(error) => return self.link.failed(error, ctx),
            }
        }
        self.link.read(&mut self.bytes[self.end..], ctx)
    }

    fn look_at_the_clock(&mut self) {
        let Some(shortfall) = &mut self.shortfall else { return };
        let waiting = (self.end - self.begin) / self.raw.frame_bytes();
        let samples = self.next.first_sample_index.wrapping_add(waiting as u64);
        let missing = shortfall.after_read(monotonic_ns(), samples, &self.next, &mut self.description);
        self.counters.clock_missing_samples.set(missing);
    }

    fn take(&mut self, retuned: Retuned) {
        self.leave_out(retuned.gap_samples);
        self.counters.odd_messages.add(retuned.odd_messages);
        self.next.sample_rate_hz = retuned.rate_hz;
        if let Some(description) = retuned.description {
            let first_sample_index = self.next.first_sample_index;
            let description = Arc::unwrap_or_clone(description);
            self.description = Some(Arc::new(Description { first_sample_index, ..description }));
        }
    }

    /// Marks a gap.
    fn leave_out(&mut self, gap_samples: u64) {
        if gap_samples > 0 {
            self.next.sequence += 1;
            self.next.first_sample_index = self.next.first_sample_index.wrapping_add(gap_samples);
            self.counters.lost_frames.add(1);
            self.counters.lost_samples.add(gap_samples);
        }
    }
}

impl<R: Read + Send + 'static> Bounded for RawSource<R> {
    fn limit(&mut self) -> &mut Limit {
        &mut self.limit
    }

    fn silence(&mut self) -> &mut Silence {
        self.link.silence()
    }
}

impl<R: Read + Send + 'static> Stage for RawSource<R> {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.end - self.begin >= self.raw.frame_bytes() {
            return self.hand_on(output, ctx);
        }
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        match self.read(ctx)? {
            ReadResult::Bytes(read) => {
                self.end += read;
                self.look_at_the_clock();
            }
            ReadResult::Nothing => {}
            // A partial sample is discarded.
            result @ (ReadResult::Lost | ReadResult::End) => {
                self.counters.odd_bytes.add(self.end as u64);
                self.end = 0;
                if result == ReadResult::End {
                    return Ok(Outcome::End);
                }
            }
            ReadResult::Reconnected(away) => {
                // The gap is the time without a connection by this machine's clock, at least one sample.
                let gap_samples = (away.as_secs_f64() * self.next.sample_rate_hz) as u64;
                self.leave_out(gap_samples.max(1));
                self.counters.reconnects.add(1);
            }
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(shortfall) = &mut self.shortfall {
            self.counters.clock_missing_samples.set(shortfall.end());
        }
        ctx.set_end_of_stream(Header { block_length_samples: 0, ..self.next });
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

/// Writes samples to a byte stream. Ends without an error when its reader has gone, or counts samples until one
/// returns.
///
/// Skips the gaps of the stream without a mark, and counts them.
pub(crate) struct RawSink<W> {
    to: Outgoing<W>,
    raw: RawStream,
    bytes: Vec<u8>,
    gaps: Gaps,
    counters: SinkCounted,
}

impl<W: Write + Send + 'static> RawSink<W> {
    pub(crate) fn new(to: W, raw: RawStream) -> Self {
        let (to, counters) = (Outgoing::new(to), SinkCounted::default());
        Self { to, raw, bytes: Vec::new(), gaps: Gaps::default(), counters }
    }

    /// Reconnects after a lost connection, and continues.
    pub(crate) fn reconnects(mut self, reconnect: Option<Reconnect<W>>) -> Self {
        self.to = self.to.reconnects(reconnect);
        self
    }
}

/// The samples of a frame, interleaved: in `scratch`, or in the frame if they are interleaved there.
pub(crate) fn interleaved<'a>(
    raw: &RawStream,
    frame: &'a Frame<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    let header = frame.header();
    let is_same = (header.format, header.channel_count as usize) == (raw.encoding.format, raw.channels);
    if !is_same || !raw.encoding.is_written() {
        return Err(Error::Raw {
            format: header.format,
            channels: header.channel_count,
            wanted: format!("{} in {}", raw.encoding, channels_text(raw.channels)),
        });
    }
    if raw.channels == 1 && raw.encoding.is_as_streamed() {
        return Ok(frame.channel_bytes(0).unwrap_or_default());
    }
    scratch.clear();
    scratch.resize(header.block_length_samples as usize * raw.frame_bytes(), 0);
    for channel in 0..raw.channels {
        raw.encoding.put(frame.channel_bytes(channel).unwrap_or_default(), channel, raw.channels, scratch);
    }
    raw.encoding.swap(scratch);
    Ok(scratch)
}

impl<W: Write + Send + 'static> Stage for RawSink<W> {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if self.to.comes_back(ctx)? {
            self.counters.reconnects.add(1);
        }
        for frame in batch.frames() {
            let header = frame.header();
            let gap = self.gaps.before(&header);
            self.counters.unmarked_gap_samples.add(gap);
            match self.to.write(interleaved(&self.raw, &frame, &mut self.bytes)?, ctx)? {
                Written::Whole => {}
                Written::Absent => self.counters.absent_samples.add(u64::from(header.block_length_samples)),
                Written::Gone => return Ok(Outcome::End),
            }
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        Ok(self.to.flush()?)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl<R> std::fmt::Debug for RawSource<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSource").field("raw", &self.raw).field("next", &self.next).finish_non_exhaustive()
    }
}

impl<W> std::fmt::Debug for RawSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawSink").field("raw", &self.raw).finish_non_exhaustive()
    }
}

const BUFFER_BYTES: usize = 256 << 10;
// `lost_*` are always zero here. They let a reader separate loss on the network from drops of the queues that follow.
grebe_flow::counters! {
    struct SourceCounted { odd_bytes, odd_messages, lost_frames, lost_samples, reconnects, gauge unseen_loss, gauge clock_missing_samples }
}
grebe_flow::counters! {
    struct SinkCounted { unmarked_gap_samples, absent_samples, reconnects }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_testing::stream::{Kept, Pieces};
    use proptest::prelude::*;

    use super::*;
    use crate::Uri;

    fn raw(query: &str) -> RawStream {
        match format!("pipe:?{query}").parse() {
            Ok(Uri::Raw(raw)) => *raw,
            other => panic!("{query}: {other:?}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The output equals the input for every cut of the bytes. A partial sample at the end is counted.
        #[test]
        fn bytes_go_through_as_they_came(
            format in prop::sample::select(vec!["i16", "cu8", "cf32be", "i24", "f64", "s16be", "ci8"]),
            channels in 1usize..9,
            length in 0usize..100_000,
            rate in prop::sample::select(vec!["", "&rate=1k", "&rate=1G"]),
            lengths in prop::collection::vec(1usize..9_000, 1..20),
        ) {
            let raw = raw(&format!("format={format}&channels={channels}{rate}"));
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
            let odd = length % raw.frame_bytes();
            let pieces = Pieces::new(bytes.clone(), lengths);
            let source = RawSource::new(pieces, |_| Ok(true), raw.clone());
            let counters = source.counters.all();
            let batches = StageBench::new(source).unwrap().end().unwrap();
            prop_assert_eq!(counters.get("odd_bytes"), Some(odd as u64));
            let frames: Vec<Header> = batches.iter().flat_map(|it| it.frames().map(|it| it.header())).collect();
            let mut next = 0;
            for header in &frames {
                prop_assert_eq!(header.first_sample_index, next);
                next += u64::from(header.block_length_samples);
            }
            prop_assert_eq!(next as usize, length / raw.frame_bytes());
            let written = Kept::default();
            let mut sink = StageBench::new(RawSink::new(written.clone(), raw)).unwrap();
            for batch in batches {
                sink.feed(batch).unwrap();
            }
            sink.end().unwrap();
            prop_assert!(*written.0.lock().unwrap() == bytes[..length - odd]);
        }
    }
}
