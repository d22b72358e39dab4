//! The pyramid against brute force over the stream, bit for bit.

use grebe_testing::Rng;
use proptest::prelude::*;

use super::*;

/// A stream as it was received: blocks with their first index, one vector a channel.
#[derive(Debug, Clone)]
struct Received {
    blocks: Vec<(u64, Vec<Vec<i16>>)>,
    channels: usize,
}

impl Received {
    fn begin(&self) -> u64 {
        self.blocks[0].0
    }

    fn end(&self) -> u64 {
        self.blocks.last().map_or(0, |(first, samples)| first + samples[0].len() as u64)
    }

    /// Every sample by its index from the first; `None` if it was lost.
    fn flat(&self, channel: usize) -> Vec<Option<i16>> {
        let mut flat = vec![None; (self.end() - self.begin()) as usize];
        for (first, samples) in &self.blocks {
            let at = (first - self.begin()) as usize;
            for (place, &sample) in samples[channel].iter().enumerate() {
                flat[at + place] = Some(sample);
            }
        }
        flat
    }

    fn feed(&self, mut append: impl FnMut(u64, &[&[i16]])) {
        for (first, samples) in &self.blocks {
            let slices: Vec<&[i16]> = samples.iter().map(Vec::as_slice).collect();
            append(*first, &slices);
        }
    }
}

/// The expected column: searched sample by sample in `range`, a part of `span`.
fn brute(flat: &[Option<i16>], begin: u64, span: &Range<u64>, range: &Range<u64>) -> Column {
    if range.start >= range.end {
        return Column::OUTSIDE;
    }
    let samples = &flat[(range.start - begin) as usize..(range.end - begin) as usize];
    let mut column = Column::<i16> { coverage: Coverage::Complete, ..Column::OUTSIDE };
    for sample in samples {
        match sample {
            Some(sample) => {
                column.min = column.min.min(*sample);
                column.max = column.max.max(*sample);
            }
            None => column.coverage = Coverage::Gap,
        }
    }
    if column.coverage == Coverage::Complete && (span.start < range.start || span.end > range.end) {
        column.coverage = Coverage::Partial;
    }
    column
}

/// The documented rule, independent of the code: both ends move outwards to whole nodes of the kept level.
fn widened(pyramid: &Pyramid, begin: u64, end: u64, span: &Range<u64>) -> Range<u64> {
    let oldest = pyramid.oldest().unwrap();
    let (start, stop) = (span.start.max(oldest), span.end.min(end));
    if start >= stop {
        return 0..0;
    }
    let (down, up) = (resolution_at(pyramid, start), resolution_at(pyramid, stop - 1));
    (start / down * down).max(oldest).max(begin)..stop.div_ceil(up) * up
}

/// Samples per node of the finest history kept at `index`; 1 where the samples themselves are.
fn resolution_at(pyramid: &Pyramid, index: u64) -> u64 {
    pyramid.finest_at(index).map_or(1, |level| pyramid.shape.node_samples(level))
}

fn received(samples_max: usize) -> impl Strategy<Value = Received> {
    let block = (1..samples_max, prop_oneof![8 => Just(0u64), 2 => 1u64..40, 1 => 1u64..2000]);
    let starts = prop_oneof![Just(0u64), 0u64..5000, (1u64 << 40)..(1u64 << 40) + 5000];
    (1usize..4, starts, proptest::collection::vec(block, 1..30), any::<u64>()).prop_map(
        |(channels, start, blocks, seed)| {
            let mut rng = Rng::with_seed(seed);
            let mut next = start;
            let blocks = blocks
                .into_iter()
                .map(|(len, gap)| {
                    let first = next + gap;
                    next = first + len as u64;
                    (first, (0..channels).map(|_| (0..len).map(|_| sample(&mut rng)).collect()).collect())
                })
                .collect();
            Received { blocks, channels }
        },
    )
}

/// Small steps with rare extremes: reveals a lost peak or a doubled one.
fn sample(rng: &mut Rng) -> i16 {
    if rng.u8(..97) == 0 { rng.i16(..) } else { rng.i16(..) / 64 }
}

/// Tiny rings, so that a few thousand samples age through all levels.
fn shapes() -> impl Strategy<Value = Shape> {
    (1u32..5, 1u32..3, 0u64..600, 1usize..5, 0u64..40)
        .prop_map(|(base, fanout, raw, levels, nodes)| Shape::new(base, fanout, raw, &vec![nodes; levels]))
}

fn zooms() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-4.0f64..0.0).prop_map(f64::exp2),
        (0.0f64..12.0).prop_map(f64::exp2),
        (1u32..2000).prop_map(f64::from),
    ]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn columns_equal_brute_force(stream in received(300), shape in shapes(), spc in zooms(), from in -50i64..5000) {
        let mut pyramid = Pyramid::with_shape(stream.channels, shape);
        stream.feed(|first, block| pyramid.append(first, block).unwrap());
        let (begin, end) = (stream.begin(), stream.end());
        prop_assert_eq!(pyramid.newest(), Some(end - 1));
        let grid = ColumnGrid::new(spc);
        let first = grid.column_at(begin.saturating_add_signed(from));
        for channel in 0..stream.channels {
            let flat = stream.flat(channel);
            let mut columns = [Column::OUTSIDE; 24];
            pyramid.columns(channel, grid, first, &mut columns);
            for (column, number) in columns.iter().zip(first..) {
                let span = grid.span(number);
                let range = widened(&pyramid, begin, end, &span);
                prop_assert_eq!(*column, brute(&flat, begin, &span, &range), "column {} {:?}", number, span);
            }
        }
    }

    #[test]
    fn statistics_equal_brute_force(stream in received(300), shape in shapes(), from in -50i64..5000, len in 0u64..4000) {
        let mut pyramid = Pyramid::with_shape(stream.channels, shape);
        stream.feed(|first, block| pyramid.append(first, block).unwrap());
        let (begin, end) = (stream.begin(), stream.end());
        let start = begin.saturating_add_signed(from);
        let range = widened(&pyramid, begin, end, &(start..start + len));
        let flat = stream.flat(0);
        let got = pyramid.range_stats(0, start..start + len);
        let (mut stats, mut count) = (Stats::empty(), 0);
        if range.start < range.end {
            prop_assert_eq!(&got.range, &range);
            for sample in flat[(range.start - begin) as usize..(range.end - begin) as usize].iter().flatten() {
                stats.merge(&simd::stats(&[*sample]));
                count += 1;
            }
        }
        prop_assert_eq!((got.stats, got.count), (stats, count));
    }

    #[test]
    fn kept_samples_are_handed_out_as_received(stream in received(300), shape in shapes(), from in -50i64..5000, len in 0u64..4000) {
        let mut pyramid = Pyramid::with_shape(stream.channels, shape);
        stream.feed(|first, block| pyramid.append(first, block).unwrap());
        let (begin, end) = (stream.begin(), stream.end());
        let start = begin.saturating_add_signed(from);
        let mut flat = stream.flat(0);
        let mut seen = vec![None; flat.len()];
        pyramid.samples(0, start..start + len, |first, run| {
            for (index, &sample) in (first..).zip(run) {
                seen[(index - begin) as usize] = Some(sample);
            }
        });
        for (index, sample) in (begin..end).zip(&mut flat) {
            let kept = (start..start + len).contains(&index) && resolution_at(&pyramid, index) == 1;
            if !kept { *sample = None; }
        }
        prop_assert_eq!(seen, flat);
    }

    #[test]
    fn block_borders_change_nothing(stream in received(60), shape in shapes(), spc in zooms(), cut in 1usize..50) {
        let mut whole = Pyramid::with_shape(stream.channels, shape.clone());
        let mut split = Pyramid::with_shape(stream.channels, shape);
        stream.feed(|first, block| whole.append(first, block).unwrap());
        stream.feed(|first, block| {
            for from in (0..block[0].len()).step_by(cut) {
                let to = (from + cut).min(block[0].len());
                let piece: Vec<&[i16]> = block.iter().map(|c| &c[from..to]).collect();
                split.append(first + from as u64, &piece).unwrap();
            }
        });
        prop_assert_eq!(columns_from(&whole, spc, stream.begin()), columns_from(&split, spc, stream.begin()));
    }
}

proptest! {
    #![proptest_config(cases(500))]

    /// While the view scrolls, a finished column never changes as long as its level is kept.
    #[test]
    fn nothing_shimmers_while_scrolling(stream in received(250), spc in 1.0f64..300.0) {
        let grid = ColumnGrid::new(spc);
        let shape = Shape::new(4, 2, 512, &[64, 64, 64, 64]);
        let mut pyramid = Pyramid::with_shape(stream.channels, shape);
        let mut seen = std::collections::BTreeMap::new();
        stream.feed(|first, block| {
            pyramid.append(first, block).unwrap();
            let newest = grid.column_at(pyramid.newest().unwrap());
            let left = newest.saturating_sub(15);
            let mut columns = [Column::OUTSIDE; 15];
            pyramid.columns(0, grid, left, &mut columns);
            for (number, column) in (left..).zip(columns) {
                let span = grid.span(number);
                let finished = span.end <= pyramid.next_index();
                // Spans lie on borders of nodes up to the grid's quantum; beyond that, history has aged.
                if finished && resolution_at(&pyramid, span.start) <= grid.quantum {
                    let before = *seen.entry(number).or_insert(column);
                    assert_eq!(before, column, "column {number} changed");
                }
            }
        });
    }
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

fn columns_from(pyramid: &Pyramid, spc: f64, begin: u64) -> Vec<Vec<Column>> {
    let grid = ColumnGrid::new(spc);
    (0..pyramid.channels())
        .map(|channel| {
            let mut columns = vec![Column::OUTSIDE; 400];
            pyramid.columns(channel, grid, grid.column_at(begin), &mut columns);
            columns
        })
        .collect()
}

/// A frame cut at every possible place gives the same pyramid.
#[test]
fn a_frame_may_be_cut_anywhere() {
    let mut rng = Rng::with_seed(7);
    let samples: Vec<i16> = (0..700).map(|_| sample(&mut rng)).collect();
    let build = |cut: usize| {
        let mut pyramid = Pyramid::with_shape(1, Shape::new(3, 2, 128, &[16, 16]));
        pyramid.append(90, &[&samples[..cut]]).unwrap();
        pyramid.append(90 + cut as u64, &[&samples[cut..]]).unwrap();
        [0.5, 1.0, 3.3, 17.0, 64.0].map(|spc| columns_from(&pyramid, spc, 0))
    };
    let whole = build(0);
    for cut in 1..=samples.len() {
        assert_eq!(build(cut), whole, "cut at {cut}");
    }
}

#[test]
fn a_refused_block_changes_nothing() {
    let mut pyramid = Pyramid::new(2, 1 << 16).unwrap();
    pyramid.append(10, &[&[1, 2], &[3, 4]]).unwrap();
    let before = columns_from(&pyramid, 1.0, 0);
    assert_eq!(pyramid.append(12, &[&[1]]), Err(Error::ChannelCount { expected: 2, got: 1 }));
    assert_eq!(
        pyramid.append(12, &[&[1], &[]]),
        Err(Error::UnequalChannels { channel: 1, expected: 1, got: 0 })
    );
    assert_eq!(pyramid.append(11, &[&[1], &[1]]), Err(Error::IndexWentBack { next: 12, got: 11 }));
    assert_eq!(pyramid.append(u64::MAX, &[&[1], &[1]]), Err(Error::IndexTooLarge { got: u64::MAX }));
    assert_eq!(columns_from(&pyramid, 1.0, 0), before);
    assert!(
        Pyramid::<i16>::new(0, 1 << 20).is_err()
            && Pyramid::<i16>::new(511, 1 << 30).is_err()
            && Pyramid::<i16>::new(1, 100).is_err()
            && Pyramid::<i16>::new(1, usize::MAX).is_err()
    );
}

#[test]
fn a_leap_of_the_index_is_one_gap_and_takes_no_time() {
    let mut pyramid = Pyramid::new(1, 1 << 20).unwrap();
    pyramid.append(0, &[&[5; 1000]]).unwrap();
    pyramid.append(1 << 61, &[&[7; 1000]]).unwrap();
    assert_eq!(pyramid.lost_samples(), (1 << 61) - 1000);
    let mut columns = [Column::OUTSIDE; 2];
    let grid = ColumnGrid::new(1000.0);
    pyramid.columns(0, grid, grid.column_at(1 << 61), &mut columns);
    assert_eq!((columns[0].min, columns[0].max), (7, 7));
    pyramid.columns(0, grid, grid.column_at((1 << 61) - 5000), &mut columns);
    assert!(columns[0].is_empty() && columns[0].has_gap());
}

#[test]
fn clear_forgets_everything() {
    let mut pyramid = Pyramid::new(1, 1 << 16).unwrap();
    pyramid.append(5, &[&[9; 3000]]).unwrap();
    pyramid.clear();
    assert_eq!((pyramid.oldest(), pyramid.newest()), (None, None));
    pyramid.append(1, &[&[1, 2, 3]]).unwrap();
    let mut fresh = Pyramid::new(1, 1 << 16).unwrap();
    fresh.append(1, &[&[1, 2, 3]]).unwrap();
    assert_eq!(columns_from(&pyramid, 1.0, 0), columns_from(&fresh, 1.0, 0));
    pyramid.samples(0, 0..100, |first, run| assert_eq!((first, run), (1, &[1, 2, 3][..])));
}

fn real(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|&sample| sample.into()).collect()
}

proptest! {
    #![proptest_config(cases(500))]

    /// Either arithmetic keeps the same values of the same numbers, at every zoom and age.
    #[test]
    fn reals_are_kept_as_integers_are(stream in received(300), shape in shapes(), spc in zooms(), from in -50i64..5000) {
        let mut integers = Pyramid::with_shape(stream.channels, shape.clone());
        let mut reals = Pyramid::with_shape(stream.channels, shape);
        stream.feed(|first, block| {
            integers.append(first, block).unwrap();
            let block: Vec<Vec<f32>> = block.iter().map(|samples| real(samples)).collect();
            let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
            reals.append(first, &block).unwrap();
        });
        let grid = ColumnGrid::new(spc);
        let first = grid.column_at(stream.begin().saturating_add_signed(from));
        for channel in 0..stream.channels {
            let (mut a, mut b) = ([Column::<i16>::OUTSIDE; 24], [Column::<f32>::OUTSIDE; 24]);
            integers.columns(channel, grid, first, &mut a);
            reals.columns(channel, grid, first, &mut b);
            prop_assert_eq!(a.map(Column::<f32>::from), b);
            let range = grid.span(first).start..grid.span(first + 24).end;
            let (a, b) = (integers.range_stats(channel, range.clone()), reals.range_stats(channel, range));
            prop_assert_eq!((a.count, a.mean(), a.rms()), (b.count, b.mean(), b.rms()));
            let (a, b) = (a.deviation().unwrap_or(0.0), b.deviation().unwrap_or(0.0));
            prop_assert!((a - b).abs() <= 1e-6 * (1.0 + a), "{} {}", a, b);
        }
    }
}

#[test]
fn non_finite_samples_are_counted_and_spoil_nothing() {
    // 4 columns of 256 samples: good, all not-a-number, one infinity, good again and one not-a-number.
    let mut samples: Vec<f32> = (0..1024u16).map(|n| f32::from(n % 8)).collect();
    samples[256..512].fill(f32::NAN);
    samples[700] = f32::INFINITY;
    samples[900] = f32::NAN;
    for budget in [1 << 20, 14 << 10] {
        let mut pyramid = Pyramid::new(1, budget).unwrap();
        pyramid.append(0, &[&samples]).unwrap();
        // With a small budget, the samples are gone and nodes answer.
        pyramid.append(1024, &[&[3.0; 3000]]).unwrap();
        let mut columns = [Column::OUTSIDE; 4];
        pyramid.columns(0, ColumnGrid::new(256.0), 0, &mut columns);
        let ends = columns.map(|column| (column.min, column.max));
        assert_eq!([ends[0], ends[2], ends[3]], [(0.0, 7.0), (0.0, f32::INFINITY), (0.0, 7.0)]);
        // Empty, but nothing was lost.
        assert!(columns[1].is_empty() && columns[1].is_complete());
        assert_eq!(columns[2].joined_to(&columns[1]), Some((0.0, f32::INFINITY)));
        let stats = pyramid.range_stats(0, 0..1024);
        assert_eq!((stats.count, stats.not_finite()), (1024, 258));
        let finite: Vec<f64> = samples.iter().filter(|s| s.is_finite()).map(|&s| s.into()).collect();
        let mean = finite.iter().sum::<f64>() / finite.len() as f64;
        assert!((stats.mean().unwrap() - mean).abs() < 1e-12);
        let squares = finite.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / finite.len() as f64;
        assert!((stats.deviation().unwrap() - squares.sqrt()).abs() < 1e-9);
        assert_eq!(pyramid.range_stats(0, 256..512).mean(), None);
    }
    // A flat signal has no deviation, whatever its sums round to.
    let mut flat = Pyramid::new(1, 1 << 20).unwrap();
    flat.append(0, &[&[0.1f32; 5000]]).unwrap();
    assert_eq!(flat.range_stats(0, 0..5000).deviation(), Some(0.0));
}

#[test]
fn a_node_is_as_large_as_the_budget_reckons() {
    assert_eq!(track::bytes::<i16>(), shape::TrackBytes { sample: 2, node: 20 });
    assert_eq!(track::bytes::<f32>(), shape::TrackBytes { sample: 4, node: 32 });
}
