//! Frequencies of shift keying, which are one burst although quiet lines are between them.
//!
//! ```text
//!   line   ##  ####    ##        one has power where the other has none, or both begin and end together
//!          . . . . . . . .
//!            ##    ####          -> time
//! ```

use super::group::{JOIN_ROWS, Open};
use super::rows::Rows;

/// Whether a burst that has ended and an open one beside it are of one shift keying.
pub(super) fn is_keyed_with(ended: &Open, open: &Open, rows: &Rows, floor: &[f32]) -> bool {
    let (a, b) = (&ended.lines, &open.lines);
    let between = a.start.max(b.start).saturating_sub(a.end.min(b.end));
    (1..=WIDTHS * a.len().max(b.len())).contains(&between)
        && (is_together(ended, open) || takes_turns(ended, open, rows, floor))
}

/// Whether two bursts begin and end together.
fn is_together(a: &Open, b: &Open) -> bool {
    // A symbol may be at the other frequency first, or last.
    let apart = ((b.last_cell - b.first_row) / SHARE).clamp(2, JOIN_ROWS);
    a.first_row.abs_diff(b.first_row) <= apart && a.last_cell.abs_diff(b.last_cell) <= apart
}

/// Whether one burst has the less power the more the other has.
fn takes_turns(ended: &Open, open: &Open, rows: &Rows, floor: &[f32]) -> bool {
    // With some rows in which the open one is alone.
    let first = ended.first_row.saturating_sub(JOIN_ROWS).max(open.first_row).max(rows.oldest());
    let last = (ended.last_cell + JOIN_ROWS).min(open.last_row);
    let [own, other] = [ended, open].map(|open| rows.profile(first..=last, &open.band(floor.len()), floor));
    if own.len() < ROWS_MIN {
        return false;
    }
    let mean = |powers: &[f64]| powers.iter().sum::<f64>() / powers.len() as f64;
    let (own_mean, other_mean) = (mean(&own), mean(&other));
    let (mut own_square, mut other_square, mut product) = (0.0, 0.0, 0.0);
    for (own, other) in own.iter().map(|own| own - own_mean).zip(other.iter().map(|it| it - other_mean)) {
        own_square += own * own;
        other_square += other * other;
        product += own * other;
    }
    let is_as_large = product < -SLOPE_MIN * own_square && product < -SLOPE_MIN * other_square;
    is_as_large && product < -CORRELATION * (own_square * other_square).sqrt()
}

/// Maximum distance of two frequencies, in widths of the wider one.
const WIDTHS: usize = 8;
/// Share of a burst by which its frequencies may begin or end apart.
const SHARE: u64 = 8;
/// Fewer rows may correlate by chance.
const ROWS_MIN: usize = 12;
/// Minimum correlation, opposite in sign. Of 20 rows of two independent bursts, 3 of 10,000 have it.
const CORRELATION: f64 = 0.7;
/// Minimum change of one's power, of the other's.
const SLOPE_MIN: f64 = 0.3;
