//! Detects signals that were cut off at an end of the samples' range.

use grebe_scope::{Column, ColumnGrid};

use crate::data::samples::Kind;
use crate::data::tracks::Track;

/// Whether two neighbouring samples stand at the same end of the range. A single sample may be the peak of a signal
/// that uses the whole range, but a clipped signal stays at the end. Where the history has only extremes, one sample
/// is enough.
pub(crate) fn is_clipped<K: Kind>(
    track: Track<'_, K>,
    ends: (K, K),
    grid: ColumnGrid,
    first_column: u64,
    columns: &[Column<K>],
) -> bool {
    let blocks = ColumnGrid::new(BLOCK_SAMPLES as f64);
    let mut looks = LOOKS_MAX;
    for (_, number) in columns.iter().zip(first_column..).filter(|(column, _)| is_at_end(column, ends)) {
        let span = grid.span(number);
        for block in span.start / BLOCK_SAMPLES..=(span.end - 1) / BLOCK_SAMPLES {
            // Too many single touches: the signal is not clipped.
            let Some(left) = looks.checked_sub(1) else { return false };
            looks = left;
            let mut extremes = [Column::OUTSIDE];
            track.pyramid.columns(track.place, blocks, block, &mut extremes);
            if is_at_end(&extremes[0], ends) && stays_at_end(track, ends, block) {
                return true;
            }
        }
    }
    false
}

fn is_at_end<K: Kind>(column: &Column<K>, (low, high): (K, K)) -> bool {
    !column.is_empty() && (column.max >= high || column.min <= low)
}

fn stays_at_end<K: Kind>(track: Track<'_, K>, (low, high): (K, K), block: u64) -> bool {
    let (mut is_held, mut stays) = (false, false);
    // Include one more sample on either side, because neighbours may lie in two blocks.
    let start = (block * BLOCK_SAMPLES).saturating_sub(1);
    track.samples(start..(block + 1) * BLOCK_SAMPLES + 1, |_, samples| {
        is_held = true;
        let both = |test: &dyn Fn(K) -> bool| samples.windows(2).any(|pair| test(pair[0]) && test(pair[1]));
        stays |= both(&|sample| sample >= high) || both(&|sample| sample <= low);
    });
    stays || !is_held
}

const BLOCK_SAMPLES: u64 = 256;
/// Bounds the cost for the data path: about 2 ms for eight channels, and only if samples reach an end.
const LOOKS_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use crate::data::core::ScopeCore;
    use crate::data::viewport::Viewport;
    use crate::testing::batch;

    /// Whether each of two channels of 100,000 samples counts as clipped, in windows of `span` seconds at 1 kS/s.
    fn clipped(budget: usize, span: f64, value: impl Fn(usize, u64) -> i16) -> [bool; 2] {
        let mut core = ScopeCore::new(budget);
        for block in 0..200 {
            core.ingest(&batch(block * 500, 2, 500, 1e3, &value), 1).unwrap();
        }
        let picture = core.answer(&Viewport { span: Some(span), ..Viewport::latest(500) }, 1);
        [0, 1].map(|place| picture.lanes[place].is_clipped)
    }

    #[test]
    fn what_stays_at_an_end_is_clipped_and_what_touches_it_is_not() {
        let sine = |index: u64| (index as f64 / 37.0 * std::f64::consts::TAU).sin();
        let cut = |channel: usize, index: u64| match channel {
            0 => (sine(index) * 40_000.0).clamp(-32_768.0, 32_767.0) as i16,
            // A sawtooth over the whole range: one sample at its lower end in each period.
            _ => (index * 256 % 65_536) as u16 as i16,
        };
        for span in [0.2, 5.0, 90.0] {
            assert_eq!(clipped(16 << 20, span, cut), [true, false], "{span}");
        }
        let below = |channel: usize, index: u64| (sine(index) * 32_000.0) as i16 / (channel as i16 + 1);
        assert_eq!(clipped(16 << 20, 5.0, below), [false, false]);
        // One glitch of two samples among all of them; a flat line at an end is clipped, one at 0 is not.
        let glitch = |channel: usize, index: u64| match (channel, index) {
            (0, 70_000 | 70_001) => i16::MAX,
            _ => 0,
        };
        assert_eq!(clipped(16 << 20, 90.0, glitch), [true, false]);
        assert_eq!(clipped(16 << 20, 1.0, glitch), [false, false], "only what is shown counts");
        assert_eq!(
            clipped(16 << 20, 1.0, |channel, _| if channel == 0 { i16::MIN } else { -1 }),
            [true, false]
        );
    }

    #[test]
    fn where_only_extremes_are_held_reaching_an_end_is_enough() {
        let touch = |channel: usize, index: u64| if (channel, index) == (0, 1000) { i16::MIN } else { 0 };
        assert_eq!(clipped(16 << 20, 100.0, touch), [false, false]);
        assert_eq!(clipped(64 << 10, 100.0, touch), [true, false]);
    }
}
