//! Search for one kind of event in one lane.

mod burst;
mod burst_band;
mod detector;
mod number;
mod walk;
mod wanted;

use std::borrow::Cow;
use std::ops::Range;

use anyhow::Result;
use grebe_frame::SampleFormat;
use grebe_recording::Block;
use grebe_scope::{instantaneous_frequency, magnitude, magnitude_db, phase};
use grebe_view::{LaneId, Part};
use serde_json::{Map, Value};

use burst::BurstSearch;
pub(crate) use burst_band::BurstBand;
use detector::Detector;
pub(crate) use detector::Hit;
use number::Number;
pub(crate) use walk::Walk;
pub(crate) use wanted::{Signal, Wanted};

/// Search over consecutive samples of a signal.
pub(crate) trait Search: Send {
    /// Pieces of a signal of `samples` samples, for [`learn`](Self::learn) before the search begins.
    fn pieces(&self, _samples: u64) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Learns the noise from a piece of the signal.
    fn learn(&mut self, _block: &Block<'_>) -> Result<()> {
        Ok(())
    }

    /// Searches the next samples; a gap in the index restarts the search.
    fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()>;

    /// Ends a lasting event.
    fn end(&mut self, found: &mut Vec<Hit>);
}

impl Wanted {
    /// The search of a lane.
    pub(crate) fn search(self, lane: LaneId, signal: &Signal) -> Result<Box<dyn Search>> {
        if let Some(conditions) = self.burst {
            return Ok(Box::new(BurstSearch::new(&self, conditions, lane, signal)?));
        }
        let (format, rate_hz) = (signal.format, signal.sample_rate_hz);
        if format == SampleFormat::I16 && self.fits_i16() {
            let samples = Plain { channel: lane.channel };
            return Ok(Box::new(LaneSearch { detector: Detector::<i16>::new(&self)?, samples, next: None }));
        }
        let cycles_to_unit = if rate_hz > 0.0 { rate_hz as f32 } else { 1.0 };
        let full_scale = signal.full_scale();
        let samples =
            Computed { lane, middle: self.middle, full_scale, cycles_to_unit, ..Computed::default() };
        Ok(Box::new(LaneSearch { detector: Detector::<f32>::new(&self)?, samples, next: None }))
    }
}

impl Search for BurstSearch {
    fn pieces(&self, samples: u64) -> Vec<Range<u64>> {
        BurstSearch::pieces(self, samples)
    }

    fn learn(&mut self, block: &Block<'_>) -> Result<()> {
        BurstSearch::learn(self, block)
    }

    fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()> {
        BurstSearch::scan(self, first_index, block, found)
    }

    fn end(&mut self, found: &mut Vec<Hit>) {
        BurstSearch::end(self, found);
    }
}

struct LaneSearch<V: Number, S> {
    detector: Detector<V>,
    samples: S,
    next: Option<u64>,
}

/// Samples of a lane.
trait Samples<V: Clone> {
    /// Samples of a block; `is_next` if they follow the previous ones.
    fn of<'a>(&'a mut self, block: &Block<'a>, is_next: bool) -> Result<Cow<'a, [V]>>;
}

/// Samples as in the file.
struct Plain {
    channel: usize,
}

/// Samples computed from those in the file.
struct Computed {
    lane: LaneId,
    middle: f32,
    full_scale: f64,
    cycles_to_unit: f32,
    numbers: Vec<f32>,
    i: Vec<f32>,
    q: Vec<f32>,
    last: Option<(f32, f32)>,
}

impl Default for Computed {
    fn default() -> Self {
        let (numbers, i, q) = (Vec::new(), Vec::new(), Vec::new());
        let lane = LaneId::real(0);
        Self { lane, middle: 0.0, full_scale: 1.0, cycles_to_unit: 1.0, numbers, i, q, last: None }
    }
}

impl Samples<i16> for Plain {
    fn of<'a>(&'a mut self, block: &Block<'a>, _: bool) -> Result<Cow<'a, [i16]>> {
        Ok(block.channel::<i16>(self.channel)?)
    }
}

impl Samples<f32> for Computed {
    fn of<'a>(&'a mut self, block: &Block<'a>, is_next: bool) -> Result<Cow<'a, [f32]>> {
        block.numbers(self.lane.channel, &mut self.numbers)?;
        if !block.format().is_complex() {
            if self.middle != 0.0 {
                self.numbers.iter_mut().for_each(|number| *number -= self.middle);
            }
            return Ok(self.numbers.as_slice().into());
        }
        split(&self.numbers, &mut self.i, &mut self.q);
        let (i, q, out) = (&self.i, &self.q, &mut self.numbers);
        out.truncate(i.len());
        match self.lane.part {
            Part::I => return Ok(i.as_slice().into()),
            Part::Q => return Ok(q.as_slice().into()),
            Part::MagnitudeDb => magnitude_db(i, q, self.full_scale, out),
            Part::Phase => phase(i, q, out),
            Part::Frequency => {
                instantaneous_frequency(self.last.filter(|_| is_next), i, q, out);
                out.iter_mut().for_each(|cycles| *cycles *= self.cycles_to_unit);
                self.last = i.last().copied().zip(q.last().copied());
            }
            _ => magnitude(i, q, out),
        }
        Ok(self.numbers.as_slice().into())
    }
}

/// The components of complex samples.
fn split(numbers: &[f32], i: &mut Vec<f32>, q: &mut Vec<f32>) {
    let pairs = numbers.as_chunks::<2>().0;
    i.clear();
    i.extend(pairs.iter().map(|[i, _]| *i));
    q.clear();
    q.extend(pairs.iter().map(|[_, q]| *q));
}

impl<V: Number, S: Samples<V> + Send> Search for LaneSearch<V, S> {
    fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()> {
        let is_next = self.next == Some(first_index);
        if !is_next {
            self.detector.end(found);
        }
        let samples = self.samples.of(block, is_next)?;
        self.detector.scan(first_index, &samples, is_next, found);
        self.next = Some(first_index + samples.len() as u64);
        Ok(())
    }

    fn end(&mut self, found: &mut Vec<Hit>) {
        self.detector.end(found);
    }
}

/// Fields of the annotation of an event.
pub(crate) fn annotation_fields(
    label: &str,
    generator: &str,
    lane: Option<LaneId>,
    burst: Option<&BurstBand>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("core:label".to_owned(), label.into());
    fields.insert("core:generator".to_owned(), generator.into());
    let channel = lane.map(|lane| format!("channel {lane}"));
    let figures = burst.map(|burst| format!("SNR {:.1} dB, {:.1} dBFS", burst.snr_db, burst.power_dbfs));
    if channel.is_some() || figures.is_some() {
        let comment: Vec<String> = channel.into_iter().chain(figures).collect();
        fields.insert("core:comment".to_owned(), comment.join(", ").into());
    }
    if let Some((low_hz, high_hz)) = burst.map(BurstBand::edges_hz) {
        fields.insert("core:freq_lower_edge".to_owned(), low_hz.into());
        fields.insert("core:freq_upper_edge".to_owned(), high_hz.into());
    }
    fields
}
