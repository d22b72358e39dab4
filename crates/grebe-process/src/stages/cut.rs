//! Cuts a band of frequencies out of a stream.

use grebe_flow::{Fault, Kind, Ports, RateHz, Site, Stage, StageResult};
use grebe_frame::{Description, Header, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::at_rate::{AtRate, AtRateStage, Layout};
use super::convert::Conversion;
use crate::band::{Band, BandFilter, Cutter};
use crate::error::Error;
use crate::format::FrequencyHz;

/// Cuts out a band of frequencies: shifts it to 0 Hz, filters it, and reduces the rate to what holds it.
///
/// The filter is flat within 0.01 dB in the band, and 80 dB down from 0.625 times the bandwidth on, from the
/// centre. A lower `rate` makes it steeper: everything that would fold is 80 dB down. Its delay is compensated:
/// output sample n has exactly the time of input sample n x input rate / output rate, and rates need no whole
/// ratio. Samples before the stream, after its end and in gaps count as zero, so that 22 / bandwidth seconds at
/// each edge are attenuated. Takes any format and makes cf32, in which full scale is 1; of real samples, a tone
/// keeps its amplitude.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Middle of the band in hertz, which becomes 0 Hz. On the air if the stream states its centre frequency,
    /// otherwise in the signal: 433.92e6, "-100k".
    pub center: FrequencyHz,
    /// Width of the band in hertz.
    pub bandwidth: RateHz,
    /// New sample rate, at least 1.05 times the bandwidth. By default the lowest whole part of the stream's rate
    /// that is at least 1.25 times the bandwidth.
    pub rate: Option<RateHz>,
}

impl Cut {
    /// The band in a signal with this centre frequency.
    fn band(&self, signal_centre_hz: Option<f64>) -> Band {
        Band {
            centre_hz: self.center.0 - signal_centre_hz.unwrap_or(0.0),
            bandwidth_hz: self.bandwidth.0,
            rate_hz: self.rate.map(|rate| rate.0),
        }
    }
}

impl Kind for Cut {
    const NAME: &'static str = "cut";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        if !self.center.0.is_finite() {
            return Err(Fault::new("center", "give a finite number of hertz"));
        }
        match self.rate {
            Some(rate) if rate.0 < 1.05 * self.bandwidth.0 * (1.0 - 1e-12) => {
                Err(Fault::new("rate", "give at least 1.05 times the bandwidth"))
            }
            _ => Ok(()),
        }
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(Some(SampleFormat::Cf32))
    }

    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        let band = Band { centre_hz: 0.0, ..self.band(None) };
        Some(band.of(incoming?, true).ok()?.rate_hz())
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(stage(self)))
    }
}

fn stage(cut: Cut) -> AtRateStage<CutAtRate> {
    AtRateStage::new(CutAtRate { cut, prepared: None, cutters: Vec::new(), numbers: Vec::new() })
}

#[derive(Debug)]
struct CutAtRate {
    cut: Cut,
    prepared: Option<Prepared>,
    /// By channel.
    cutters: Vec<Cutter>,
    /// Samples on their way.
    numbers: Vec<f32>,
}

/// For samples of one kind.
#[derive(Debug)]
struct Prepared {
    filter: BandFilter,
    conversion: Conversion,
}

impl AtRate for CutAtRate {
    fn begin(&mut self, header: &Header, description: Option<&Description>) -> Result<Layout, Error> {
        let format = header.format;
        let centre_hz = description.and_then(|it| it.centre_frequency_hz);
        let filter = self.cut.band(centre_hz).of(header.sample_rate_hz, format.is_complex())?;
        let is_same = self.prepared.as_ref().is_some_and(|it| it.filter == filter);
        if !is_same || self.cutters.len() != header.channel_count as usize {
            let cutter = || Cutter::new(std::slice::from_ref(&filter), format.is_complex());
            self.cutters = (0..header.channel_count).map(|_| cutter()).collect();
        }
        self.cutters.iter_mut().for_each(|cutter| cutter.begin(header.first_sample_index as i64));
        let layout = Layout { grid: filter.grid(), format: SampleFormat::Cf32, rate_hz: filter.rate_hz() };
        self.prepared = Some(Prepared { filter, conversion: Conversion::to_floats(format, description) });
        Ok(layout)
    }

    fn push(&mut self, channel: usize, _: SampleFormat, bytes: &[u8]) {
        if let Some(prepared) = &self.prepared {
            prepared.conversion.floats(bytes, &mut self.numbers);
            self.cutters[channel].push(&self.numbers);
        }
    }

    fn end(&mut self, channel: usize, _: i64) {
        self.cutters[channel].end();
    }

    fn made(&mut self, channel: usize) -> &mut Vec<f32> {
        self.cutters[channel].made(0)
    }

    fn describe(&self, described: &mut Description) {
        if let Some(prepared) = &self.prepared {
            *described = prepared.conversion.describe(described);
            described.centre_frequency_hz = Some(self.cut.center.0);
            described.bandwidth_hz = Some(prepared.filter.band().bandwidth_hz);
        }
    }

    fn invalid_numbers(&self) -> u64 {
        self.cutters.iter().map(Cutter::invalid_numbers).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;
    use std::sync::Arc;

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, BatchPool, Complex, Sample};
    use proptest::prelude::*;

    use super::*;

    const RATE_HZ: f64 = 1e6;

    fn batch<T: Sample>(first: u64, length: u32, centre_hz: Option<f64>, of: impl Fn(u64) -> T) -> Batch {
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
        let description = Description {
            first_sample_index: first,
            centre_frequency_hz: centre_hz,
            ..Description::default()
        };
        batch.describe(Some(&Arc::new(description)));
        batch
            .push::<T>(&header, |_, out| {
                out.iter_mut().zip(first..).for_each(|(out, index)| *out = of(index))
            })
            .unwrap();
        batch.freeze()
    }

    type Made = (Vec<(u64, Complex<f32>)>, Vec<Header>, Vec<Batch>);

    fn cut(
        center_hz: f64,
        bandwidth_hz: f64,
        rate_hz: Option<f64>,
        batches: Vec<Batch>,
    ) -> Result<Made, grebe_flow::Error> {
        let cut = Cut {
            center: FrequencyHz(center_hz),
            bandwidth: RateHz(bandwidth_hz),
            rate: rate_hz.map(RateHz),
        };
        cut.check().unwrap();
        let mut bench = StageBench::new(stage(cut))?;
        let mut made = Vec::new();
        for batch in batches {
            made.extend(bench.feed(batch)?);
        }
        made.extend(bench.end()?);
        let (mut samples, mut headers) = (Vec::new(), Vec::new());
        for frame in made.iter().flat_map(|batch| batch.frames()) {
            let header = frame.header();
            assert_eq!(frame.channel::<Complex<f32>>(0).unwrap(), frame.channel::<Complex<f32>>(1).unwrap());
            samples.extend((header.first_sample_index..).zip(frame.channel(0).unwrap().iter().copied()));
            headers.push(header);
        }
        Ok((samples, headers, made))
    }

    #[test]
    fn a_tone_on_the_air_stands_at_its_place_in_the_band() {
        // 30 kHz above the centre of the signal, 5 kHz above that of the band.
        let tone = |index: u64| {
            let (sin, cos) = (TAU * 0.03 * index as f64).sin_cos();
            Complex::new((cos * 16_384.0) as i16, (sin * 16_384.0) as i16)
        };
        let batches = (0..20).map(|at| batch(at * 1_500, 1_500, Some(100e6), tone)).collect();
        let (samples, headers, made) = cut(100.025e6, 20e3, None, batches).unwrap();
        assert_eq!(samples.len(), 750);
        assert!(headers.iter().all(|it| it.sample_rate_hz == 25e3 && it.format == SampleFormat::Cf32));
        for &(index, sample) in &samples[40..700] {
            let (sin, cos) = (TAU * 5.0 / 25.0 * index as f64).sin_cos();
            let error = (f64::from(sample.re) - 0.5 * cos).hypot(f64::from(sample.im) - 0.5 * sin);
            assert!(error < 1e-4, "{index}: {error}");
        }
        let description = made[0].description().unwrap();
        assert_eq!(description.centre_frequency_hz, Some(100.025e6));
        assert_eq!(description.bandwidth_hz, Some(20e3));
    }

    #[test]
    fn a_real_tone_keeps_its_amplitude_and_gaps_their_places() {
        let tone = |index: u64| ((TAU * 0.1 * index as f64).cos() * 100.0).round() as i8;
        let batches = vec![
            batch(7, 3_000, None, tone),
            batch(3_007, 2_000, None, tone),
            batch(9_003, 4_000, None, tone),
        ];
        let (samples, headers, _) = cut(100e3, 50e3, Some(70e3), batches).unwrap();
        let position = |index: u64| index as f64 / 0.07;
        let places: Vec<u64> = samples.iter().map(|it| it.0).collect();
        let expected: Vec<u64> = (0..10_000)
            .filter(|&n| {
                [(7.0, 5_007.0), (9_003.0, 13_003.0)]
                    .iter()
                    .any(|&(from, to)| position(n) >= from && position(n) < to)
            })
            .collect();
        assert_eq!(places, expected);
        for header in headers {
            let expected_ns = 1e9 + position(header.first_sample_index) * 1e3;
            assert!((header.producer_ts_ns as f64 - expected_ns).abs() < 2.0, "{header:?}");
        }
        let settled = samples.iter().filter(|it| (1_500.0..4_000.0).contains(&position(it.0)));
        for (index, sample) in settled {
            assert!(
                (sample.re - 100.0 / 128.0).abs() < 0.005 && sample.im.abs() < 0.005,
                "{index}: {sample:?}"
            );
        }
    }

    #[test]
    fn a_new_centre_frequency_is_followed_and_a_band_outside_is_refused() {
        let tone = |centre_hz: f64| {
            move |index: u64| {
                let (sin, cos) = (TAU * (100e6 - centre_hz) / RATE_HZ * index as f64).sin_cos();
                Complex::new(cos as f32, sin as f32)
            }
        };
        let (before, after) = (100.1e6, 99.8e6);
        let batches =
            vec![batch(0, 8_000, Some(before), tone(before)), batch(8_000, 8_000, Some(after), tone(after))];
        let (samples, _, made) = cut(100e6, 40e3, None, batches).unwrap();
        assert_eq!(samples.len(), 800);
        let is_settled =
            |index: u64| [(30, 370), (430, 770)].iter().any(|range| (range.0..range.1).contains(&index));
        for (index, sample) in samples.into_iter().filter(|it| is_settled(it.0)) {
            assert!((sample.re - 1.0).abs() < 1e-3 && sample.im.abs() < 1e-3, "{index}: {sample:?}");
        }
        assert!(made.iter().all(|batch| batch.description().unwrap().centre_frequency_hz == Some(100e6)));
        let error = cut(100e6, 40e3, None, vec![batch(0, 100, None, tone(100e6))]).unwrap_err().to_string();
        assert!(error.contains("lies outside the signal's"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn samples_are_the_same_however_the_stream_is_cut(lengths in prop::collection::vec(1u32..3_000, 1..12), rate_hz in prop::option::of(30e3..90e3f64)) {
            let sample = |index: u64| Complex::new((index * 37 % 251) as u8, (index * 91 % 241) as u8);
            let total: u32 = lengths.iter().sum();
            let mut first = 0;
            let pieces = lengths.iter().map(|&length| {
                first += u64::from(length);
                batch(first - u64::from(length), length, None, sample)
            });
            let (got, ..) = cut(123e3, 28e3, rate_hz, pieces.collect()).unwrap();
            let (whole, ..) = cut(123e3, 28e3, rate_hz, vec![batch(0, total, None, sample)]).unwrap();
            prop_assert_eq!(got, whole);
        }
    }
}
