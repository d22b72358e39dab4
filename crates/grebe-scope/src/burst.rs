//! Bursts: energy over a tracked noise floor, in time and frequency.
//!
//! ```text
//!   samples -> rows of power, half over one another -> cells over their floor -> those that touch: a burst
//!                                                      a cell alone, or the sum of four rows
//! ```

mod floor;
mod group;
mod keying;
mod maker;
mod measure;
mod rows;
mod splatter;

use std::ops::Range;

use crate::error::{Error, Result};
use crate::simd::{lines, min_max};
use crate::spectrum::{PowerTransform, Window};
use floor::{Floor, Thresholds};
use group::{Group, JOIN_ROWS, Open};
use keying::is_keyed_with;
pub use maker::SampleSource;
use maker::{Made, RowMaker};
pub use measure::Burst;
use measure::{BACK_ROWS, BEFORE_ROWS, Grid, LEVEL_ROWS, Measured};
use rows::{HELD_ROWS, Rows};

/// Settings of a [`BurstDetector`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstSettings {
    /// Samples per transform, a power of two from 64 to 16384: shorter ones resolve times, longer ones frequencies.
    pub size: usize,
    /// Maximum false alarms per cell (a line of a transform) of Gaussian noise, 1e-15 to 0.01.
    pub false_alarms: f64,
    /// A signal that lasts longer, in samples, is a part of the noise floor from then on.
    pub longest_samples: u64,
    /// Threads for transforms, at least 1.
    pub threads: usize,
}

impl Default for BurstSettings {
    fn default() -> Self {
        Self { size: 1024, false_alarms: 1e-7, longest_samples: 1 << 30, threads: 1 }
    }
}

/// Finds bursts in one channel.
///
/// Rows are transforms with Hann's window, half over one another. Each line has a noise floor that follows the noise where no burst
/// is. A burst is a group of cells over it. One that rests for less than three transforms goes on, and none goes on after a gap. The
/// frequencies of shift keying, which begin and end together or take turns, are one burst. A signal that is there in the first rows is a part of the floor,
/// unless pieces without it were [learned](Self::learn).
///
/// ```
/// use grebe_scope::{BurstDetector, BurstSettings};
/// // A tone of 8,000 samples in faint noise.
/// let noise = |n: u64| {
///     let z = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
///     let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
///     let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
///     ((z ^ (z >> 31)) >> 40) as f32 / 16_777_216.0 - 0.5
/// };
/// let tone = |n: u64| if (200_000..208_000).contains(&n) { (n as f32 * 0.8).sin() * 0.1 } else { 0.0 };
/// let samples: Vec<f32> = (0..250_000).map(|n| noise(n) * 0.01 + tone(n)).collect();
/// let mut found = Vec::new();
/// let mut detector = BurstDetector::real(BurstSettings::default(), 1.0)?;
/// detector.append(0, &samples, &[], |burst| found.push(burst));
/// detector.end(|burst| found.push(burst));
/// assert!(found.len() == 1 && found[0].first_sample_index.abs_diff(200_000) < 1024, "{found:?}");
/// assert!((found[0].power_dbfs + 20.0).abs() < 0.2 && (found[0].centre - 0.8 / std::f64::consts::TAU).abs() < 1e-4);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug)]
pub struct BurstDetector {
    maker: RowMaker,
    longest_rows: u64,
    thresholds: Thresholds,
    floor: Floor,
    rows: Rows,
    /// The next row to look at: those after it are needed to look at it.
    next_look: u64,
    /// Sums of the lines of all rows up to `BEFORE_ROWS` before it.
    sums: Vec<f64>,
    /// By line: the sum of four rows.
    four: Vec<f32>,
    cells: Vec<bool>,
    group: Group,
    grid: Grid,
}

impl BurstDetector {
    /// Detector for complex samples whose full scale is `full_scale`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a size or a rate of false alarms that is out of range.
    pub fn complex(settings: BurstSettings, full_scale: f64) -> Result<Self> {
        Self::new(settings, full_scale, true)
    }

    /// Detector for real samples.
    ///
    /// # Errors
    /// As [`complex`](Self::complex).
    pub fn real(settings: BurstSettings, full_scale: f64) -> Result<Self> {
        Self::new(settings, full_scale, false)
    }

    fn new(settings: BurstSettings, full_scale: f64, is_complex: bool) -> Result<Self> {
        let BurstSettings { size, false_alarms, longest_samples, threads } = settings;
        if !(64..=1 << 14).contains(&size) {
            let must = "a power of two from 64 to 16384";
            return Err(Error::Setting { what: "transform size", got: size.to_string(), must });
        }
        if !(1e-15..=0.01).contains(&false_alarms) {
            let (what, got) = ("rate of false alarms", false_alarms.to_string());
            return Err(Error::Setting { what, got, must: "1e-15 to 0.01" });
        }
        let make = if is_complex { PowerTransform::complex } else { PowerTransform::real };
        let transform = || {
            let mut transform = make(size, Window::Hann)?;
            transform.set_full_scale(full_scale);
            Ok(transform)
        };
        let maker =
            RowMaker::new((0..threads.max(1)).map(|_| transform()).collect::<Result<_>>()?, is_complex);
        let (lines, noise_lines) = (maker.transform().lines(), maker.transform().noise_bandwidth_lines());
        Ok(Self {
            longest_rows: (longest_samples / (size as u64 / 2)).max(4 * HELD_ROWS as u64),
            thresholds: Thresholds::new(false_alarms),
            floor: Floor::new(lines),
            rows: Rows::default(),
            next_look: 0,
            sums: vec![0.0; lines],
            four: vec![0.0; lines],
            cells: vec![false; lines],
            group: Group::new(lines),
            grid: Grid { size, first_index: 0, end_index: 0, is_complex, noise_lines },
            maker,
        })
    }

    /// Sets the sample that stands for nothing, 0 by default.
    pub fn set_zero(&mut self, zero: f32) {
        self.maker.zero = zero;
    }

    /// Pieces to [learn](Self::learn) from a signal of `samples` samples, spread over it.
    pub fn pieces(&self, samples: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let length = samples.min((LEARN_ROWS + 1) * self.grid.size as u64 / 2);
        let pieces = (samples / length.max(1)).min(LEARN_PIECES);
        let last = u128::from(samples - length);
        let first = move |piece: u64| (last * u128::from(piece) / u128::from(pieces.max(2) - 1)) as u64;
        (0..pieces).map(move |piece| first(piece)..first(piece) + length)
    }

    /// Learns the noise floor from a piece of the signal, before the first samples. At each frequency, a quarter of all pieces must be
    /// without bursts.
    pub fn learn(&mut self, first: &[f32], q: &[f32]) {
        self.learn_from(&(first, q));
    }

    /// As [`learn`](Self::learn), of samples in any form.
    pub fn learn_from(&mut self, samples: &impl SampleSource) {
        let rows = self.maker.alone(samples, LEARN_ROWS as usize);
        self.floor.learn(rows.iter().map(Vec::as_slice));
    }

    /// Takes the next samples, real ones without `q`, and tells each burst that has ended. No burst goes on after a gap in the index.
    pub fn append(&mut self, first_sample_index: u64, first: &[f32], q: &[f32], found: impl FnMut(Burst)) {
        self.append_from(first_sample_index, &(first, q), found);
    }

    /// As [`append`](Self::append), of samples in any form: the threads that transform them read them, too.
    pub fn append_from(
        &mut self,
        first_sample_index: u64,
        samples: &impl SampleSource,
        mut found: impl FnMut(Burst),
    ) {
        if first_sample_index != self.grid.end_index {
            self.end(&mut found);
            (self.grid.first_index, self.grid.end_index) = (first_sample_index, first_sample_index);
        }
        self.grid.end_index += samples.len_samples() as u64;
        let mut maker = std::mem::take(&mut self.maker);
        maker.append(samples, |Made { power, is_finite }| {
            if !*is_finite {
                power.copy_from_slice(&self.floor.levels);
            }
            // The ring's oldest row lends its memory.
            let oldest = self.rows.push(std::mem::take(power));
            *power = oldest.unwrap_or_else(|| vec![0.0; self.cells.len()]);
            self.look_at_ready(&mut found);
        });
        self.maker = maker;
    }

    /// Ends all bursts: no samples follow.
    pub fn end(&mut self, mut found: impl FnMut(Burst)) {
        if !self.floor.is_known() {
            self.floor.begin(&self.rows);
        }
        while self.floor.is_known() && self.next_look < self.rows.next() {
            self.look(&mut found);
        }
        while let Some(open) = self.group.open.pop() {
            if !self.join_keyed(&open) {
                self.measured().measure(&open, true).into_iter().for_each(&mut found);
            }
        }
        self.maker.clear();
        self.rows.clear();
        self.group.clear();
        self.next_look = 0;
        self.grid.first_index = self.grid.end_index;
    }

    /// Looks at the rows that those after them are known of.
    fn look_at_ready(&mut self, found: &mut impl FnMut(Burst)) {
        if !self.floor.is_known() && self.rows.next() >= FIRST_ROWS {
            self.floor.begin(&self.rows);
        }
        while self.floor.is_known() && self.next_look + LOOK_AHEAD_ROWS < self.rows.next() {
            self.look(found);
        }
    }

    /// Looks at the next row.
    fn look(&mut self, found: &mut impl FnMut(Burst)) {
        let row = self.next_look;
        if self.mark(row) {
            self.group.join(&self.cells, row, &self.sums);
        }
        if let Some(settled) = row.checked_sub(BEFORE_ROWS).and_then(|row| self.rows.get(row)) {
            lines::add(settled, &mut self.sums);
            let count = self.cells.len();
            self.floor.follow(settled, self.group.open.iter().map(|open| open.band(count)));
        }
        self.next_look += 1;
        let mut at = 0;
        while at < self.group.open.len() {
            if self.goes_on(at, row) {
                at += 1;
                continue;
            }
            let open = self.group.open.swap_remove(at);
            if self.join_keyed(&open) {
                continue;
            }
            self.measured().measure(&open, false).into_iter().for_each(&mut *found);
            if row - open.first_row > self.longest_rows {
                self.floor.accept(&self.rows, open.band(self.cells.len()));
            }
        }
    }

    /// Marks the cells of a row that are over the floor; whether there are any.
    fn mark(&mut self, row: u64) -> bool {
        let Some(own) = self.rows.get(row) else { return false };
        // Transforms have rounding noise of their own.
        let least = min_max(own).1.max(0.0) * ROUNDING;
        let before = self.rows.get(row.saturating_sub(2)).unwrap_or(own);
        let after = self.rows.get(row + 2).unwrap_or(own);
        if let Some(cleaned) =
            splatter::clean([before, own, after], &self.floor.levels, least, self.grid.is_complex)
            && let Some(own) = self.rows.get_mut(row)
        {
            own.copy_from_slice(&cleaned);
        }
        let rows = [0, 1, 2, 3].map(|back| row.checked_sub(back).and_then(|row| self.rows.get(row)));
        match rows {
            [Some(own), Some(a), Some(b), Some(c)] => lines::sum([own, a, b, c], &mut self.four),
            _ => self.four.fill(0.0),
        }
        let Thresholds { one, four } = self.thresholds;
        let own = rows[0].unwrap_or_default();
        let is_any = lines::mark(own, &self.four, &self.floor.levels, least, [one, four], &mut self.cells);
        if is_any {
            self.extend(least);
        }
        if !self.grid.is_complex {
            // At 0 Hz and at half the rate, the power of real noise is not exponential.
            let last = self.cells.len() - 1;
            [0, 1, last].into_iter().for_each(|line| self.cells[line] = false);
        }
        is_any
    }

    /// Marks the lines next to cells that have power on average.
    fn extend(&mut self, least: f32) {
        let lines = self.cells.len();
        let is_loud = |line: usize| {
            let near = line.saturating_sub(NEAR_LINES)..(line + NEAR_LINES + 1).min(lines);
            let floor: f32 = self.floor.levels[near.clone()].iter().map(|floor| floor.max(least)).sum();
            self.four[near].iter().sum::<f32>() > LOUD * 4.0 * floor
        };
        for line in 1..lines {
            self.cells[line] |= self.cells[line - 1] && is_loud(line);
        }
        for line in (0..lines - 1).rev() {
            self.cells[line] |= self.cells[line + 1] && is_loud(line);
        }
    }

    /// Whether an open burst goes on after a row: it has had cells, or its band has had power.
    fn goes_on(&mut self, at: usize, row: u64) -> bool {
        let begin = {
            let open = &self.group.open[at];
            let is_old = open.begin.is_none() && row == open.first_row + LEVEL_ROWS + BACK_ROWS;
            is_old.then(|| self.measured().begin(open))
        };
        let open = &mut self.group.open[at];
        open.begin = begin.or(open.begin);
        if row - open.first_row > self.longest_rows {
            return false;
        }
        if row <= open.last_row + JOIN_ROWS {
            return true;
        }
        let band = open.band(self.cells.len());
        let profile = self.rows.profile(row - JOIN_ROWS..=row, &band, &self.floor.levels);
        let squares: f32 = self.floor.levels[band].iter().map(|floor| floor * floor).sum();
        // Neighbouring lines of noise correlate, by 4/9 in power and next to them by 1/36.
        let deviation = (f64::from(squares) * 1.94 * profile.len() as f64).sqrt();
        let is_alive = profile.iter().sum::<f64>() > ALIVE_DEVIATIONS * deviation;
        if is_alive {
            open.last_row = row - JOIN_ROWS / 2;
        }
        is_alive
    }

    /// Whether a burst that has ended is of the shift keying of an open one, which now has its lines.
    fn join_keyed(&mut self, ended: &Open) -> bool {
        let (rows, floor) = (&self.rows, &self.floor.levels);
        self.group.join_keyed(ended, |ended, open| is_keyed_with(ended, open, rows, floor))
    }

    fn measured(&self) -> Measured<'_> {
        Measured {
            rows: &self.rows,
            floor: &self.floor.levels,
            sums: &self.sums,
            sums_end: self.next_look.saturating_sub(BEFORE_ROWS),
            grid: self.grid,
            end: self.rows.next(),
        }
    }
}

/// Rows that the first floor is of.
const FIRST_ROWS: u64 = HELD_ROWS as u64;
/// Rows after one that are needed to look at it.
const LOOK_AHEAD_ROWS: u64 = 2;
/// Rows of a piece that the floor is learned from: their median is right within a tenth.
const LEARN_ROWS: u64 = 64;
const LEARN_PIECES: u64 = 16;
/// Standard deviations of the noise over which a band has power, for a burst that was found.
const ALIVE_DEVIATIONS: f64 = 2.5;
/// Lines to either side whose mean over four rows tells whether a line belongs to the cells beside it.
const NEAR_LINES: usize = 2;
/// Floors of that mean: four deviations of noise above its own.
const LOUD: f32 = 2.2;
/// Rounding noise of a transform in single precision, per line, of its strongest line.
const ROUNDING: f32 = 1e-12;

#[cfg(test)]
mod tests;
