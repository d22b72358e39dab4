//! Bursts of a channel, in hertz.

use std::ops::Range;

use anyhow::Result;
use grebe_frame::SampleFormat;
use grebe_process::numbers::load;
use grebe_recording::Block;
use grebe_scope::{Burst, BurstDetector, BurstSettings, SampleSource};
use grebe_view::{LaneId, Part};

use super::burst_band::BurstBand;
use super::detector::{Hit, Lasting};
use super::wanted::{BurstConditions, Signal, Wanted};
use crate::ending::Usage;

/// Search for the bursts of a channel.
pub(super) struct BurstSearch {
    detector: BurstDetector,
    lasting: Lasting,
    channel: usize,
    rate_hz: f64,
    /// Frequency of 0 Hz of the samples.
    centre_hz: f64,
    conditions: BurstConditions,
}

impl BurstSearch {
    /// # Errors
    /// [`Usage`] if the rate is unknown, or the lane is a part of a channel.
    pub(super) fn new(
        wanted: &Wanted,
        conditions: BurstConditions,
        lane: LaneId,
        signal: &Signal,
    ) -> Result<Self> {
        let (rate_hz, is_complex) = (signal.sample_rate_hz, signal.format.is_complex());
        if !matches!(lane.part, Part::Real | Part::Magnitude) {
            let channel = LaneId::real(lane.channel);
            let what = format!("--channels {lane}: a burst is found in a whole channel: give {channel}");
            return Err(Usage(what).into());
        }
        if rate_hz <= 0.0 {
            return Err(Usage("unknown sample rate: give it, as in 'x.cu8?rate=2.4M'".to_owned()).into());
        }
        let centre_hz = signal.centre_hz().unwrap_or(0.0);
        let settings = BurstSettings {
            size: conditions.transform_samples,
            false_alarms: conditions.false_alarms,
            longest_samples: (rate_hz * LONGEST_S) as u64,
            threads: wanted.threads,
        };
        let make = if is_complex { BurstDetector::complex } else { BurstDetector::real };
        let mut detector = make(settings, signal.full_scale())?;
        detector.set_zero(wanted.middle);
        Ok(Self {
            detector,
            lasting: Lasting::new(wanted),
            channel: lane.channel,
            rate_hz,
            centre_hz,
            conditions,
        })
    }

    pub(super) fn pieces(&self, samples: u64) -> Vec<Range<u64>> {
        self.detector.pieces(samples).collect()
    }

    pub(super) fn learn(&mut self, block: &Block<'_>) -> Result<()> {
        self.detector.learn_from(&ChannelSamples::of(block, self.channel)?);
        Ok(())
    }

    pub(super) fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()> {
        let samples = ChannelSamples::of(block, self.channel)?;
        let place = Place { rate_hz: self.rate_hz, centre_hz: self.centre_hz, conditions: &self.conditions };
        let lasting = &mut self.lasting;
        self.detector.append_from(first_index, &samples, |burst| place.take(&burst, lasting, found));
        Ok(())
    }

    pub(super) fn end(&mut self, found: &mut Vec<Hit>) {
        let place = Place { rate_hz: self.rate_hz, centre_hz: self.centre_hz, conditions: &self.conditions };
        let lasting = &mut self.lasting;
        self.detector.end(|burst| place.take(&burst, lasting, found));
    }
}

/// The samples of one channel of a block.
struct ChannelSamples<'a> {
    format: SampleFormat,
    bytes: &'a [u8],
}

impl<'a> ChannelSamples<'a> {
    fn of(block: &Block<'a>, channel: usize) -> Result<Self> {
        Ok(Self { format: block.format(), bytes: block.channel_bytes(channel)? })
    }
}

impl SampleSource for ChannelSamples<'_> {
    fn len_samples(&self) -> usize {
        self.bytes.len() / self.format.bytes()
    }

    fn read(&self, samples: Range<usize>, numbers: &mut [f32]) {
        let bytes = self.format.bytes();
        load(self.format, &self.bytes[samples.start * bytes..samples.end * bytes], numbers);
    }
}

/// From cycles per sample to hertz.
struct Place<'a> {
    rate_hz: f64,
    centre_hz: f64,
    conditions: &'a BurstConditions,
}

impl Place<'_> {
    fn take(&self, burst: &Burst, lasting: &mut Lasting, found: &mut Vec<Hit>) {
        let band = BurstBand {
            centre_hz: burst.centre * self.rate_hz + self.centre_hz,
            bandwidth_hz: burst.bandwidth * self.rate_hz,
            power_dbfs: burst.power_dbfs,
            snr_db: burst.snr_db,
            is_cut: burst.is_cut,
        };
        let is_in_band =
            self.conditions.band_hz.is_none_or(|(low, high)| (low..=high).contains(&band.centre_hz));
        if !is_in_band || band.snr_db < self.conditions.above_db {
            return;
        }
        let before = found.len();
        lasting.begin(burst.first_sample_index);
        lasting.end(burst.first_sample_index + burst.length_samples, found);
        found[before..].iter_mut().for_each(|hit| hit.burst = Some(band));
    }
}

/// A longer signal becomes a part of the noise floor.
const LONGEST_S: f64 = 60.0;
