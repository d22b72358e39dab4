//! Measurements of a channel and of a tone from a spectrum: power, occupied bandwidth, noise, distortion.
//!
//! Powers are parts of the power of a full-scale tone. A window widens every line to its noise bandwidth, which every
//! sum of lines divides out.

use super::Spectrum;
use super::peaks::Peak;
use crate::value::Value;

/// A band of the frequency axis, in cycles per sample, as [`Spectrum::cycles_per_sample`]; times the rate in hertz.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "(f64, f64)", into = "(f64, f64)")
)]
pub struct Band {
    /// Lower edge, -0.5 to 0.5.
    pub low: f64,
    /// Upper edge.
    pub high: f64,
}

impl From<(f64, f64)> for Band {
    fn from((low, high): (f64, f64)) -> Band {
        Band { low, high }
    }
}

impl From<Band> for (f64, f64) {
    fn from(band: Band) -> (f64, f64) {
        (band.low, band.high)
    }
}

impl Band {
    /// Upper minus lower edge.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// The frequency in its middle.
    pub fn center(&self) -> f64 {
        (self.low + self.high) / 2.0
    }
}

/// Purity of a tone, by IEEE Std 1241. All in decibels except `enob`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ToneQuality {
    /// The highest tone.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub fundamental: Peak,
    /// Ratio of the fundamental to everything except harmonics and offset.
    #[cfg_attr(feature = "serde", serde(with = "crate::or_word"))]
    pub snr_db: f64,
    /// Ratio of the fundamental to everything except the offset.
    #[cfg_attr(feature = "serde", serde(with = "crate::or_word"))]
    pub sinad_db: f64,
    /// All harmonics together, relative to the fundamental. `None` if they are below the noise or the window's
    /// leakage, or if one of them coincides with the fundamental or the offset.
    pub thd_db: Option<f64>,
    /// Number of bits of an ideal converter of this full scale with the same noise and distortion.
    pub enob: f64,
}

impl<V: Value, const COMPONENTS: usize> Spectrum<V, COMPONENTS> {
    /// Power within a band, as a part of that of a full-scale tone; lines that the band cuts count in part.
    pub fn band_power(&self, band: Band) -> f64 {
        let (low, high) = (self.line_of(band.low), self.line_of(band.high));
        let (first, last) = (self.edge_line(low), self.edge_line(high));
        let inside = |line: usize| {
            let (left, right) = self.extent(line);
            ((high.min(right) - low.max(left)) / (right - left)).clamp(0.0, 1.0)
        };
        let power = (first..=last).map(|line| self.line_power(line) * inside(line)).sum::<f64>();
        power / self.noise_bandwidth_lines()
    }

    /// [`band_power`](Spectrum::band_power) in dBFS; -200 for almost no power.
    pub fn band_power_dbfs(&self, band: Band) -> f64 {
        10.0 * self.band_power(band).max(1e-20).log10()
    }

    /// The band that holds `part` (usually 0.99) of the power `within` a band, with equal power below and above it.
    /// `None` without power, or if `part` is not between 0 and 1.
    pub fn occupied_band(&self, part: f64, within: Band) -> Option<Band> {
        let whole = self.band_power(within);
        if !(whole > 0.0 && whole.is_finite() && part > 0.0 && part < 1.0) {
            return None;
        }
        let (low, high) = (self.line_of(within.low), self.line_of(within.high));
        let bandwidth = self.noise_bandwidth_lines();
        // Place where the power below reaches a part of the total, interpolated within its line.
        let reaches = |wanted: f64| {
            let mut below = 0.0;
            for line in self.edge_line(low)..=self.edge_line(high) {
                let (left, right) = self.extent(line);
                let (from, to) = (left.max(low), right.min(high));
                let power = self.line_power(line) / bandwidth * ((to - from) / (right - left)).max(0.0);
                if below + power >= wanted {
                    return from + (to - from) * ((wanted - below) / power).clamp(0.0, 1.0);
                }
                below += power;
            }
            high
        };
        let outside = whole * (1.0 - part) / 2.0;
        let edge = |line: f64| self.cycles_per_sample(line);
        Some(Band { low: edge(reaches(outside)), high: edge(reaches(whole - outside)) })
    }

    /// Ratio of the signal in a channel to its noise, in decibels, if the noise density equals that of the bands
    /// `noise` beside it. Bands with an upper edge not above the lower do not count. `None` without any band, or if
    /// the signal does not exceed the noise.
    pub fn channel_snr_db(&self, channel: Band, noise: &[Band]) -> Option<f64> {
        let beside = noise.iter().filter(|band| band.width() > 0.0);
        let (power, width) = beside
            .fold((0.0, 0.0), |(power, width), &band| (power + self.band_power(band), width + band.width()));
        let density = power / width;
        let noise = density * channel.width();
        let signal = self.band_power(channel) - noise;
        (signal > 0.0 && noise > 0.0).then(|| 10.0 * (signal / noise).log10())
    }

    /// Purity of the highest tone, with harmonics from the 2nd to number `harmonics`, aliases included. `None`
    /// without a tone, or with too few lines to separate harmonics from each other, from the offset, and from noise:
    /// the fundamental needs two widths of the window's main lobe below it.
    ///
    /// Leakage of the window counts as noise: with [`Window::BlackmanHarris`](crate::Window::BlackmanHarris), down to
    /// 90 dB below the tone. Lines of tones are assumed to hold as much noise as the others.
    pub fn tone_quality(&self, harmonics: u32) -> Option<ToneQuality> {
        let fundamental = self.peaks(1, -180.0).first().copied()?;
        let zero = self.zero_line() as f64;
        // The distance between harmonics equals that between the fundamental and the offset.
        let (spacing, lobe) =
            (self.lines_apart(fundamental.line, zero), self.window().half_lobe_lines() as f64);
        if spacing < 2.0 * lobe || self.is_above_a_stronger(&fundamental) {
            return None;
        }
        let reach = self.tone_reach().min((spacing / 2.0).floor());
        let frequency = self.cycles_per_sample(fundamental.line);
        let harmonics = 2..=harmonics.max(1);
        let line_of_harmonic = |number: u32| self.line_of(self.folded(frequency * f64::from(number)));
        let is_within = |line: usize, place: f64, lines: f64| self.lines_apart(line as f64, place) <= lines;
        let is_harmonic =
            |line, lines| harmonics.clone().any(|number| is_within(line, line_of_harmonic(number), lines));
        let (mut signal, mut signal_lines) = (0.0, 0.0);
        let (mut distortion, mut distortion_lines) = (0.0, 0.0);
        let (mut noise, mut noise_lines) = (0.0, 0.0);
        for line in 0..self.dbfs().len() {
            let (power, share) = (self.line_power(line), self.extent(line));
            let share = share.1 - share.0;
            // A harmonic may lie in the side lobes of the fundamental.
            let is_lobe = is_within(line, fundamental.line, lobe) || is_within(line, zero, lobe);
            let is_other = !is_lobe && is_harmonic(line, lobe);
            if !is_other && is_within(line, fundamental.line, reach) {
                (signal, signal_lines) = (signal + power, signal_lines + share);
            } else if !is_other && is_within(line, zero, reach) {
                continue;
            } else if is_other || is_harmonic(line, reach) {
                (distortion, distortion_lines) = (distortion + power, distortion_lines + share);
            } else {
                (noise, noise_lines) = (noise + power, noise_lines + share);
            }
        }
        // The same noise density is assumed below the tones and the offset.
        let all_lines = self.size() as f64 / if COMPONENTS == 1 { 2.0 } else { 1.0 };
        if noise_lines < all_lines / 4.0 {
            return None;
        }
        let density = noise / noise_lines;
        let signal = signal - density * signal_lines;
        // The standard deviation of the sum of these lines of noise.
        let noise_below = density * distortion_lines;
        let deviation = noise_below * (2.0 / (distortion_lines * self.levels.count as f64).max(1.0)).sqrt();
        let is_distorted = distortion - noise_below > DEVIATIONS_MIN * deviation;
        let distortion = (distortion - noise_below).max(0.0);
        let noise = density * all_lines;
        let db = |ratio: f64| 10.0 * ratio.max(1e-20).log10();
        let is_alone = |line: f64| {
            self.lines_apart(line, fundamental.line).min(self.lines_apart(line, zero)) >= 2.0 * lobe
        };
        let are_alone = harmonics.clone().all(|number| is_alone(line_of_harmonic(number)));
        let thd_db =
            Some(db(distortion / signal)).filter(|thd| is_distorted && are_alone && *thd > TONE_FLOOR_DB);
        // In powers of a full-scale sine, whose ideal quantization noise is 2^-2N / 1.5.
        let noise_and_distortion = (noise + distortion) / self.noise_bandwidth_lines();
        (signal > 0.0).then(|| ToneQuality {
            fundamental,
            snr_db: db(signal / noise),
            sinad_db: db(signal / (noise + distortion)),
            thd_db,
            enob: -(noise_and_distortion.max(1e-40) * 1.5).log2() / 2.0,
        })
    }

    /// Whether a line below a peak of real samples is higher, but not because of the offset: a tone too close to 0 Hz
    /// to be a peak, of which the peak may be a harmonic.
    fn is_above_a_stronger(&self, peak: &Peak) -> bool {
        if COMPONENTS == 2 {
            return false;
        }
        let offset = f64::from(self.dbfs()[0]) + 6.02 + TOLERANCE_DB;
        let below = (peak.line - self.window().half_lobe_lines() as f64) as usize;
        (1..below).any(|line| {
            let level = f64::from(self.dbfs()[line]);
            level > peak.dbfs && level > offset + self.window().lobe_db(line as f64)
        })
    }

    /// Converts a frequency to a place in lines.
    fn line_of(&self, cycles_per_sample: f64) -> f64 {
        let ends = if COMPONENTS == 1 { (0.0, 0.5) } else { (-0.5, 0.5) };
        cycles_per_sample.clamp(ends.0, ends.1) * self.size() as f64 + self.zero_line() as f64
    }

    /// The line that contains a place.
    fn edge_line(&self, place: f64) -> usize {
        (place.round().max(0.0) as usize).min(self.dbfs().len() - 1)
    }

    /// Extent of a line: the first and the last of real samples extend half as far.
    fn extent(&self, line: usize) -> (f64, f64) {
        let at = line as f64;
        let (left, right) = (at - 0.5, at + 0.5);
        if COMPONENTS == 1 { (left.max(0.0), right.min(self.size() as f64 / 2.0)) } else { (left, right) }
    }

    /// Power of a line. An offset has twice the power of a sine of its amplitude.
    fn line_power(&self, line: usize) -> f64 {
        let is_end = COMPONENTS == 1 && (line == 0 || line + 1 == self.dbfs().len());
        f64::from(self.levels.power[line]) * if is_end { 2.0 } else { 1.0 }
    }

    fn noise_bandwidth_lines(&self) -> f64 {
        self.transform.noise_bandwidth_lines()
    }

    /// The alias of a frequency beyond half the rate.
    fn folded(&self, cycles_per_sample: f64) -> f64 {
        let wrapped = cycles_per_sample - cycles_per_sample.round();
        if COMPONENTS == 1 { wrapped.abs() } else { wrapped }
    }

    fn lines_apart(&self, a: f64, b: f64) -> f64 {
        let apart = (a - b).abs();
        if COMPONENTS == 1 { apart } else { apart.min(self.size() as f64 - apart) }
    }

    /// Distance from a tone at which its window is still visible, in lines.
    fn tone_reach(&self) -> f64 {
        let most = (self.size() / 64).clamp(self.window().half_lobe_lines(), TONE_REACH_MAX);
        let is_seen = |&lines: &usize| self.window().lobe_db(lines as f64 + 0.5) > TONE_FLOOR_DB;
        (0..=most).rfind(is_seen).unwrap_or(0) as f64 + 1.0
    }
}

/// Limit for the random part of a sum of noise lines, in standard deviations of that sum.
const DEVIATIONS_MIN: f64 = 5.0;
/// Tolerance of levels of neighbouring lines.
const TOLERANCE_DB: f64 = 0.5;
const TONE_FLOOR_DB: f64 = -100.0;
const TONE_REACH_MAX: usize = 100;
