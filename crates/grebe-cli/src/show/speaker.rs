//! Plays sounds in a loop on the sound device of this machine.

use anyhow::{Result, ensure};
use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Running, Stage, StageResult};
use grebe_frame::{BatchPool, Header, SampleFormat};
use grebe_stages::{SinkOptions, open_sink};
use grebe_view::{Playing, Sound};

use crate::cli::SPEAKER;

/// Starts to play.
pub(super) fn play(sound: Sound) -> Playing {
    match start(sound) {
        Ok(running) => Playing::new(move || {
            let is_ended = running.is_ended();
            let error = running.take_error().map(|error| format!("{:#}", anyhow::Error::from(error)));
            is_ended
                .then(|| format!("not played: {}", error.as_deref().unwrap_or("the sound device has ended")))
        }),
        Err(error) => Playing::new(move || Some(format!("not played: {error:#}"))),
    }
}

fn start(sound: Sound) -> Result<Running> {
    ensure!(!sound.samples.is_empty(), "the box is shorter than a sample of sound");
    let sink = open_sink(&SPEAKER.parse()?, &SinkOptions::default(), &mut |_| ())?;
    let mut graph = Graph::new();
    let sound = graph.add("sound", Repeater::new(sound));
    let speaker = graph.add_boxed("speaker", sink.stage);
    graph.connect(sound, speaker, QueueOptions::block(1));
    Ok(graph.start()?)
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

/// Batches per second: the sound goes on that long after its end.
const BATCHES_HZ: u32 = 20;
