//! Samples of a range, which the viewer saves or computes with.

use grebe_frame::SampleFormat;

use crate::data::extract::{Extract, ExtractRun, ExtractSamples};
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::picture::{LANES_MAX, read_lane_id, read_values, write_lane_id, write_values};

/// Writes the samples that answer a numbered request.
pub(super) fn write(extract: &Extract, number: u64, out: &mut Writer) {
    out.varint(number);
    out.f64(extract.rate_hz);
    out.u8(extract.format as u8);
    out.varint(extract.range.start);
    out.varint(extract.range.end);
    out.varint(extract.lanes.len() as u64);
    extract.lanes.iter().for_each(|lane| write_lane_id(*lane, out));
    let is_float = extract.runs.iter().any(|run| matches!(run.samples, ExtractSamples::F32(_)));
    out.u8(u8::from(is_float));
    out.varint(extract.runs.len() as u64);
    for run in &extract.runs {
        out.varint(run.first_sample_index);
        out.varint(run.samples.len() as u64);
        match &run.samples {
            ExtractSamples::I16(lanes) => {
                lanes.iter().for_each(|lane| write_values(lane.iter().map(|&it| f32::from(it)), out));
            }
            ExtractSamples::F32(lanes) => {
                lanes.iter().for_each(|lane| write_values(lane.iter().copied(), out));
            }
        }
    }
    out.varint(extract.triggers.len() as u64);
    extract.triggers.iter().for_each(|at| out.f64(*at));
}

pub(super) fn read(from: &mut Reader<'_>) -> Result<(u64, Extract), Malformed> {
    let (number, rate_hz, format) = (from.varint()?, from.f64()?, from.u8()?);
    let format = SampleFormat::ALL.into_iter().find(|it| *it as u8 == format);
    let format = format.ok_or(Malformed("its samples are of no known format"))?;
    let range = from.varint()?..from.varint()?;
    let mut lanes = Vec::new();
    for _ in 0..from.count(LANES_MAX)? {
        lanes.push(read_lane_id(from)?);
    }
    let is_float = from.u8()? != 0;
    let (mut runs, mut all) = (Vec::new(), 0);
    for _ in 0..from.count(SAMPLES_MAX)? {
        let first_sample_index = from.varint()?;
        let length = from.count(SAMPLES_MAX - all)?;
        all += length * lanes.len();
        if length == 0 || all > SAMPLES_MAX || first_sample_index.checked_add(length as u64).is_none() {
            return Err(Malformed("its samples do not add up"));
        }
        let read = |_| read_values(from, length);
        let values = lanes.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let samples = match is_float {
            true => ExtractSamples::F32(values),
            false => ExtractSamples::I16(
                values.iter().map(|lane| lane.iter().map(|&it| it as i16).collect()).collect(),
            ),
        };
        runs.push(ExtractRun { first_sample_index, samples });
    }
    let mut triggers = Vec::new();
    for _ in 0..from.count(TRIGGERS_MAX)? {
        triggers.push(from.f64()?);
    }
    Ok((number, Extract { rate_hz, format, range, lanes, runs, triggers, ..Extract::default() }))
}

/// Maximum samples per answer, all lanes together.
pub(crate) const SAMPLES_MAX: usize = 1 << 20;
const TRIGGERS_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::lane::LaneId;

    #[test]
    fn samples_are_the_same_again() {
        let of = |runs: Vec<ExtractSamples>| Extract {
            rate_hz: 1e3,
            format: SampleFormat::Cu8,
            range: 5..900,
            lanes: vec![LaneId::real(0), LaneId::real(1)],
            runs: runs
                .into_iter()
                .zip([10, 500])
                .map(|(samples, first_sample_index)| ExtractRun { first_sample_index, samples })
                .collect(),
            triggers: vec![12.25, 80.0],
            ..Extract::default()
        };
        let whole = |seed: i16| (0..100).map(|n: i16| n.wrapping_mul(seed)).collect::<Vec<_>>();
        let real = |seed: i16| whole(seed).into_iter().map(|n| f32::from(n) * 0.1).collect::<Vec<_>>();
        for extract in [
            of(vec![
                ExtractSamples::I16(vec![whole(3), whole(301)]),
                ExtractSamples::I16(vec![whole(7), whole(1)]),
            ]),
            of(vec![ExtractSamples::F32(vec![real(3), real(301)])]),
            of(vec![]),
        ] {
            let mut out = Writer::default();
            write(&extract, 4, &mut out);
            let mut from = Reader::new(&out.bytes);
            assert_eq!(read(&mut from), Ok((4, extract)));
            from.end().unwrap();
        }
    }
}
