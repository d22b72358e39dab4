//! Settings of a `synth` generator, as on a command line or in a graph file.

use std::str::FromStr;
use std::time::Duration;

use grebe_flow::{Count, Fault, Kind, Ports, RateHz, Site, SizeBytes, Stage, StageResult, Time};
use grebe_frame::{MAX_CHANNELS, SampleFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::{SynthOptions, SynthSource};
use super::wave::{ChannelSpec, Wave};
use crate::error::Error;
use crate::format::{Format, FrequencyHz};
use crate::per_channel::PerChannel;
use crate::stream::{DATAGRAM_BYTES, block_length, check_datagram_bytes};

/// Generates signals, as `grebe sg` does.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Synth {
    /// Number of channels, 1 to 255.
    pub channels: u32,
    /// Sample format: i8, u8, i16, i32, f32, f64, or complex: ci8, cu8, ci16, cf32.
    pub format: Format,
    /// Samples per second and channel.
    pub rate: RateHz,
    /// Waveform, one value or one per channel: sine, square, triangle, saw, chirp, noise, gaussian, two_tone or qpsk.
    pub wave: PerChannel<WaveName>,
    /// Frequency in Hz, one value or one per channel; by default 1/2500 of the rate, doubled from channel to channel. May be negative for
    /// complex formats.
    pub frequency: Option<PerChannel<FrequencyHz>>,
    /// Centre frequency to state, in Hz: the frequency on the air that 0 Hz stands for. The samples stay the same.
    pub center: Option<FrequencyHz>,
    /// Second frequency of two_tone, one value or one per channel; by default 1.25 times the first.
    pub second: Option<PerChannel<FrequencyHz>>,
    /// Symbols per second of qpsk; by default an eighth of the rate.
    pub symbol_rate: Option<RateHz>,
    /// Roll-off of the root-raised cosine of qpsk, 0 to 1.
    pub roll_off: f64,
    /// Signal-to-noise ratio in dB of added white Gaussian noise, over the whole band.
    pub snr: Option<f64>,
    /// Seed of noise and symbols.
    pub seed: u64,
    /// Phase in degrees, one value or one per channel.
    pub phase: PerChannel<f64>,
    /// Amplitude as a fraction of full scale, one value or one per channel; of gaussian and qpsk, 4 times the RMS.
    pub amplitude: PerChannel<f64>,
    /// Offset as a fraction of full scale, one value or one per channel.
    pub offset: PerChannel<f64>,
    /// Ends after this many samples per channel.
    pub samples: Option<Count>,
    /// Ends after this long.
    pub duration: Option<Time>,
    /// Ignores the sample rate, and sends as fast as the reader accepts.
    pub free_run: bool,
    /// Maximum bytes of a datagram with a frame; large frames cost less without a network.
    pub datagram_size: SizeBytes,
    /// End-to-end latency budget; frames gather for up to a quarter of it.
    pub latency: Time,
}

/// Waveform by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaveName {
    /// Rises from 0.
    Sine,
    /// High for the first half of a period, then low.
    Square,
    /// Rises from 0 like the sine.
    Triangle,
    /// Rises from low to high over a period.
    #[serde(alias = "sawtooth")]
    Saw,
    /// A sine that sweeps from its frequency up to a twentieth of the rate, in 20,000 samples.
    Chirp,
    /// White noise, uniform, of another seed on each channel.
    Noise,
    /// White Gaussian noise, of another seed on each channel.
    Gaussian,
    /// Two sines of half the amplitude each.
    TwoTone,
    /// Random symbols at the corners of a square, for complex formats, of another seed on each channel.
    Qpsk,
}

impl WaveName {
    /// All waveforms.
    pub const ALL: [WaveName; 9] = [
        WaveName::Sine,
        WaveName::Square,
        WaveName::Triangle,
        WaveName::Saw,
        WaveName::Chirp,
        WaveName::Noise,
        WaveName::Gaussian,
        WaveName::TwoTone,
        WaveName::Qpsk,
    ];

    /// Name as written.
    pub fn name(self) -> &'static str {
        match self {
            WaveName::Sine => "sine",
            WaveName::Square => "square",
            WaveName::Triangle => "triangle",
            WaveName::Saw => "saw",
            WaveName::Chirp => "chirp",
            WaveName::Noise => "noise",
            WaveName::Gaussian => "gaussian",
            WaveName::TwoTone => "two_tone",
            WaveName::Qpsk => "qpsk",
        }
    }
}

impl FromStr for WaveName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let name = if text == "sawtooth" { "saw" } else { text };
        let reason = || {
            "unknown waveform; use sine, square, triangle, saw, chirp, noise, gaussian, two_tone or qpsk"
                .to_owned()
        };
        let found = Self::ALL.into_iter().find(|wave| wave.name() == name);
        found.ok_or_else(|| Error::Name { name: text.to_owned(), reason: reason() })
    }
}

impl Default for Synth {
    /// One channel with a sine at 1 MS/s, without an end.
    fn default() -> Self {
        Self {
            channels: 1,
            format: Format::default(),
            rate: RateHz(1e6),
            wave: vec![WaveName::Sine].into(),
            frequency: None,
            center: None,
            second: None,
            symbol_rate: None,
            roll_off: 0.35,
            snr: None,
            seed: 0,
            phase: vec![0.0].into(),
            amplitude: vec![0.8].into(),
            offset: vec![0.0].into(),
            samples: None,
            duration: None,
            free_run: false,
            datagram_size: SizeBytes(DATAGRAM_BYTES),
            latency: Time(Duration::from_micros(500)),
        }
    }
}

impl Synth {
    /// Options of the [`SynthSource`].
    pub(super) fn options(&self) -> SynthOptions {
        let rate_hz = self.rate.0;
        let channels = self.channels as usize;
        SynthOptions {
            format: self.format.0,
            channels: (0..channels).map(|channel| self.spec(channel)).collect(),
            rate_hz,
            paced: !self.free_run,
            block_samples: block_length(self.datagram_size.0, channels, self.format.0, rate_hz),
            samples: self.length_samples(),
            flush_every: self.latency.0 / 4,
        }
    }

    pub(super) fn centre_hz(&self) -> Option<f64> {
        self.center.map(|center| center.0)
    }

    /// Samples per channel after which the stream ends.
    pub fn length_samples(&self) -> Option<u64> {
        let of_duration = |duration: Time| (duration.0.as_secs_f64() * self.rate.0).round() as u64;
        self.samples.map(|samples| samples.0).or(self.duration.map(of_duration))
    }

    fn spec(&self, channel: usize) -> ChannelSpec {
        let rate_hz = self.rate.0;
        // Slightly off the grid of the time axis, so that a free-running picture moves.
        let default_hz = rate_hz / 2500.0 * f64::from(1u32 << (channel % 8));
        let waves = self.wave.values();
        let wave = waves.get(channel % waves.len().max(1)).copied().unwrap_or(WaveName::Sine);
        let frequency = self.frequency.as_ref().and_then(|frequency| frequency.of(channel));
        let frequency_hz = frequency.map_or(default_hz, |frequency| frequency.0);
        let seed = self.seed.wrapping_add(channel as u64 + 1);
        let second = self.second.as_ref().and_then(|second| second.of(channel));
        let wave = match wave {
            WaveName::Sine => Wave::Sine,
            WaveName::Square => Wave::Square,
            WaveName::Triangle => Wave::Triangle,
            WaveName::Saw => Wave::Saw,
            WaveName::Chirp => Wave::Chirp { end_hz: rate_hz / 20.0, sweep_s: 20_000.0 / rate_hz },
            WaveName::Noise => Wave::Noise { seed },
            WaveName::Gaussian => Wave::Gaussian { seed },
            WaveName::TwoTone => {
                Wave::TwoTone { second_hz: second.map_or(frequency_hz * 1.25, |second| second.0) }
            }
            WaveName::Qpsk => Wave::Qpsk {
                symbol_rate_hz: self.symbol_rate.map_or(rate_hz / 8.0, |rate| rate.0),
                roll_off: self.roll_off,
                seed,
            },
        };
        ChannelSpec {
            wave,
            frequency_hz,
            snr_db: self.snr,
            noise_seed: seed,
            phase_turns: self.phase.of(channel).copied().unwrap_or(0.0) / 360.0,
            amplitude: self.amplitude.of(channel).copied().unwrap_or(0.8),
            offset: self.offset.of(channel).copied().unwrap_or(0.0),
        }
    }

    /// Parameter behind an invalid setting.
    fn fault(error: &Error) -> Fault {
        let param = match error {
            Error::Setting { what: "frequency", .. } => "frequency",
            Error::Setting { what: "second frequency", .. } => "second",
            Error::Setting { what: "symbol rate", .. } => "symbol_rate",
            Error::Setting { what: "roll-off", .. } => "roll_off",
            Error::Setting { what: "SNR", .. } => "snr",
            Error::Setting { what: "format", .. } => "format",
            Error::Setting { what: "phase", .. } => "phase",
            Error::Setting { what: "amplitude", .. } => "amplitude",
            Error::Setting { what: "offset", .. } => "offset",
            _ => "rate",
        };
        Fault::new(param, error.to_string())
    }
}

impl Kind for Synth {
    const NAME: &'static str = "synth";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        if !(1..=MAX_CHANNELS).contains(&self.channels) {
            return Err(Fault::new("channels", format!("{} channels: give 1 to 255", self.channels)));
        }
        if self.samples.is_some() && self.duration.is_some() {
            return Err(Fault::new("duration", "give 'samples' or 'duration', not both"));
        }
        check_datagram_bytes(self.datagram_size.0)
            .map_err(|error| Fault::new("datagram_size", error.to_string()))?;
        let channels = Some(self.channels);
        if let Some(frequency) = &self.frequency {
            frequency.check("frequency", channels)?;
        }
        if let Some(second) = &self.second {
            second.check("second", channels)?;
        }
        for (name, values) in
            [("phase", &self.phase), ("amplitude", &self.amplitude), ("offset", &self.offset)]
        {
            values.check(name, channels)?;
        }
        for channel in 0..self.channels as usize {
            // Noise ignores the frequency, and this only checks ranges without computing a wave.
            self.spec(channel).check(self.rate.0, self.format.0).map_err(|error| Self::fault(&error))?;
        }
        Ok(())
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(Some(self.channels))
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(Some(self.format.0))
    }

    fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
        (!self.free_run).then_some(self.rate.0)
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(SynthSource::new(self.options())?.centre_frequency_hz(self.centre_hz())))
    }
}
