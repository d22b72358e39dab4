//! Reduces the rate of a stream after a low-pass filter.

use std::sync::Arc;

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult};
use grebe_frame::{Description, Header, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::at_rate::{AtRate, AtRateStage, Layout};
use crate::band::{Filter, LowPass, Resampler};
use crate::error::Error;
use crate::grid::Grid;
use crate::numbers::load;

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
        Ok(Box::new(stage(&self)))
    }
}

fn stage(decimate: &DecimateFiltered) -> AtRateStage<Decimation> {
    let factor = decimate.factor.0.clamp(1, FACTOR_MAX);
    let filter = |width| Arc::new(Filter::new(&low_pass(factor), Grid::every(factor), width));
    let filters = [filter(1), filter(2)];
    AtRateStage::new(Decimation { factor, filters, channels: Vec::new(), numbers: Vec::new(), rate_hz: 0.0 })
}

#[derive(Debug)]
struct Decimation {
    factor: u64,
    /// For real samples, and for interleaved I and Q.
    filters: [Arc<Filter>; 2],
    channels: Vec<Resampler>,
    numbers: Vec<f32>,
    /// New rate.
    rate_hz: f64,
}

impl AtRate for Decimation {
    fn begin(&mut self, header: &Header, _: Option<&Description>) -> Result<Layout, Error> {
        let (grid, first) = (Grid::every(self.factor), header.first_sample_index as i64);
        let filter = &self.filters[header.format.components() - 1];
        if self.channels.first().is_some_and(|channel| !channel.is_by(filter)) {
            self.channels.clear();
        }
        self.channels.resize_with(header.channel_count as usize, || Resampler::new(filter.clone()));
        self.channels.iter_mut().for_each(|channel| channel.begin(first, grid.first_at(first)));
        self.rate_hz = header.sample_rate_hz / self.factor as f64;
        Ok(Layout { grid, format: header.format, rate_hz: self.rate_hz })
    }

    fn push(&mut self, channel: usize, format: SampleFormat, bytes: &[u8]) {
        self.numbers.resize(bytes.len() / format.component().bytes(), 0.0);
        load(format, bytes, &mut self.numbers);
        let channel = &mut self.channels[channel];
        channel.extend(self.numbers.iter().copied());
        channel.make(i64::MAX);
    }

    fn end(&mut self, channel: usize, end: i64) {
        self.channels[channel].end(Grid::every(self.factor).first_at(end));
    }

    fn made(&mut self, channel: usize) -> &mut Vec<f32> {
        self.channels[channel].made()
    }

    fn describe(&self, described: &mut Description) {
        let kept_hz = self.rate_hz * KEPT;
        described.bandwidth_hz = described.bandwidth_hz.map(|bandwidth_hz| bandwidth_hz.min(kept_hz));
    }
}

/// A low-pass filter at the new Nyquist frequency.
fn low_pass(factor: u64) -> LowPass {
    LowPass::reaching(0.5 / factor as f64, (HALF_SPAN * factor) as f64, 80.0)
}

const FACTOR_MAX: u64 = 1_000;
/// Reach of the filter to either side, in output samples.
const HALF_SPAN: u64 = 13;
/// Flat part of the new rate, on both sides of zero together.
const KEPT: f64 = 0.8;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, BatchPool, Complex, Sample};

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
        let mut bench = StageBench::new(stage(&DecimateFiltered { factor: Count(factor) })).unwrap();
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
    fn decimated_samples_keep_their_places_and_aliases_are_80_db_down() {
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
        assert_eq!(indexes, (1..101).chain(301..401).collect::<Vec<u64>>(), "input samples n x 10");
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
    fn the_response_is_as_documented() {
        let mut taps = Vec::new();
        low_pass(8).taps(0.0, 26 * 8 + 1, &mut taps);
        assert_eq!(taps.len(), 26 * 8 + 1);
        let response_db = |of_new_rate: f64| {
            let frequency = of_new_rate / 8.0;
            let sum: f64 = taps
                .iter()
                .enumerate()
                .map(|(at, &tap)| tap * ((at as f64 - 104.0) * frequency * TAU).cos())
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
