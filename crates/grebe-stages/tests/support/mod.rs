//! Shared support of the source tests: a generator, and stages that forward batches to the test.
#![allow(dead_code, reason = "not every test uses everything")]

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Header, SampleFormat};

pub(crate) fn headers(batches: &[Batch]) -> Vec<Header> {
    batches.iter().flat_map(|batch| batch.frames()).map(|frame| frame.header()).collect()
}

pub(crate) fn channel(batches: &[Batch], channel: usize) -> Vec<i16> {
    let frames = batches.iter().flat_map(|batch| batch.frames());
    frames.flat_map(|frame| frame.channel::<i16>(channel).unwrap().into_owned()).collect()
}

/// Forwards batches to the test.
pub(crate) struct Tray(pub(crate) std::sync::mpsc::Sender<Batch>);

impl Stage for Tray {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.0.send(batch)?;
        Ok(Outcome::Produced)
    }
}

/// Forwards headers to the test.
pub(crate) struct Headers(pub(crate) std::sync::mpsc::Sender<Header>);

impl Stage for Headers {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        batch.frames().try_for_each(|frame| self.0.send(frame.header()))?;
        Ok(Outcome::Produced)
    }
}

pub(crate) const END: Header = Header {
    format: SampleFormat::I16,
    sequence: 0,
    producer_ts_ns: 0,
    channel_count: 2,
    block_length_samples: 0,
    sample_rate_hz: 1e6,
    sg_drops_total: 0,
    first_sample_index: 0,
};
