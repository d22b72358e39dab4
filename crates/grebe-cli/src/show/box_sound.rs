//! The demodulator of a box, for finished and live sound.

use anyhow::{Context as _, Result, anyhow, bail};
use grebe_flow::{Kind as _, Site, Stage};
use grebe_process::Demodulate;
use grebe_scope::Engineering;
use grebe_view::HeardBox;

use crate::cli::MODES;

/// The stage that makes the sound of a box, and the rate of that.
pub(super) fn demodulator(heard: &HeardBox) -> Result<(f64, Box<dyn Stage>)> {
    let (name, _, mode) = *MODES.get(heard.modulation).context("unknown modulation")?;
    let kind = Demodulate::of_band(mode, heard.low_hz, heard.high_hz).at_lowest_rate();
    let kind = Demodulate { level: true, ..kind };
    if kind.check().is_err() {
        let (width, name) = (Engineering::new(heard.high_hz - heard.low_hz, "Hz"), name.to_uppercase());
        bail!("a box of {width} does not fit {name}: choose another modulation, or another width");
    }
    let rate_hz = kind.rate.0;
    let stage = kind.build(&mut Site::new("demodulator")).map_err(|error| anyhow!("{error}"))?;
    Ok((rate_hz, stage))
}

/// A sample of its output in 16 bits.
pub(super) fn sound_sample(sample: f32) -> i16 {
    (sample * FULL_SCALE).round_ties_even() as i16
}

/// Of the sound's samples.
const FULL_SCALE: f32 = 32_768.0;
