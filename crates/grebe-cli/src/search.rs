//! Search for one kind of event in one lane.

mod number;
mod walk;

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Result;
use grebe_frame::{ChannelDescription, Component, Description, SampleFormat};
use grebe_recording::{Block, SampleFile};
use grebe_scope::{
    Condition, Passage, Polarity, Slope, Trigger, Value, instantaneous_frequency, magnitude, magnitude_db,
    phase,
};
use grebe_view::{LaneId, Part};

use crate::cli::{Conditions, EventKind};
use crate::ending::Usage;
use number::Number;
pub(crate) use walk::Walk;

/// Event: index of the first sample, and duration in samples, 0 for an instant.
pub(crate) type Hit = (u64, u64);

/// Search over consecutive samples of a signal.
pub(crate) trait Search: Send {
    /// Searches the next samples; a gap in the index restarts the search.
    fn scan(&mut self, first_index: u64, block: &Block<'_>, found: &mut Vec<Hit>) -> Result<()>;

    /// Ends a lasting event.
    fn end(&mut self, found: &mut Vec<Hit>);
}

/// Signal to search: format, channels, units.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    pub(crate) format: SampleFormat,
    pub(crate) channels: usize,
    /// 0: unknown.
    pub(crate) sample_rate_hz: f64,
    pub(crate) description: Option<Arc<Description>>,
}

impl Signal {
    pub(crate) fn of(file: &SampleFile) -> Self {
        Self {
            format: file.format(),
            channels: file.channels(),
            sample_rate_hz: file.sample_rate_hz(),
            description: file.description(0).cloned(),
        }
    }

    /// Amplitude of a full-scale sine.
    fn full_scale(&self) -> f64 {
        let of_bits = self.description.as_ref().and_then(|description| description.full_scale(self.format));
        of_bits.unwrap_or_else(|| full_scale(self.format))
    }

    /// The lanes to search: the named ones, or all.
    ///
    /// # Errors
    /// [`Usage`] if a lane does not exist.
    pub(crate) fn lanes(&self, named: &[LaneId]) -> Result<Vec<LaneId>> {
        let is_complex = self.format.is_complex();
        let part = if is_complex { Part::Magnitude } else { Part::Real };
        if named.is_empty() {
            return Ok((0..self.channels).map(|channel| LaneId { channel, part }).collect());
        }
        let lane = |&lane: &LaneId| {
            let usage = |what: String| Err(Usage(format!("--channels {lane}: {what}")).into());
            match lane.part {
                Part::Math => usage("a recording has no such channel".to_owned()),
                _ if lane.channel >= self.channels => usage(match self.channels {
                    1 => "there is 1 channel".to_owned(),
                    channels => format!("there are {channels} channels"),
                }),
                Part::Real => Ok(LaneId { part, ..lane }),
                _ if !is_complex => usage(format!("{} samples have no parts", self.format)),
                _ => Ok(lane),
            }
        };
        named.iter().map(lane).collect()
    }
}

/// Conditions in samples and counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    kind: EventKind,
    slope: Slope,
    level: f64,
    low: f64,
    high: f64,
    hysteresis: f64,
    least_samples: u64,
    most_samples: u64,
    window_samples: u64,
    holdoff_samples: u64,
    /// Power of 0 dB.
    full_power: f64,
    /// Zero level: the middle of `u8`.
    middle: f32,
}

impl Wanted {
    /// The conditions for a lane of this signal; `option` is the option that names the kind.
    ///
    /// # Errors
    /// [`Usage`] if a level or a time is missing.
    pub(crate) fn of(
        option: &str,
        kind: EventKind,
        options: &Conditions,
        lane: LaneId,
        signal: &Signal,
    ) -> Result<Self> {
        use EventKind::{Dropout, Edge, Level, Power, Pulse, Runt, Silence, Window};
        let usage = |what: &str| Usage(format!("{option} {} needs {what}", kind.name()));
        let needs = |value: Option<f64>, what| value.ok_or_else(|| usage(what));
        let rate_hz = signal.sample_rate_hz;
        let samples = |time: std::time::Duration| {
            if rate_hz <= 0.0 && !time.is_zero() {
                let what = "unknown sample rate: give it, as in 'x.cu8?rate=2.4M'";
                return Err(Usage(what.to_owned()));
            }
            Ok((time.as_secs_f64() * rate_hz).round() as u64)
        };
        let (mut level, mut low, mut high) = (0.0, 0.0, 0.0);
        match kind {
            Edge | Pulse | Dropout | Level => level = needs(options.level, "--level VALUE")?,
            Power | Silence => level = needs(options.level, "--level DB, as in --level -30")?,
            Runt | Window => {
                low = needs(options.low, "--low VALUE and --high VALUE")?;
                high = needs(options.high, "--low VALUE and --high VALUE")?;
            }
            EventKind::Gap => {}
        }
        if kind == Dropout && options.longer.is_none() {
            return Err(usage("--longer TIME").into());
        }
        let is_power = matches!(kind, Power | Silence);
        let units = Units::of(lane, signal);
        let (format, full_scale) = (signal.format, signal.full_scale());
        let is_tone = lane.part == Part::Magnitude;
        let window_samples = if rate_hz > 0.0 { samples(options.window)? } else { WINDOW_SAMPLES };
        Ok(Self {
            kind,
            slope: options.slope,
            level: if is_power { level } else { units.counts(level) },
            low: units.counts(low),
            high: units.counts(high),
            hysteresis: units.distance(options.hysteresis).abs(),
            least_samples: options.longer.map(samples).transpose()?.unwrap_or(0).max(1),
            most_samples: options.shorter.map(samples).transpose()?.unwrap_or(u64::MAX),
            window_samples: window_samples.max(1),
            holdoff_samples: samples(options.holdoff)?,
            full_power: full_scale * full_scale * if is_tone { 1.0 } else { 0.5 },
            middle: if is_power && format == SampleFormat::U8 { 128.0 } else { 0.0 },
        })
    }

    /// Whether all levels are in the range of 16 bits.
    fn fits_i16(&self) -> bool {
        let levels = if matches!(self.kind, EventKind::Power | EventKind::Silence) {
            [0.0; 3]
        } else {
            [self.level, self.low, self.high]
        };
        levels.iter().all(|level| (-32_768.0..=32_767.0).contains(level)) && self.hysteresis <= 65_535.0
    }

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

/// Scale of a lane.
struct Units {
    scale: f64,
    offset: f64,
}

impl Units {
    fn of(lane: LaneId, signal: &Signal) -> Self {
        let said = signal.description.as_ref().and_then(|description| description.channels.get(lane.channel));
        let ChannelDescription { scale, offset, .. } = said.cloned().unwrap_or_default();
        match lane.part {
            Part::Real | Part::I | Part::Q => Self { scale, offset },
            Part::Magnitude => Self { scale: scale.abs(), offset: 0.0 },
            _ => Self { scale: 1.0, offset: 0.0 },
        }
    }

    fn counts(&self, value: f64) -> f64 {
        (value - self.offset) / self.scale
    }

    fn distance(&self, value: f64) -> f64 {
        value / self.scale
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

/// Detector of events.
enum Detector<V: Value> {
    Moments(Trigger<V>),
    Level(Lasting, Box<Edges<V>>),
    Power(Lasting, Powers),
}

/// Entry beyond a level, and return.
struct Edges<V: Value> {
    begins: Trigger<V>,
    ends: Trigger<V>,
    is_beyond: Box<dyn Fn(V) -> bool + Send>,
}

/// Mean squares per window.
struct Powers {
    window_samples: u64,
    /// Threshold of the sum over a window.
    threshold: f64,
    is_above: bool,
    sum: f64,
    count: u64,
}

/// Lasting event.
struct Lasting {
    since: Option<u64>,
    until: u64,
    least_samples: u64,
    most_samples: u64,
    holdoff_samples: u64,
    ready_from: u64,
}

impl<V: Number> Detector<V> {
    fn new(wanted: &Wanted) -> Result<Self> {
        let hysteresis = V::hysteresis(wanted.hysteresis);
        let Wanted { slope, level, low, high, .. } = *wanted;
        let falls = slope == Slope::Falling;
        let polarity = if falls { Polarity::Negative } else { Polarity::Positive };
        let of_level = if falls { V::down(level) } else { V::up(level) };
        let condition = match wanted.kind {
            EventKind::Pulse => Condition::PulseWidth {
                polarity,
                level: V::up(level),
                hysteresis,
                samples: wanted.least_samples..=wanted.most_samples,
            },
            EventKind::Runt => Condition::Runt { polarity, low: V::up(low), high: V::up(high) },
            EventKind::Window => {
                let passage = if falls { Passage::Enters } else { Passage::Leaves };
                Condition::Window { passage, low: V::up(low), high: V::down(high), hysteresis }
            }
            EventKind::Dropout => {
                Condition::Dropout { level: V::up(level), hysteresis, samples: wanted.least_samples }
            }
            EventKind::Level => return Self::level(wanted, of_level),
            EventKind::Power | EventKind::Silence => {
                let window = wanted.window_samples as f64;
                let powers = Powers {
                    window_samples: wanted.window_samples,
                    threshold: 10f64.powf(level / 10.0) * wanted.full_power * window,
                    is_above: wanted.kind == EventKind::Power,
                    sum: 0.0,
                    count: 0,
                };
                return Ok(Detector::Power(Lasting::new(wanted), powers));
            }
            EventKind::Edge | EventKind::Gap => Condition::Edge { slope, level: of_level, hysteresis },
        };
        Ok(Detector::Moments(Trigger::new(condition, wanted.holdoff_samples)?))
    }

    fn level(wanted: &Wanted, level: V) -> Result<Self> {
        let at = level.to_f64();
        let edge = |slope, level, hysteresis| Trigger::new(Condition::Edge { slope, level, hysteresis }, 0);
        // It ends at the first sample beyond the hysteresis on the other side, mirroring its start.
        let (begins, ends) = if wanted.slope == Slope::Falling {
            let back = V::above(at + wanted.hysteresis);
            let width = V::hysteresis((back.to_f64() - V::above(at).to_f64()).max(0.0));
            (
                edge(Slope::Falling, level, V::hysteresis(wanted.hysteresis))?,
                edge(Slope::Rising, back, width)?,
            )
        } else {
            let back = V::below(at - wanted.hysteresis);
            let width = V::hysteresis((V::below(at).to_f64() - back.to_f64()).max(0.0));
            (
                edge(Slope::Rising, level, V::hysteresis(wanted.hysteresis))?,
                edge(Slope::Falling, back, width)?,
            )
        };
        let is_beyond: Box<dyn Fn(V) -> bool + Send> = if wanted.slope == Slope::Falling {
            Box::new(move |sample| sample <= level)
        } else {
            Box::new(move |sample| sample >= level)
        };
        Ok(Detector::Level(Lasting::new(wanted), Box::new(Edges { begins, ends, is_beyond })))
    }

    fn scan(&mut self, first_index: u64, samples: &[V], is_next: bool, found: &mut Vec<Hit>) {
        match self {
            Detector::Moments(trigger) => {
                trigger.scan(first_index, samples, |event| found.push((event.index, 0)))
            }
            Detector::Level(lasting, edges) => {
                if !is_next && samples.first().is_some_and(|&first| (edges.is_beyond)(first)) {
                    lasting.begin(first_index);
                }
                let (mut begins, mut ends) = (Vec::new(), Vec::new());
                edges.begins.scan(first_index, samples, |event| begins.push(event.index));
                edges.ends.scan(first_index, samples, |event| ends.push(event.index));
                let mut begins = begins.into_iter().peekable();
                for end in ends {
                    while let Some(begin) = begins.next_if(|&begin| begin < end) {
                        lasting.begin(begin);
                    }
                    lasting.end(end, found);
                }
                begins.for_each(|begin| lasting.begin(begin));
                lasting.until = first_index + samples.len() as u64;
            }
            Detector::Power(lasting, powers) => powers.scan(first_index, samples, lasting, found),
        }
    }

    /// End of the samples.
    fn end(&mut self, found: &mut Vec<Hit>) {
        match self {
            Detector::Moments(_) => {}
            Detector::Level(lasting, _) => lasting.end(lasting.until, found),
            Detector::Power(lasting, powers) => {
                // An incomplete last window does not count.
                (powers.sum, powers.count) = (0.0, 0);
                lasting.end(lasting.until, found);
            }
        }
    }
}

impl Powers {
    fn scan<V: Number>(
        &mut self,
        first_index: u64,
        samples: &[V],
        lasting: &mut Lasting,
        found: &mut Vec<Hit>,
    ) {
        let mut at = 0;
        while at < samples.len() {
            let count = (self.window_samples - self.count).min((samples.len() - at) as u64) as usize;
            self.sum += V::squares(&samples[at..at + count]);
            self.count += count as u64;
            at += count;
            if self.count == self.window_samples {
                let end = first_index + at as u64;
                if (self.sum >= self.threshold) == self.is_above {
                    lasting.begin(end - self.window_samples);
                    lasting.until = end;
                } else {
                    lasting.end(end - self.window_samples, found);
                }
                (self.sum, self.count) = (0.0, 0);
            }
        }
    }
}

impl Lasting {
    fn new(wanted: &Wanted) -> Self {
        Self {
            since: None,
            until: 0,
            least_samples: wanted.least_samples,
            most_samples: wanted.most_samples,
            holdoff_samples: wanted.holdoff_samples,
            ready_from: 0,
        }
    }

    fn begin(&mut self, index: u64) {
        self.since.get_or_insert(index);
    }

    fn end(&mut self, index: u64, found: &mut Vec<Hit>) {
        let Some(since) = self.since.take() else { return };
        let length = index - since;
        if (self.least_samples..=self.most_samples).contains(&length) && since >= self.ready_from {
            self.ready_from = since.saturating_add(self.holdoff_samples);
            found.push((since, length));
        }
    }
}

/// Amplitude of a full-scale sine.
fn full_scale(format: SampleFormat) -> f64 {
    match format.component() {
        Component::I8 | Component::U8 => 128.0,
        Component::I16 => 32_768.0,
        Component::I32 => 2_147_483_648.0,
        Component::F32 | Component::F64 => 1.0,
    }
}

/// Window of powers if the rate is unknown.
const WINDOW_SAMPLES: u64 = 1_000;
