//! Roles of columns and names.

use grebe_frame::{ChannelDescription, MAX_CHANNELS};
use grebe_recording::table::{self, TimeUnit};

use super::{Columns, Fixed, NAME_BYTES_MAX, Place, Time, TimeColumn, channel};
use crate::bridges::text::fields::{Fields, is_time_of_day, unit_of};

impl Columns {
    /// The role of a name; `None` if it is not a name. `at`: its most likely position among `known` channels;
    /// `time`: a newly found time column.
    pub(super) fn place(
        &self,
        name: &[u8],
        at: usize,
        known: usize,
        time: &mut Option<Time>,
    ) -> Option<Place> {
        let keys = &self.keys[..known];
        let is_it = |key: &String| key.as_bytes() == name;
        if keys.get(at).is_some_and(is_it) {
            return Some(Place::Channel(at));
        }
        if known > 0 && self.time_name.as_ref().is_some_and(is_it) {
            return Some(Place::Time);
        }
        if let Some(channel) = keys.iter().position(is_it) {
            return Some(Place::Channel(channel));
        }
        let text = std::str::from_utf8(name).ok()?;
        if time.is_none()
            && let Some(unit) = self.time_unit(text)
        {
            *time = Some(Time { name: text.to_owned(), unit });
            return Some(Place::Time);
        }
        if self.fixed.is_some() {
            let name = table::Heading::of(text).name;
            return Some(keys.iter().position(|key| *key == name).map_or(Place::LeftOut, Place::Channel));
        }
        let is_name = text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control);
        is_name.then_some(Place::New)
    }

    /// Whether a column of this name is the time, and its unit where that is known.
    fn time_unit(&self, name: &str) -> Option<Option<TimeUnit>> {
        match &self.asked_time {
            Some(TimeColumn::Name(asked, unit)) => {
                let heading = table::Heading::of(name);
                let is_it = asked == name || *asked == heading.name;
                is_it.then(|| unit.or(heading.time().flatten()))
            }
            Some(TimeColumn::Number(..) | TimeColumn::None) => None,
            None => table::Heading::of(name).time(),
        }
    }

    /// Roles of this number of columns, by the preceding line of names, if any; `None` if they do not match
    /// the requested ones.
    pub(super) fn layout(
        &self,
        line: &[u8],
        count: usize,
    ) -> Option<(Vec<Place>, Vec<ChannelDescription>, Option<Time>)> {
        let names: Vec<String> =
            if self.heading.count() == count { self.heading.names() } else { Vec::new() };
        let of_name = |at: usize| names.get(at).map_or_else(|| (at + 1).to_string(), Clone::clone);
        let time = match &self.asked_time {
            Some(TimeColumn::Number(at, unit)) => Some((*at, *unit)).filter(|(at, _)| *at < count),
            // A first column without a name can be nothing else.
            None if names.is_empty()
                && Fields::of(line).next().is_some_and(|it| is_time_of_day(it.value)) =>
            {
                Some((0, None))
            }
            _ => names.iter().enumerate().find_map(|(at, name)| Some((at, self.time_unit(name)?))),
        };
        let is_asked = matches!(self.asked_time, Some(TimeColumn::Name(..) | TimeColumn::Number(..)));
        if time.is_none() && is_asked {
            return None;
        }
        let is_time = |at: usize| time.is_some_and(|(time, _)| time == at);
        let others: Vec<usize> = (0..count).filter(|&at| !is_time(at)).collect();
        let taken: Vec<usize> = match &self.fixed {
            Some(Fixed::Names(wanted)) if !names.is_empty() => {
                let is_it = |at: usize, name: &String| {
                    names[at] == *name || table::Heading::of(&names[at]).name == *name
                };
                let column = |name: &String| others.iter().copied().find(|&at| is_it(at, name));
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
        if let Some((at, _)) = time {
            places[at] = Place::Time;
        }
        let units: Vec<&str> = Fields::of(line).map(|field| unit_of(&field)).collect();
        let described = |(number, at): (usize, usize)| match &self.fixed {
            Some(Fixed::Names(names)) => channel(&names[number], units[at]),
            _ => channel(names.get(at).map_or("", String::as_str), units[at]),
        };
        let channels = taken.into_iter().enumerate().map(described).collect();
        Some((places, channels, time.map(|(at, unit)| Time { name: of_name(at), unit })))
    }
}
