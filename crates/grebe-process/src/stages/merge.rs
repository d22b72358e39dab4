//! Combines the channels of several streams.

use std::sync::Arc;

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage, StageResult,
};
use grebe_frame::{
    Batch, ChannelDescription, Description, Header, MAX_CHANNELS, SampleFormat, StreamAnnotation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::stream::is_same;

/// Makes one stream of two of the same rate, whose channels are those of `first`, then those of `second`; several of these
/// stages merge more. Only samples that both have come out: a gap in one is a gap, and what the other has there is counted as
/// `left_out_samples`. Ends with the stream that ends first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Which samples belong together: those of the same `index`, or of the same `time` by the stamps of the first frames,
    /// where the senders share a clock.
    #[serde(default)]
    pub align: Align,
}

/// Matching of samples between streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// By sample index.
    #[default]
    Index,
    /// By time, from the stamps of the first frames.
    Time,
}

impl Kind for Merge {
    const NAME: &'static str = "merge";
    const PORTS: Ports = Ports { inputs: &["first", "second"], outputs: &["out"] };

    fn all_channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault> {
        let known: Vec<u32> = incoming.iter().flatten().copied().collect();
        let (sum, unknown) = (known.iter().sum::<u32>(), incoming.len() - known.len());
        // An unknown stream has at least one channel.
        if sum as usize + unknown > MAX_CHANNELS as usize {
            let counts: Vec<String> = known.iter().map(u32::to_string).collect();
            let more = if unknown > 0 { ", and of another stream" } else { "" };
            let what = format!("{} channels come in{more}, and a stream has 255 at most", counts.join(" + "));
            return Err(Fault::of_kind(what));
        }
        Ok((unknown == 0).then_some(sum))
    }

    fn all_formats(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault> {
        let mut known = incoming.iter().flatten();
        let first = known.next().copied();
        match (first, known.find(|&&format| Some(format) != first)) {
            (Some(first), Some(other)) => Err(Fault::of_kind(format!(
                "samples of {first} and of {other} come in, and one stream has one format: put a convert before one of them"
            ))),
            _ => Ok(first),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(MergeStage::new(self.align)))
    }
}

pub(crate) struct MergeStage {
    align: Align,
    lanes: Vec<Lane>,
    is_aligned: bool,
    rewriter: Rewriter,
    /// Descriptions of the inputs, and of the output.
    described: (Vec<Option<Arc<Description>>>, Option<Arc<Description>>),
    /// Last output frame.
    last: Option<Header>,
    counters: Counters,
}

/// Input stream, with its progress. Positions are sample indices of the first stream.
#[derive(Debug, Default)]
struct Lane {
    batch: Option<Batch>,
    /// Next frame of the batch.
    frame: usize,
    header: Header,
    /// Position of the next sample of that frame, and of the frame's end.
    begin: i64,
    end: i64,
    /// Offset from this stream's sample index to the first stream's.
    shift: i64,
    /// Drops reported by its generator up to the last output frame.
    drops: Option<u64>,
}

impl MergeStage {
    pub(crate) fn new(align: Align) -> Self {
        Self {
            align,
            lanes: Vec::new(),
            is_aligned: false,
            rewriter: Rewriter::default(),
            described: (Vec::new(), None),
            last: None,
            counters: Counters::new(&["gap_samples", "left_out_samples"]),
        }
    }

    /// Aligns the streams, once the first frame of each has arrived.
    fn begin(&mut self) -> Result<(), Error> {
        let channels: u32 = self.lanes.iter().map(|lane| lane.header.channel_count).sum();
        if channels > MAX_CHANNELS {
            let what = "channels of the merged streams";
            return Err(Error::Shape { what, got: channels.into(), expected: MAX_CHANNELS.into() });
        }
        let Some((first, others)) = self.lanes.split_first_mut() else { return Ok(()) };
        let (was, rate_hz) = (first.header, first.header.sample_rate_hz);
        for lane in others {
            if lane.header.format != was.format {
                let (got, must) =
                    (format!("{}, and of another {}", lane.header.format, was.format), "merge one format");
                return Err(Error::Setting { what: "the format of a merged stream", got, must });
            }
            if lane.header.sample_rate_hz != rate_hz {
                let got = format!("{} Hz, and of another {rate_hz} Hz", lane.header.sample_rate_hz);
                let must = "merge streams of one rate";
                return Err(Error::Setting { what: "the rate of a merged stream", got, must });
            }
            if self.align == Align::Time {
                if rate_hz <= 0.0 {
                    let (got, must) = ("unknown".to_owned(), "align by index");
                    return Err(Error::Setting { what: "the rate of the merged streams", got, must });
                }
                let later_ns = lane.header.producer_ts_ns as i128 - was.producer_ts_ns as i128;
                let later = (later_ns as f64 * 1e-9 * rate_hz).round() as i64;
                let apart = was.first_sample_index as i64 - lane.header.first_sample_index as i64;
                lane.shift = apart.saturating_add(later);
                lane.enter()?;
            }
        }
        self.is_aligned = true;
        Ok(())
    }

    /// Describes the output: the channels of all streams in order.
    fn describe(&mut self) {
        let said = |lane: &Lane| lane.batch.as_ref().and_then(Batch::description).cloned();
        let is_same = |(lane, known): (&Lane, &Option<Arc<Description>>)| {
            is_same(known.as_ref(), lane.batch.as_ref().and_then(Batch::description))
        };
        if self.described.0.len() != self.lanes.len()
            || !self.lanes.iter().zip(&self.described.0).all(is_same)
        {
            let parts: Vec<_> = self.lanes.iter().map(said).collect();
            let merged = parts.iter().flatten().next().map(|any| Arc::new(self.merged(any, &parts)));
            self.described = (parts, merged);
        }
        self.rewriter.describe(self.described.1.as_ref(), Description::clone);
    }

    /// Combined description of these streams. `any` is the first available one.
    fn merged(&self, any: &Description, parts: &[Option<Arc<Description>>]) -> Description {
        let lanes = || self.lanes.iter().zip(parts);
        let channels = lanes().flat_map(|(lane, part)| {
            let said = part.as_ref().map(|part| part.channels.clone()).unwrap_or_default();
            let rest = std::iter::repeat_with(ChannelDescription::default);
            said.into_iter().chain(rest).take(lane.header.channel_count as usize)
        });
        let shifted = |index: u64, lane: &Lane| index.saturating_add_signed(lane.shift);
        let mut annotations: Vec<StreamAnnotation> = lanes()
            .filter_map(|(lane, part)| Some((lane, part.as_ref()?)))
            .flat_map(|(lane, part)| {
                part.annotations.iter().map(|annotation| StreamAnnotation {
                    first_sample_index: shifted(annotation.first_sample_index, lane),
                    ..annotation.clone()
                })
            })
            .collect();
        annotations.sort_by_key(|annotation| annotation.first_sample_index);
        // Stamps, indices and times are those of the first stream.
        let first = parts.first().and_then(Option::as_deref);
        let mut merged = Description {
            first_sample_index: lanes()
                .filter_map(|(lane, part)| Some(shifted(part.as_ref()?.first_sample_index, lane)))
                .next()
                .unwrap_or(0),
            channels: channels.collect(),
            clock: first.and_then(|first| first.clock),
            measured: first.and_then(|first| first.measured),
            recorded_at: first.and_then(|first| first.recorded_at),
            recorded_error_ns: first.and_then(|first| first.recorded_error_ns),
            recorded_axis: first.and_then(|first| first.recorded_axis),
            annotations,
            ..any.clone()
        };
        merged.bound_annotations();
        merged
    }

    /// Sends the next frame, where all streams have samples. Returns whether there was memory.
    fn push(&mut self, begin: i64, end: i64, output: &mut Outputs, ctx: &Context) -> StageResult<bool> {
        self.describe();
        let first = self.lanes[0].header;
        let position = self.last.map_or(begin, |last| last.next_sample_index() as i64);
        let gap = (begin - position).max(0) as u64;
        let dropped = self
            .lanes
            .iter()
            .map(|lane| lane.drops.map_or(0, |drops| lane.header.sg_drops_total.saturating_sub(drops)));
        // A gap common to all counts once.
        let dropped = dropped.sum::<u64>().min(if gap > 0 { gap } else { u64::MAX });
        let since_ns = match first.sample_rate_hz {
            rate_hz if rate_hz > 0.0 => (self.lanes[0].offset(begin) as f64 / rate_hz * 1e9) as u64,
            _ => 0,
        };
        let header = Header {
            // A loss that no generator reported was at least one frame.
            sequence: self.last.map_or(0, |last| last.sequence + 1) + u64::from(gap > dropped),
            producer_ts_ns: first.producer_ts_ns.saturating_add(since_ns),
            channel_count: self.lanes.iter().map(|lane| lane.header.channel_count).sum(),
            format: first.format,
            block_length_samples: (end - begin) as u32,
            sample_rate_hz: first.sample_rate_hz,
            sg_drops_total: self.last.map_or(0, |last| last.sg_drops_total).saturating_add(dropped),
            first_sample_index: begin as u64,
        };
        let lanes = &self.lanes;
        let fill = |channel: usize, out: &mut [u8]| {
            let mut own = channel;
            for lane in lanes {
                let channels = lane.header.channel_count as usize;
                if own < channels {
                    return lane.copy(own, begin, out);
                }
                own -= channels;
            }
        };
        if !self.rewriter.push_bytes(&header, fill, output, ctx)? {
            return Ok(false);
        }
        self.last = Some(header);
        self.counters.add(0, gap);
        let mut left_out = 0;
        for lane in &mut self.lanes {
            lane.drops = Some(lane.header.sg_drops_total);
            left_out += (begin - lane.begin) as u64;
            lane.begin = end;
        }
        self.counters.add(1, left_out);
        Ok(true)
    }
}

impl Lane {
    /// Advances to the next frame with samples, in this batch or the next. Returns whether there is one.
    fn advance(&mut self, port: usize, input: &mut Inputs) -> Result<bool, Error> {
        while self.begin >= self.end {
            let end = self.end;
            if self.batch.as_ref().is_none_or(|batch| self.frame + 1 >= batch.len()) {
                self.batch = input.pop(port);
                self.frame = 0;
            } else {
                self.frame += 1;
            }
            let next = self.batch.as_ref().and_then(|batch| batch.frames().nth(self.frame));
            let Some(next) = next.map(|frame| frame.header()) else { return Ok(false) };
            let is_other = self.header.channel_count != 0 && next.channel_count != self.header.channel_count;
            let was = self.header;
            self.header = next;
            self.enter()?;
            if is_other || was.channel_count != 0 && self.begin < end {
                let text = |header: &Header| {
                    format!("{} channels at sample {}", header.channel_count, header.first_sample_index)
                };
                return Err(Error::Changed { was: text(&was), is: text(&next) });
            }
        }
        Ok(true)
    }

    fn enter(&mut self) -> Result<(), Error> {
        let index = i64::try_from(self.header.first_sample_index).unwrap_or(i64::MAX);
        let placed = index.checked_add(self.shift);
        let end = placed.and_then(|begin| begin.checked_add(self.header.block_length_samples.into()));
        let (Some(begin), Some(end)) = (placed, end) else {
            let (got, expected) = (self.header.first_sample_index, i64::MAX as u64);
            return Err(Error::Shape { what: "sample index of a merged stream", got, expected });
        };
        (self.begin, self.end) = (begin, end);
        Ok(())
    }

    /// Number of samples in the frame before this position.
    fn offset(&self, place: i64) -> usize {
        (place - (self.end - i64::from(self.header.block_length_samples))) as usize
    }

    /// Copies samples of a channel from a position on.
    fn copy(&self, channel: usize, begin: i64, out: &mut [u8]) {
        let frame = self.batch.as_ref().and_then(|batch| batch.frames().nth(self.frame));
        if let Some(bytes) = frame.and_then(|frame| frame.channel_bytes(channel).ok()) {
            let from = self.offset(begin) * self.header.format.bytes();
            out.copy_from_slice(&bytes[from..from + out.len()]);
        }
    }
}

impl Stage for MergeStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.lanes.is_empty() {
            self.lanes.resize_with(input.ports(), Lane::default);
        }
        for _ in 0..FRAMES_PER_STEP {
            let mut is_waiting = false;
            for port in 0..self.lanes.len() {
                if !self.lanes[port].advance(port, input)? {
                    if input.has_ended(port) {
                        return Ok(Outcome::End);
                    }
                    is_waiting = true;
                }
            }
            if is_waiting {
                self.rewriter.flush(output, ctx);
                return Ok(Outcome::WantsInput);
            }
            if !self.is_aligned {
                self.begin()?;
            }
            let begin = self.lanes.iter().map(|lane| lane.begin).max().unwrap_or(0);
            let end = self.lanes.iter().map(|lane| lane.end).min().unwrap_or(0);
            if begin < end {
                if !self.push(begin, end, output, ctx)? {
                    return Ok(Outcome::Again);
                }
                continue;
            }
            // The other streams have nothing here.
            for lane in self.lanes.iter_mut().filter(|lane| lane.end <= begin) {
                self.counters.add(1, (lane.end - lane.begin) as u64);
                lane.begin = lane.end;
            }
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.rewriter.flush(output, ctx);
        if let Some(end) = ctx.end_of_stream(self.last) {
            ctx.set_end_of_stream(end);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }

    fn ports(&self) -> Ports {
        Merge::PORTS
    }
}

/// Ends a step even if all streams have more.
const FRAMES_PER_STEP: usize = 256;

#[cfg(test)]
mod tests {
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
            headers
                .iter()
                .all(|it| it.producer_ts_ns.abs_diff(1_000_000 + it.first_sample_index * 1_000) <= 1)
        );
        assert_eq!((counted(&snapshot, "gap_samples"), counted(&snapshot, "left_out_samples")), (0, 0));
    }

    #[test]
    fn a_gap_in_one_is_a_gap_and_what_the_other_has_there_is_counted() {
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
    fn what_both_generators_dropped_stays_theirs() {
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
    fn what_cannot_be_merged_is_refused() {
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
            let labels: Vec<_> = made
                .annotations
                .iter()
                .map(|it| (it.first_sample_index, it.label.clone().unwrap()))
                .collect();
            // Index 10 of the second stream is index 20 of the first.
            let mut expected = vec![(20, "two".to_owned()), (30, "one".to_owned())];
            if !is_first_described {
                expected.pop();
            }
            assert_eq!(labels, expected);
            assert_eq!(made.clock, if is_first_described { clock(7) } else { None });
        }
    }
}
