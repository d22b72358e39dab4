//! What a channel carries.

use crate::error::Error;

/// A waveform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wave {
    /// Rises from 0.
    Sine,
    /// High for the first half of a period, then low.
    Square,
    /// Rises from 0 like the sine.
    Triangle,
    /// Rises from low to high over a period.
    Saw,
    /// A sine that sweeps in `sweep_s` seconds (rounded to whole samples) from the channel's frequency to `end_hz`,
    /// linearly, and begins again.
    Chirp {
        /// The frequency at the end of a sweep.
        end_hz: f64,
        /// How long a sweep takes, in seconds: 2 to 2^32 samples.
        sweep_s: f64,
    },
    /// White noise, uniform between low and high. Repeats after 2^66 samples.
    Noise {
        /// Channels with different seeds are independent of each other.
        seed: u64,
    },
}

/// What one channel carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelSpec {
    /// The waveform.
    pub wave: Wave,
    /// Periods per second, 0 to half the rate; where a chirp begins; of no meaning to noise.
    pub frequency_hz: f64,
    /// Where in its period the wave begins, in turns: 0.25 is 90 degrees.
    pub phase_turns: f64,
    /// 0 to 1, of the full scale of 32,767.
    pub amplitude: f64,
    /// -1 to 1, of the full scale. What exceeds full scale with it is clipped.
    pub offset: f64,
}

impl ChannelSpec {
    pub(super) fn check(&self, rate_hz: f64) -> Result<(), Error> {
        let setting = |what, got: f64, good: bool, must| {
            if good { Ok(()) } else { Err(Error::Setting { what, got: got.to_string(), must }) }
        };
        let nyquist_hz = 0.0..=rate_hz / 2.0;
        let within = "give 0 to half the sample rate; above it there are aliases";
        setting("sample rate", rate_hz, rate_hz > 0.0 && rate_hz.is_finite(), "give a rate above 0 Hz")?;
        let unused = matches!(self.wave, Wave::Noise { .. });
        setting("frequency", self.frequency_hz, unused || nyquist_hz.contains(&self.frequency_hz), within)?;
        setting("phase", self.phase_turns, self.phase_turns.is_finite(), "give a number of turns")?;
        setting("amplitude", self.amplitude, (0.0..=1.0).contains(&self.amplitude), "give 0 to 1")?;
        setting("offset", self.offset, (-1.0..=1.0).contains(&self.offset), "give -1 to 1")?;
        if let Wave::Chirp { end_hz, sweep_s } = self.wave {
            setting("end frequency", end_hz, nyquist_hz.contains(&end_hz), within)?;
            let samples = (sweep_s * rate_hz).round();
            let good = (2.0..=SWEEP_SAMPLES_MAX).contains(&samples);
            setting("sweep time", sweep_s, good, "give seconds that make 2 to 2^32 samples")?;
        }
        Ok(())
    }
}

impl Default for ChannelSpec {
    /// A sine of 1 kHz at half of full scale.
    fn default() -> Self {
        Self { wave: Wave::Sine, frequency_hz: 1_000.0, phase_turns: 0.0, amplitude: 0.5, offset: 0.0 }
    }
}

/// What a wave between -1 and 1 is multiplied with, and what is added, in counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) amplitude: f64,
    pub(super) offset: f64,
}

/// Beyond it the 64-bit phase of a sweep is off by more than a quarter turn at its end.
const SWEEP_SAMPLES_MAX: f64 = 4_294_967_296.0;
