//! Band and power of a burst, and their words.

use crate::units;

/// Band and power of a burst. Frequencies are those on the air if the signal has a centre frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BurstBand {
    pub(crate) centre_hz: f64,
    pub(crate) bandwidth_hz: f64,
    pub(crate) power_dbfs: f64,
    pub(crate) snr_db: f64,
    /// Samples, and so a part of the burst, are missing before or after it.
    pub(crate) is_cut: bool,
}

impl BurstBand {
    /// Lower and upper edge in hertz.
    pub(crate) fn edges_hz(&self) -> (f64, f64) {
        (self.centre_hz - self.bandwidth_hz / 2.0, self.centre_hz + self.bandwidth_hz / 2.0)
    }

    /// `433.92 MHz, 125 kHz wide, -32.1 dBFS, SNR 18.2 dB`.
    pub(crate) fn words(&self) -> String {
        // A hundredth of the width.
        let step = 10f64.powf((self.bandwidth_hz.max(1e-3) / 100.0).log10().floor());
        let centre = units::exact(rounded(self.centre_hz, step), "Hz");
        let width = units::exact(rounded(self.bandwidth_hz, step), "Hz");
        let cut = if self.is_cut { ", cut off by missing samples" } else { "" };
        format!("{centre}, {width} wide, {:.1} dBFS, SNR {:.1} dB{cut}", self.power_dbfs, self.snr_db)
    }
}

fn rounded(value: f64, step: f64) -> f64 {
    // Through text, because a product of steps has digits of its own.
    let decimals = (-step.log10()).ceil().max(0.0) as usize;
    format!("{:.decimals$}", (value / step).round() * step).parse().unwrap_or(value)
}
