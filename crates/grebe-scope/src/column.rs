//! One column of a picture, and the grid that ties columns to absolute sample indices.

use std::ops::Range;

use crate::value::Value;

/// Coverage of a column's span by samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coverage {
    /// The span is before the oldest or after the newest sample: nothing to draw.
    #[default]
    Outside,
    /// All samples of the span are present.
    Complete,
    /// The span extends beyond the oldest or the newest sample; all samples between are present.
    Partial,
    /// Samples of the span were lost. The column is empty if all were lost.
    Gap,
}

/// Smallest and largest sample of a column's span.
///
/// Without a sample, `min` is [`HIGHEST`](crate::Number::HIGHEST) and `max` is [`LOWEST`](crate::Number::LOWEST).
/// So merging needs no special case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Column<V: Value = i16> {
    /// Smallest sample, as it came: raw counts, or the values of a stream of `f32`.
    pub min: V,
    /// Largest sample.
    pub max: V,
    /// Coverage of the span.
    pub coverage: Coverage,
}

impl<V: Value> Column<V> {
    /// A column without samples outside the stream.
    pub const OUTSIDE: Column<V> = Column { min: V::HIGHEST, max: V::LOWEST, coverage: Coverage::Outside };

    /// Whether the column holds no sample.
    pub fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// Whether samples of the span were lost.
    pub fn has_gap(&self) -> bool {
        self.coverage == Coverage::Gap
    }

    /// Whether every sample of the span is in `min` and `max`.
    pub fn is_complete(&self) -> bool {
        self.coverage == Coverage::Complete
    }

    /// The range to draw so that the trace has no holes between neighbours: `min..=max` stretched until it
    /// touches `previous`. Never across a gap. `None` where there is nothing to draw.
    pub fn joined_to(&self, previous: &Column<V>) -> Option<(V, V)> {
        if self.is_empty() {
            return None;
        }
        if previous.is_empty() || previous.has_gap() || self.has_gap() {
            return Some((self.min, self.max));
        }
        let min = if previous.max < self.min { previous.max } else { self.min };
        let max = if previous.min > self.max { previous.min } else { self.max };
        Some((min, max))
    }
}

impl<V: Value> Default for Column<V> {
    fn default() -> Self {
        Column::OUTSIDE
    }
}

/// Converts to `f32`, which has room for every value.
impl From<Column> for Column<f32> {
    fn from(column: Column) -> Column<f32> {
        let coverage = column.coverage;
        if column.is_empty() {
            return Column { coverage, ..Column::OUTSIDE };
        }
        Column { min: column.min.into(), max: column.max.into(), coverage }
    }
}

/// Which samples each column covers, fixed to the absolute sample index.
///
/// Column `k` begins at `floor(k * samples_per_column)`, rounded down to a power of two that is at most a
/// sixteenth of a column (1 below 32 samples a column). So:
///
/// - a column's span depends on its number alone: scrolling moves columns and never changes them;
/// - columns tile the stream, so each sample is in exactly one;
/// - spans end on node borders of the [`Pyramid`](crate::Pyramid), so that a column also stays what it was
///   while fine levels age.
///
/// Below one sample per column, each column covers the one sample it lies in.
///
/// ```
/// use grebe_scope::ColumnGrid;
/// let grid = ColumnGrid::new(2.5);
/// assert_eq!(grid.span(0), 0..2);
/// assert_eq!(grid.span(1), 2..5);
/// assert_eq!(grid.column_at(4), 1);
/// assert_eq!(ColumnGrid::new(0.25).span(7), 1..2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnGrid {
    /// Samples per column, 32 fractional bits: whole-number arithmetic, the same on every machine.
    step: u128,
    /// Spans begin on multiples of this power of two.
    pub(crate) quantum: u64,
}

impl Default for ColumnGrid {
    /// One sample per column.
    fn default() -> ColumnGrid {
        ColumnGrid::new(1.0)
    }
}

impl ColumnGrid {
    /// A grid of `samples_per_column`, clamped to 2^-16 to 2^48; not-a-number counts as 1.
    pub fn new(samples_per_column: f64) -> ColumnGrid {
        let wanted = if samples_per_column.is_nan() { 1.0 } else { samples_per_column };
        let wanted = wanted.clamp(SAMPLES_PER_COLUMN_MIN, SAMPLES_PER_COLUMN_MAX);
        let step = (wanted * ONE as f64).round() as u128;
        let whole = (step >> FRACTION_BITS) as u64;
        let quantum = if whole < 32 { 1 } else { 1 << (whole / 16).ilog2() };
        ColumnGrid { step, quantum }
    }

    /// Samples per column, as used.
    pub fn samples_per_column(&self) -> f64 {
        self.step as f64 / ONE as f64
    }

    /// Spans begin on multiples of this power of two, at most a sixteenth of a column.
    pub fn quantum_samples(&self) -> u64 {
        self.quantum
    }

    /// The absolute indices of the samples that `column` covers; never empty.
    #[inline]
    pub fn span(&self, column: u64) -> Range<u64> {
        let start = self.border(column);
        start..self.border(column.saturating_add(1)).max(start + 1)
    }

    /// The first column whose span holds the sample at `index`.
    pub fn column_at(&self, index: u64) -> u64 {
        let scaled = (index as u128) << FRACTION_BITS;
        if self.step < ONE {
            return u64::try_from(scaled.div_ceil(self.step)).unwrap_or(u64::MAX);
        }
        let column = (scaled / self.step) as u64;
        // Rounding borders down can put at most the next one at or before `index`.
        let after = column.saturating_add(1);
        if self.border(after) <= index { after } else { column }
    }

    /// Where the sample at `index` lies, in columns (the left edge of the sample).
    pub fn position(&self, index: f64) -> f64 {
        index / self.samples_per_column()
    }

    #[inline]
    fn border(&self, column: u64) -> u64 {
        let exact = (column as u128).saturating_mul(self.step) >> FRACTION_BITS;
        u64::try_from(exact).unwrap_or(u64::MAX - 1).min(u64::MAX - 1) & !(self.quantum - 1)
    }
}

const SAMPLES_PER_COLUMN_MIN: f64 = 1.0 / 65536.0;
const SAMPLES_PER_COLUMN_MAX: f64 = (1u64 << 48) as f64;
const FRACTION_BITS: u32 = 32;
const ONE: u128 = 1 << FRACTION_BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn columns_tile_the_stream(spc in spc(), index in 0u64..1 << 46) {
            let grid = ColumnGrid::new(spc);
            let column = grid.column_at(index);
            let (here, after) = (grid.span(column), grid.span(column + 1));
            prop_assert!(here.start < here.end);
            if spc >= 1.0 {
                prop_assert_eq!(here.end, after.start);
                prop_assert!((here.end - here.start) as f64 <= spc * 1.07 + 1.0);
            } else {
                prop_assert_eq!(here.end - here.start, 1);
                prop_assert!(after.start - here.start <= 1);
            }
        }

        #[test]
        fn column_at_is_the_first_that_holds_the_sample(spc in spc(), index in 0u64..1 << 46) {
            let grid = ColumnGrid::new(spc);
            let column = grid.column_at(index);
            prop_assert!(grid.span(column).contains(&index));
            if column > 0 {
                prop_assert!(!grid.span(column - 1).contains(&index));
            }
        }
    }

    fn spc() -> impl Strategy<Value = f64> {
        prop_oneof![
            (-8.0f64..0.0).prop_map(f64::exp2),
            (0.0f64..40.0).prop_map(f64::exp2),
            (1u32..100_000).prop_map(f64::from)
        ]
    }

    #[test]
    fn wild_settings_stay_in_range() {
        for wild in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            let grid = ColumnGrid::new(wild);
            let span = grid.span(u64::MAX);
            assert!(span.start < span.end);
            grid.column_at(u64::MAX);
        }
    }

    #[test]
    fn an_empty_column_is_empty_in_either_arithmetic() {
        let lost = Column { coverage: Coverage::Gap, ..Column::<i16>::OUTSIDE };
        assert_eq!(Column::<f32>::from(lost), Column { coverage: Coverage::Gap, ..Column::OUTSIDE });
        let full = Column { min: i16::MIN, max: i16::MAX, coverage: Coverage::Complete };
        let full = Column::<f32>::from(full);
        assert_eq!((full.min, full.max, full.coverage), (-32768.0, 32767.0, Coverage::Complete));
    }

    #[test]
    fn neighbours_are_joined_but_never_across_a_gap() {
        let at = |min, max, coverage| Column { min, max, coverage };
        let low = at(0, 5, Coverage::Complete);
        let high = at(9, 12, Coverage::Complete);
        assert_eq!(high.joined_to(&low), Some((5, 12)));
        assert_eq!(low.joined_to(&high), Some((0, 9)));
        assert_eq!(high.joined_to(&at(0, 5, Coverage::Gap)), Some((9, 12)));
        assert_eq!(Column::OUTSIDE.joined_to(&low), None);
    }
}
