//! The levels of a row of the waterfall: the highest of many spectra, or the mean of their power.

use crate::data::viewport::Detector;

/// Levels per cell, of any number of spectra.
#[derive(Debug)]
pub(crate) struct RowLevels {
    detector: Detector,
    /// The highest levels in decibels, or sums of power.
    cells: Vec<f64>,
    spectra: u32,
}

impl RowLevels {
    pub(crate) fn new(detector: Detector, width: usize) -> RowLevels {
        RowLevels { detector, cells: vec![nothing(detector); width], spectra: 0 }
    }

    pub(crate) fn width(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn detector(&self) -> Detector {
        self.detector
    }

    /// Adds the levels of a spectrum, raised by `offset_db`. A cell has one line or more.
    pub(crate) fn add(&mut self, lines: &[f32], offset_db: f32) {
        let count = self.cells.len();
        for (x, cell) in self.cells.iter_mut().enumerate() {
            let (from, to) = (x * lines.len() / count, (x + 1) * lines.len() / count);
            let own = lines[from..to.max(from + 1)].iter().map(|level| level + offset_db);
            match self.detector {
                Detector::Highest => *cell = cell.max(f64::from(own.fold(f32::NEG_INFINITY, f32::max))),
                Detector::Mean => *cell += f64::from(mean_power(own)),
            }
        }
        self.spectra += 1;
    }

    /// Adds the spectra of another.
    pub(crate) fn join(&mut self, other: &RowLevels) {
        let detector = self.detector;
        self.cells
            .iter_mut()
            .zip(&other.cells)
            .for_each(|(cell, other)| *cell = joined(detector, *cell, *other));
        self.spectra += other.spectra;
    }

    /// The levels of its spectra and those of `tail`, in decibels; `nothing` without a spectrum.
    pub(crate) fn dbfs<'a>(&'a self, tail: &'a RowLevels, nothing: f32) -> impl Iterator<Item = f32> + 'a {
        let (detector, spectra) = (self.detector, self.spectra + tail.spectra);
        let tail = tail.cells.iter().copied().chain(std::iter::repeat(self::nothing(detector)));
        self.cells.iter().zip(tail).map(move |(cell, tail)| match (detector, joined(detector, *cell, tail)) {
            _ if spectra == 0 => nothing,
            (Detector::Highest, level) => level as f32,
            (Detector::Mean, power) => (10.0 * (power / f64::from(spectra)).log10()) as f32,
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
        Detector::Mean => 10.0 * mean_power(levels).log10(),
    }
}

/// A level that is not a number counts as no power.
fn mean_power(levels: impl Iterator<Item = f32>) -> f32 {
    let powers = levels.map(power).map(|power| if power.is_finite() { power } else { 0.0 });
    let (sum, count) = powers.fold((0.0, 0.0f32), |(sum, count), power| (sum + power, count + 1.0));
    sum / count.max(1.0)
}

fn power(db: f32) -> f32 {
    (db * (std::f32::consts::LOG2_10 / 10.0)).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_highest_level_or_the_mean_power_of_its_lines_and_spectra() {
        let of = |detector| {
            let (mut row, mut tail) = (RowLevels::new(detector, 2), RowLevels::new(detector, 2));
            let none: Vec<f32> = row.dbfs(&tail, f32::NAN).collect();
            assert!(none.iter().all(|level| level.is_nan()), "{none:?}");
            row.add(&[0.0, f32::NEG_INFINITY, -20.0, f32::NAN], 0.0);
            row.add(&[-10.0; 4], 10.0);
            tail.add(&[-20.0; 4], 0.0);
            let with_tail: Vec<f32> = row.dbfs(&tail, f32::NAN).collect();
            row.join(&tail);
            let joined: Vec<f32> = row.dbfs(&RowLevels::new(detector, 0), f32::NAN).collect();
            assert_eq!(joined, with_tail);
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
