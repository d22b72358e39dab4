//! Selects channels.

use grebe_flow::{Context, Fault, Inputs, Kind, Outcome, Outputs, Ports, Rewriter, Site, Stage, StageResult};
use grebe_frame::{Batch, Description, Frame, Header, MAX_CHANNELS};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Error;

/// Hands on the channels that are named, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Channels from 1 on, for example [1, 3]; one may stand there several times.
    pub channels: Vec<u32>,
}

impl Kind for Select {
    const NAME: &'static str = "select";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        let fault = |message: String| Err(Fault::new("channels", message));
        if self.channels.is_empty() || self.channels.len() > MAX_CHANNELS as usize {
            return fault(format!("{} channels are named: name 1 to 255", self.channels.len()));
        }
        match self.channels.iter().find(|channel| !(1..=MAX_CHANNELS).contains(channel)) {
            Some(channel) => fault(format!("invalid channel {channel}: give 1 to 255")),
            None => Ok(()),
        }
    }

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        let incoming = incoming.unwrap_or(MAX_CHANNELS);
        match self.channels.iter().find(|&&channel| channel > incoming) {
            Some(channel) => {
                Err(Fault::new("channels", format!("channel {channel} is named, the stream has {incoming}")))
            }
            None => Ok(Some(self.channels.len() as u32)),
        }
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(SelectStage::new(&self)))
    }
}

#[derive(Debug)]
pub(crate) struct SelectStage {
    /// From 0.
    channels: Vec<usize>,
    rewriter: Rewriter,
    /// Batch, and number of its finished frames.
    pending: Option<(Batch, usize)>,
}

impl SelectStage {
    pub(crate) fn new(select: &Select) -> Self {
        let channels = select.channels.iter().map(|&channel| channel.saturating_sub(1) as usize).collect();
        Self { channels, rewriter: Rewriter::default(), pending: None }
    }

    /// Whether the frame can pass unchanged.
    fn is_same(&self, header: &Header) -> bool {
        self.channels.len() == header.channel_count as usize
            && self.channels.iter().copied().eq(0..self.channels.len())
    }

    fn push(&mut self, frame: &Frame<'_>, output: &mut Outputs, ctx: &Context) -> StageResult<bool> {
        let header = frame.header();
        if let Some(&missing) =
            self.channels.iter().find(|&&channel| channel >= header.channel_count as usize)
        {
            let (got, expected) = (u64::from(header.channel_count), missing as u64 + 1);
            return Err(Error::Shape { what: "channels of the stream", got, expected }.into());
        }
        let fewer = Header { channel_count: self.channels.len() as u32, ..header };
        let fill = |at: usize, out: &mut [u8]| {
            // Its existence was checked above.
            out.copy_from_slice(frame.channel_bytes(self.channels[at]).unwrap_or_default());
        };
        Ok(self.rewriter.push_bytes(&fewer, fill, output, ctx)?)
    }
}

impl Stage for SelectStage {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let next = self.pending.take().or_else(|| Some((input.next()?, 0)));
        let Some((batch, done)) = next else { return Ok(Outcome::WantsInput) };
        if done == 0 && batch.frames().all(|frame| self.is_same(&frame.header())) {
            output.send(batch, ctx);
            return Ok(Outcome::Produced);
        }
        let selected = &self.channels;
        self.rewriter.describe(batch.description(), |input| {
            let channel = |&at: &usize| input.channels.get(at).cloned().unwrap_or_default();
            let is_any = selected.iter().any(|&at| at < input.channels.len());
            let channels = if is_any { selected.iter().map(channel).collect() } else { Vec::new() };
            Description { channels, ..input.clone() }
        });
        for (at, frame) in batch.frames().enumerate().skip(done) {
            if !self.push(&frame, output, ctx)? {
                self.pending = Some((batch, at));
                return Ok(Outcome::Again);
            }
        }
        self.rewriter.flush(output, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(end) = ctx.end_of_stream(None) {
            ctx.set_end_of_stream(Header { channel_count: self.channels.len() as u32, ..end });
        }
        Ok(())
    }

    fn ports(&self) -> Ports {
        Select::PORTS
    }
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageBench;
    use grebe_testing::stream::{batches_of, frames_of, stream};

    use super::*;

    fn selected(channels: &[u32], batches: Vec<Batch>) -> Result<Vec<Batch>, grebe_flow::Error> {
        let select = Select { channels: channels.to_vec() };
        select.check().unwrap();
        let mut bench = StageBench::new(SelectStage::new(&select))?;
        let mut made = Vec::new();
        for batch in batches {
            made.extend(bench.feed(batch)?);
        }
        made.extend(bench.end()?);
        Ok(made)
    }

    #[test]
    fn the_named_channels_come_out_in_their_order_with_the_gaps() {
        for channels in 1..=8u32 {
            let frames = [(0, 64), (64, 31), (200, 9), (209, 64)];
            let batches = batches_of(channels, &frames, 3);
            let before = frames_of(&batches);
            let wanted: Vec<u32> = (1..=channels).rev().step_by(2).collect();
            let after = frames_of(&selected(&wanted, batches).unwrap());
            assert_eq!(after.len(), frames.len());
            for ((header, samples), (was, were)) in after.iter().zip(&before) {
                assert_eq!(*header, Header { channel_count: wanted.len() as u32, ..*was });
                let expected: Vec<_> =
                    wanted.iter().map(|&channel| were[channel as usize - 1].clone()).collect();
                assert_eq!(*samples, expected);
            }
        }
    }

    #[test]
    fn select_makes_eight_channels_of_one() {
        // A full chunk gives more than a chunk.
        let frames: Vec<(u64, u32)> = (0..60).map(|frame| (frame * 500, 500)).collect();
        let after = frames_of(&selected(&[1; 8], batches_of(1, &frames, 60)).unwrap());
        assert_eq!(after.len(), 60);
        assert!(after.iter().all(|(_, samples)| samples.iter().all(|one| *one == samples[0])));
        assert!(after.windows(2).all(|pair| pair[0].0.sequence + 1 == pair[1].0.sequence));
    }

    #[test]
    fn a_channel_that_is_not_there_is_an_error() {
        let said = selected(&[3], stream(2, &[(0, 8)])).unwrap_err().to_string();
        assert_eq!(said, "stage: channels of the stream: 2 where 3 is expected");
        let select = Select { channels: vec![1, 4] };
        assert!(select.channels(Some(3)).is_err());
        assert_eq!(select.channels(None), Ok(Some(2)));
        assert!(Select { channels: vec![0] }.check().is_err());
        assert!(Select { channels: vec![] }.check().is_err());
        assert!(Select { channels: vec![256] }.check().is_err());
    }
}
