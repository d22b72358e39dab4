use std::collections::HashSet;

use proptest::prelude::*;

use super::missing::RANGES_MAX;
use super::*;

fn frame(sequence: u64) -> Header {
    Header {
        sequence,
        producer_ts_ns: 1_000 + sequence,
        channel_count: 1,
        block_length_samples: 10,
        first_sample_index: sequence * 10,
        ..Header::default()
    }
}

#[test]
fn generator_drops_are_distinguished_from_network_loss() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    let later = |sequence, index, drops| Header {
        first_sample_index: index,
        sg_drops_total: drops,
        ..frame(sequence)
    };
    let gap = Gap { frames: 0, samples: 30, generator_samples: 30 };
    assert_eq!(tracker.arrive(&later(1, 40, 30)), Arrival::After(gap));
    let gap = Gap { frames: 1, samples: 15, generator_samples: 5 };
    assert_eq!(tracker.arrive(&later(3, 65, 35)), Arrival::After(gap));
    let counts = tracker.counts();
    assert_eq!((counts.lost_frames, counts.lost_samples, counts.generator_samples), (1, 10, 35));
}

#[test]
fn drops_that_were_given_no_index_are_the_generators_too() {
    let mut tracker = StreamTracker::new();
    let counted = |sequence, drops| Header { sg_drops_total: drops, ..frame(sequence) };
    tracker.arrive(&counted(0, 5));
    assert_eq!(tracker.arrive(&counted(1, 7_005)), Arrival::InOrder);
    assert_eq!(tracker.arrive(&counted(2, 7_005)), Arrival::InOrder);
    // One of 10 samples is lost as well: the index jumps by it alone.
    let gap = Gap { frames: 1, samples: 10, generator_samples: 0 };
    assert_eq!(tracker.arrive(&counted(4, 8_005)), Arrival::After(gap));
    let counts = tracker.counts();
    assert_eq!((counts.lost_frames, counts.lost_samples, counts.generator_samples), (1, 10, 8_000));
}

#[test]
fn generator_drops_before_the_first_frame_count_for_readers_of_that_frame() {
    let counted = |header: &Header| {
        let mut tracker = StreamTracker::new();
        assert_eq!(tracker.arrive(header), Arrival::First);
        (tracker.counts().generator_samples, tracker.counts().lost_samples)
    };
    let held_up = Header { first_sample_index: 70, sg_drops_total: 70, ..frame(0) };
    assert_eq!(counted(&held_up), (70, 0));
    assert_eq!(counted(&Header { block_length_samples: 0, ..held_up }), (70, 0), "it made nothing at all");
    let late = Header { first_sample_index: 80, sg_drops_total: 70, ..frame(1) };
    assert_eq!(counted(&late), (0, 0), "who joins late was not there for them");
    // A stage that renumbers its frames passes on a stream that it joined late.
    assert_eq!(counted(&Header { sequence: 0, ..late }), (0, 0));
    let mut tracker = StreamTracker::new();
    tracker.arrive(&held_up);
    tracker.arrive(&late);
    let again = Header { first_sample_index: 30, sg_drops_total: 30, producer_ts_ns: 50_000, ..frame(0) };
    assert_eq!(tracker.arrive(&again), Arrival::Restart);
    assert_eq!(tracker.counts().generator_samples, 100, "of each stream from its own beginning");
}

#[test]
fn loss_at_the_tail_is_counted_from_the_end_of_stream() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    let end = frame(3).end_of_stream(2_000);
    assert_eq!(tracker.arrive(&end), Arrival::After(Gap { frames: 3, samples: 30, generator_samples: 0 }));
    assert!(tracker.is_ended());
    assert_eq!(tracker.arrive(&end), Arrival::Duplicate);
    assert_eq!(tracker.counts().duplicate_frames, 0, "repeats of the end are meant to be ignored");
    assert_eq!(tracker.counts().frames, 1);
}

#[test]
fn a_sender_that_begins_again_is_a_new_stream_and_a_late_frame_is_not() {
    let mut tracker = StreamTracker::new();
    for sequence in [0, 1, 2, 5] {
        tracker.arrive(&frame(sequence));
    }
    assert_eq!(tracker.arrive(&frame(4)), Arrival::Late);
    let again = Header { producer_ts_ns: 50_000, ..frame(0) };
    assert_eq!(tracker.arrive(&again), Arrival::Restart);
    assert_eq!(tracker.arrive(&Header { producer_ts_ns: 50_001, ..frame(1) }), Arrival::InOrder);
    assert_eq!(tracker.counts().streams, 2);
}

#[test]
fn a_sender_whose_host_was_started_again_begins_again_with_its_first_frame() {
    let stamped = |sequence, producer_ts_ns| Header { producer_ts_ns, ..frame(sequence) };
    let up_for = 3_600_000_000_000;
    // A reader from the start, a later one, and one after a long time.
    for (first, newest, again_ns) in [(0, 500, 5_000), (300, 500, up_for - 11_000_000_000), (300, 500, 0)] {
        let mut tracker = StreamTracker::new();
        (first..=newest).for_each(|sequence| {
            tracker.arrive(&stamped(sequence, up_for + sequence));
        });
        assert_eq!(tracker.arrive(&stamped(0, again_ns)), Arrival::Restart);
        assert_eq!(tracker.arrive(&stamped(1, again_ns + 1)), Arrival::InOrder);
        assert_eq!(tracker.counts().duplicate_frames, 0);
    }
    // Late frames from before a reader joined belong to the same stream, and so do duplicates.
    let mut tracker = StreamTracker::new();
    [300, 301, 303].into_iter().for_each(|sequence| {
        tracker.arrive(&stamped(sequence, up_for + sequence));
    });
    assert_eq!(tracker.arrive(&stamped(299, up_for + 299)), Arrival::Duplicate);
    assert_eq!(tracker.arrive(&stamped(300, up_for + 300)), Arrival::Duplicate);
    assert_eq!(tracker.arrive(&stamped(302, up_for + 302)), Arrival::Late);
}

#[test]
fn a_sender_without_a_clock_that_begins_again_is_found_by_its_run() {
    let mut tracker = StreamTracker::new();
    let clockless = |sequence| Header { producer_ts_ns: 0, ..frame(sequence) };
    for sequence in 0..1000 {
        tracker.arrive(&clockless(sequence));
    }
    let first = (0..100)
        .map(|sequence| tracker.arrive(&clockless(sequence)))
        .position(|arrival| arrival == Arrival::Restart);
    assert_eq!(first, Some(63));
}

#[test]
fn position_end_and_counts_are_reported() {
    let mut tracker = StreamTracker::new();
    assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (None, false));
    tracker.arrive(&frame(4));
    tracker.arrive(&frame(5));
    assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (Some(60), false));
    tracker.arrive(&frame(5).end_of_stream(2_000));
    assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (Some(60), true));
    assert_eq!((tracker.counts().frames, tracker.counts().samples), (2, 20));
    tracker.forget();
    assert_eq!((tracker.next_sample_index(), tracker.is_ended()), (None, false));
    assert_eq!(tracker.arrive(&frame(90)), Arrival::First, "a reset leaves no gap");
    assert_eq!((tracker.counts().frames, tracker.counts().lost_frames), (3, 0));
}

#[test]
fn a_decreasing_index_is_another_stream_and_a_constant_one_a_gap_of_frames() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(5));
    let empty_gap = Header { first_sample_index: 60, ..frame(8) };
    let gap = Gap { frames: 2, samples: 0, generator_samples: 0 };
    assert_eq!(tracker.arrive(&empty_gap), Arrival::After(gap));
    let back = Header { first_sample_index: 0, ..frame(9) };
    assert_eq!(tracker.arrive(&back), Arrival::Restart);
    assert_eq!(tracker.counts().lost_samples, 0);
}

#[test]
fn a_frame_of_before_the_end_that_comes_again_is_a_duplicate() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    tracker.arrive(&frame(1));
    tracker.arrive(&frame(1).end_of_stream(1_001));
    assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate);
    assert_eq!(tracker.counts().duplicate_frames, 1);
}

#[test]
fn a_frame_farther_back_than_any_network_holds_one_is_another_stream() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(70_000));
    assert_eq!(tracker.arrive(&frame(70_001 - LATE_FRAMES_MAX)), Arrival::Duplicate);
    assert_eq!(tracker.arrive(&frame(70_000 - LATE_FRAMES_MAX)), Arrival::Restart);
}

/// Loses `losses` runs of `frames` frames each behind `from`; the last frame that arrived.
fn lose(tracker: &mut StreamTracker, from: u64, losses: u64, frames: u64) -> u64 {
    (1..=losses).fold(from, |last, _| {
        tracker.arrive(&frame(last + frames + 1));
        last + frames + 1
    })
}

#[test]
fn a_late_frame_within_a_run_of_lost_ones_leaves_those_around_it_missing() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    tracker.arrive(&frame(10));
    for sequence in [5, 3, 7, 1, 9, 4, 6, 2, 8] {
        assert_eq!(tracker.arrive(&frame(sequence)), Arrival::Late, "{sequence}");
        assert_eq!(tracker.arrive(&frame(sequence)), Arrival::Duplicate, "{sequence}");
    }
}

#[test]
fn the_oldest_runs_are_forgotten_first() {
    // One run is split in the middle: two ranges, of which the earlier one is the oldest.
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    tracker.arrive(&frame(10));
    assert_eq!(tracker.arrive(&frame(5)), Arrival::Late);
    let last = lose(&mut tracker, 10, RANGES_MAX as u64 - 2, 1);
    assert_eq!(tracker.arrive(&frame(4)), Arrival::Late, "all ranges are remembered");
    lose(&mut tracker, last, 1, 1);
    assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate, "the oldest is forgotten");
    assert_eq!(tracker.arrive(&frame(6)), Arrival::Late, "the next is not");
}

#[test]
fn splitting_a_run_while_as_many_are_remembered_as_can_be_forgets_the_oldest() {
    let full = || {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&frame(0));
        let last = lose(&mut tracker, 0, RANGES_MAX as u64, 3);
        (tracker, last)
    };
    let (mut tracker, last) = full();
    assert_eq!(tracker.arrive(&frame(last - 2)), Arrival::Late, "the last run, in its middle");
    assert_eq!(tracker.arrive(&frame(2)), Arrival::Duplicate, "the first run is forgotten");
    // All that came before the two halves is pushed out, and then the earlier half.
    lose(&mut tracker, last, RANGES_MAX as u64 - 1, 1);
    assert_eq!(tracker.arrive(&frame(last - 3)), Arrival::Duplicate);
    assert_eq!(tracker.arrive(&frame(last - 1)), Arrival::Late);

    let (mut tracker, _) = full();
    assert_eq!(tracker.arrive(&frame(2)), Arrival::Late, "the first run, in its middle");
    assert_eq!(tracker.arrive(&frame(1)), Arrival::Duplicate, "only its later part is kept");
    assert_eq!(tracker.arrive(&frame(3)), Arrival::Late);
}

#[test]
fn generator_drops_are_not_missing_frames() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    tracker.arrive(&frame(2));
    for sequence in 3..1_000 {
        let dropped = (sequence - 2) * 10;
        tracker.arrive(&Header {
            first_sample_index: sequence * 10 + dropped,
            sg_drops_total: dropped,
            ..frame(sequence)
        });
    }
    assert_eq!(tracker.counts().lost_frames, 1);
    assert_eq!(tracker.arrive(&frame(1)), Arrival::Late);
    assert_eq!((tracker.counts().lost_frames, tracker.counts().late_frames), (0, 1));
}

#[test]
fn other_channels_are_another_stream() {
    let mut tracker = StreamTracker::new();
    tracker.arrive(&frame(0));
    assert_eq!(tracker.arrive(&Header { channel_count: 2, ..frame(1) }), Arrival::Restart);
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let mut tracker = StreamTracker::new();
    for header in
        [frame(0), Header { sequence: u64::MAX, first_sample_index: u64::MAX, ..frame(0) }, frame(1)]
    {
        tracker.arrive(&header);
    }
    tracker.arrive(&Header { sequence: u64::MAX, first_sample_index: u64::MAX, ..frame(0) });
}

proptest! {
    /// Any loss, duplication and reordering: the counts equal those of a set of received frames.
    #[test]
    fn counts_equal_a_naive_model(deliveries in prop::collection::vec((0u64..40, 0i64..3), 1..200)) {
        let mut tracker = StreamTracker::new();
        let (mut seen, mut newest) = (HashSet::new(), None::<u64>);
        let (mut frames, mut late, mut duplicates, mut first) = (0u64, 0u64, 0u64, 0);
        for (at, (advance, back)) in deliveries.into_iter().enumerate() {
            let base = newest.map_or(advance, |newest| (newest + advance % 4).saturating_sub(back as u64));
            match newest {
                None => { first = base; newest = Some(base); frames += 1; }
                Some(top) if base > top => { newest = Some(base); frames += 1; }
                Some(_) if !seen.contains(&base) && base >= first => late += 1,
                Some(_) => duplicates += 1,
            }
            let fresh = seen.insert(base);
            prop_assert!(fresh || at > 0);
            tracker.arrive(&frame(base));
        }
        let counts = tracker.counts();
        prop_assert_eq!((counts.frames, counts.late_frames, counts.duplicate_frames), (frames, late, duplicates));
        let span = newest.map_or(0, |newest| newest - first + 1);
        prop_assert_eq!(counts.lost_frames, span - frames - late, "late is not lost");
        prop_assert_eq!((counts.lost_samples, counts.late_samples), (counts.lost_frames * 10, late * 10));
    }
}
