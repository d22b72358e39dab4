//! Reduces the rate of a stream after a low-pass filter.

use std::f64::consts::PI;

use grebe_flow::{
    Context, Count, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult,
};
use grebe_frame::{Batch, Description, Frame, Header};
use schemars::JsonSchema;
use serde::Deserialize;

use super::block::{Block, Frames, finish};
use crate::numbers::{load, store};
use crate::simd::products;

/// Reduces the sample rate by `factor`, after a low-pass filter against aliases.
///
/// The filter is a Kaiser window of 26 x `factor` + 1 taps. It is flat within 0.01 dB up to 0.4 of the new
/// rate. From 0.6 on it is 80 dB down, so that aliases land above 0.4. Its delay is compensated: output
/// sample n has the time of input sample n x `factor`. Samples before the stream, after its end and in gaps
/// count as zero, so the 13 samples at each edge are attenuated. Takes any format and computes in 32-bit
/// floating point. Integers are rounded, ties to even, and saturated, which is counted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecimateFiltered {
    /// Decimation factor: 2 to 1000.
    pub factor: Count,
}

impl Kind for DecimateFiltered {
    const NAME: &'static str = "decimate_filtered";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        match self.factor.0 {
            2..=FACTOR_MAX => Ok(()),
            factor => Err(Fault::new(
                "factor",
                format!("{factor}: give 2 to {FACTOR_MAX}; two stages reduce by their product"),
            )),
        }
    }

    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        Some(incoming? / self.factor.0 as f64)
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(DecimateFilteredStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct DecimateFilteredStage {
    factor: u64,
    /// Taps for real samples, and for interleaved I and Q.
    taps: [Vec<f32>; 2],
    stretch: Option<Stretch>,
    /// By channel: history for the next sample, and newer numbers.
    lines: Vec<Vec<f32>>,
    block: Block<f32>,
    frames: Frames,
    /// Batch, number of its finished frames, and number of finished samples of the next one.
    pending: Option<(Batch, usize, usize)>,
    saturated_samples: u64,
    counters: Counted,
}

/// Samples without a gap.
#[derive(Debug)]
struct Stretch {
    /// Header of its last frame.
    header: Header,
    /// Index after its last sample.
    end: u64,
    /// Output index of the next sample.
    next: u64,
    /// Index of the first sample in the lines; negative at first, because the filter reaches back.
    origin: i64,
    /// Whether the zeros after the end are in the lines.
    is_ended: bool,
}

impl DecimateFilteredStage {
    pub(crate) fn new(decimate: &DecimateFiltered) -> Self {
        let factor = decimate.factor.0.max(1);
        let taps = low_pass(factor as usize);
        let twice = taps.iter().flat_map(|&tap| [tap, tap]).collect();
        Self {
            factor,
            taps: [taps, twice],
            stretch: None,
            lines: Vec::new(),
            block: Block::new(),
            frames: Frames::default(),
            pending: None,
            saturated_samples: 0,
            counters: Counted::default(),
        }
    }

    /// Reach of the filter to either side, in samples.
    fn reach(&self) -> i64 {
        (HALF_SPAN * self.factor) as i64
    }

    /// Takes a frame from this sample on. On an error, returns the position at which it stopped for lack of a
    /// chunk.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Result<(), usize> {
        let header = frame.header();
        if from == 0 && !self.stretch.as_ref().is_some_and(|stretch| stretch.goes_on(&header)) {
            if !self.end(output, ctx) {
                return Err(0);
            }
            self.begin(&header);
        }
        let length = header.block_length_samples as usize;
        let mut at = from;
        loop {
            if !self.make(output, ctx) {
                return Err(at);
            }
            if at == length {
                return Ok(());
            }
            let count = PIECE.min(length - at);
            for (channel, line) in self.lines.iter_mut().enumerate() {
                let (start, bytes) = (line.len(), header.format.bytes());
                line.resize(start + count * header.format.components(), 0.0);
                // It has the channels of the lines.
                let samples = frame.channel_bytes(channel).unwrap_or_default();
                load(header.format, &samples[at * bytes..(at + count) * bytes], &mut line[start..]);
            }
            at += count;
            if let Some(stretch) = &mut self.stretch {
                (stretch.header, stretch.end) = (header, header.first_sample_index + at as u64);
            }
        }
    }

    fn begin(&mut self, header: &Header) {
        let next = header.first_sample_index.div_ceil(self.factor);
        let origin = (next * self.factor) as i64 - self.reach();
        let zeros = (header.first_sample_index as i64 - origin) as usize;
        self.lines.resize_with(header.channel_count as usize, Vec::new);
        for line in &mut self.lines {
            line.clear();
            line.resize(zeros * header.format.components(), 0.0);
        }
        let end = header.first_sample_index;
        self.stretch = Some(Stretch { header: *header, end, next, origin, is_ended: false });
    }

    /// Computes the available samples. Returns whether there were chunks for complete frames.
    fn make(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        let (factor, reach) = (self.factor, self.reach());
        loop {
            if self.block.is_full() && !self.flush(output, ctx) {
                return false;
            }
            let Some(stretch) = &mut self.stretch else { return true };
            let width = stretch.header.format.components();
            let held = self.lines.first().map_or(0, Vec::len) / width;
            let start = ((stretch.next * factor) as i64 - reach - stretch.origin) as usize;
            let ready = stretch.ready(held, reach, factor);
            if ready == 0 {
                // Drops unneeded history once it is as long as the rest.
                let unneeded = start.min(held);
                if unneeded > 2 * reach as usize + 1 {
                    self.lines.iter_mut().for_each(|line| drop(line.drain(..unneeded * width)));
                    stretch.origin += unneeded as i64;
                }
                return true;
            }
            if self.block.len() == 0 {
                self.block.begin(scaled(&stretch.header, stretch.next, factor), 1, width);
            }
            let mut made = [[0.0; 2]; MADE_MAX];
            let made = &mut made[..ready.min(self.block.room()).min(MADE_MAX)];
            for (channel, line) in self.lines.iter().enumerate() {
                products(&self.taps[width - 1], &line[start * width..], factor as usize * width, made);
                if width == 2 {
                    self.block.extend(channel, made.iter().flatten().copied());
                } else {
                    self.block.extend(channel, made.iter().map(|[even, odd]| even + odd));
                }
            }
            stretch.next += made.len() as u64;
        }
    }

    /// Computes and sends the samples up to the end of the stretch. Returns whether there were chunks.
    fn end(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        let reach = self.reach() as usize;
        if let Some(stretch) = &mut self.stretch
            && !std::mem::replace(&mut stretch.is_ended, true)
        {
            let zeros = reach * stretch.header.format.components();
            self.lines.iter_mut().for_each(|line| line.resize(line.len() + zeros, 0.0));
        }
        let is_made = self.make(output, ctx) && self.flush(output, ctx);
        if is_made {
            self.stretch = None;
        }
        is_made
    }

    fn flush(&mut self, output: &mut Outputs, ctx: &Context) -> bool {
        let format = self.block.format();
        let saturated = &mut self.saturated_samples;
        let write = |numbers: &[f32], out: &mut [u8]| *saturated += store(format, numbers, out);
        self.block.flush(&mut self.frames, write, output, ctx)
    }
}

impl Stretch {
    /// Number of output samples that `held` samples in the lines allow, with this reach to either side.
    fn ready(&self, held: usize, reach: i64, factor: u64) -> usize {
        let first = (self.next * factor) as i64;
        // Last sample received, and last one whose reach is complete.
        let last = (self.end as i64 - 1).min(self.origin + held as i64 - 1 - reach);
        if last < first { 0 } else { ((last - first) as u64 / factor) as usize + 1 }
    }

    fn goes_on(&self, header: &Header) -> bool {
        let last = &self.header;
        !self.is_ended
            && header.first_sample_index == self.end
            && header.format == last.format
            && header.channel_count == last.channel_count
            && header.sample_rate_hz == last.sample_rate_hz
    }
}

impl Stage for DecimateFilteredStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0, 0)));
        let Some((batch, done, mut from)) = next else { return Ok(Outcome::WantsInput) };
        let factor = self.factor;
        let rate_hz = batch.frames().next().map_or(0.0, |frame| frame.header().sample_rate_hz);
        self.frames.rewriter.describe(batch.description(), |input| {
            let kept_hz = rate_hz / factor as f64 * KEPT;
            Description {
                bandwidth_hz: input.bandwidth_hz.map(|bandwidth_hz| bandwidth_hz.min(kept_hz)),
                ..input.decimated(factor, 1, rate_hz)
            }
        });
        for (at, frame) in batch.frames().enumerate().skip(done) {
            if let Err(stopped) = self.take(&frame, from, output, ctx) {
                self.pending = Some((batch, at, stopped));
                return Ok(Outcome::Again);
            }
            from = 0;
        }
        self.frames.check()?;
        self.frames.rewriter.flush(output, ctx);
        self.counters.saturated_samples.set(self.saturated_samples);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        finish(|| self.end(output, ctx))?;
        self.frames.check()?;
        self.frames.rewriter.flush(output, ctx);
        self.counters.saturated_samples.set(self.saturated_samples);
        if let Some(end) = ctx.end_of_stream(None) {
            let scaled = scaled(&end, end.first_sample_index.div_ceil(self.factor), self.factor);
            ctx.set_end_of_stream(Header { sequence: self.frames.sequence, ..scaled });
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        DecimateFiltered::PORTS
    }
}

/// Header after the stage, at this output index.
fn scaled(header: &Header, first_sample_index: u64, factor: u64) -> Header {
    let came = (first_sample_index * factor) as f64 - header.first_sample_index as f64;
    let later_ns = if header.sample_rate_hz > 0.0 { came / header.sample_rate_hz * 1e9 } else { 0.0 };
    Header {
        sample_rate_hz: header.sample_rate_hz / factor as f64,
        first_sample_index,
        producer_ts_ns: header.producer_ts_ns.saturating_add_signed(later_ns as i64),
        sg_drops_total: header.sg_drops_total / factor,
        ..*header
    }
}

/// Taps of a low-pass filter at the new Nyquist frequency: a sinc in a Kaiser window, with unit gain.
fn low_pass(factor: usize) -> Vec<f32> {
    let half = HALF_SPAN as i64 * factor as i64;
    let tap = |at: i64| {
        let x = at as f64 / factor as f64;
        let sinc = if at == 0 { 1.0 } else { (PI * x).sin() / (PI * x) };
        let place = at as f64 / half as f64;
        sinc * bessel_i0(KAISER_BETA * (1.0 - place * place).max(0.0).sqrt())
    };
    let taps: Vec<f64> = (-half..=half).map(tap).collect();
    let sum: f64 = taps.iter().sum();
    taps.iter().map(|tap| (tap / sum) as f32).collect()
}

/// Modified Bessel function of the first kind and order 0, by its series.
fn bessel_i0(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..60 {
        term *= (x / (2.0 * f64::from(k))).powi(2);
        sum += term;
    }
    sum
}

grebe_flow::counters! {
    struct Counted { saturated_samples }
}
const FACTOR_MAX: u64 = 1_000;
/// Reach of the filter to either side, in output samples.
const HALF_SPAN: u64 = 13;
/// Kaiser's formula for 80 dB: 0.1102 (80 - 8.7).
const KAISER_BETA: f64 = 7.857;
/// Flat part of the new rate, on both sides of zero together.
const KEPT: f64 = 0.8;
/// Samples to load at once.
const PIECE: usize = 4_096;
/// Samples to compute at once.
const MADE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Complex, Sample};

    use super::*;

    const RATE_HZ: f64 = 1e6;

    fn frame<T: Sample>(first: u64, length: u32, of: impl Fn(u64) -> T) -> Batch {
        let header = Header {
            format: T::FORMAT,
            channel_count: 2,
            block_length_samples: length,
            first_sample_index: first,
            sample_rate_hz: RATE_HZ,
            producer_ts_ns: 1_000_000_000 + first * 1_000,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 1 << 20).acquire().unwrap();
        batch
            .push::<T>(&header, |_, out| {
                out.iter_mut().zip(first..).for_each(|(out, index)| *out = of(index))
            })
            .unwrap();
        batch.freeze()
    }

    /// Index and value of the output samples, and the headers.
    fn decimated<T: Sample>(factor: u64, batches: Vec<Batch>) -> (Vec<(u64, T)>, Vec<Header>) {
        let stage = DecimateFilteredStage::new(&DecimateFiltered { factor: Count(factor) });
        let mut bench = StageBench::new(stage).unwrap();
        let mut made: Vec<Batch> = batches.into_iter().flat_map(|batch| bench.feed(batch).unwrap()).collect();
        made.extend(bench.end().unwrap());
        let (mut samples, mut headers) = (Vec::new(), Vec::new());
        for frame in made.iter().flat_map(|batch| batch.frames()) {
            let header = frame.header();
            assert_eq!(frame.channel::<T>(0).unwrap(), frame.channel::<T>(1).unwrap());
            samples.extend((header.first_sample_index..).zip(frame.channel::<T>(0).unwrap().iter().copied()));
            headers.push(header);
        }
        (samples, headers)
    }

    fn tone(frequency: f64) -> impl Fn(u64) -> Complex<f32> {
        move |index| {
            let (sin, cos) = (index as f64 * frequency * TAU).sin_cos();
            Complex::new(cos as f32, sin as f32)
        }
    }

    #[test]
    fn what_is_kept_stands_at_its_place_and_what_would_fold_is_80_db_down() {
        for factor in [2u64, 5, 10, 64] {
            let of = |frequency: f64| {
                // Fraction of the new rate, whatever the frames.
                let frequency = frequency / factor as f64;
                let batches = (0..8).map(|at| frame(at * 1_500, 1_500, tone(frequency))).collect();
                let (samples, _) = decimated::<Complex<f32>>(factor, batches);
                assert_eq!(samples.len() as u64, 12_000u64.div_ceil(factor));
                let settled = &samples[13..samples.len() - 13];
                settled
                    .iter()
                    .map(|&(index, sample)| {
                        let (sin, cos) = ((index * factor) as f64 * frequency * TAU).sin_cos();
                        let error = (f64::from(sample.re) - cos).hypot(f64::from(sample.im) - sin);
                        (f64::from(sample.re).hypot(f64::from(sample.im)), error)
                    })
                    .fold((0.0f64, 0.0f64), |(size, error), (a, b)| (size.max(a), error.max(b)))
            };
            for kept in [0.0, 0.123, -0.3, 0.4, -0.4] {
                // 0.01 dB are 0.00115.
                let (_, error) = of(kept);
                assert!(error < 0.001, "{kept} of the new rate, by {factor}: {error}");
            }
            for folds in [0.6, -0.6, 0.75, 0.9, 1.0] {
                let (size, _) = of(folds);
                assert!(size < 1.2e-4, "{folds} of the new rate, by {factor}: {size}");
            }
        }
    }

    #[test]
    fn indexes_times_and_gaps_stay_in_their_places() {
        let one = |_| 10_000i16;
        let batches = vec![frame(7, 500, one), frame(507, 500, one), frame(3_003, 1_000, one)];
        let (samples, headers) = decimated::<i16>(10, batches);
        let indexes: Vec<u64> = samples.iter().map(|&(index, _)| index).collect();
        assert_eq!(indexes, (1..101).chain(301..401).collect::<Vec<u64>>(), "samples n x 10 of what came");
        for header in &headers {
            assert_eq!(header.sample_rate_hz, RATE_HZ / 10.0);
            assert_eq!(header.producer_ts_ns, 1_000_000_000 + header.first_sample_index * 10_000);
        }
        let sequences: Vec<u64> = headers.iter().map(|header| header.sequence).collect();
        assert_eq!(sequences, (0..headers.len() as u64).collect::<Vec<_>>());
        for &(index, sample) in &samples {
            let is_settled =
                [(1, 100), (301, 400)].iter().any(|&(first, last)| index >= first + 13 && index + 13 <= last);
            assert!(!is_settled || (sample - 10_000).abs() <= 1, "{index}: {sample}");
        }
        assert!(
            (8_000..8_500).contains(&samples[0].1),
            "what reaches back by more than 3 samples finds nothing: {:?}",
            samples[0]
        );
    }

    #[test]
    fn the_response_is_as_it_is_said() {
        let taps = low_pass(8);
        assert_eq!(taps.len(), 26 * 8 + 1);
        let response_db = |of_new_rate: f64| {
            let frequency = of_new_rate / 8.0;
            let sum: f64 = taps
                .iter()
                .enumerate()
                .map(|(at, &tap)| f64::from(tap) * ((at as f64 - 104.0) * frequency * TAU).cos())
                .sum();
            20.0 * sum.abs().log10()
        };
        assert!((0..=400).all(|at| response_db(f64::from(at) / 1e3).abs() < 0.01));
        let worst = (600..4_000).map(|at| response_db(f64::from(at) / 1e3)).fold(f64::MIN, f64::max);
        assert!(worst < -79.5, "{worst} dB");
    }

    #[test]
    fn a_factor_that_cannot_be_is_refused() {
        assert!(DecimateFiltered { factor: Count(1) }.check().is_err());
        assert!(DecimateFiltered { factor: Count(1_001) }.check().is_err());
        assert!(DecimateFiltered { factor: Count(1_000) }.check().is_ok());
    }
}
