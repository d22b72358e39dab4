//! One channel over another: constellations and Lissajous figures.

use std::marker::PhantomData;

use super::{ABSENT, RowScale, brighten, check_size};
use crate::error::Result;
use crate::value::Value;

/// How often the points of two channels fall into each cell of a picture, fading like phosphor: a constellation of I and Q.
///
/// Every point given to [`add`](XyDensity::add) counts: in a cell, outside of the picture, or as NaN.
///
/// ```
/// use grebe_scope::XyDensity;
/// let mut xy = XyDensity::new(3, 3, (-1.0, 1.0), (-1.0, 1.0))?;
/// xy.add(&[1.0, 1.0, -1.0, 7.0], &[1.0, 1.0, -1.0, 0.0]);
/// let cells = xy.resolve(1.0);
/// assert_eq!((cells[2], cells[6]), (2.0, 1.0)); // upper right, lower left
/// assert_eq!((xy.points(), xy.outside()), (3, 1));
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug)]
pub struct XyDensity<V: Value = i16> {
    width: usize,
    x_scale: RowScale,
    y_scale: RowScale,
    x_range: (f32, f32),
    y_range: (f32, f32),
    /// Counts since the last picture, row after row from the top.
    counts: Vec<u32>,
    cells: Vec<f32>,
    points: u64,
    outside: u64,
    not_a_number: u64,
    kind: PhantomData<V>,
}

impl<V: Value> XyDensity<V> {
    /// A map of `width` x `height` cells (each 1 to 8192) for points within the ranges `x` and `y`. Their lowest and
    /// highest values lie in the middle of the outermost cells, and may be beyond the range of samples.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for sizes out of range, and a range that is empty or not finite.
    pub fn new(width: usize, height: usize, x: (f64, f64), y: (f64, f64)) -> Result<XyDensity<V>> {
        check_size(width, height)?;
        Ok(XyDensity {
            width,
            x_scale: RowScale::new(x.0, x.1, width)?,
            y_scale: RowScale::new(y.0, y.1, height)?,
            x_range: (x.0 as f32, x.1 as f32),
            y_range: (y.0 as f32, y.1 as f32),
            counts: vec![0; width * height],
            cells: vec![0.0; width * height],
            points: 0,
            outside: 0,
            not_a_number: 0,
            kind: PhantomData,
        })
    }

    /// Sets other lower ends for further points, as for AC coupling, where the picture stays while the means of the signals
    /// move.
    pub fn set_low_ends(&mut self, x: f64, y: f64) {
        for (scale, range, low) in
            [(&mut self.x_scale, &mut self.x_range, x), (&mut self.y_scale, &mut self.y_range, y)]
        {
            let high = f64::from(range.1) - f64::from(range.0) + low;
            scale.bottom = low as f32;
            *range = (low as f32, high as f32);
        }
    }

    /// Adds a point for each sample that both channels have.
    pub fn add(&mut self, x: &[V], y: &[V]) {
        let (mut columns, mut rows) = ([0; STRIP], [0; STRIP]);
        for (x, y) in x.chunks(STRIP).zip(y.chunks(STRIP)) {
            let len = x.len().min(y.len());
            self.x_scale.rows(&x[..len], &mut columns);
            self.y_scale.rows(&y[..len], &mut rows);
            for (point, (&column, &row)) in columns.iter().zip(&rows).take(len).enumerate() {
                if V::MAY_BE_NAN && (column == ABSENT || row == ABSENT) {
                    self.not_a_number += 1;
                } else if is_within(x[point], self.x_range) && is_within(y[point], self.y_range) {
                    // Rows count from the highest value, columns from the lowest.
                    let column = self.width - 1 - usize::from(column);
                    self.counts[usize::from(row) * self.width + column] += 1;
                    self.points += 1;
                } else {
                    self.outside += 1;
                }
            }
        }
    }

    /// Fades earlier points by `decay` (0.0 forgets them, 1.0 keeps them for ever), adds those since the last picture, and
    /// returns the cells: row after row from the top, in points.
    pub fn resolve(&mut self, decay: f32) -> &[f32] {
        let decay = decay.clamp(0.0, 1.0);
        for (cell, count) in self.cells.iter_mut().zip(&mut self.counts) {
            *cell = *cell * decay + std::mem::take(count) as f32;
        }
        &self.cells
    }

    /// Writes the cells to `out` as brightness 0.0 to 1.0, as [`Density::brightness`](crate::Density::brightness).
    pub fn brightness(&self, out: &mut [f32]) {
        brighten(&self.cells, out);
    }

    /// Points in the picture so far.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Points beyond its edges so far.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Points so far with a NaN coordinate.
    pub fn not_a_number(&self) -> u64 {
        self.not_a_number
    }
}

fn is_within<V: Value>(value: V, (low, high): (f32, f32)) -> bool {
    (low..=high).contains(&value.to_f32())
}

/// Points per strip of vector code.
const STRIP: usize = 512;

#[cfg(test)]
mod tests {
    use grebe_testing::Rng;

    use super::*;

    /// Four points with noise: the same number in each quarter, around their places, in either arithmetic.
    #[test]
    fn a_constellation_has_its_points_where_they_are() {
        let mut rng = Rng::with_seed(5);
        let mut point = |_| {
            let mut near = |side: bool| if side { 10_000 } else { -10_000 } + rng.i16(..) / 16;
            (near(true), near(false))
        };
        let (x, y): (Vec<i16>, Vec<i16>) = (0..4000).map(&mut point).unzip();
        // The first point, turned four times.
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for (n, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let turned = [(x, y), (y, x), (x, x), (y, y)][n % 4];
            xs.push(turned.0);
            ys.push(turned.1);
        }
        let mut integers =
            XyDensity::<i16>::new(65, 65, (-16_000.0, 16_000.0), (-16_000.0, 16_000.0)).unwrap();
        xs.chunks(700).zip(ys.chunks(700)).for_each(|(x, y)| integers.add(x, y));
        let mut reals = XyDensity::<f32>::new(65, 65, (-16_000.0, 16_000.0), (-16_000.0, 16_000.0)).unwrap();
        let real = |values: &[i16]| values.iter().map(|&value| f32::from(value)).collect::<Vec<f32>>();
        reals.add(&real(&xs), &real(&ys));
        let cells = integers.resolve(1.0).to_vec();
        assert_eq!(cells, reals.resolve(1.0));
        let place = |value: f64| ((value + 16_000.0) / 500.0).round() as usize;
        for (x, y) in [(1, -1), (-1, 1), (1, 1), (-1, -1)] {
            let (column, row) = (place(f64::from(x) * 10_000.0), 64 - place(f64::from(y) * 10_000.0));
            let around = |reach: usize| -> f32 {
                let rows = row - reach..=row + reach;
                rows.flat_map(|row| &cells[row * 65 + column - reach..=row * 65 + column + reach]).sum()
            };
            assert_eq!(around(5), 1000.0, "{x} {y}");
            assert!(around(1) < 500.0, "{x} {y}: noise spreads them");
        }
        assert_eq!((integers.points(), integers.outside()), (4000, 0));
        let mut bright = vec![0.0; cells.len()];
        integers.brightness(&mut bright);
        assert!(bright.iter().zip(&cells).all(|(bright, cell)| (*bright > 0.1) == (*cell > 0.0)));
        integers.resolve(0.5);
        assert_eq!(integers.resolve(0.5).iter().sum::<f32>(), 1000.0);
    }

    #[test]
    fn points_outside_of_the_cells_are_counted() {
        let mut xy = XyDensity::new(2, 2, (0.0, 1.0), (0.0, 1.0)).unwrap();
        let x = [0.0, f32::NAN, 2.0, f32::INFINITY, 1.0, 0.5];
        let y = [0.0, 0.0, 0.0, 1.0, f32::NAN];
        xy.add(&x, &y);
        assert_eq!((xy.points(), xy.outside(), xy.not_a_number()), (1, 2, 2));
        assert_eq!(xy.resolve(1.0), [0.0, 0.0, 1.0, 0.0]);
        assert!(
            XyDensity::<i16>::new(2, 0, (0.0, 1.0), (0.0, 1.0)).is_err()
                && XyDensity::<i16>::new(2, 2, (1.0, 1.0), (0.0, 1.0)).is_err()
        );
        assert!(XyDensity::<f32>::new(2, 2, (0.0, f64::NAN), (0.0, 1.0)).is_err());
    }
}
