//! A recording in memory, with a spectral summary or without one.

use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use grebe_frame::{Description, SampleFormat, StreamAnnotation};

use super::extremes;
use crate::data::recording::{
    Recording, RecordingOutline, RecordingPower, RecordingSums, Stretch, WantedSamples,
};

/// Channels of `i16` or of `f32` in memory.
#[derive(Debug)]
pub(in crate::data::recorded) struct Fake<S = ()> {
    pub(in crate::data::recorded) outline: RecordingOutline,
    pub(in crate::data::recorded) channels: Vec<Vec<f32>>,
    pub(in crate::data::recorded) shared: Arc<Mutex<Shared>>,
    pub(in crate::data::recorded) spectra: S,
}

/// A spectral summary of the first channel.
pub(in crate::data::recorded) trait Spectra: Debug + Send {
    /// log2 of the samples of its shortest rows.
    const FINEST: u32;

    fn known_samples(&self) -> Option<u64>;

    /// The highest level per bin of the transforms whose middle is within these samples.
    fn highest(&mut self, samples: Range<u64>) -> Vec<f32>;
}

/// None.
impl Spectra for () {
    const FINEST: u32 = 0;

    fn known_samples(&self) -> Option<u64> {
        None
    }

    fn highest(&mut self, _: Range<u64>) -> Vec<f32> {
        Vec::new()
    }
}

#[derive(Debug, Default)]
pub(in crate::data::recorded) struct Shared {
    pub(in crate::data::recorded) known: u64,
    /// Number of samples in the growing file.
    pub(in crate::data::recorded) grown: Option<u64>,
    pub(in crate::data::recorded) is_gone: bool,
    /// Positions that have not arrived.
    pub(in crate::data::recorded) missing: Option<Range<u64>>,
    pub(in crate::data::recorded) wanted: Option<WantedSamples>,
    /// The finest nodes that have arrived.
    pub(in crate::data::recorded) finest: u32,
    pub(in crate::data::recorded) read_bytes: u64,
}

impl Fake {
    pub(in crate::data::recorded) fn outline_of(
        format: SampleFormat,
        channels: usize,
        stretches: Vec<Stretch>,
    ) -> RecordingOutline {
        RecordingOutline { format, channels, rate_hz: 1e6, stretches, ..RecordingOutline::default() }
    }
}

/// The description and the annotation that begin at the sample where it has grown to.
pub(in crate::data::recorded) fn said_at(first_sample_index: u64) -> (Arc<Description>, StreamAnnotation) {
    let centre_frequency_hz = Some(first_sample_index as f64);
    let description = Description { first_sample_index, centre_frequency_hz, ..Description::default() };
    (Arc::new(description), StreamAnnotation { first_sample_index, ..StreamAnnotation::default() })
}

impl<S: Spectra> Recording for Fake<S> {
    fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    fn refresh(&mut self) -> bool {
        let Some(grown) = self.shared.lock().unwrap().grown.take() else { return false };
        let last = self.outline.stretches.last_mut().unwrap();
        last.length_samples = grown - last.position;
        let (description, annotation) = said_at(last.end_index());
        self.outline.descriptions.push(description);
        self.outline.annotations.push(annotation);
        true
    }

    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let mut shared = self.shared.lock().unwrap();
        if shared.is_gone {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        out.clear();
        let components = self.outline.format.components();
        for channel in &self.channels {
            for &sample in &channel[position as usize * components..][..length * components] {
                match self.outline.format {
                    SampleFormat::I16 => out.extend((sample as i16).to_le_bytes()),
                    _ => out.extend(sample.to_le_bytes()),
                }
            }
        }
        shared.read_bytes += out.len() as u64;
        Ok(())
    }

    fn known_samples(&self) -> u64 {
        self.shared.lock().unwrap().known
    }

    fn level(&self, log2: u32) -> Option<u32> {
        (8..=28).step_by(2).take_while(|&level| level <= log2).last()
    }

    fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<(f32, f32)>,
    ) -> io::Result<()> {
        let all = &self.channels[lane][..self.known_samples() as usize];
        let parts = all.chunks(1 << log2).skip(nodes.start as usize).take((nodes.end - nodes.start) as usize);
        out.extend(parts.map(extremes));
        Ok(())
    }

    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums {
        let all = &self.channels[lane][samples.start as usize..samples.end as usize];
        let sum = |of: &dyn Fn(f64) -> f64| all.iter().map(|&value| of(value.into())).sum();
        RecordingSums { sum: sum(&|x| x), sum_sq: sum(&|x| x * x), not_finite: 0, count: all.len() as u64 }
    }

    fn known_power_samples(&mut self) -> Option<u64> {
        self.spectra.known_samples()
    }

    fn power_level(&self, log2: u32) -> Option<u32> {
        (S::FINEST..=32).step_by(2).take_while(|&level| level <= log2).last()
    }

    fn power(&mut self, _: usize, log2: u32, number: u64, power: &mut RecordingPower) -> io::Result<()> {
        power.highest = self.spectra.highest(number << log2..(number + 1) << log2);
        power.mean = power.highest.iter().map(|level| level - 20.0).collect();
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn arrived(&self, positions: Range<u64>) -> Option<f32> {
        let missing = self.shared.lock().unwrap().missing.clone()?;
        let within = missing.start.max(positions.start)
            ..missing.end.min(positions.end).max(missing.start.max(positions.start));
        Some(1.0 - (within.end - within.start) as f32 / (positions.end - positions.start).max(1) as f32)
    }

    fn readable(&self, positions: Range<u64>) -> Range<u64> {
        match self.shared.lock().unwrap().missing.clone() {
            Some(missing) if missing.start <= positions.start && positions.start < missing.end => {
                missing.end.min(positions.end)..positions.end
            }
            Some(missing) if missing.start < positions.end && positions.start < missing.end => {
                positions.start..missing.start
            }
            _ => positions,
        }
    }

    fn want(&mut self, wanted: &WantedSamples) {
        self.shared.lock().unwrap().wanted = Some(wanted.clone());
    }

    fn level_of(&mut self, log2: u32, _: Range<u64>) -> Option<(u32, bool)> {
        let finest = self.shared.lock().unwrap().finest;
        let level = self.level(log2)?;
        Some((level.max(finest), level >= finest))
    }
}
