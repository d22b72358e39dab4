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

use super::follower::Follower;
use super::listener::{demodulator, sound_sample};
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
    playing(|| {
        let teller = Teller { tell, samples: Vec::new(), _turn: Arc::clone(turn) };
        // One more has it: the source itself.
        let others = Arc::strong_count(turn) - 2;
        ensure!(others < LIVE_MAX, "{LIVE_MAX} others listen live to this source");
        let (mut graph, follower, demodulator) = live(link, heard, true)?;
        let teller = graph.add("teller", teller);
        graph.fuse(follower, demodulator);
        graph.fuse(demodulator, teller);
        Ok(graph.start()?)
    })
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
