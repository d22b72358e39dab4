use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};

use grebe_flow::{Error as GraphError, Graph, QueueOptions, Snapshot};
use grebe_testing::stream::{batches_of, frames_of, sample_at, stream};

use super::*;

struct Feed(VecDeque<Batch>);

impl Stage for Feed {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.0.pop_front() else { return Ok(Outcome::End) };
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }
}

struct Tray(Sender<(Header, Vec<Vec<i16>>)>);

impl Stage for Tray {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        frames_of(&[batch]).into_iter().try_for_each(|frame| self.0.send(frame))?;
        Ok(Outcome::Produced)
    }
}

/// Result: samples by channel for each index, headers, and counters.
type Merged = (Vec<(u64, Vec<i16>)>, Vec<Header>, Snapshot);

fn merged(align: Align, first: Vec<Batch>, second: Vec<Batch>) -> Result<Merged, GraphError> {
    let (tray, made) = channel();
    let mut graph = Graph::new();
    let (first, second) = (graph.add("a", Feed(first.into())), graph.add("b", Feed(second.into())));
    let (merge, tray) = (graph.add("merge", MergeStage::new(align)), graph.add("tray", Tray(tray)));
    graph.connect_ports((first, "out"), (merge, "first"), QueueOptions::block(2))?;
    graph.connect_ports((second, "out"), (merge, "second"), QueueOptions::block(2))?;
    graph.connect(merge, tray, QueueOptions::block(2));
    let mut stepper = graph.stepper()?;
    stepper.run()?;
    let frames: Vec<_> = made.try_iter().collect();
    let samples = frames.iter().flat_map(|(header, channels)| {
        (0..header.block_length_samples as usize).map(|at| {
            let index = header.first_sample_index + at as u64;
            (index, channels.iter().map(|channel| channel[at]).collect())
        })
    });
    Ok((samples.collect(), frames.iter().map(|(header, _)| *header).collect(), stepper.snapshot()))
}

/// Channels of both streams at these indices, the second one's from another index.
fn expected(
    channels: (usize, usize),
    indexes: impl Iterator<Item = u64>,
    shift: u64,
) -> Vec<(u64, Vec<i16>)> {
    let at = |index: u64| {
        let first = (0..channels.0).map(|channel| sample_at(channel, index));
        first.chain((0..channels.1).map(|channel| sample_at(channel, index - shift))).collect()
    };
    indexes.map(|index| (index, at(index))).collect()
}

fn counted(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.stage("merge").and_then(|stage| stage.own(name)).unwrap()
}

#[test]
fn frames_of_any_lengths_come_out_side_by_side() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for at in 0..300u64 {
        first.push((at * 70, 70));
    }
    for at in 0..500u64 {
        second.push((at * 42, 42));
    }
    let (samples, headers, snapshot) =
        merged(Align::Index, batches_of(3, &first, 7), batches_of(2, &second, 4)).unwrap();
    assert_eq!(samples, expected((3, 2), 0..21_000, 0));
    assert!(headers.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence));
    // A microsecond per sample, like the stamps of the input.
    assert!(
        headers.iter().all(|it| it.producer_ts_ns.abs_diff(1_000_000 + it.first_sample_index * 1_000) <= 1)
    );
    assert_eq!((counted(&snapshot, "gap_samples"), counted(&snapshot, "left_out_samples")), (0, 0));
}

#[test]
fn a_gap_in_one_recording_is_a_gap_and_the_others_samples_there_are_counted() {
    let first = stream(1, &[(100, 50), (150, 50), (300, 100)]);
    let second = stream(1, &[(120, 30), (180, 200)]);
    let (samples, headers, snapshot) = merged(Align::Index, first, second).unwrap();
    assert_eq!(samples, expected((1, 1), (120..150).chain(180..200).chain(300..380), 0));
    assert_eq!(counted(&snapshot, "gap_samples"), 30 + 100);
    assert_eq!(counted(&snapshot, "left_out_samples"), 20 + 30 + 100);
    // Later stages notice the missing frames.
    let mut tracker = grebe_frame::StreamTracker::new();
    for header in &headers {
        tracker.arrive(header);
    }
    let counts = tracker.counts();
    assert_eq!((counts.lost_samples, counts.lost_frames, counts.generator_samples), (130, 2, 0));
}

#[test]
fn drops_of_both_generators_remain_generator_drops() {
    let dropped = |channels| {
        let frame = |index, drops| {
            let mut batch = grebe_frame::BatchPool::new(1, 4096).acquire().unwrap();
            let header = Header {
                channel_count: channels,
                block_length_samples: 10,
                sample_rate_hz: 1e6,
                first_sample_index: index,
                sg_drops_total: drops,
                ..Header::default()
            };
            batch.push::<i16>(&header, |_, out| out.fill(1)).unwrap();
            batch.freeze()
        };
        vec![frame(0, 0), frame(40, 30), frame(50, 30)]
    };
    let (_, headers, _) = merged(Align::Index, dropped(1), dropped(1)).unwrap();
    let seen: Vec<_> =
        headers.iter().map(|it| (it.sequence, it.first_sample_index, it.sg_drops_total)).collect();
    assert_eq!(seen, [(0, 0, 0), (1, 40, 30), (2, 50, 30)]);
}

#[test]
fn streams_that_began_apart_are_aligned_by_their_stamps() {
    // Stamped at a microsecond per sample: the second stream's index 0 is the first one's index 40, 40 us
    // later.
    let (first, second) = (stream(1, &[(0, 64), (64, 64)]), stream(2, &[(0, 100)]));
    let mut later = Vec::new();
    for batch in second {
        let mut batch = batch.try_unique().unwrap();
        batch.update_headers(|header| header.producer_ts_ns += 40_000);
        later.push(batch.freeze());
    }
    let (samples, _, snapshot) = merged(Align::Time, first, later).unwrap();
    assert_eq!(samples, expected((1, 2), 40..128, 40));
    assert_eq!(counted(&snapshot, "left_out_samples"), 40);
}

#[test]
fn streams_that_cannot_merge_are_refused() {
    for (first, second, says) in [
        (stream(200, &[(0, 8)]), stream(56, &[(0, 8)]), "channels of the merged streams: 256 where 255"),
        (
            stream(1, &[(0, 8), (4, 8)]),
            stream(1, &[(0, 80)]),
            "the stream changed from 1 channels at sample 0",
        ),
    ] {
        let error = merged(Align::Index, first, second).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let mut slow = Vec::new();
    for batch in stream(1, &[(0, 8)]) {
        let mut batch = batch.try_unique().unwrap();
        batch.update_headers(|header| header.sample_rate_hz = 5e5);
        slow.push(batch.freeze());
    }
    let error = merged(Align::Index, stream(1, &[(0, 8)]), slow).unwrap_err().to_string();
    assert!(error.contains("500000 Hz, and of another 1000000 Hz: merge streams of one rate"), "{error}");
    let merge = Merge { align: Align::Index };
    assert!(
        merge.all_channels(&[Some(255), None]).is_err()
            && merge.all_channels(&[Some(200), Some(56)]).is_err()
    );
    assert_eq!(merge.all_channels(&[Some(200), Some(55)]), Ok(Some(255)));
}

#[test]
fn labels_of_both_are_kept_and_times_are_those_of_the_first() {
    let clock = |unix_time_ns| {
        Some(grebe_frame::ClockReading { producer_ts_ns: 1, unix_time_ns, error_ns: None, clock: None })
    };
    let said = |at: u64, label: &str, unix_ns| Description {
        clock: clock(unix_ns),
        annotations: vec![StreamAnnotation {
            first_sample_index: at,
            length_samples: 5,
            label: Some(label.into()),
            ..StreamAnnotation::default()
        }],
        ..Description::default()
    };
    let described = |batches: Vec<Batch>, description: Option<Description>, later_ns| {
        let mut batch = batches.into_iter().next().unwrap().try_unique().unwrap();
        batch.update_headers(|header| header.producer_ts_ns += later_ns);
        batch.describe(description.map(Arc::new).as_ref());
        VecDeque::from([batch.freeze()])
    };
    for is_first_described in [true, false] {
        let one = is_first_described.then(|| said(30, "one", 7));
        let (first, second) = (stream(1, &[(0, 64)]), stream(1, &[(0, 64)]));
        let inputs = [described(first, one, 0), described(second, Some(said(10, "two", 9)), 10_000)];
        let mut stage = MergeStage::new(Align::Time);
        stage.lanes.resize_with(2, Lane::default);
        for (lane, mut batches) in stage.lanes.iter_mut().zip(inputs) {
            lane.batch = batches.pop_front();
            lane.header = lane.batch.as_ref().unwrap().frames().next().unwrap().header();
            lane.enter().unwrap();
        }
        stage.begin().unwrap();
        stage.describe();
        let made = stage.described.1.unwrap();
        let labels: Vec<_> =
            made.annotations.iter().map(|it| (it.first_sample_index, it.label.clone().unwrap())).collect();
        // Index 10 of the second stream is index 20 of the first.
        let mut expected = vec![(20, "two".to_owned()), (30, "one".to_owned())];
        if !is_first_described {
            expected.pop();
        }
        assert_eq!(labels, expected);
        assert_eq!(made.clock, if is_first_described { clock(7) } else { None });
    }
}
