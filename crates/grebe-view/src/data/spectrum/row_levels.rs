//! The levels of a row of the waterfall: the highest of many spectra, or the mean of their power.

use std::ops::Range;

use crate::data::viewport::Detector;

/// Levels per line, of any number of spectra.
#[derive(Debug)]
pub(crate) struct RowLevels {
    detector: Detector,
    /// The highest levels in decibels, or sums of power.
    lines: Vec<f64>,
    spectra: u32,
}

impl RowLevels {
    pub(crate) fn new(detector: Detector, lines: usize) -> RowLevels {
        RowLevels { detector, lines: vec![nothing(detector); lines], spectra: 0 }
    }

    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Whether no spectrum is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.spectra == 0
    }

    /// Adds the levels of a spectrum, raised by `offset_db`.
    pub(crate) fn add(&mut self, levels: &[f32], offset_db: f32) {
        let lines = self.lines.iter_mut().zip(levels.iter().map(|level| level + offset_db));
        match self.detector {
            Detector::Highest => lines.for_each(|(line, level)| *line = line.max(f64::from(level))),
            Detector::Mean => lines.for_each(|(line, level)| *line += f64::from(power(level))),
        }
        self.spectra += 1;
    }

    /// Adds the spectra of another.
    pub(crate) fn join(&mut self, other: &RowLevels) {
        let detector = self.detector;
        let lines = self.lines.iter_mut().zip(&other.lines);
        lines.for_each(|(line, other)| *line = joined(detector, *line, *other));
        self.spectra += other.spectra;
    }

    /// The level of each of these cells in its spectra and those of `tail`, in decibels; `nothing` without a spectrum.
    pub(crate) fn dbfs(
        &self,
        tail: &RowLevels,
        cells: impl Iterator<Item = Range<usize>>,
        nothing: f32,
    ) -> impl Iterator<Item = f32> {
        let spectra = self.spectra + tail.spectra;
        cells.map(move |cell| {
            let count = cell.len();
            let all =
                self.lines[cell.clone()].iter().chain(tail.lines.get(cell).unwrap_or_default()).copied();
            match self.detector {
                _ if spectra == 0 => nothing,
                Detector::Highest => all.fold(f64::NEG_INFINITY, f64::max) as f32,
                Detector::Mean => {
                    let mean = all.sum::<f64>() / (f64::from(spectra) * count.max(1) as f64);
                    (10.0 * mean.log10()) as f32
                }
            }
        })
    }
}

fn nothing(detector: Detector) -> f64 {
    match detector {
        Detector::Highest => f64::NEG_INFINITY,
        Detector::Mean => 0.0,
    }
}

fn joined(detector: Detector, one: f64, other: f64) -> f64 {
    match detector {
        Detector::Highest => one.max(other),
        Detector::Mean => one + other,
    }
}

/// One level for several.
pub(crate) fn level_of(detector: Detector, levels: impl Iterator<Item = f32>) -> f32 {
    match detector {
        Detector::Highest => levels.fold(f32::NEG_INFINITY, f32::max),
        Detector::Mean => {
            let (sum, count) =
                levels.map(power).fold((0.0, 0.0f32), |(sum, count), power| (sum + power, count + 1.0));
            10.0 * (sum / count.max(1.0)).log10()
        }
    }
}

/// The power of a level. One that is not a number has none.
fn power(db: f32) -> f32 {
    let power = (db * (std::f32::consts::LOG2_10 / 10.0)).exp2();
    if power.is_finite() { power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_highest_level_or_the_mean_power_of_its_lines_and_spectra() {
        let cells = || [0..2, 2..4].into_iter();
        let of = |detector| {
            let (mut row, mut tail) = (RowLevels::new(detector, 4), RowLevels::new(detector, 4));
            let none: Vec<f32> = row.dbfs(&tail, cells(), f32::NAN).collect();
            assert!(none.iter().all(|level| level.is_nan()), "{none:?}");
            row.add(&[0.0, f32::NEG_INFINITY, -20.0, f32::NAN], 0.0);
            row.add(&[-10.0; 4], 10.0);
            tail.add(&[-20.0; 4], 0.0);
            let with_tail: Vec<f32> = row.dbfs(&tail, cells(), f32::NAN).collect();
            row.join(&tail);
            let joined: Vec<f32> = row.dbfs(&RowLevels::new(detector, 0), cells(), f32::NAN).collect();
            let same = joined.iter().zip(&with_tail).all(|(one, other)| (one - other).abs() < 1e-5);
            assert!(same, "{joined:?} {with_tail:?}");
            joined
        };
        assert_eq!(of(Detector::Highest), [0.0, 0.0]);
        let mean = of(Detector::Mean);
        let wanted = [1.51f32 / 3.0, 1.015 / 3.0].map(|power| 10.0 * power.log10());
        assert!(
            mean.iter().zip(wanted).all(|(level, wanted)| (level - wanted).abs() < 1e-3),
            "{mean:?} {wanted:?}"
        );
    }
}
