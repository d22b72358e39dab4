//! Cells of a waterfall: one or several lines of its transforms each, over the visible band.
//!
//! ```text
//!   lines   0 ... |<------------ kept ------------>| ...     of a row; moves within them need no new transform
//!   cells         .....|--|--|--|--|--|--|--|...........     of `joined` lines; line n has the middle n / size of the rate
//! ```

use std::ops::Range;

use crate::data::spectrum::row_levels::level_of;
use crate::data::viewport::Detector;

/// The visible cells of transforms of one length.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    /// Samples per transform.
    pub(crate) size: usize,
    /// The lines that rows keep.
    pub(crate) kept: Range<usize>,
    pub(crate) width: usize,
    joined: usize,
    /// The first line of the first cell.
    first: usize,
    is_two_sided: bool,
}

impl Cells {
    /// Cells for a picture of `columns`. The transforms have `size` samples, or fewer if the visible band does not need them.
    pub(crate) fn of(is_two_sided: bool, size: usize, visible: Option<(f64, f64)>, columns: usize) -> Cells {
        let size = row_size(is_two_sided, size, visible);
        let lines = if is_two_sided { size } else { size / 2 + 1 };
        let cells = Cells::new(is_two_sided, (size, lines), 1, visible, columns);
        let end = cells.first + cells.width * cells.joined;
        let kept = match lines <= KEPT_LINES {
            true => 0..lines,
            false => cells.first / KEPT_STEP * KEPT_STEP..end.next_multiple_of(KEPT_STEP).min(lines),
        };
        Cells { kept, ..cells }
    }

    /// Cells for rows of a spectral summary, which have `bins` of equal width.
    pub(crate) fn of_bins(
        is_two_sided: bool,
        bins: usize,
        visible: Option<(f64, f64)>,
        columns: usize,
    ) -> Cells {
        let lines = summary_lines(is_two_sided);
        Cells::new(is_two_sided, (SUMMARY_SIZE, lines), lines / bins.clamp(1, lines), visible, columns)
    }

    /// Cells of a multiple of `unit` lines.
    fn new(
        is_two_sided: bool,
        (size, lines): (usize, usize),
        unit: usize,
        visible: Option<(f64, f64)>,
        columns: usize,
    ) -> Cells {
        let (low, high) = visible_band(is_two_sided, visible);
        let place = |cycles: f64| (cycles - band(is_two_sided).0) * size as f64;
        let first = ((place(low) + 0.5) as usize).min(lines - 1);
        let end = ((place(high) + 0.5).ceil() as usize).clamp(first + 1, lines);
        let units = (end - first).div_ceil(unit);
        let joined = unit * (units / columns.clamp(COLUMNS_MIN, COLUMNS_MAX)).max(1);
        // Multiples, so that a move of the band changes no cell.
        let first = first / joined * joined;
        Cells { size, kept: 0..lines, width: (end - first).div_ceil(joined), joined, first, is_two_sided }
    }

    /// Their lowest and highest frequency, as parts of the rate.
    pub(crate) fn band(&self) -> (f64, f64) {
        let at = |line: usize| (line as f64 - 0.5) / self.size as f64 + band(self.is_two_sided).0;
        (at(self.first), at(self.first + self.width * self.joined))
    }

    /// The kept lines of each cell, counted from the first kept one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Cells { kept, width, joined, first, .. } = self.clone();
        let at = move |line: usize| line.clamp(kept.start, kept.end) - kept.start;
        (0..width).map(move |cell| at(first + cell * joined)..at(first + (cell + 1) * joined))
    }

    /// The level of each cell in a row of a spectral summary: that of all bins that it touches.
    pub(crate) fn of_row<'a>(
        &self,
        detector: Detector,
        bins: &'a [f32],
    ) -> impl Iterator<Item = f32> + use<'a> {
        let lines = summary_lines(self.is_two_sided);
        let per_line = SUMMARY_SIZE as f64 / self.size as f64;
        let Cells { width, joined, first, .. } = *self;
        // In bins, from the lower edge of the first one.
        let edge =
            move |line: usize| ((line as f64 - 0.5) * per_line + 0.5) * bins.len() as f64 / lines as f64;
        (0..width).map(move |cell| {
            let (from, to) = (edge(first + cell * joined), edge(first + (cell + 1) * joined));
            let from = ((from + ROUNDING).max(0.0) as usize).min(bins.len() - 1);
            let to = ((to - ROUNDING).ceil() as usize).clamp(from + 1, bins.len());
            match &bins[from..to] {
                [one] => *one,
                several => level_of(detector, several.iter().copied()),
            }
        })
    }
}

/// Frequency limits of a spectrum, as parts of the rate.
pub(crate) fn band(is_two_sided: bool) -> (f64, f64) {
    if is_two_sided { (-0.5, 0.5) } else { (0.0, 0.5) }
}

/// Samples per transform of a waterfall's rows: `size`, unless the visible band has enough lines with fewer.
pub(crate) fn row_size(is_two_sided: bool, size: usize, visible: Option<(f64, f64)>) -> usize {
    let (low, high) = visible_band(is_two_sided, visible);
    let (lowest, highest) = band(is_two_sided);
    let zoomed = ROW_SIZE_MAX as f64 * (highest - lowest) / (high - low);
    size.min((zoomed.min(size as f64).ceil() as usize).next_power_of_two())
}

/// The visible band within the limits, never empty.
fn visible_band(is_two_sided: bool, visible: Option<(f64, f64)>) -> (f64, f64) {
    let (lowest, highest) = band(is_two_sided);
    let inside = |cycles: f64| cycles.clamp(lowest, highest);
    let (low, high) = visible.map_or((lowest, highest), |(low, high)| (inside(low), inside(high)));
    if high - low >= BAND_MIN { (low, high) } else { (lowest, highest) }
}

/// Lines of a transform of a summary.
fn summary_lines(is_two_sided: bool) -> usize {
    if is_two_sided { SUMMARY_SIZE } else { SUMMARY_SIZE / 2 }
}

/// Samples per transform while the whole band is visible: it has a line or more per pixel.
pub(crate) const ROW_SIZE_MAX: usize = 4096;
/// Samples per transform of a spectral summary.
pub(crate) const SUMMARY_SIZE: usize = 1024;
/// Rows keep all lines of transforms with at most this many, and multiples of `KEPT_STEP` of others.
const KEPT_LINES: usize = 2 * ROW_SIZE_MAX;
const KEPT_STEP: usize = ROW_SIZE_MAX;
/// Limits of the number of cells: there are up to twice as many as columns, if each is one line.
const COLUMNS_MIN: usize = 256;
const COLUMNS_MAX: usize = 2048;
const BAND_MIN: f64 = 1e-9;
/// Edges of bins and cells that differ by less are the same.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_lines_around_their_frequencies_and_several_of_them_if_there_are_many() {
        // All of 4096 complex lines in 500 columns: eight a cell.
        let whole = Cells::of(true, 8192, None, 500);
        assert_eq!((whole.size, whole.width, whole.kept.clone()), (4096, 512, 0..4096));
        assert_eq!(whole.lines().nth(3), Some(24..32));
        assert_eq!(whole.band().0, -0.5 - 0.5 / 4096.0);
        // A real transform has one line more than half its size.
        let real = Cells::of(false, 64, None, 500);
        assert_eq!((real.width, real.lines().last()), (33, Some(32..33)));
        // A hundredth of the band: the transform as it was set, and one line a cell.
        let near = Cells::of(true, 1 << 18, Some((0.1, 0.11)), 1000);
        assert_eq!(near.size, 1 << 18);
        assert_eq!((near.joined, near.width), (2, 1312));
        let (low, high) = near.band();
        assert!(low <= 0.1 && high >= 0.11 && high - low < 0.01 + 4.0 / near.size as f64, "{low} {high}");
        assert!(
            near.kept.len() <= 3 * KEPT_STEP && near.kept.start.is_multiple_of(KEPT_STEP),
            "{:?}",
            near.kept
        );
        // A move within the kept lines.
        let moved = Cells::of(true, 1 << 18, Some((0.1005, 0.1105)), 1000);
        assert_eq!(moved.kept, near.kept);
        let middle = Cells::of(true, 8192, Some((0.1, 0.11)), 1000);
        assert_eq!((middle.size, middle.joined), (8192, 1));
        assert!((82..=84).contains(&middle.width), "{}", middle.width);
    }

    #[test]
    fn nonsense_is_the_whole_band() {
        for visible in [(0.3, 0.3), (0.4, 0.1), (f64::NAN, 0.2), (2.0, 3.0)] {
            assert_eq!(
                Cells::of(true, 1024, Some(visible), 1),
                Cells::of(true, 1024, None, 1),
                "{visible:?}"
            );
        }
    }

    #[test]
    fn every_bin_of_a_summary_is_in_the_cells_that_it_touches() {
        let mut bins = vec![-90.0f32; 256];
        bins[200] = -10.0;
        bins[3] = f32::NAN;
        let loud = |cells: &Cells| -> Vec<usize> {
            let levels = cells.of_row(Detector::Highest, &bins).enumerate();
            levels.filter(|(_, level)| *level > -20.0).map(|(cell, _)| cell).collect()
        };
        let own = Cells::of_bins(true, 256, None, 1000);
        assert_eq!((own.width, loud(&own)), (256, vec![200]));
        let zoomed = Cells::of_bins(true, 256, Some((0.25, 0.5)), 1000);
        assert_eq!((zoomed.width, loud(&zoomed)), (64, vec![8]));
        // Lines of other transforms: bin 200 has the lines 800 to 803 of 1024.
        let fine = Cells::of(true, 4096, Some((0.25, 0.5)), 1000);
        let shown = loud(&fine);
        assert_eq!((shown[0], shown.len()), (3198 - 3072, 17), "{shown:?}");
        // A row in a gap.
        assert!(fine.of_row(Detector::Highest, &[f32::NAN]).all(f32::is_nan));
    }
}
