//! Combines the channels of several streams.

mod lane;

use std::sync::Arc;

use grebe_flow::{
    Context, Counters, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage, StageResult,
};
use grebe_frame::{
    Batch, ChannelDescription, Description, Header, MAX_CHANNELS, SampleFormat, StreamAnnotation,
};
use lane::Lane;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::stream::is_same;

/// Merges two streams of the same rate into one, with the channels of `first` before those of `second`. Several of these
/// stages merge more streams. Samples that only one stream has are dropped, and counted as `left_out_samples`. Ends with the
/// stream that ends first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Alignment: by sample `index`, or by the `time` stamps of the first frames if the senders share a clock.
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
mod tests;
