//! Which channels the lines have, as the lines themselves say it.

use std::fmt;

use grebe_frame::{ChannelDescription, MAX_CHANNELS, SampleFormat};
use grebe_process::numbers::{Component, with_component};

use crate::bridges::text::fields::{Fields, number};
use crate::bridges::text::heading::Heading;

/// Takes lines, and keeps the newest value of each channel. The channels are those of the first line that is whole; in lines of
/// names others are added where they appear. Memory is bounded by 255 channels.
#[derive(Debug)]
pub(super) struct Columns {
    format: SampleFormat,
    fixed: Option<Fixed>,
    asked_time: Option<TimeColumn>,
    shape: Option<Shape>,
    /// What each column is, where lines have no names.
    places: Vec<Place>,
    channels: Vec<ChannelDescription>,
    newest: Vec<f64>,
    time_s: Option<f64>,
    heading: Heading,
    /// Lines in a row that are unlike the ones before, and alike.
    others: (Shape, u32),
    /// Of one line: the numbers, and what the fields of names are.
    numbers: Vec<Option<f64>>,
    named: Vec<Place>,
    /// Values of the newest line that it did not say.
    held: u64,
    unknown_names: u64,
}

/// Channels that stay as they are, whatever comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// So many columns.
    Count(usize),
    Names(Vec<String>),
}

/// Which column is the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    Name(String, TimeUnit),
    /// From 0.
    Number(usize, TimeUnit),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    S,
    Ms,
    Us,
    Ns,
}

/// What a line turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Empty, or a comment.
    Nothing,
    /// Values.
    Row,
    /// Values, from here on of other channels.
    Changed,
    /// Values, from here on of more channels.
    Added,
    /// Words alone: names of columns, or a message.
    Words,
    /// Neither: half of one, garbage, or another kind of line than the ones before.
    Bad,
}

/// What tells lines from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Each value has its name.
    Named,
    /// So many values without names.
    Columns(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Time(TimeUnit),
    Channel(usize),
    /// A channel that there was not yet.
    New,
    LeftOut,
}

impl Columns {
    pub(super) fn new(format: SampleFormat, fixed: Option<Fixed>, time: Option<TimeColumn>) -> Self {
        let mut columns = Self {
            format,
            fixed,
            asked_time: time,
            shape: None,
            places: Vec::new(),
            channels: Vec::new(),
            newest: Vec::new(),
            time_s: None,
            heading: Heading::default(),
            others: (Shape::Named, 0),
            numbers: Vec::with_capacity(FIELDS_MAX),
            named: Vec::with_capacity(FIELDS_MAX),
            held: 0,
            unknown_names: 0,
        };
        if let Some(Fixed::Names(names)) = &columns.fixed {
            let channels = names.iter().map(|name| channel(name, "")).collect();
            columns.set_channels(channels);
        }
        columns
    }

    /// Takes a line without its end.
    pub(super) fn take(&mut self, line: &[u8]) -> Line {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Line::Nothing;
        }
        if let Some(comment) = line.strip_prefix(b"#").or_else(|| line.strip_prefix(b"//")) {
            // Of a file; later ones say something else.
            if self.shape.is_none() {
                self.heading.keep(comment);
            }
            return Line::Nothing;
        }
        match self.read(line) {
            Some(Some(shape)) => {
                let taken = match shape {
                    Shape::Named => self.take_named(line),
                    Shape::Columns(count) => self.take_columns(count),
                };
                if taken.is_some() {
                    self.heading.forget();
                }
                taken.unwrap_or(Line::Bad)
            }
            Some(None) => {
                self.heading.keep(line);
                Line::Words
            }
            None => {
                self.heading.forget();
                Line::Bad
            }
        }
    }

    pub(super) fn channels(&self) -> &[ChannelDescription] {
        &self.channels
    }

    /// The newest value of each channel.
    pub(super) fn values(&self) -> &[f64] {
        &self.newest
    }

    /// When the newest line was made, in seconds, where it says so.
    pub(super) fn time_s(&self) -> Option<f64> {
        self.time_s
    }

    /// What stands for a value that there was not yet.
    pub(super) fn missing(&self) -> f64 {
        if self.format.component().is_float() { f64::NAN } else { 0.0 }
    }

    /// Values that lines did not say since this was asked last, and names that nobody asked for.
    pub(super) fn drain_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.held), std::mem::take(&mut self.unknown_names))
    }

    /// Reads the numbers of a line: its shape; nothing where it is words alone. `None`: it is neither.
    fn read(&mut self, line: &[u8]) -> Option<Option<Shape>> {
        self.numbers.clear();
        let (mut words, mut named) = (0, 0);
        for field in Fields::of(line) {
            if self.numbers.len() == FIELDS_MAX {
                return None;
            }
            let value = number(field.value);
            let is_named = !field.name.is_empty();
            named += usize::from(is_named);
            words += usize::from(value.is_none() && (is_named || !field.value.is_empty()));
            self.numbers.push(value);
        }
        let count = self.numbers.len();
        if words == count && named == 0 {
            return Heading::fits(line).then_some(None);
        }
        let is_given = self.numbers.iter().any(Option::is_some);
        match named {
            _ if words > 0 || !is_given => None,
            0 => Some(Some(Shape::Columns(count))),
            _ if named == count => Some(Some(Shape::Named)),
            _ => None,
        }
    }

    /// Takes a line of columns, once its numbers are read.
    fn take_columns(&mut self, count: usize) -> Option<Line> {
        let shape = Shape::Columns(count);
        let is_changed = self.shape != Some(shape);
        if is_changed {
            // Words before lines of the same kind are a message.
            if self.shape.is_some() && !self.is_new_shape(shape) {
                return None;
            }
            let (places, channels) = self.layout(count)?;
            self.check(&places)?;
            (self.shape, self.places) = (Some(shape), places);
            self.set_channels(channels);
        } else {
            self.check(&self.places)?;
        }
        self.others.1 = 0;
        self.time_s = None;
        let mut given = 0;
        for (&place, value) in self.places.iter().zip(&self.numbers) {
            match (place, value) {
                (Place::Time(unit), Some(time)) => self.time_s = Some(time * unit.seconds()),
                (Place::Channel(channel), Some(value)) => {
                    self.newest[channel] = *value;
                    given += 1;
                }
                _ => {}
            }
        }
        self.held += (self.newest.len() - given) as u64;
        Some(if is_changed { Line::Changed } else { Line::Row })
    }

    /// Takes a line of names and values, once its numbers are read.
    fn take_named(&mut self, line: &[u8]) -> Option<Line> {
        if matches!(self.fixed, Some(Fixed::Count(_))) {
            return None;
        }
        if self.shape.is_some_and(|shape| shape != Shape::Named) && !self.is_new_shape(Shape::Named) {
            return None;
        }
        // Nothing is changed before the whole line is known to be good.
        let is_other = self.shape != Some(Shape::Named);
        let known = if is_other && self.fixed.is_none() { 0 } else { self.channels.len() };
        let mut named = std::mem::take(&mut self.named);
        named.clear();
        let places = Fields::of(line).enumerate().map(|(at, field)| self.place(field.name, at, known));
        named.extend(places.map_while(|place| place));
        let new = named.iter().filter(|&&place| place == Place::New).count();
        let has_values = named.iter().any(|place| matches!(place, Place::Channel(_) | Place::New));
        let is_good = named.len() == self.numbers.len()
            && (has_values || !is_other)
            && known + new <= MAX_CHANNELS as usize
            && self.check(&named).is_some();
        self.named = named;
        if !is_good {
            return None;
        }
        let mut is_added = false;
        if is_other {
            (self.shape, self.others.1) = (Some(Shape::Named), 0);
            if self.fixed.is_none() {
                self.set_channels(Vec::new());
            }
        }
        self.time_s = None;
        let mut given = 0;
        for (at, field) in Fields::of(line).enumerate() {
            let (place, value) = (self.named[at], self.numbers[at].unwrap_or_default());
            match place {
                Place::Time(unit) => self.time_s = Some(value * unit.seconds()),
                Place::Channel(channel) => self.newest[channel] = value,
                Place::New => {
                    let (name, unit) =
                        (String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.unit));
                    match self.channels.iter().position(|known| known.name == name) {
                        // It stands twice in this line.
                        Some(channel) => self.newest[channel] = value,
                        None => {
                            self.channels.push(channel(&name, &unit));
                            self.newest.push(value);
                            is_added = true;
                        }
                    }
                }
                Place::LeftOut => {
                    self.unknown_names += 1;
                    continue;
                }
            }
            given += usize::from(!matches!(place, Place::Time(_)));
        }
        self.held += self.newest.len().saturating_sub(given) as u64;
        Some(match (is_other, is_added) {
            (true, _) => Line::Changed,
            (false, true) => Line::Added,
            (false, false) => Line::Row,
        })
    }

    /// What a name stands for; `None`: it is no name. `at`: where it most likely is, of `known` channels.
    fn place(&self, name: &[u8], at: usize, known: usize) -> Option<Place> {
        let channels = &self.channels[..known];
        let is_it = |channel: &ChannelDescription| channel.name.as_bytes() == name;
        if channels.get(at).is_some_and(is_it) {
            return Some(Place::Channel(at));
        }
        if let Some(unit) = self.time_unit(name) {
            return Some(Place::Time(unit));
        }
        if let Some(channel) = channels.iter().position(is_it) {
            return Some(Place::Channel(channel));
        }
        if self.fixed.is_some() {
            return Some(Place::LeftOut);
        }
        let text = std::str::from_utf8(name).ok()?;
        let is_name = text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control);
        is_name.then_some(Place::New)
    }

    /// Whether a column of this name is the time.
    fn time_unit(&self, name: &[u8]) -> Option<TimeUnit> {
        match &self.asked_time {
            Some(TimeColumn::Name(asked, unit)) => (asked.as_bytes() == name).then_some(*unit),
            Some(TimeColumn::Number(..)) => None,
            None => match name {
                b"time" | b"time_s" => Some(TimeUnit::S),
                b"time_ms" => Some(TimeUnit::Ms),
                b"time_us" => Some(TimeUnit::Us),
                _ => None,
            },
        }
    }

    /// What so many columns are, by the line of names before, if there was one; `None`: not what was asked for.
    fn layout(&self, count: usize) -> Option<(Vec<Place>, Vec<ChannelDescription>)> {
        let names: Vec<String> =
            if self.heading.count() == count { self.heading.names() } else { Vec::new() };
        let time = match &self.asked_time {
            Some(TimeColumn::Number(at, unit)) => Some((*at, *unit)).filter(|(at, _)| *at < count),
            _ => names.iter().enumerate().find_map(|(at, name)| Some((at, self.time_unit(name.as_bytes())?))),
        };
        if time.is_none() && self.asked_time.is_some() {
            return None;
        }
        let is_time = |at: usize| time.is_some_and(|(time, _)| time == at);
        let of_name = |at: usize| channel(names.get(at).map_or("", String::as_str), "");
        let others: Vec<usize> = (0..count).filter(|&at| !is_time(at)).collect();
        let taken: Vec<usize> = match &self.fixed {
            Some(Fixed::Names(wanted)) if !names.is_empty() => {
                let column = |name: &String| others.iter().copied().find(|&at| names[at] == *name);
                wanted.iter().map(column).collect::<Option<_>>()?
            }
            Some(Fixed::Names(wanted)) if wanted.len() != others.len() => return None,
            Some(Fixed::Count(count)) if *count != others.len() => return None,
            _ => others,
        };
        if !(1..=MAX_CHANNELS as usize).contains(&taken.len()) {
            return None;
        }
        let mut places = vec![Place::LeftOut; count];
        taken.iter().enumerate().for_each(|(channel, &at)| places[at] = Place::Channel(channel));
        if let Some((at, unit)) = time {
            places[at] = Place::Time(unit);
        }
        let channels = match &self.fixed {
            Some(Fixed::Names(names)) => names.iter().map(|name| channel(name, "")).collect(),
            _ => taken.into_iter().map(of_name).collect(),
        };
        Some((places, channels))
    }

    /// Whether lines of another shape came often enough to be believed: one alone is one that was cut.
    fn is_new_shape(&mut self, shape: Shape) -> bool {
        let run = if self.others.0 == shape { self.others.1 + 1 } else { 1 };
        self.others = (shape, run);
        run >= OTHERS_MIN
    }

    /// Whether the numbers of a line are what its fields need.
    fn check(&self, places: &[Place]) -> Option<()> {
        let is_good = |(place, value): (&Place, &Option<f64>)| match (place, value) {
            (Place::Time(_), value) => value.is_some_and(f64::is_finite),
            (Place::Channel(_) | Place::New, Some(value)) => fits(self.format, *value),
            _ => true,
        };
        places.iter().zip(&self.numbers).all(is_good).then_some(())
    }

    fn set_channels(&mut self, channels: Vec<ChannelDescription>) {
        let missing = self.missing();
        self.newest.clear();
        self.newest.resize(channels.len(), missing);
        self.channels = channels;
    }
}

impl TimeUnit {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "s" => Some(Self::S),
            "ms" => Some(Self::Ms),
            "us" => Some(Self::Us),
            "ns" => Some(Self::Ns),
            _ => None,
        }
    }

    fn seconds(self) -> f64 {
        match self {
            Self::S => 1.0,
            Self::Ms => 1e-3,
            Self::Us => 1e-6,
            Self::Ns => 1e-9,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
            Self::Ns => "ns",
        })
    }
}

fn channel(name: &str, unit: &str) -> ChannelDescription {
    ChannelDescription { name: name.to_owned(), unit: unit.to_owned(), ..ChannelDescription::default() }
}

/// Whether a number is one of the format: of integers a whole one in its range.
fn fits(format: SampleFormat, value: f64) -> bool {
    with_component!(format, C => {
        <C as Component>::LIMITS.is_none_or(|(low, high)| value.fract() == 0.0 && (low..=high).contains(&value))
    })
}

/// Channels, and the time.
const FIELDS_MAX: usize = MAX_CHANNELS as usize + 1;
const NAME_BYTES_MAX: usize = 64;
const OTHERS_MIN: u32 = 3;

#[cfg(test)]
mod tests;
