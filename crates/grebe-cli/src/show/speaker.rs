//! Plays sounds on the sound device of this machine.
//!
//! ```text
//!   Repeater ------------------> audio:      a finished sound, in a loop
//!   Follower --> demodulator --> audio:      a band of a stream, from now on
//!   Follower --> demodulator --> Teller      the same for a page, whose browser plays it
//! ```

use std::sync::Arc;

use anyhow::{Result, ensure};
use grebe_flow::{Context, Graph, Inputs, Node, Outcome, Outputs, QueueOptions, Running, Stage, StageResult};
use grebe_frame::{BatchPool, Header, SampleFormat};
use grebe_stages::{SinkOptions, open_sink};
use grebe_view::{HeardBox, Playing, ScopeLink, Sound};

use super::box_sound::{demodulator, sound_sample};
use super::follower::Follower;
use crate::cli::SPEAKER;

/// Starts to play a sound in a loop.
pub(super) fn repeat(sound: Sound) -> Playing {
    playing(move || {
        ensure!(!sound.samples.is_empty(), "the box is shorter than a sample of sound");
        let mut graph = Graph::new();
        let sound = graph.add("sound", Repeater::new(sound));
        play(graph, sound, speaker()?)
    })
}

/// Starts to play the band of a box from now on.
pub(super) fn play_live(link: &ScopeLink, heard: &HeardBox) -> Playing {
    playing(|| {
        let (mut graph, follower, demodulator) = live(link, heard, false)?;
        graph.connect(follower, demodulator, QueueOptions::block(1));
        play(graph, demodulator, speaker()?)
    })
}

/// Starts to pass the sound of the band of a box on from now on, in one thread of low priority. The owners of `turn` are limited.
pub(super) fn tell_live(
    link: &ScopeLink,
    heard: &HeardBox,
    tell: Box<dyn FnMut(Sound) + Send>,
    turn: &Arc<()>,
) -> Playing {
    playing(|| start_to_tell(link, heard, tell, turn))
}

fn start_to_tell(
    link: &ScopeLink,
    heard: &HeardBox,
    tell: Box<dyn FnMut(Sound) + Send>,
    turn: &Arc<()>,
) -> Result<Running> {
    let teller = Teller { tell, samples: Vec::new(), _turn: Arc::clone(turn) };
    // The source itself is an owner, too.
    ensure!(Arc::strong_count(turn) - 2 < LIVE_MAX, "{LIVE_MAX} others listen live to this source");
    let (mut graph, follower, demodulator) = live(link, heard, true)?;
    let teller = graph.add("teller", teller);
    graph.fuse(follower, demodulator);
    graph.fuse(demodulator, teller);
    Ok(graph.start()?)
}

/// The graph of live sound without its end.
fn live(link: &ScopeLink, heard: &HeardBox, is_background: bool) -> Result<(Graph, Node, Node)> {
    let mut graph = Graph::new();
    let follower = graph.add("follower", Follower::new(link.clone(), heard.channel, is_background));
    let demodulator = graph.add_boxed("demodulator", demodulator(heard)?.1);
    Ok((graph, follower, demodulator))
}

fn speaker() -> Result<Box<dyn Stage>> {
    Ok(open_sink(&SPEAKER.parse()?, &SinkOptions::default(), &mut |_| ())?.stage)
}

fn play(mut graph: Graph, sound: Node, speaker: Box<dyn Stage>) -> Result<Running> {
    let speaker = graph.add_boxed("speaker", speaker);
    graph.connect(sound, speaker, QueueOptions::block(1));
    Ok(graph.start()?)
}

fn playing(start: impl FnOnce() -> Result<Running>) -> Playing {
    match start() {
        Ok(running) => Playing::new(move || {
            let is_ended = running.is_ended();
            let error = running.take_error();
            let error = error.map(|error| format!("not played: {:#}", anyhow::Error::from(error)));
            is_ended.then(|| error.unwrap_or_else(|| "the stream has ended".to_owned()))
        }),
        Err(error) => Playing::new(move || Some(format!("not played: {error:#}"))),
    }
}

/// Source of a sound that repeats without end.
struct Repeater {
    sound: Sound,
    pool: BatchPool,
    sequence: u64,
    /// Index of the next sample, counted through all repetitions.
    next: u64,
}

impl Repeater {
    fn new(sound: Sound) -> Self {
        Self { sound, pool: BatchPool::new(4, 64 << 10), sequence: 0, next: 0 }
    }
}

impl Stage for Repeater {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(mut batch) = ctx.acquire(&mut self.pool) else { return Ok(Outcome::Produced) };
        let Sound { rate_hz, samples, .. } = &self.sound;
        let header = Header {
            sequence: self.sequence,
            format: SampleFormat::I16,
            channel_count: 1,
            block_length_samples: rate_hz.div_ceil(BATCHES_HZ),
            sample_rate_hz: f64::from(*rate_hz),
            first_sample_index: self.next,
            ..Header::default()
        };
        let begin = (self.next % samples.len() as u64) as usize;
        let mut repeated = samples.iter().cycle().skip(begin);
        batch.push::<i16>(&header, |_, out| {
            out.iter_mut().zip(&mut repeated).for_each(|(out, it)| *out = *it)
        })?;
        output.send(batch.freeze(), ctx);
        self.sequence += 1;
        self.next += u64::from(header.block_length_samples);
        Ok(Outcome::Produced)
    }
}

/// Passes sound on.
struct Teller {
    tell: Box<dyn FnMut(Sound) + Send>,
    samples: Vec<i16>,
    _turn: Arc<()>,
}

impl Stage for Teller {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            self.samples.extend(frame.channel::<f32>(0)?.iter().map(|&it| sound_sample(it)));
            let rate_hz = frame.header().sample_rate_hz as u32;
            if self.samples.len() >= (rate_hz / PIECES_HZ) as usize {
                let samples = std::mem::take(&mut self.samples);
                (self.tell)(Sound { rate_hz, samples, is_live: true, ..Sound::default() });
            }
        }
        Ok(Outcome::Produced)
    }
}

/// Batches per second: the sound goes on that long after its end.
const BATCHES_HZ: u32 = 20;
/// Pieces of live sound per second.
const PIECES_HZ: u32 = 10;
/// Live sounds of a source for pages.
const LIVE_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use grebe_frame::Complex;
    use grebe_view::ScopeFeed;

    use super::*;
    use crate::cli::MODES;

    const RATE_HZ: f64 = 200e3;

    /// A station of FM at 20 kHz with a tone of 1 kHz.
    fn sample(index: u64) -> Complex<f32> {
        let turns = |hz: f64| TAU * (hz * index as f64 / RATE_HZ).fract();
        let angle = turns(20e3) - 2.5 * turns(1e3).cos();
        Complex::new((0.5 * angle.cos()) as f32, (0.5 * angle.sin()) as f32)
    }

    fn feed(feed: &mut ScopeFeed, sequence: u64) {
        let (block, format) = (2_000, SampleFormat::Cf32);
        let header = Header {
            sequence,
            format,
            channel_count: 1,
            block_length_samples: block,
            sample_rate_hz: RATE_HZ,
            first_sample_index: sequence * u64::from(block),
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 1 << 16).acquire().unwrap();
        let indices = header.first_sample_index..;
        let fill = |_: usize, out: &mut [Complex<f32>]| {
            out.iter_mut().zip(indices.clone()).for_each(|(out, index)| *out = sample(index));
        };
        batch.push(&header, fill).unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }

    #[test]
    fn a_station_is_told_live_in_pieces_to_a_few_at_once() {
        let (mut scope, link) = ScopeFeed::new(64 << 20);
        feed(&mut scope, 0);
        let modulation = MODES.iter().position(|it| it.0 == "fm").unwrap();
        let heard = HeardBox { channel: 0, samples: 0..1, low_hz: 10e3, high_hz: 30e3, modulation };
        let (turn, (pieces, told)) = (Arc::new(()), channel());
        let start = || {
            let pieces = pieces.clone();
            start_to_tell(&link, &heard, Box::new(move |piece| pieces.send(piece).unwrap()), &turn)
        };
        let first = start().unwrap();
        let mut sounds: Vec<i16> = Vec::new();
        let (began, mut sequence) = (Instant::now(), 1);
        while sounds.len() < 24_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "{} samples of sound", sounds.len());
            // The scope answers between its batches.
            scope.idle();
            // No faster than it is heard, which would be a gap.
            if sequence * 2_000 < 40_000 + sounds.len() as u64 * 200 / 24 {
                feed(&mut scope, sequence);
                sequence += 1;
            }
            for piece in told.try_iter() {
                assert_eq!((piece.rate_hz, piece.is_live), (24_000, true));
                assert!((2_400..4_800).contains(&piece.samples.len()), "{}", piece.samples.len());
                sounds.extend(piece.samples);
            }
            std::thread::yield_now();
        }
        let crossings = sounds[4_000..22_000].windows(2).filter(|it| it[0] < 0 && it[1] >= 0).count();
        assert!((749..=751).contains(&crossings), "{crossings} in 0.75 s of 1 kHz");
        let others: Vec<_> = (1..LIVE_MAX).map(|_| start().unwrap()).collect();
        assert_eq!(start().map(drop).unwrap_err().to_string(), "4 others listen live to this source");
        for running in others.into_iter().chain([first]) {
            running.stop().unwrap();
        }
        start().unwrap().stop().unwrap();
    }
}
