//! Magnitude of complex samples.

use grebe_flow::{Context, Fault, Inputs, Kind, Outcome, Outputs, Ports, Site, Stage, StageResult};
use grebe_frame::{ChannelDescription, Description, SampleFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reformat::Reformatter;
use crate::error::Error;
use crate::numbers::{Component, with_component, zero_of};

/// Converts complex samples to f32: magnitude, power, or power in dB. Full scale is 1.0, or 0 dB.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Magnitude {
    /// `linear` for the magnitude, `power` for its square, `db` for 10 lg of the power, at least -200 dB.
    #[serde(default)]
    pub unit: MagnitudeUnit,
}

/// Unit of the magnitude of a complex sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MagnitudeUnit {
    /// Root of I squared plus Q squared.
    #[default]
    Linear,
    /// I squared plus Q squared.
    Power,
    /// 10 lg of the power.
    Db,
}

impl Kind for Magnitude {
    const NAME: &'static str = "magnitude";
    const PORTS: Ports = Ports::STAGE;

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        match incoming {
            Some(format) if !format.is_complex() => Err(Fault::of_kind(is_real(format))),
            _ => Ok(Some(SampleFormat::F32)),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(MagnitudeStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct MagnitudeStage {
    unit: MagnitudeUnit,
    reformatter: Reformatter,
}

impl MagnitudeStage {
    pub(crate) fn new(magnitude: &Magnitude) -> Self {
        Self { unit: magnitude.unit, reformatter: Reformatter::default() }
    }
}

impl Stage for MagnitudeStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(place) = self.reformatter.next(input) else { return Ok(Outcome::WantsInput) };
        let mut format = SampleFormat::Cf32;
        for frame in place.batch.frames() {
            format = frame.header().format;
            if !format.is_complex() {
                return Err(Error::Takes { what: is_real(format) }.into());
            }
        }
        let unit = self.unit;
        let of_bits = place.batch.description().and_then(|description| description.full_scale(format));
        self.reformatter.rewriter.describe(place.batch.description(), |input| described(input, format, unit));
        let change = |header: &grebe_frame::Header, from: &[u8], out: &mut [u8]| {
            measure(header.format, of_bits, unit, from, out);
        };
        self.reformatter.rewrite(place, SampleFormat::F32, change, output, ctx)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.reformatter.finish(SampleFormat::F32, ctx);
        Ok(())
    }

    fn ports(&self) -> Ports {
        Magnitude::PORTS
    }
}

fn measure(format: SampleFormat, of_bits: Option<f64>, unit: MagnitudeUnit, from: &[u8], out: &mut [u8]) {
    let zero = zero_of(format) as f32;
    with_component!(format, C => {
        let full_scale = (1.0 / of_bits.unwrap_or(C::FULL_SCALE)) as f32;
        let number = |bytes: &[u8]| (C::read(bytes).to_f32() - zero) * full_scale;
        for (pair, out) in from.chunks_exact(2 * size_of::<C>()).zip(out.chunks_exact_mut(size_of::<f32>())) {
            let (i, q) = pair.split_at(size_of::<C>());
            let (i, q) = (number(i), number(q));
            out.copy_from_slice(&(i * i + q * q).to_le_bytes());
        }
    });
    let change = |bytes: &mut [u8], change: fn(f32) -> f32| {
        for bytes in bytes.chunks_exact_mut(size_of::<f32>()) {
            change(<f32 as Component>::read(bytes)).write(bytes);
        }
    };
    match unit {
        MagnitudeUnit::Linear => change(out, f32::sqrt),
        MagnitudeUnit::Power => {}
        MagnitudeUnit::Db => change(out, |power| 10.0 * power.max(POWER_MIN).log10()),
    }
}

/// Keeps names, and units as far as possible; real samples have no centre frequency.
fn described(input: &Description, format: SampleFormat, unit: MagnitudeUnit) -> Description {
    let full_scale = input.full_scale(format).unwrap_or(with_component!(format, C => C::FULL_SCALE));
    let channel = |channel: &ChannelDescription| {
        let name = channel.name.clone();
        let scale = channel.scale * full_scale;
        match unit {
            MagnitudeUnit::Db => ChannelDescription { name, unit: "dBFS".into(), ..Default::default() },
            _ if channel.unit.is_empty() => ChannelDescription { name, ..Default::default() },
            MagnitudeUnit::Linear => {
                ChannelDescription { name, unit: channel.unit.clone(), scale, offset: 0.0 }
            }
            MagnitudeUnit::Power => ChannelDescription {
                name,
                unit: format!("{}²", channel.unit),
                scale: scale * scale,
                offset: 0.0,
            },
        }
    };
    let channels = input.channels.iter().map(channel).collect();
    let mut described =
        Description { channels, centre_frequency_hz: None, bandwidth_hz: None, ..input.clone() };
    described.rest.remove(Description::BITS);
    described
}

fn is_real(format: SampleFormat) -> String {
    format!("{format} samples come in, and magnitude takes complex ones: ci8, cu8, ci16 or cf32")
}

/// -200 dB.
const POWER_MIN: f32 = 1e-20;

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_frame::{BatchPool, Complex, Header, Sample};
    use grebe_testing::stream::stream;

    use super::*;

    fn of<T: Sample>(unit: MagnitudeUnit, samples: &[T]) -> Vec<f32> {
        let header = Header {
            format: T::FORMAT,
            channel_count: 2,
            block_length_samples: samples.len() as u32,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 4_096).acquire().unwrap();
        batch.push::<T>(&header, |_, out| out.copy_from_slice(samples)).unwrap();
        let mut bench = StageBench::new(MagnitudeStage::new(&Magnitude { unit })).unwrap();
        let made = bench.feed(batch.freeze()).unwrap();
        let frames = made.iter().flat_map(|batch| batch.frames());
        frames.flat_map(|frame| frame.channel::<f32>(1).unwrap().into_owned()).collect()
    }

    #[test]
    fn levels_of_every_complex_format_are_relative_to_full_scale() {
        let samples = [Complex::new(0.6f32, -0.8), Complex::new(0.0, 0.0), Complex::new(0.1, 0.0)];
        assert_eq!(of(MagnitudeUnit::Linear, &samples), [1.0, 0.0, 0.1]);
        assert_eq!(of(MagnitudeUnit::Power, &samples[..2]), [1.0, 0.0]);
        let db = of(MagnitudeUnit::Db, &samples);
        assert!(db[0].abs() < 1e-5 && db[1] == -200.0 && (db[2] + 20.0).abs() < 1e-5, "{db:?}");
        assert_eq!(
            of(MagnitudeUnit::Linear, &[Complex::new(-32_768i16, 0), Complex::new(12_288, 16_384)]),
            [1.0, 0.625]
        );
        assert_eq!(of(MagnitudeUnit::Linear, &[Complex::new(0i8, 64)]), [0.5]);
        let middle = of(MagnitudeUnit::Linear, &[Complex::new(127u8, 128)]);
        assert!((middle[0] - 0.5f32.hypot(0.5) / 128.0).abs() < 1e-7);
    }

    #[test]
    fn units_follow_and_real_samples_are_refused() {
        let volts = ChannelDescription { unit: "V".into(), scale: 0.001, ..Default::default() };
        let input =
            Description { channels: vec![volts], centre_frequency_hz: Some(1e8), ..Default::default() };
        let power = described(&input, SampleFormat::Ci16, MagnitudeUnit::Power);
        assert_eq!((power.channels[0].unit.as_str(), power.centre_frequency_hz), ("V²", None));
        assert!((power.channels[0].scale - 32.768 * 32.768).abs() < 1e-9);
        assert_eq!(described(&input, SampleFormat::Ci16, MagnitudeUnit::Db).channels[0].unit, "dBFS");

        let mut bench = StageBench::new(MagnitudeStage::new(&Magnitude { unit: MagnitudeUnit::Db })).unwrap();
        let said = bench.feed(stream(1, &[(0, 4)]).remove(0)).unwrap_err().to_string();
        assert!(said.contains("i16 samples come in"), "{said}");
        assert!(Magnitude { unit: MagnitudeUnit::Db }.format(Some(SampleFormat::F32)).is_err());
    }
}
