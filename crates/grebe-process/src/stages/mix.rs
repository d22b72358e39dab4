//! Shifts the frequencies of complex samples.

use grebe_flow::{Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{BatchMut, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_place::InPlace;
use crate::band::{Oscillator, PIECE};
use crate::error::Error;
use crate::format::FrequencyHz;
use crate::numbers::{load, store};

/// Shifts a complex stream in frequency: 0 Hz moves to `frequency`.
///
/// The phase is a function of the sample's index, as a 64-bit fraction of a turn. So it continues through
/// gaps, and the frequency is off by at most one part in 2^53. The stream's centre frequency moves the other
/// way, so that signals keep their frequency on the air. Computes in 32-bit floating point. Integers are
/// rounded, ties to even, and saturated, which is counted.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The shift in hertz, up or (negative) down, at most half the sample rate: -100_000 or "-100k".
    pub frequency: FrequencyHz,
}

impl Kind for Mix {
    const NAME: &'static str = "mix";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        if self.frequency.0.is_finite() {
            Ok(())
        } else {
            Err(Fault::new("frequency", "give a finite number of hertz"))
        }
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        match incoming {
            Some(format) if !format.is_complex() => Err(Fault::of_kind(is_real(format))),
            other => Ok(other),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(MixStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct MixStage {
    shift_hz: f64,
    /// With the rate that it is for.
    oscillator: Option<(f64, Oscillator)>,
    in_place: InPlace,
    saturated_samples: u64,
    counters: Counted,
}

impl MixStage {
    pub(crate) fn new(mix: &Mix) -> Self {
        Self {
            shift_hz: mix.frequency.0,
            oscillator: None,
            in_place: InPlace::default(),
            saturated_samples: 0,
            counters: Counted::default(),
        }
    }

    /// Refuses unsuitable samples.
    fn check(&self, batch: &BatchMut) -> Result<(), Error> {
        for frame in batch.frames() {
            let header = frame.header();
            if !header.format.is_complex() {
                return Err(Error::Takes { what: is_real(header.format) });
            }
            if self.shift_hz.abs() > header.sample_rate_hz / 2.0 {
                let got = format!("{} at {} samples per second", self.shift_hz, header.sample_rate_hz);
                return Err(Error::Setting {
                    what: "frequency",
                    got,
                    must: "give at most half the sample rate",
                });
            }
        }
        Ok(())
    }
}

impl Stage for MixStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let mut batch = match self.in_place.next(input, ctx) {
            Ok(batch) => batch,
            Err(outcome) => return Ok(outcome),
        };
        self.check(&batch)?;
        let shift_hz = self.shift_hz;
        self.in_place.describe(&mut batch, |input| {
            let mut shifted = input.clone();
            match &mut shifted.centre_frequency_hz {
                Some(centre_hz) => *centre_hz -= shift_hz,
                // Without a centre frequency, annotations count from the zero that moves.
                None => {
                    for annotation in &mut shifted.annotations {
                        let edges = [&mut annotation.lower_edge_hz, &mut annotation.upper_edge_hz];
                        edges.into_iter().flatten().for_each(|edge_hz| *edge_hz += shift_hz);
                    }
                }
            }
            shifted
        });
        batch.update_bytes(|header, _, bytes| {
            let rate_hz = header.sample_rate_hz;
            if self.oscillator.as_ref().is_none_or(|(tuned_hz, _)| *tuned_hz != rate_hz) {
                self.oscillator = Some((rate_hz, Oscillator::new(shift_hz / rate_hz)));
            }
            let Some((_, oscillator)) = &self.oscillator else { return };
            let mut numbers = [0.0; 2 * PIECE];
            for (piece, bytes) in bytes.chunks_mut(PIECE * header.format.bytes()).enumerate() {
                let index = header.first_sample_index + (piece * PIECE) as u64;
                let numbers = &mut numbers[..2 * bytes.len() / header.format.bytes()];
                load(header.format, bytes, numbers);
                oscillator.turn(index, numbers);
                self.saturated_samples += store(header.format, numbers, bytes);
            }
        });
        self.counters.copied_frames.set(self.in_place.copied_frames());
        self.counters.saturated_samples.set(self.saturated_samples);
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }

    fn ports(&self) -> Ports {
        Mix::PORTS
    }
}

fn is_real(format: SampleFormat) -> String {
    format!(
        "{format} samples come in, and mix takes complex ones (ci8, cu8, ci16, cf32): of a real tone the image would move, too"
    )
}

grebe_flow::counters! {
    struct Counted { copied_frames, saturated_samples }
}
#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use std::sync::Arc;

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, BatchPool, Complex, Description, Header, Sample, StreamAnnotation};
    use grebe_testing::stream::stream;

    use super::*;

    const RATE_HZ: f64 = 1e6;

    /// Frame of two channels with samples from `of`, by index.
    fn frame<T: Sample>(first: u64, length: u32, of: impl Fn(u64) -> T) -> Batch {
        let header = Header {
            format: T::FORMAT,
            channel_count: 2,
            block_length_samples: length,
            first_sample_index: first,
            sample_rate_hz: RATE_HZ,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        batch
            .push::<T>(&header, |_, out| {
                out.iter_mut().zip(first..).for_each(|(out, index)| *out = of(index))
            })
            .unwrap();
        batch.freeze()
    }

    fn bench(shift_hz: f64) -> StageBench {
        StageBench::new(MixStage::new(&Mix { frequency: FrequencyHz(shift_hz) })).unwrap()
    }

    #[test]
    fn a_tone_moves_to_where_it_should_and_its_phase_does_not_drift_in_hours() {
        // 100 hours of samples in between.
        let late = 360_000_000_000u64;
        for shift_hz in [123_456.789, -400_000.0, 0.0, 500_000.0] {
            let mut bench = bench(shift_hz);
            for first in [0, 600, late] {
                let batch = frame(first, 600, |_| Complex::new(0.5f32, 0.0));
                let made = bench.feed(batch).unwrap();
                let turned =
                    made[0].frames().next().unwrap().channel::<Complex<f32>>(1).unwrap().into_owned();
                // Removes whole periods without rounding: in millihertz and microseconds these are integers.
                let turns = |index: u64| {
                    let milli = (shift_hz * 1e3).round() as i128;
                    (i128::from(index) * milli).rem_euclid(1_000_000_000) as f64 / 1e9
                };
                for (sample, index) in turned.iter().zip(first..) {
                    let (sin, cos) = (turns(index) * TAU).sin_cos();
                    let error = (f64::from(sample.re) - cos / 2.0).hypot(f64::from(sample.im) - sin / 2.0);
                    // One part in 2^53 of the turns so far, and the precision of 32 bits.
                    let drift = shift_hz.abs() / RATE_HZ * index as f64 * f64::EPSILON * TAU;
                    assert!(error < 4e-7 + drift, "{shift_hz} Hz at {index}: {error}");
                }
            }
        }
    }

    #[test]
    fn integers_are_rounded_saturated_and_counted_and_there_and_back_is_the_same() {
        let (mut up, mut down) = (bench(99_000.0), bench(-99_000.0));
        let of = |index: u64| Complex::new((index % 200) as i16 * 100 - 10_000, (index % 177) as i16 * 50);
        let there = up.feed(frame(7, 1_000, of)).unwrap().remove(0);
        let back = down.feed(there).unwrap();
        let back = back[0].frames().next().unwrap().channel::<Complex<i16>>(0).unwrap().into_owned();
        for (sample, index) in back.iter().zip(7..) {
            let was = of(index);
            assert!((sample.re - was.re).abs() <= 1 && (sample.im - was.im).abs() <= 1, "{sample} was {was}");
        }
        // A corner of the square becomes longer than its edge.
        let made = bench(125_000.0).feed(frame(1, 1, |_| Complex::new(127i8, 127))).unwrap();
        assert_eq!(
            made[0].frames().next().unwrap().channel::<Complex<i8>>(0).unwrap()[0],
            Complex::new(0, 127)
        );
        let mut bench = bench(125_000.0);
        bench.feed(frame(1, 1, |_| Complex::new(127i8, 127))).unwrap();
        assert_eq!(bench.snapshot().stage("stage").unwrap().own("saturated_samples"), Some(2));
    }

    #[test]
    fn the_centre_frequency_moves_the_other_way() {
        let mut batch = frame(0, 8, |_| Complex::new(0i8, 0)).try_unique().unwrap();
        batch.describe(Some(&Arc::new(Description {
            centre_frequency_hz: Some(100e6),
            ..Default::default()
        })));
        let made = bench(100_000.0).feed(batch.freeze()).unwrap();
        assert_eq!(made[0].description().unwrap().centre_frequency_hz, Some(99.9e6));
    }

    #[test]
    fn real_samples_and_shifts_beyond_half_the_rate_are_refused() {
        let said = bench(1.0).feed(stream(1, &[(0, 4)]).remove(0)).unwrap_err().to_string();
        assert!(said.contains("i16 samples come in"), "{said}");
        let said = bench(600_000.0).feed(frame(0, 4, |_| Complex::new(0i8, 0))).unwrap_err().to_string();
        assert!(said.contains("half the sample rate"), "{said}");
        assert!(Mix { frequency: FrequencyHz(1.0) }.format(Some(SampleFormat::I16)).is_err());
    }

    #[test]
    fn mixing_shifts_annotations_without_a_centre_frequency() {
        let label = |hz| StreamAnnotation { lower_edge_hz: Some(hz), ..StreamAnnotation::default() };
        for (centre_frequency_hz, after_hz) in [(None, 100_010.0), (Some(1e8), 10.0)] {
            let mut batch = frame(0, 4, |_| Complex::new(0i16, 0)).try_unique().unwrap();
            let annotations = vec![label(10.0)];
            batch.describe(Some(&Arc::new(Description {
                centre_frequency_hz,
                annotations,
                ..Description::default()
            })));
            let made = bench(100e3).feed(batch.freeze()).unwrap();
            assert_eq!(made[0].description().unwrap().annotations, [label(after_hz)]);
        }
    }
}
