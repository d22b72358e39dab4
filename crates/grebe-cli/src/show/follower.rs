//! One channel of a stream as a scope gets it, for a graph.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{BatchPool, Header};
use grebe_view::{HistoryReader, ScopeLink};

use super::held::{Frames, LENT_VALUES, lower_priority};
use crate::search::Signal;

/// Source of a channel from now on. A consumer that is too slow loses samples: a gap.
pub(super) struct Follower {
    link: ScopeLink,
    /// From 0.
    channel: usize,
    /// Whether viewers and streams go first.
    is_background: bool,
    pool: BatchPool,
    sequence: u64,
    /// `None` before the first step, whose thread it belongs to.
    stream: Option<Followed>,
}

struct Followed {
    reader: HistoryReader,
    signal: Signal,
    frames: Frames,
    /// Number of the stream.
    streams: u64,
    /// Index of the next sample.
    next: u64,
    /// When the last samples came.
    came: Instant,
}

impl Followed {
    fn samples_in(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.signal.sample_rate_hz) as u64
    }
}

impl Follower {
    pub(super) fn new(link: ScopeLink, channel: usize, is_background: bool) -> Self {
        Self { link, channel, is_background, pool: BatchPool::new(8, 64 << 10), sequence: 0, stream: None }
    }

    /// Follows the present stream from a moment ago; `None` if the graph stops before there is one.
    fn begin(&self, ctx: &Context) -> Result<Option<Followed>> {
        if self.is_background {
            lower_priority();
        }
        let reader = self.link.reader();
        loop {
            let Some(picture) = ctx.waiting(|| reader.picture(|| !ctx.is_stopping())) else {
                return Ok(None);
            };
            let Some(stream) = picture.stream.filter(|_| !picture.is_ended) else {
                ctx.waiting(|| std::thread::sleep(LOOK_EVERY));
                continue;
            };
            ensure!(stream.rate_hz > 0.0, "the sample rate of the stream is unknown");
            let signal = Signal {
                format: stream.format,
                channels: stream.channels,
                sample_rate_hz: stream.rate_hz,
                description: None,
            };
            let (frames, streams, next) = (Frames::new(&signal), picture.streams, picture.next_index);
            let mut followed = Followed { reader, signal, frames, streams, next, came: Instant::now() };
            followed.next = next.saturating_sub(followed.samples_in(LEAD));
            return Ok(Some(followed));
        }
    }
}

impl Stage for Follower {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let followed = match self.stream.take() {
            Some(followed) => Some(followed),
            None => self.begin(ctx)?,
        };
        let Some(mut followed) = followed else { return Ok(Outcome::Produced) };
        let (lead, lag_max) = (followed.samples_in(LEAD), followed.samples_in(LAG_MAX));
        let Followed { reader, signal, frames, streams, next, .. } = &mut followed;
        let lanes = (signal.channels * signal.format.components()).max(1) as u64;
        let end = next.saturating_add((LENT_VALUES / lanes).max(1));
        let goes_on = || !ctx.is_stopping();
        let Some(extract) = ctx.waiting(|| reader.read(*next..end, goes_on)) else {
            return Ok(Outcome::Produced);
        };
        if extract.streams != *streams {
            // Another one has begun.
            return Ok(Outcome::Produced);
        }
        let description = extract.descriptions.first().cloned().map(Arc::new);
        let (pool, sequence, channel) = (&mut self.pool, &mut self.sequence, self.channel);
        frames.each(&extract, |first_sample_index, block| {
            let bytes = block.channel_bytes(channel)?;
            let header = Header {
                sequence: *sequence,
                format: block.format(),
                channel_count: 1,
                block_length_samples: (bytes.len() / block.format().bytes()) as u32,
                sample_rate_hz: signal.sample_rate_hz,
                first_sample_index,
                ..Header::default()
            };
            let mut lent = None;
            while lent.is_none() && !ctx.is_stopping() {
                lent = ctx.acquire(pool);
            }
            let Some(mut batch) = lent else { return Ok(()) };
            batch.describe(description.as_ref());
            batch.push_bytes(&header, |_, out| out.copy_from_slice(bytes))?;
            output.send(batch.freeze(), ctx);
            *sequence += 1;
            Ok(())
        })?;
        let (newest, before) = (extract.held.end, *next);
        *next = end.min(newest).max(before);
        if newest.saturating_sub(*next) > lag_max {
            *next = newest - lead;
        }
        if *next > before {
            followed.came = Instant::now();
        } else if followed.came.elapsed() < LAG_MAX {
            ctx.waiting(|| std::thread::sleep(LOOK_EVERY));
        } else {
            let picture = ctx.waiting(|| followed.reader.picture(goes_on));
            if picture.is_some_and(|picture| picture.is_ended) {
                return Ok(Outcome::End);
            }
            followed.came = Instant::now();
        }
        self.stream = Some(followed);
        Ok(Outcome::Produced)
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Samples that wait in the sound device, for the time between two batches of the stream.
const LEAD: Duration = Duration::from_millis(300);
/// The clock of a device is slower than that of the stream.
const LAG_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use grebe_flow::{Graph, QueueOptions};
    use grebe_frame::SampleFormat;
    use grebe_view::ScopeFeed;

    use super::*;

    struct Tray(Sender<(u64, Vec<i16>)>);

    impl Stage for Tray {
        fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            for frame in batch.frames() {
                self.0.send((frame.header().first_sample_index, frame.channel::<i16>(0)?.to_vec()))?;
            }
            Ok(Outcome::Produced)
        }
    }

    const RATE_HZ: f64 = 100e3;
    const BLOCK_SAMPLES: u32 = 1_000;

    fn feed(feed: &mut ScopeFeed, sequence: u64) {
        let first = sequence * u64::from(BLOCK_SAMPLES);
        let header = Header {
            sequence,
            format: SampleFormat::I16,
            channel_count: 2,
            block_length_samples: BLOCK_SAMPLES,
            sample_rate_hz: RATE_HZ,
            first_sample_index: first,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 1 << 16).acquire().unwrap();
        let fill = |channel: usize, out: &mut [i16]| {
            out.iter_mut().zip(first..).for_each(|(out, index)| *out = value(channel, index));
        };
        batch.push(&header, fill).unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }

    fn value(channel: usize, index: u64) -> i16 {
        (index % 10_007) as i16 * if channel == 1 { 1 } else { -1 }
    }

    #[test]
    fn a_channel_of_a_stream_is_followed_from_a_moment_ago_to_its_end() {
        let (mut scope, link) = ScopeFeed::new(8 << 20);
        (0..100).for_each(|sequence| feed(&mut scope, sequence));
        let (tray, taken) = channel();
        let mut graph = Graph::new();
        let follower = graph.add("follower", Follower::new(link, 1, false));
        let tray = graph.add("tray", Tray(tray));
        graph.connect(follower, tray, QueueOptions::block(1));
        let running = graph.start().unwrap();
        let mut heard = Vec::new();
        let (began, mut sequence) = (Instant::now(), 100);
        while heard.len() < 60_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "{} samples", heard.len());
            // The scope answers between its batches.
            scope.idle();
            if sequence < 140 && heard.len() >= 30_000 {
                feed(&mut scope, sequence);
                sequence += 1;
            }
            for (first, samples) in taken.try_iter() {
                assert_eq!(first, 70_000 + heard.len() as u64);
                heard.extend(samples);
            }
            std::thread::yield_now();
        }
        scope.finish();
        running.wait().unwrap();
        heard.extend(taken.iter().flat_map(|(_, samples)| samples));
        assert_eq!(heard.len() as u64, sequence * u64::from(BLOCK_SAMPLES) - 70_000);
        assert!(heard.iter().zip(70_000..).all(|(heard, index)| *heard == value(1, index)));
    }
}
