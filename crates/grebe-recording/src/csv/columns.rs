//! Columns of a table, and the numbers of a line.

use std::sync::Arc;

use grebe_frame::{ChannelDescription, Component, Description, MAX_CHANNELS, SampleFormat};

use super::COMPLEX;
use super::layout::{Layout, is_absent, unit_named};
use super::name::{Name, TimeColumn};
use super::preamble::Preamble;
use super::records::Record;
use super::rows::Rows;
use super::times::{Time, are_apart, offer};
use crate::table::{Clock, Heading, TimeUnit, leading, number, number_and_unit};

/// Roles of the columns.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) format: SampleFormat,
    pub(super) channels: Vec<ChannelDescription>,
    pub(super) time: Option<Time>,
    kinds: Vec<Kind>,
    /// As they are called in messages.
    names: Vec<String>,
    /// Text after the numbers of each column.
    behind: Vec<String>,
    /// The line of names, to know it again.
    heading: Vec<String>,
    layout: Layout,
    is_named: bool,
    /// Every field may be a plain number, and is taken.
    is_plain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Date,
    Channel(usize),
    LeftOut,
}

/// Why a line is none of samples.
#[derive(Debug)]
pub(super) enum NoRow {
    /// Nothing, or a comment.
    Comment,
    /// The line of names, again.
    Names,
    /// Fewer fields than the table has.
    Short(String),
    Wrong(String),
    /// The field of the time is none.
    NoTime(String),
}

/// Fields that are not plain numbers.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Odd {
    pub(super) empty: u64,
    pub(super) absent: u64,
}

impl Columns {
    /// Finds the columns of a table from its first lines.
    pub(super) fn of(
        name: &Name,
        layout: Layout,
        preamble: &Preamble,
        rows: &[Vec<String>],
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        let count = layout.columns;
        let is_named = !layout.names.is_empty();
        let heading: Vec<String> = layout.names.iter().take(count).cloned().collect();
        let behind = |at: usize| {
            let field = rows.first().and_then(|row| row.get(at))?;
            let (_, unit) = number_and_unit(field.as_bytes(), layout.point)?;
            String::from_utf8(unit.to_vec()).ok()
        };
        let behind: Vec<String> = (0..count).map(|at| behind(at).unwrap_or_default()).collect();
        let mut headings: Vec<Heading> = (0..count).map(|at| heading_of(&layout, at)).collect();
        for (heading, unit) in headings.iter_mut().zip(&behind).filter(|(heading, _)| heading.unit.is_empty())
        {
            heading.unit.clone_from(unit);
        }
        let field = |row: &Vec<String>, at: usize| number(row.get(at)?.as_bytes(), layout.point);
        let values = |at: usize| rows.iter().map(|row| field(row, at)).collect::<Option<Vec<f64>>>();
        let find = |wanted: &str| {
            let is_it = |at: &usize| heading[*at] == wanted || headings[*at].name == wanted;
            let number = wanted.parse::<usize>().ok().filter(|at| (1..=count).contains(at)).map(|at| at - 1);
            let named = if is_named { (0..count).find(is_it) } else { None };
            named.or(number).ok_or_else(|| {
                let all = if is_named { heading.join(", ") } else { format!("1 to {count}") };
                format!("no column is called {wanted}: there are {all}")
            })
        };
        let time = match &name.time {
            TimeColumn::Asked(column, unit) => {
                let at = find(column)?;
                Some((at, unit.or(headings[at].time().flatten())))
            }
            TimeColumn::None => None,
            TimeColumn::Unsaid => headings.iter().enumerate().find_map(|(at, heading)| {
                let unit = heading.time().filter(|_| is_named)?;
                // t is a temperature, too.
                let grows = |values: Vec<f64>| values.windows(2).all(|pair| pair[0] <= pair[1]);
                (heading.name != "t" || unit.is_some() || values(at).is_some_and(grows)).then_some((at, unit))
            }),
        };
        let date = headings.iter().position(Heading::is_date);
        let is_unsaid = time.is_none() && is_named && name.time == TimeColumn::Unsaid;
        // Source,CH1 above Second,Volt; else a date that has the time as well.
        let by_unit = || {
            let grows = |values: Vec<f64>| values.windows(2).all(|pair| pair[0] < pair[1]);
            let unit = TimeUnit::named(&headings[0].unit.to_lowercase());
            unit.filter(|_| !layout.units.is_empty() && values(0).is_some_and(grows))
        };
        let time = match by_unit().filter(|_| is_unsaid) {
            Some(unit) => Some((0, Some(unit))),
            None => time.or(date.filter(|_| is_unsaid).map(|date| (date, None))),
        };
        let is_interval = |rate_hz: &f64| values(0).is_some_and(|values| are_apart(&values, 1.0 / rate_hz));
        let by_interval = || preamble.rate_hz.filter(is_interval).map(|_| (0, Some(TimeUnit::S)));
        let time = match (is_named, &name.time) {
            (false, TimeColumn::Unsaid) if count > 1 => by_interval(),
            _ => time,
        };
        let date = date.filter(|at| time.is_some_and(|(time, _)| time != *at));
        let mut kinds = vec![Kind::LeftOut; count];
        if let Some((at, _)) = time {
            kinds[at] = Kind::Time;
        }
        if let Some(at) = date {
            kinds[at] = Kind::Date;
        }
        let is_count = |at: usize| {
            let unit = layout.units.get(at).is_some_and(|unit| unit.eq_ignore_ascii_case("sequence"));
            let counts = |values: Vec<f64>| values.windows(2).all(|pair| pair[1] - pair[0] == 1.0);
            // An index without a name, as pandas writes it.
            let is_index = |values: &Vec<f64>| values.first().is_some_and(|first| [0.0, 1.0].contains(first));
            let is_unnamed = at == 0 && count > 1 && ["", "Unnamed: 0"].contains(&heading[0].as_str());
            let is_called =
                unit || headings[at].is_count() || is_unnamed && values(at).is_some_and(|it| is_index(&it));
            kinds[at] == Kind::LeftOut && is_called && values(at).is_some_and(counts)
        };
        let counted = (0..count).find(|&at| is_named && rows.len() > 1 && is_count(at));
        // As the program of the PPK2 writes them.
        let is_bits = |at: usize| {
            let are_bits = |field: &String| field.len() == 8 && field.chars().all(|bit| "01-X".contains(bit));
            headings[at].name == "D0-D7" && rows.iter().all(|row| row.get(at).is_some_and(are_bits))
        };
        let bits = (0..count).find(|&at| is_named && is_bits(at));
        let is_left_out = |at: usize| Some(at) == counted || Some(at) == bits;
        let wanted: Vec<usize> = match &name.channels {
            Some(wanted) => wanted.iter().map(|wanted| find(wanted)).collect::<Result<_, _>>()?,
            None => (0..count).filter(|&at| kinds[at] == Kind::LeftOut && !is_left_out(at)).collect(),
        };
        let named = |at: usize| match heading.get(at).filter(|name| !name.is_empty()) {
            Some(text) => format!("column {} ({text})", at + 1),
            None => format!("column {}", at + 1),
        };
        if let (Some(at), None) = (counted, &name.channels) {
            notes.push(format!("{} numbers the lines: ignored", named(at)));
        }
        if let (Some(at), None) = (bits, &name.channels) {
            notes.push(format!(
                "column {} (D0-D7) has bits side by side: ignored; export D0 to D7 as columns of their own",
                at + 1
            ));
        }
        let parts: Vec<String> = wanted.iter().map(|&at| headings[at].name.clone()).collect();
        let pairs: Option<Vec<String>> = parts.chunks(2).map(pair).collect();
        let pairs = pairs.filter(|_| is_named);
        let is_complex = name.format.map_or(pairs.is_some(), SampleFormat::is_complex);
        if is_complex && wanted.len() % 2 == 1 {
            return Err(format!("complex samples stand in two columns each, and there are {}", wanted.len()));
        }
        let per_channel = if is_complex { 2 } else { 1 };
        let mut channels: Vec<ChannelDescription> = wanted
            .chunks(per_channel)
            .map(|at| ChannelDescription {
                name: headings[at[0]].name.clone(),
                unit: headings[at[0]].unit.clone(),
                ..ChannelDescription::default()
            })
            .collect();
        if is_complex {
            let names = pairs.unwrap_or_else(|| vec![String::new(); channels.len()]);
            channels.iter_mut().zip(names).for_each(|(channel, name)| channel.name = name);
        }
        if !(1..=MAX_CHANNELS as usize).contains(&channels.len()) {
            return Err(format!("it has columns of {} channels: give 1 to {MAX_CHANNELS}", channels.len()));
        }
        if preamble.channels.len() == channels.len() {
            let unnamed = channels.iter_mut().zip(&preamble.channels);
            let is_name = |name: &str| number(name.as_bytes(), b'.').is_none();
            unnamed
                .filter(|(channel, name)| channel.name.is_empty() && is_name(name))
                .for_each(|(channel, name)| channel.name.clone_from(name));
        }
        if let ([channel], Some(unit)) = (channels.as_mut_slice(), &preamble.unit)
            && channel.unit.is_empty()
        {
            channel.unit.clone_from(unit);
        }
        for (number, at) in wanted.iter().enumerate() {
            if kinds[*at] != Kind::LeftOut {
                return Err(format!("column {} is the time, or stands twice in channels=", at + 1));
            }
            kinds[*at] = Kind::Channel(number / per_channel);
        }
        say_twice(&channels, notes);
        let format = name.format.unwrap_or(if is_complex { SampleFormat::Cf32 } else { SampleFormat::F64 });
        let names: Vec<String> = (0..count).map(named).collect();
        let is_channel = matches!(kinds[0], Kind::Channel(_));
        if is_channel && time.is_none() && name.time == TimeColumn::Unsaid && count > 1 {
            notes.extend(values(0).and_then(|values| offer(name, &values, heading.first())));
        }
        let time = time.map(|(at, unit)| Time {
            date,
            name: Some(headings[at].name.clone())
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| (at + 1).to_string()),
            unit,
        });
        let is_plain = format == SampleFormat::F64
            && layout.first == 0
            && !layout.joins_first
            && kinds.iter().all(|kind| matches!(kind, Kind::Time | Kind::Channel(_)));
        Ok(Self { format, channels, time, kinds, names, behind, heading, layout, is_named, is_plain })
    }

    pub(super) fn clock(&self) -> Option<Clock> {
        let time = self.time.as_ref()?;
        let point = if self.layout.joins_first { b',' } else { self.layout.point };
        Some(Clock::new(time.unit, point))
    }

    pub(super) fn description(&self, frequency_hz: Option<f64>) -> Option<Arc<Description>> {
        // Names that only count say nothing.
        let is_number = |(at, channel): (usize, &ChannelDescription)| {
            channel.unit.is_empty() && (channel.name.is_empty() || channel.name == format!("ch{}", at + 1))
        };
        let is_said = !self.channels.iter().enumerate().all(is_number);
        let channels = if is_said { self.channels.clone() } else { Vec::new() };
        let description =
            Description { channels, centre_frequency_hz: frequency_hz, ..Description::default() };
        (is_said || frequency_hz.is_some()).then(|| Arc::new(description))
    }

    /// Appends the numbers of the line that `text` begins with, if all are plain; returns its length. Most lines are such, and are read
    /// in one pass.
    #[inline]
    pub(super) fn take_plain(
        &self,
        text: &[u8],
        clock: &mut Option<Clock>,
        rows: &mut Rows,
    ) -> Option<usize> {
        if !self.is_plain {
            return None;
        }
        let taken = self.plain(text, clock, rows);
        if taken.is_none() {
            rows.undo(self.format.bytes());
        }
        taken
    }

    #[inline]
    fn plain(&self, text: &[u8], clock: &mut Option<Clock>, rows: &mut Rows) -> Option<usize> {
        let Layout { delimiter, point, .. } = self.layout;
        let (mut at, mut time) = (0, None);
        for (number, kind) in self.kinds.iter().enumerate() {
            if number > 0 && text[at] != delimiter {
                return None;
            }
            at += usize::from(number > 0);
            let (decimal, length) = leading(&text[at..], point)?;
            at += length;
            match kind {
                Kind::Channel(channel) => {
                    rows.channels[*channel].extend_from_slice(&decimal.nearest()?.to_le_bytes());
                }
                _ => time = Some(decimal),
            }
        }
        let end = match text[at..] {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return None,
        };
        // Last, because the clock stores the time.
        if let (Some(now), Some(clock)) = (time, clock) {
            rows.times_s.push(clock.seconds_at(now)?);
        }
        Some(at + end)
    }

    /// Appends the numbers of a line; where it has others, nothing.
    #[inline]
    pub(super) fn take(
        &self,
        record: &Record,
        clock: &mut Option<Clock>,
        rows: &mut Rows,
        odd: &mut Odd,
    ) -> Result<(), NoRow> {
        let Layout { first, joins_first, .. } = self.layout;
        // A comma in the first number.
        let shift = first + usize::from(joins_first);
        let spare = record.len().checked_sub(shift + self.kinds.len());
        let is_wide = |spare: usize| {
            let first_spare = record.len() - spare;
            (first_spare..record.len()).any(|at| !record[at].trim_ascii().is_empty())
        };
        if spare.is_none_or(|spare| spare > 0 && first == 0 && is_wide(spare)) {
            return Err(self.why(record));
        }
        let before = *odd;
        for (at, kind) in self.kinds.iter().enumerate() {
            let field = &record[shift + at];
            let taken = match kind {
                Kind::Channel(channel) => self.take_value(at, field, &mut rows.channels[*channel], odd),
                Kind::Time => self.seconds(record, at, shift, clock).map(|time_s| rows.times_s.push(time_s)),
                Kind::Date | Kind::LeftOut => Some(()),
            };
            if taken.is_none() {
                *odd = before;
                rows.undo(self.format.bytes());
                let why = self.why(record);
                return Err(match why {
                    NoRow::Wrong(_) if *kind == Kind::Time => NoRow::NoTime(self.no_number(at, field)),
                    NoRow::Wrong(_) => NoRow::Wrong(self.no_number(at, field)),
                    other => other,
                });
            }
        }
        Ok(())
    }

    #[inline]
    fn seconds(&self, record: &Record, at: usize, shift: usize, clock: &mut Option<Clock>) -> Option<f64> {
        let clock = clock.as_mut()?;
        if self.layout.joins_first && at == 0 {
            let joined = [&record[0], b",", &record[1]].concat();
            return clock.seconds(&joined).filter(|it| it.is_finite());
        }
        let field = &record[shift + at];
        match self.time.as_ref().and_then(|time| time.date) {
            Some(date) => clock.seconds_of(&record[shift + date], field),
            None => clock.seconds(field).or_else(|| clock.seconds(unquoted(field)?)),
        }
    }

    #[inline]
    fn take_value(&self, at: usize, field: &[u8], out: &mut Vec<u8>, odd: &mut Odd) -> Option<()> {
        let point = self.layout.point;
        if self.format.component() == Component::F64
            && let Some(value) = number(field, point)
        {
            out.extend_from_slice(&value.to_le_bytes());
            return Some(());
        }
        self.take_any(at, field, out, odd)
    }

    fn take_any(&self, at: usize, field: &[u8], out: &mut Vec<u8>, odd: &mut Odd) -> Option<()> {
        let field = field.trim_ascii();
        let field = unquoted(field).unwrap_or(field);
        let component = self.format.component();
        let value = match number_and_unit(field, self.layout.point) {
            // In another unit the number differs.
            Some((value, unit)) => {
                (unit.is_empty() || unit == self.behind[at].as_bytes()).then_some(value)?
            }
            None if let Some(value) = number(field, self.layout.point) => value,
            None => {
                let text = std::str::from_utf8(field).ok()?;
                odd.empty += u64::from(text.is_empty());
                odd.absent += u64::from(!text.is_empty());
                (component.is_float() && (text.is_empty() || is_absent(text))).then_some(f64::NAN)?
            }
        };
        let whole = Some(value).filter(|value| value.fract() == 0.0 && value.abs() < 1e15);
        let whole = || whole.map(|value| value as i64);
        match component {
            Component::I8 => out.push(i8::try_from(whole()?).ok()? as u8),
            Component::U8 => out.push(u8::try_from(whole()?).ok()?),
            Component::I16 => out.extend_from_slice(&i16::try_from(whole()?).ok()?.to_le_bytes()),
            Component::I32 => out.extend_from_slice(&i32::try_from(whole()?).ok()?.to_le_bytes()),
            Component::F32 => out.extend_from_slice(&nearest_f32(field, value).to_le_bytes()),
            Component::F64 => out.extend_from_slice(&value.to_le_bytes()),
        }
        Some(())
    }

    /// Classifies a line without samples.
    fn why(&self, record: &Record) -> NoRow {
        let first = record.get(0).unwrap_or_default().trim_ascii();
        let is_empty = record.iter().all(|field| field.trim_ascii().is_empty());
        if is_empty || first.starts_with(b"#") || first.starts_with(b";") || first.starts_with(b"//") {
            return NoRow::Comment;
        }
        let is_same =
            |(field, name): (&[u8], &String)| String::from_utf8_lossy(field).trim() == name.trim_matches('"');
        if self.is_named
            && record.len() >= self.heading.len()
            && record.iter().zip(&self.heading).all(is_same)
        {
            return NoRow::Names;
        }
        let (is, should) = (record.len(), self.kinds.len() + self.layout.first);
        let what = format!("{is} fields, and the first line has {should}");
        if is < should { NoRow::Short(what) } else { NoRow::Wrong(what) }
    }

    fn no_number(&self, at: usize, field: &[u8]) -> String {
        let shown: String = String::from_utf8_lossy(field).trim().chars().take(SHOWN_CHARS).collect();
        let wanted = match self.kinds[at] {
            Kind::Time => "a time".to_owned(),
            _ => format!("a number of format {}", self.format.component().real().name()),
        };
        format!("{} is '{shown}', not {wanted}", self.names[at])
    }

    /// Names for `channels=` that exclude a column of fields that are not numbers.
    pub(super) fn others_than(&self, record: &Record) -> Option<String> {
        let is_number = |field: &[u8]| number_and_unit(field, self.layout.point).is_some();
        let is_good = |at: usize| record.get(self.layout.first + at).is_some_and(is_number);
        let good = self.called(is_good);
        (!good.is_empty() && good != self.all_channels()).then_some(good)
    }

    /// The same, of all of them.
    pub(super) fn all_channels(&self) -> String {
        self.called(|_| true)
    }

    fn called(&self, is_taken: impl Fn(usize) -> bool) -> String {
        let is_channel = |at: &usize| matches!(self.kinds[*at], Kind::Channel(_)) && is_taken(*at);
        let name = |at: usize| match self.heading.get(at).filter(|_| self.is_named) {
            Some(name) if !name.is_empty() && !name.contains([',', '&', '?', '\'']) => name.clone(),
            _ => (at + 1).to_string(),
        };
        (0..self.kinds.len()).filter(is_channel).map(name).collect::<Vec<_>>().join(",")
    }
}

fn heading_of(layout: &Layout, at: usize) -> Heading {
    let mut heading = Heading::of(layout.names.get(at).map_or("", String::as_str));
    let below = layout.units.get(at).map_or("", |unit| unit.trim_matches(['(', ')', '[', ']', ' ']));
    if heading.unit.is_empty() && !below.eq_ignore_ascii_case("sequence") {
        heading.unit = unit_named(below).unwrap_or(below).to_owned();
    }
    // Volt in place of a name.
    if let Some(unit) = unit_named(&heading.name).filter(|_| heading.unit.is_empty()) {
        heading = Heading { name: String::new(), unit: unit.to_owned() };
    }
    heading
}

/// The name of complex samples whose columns are called so.
fn pair(names: &[String]) -> Option<String> {
    let [re, im] = names else { return None };
    let name = re.strip_suffix(COMPLEX[0]).or((re == "re").then_some(""))?;
    let other = im.strip_suffix(COMPLEX[1]).or((im == "im").then_some(""))?;
    (name == other).then(|| name.to_owned())
}

fn say_twice(channels: &[ChannelDescription], notes: &mut Vec<String>) {
    let is_twice = |(at, channel): &(usize, &ChannelDescription)| {
        !channel.name.is_empty() && channels[..*at].iter().any(|other| other.name == channel.name)
    };
    if let Some((at, channel)) = channels.iter().enumerate().find(is_twice) {
        notes.push(format!("two channels are called {}: channel {} is the second", channel.name, at + 1));
    }
}

/// A field whose quotes follow a blank.
fn unquoted(field: &[u8]) -> Option<&[u8]> {
    Some(field.trim_ascii().strip_prefix(b"\"")?.strip_suffix(b"\"")?.trim_ascii())
}

/// The nearest number of 32 bits, without a way through another.
fn nearest_f32(field: &[u8], value: f64) -> f32 {
    let text = std::str::from_utf8(field).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(value as f32)
}

const SHOWN_CHARS: usize = 40;
