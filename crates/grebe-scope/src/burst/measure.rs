//! Times, band and power of a burst that has ended.

use std::ops::Range;

use super::group::{JOIN_ROWS, Open};
use super::rows::Rows;

/// Burst as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Index of its first sample.
    pub first_sample_index: u64,
    /// Duration, at least 1.
    pub length_samples: u64,
    /// Middle of its band in cycles per sample: the mean frequency of its power.
    pub centre: f64,
    /// Width of the band that holds 99 % of its power, in cycles per sample. Of a tone that is 2.6 lines of the transform.
    pub bandwidth: f64,
    /// Mean power without the noise, in decibels of a full-scale tone.
    pub power_dbfs: f64,
    /// Ratio of that power to the noise in its band.
    pub snr_db: f64,
    /// Whether samples, and so a part of it, are missing before or after it.
    pub is_cut: bool,
}

/// Where rows and lines are in the signal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) size: usize,
    /// Index of the first sample of row 0, and of the sample after the last one.
    pub(super) first_index: u64,
    pub(super) end_index: u64,
    pub(super) is_complex: bool,
    /// Noise bandwidth of a line, in lines.
    pub(super) noise_lines: f64,
}

/// Input of the measurement of a burst.
pub(super) struct Measured<'a> {
    pub(super) rows: &'a Rows,
    pub(super) floor: &'a [f32],
    /// Sums of the lines of all rows before `sums_end`.
    pub(super) sums: &'a [f64],
    pub(super) sums_end: u64,
    pub(super) grid: Grid,
    /// The row after the last.
    pub(super) end: u64,
}

impl Measured<'_> {
    /// Begin of a burst in rows while its first rows are held, and whether it is older than the samples.
    pub(super) fn begin(&self, open: &Open) -> (f64, bool) {
        let rows = (open.first_row as f64, (open.first_row + LEVEL_ROWS) as f64);
        let band = self.with_power(open, &open.band(self.floor.len()), rows, true);
        let inside = open.first_row + 2..=(open.first_row + LEVEL_ROWS).min(open.last_cell.saturating_sub(1));
        let level = mean(&self.rows.profile(inside, &band, self.floor))
            .unwrap_or_else(|| self.short_level(open, &band));
        self.rise(open, &band, level)
    }

    /// Begin and end of a burst in rows, and whether samples before or after it are missing.
    fn edges(
        &self,
        open: &Open,
        band: &Range<usize>,
        level: f64,
        is_last: bool,
    ) -> ((f64, bool), (f64, bool)) {
        if open.last_cell - open.first_row > LEVEL_ROWS {
            let begin = open.begin.unwrap_or_else(|| self.rise(open, band, level));
            return (begin, self.fall(open, band, level, is_last));
        }
        // Of a short burst both at once, because noise could set one behind the other.
        let from = open.first_row.saturating_sub(BACK_ROWS).max(self.rows.oldest());
        let to = (open.last_row + JOIN_ROWS).min(self.end.saturating_sub(1));
        let mut profile = self.rows.profile(from..=to, band, self.floor);
        let (mut best, mut inside) = (0.0, 0..0);
        let (mut sum, mut first) = (0.0, 0);
        for (row, power) in profile.iter().enumerate() {
            sum += power - level / 2.0;
            if sum <= 0.0 {
                (sum, first) = (0.0, row + 1);
            } else if sum > best {
                (best, inside) = (sum, first..row + 1);
            }
        }
        let begin = match half(&profile, inside.start, level) {
            Some(place) => (from as f64 + place, false),
            None => (from as f64, from == 0),
        };
        profile.reverse();
        let end = match half(&profile, profile.len() - inside.end, level) {
            Some(place) => (to as f64 - place, false),
            None => (to as f64, is_last && to + 1 == self.end),
        };
        (begin, end)
    }

    fn rise(&self, open: &Open, band: &Range<usize>, level: f64) -> (f64, bool) {
        let from = open.first_row.saturating_sub(BACK_ROWS).max(self.rows.oldest());
        let to = (open.first_row + 3).min(self.end.saturating_sub(1));
        let profile = self.rows.profile(from..=to, band, self.floor);
        match rise(&profile, level) {
            Some(place) => (from as f64 + place, false),
            None => (from as f64, from == 0),
        }
    }

    fn fall(&self, open: &Open, band: &Range<usize>, level: f64, is_last: bool) -> (f64, bool) {
        let from = open.last_cell.saturating_sub(5).max(open.first_row).max(self.rows.oldest());
        let to = (open.last_row + JOIN_ROWS).min(self.end.saturating_sub(1)).max(from);
        let mut profile = self.rows.profile(from..=to, band, self.floor);
        profile.reverse();
        match rise(&profile, level) {
            Some(place) => (to as f64 - place, false),
            None => (to as f64, is_last && to + 1 == self.end),
        }
    }

    /// Level of a burst of a few rows: low rather than high, so that noise does not look like a step.
    fn short_level(&self, open: &Open, band: &Range<usize>) -> f64 {
        let first = open.first_row.saturating_sub(3).max(self.rows.oldest());
        mean(&self.rows.profile(first..=open.last_cell, band, self.floor)).unwrap_or(0.0)
    }

    /// Measures a burst; `None` for cells without power. `is_last` if no samples follow.
    pub(super) fn measure(&self, open: &Open, is_last: bool) -> Option<Burst> {
        let Grid { size, first_index, end_index, is_complex, noise_lines } = self.grid;
        let mut band = open.band(self.floor.len());
        let is_held = open.first_row.saturating_sub(BACK_ROWS) >= self.rows.oldest();
        let last_rows = |band: &Range<usize>| {
            let first = open.last_cell.saturating_sub(LEVEL_ROWS).max(open.first_row + 2);
            mean(&self.rows.profile(first..=open.last_cell.saturating_sub(2), band, self.floor))
                .unwrap_or_else(|| self.short_level(open, band))
        };
        let inside = |band: &Range<usize>, begin: f64, end: f64| {
            let whole = ((begin + 1.0).ceil() as u64)..=((end - 1.0).floor().max(0.0) as u64);
            if is_held { mean(&self.rows.profile(whole, band, self.floor)) } else { None }
        };
        let (mut begin, mut end) = self.edges(open, &band, last_rows(&band), is_last);
        for _ in 0..REFINEMENTS {
            // Without the lines that have noise only, and so with the right level.
            band = self.with_power(open, &band, (begin.0, end.0), is_held);
            let level = inside(&band, begin.0, end.0).unwrap_or_else(|| last_rows(&band));
            (begin, end) = self.edges(open, &band, level, is_last);
        }
        let (spectrum, _) = self.spectrum(open, &band, (begin.0, end.0), is_held);
        let power = inside(&band, begin.0, end.0);
        let end = (end.0.max(begin.0 + 0.25), end.1);
        let power = power.unwrap_or_else(|| spectrum.iter().sum::<f64>() / (end.0 - begin.0)) / noise_lines;
        let (low, high, centre) = occupied(&spectrum, band.start);
        let noise = self.floor[band.clone()].iter().map(|&floor| f64::from(floor)).sum::<f64>()
            / band.len() as f64
            / noise_lines
            * (high - low).max(1.0);
        let index = |row: f64| first_index + ((row + 1.0) * size as f64 / 2.0).max(0.0).round() as u64;
        let from = if begin.1 { first_index } else { index(begin.0) };
        let to = if end.1 { end_index } else { index(end.0).min(end_index) };
        let zero = if is_complex { size as f64 / 2.0 } else { 0.0 };
        (power > 0.0).then(|| Burst {
            first_sample_index: from,
            length_samples: to.saturating_sub(from).max(1),
            centre: (centre - zero) / size as f64,
            bandwidth: (high - low) / size as f64,
            power_dbfs: 10.0 * power.log10(),
            snr_db: 10.0 * (power / noise.max(1e-30)).log10(),
            is_cut: begin.1 || end.1,
        })
    }

    /// The part of a band from the first to the last line with more than noise.
    fn with_power(&self, open: &Open, band: &Range<usize>, edges: (f64, f64), is_held: bool) -> Range<usize> {
        let (spectrum, rows) = self.spectrum(open, band, edges, is_held);
        let deviation = (rows as f64 + (FLOOR_DEVIATION * rows as f64).powi(2)).sqrt() * NOISE_DEVIATIONS;
        let has_power =
            |(at, power): (usize, &f64)| *power > deviation * f64::from(self.floor[band.start + at]);
        let first = spectrum.iter().enumerate().position(has_power);
        let last = spectrum.iter().enumerate().rev().find(|&line| has_power(line)).map(|(at, _)| at);
        let (Some(first), Some(last)) = (first, last) else { return band.clone() };
        (band.start + first).saturating_sub(1).max(band.start)..(band.start + last + 2).min(band.end)
    }

    /// Power over the floor by line of the band, summed over rows, and how many.
    fn spectrum(
        &self,
        open: &Open,
        band: &Range<usize>,
        (begin, end): (f64, f64),
        is_held: bool,
    ) -> (Vec<f64>, u64) {
        let last = (end + 1.0).floor() as u64;
        // Of a long burst, its first rows are in the sums only.
        let (mut spectrum, summed, first) = if is_held {
            (vec![0.0; band.len()], 0, (begin - 1.0).ceil().max(0.0) as u64)
        } else {
            let sums = self.sums[band.clone()].iter().zip(&open.sums_before[band.clone()]);
            let before = open.first_row.saturating_sub(BEFORE_ROWS);
            (sums.map(|(end, begin)| end - begin).collect(), self.sums_end - before, self.sums_end)
        };
        let mut rows = summed;
        for row in (first..=last).filter_map(|number| self.rows.get(number)) {
            rows += 1;
            spectrum.iter_mut().zip(&row[band.clone()]).for_each(|(sum, &power)| *sum += f64::from(power));
        }
        let floors = self.floor[band.clone()].iter();
        spectrum.iter_mut().zip(floors).for_each(|(sum, &floor)| *sum -= rows as f64 * f64::from(floor));
        (spectrum, rows)
    }
}

/// Mean of enough rows.
fn mean(powers: &[f64]) -> Option<f64> {
    (powers.len() >= LEVEL_ROWS_MIN).then(|| powers.iter().sum::<f64>() / powers.len() as f64)
}

/// The place at which a profile rises from nothing to a level: the step that fits best. `None` where it is there from the first row on.
fn rise(profile: &[f64], level: f64) -> Option<f64> {
    let (mut sum, mut least, mut first) = (0.0, 0.0, 0);
    for (row, power) in profile.iter().enumerate() {
        sum += power - level / 2.0;
        if sum < least {
            (least, first) = (sum, row + 1);
        }
    }
    half(profile, first, level)
}

/// The place between two rows, of which `first` is the first inside, at which a profile has half of a level.
fn half(profile: &[f64], first: usize, level: f64) -> Option<f64> {
    let outside = *profile.get(first.checked_sub(1)?)?;
    let inside = profile.get(first).copied().unwrap_or(level);
    let part =
        if inside > outside { ((level / 2.0 - outside) / (inside - outside)).clamp(0.0, 1.0) } else { 0.5 };
    Some(first as f64 - 1.0 + part)
}

/// The lines, and parts of one, that 99 % of a spectrum lies between, and its mean line.
fn occupied(spectrum: &[f64], first_line: usize) -> (f64, f64, f64) {
    let all = spectrum.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    // From outside in, because noise may make a line negative.
    let edge = |lines: &mut dyn Iterator<Item = &f64>| {
        let mut sum = 0.0;
        let mut place = 0.0;
        for &power in lines {
            if sum + power >= OUTSIDE * all {
                return place
                    + if power > 0.0 { ((OUTSIDE * all - sum) / power).clamp(0.0, 1.0) } else { 0.0 };
            }
            sum += power;
            place += 1.0;
        }
        place
    };
    let first = first_line as f64 - 0.5;
    let low = edge(&mut spectrum.iter());
    let high = spectrum.len() as f64 - edge(&mut spectrum.iter().rev());
    let high = high.max(low + 0.5);
    // Lines beyond have noise only, which weighs the more the farther away it is.
    let within = (low - 1.0).floor().max(0.0) as usize..((high + 1.0).ceil() as usize).min(spectrum.len());
    let (mut sum, mut weighted) = (0.0, 0.0);
    for line in within {
        sum += spectrum[line];
        weighted += spectrum[line] * (first_line + line) as f64;
    }
    let middle = first + (low + high) / 2.0;
    let centre = if sum > 0.0 { (weighted / sum).clamp(first + low, first + high) } else { middle };
    (first + low, first + high, centre)
}

/// Half of the 1 % of power that is outside of the band.
const OUTSIDE: f64 = 0.005;
/// Rows before its first cell in which a burst may begin: less than twice `JOIN_ROWS`, so that the quiet rows behind another burst
/// outweigh its last ones.
pub(super) const BACK_ROWS: u64 = 11;
/// Rows of which the level at its begin and at its end is a mean.
pub(super) const LEVEL_ROWS: u64 = 32;
/// With fewer rows, the highest is as good as the mean.
const LEVEL_ROWS_MIN: usize = 2;
const REFINEMENTS: usize = 2;
/// Minimum power of a line of a burst, in standard deviations of the noise, and of the estimate of the floor.
const NOISE_DEVIATIONS: f64 = 4.5;
const FLOOR_DEVIATION: f64 = 0.035;
/// Rows before its first cell that the sums of a burst begin with.
pub(super) const BEFORE_ROWS: u64 = 16;
