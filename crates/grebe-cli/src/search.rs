//! Looking for one kind of event in one lane.

mod detector;
mod number;
mod walk;
mod wanted;

use std::borrow::Cow;

use anyhow::Result;
use grebe_frame::SampleFormat;
use grebe_recording::Block;
use grebe_scope::{instantaneous_frequency, magnitude, magnitude_db, phase};
use grebe_view::{LaneId, Part};

use detector::Detector;
pub(crate) use detector::Hit;
use number::Number;
pub(crate) use walk::Walk;
pub(crate) use wanted::{Signal, Wanted};

/// A search that is told the samples of a signal in their order.
pub(crate) trait Search: Send {
    /// Looks at the next samples; an index other than the next one begins anew.
    fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()>;

    /// What lasts ends here.
    fn end(&mut self, found: &mut Vec<Hit>);
}

impl Wanted {
    /// The search of a lane.
    pub(crate) fn search(self, lane: LaneId, signal: &Signal) -> Result<Box<dyn Search>> {
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

struct LaneSearch<V: Number, S> {
    detector: Detector<V>,
    samples: S,
    next: Option<u64>,
}

/// The samples of a lane.
trait Samples<V: Clone> {
    /// Of a block; `is_next` where they follow those before.
    fn of<'a>(&'a mut self, block: &Block<'a>, is_next: bool) -> Result<Cow<'a, [V]>>;
}

/// As they stand in the file.
struct Plain {
    channel: usize,
}

/// Computed of those in the file.
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
        self.i.clear();
        self.q.clear();
        for [i, q] in self.numbers.as_chunks::<2>().0 {
            self.i.push(*i);
            self.q.push(*q);
        }
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
