//! Extremes of stretches of a recording, from its summary: only the samples at the edges of a stretch are read.

use std::ops::Range;

use grebe_frame::SampleFormat;
use grebe_recording::{Error, Extremes, SampleFile, Summary};

/// A recording that has a summary of just its samples.
pub(crate) struct Envelope<'a> {
    pub(crate) file: &'a mut SampleFile,
    pub(crate) summary: &'a Summary,
    pub(crate) nodes: Vec<Extremes>,
    pub(crate) numbers: Vec<f32>,
}

/// Whether a summary keeps samples of this format as they are.
pub(crate) fn is_exact(format: SampleFormat) -> bool {
    !matches!(format, SampleFormat::I32 | SampleFormat::F64)
}

impl<'a> Envelope<'a> {
    pub(crate) fn new(file: &'a mut SampleFile, summary: &'a Summary) -> Self {
        Self { file, summary, nodes: Vec::new(), numbers: Vec::new() }
    }

    /// Smallest and largest sample of a lane (a channel, or I or Q of one) within these positions of the recording.
    /// Samples of cu8 are centred at 0.
    ///
    /// # Errors
    /// Errors of the files.
    pub(crate) fn extremes(&mut self, lane: usize, places: Range<u64>) -> Result<Extremes, Error> {
        let mut found = Extremes { min: f32::INFINITY, max: f32::NEG_INFINITY };
        self.add(lane, places, u64::BITS - 1, &mut found)?;
        Ok(found)
    }

    /// Adds the whole nodes of the coarsest level up to this one, and the rest at both ends by finer ones.
    fn add(
        &mut self,
        lane: usize,
        places: Range<u64>,
        log2_max: u32,
        found: &mut Extremes,
    ) -> Result<(), Error> {
        if places.is_empty() {
            return Ok(());
        }
        let log2_max = log2_max.min((places.end - places.start).ilog2());
        let Some(log2) = Summary::level(log2_max) else { return self.add_samples(lane, places, found) };
        let nodes = places.start.div_ceil(1 << log2)..places.end >> log2;
        if nodes.is_empty() {
            return self.add(lane, places, log2 - 1, found);
        }
        let known = nodes.start << log2..nodes.end << log2;
        self.nodes.clear();
        let read = self.summary.extremes(lane, log2, nodes, &mut self.nodes);
        if read.is_err() {
            // A damaged summary costs time, and nothing else.
            return self.add_samples(lane, places, found);
        }
        self.nodes.iter().for_each(|&node| found.merge(node));
        self.add(lane, places.start..known.start, log2 - 1, found)?;
        self.add(lane, known.end..places.end, log2 - 1, found)
    }

    fn add_samples(&mut self, lane: usize, places: Range<u64>, found: &mut Extremes) -> Result<(), Error> {
        let of_channel = self.file.format().components();
        let mut at = places.start;
        while at < places.end {
            let length = STEP_SAMPLES.min(places.end - at);
            self.file.block(at, length as usize)?.numbers(lane / of_channel, &mut self.numbers)?;
            for &number in self.numbers.iter().skip(lane % of_channel).step_by(of_channel) {
                found.merge(Extremes { min: number, max: number });
            }
            at += length;
        }
        Ok(())
    }
}

/// Read at a time.
const STEP_SAMPLES: u64 = 64 << 10;
