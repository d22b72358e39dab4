//! Compresses the columns of a lane without loss.
//!
//! A column of a live picture lies on a grid tied to the sample index. Columns that the previous picture had are not
//! sent again. Each other column is sent as a difference: from its neighbour, or from the previous column in the same
//! place, whichever is shorter.

use grebe_scope::{Column, ColumnGrid, Coverage};

use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::residuals::{BitReader, BitWriter, Context, unsigned};

/// Columns of one lane, with their place on the grid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub(crate) grid: ColumnGrid,
    pub(crate) first_column: i64,
    pub(crate) columns: Vec<Column<f32>>,
    /// Whether all values are integers, and encoded as integers.
    pub(crate) is_whole: bool,
}

impl Placed {
    pub(crate) fn new(grid: ColumnGrid, first_column: i64, columns: Vec<Column<f32>>) -> Placed {
        let is_whole = columns.iter().all(|it| is_blank(it) || (is_integer(it.min) && is_integer(it.max)));
        Placed { grid, first_column, columns, is_whole }
    }

    /// Writes the columns as differences from the previous picture.
    pub(crate) fn write(&self, base: Option<&Placed>, out: &mut Writer) {
        let kinds: Vec<u8> = (0..self.columns.len()).map(|place| self.kind(place, base)).collect();
        for run in kinds.chunk_by(|a, b| a == b) {
            out.varint((run.len() as u64) << 4 | u64::from(run[0]));
        }
        let mode = [Mode::Left, Mode::LeftTogether, Mode::Before];
        let mode = mode.into_iter().filter(|mode| *mode != Mode::Before || base.is_some());
        let costs = mode.map(|mode| {
            let (mut low, mut high, mut bits) = (Context::default(), Context::default(), 0);
            self.walk(&kinds, mode, base, |min, max| {
                bits += low.cost(unsigned(min)) + high.cost(unsigned(max))
            });
            (bits, mode)
        });
        let (_, mode) = costs.min_by_key(|(bits, _)| *bits).unwrap_or((0, Mode::Left));
        out.u8(mode as u8);
        let (mut low, mut high, mut bits) = (Context::default(), Context::default(), BitWriter::default());
        self.walk(&kinds, mode, base, |min, max| {
            low.write_signed(min, &mut bits);
            high.write_signed(max, &mut bits);
        });
        out.counted(&bits.finish());
    }

    /// Reads `count` columns from `first_column` on.
    pub(crate) fn read(
        (grid, first_column, count): (ColumnGrid, i64, usize),
        is_whole: bool,
        base: Option<&Placed>,
        from: &mut Reader<'_>,
    ) -> Result<Placed, Malformed> {
        let mut kinds = Vec::with_capacity(count);
        while kinds.len() < count {
            let run = from.varint()?;
            let (kind, length) = ((run & 15) as u8, usize::try_from(run >> 4).unwrap_or(usize::MAX));
            if length == 0 || length > count - kinds.len() || kind > COPIED {
                return Err(Malformed("its columns do not add up"));
            }
            kinds.resize(kinds.len() + length, kind);
        }
        let mode = [Mode::Left, Mode::LeftTogether, Mode::Before];
        let mode = *mode.get(usize::from(from.u8()?)).ok_or(Malformed("it predicts in an unknown way"))?;
        let mut bits = BitReader::new(from.counted()?);
        let mut placed = Placed { grid, first_column, columns: Vec::with_capacity(count), is_whole };
        let (mut low, mut high) = (Context::default(), Context::default());
        let mut predictor =
            Predictor { mode, left: None, base: base.filter(|base| base.is_whole == is_whole) };
        for (place, &kind) in kinds.iter().enumerate() {
            let column = match kind {
                COPIED => {
                    let number = first_column.wrapping_add(place as i64);
                    let same = base.filter(|base| base.grid == grid).and_then(|base| base.at(number));
                    let column = *same.ok_or(Malformed("it repeats a column that was not there"))?;
                    if !is_blank(&column) {
                        predictor.left = Some(placed.numbers(&column));
                    }
                    column
                }
                EMPTY.. => Column { coverage: coverage(kind - EMPTY), ..Column::OUTSIDE },
                _ => {
                    let min = predictor.min(place).wrapping_add(low.read_signed(&mut bits)?);
                    let max = predictor.max(place, min).wrapping_add(high.read_signed(&mut bits)?);
                    predictor.left = Some((min, max));
                    let [min, max] = [min, max].map(|number| placed.value(number));
                    Column { min, max, coverage: coverage(kind) }
                }
            };
            placed.columns.push(column);
        }
        Ok(placed)
    }

    /// Calls `each` with the differences of all columns that are sent.
    fn walk(&self, kinds: &[u8], mode: Mode, base: Option<&Placed>, mut each: impl FnMut(i32, i32)) {
        let base = base.filter(|base| base.is_whole == self.is_whole);
        let mut predictor = Predictor { mode, left: None, base };
        for (place, (column, &kind)) in self.columns.iter().zip(kinds).enumerate() {
            if is_blank(column) {
                continue;
            }
            let (min, max) = self.numbers(column);
            if kind != COPIED {
                each(min.wrapping_sub(predictor.min(place)), max.wrapping_sub(predictor.max(place, min)));
            }
            predictor.left = Some((min, max));
        }
    }

    fn kind(&self, place: usize, base: Option<&Placed>) -> u8 {
        let column = &self.columns[place];
        let base = base.filter(|base| base.grid == self.grid);
        let before = base.and_then(|base| base.at(self.first_column + place as i64));
        if before.is_some_and(|before| is_same(before, column)) {
            return COPIED;
        }
        column.coverage as u8 + if is_blank(column) { EMPTY } else { 0 }
    }

    /// The column of a number, if it is in this picture.
    fn at(&self, number: i64) -> Option<&Column<f32>> {
        self.columns.get(usize::try_from(number.checked_sub(self.first_column)?).ok()?)
    }

    fn numbers(&self, column: &Column<f32>) -> (i32, i32) {
        let number = |value: f32| if self.is_whole { value as i32 } else { turned(value.to_bits() as i32) };
        (number(column.min), number(column.max))
    }

    fn value(&self, number: i32) -> f32 {
        if self.is_whole { number as f32 } else { f32::from_bits(turned(number) as u32) }
    }
}

/// Reference of a lane's differences.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// The nearest column to the left.
    Left,
    /// The same, for columns whose highest and lowest value change by the same amount.
    LeftTogether,
    /// The column of the previous picture in the same place.
    Before,
}

struct Predictor<'a> {
    mode: Mode,
    left: Option<(i32, i32)>,
    base: Option<&'a Placed>,
}

impl Predictor<'_> {
    fn min(&self, place: usize) -> i32 {
        self.before(place).or(self.left).map_or(0, |(min, _)| min)
    }

    fn max(&self, place: usize, min: i32) -> i32 {
        match (self.before(place), self.left) {
            (Some((_, max)), _) => max,
            (None, Some((left, max))) if self.mode == Mode::LeftTogether => {
                max.wrapping_add(min.wrapping_sub(left))
            }
            (None, left) => left.map_or(0, |(_, max)| max),
        }
    }

    fn before(&self, place: usize) -> Option<(i32, i32)> {
        let base = self.base.filter(|_| self.mode == Mode::Before)?;
        base.columns.get(place).filter(|column| !is_blank(column)).map(|column| base.numbers(column))
    }
}

/// Maps the bits of a float to an integer of the same order. The function is its own inverse.
pub(crate) fn turned(bits: i32) -> i32 {
    if bits >= 0 { bits } else { bits ^ i32::MAX }
}

/// Whether a value survives a conversion to an integer and back.
pub(crate) fn is_integer(value: f32) -> bool {
    value.abs() <= WHOLE_MAX && value.fract() == 0.0 && value.to_bits() != (-0.0f32).to_bits()
}

fn is_blank(column: &Column<f32>) -> bool {
    column.min.to_bits() == Column::<f32>::OUTSIDE.min.to_bits()
        && column.max.to_bits() == Column::<f32>::OUTSIDE.max.to_bits()
}

fn is_same(a: &Column<f32>, b: &Column<f32>) -> bool {
    (a.min.to_bits(), a.max.to_bits(), a.coverage) == (b.min.to_bits(), b.max.to_bits(), b.coverage)
}

fn coverage(kind: u8) -> Coverage {
    [Coverage::Outside, Coverage::Complete, Coverage::Partial, Coverage::Gap][usize::from(kind & 3)]
}

/// Added to the coverage of a column without samples.
const EMPTY: u8 = 4;
/// The column is unchanged.
const COPIED: u8 = 8;
const WHOLE_MAX: f32 = (1 << 30) as f32;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn column(is_whole: bool) -> impl Strategy<Value = Column<f32>> {
        let value = prop_oneof![
            any::<i16>().prop_map(move |it| if is_whole { it.into() } else { f32::from(it) * 0.37 }),
            any::<u32>().prop_map(move |it| if is_whole { (it >> 8) as f32 } else { f32::from_bits(it) }),
        ];
        (value.clone(), value, 0..4u8, 0..10u8).prop_map(|(a, b, kind, hole)| match hole {
            0 => Column { coverage: coverage(kind), ..Column::OUTSIDE },
            _ if a > b => Column { min: b, max: a, coverage: coverage(kind) },
            _ => Column { min: a, max: b, coverage: coverage(kind) },
        })
    }

    pub(crate) fn placed() -> impl Strategy<Value = Placed> {
        let columns = any::<bool>().prop_flat_map(|whole| prop::collection::vec(column(whole), 0..60));
        (columns, -20..20i64, prop_oneof![Just(2.5), Just(1000.0)])
            .prop_map(|(columns, first, step)| Placed::new(ColumnGrid::new(step), first, columns))
    }

    fn again(placed: &Placed, base: Option<&Placed>) -> (usize, Placed) {
        let mut out = Writer::default();
        placed.write(base, &mut out);
        let mut from = Reader::new(&out.bytes);
        let place = (placed.grid, placed.first_column, placed.columns.len());
        let read = Placed::read(place, placed.is_whole, base, &mut from).unwrap();
        from.end().unwrap();
        (out.bytes.len(), read)
    }

    pub(crate) fn assert_same_bits(a: &[Column<f32>], b: &[Column<f32>]) {
        assert_eq!(a.len(), b.len());
        for (place, (a, b)) in a.iter().zip(b).enumerate() {
            assert!(is_same(a, b), "column {place}: {a:?} became {b:?}");
        }
    }

    proptest! {
        #[test]
        fn columns_are_the_same_bit_for_bit(now in placed(), before in placed()) {
            for base in [None, Some(&before), Some(&now)] {
                assert_same_bits(&again(&now, base).1.columns, &now.columns);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, whole: bool, before in placed(), count in 0..100usize) {
            for base in [None, Some(&before)] {
                let place = (before.grid, before.first_column, count);
                if let Ok(read) = Placed::read(place, whole, base, &mut Reader::new(&bytes)) {
                    prop_assert_eq!(read.columns.len(), count);
                }
            }
        }
    }

    #[test]
    fn what_scrolled_is_not_said_again_and_noise_takes_what_it_must() {
        let mut rng = grebe_testing::Rng::with_seed(5);
        let mut noise = |first: i64| {
            let columns = (0..1000).map(|_| {
                let height = (rng.f64() * 64.0) as i16;
                Column {
                    min: f32::from(-8000 - height),
                    max: f32::from(8000 + height),
                    coverage: Coverage::Complete,
                }
            });
            Placed::new(ColumnGrid::new(1000.0), first, columns.collect())
        };
        let now = noise(0);
        let (alone, _) = again(&now, None);
        assert!((1000..2100).contains(&alone), "6 bits each way are noise: {alone}");
        let mut moved = noise(40);
        moved.columns[..960].copy_from_slice(&now.columns[40..]);
        let (small, read) = again(&moved, Some(&now));
        assert!(small < 100, "{small}");
        assert_same_bits(&read.columns, &moved.columns);
    }
}
