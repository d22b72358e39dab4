//! Finds the channels from the lines themselves.

mod layout;

use std::time::SystemTime;

use grebe_frame::{ChannelDescription, MAX_CHANNELS, SampleFormat};
use grebe_process::numbers::{Component, with_component};
use grebe_recording::table::{self, Clock, Spacing, TimeUnit, Uneven};

use crate::bridges::text::clean::clean;
use crate::bridges::text::fields::{Field, Fields, is_time_of_day, number, unit_of};
use crate::bridges::text::heading::Heading;

/// Takes lines, and keeps the newest value of each channel. The channels are those of the first whole line; lines
/// with names can add others. Memory is bounded by 255 channels.
#[derive(Debug)]
pub(super) struct Columns {
    format: SampleFormat,
    fixed: Option<Fixed>,
    asked_time: Option<TimeColumn>,
    shape: Option<Shape>,
    /// Role of each column, if lines have no names.
    places: Vec<Place>,
    channels: Vec<ChannelDescription>,
    /// As the lines call them.
    keys: Vec<String>,
    newest: Vec<f64>,
    clock: Clock,
    /// The column of the time, as the lines call it.
    time_name: Option<String>,
    time_s: Option<f64>,
    heading: Heading,
    /// A line without the decoration around its numbers.
    cleaned: Vec<u8>,
    /// The line of words before the first of these columns has their names.
    is_headed: bool,
    /// Lines in a row that are unlike the ones before, and alike.
    others: (Shape, u32),
    /// Numbers of one line, and the roles of its named fields.
    numbers: Vec<Option<f64>>,
    named: Vec<Place>,
    /// Whether one of them has a unit, or is a time of day.
    has_units: bool,
    /// A name that appears twice in one line.
    twice: Option<String>,
    /// Values of the newest line that it did not say.
    held: u64,
    unknown_names: u64,
}

/// Channels that never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// Number of columns.
    Count(usize),
    Names(Vec<String>),
}

/// The time column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    Name(String, Option<TimeUnit>),
    /// From 0.
    Number(usize, Option<TimeUnit>),
    /// There is none.
    None,
}

/// Classification of a line.
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

/// Distinguishes kinds of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Each value has its name.
    Named,
    /// Number of unnamed values.
    Columns(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Time,
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
            keys: Vec::new(),
            newest: Vec::new(),
            clock: Clock::new(None, b'.'),
            time_name: None,
            time_s: None,
            heading: Heading::default(),
            cleaned: Vec::new(),
            is_headed: false,
            others: (Shape::Named, 0),
            numbers: Vec::with_capacity(FIELDS_MAX),
            named: Vec::with_capacity(FIELDS_MAX),
            has_units: false,
            twice: None,
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
        let mut cleaned = std::mem::take(&mut self.cleaned);
        let taken = if clean(line, &mut cleaned) { self.take_clean(&cleaned) } else { self.take_clean(line) };
        self.cleaned = cleaned;
        taken
    }

    fn take_clean(&mut self, line: &[u8]) -> Line {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Line::Nothing;
        }
        if let Some(comment) = line.strip_prefix(b"#").or_else(|| line.strip_prefix(b"//")) {
            // Header of a file; later comments mean something else.
            if self.shape.is_none() {
                self.heading.keep(comment);
            }
            return Line::Nothing;
        }
        match self.read(line) {
            Some(Some(shape)) => {
                let taken = match shape {
                    Shape::Named => self.take_named(line),
                    Shape::Columns(count) => self.take_columns(line, count),
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

    /// Whether the newest line has one value, with its name.
    pub(super) fn is_named_singly(&self) -> bool {
        self.shape == Some(Shape::Named) && self.numbers.len() == 1
    }

    /// Whether the channels have the names of the line of words before them. Answers once.
    pub(super) fn take_headed(&mut self) -> bool {
        std::mem::take(&mut self.is_headed)
    }

    /// The newest value of each channel.
    pub(super) fn values(&self) -> &[f64] {
        &self.newest
    }

    /// Time of the newest line in seconds, if it has one.
    pub(super) fn time_s(&self) -> Option<f64> {
        self.time_s
    }

    /// The even spacing of the times of the lines so far.
    pub(super) fn spacing(&self, times_s: &[f64]) -> Result<Spacing, Uneven> {
        self.clock.spacing(times_s)
    }

    /// When the first line was made, where the times say so.
    pub(super) fn began(&self) -> Option<SystemTime> {
        self.clock.began()
    }

    /// Notices about assumptions in reading the lines.
    pub(super) fn guesses(&self) -> Vec<String> {
        let clock = self.time_name.iter().flat_map(|name| self.clock.guesses(name));
        let twice = self.twice.iter().map(|name| format!("{name} stands twice in a line"));
        clock.chain(twice).collect()
    }

    /// Placeholder for a value that has not come yet.
    pub(super) fn missing(&self) -> f64 {
        if self.format.component().is_float() { f64::NAN } else { 0.0 }
    }

    /// Values missing from lines since the last call, and unrequested names.
    pub(super) fn drain_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.held), std::mem::take(&mut self.unknown_names))
    }

    /// Parses the numbers of a line: its shape; nothing for words alone. `None`: it is neither.
    fn read(&mut self, line: &[u8]) -> Option<Option<Shape>> {
        self.numbers.clear();
        self.has_units = false;
        let (mut words, mut named, mut plain) = (0, 0, 0);
        for field in Fields::of(line) {
            if self.numbers.len() == FIELDS_MAX {
                return None;
            }
            let is_named = !field.name.is_empty();
            named += usize::from(is_named);
            let value = number(field.value);
            plain += usize::from(value.is_some() || field.value.is_empty());
            self.has_units |= value.is_none() || !field.unit.is_empty();
            let value = value.or_else(|| table::number_and_unit(field.value, b'.').map(|(value, _)| value));
            // A date does not parse as a number, but counts as a time.
            let value = value.or_else(|| is_time_of_day(field.value).then_some(f64::NAN));
            words += usize::from(value.is_none() && (is_named || !field.value.is_empty()));
            self.numbers.push(value);
        }
        let count = self.numbers.len();
        // 5V may be a name.
        if plain == 0 && named == 0 && words > 0 {
            words = count;
        }
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
    fn take_columns(&mut self, line: &[u8], count: usize) -> Option<Line> {
        let shape = Shape::Columns(count);
        let is_changed = self.shape != Some(shape);
        if is_changed {
            // Words before lines of the same kind are a message.
            if self.shape.is_some() && !self.is_new_shape(shape) {
                return None;
            }
            let (places, channels, time) = self.layout(line, count)?;
            self.check(line, &places, &channels)?;
            self.is_headed = self.heading.count() == count;
            (self.shape, self.places) = (Some(shape), places);
            self.set_time(time);
            self.set_channels(channels);
        } else {
            self.check(line, &self.places, &self.channels)?;
        }
        self.others.1 = 0;
        self.time_s = None;
        let mut given = 0;
        for (at, (&place, value)) in self.places.iter().zip(&self.numbers).enumerate() {
            match (place, value) {
                (Place::Time, Some(_)) => {
                    self.time_s = Fields::of(line).nth(at).and_then(|field| self.clock.seconds(field.value));
                }
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
        let mut time = None;
        for (at, field) in Fields::of(line).enumerate() {
            let Some(place) = self.place(field.name, at, known, &mut time) else { break };
            named.push(place);
        }
        let new = named.iter().filter(|&&place| place == Place::New).count();
        let has_values = named.iter().any(|place| matches!(place, Place::Channel(_) | Place::New));
        let is_good = named.len() == self.numbers.len()
            && (has_values || !is_other)
            && known + new <= MAX_CHANNELS as usize
            && self.check(line, &named, &self.channels[..known]).is_some();
        self.named = named;
        if !is_good {
            return None;
        }
        let mut is_added = false;
        if is_other || time.is_some() {
            self.set_time(time);
        }
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
                Place::Time => self.time_s = self.clock.seconds(field.value),
                Place::Channel(channel) => self.newest[channel] = value,
                Place::New => {
                    let name = String::from_utf8_lossy(field.name);
                    match self.keys.iter().position(|key| *key == name) {
                        Some(channel) => {
                            self.newest[channel] = value;
                            self.twice.get_or_insert(name.into_owned());
                        }
                        None => {
                            self.channels.push(channel(&name, unit_of(&field)));
                            self.keys.push(name.into_owned());
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
            given += usize::from(place != Place::Time);
        }
        self.held += self.newest.len().saturating_sub(given) as u64;
        Some(match (is_other, is_added) {
            (true, _) => Line::Changed,
            (false, true) => Line::Added,
            (false, false) => Line::Row,
        })
    }

    /// Whether lines of another shape came often enough: a single one is probably truncated.
    fn is_new_shape(&mut self, shape: Shape) -> bool {
        let run = if self.others.0 == shape { self.others.1 + 1 } else { 1 };
        self.others = (shape, run);
        run >= OTHERS_MIN
    }

    /// Whether the numbers of a line are what its fields need, in the units that they had before.
    fn check(&self, line: &[u8], places: &[Place], channels: &[ChannelDescription]) -> Option<()> {
        if !self.has_units {
            let is_good = |(place, value): (&Place, &Option<f64>)| match (place, value) {
                (Place::Time, value) => value.is_some_and(f64::is_finite),
                (Place::Channel(_) | Place::New, Some(value)) => fits(self.format, *value),
                _ => true,
            };
            return places.iter().zip(&self.numbers).all(is_good).then_some(());
        }
        let is_good = |((place, value), field): ((&Place, &Option<f64>), Field<'_>)| match (place, value) {
            (Place::Time, value) => {
                value.is_some() && (number(field.value).is_some() || is_time_of_day(field.value))
            }
            (Place::Channel(_) | Place::New, Some(_)) if is_time_of_day(field.value) => false,
            (Place::Channel(channel), Some(value)) => {
                let unit = unit_of(&field);
                let is_same = channels
                    .get(*channel)
                    .is_none_or(|it| unit.is_empty() || it.unit.is_empty() || it.unit == unit);
                is_same && fits(self.format, *value)
            }
            (Place::New, Some(value)) => fits(self.format, *value),
            _ => true,
        };
        places.iter().zip(&self.numbers).zip(Fields::of(line)).all(is_good).then_some(())
    }

    fn set_channels(&mut self, channels: Vec<ChannelDescription>) {
        let missing = self.missing();
        self.newest.clear();
        self.newest.resize(channels.len(), missing);
        self.keys = channels.iter().map(|channel| channel.name.clone()).collect();
        let is_twice = |(at, key): &(usize, &String)| !key.is_empty() && self.keys[..*at].contains(key);
        let twice = self.keys.iter().enumerate().find(is_twice).map(|(_, key)| key.clone());
        self.twice = twice.or(self.twice.take());
        self.channels = channels;
    }

    /// Lines with other times than before begin.
    fn set_time(&mut self, time: Option<Time>) {
        self.clock = Clock::new(time.as_ref().and_then(|time| time.unit), b'.');
        self.time_name = time.map(|time| time.name);
    }
}

/// The column of the time.
#[derive(Debug)]
struct Time {
    name: String,
    unit: Option<TimeUnit>,
}

fn channel(name: &str, unit: &str) -> ChannelDescription {
    let heading = table::Heading::of(name);
    let unit = if unit.is_empty() { heading.unit } else { unit.to_owned() };
    ChannelDescription { name: heading.name, unit, ..ChannelDescription::default() }
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
