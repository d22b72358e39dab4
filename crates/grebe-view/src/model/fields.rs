//! Text fields: their content, and the values that they accept.

use grebe_scope::{Engineering, parse_quantity};
use serde::{Deserialize, Serialize};

use super::annotation_words::annotation_color;
use super::levels::LEVEL_UNIT;
use super::view_model::ViewModel;
use crate::data::lane::{CHANNELS_MAX, LaneId};
use crate::model::vertical::{DIVISIONS_VERTICAL, ValueRange};

/// A text field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Field {
    /// Of a channel: its name, its unit, units per count, and the value of count 0.
    Name(usize),
    Unit(usize),
    Scale(usize),
    Offset(usize),
    PerDivision(LaneId),
    Hysteresis,
    Holdoff,
    /// The corner frequency of the trigger's filter.
    Corner,
    PulseMin,
    PulseMax,
    Dropout,
    /// Of the search form.
    FindLevel,
    FindLow,
    FindHigh,
    FindLonger,
    FindShorter,
    FindFrom,
    FindTo,
    /// The lowest and the highest level of the waterfall's colours.
    LevelBottom,
    LevelTop,
    /// The label of the trigger that is pinned at a sample index.
    PinLabel(f64),
    /// Of the selected annotation.
    AnnotationLabel,
    AnnotationComment,
    AnnotationColor,
    AnnotationLow,
    AnnotationHigh,
    /// Filter words of the annotation list.
    AnnotationFilter,
}

impl Field {
    /// Whether it accepts any text, while it is typed.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Field::Name(_) | Field::Unit(_) | Field::PinLabel(_) | Field::AnnotationFilter)
    }

    pub(crate) fn is_of_annotations(self) -> bool {
        use Field::{AnnotationColor, AnnotationComment, AnnotationFilter, AnnotationHigh};
        matches!(self, AnnotationColor | AnnotationComment | AnnotationFilter | AnnotationHigh)
            || matches!(self, Field::AnnotationLabel | Field::AnnotationLow)
    }
}

impl ViewModel {
    /// The content of a field.
    pub(crate) fn field_text(&self, field: Field) -> String {
        let exact = |value: f64, unit: &str| Engineering::new(value, unit).digits(9).to_string();
        let axis_unit = self.seen.picture.axis_unit();
        let settings = &self.controls.trigger.settings;
        let time = |time: Option<f64>| exact(time.unwrap_or(0.0), axis_unit);
        let of = |channel: usize| self.controls.lanes.setup(self.channel_lane(channel));
        match field {
            Field::Name(channel) => of(channel).name,
            Field::Unit(channel) => of(channel).unit,
            Field::Scale(channel) => exact(of(channel).scale, &of(channel).unit),
            Field::Offset(channel) => exact(of(channel).offset, &of(channel).unit),
            Field::PerDivision(lane) => {
                let seen = self.controls.lanes.range(lane);
                let seen = seen.map_or(1.0, |range| range.height() / DIVISIONS_VERTICAL);
                let set = self.controls.lanes.vertical(lane);
                exact(set.map_or(seen, |set| set.per_division), &self.setup(lane).unit)
            }
            Field::Hysteresis => self.seen.picture.trigger.map_or(String::new(), |trigger| {
                let (value, unit) = self.trigger_hysteresis(&trigger);
                exact(value, &unit)
            }),
            Field::Holdoff => exact(settings.holdoff_s, axis_unit),
            Field::Corner => {
                let corner = settings.coupling.corner_hz(self.seen.picture.span());
                exact(corner.unwrap_or(1.0), self.corner_unit())
            }
            Field::PulseMin => time(settings.pulse_min_s),
            Field::PulseMax => time(settings.pulse_max_s),
            Field::Dropout => time(settings.dropout_s),
            Field::FindLevel | Field::FindLow | Field::FindHigh => match &self.open.find_form {
                Some(form) => {
                    let value = match field {
                        Field::FindLevel => form.level,
                        Field::FindLow => form.low,
                        _ => form.high,
                    };
                    Engineering::new(value, &self.find_unit()).digits(5).to_string()
                }
                None => String::new(),
            },
            Field::FindLonger => self.find_time_text(self.open.find_form.as_ref().and_then(|it| it.longer_s)),
            Field::FindShorter => {
                self.find_time_text(self.open.find_form.as_ref().and_then(|it| it.shorter_s))
            }
            Field::FindFrom => self.find_time_text(self.open.find_form.as_ref().and_then(|it| it.from_s)),
            Field::FindTo => self.find_time_text(self.open.find_form.as_ref().and_then(|it| it.to_s)),
            Field::LevelBottom | Field::LevelTop => {
                let levels = self.controls.levels.unwrap_or(self.controls.levels_seen.1);
                exact(if field == Field::LevelTop { levels.top } else { levels.bottom }, LEVEL_UNIT)
            }
            Field::PinLabel(at) => {
                let pin = self.controls.pins.list.iter().find(|pin| pin.at == at);
                pin.map_or(String::new(), |pin| pin.label.clone())
            }
            _ => self.annotation_field(field),
        }
    }

    /// Whether a text is valid in a field.
    pub(crate) fn takes(&self, field: Field, text: &str) -> bool {
        self.number_of(field, text).is_ok()
    }

    /// Sets the value of a field.
    ///
    /// # Errors
    /// One line for a person, if the text is invalid.
    pub(crate) fn set_field(&mut self, field: Field, text: &str) -> Result<(), String> {
        let value = self.number_of(field, text)?;
        if field.is_of_annotations() {
            return self.set_annotation_field(field, text, value);
        }
        let some = Some(value).filter(|value| *value > 0.0);
        let short = |length: usize| text.chars().take(length).collect::<String>();
        let trigger = &mut self.controls.trigger.settings;
        match field {
            Field::Name(channel) | Field::Unit(channel) | Field::Scale(channel) | Field::Offset(channel) => {
                if channel >= CHANNELS_MAX {
                    return Ok(());
                }
                let setup = self.controls.lanes.channel_mut(channel);
                match field {
                    Field::Name(_) => setup.name = short(NAME_CHARS_MAX),
                    Field::Unit(_) => setup.unit = short(UNIT_CHARS_MAX),
                    Field::Scale(_) => setup.scale = value,
                    _ => setup.offset = value,
                }
            }
            Field::PerDivision(lane) => self.controls.lanes.set_scale(lane, value),
            Field::Hysteresis => {
                let per_count = self.trigger_unit().0;
                self.controls.trigger.settings.hysteresis = some.map(|distance| distance / per_count);
            }
            Field::Holdoff => trigger.holdoff_s = value,
            Field::Corner => trigger.coupling = trigger.coupling.with_corner_hz(some),
            Field::PulseMin => trigger.pulse_min_s = some,
            Field::PulseMax => trigger.pulse_max_s = some,
            Field::Dropout => trigger.dropout_s = some,
            Field::FindLevel
            | Field::FindLow
            | Field::FindHigh
            | Field::FindLonger
            | Field::FindShorter
            | Field::FindFrom
            | Field::FindTo => {
                let Some(form) = &mut self.open.find_form else { return Ok(()) };
                let mut next = form.clone();
                let is_empty = text.trim().is_empty();
                match field {
                    Field::FindLevel => next.level = value,
                    Field::FindLow => next.low = value,
                    Field::FindHigh => next.high = value,
                    Field::FindLonger => next.longer_s = some,
                    Field::FindShorter => next.shorter_s = some,
                    Field::FindFrom => next.from_s = (!is_empty).then_some(value),
                    _ => next.to_s = (!is_empty).then_some(value),
                }
                if next.from_s.zip(next.to_s).is_some_and(|(from, to)| from >= to) {
                    return Err("a search ends after it begins: give a later time".into());
                }
                *form = next;
            }
            Field::LevelBottom | Field::LevelTop => {
                let mut levels = self.controls.levels.unwrap_or(self.controls.levels_seen.1);
                *(if field == Field::LevelTop { &mut levels.top } else { &mut levels.bottom }) = value;
                let levels = ValueRange::of_levels(levels.bottom, levels.top);
                let why = "the highest level must be at least 1 dB above the lowest";
                self.controls.levels = Some(levels.ok_or(why)?);
            }
            Field::PinLabel(at) => {
                if let Some(pin) = self.controls.pins.list.iter_mut().find(|pin| pin.at == at) {
                    pin.label = short(LABEL_CHARS_MAX);
                }
            }
            _ => {}
        }
        self.seen.hud_made_ns = 0;
        Ok(())
    }

    /// The number of a text in a field; 0 if the field takes words, or leaves the number to the scope.
    fn number_of(&self, field: Field, text: &str) -> Result<f64, String> {
        let number = |unit: &str, fits: fn(f64) -> bool| {
            let fits = |value: &f64| fits(*value) && (*value == 0.0 || NUMBERS.contains(&value.abs()));
            // A level may be typed in dB, too.
            let is_short = unit == LEVEL_UNIT && !text.trim().ends_with(LEVEL_UNIT);
            let value = parse_quantity(text.trim(), if is_short { "dB" } else { unit }).filter(fits);
            value.ok_or_else(|| format!("invalid number {text:?}: use a value such as 150u or 1.5 m"))
        };
        let axis_unit = self.seen.picture.axis_unit();
        let unit_of = |channel: usize| self.controls.lanes.setup(LaneId::real(channel)).unit;
        match field {
            Field::Name(_) | Field::Unit(_) | Field::PinLabel(_) => Ok(0.0),
            Field::AnnotationLabel | Field::AnnotationComment | Field::AnnotationFilter => Ok(0.0),
            Field::AnnotationColor => annotation_color(text).map(|_| 0.0),
            Field::AnnotationLow | Field::AnnotationHigh if text.trim().is_empty() => Ok(0.0),
            Field::AnnotationLow | Field::AnnotationHigh => number("Hz", |_| true),
            Field::PulseMin
            | Field::PulseMax
            | Field::Dropout
            | Field::FindLonger
            | Field::FindShorter
            | Field::FindFrom
            | Field::FindTo
                if text.trim().is_empty() =>
            {
                Ok(0.0)
            }
            Field::FindLevel | Field::FindLow | Field::FindHigh => number(&self.find_unit(), |_| true),
            Field::Scale(channel) => number(&unit_of(channel), |scale| scale != 0.0),
            Field::Offset(channel) => number(&unit_of(channel), |_| true),
            Field::PerDivision(lane) => number(&self.setup(lane).unit, |value| value > 0.0),
            Field::Hysteresis => number(&self.trigger_unit().1, |distance| distance >= 0.0),
            Field::LevelBottom | Field::LevelTop => number(LEVEL_UNIT, |dbfs| dbfs.abs() <= 1000.0),
            Field::Corner => number(self.corner_unit(), |corner| corner > 0.0),
            Field::Holdoff
            | Field::PulseMin
            | Field::PulseMax
            | Field::Dropout
            | Field::FindLonger
            | Field::FindShorter
            | Field::FindFrom
            | Field::FindTo => number(axis_unit, |time| time >= 0.0),
        }
    }

    /// Units per count of the triggering lane, without a sign, and its unit.
    fn trigger_unit(&self) -> (f64, String) {
        let lane =
            self.seen.picture.trigger.map_or(self.controls.trigger.settings.lane, |it| it.settings.lane);
        let setup = self.setup(lane);
        (setup.scale.abs(), setup.unit)
    }

    /// The unit of frequencies, in seconds or in samples.
    fn corner_unit(&self) -> &'static str {
        if self.seen.picture.axis_unit() == "s" { "Hz" } else { "/S" }
    }
}

/// Limits of physical quantities: beyond them, products overflow.
const NUMBERS: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
const NAME_CHARS_MAX: usize = 24;
const UNIT_CHARS_MAX: usize = 8;
const LABEL_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::options::ViewOptions;
    use crate::testing::sine_batch;

    #[test]
    fn what_stands_in_a_field_is_taken_again_and_what_means_nothing_changes_nothing() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode);
        model.request(100);
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        model.refresh();
        model.range(0);
        let lane = LaneId::real(0);
        for (field, typed, shown) in [
            (Field::Unit(0), "V", "V"),
            (Field::Scale(0), "2m", "2 mV"),
            (Field::Offset(0), "-1.5 V", "-1.5 V"),
            (Field::Name(0), "probe", "probe"),
            (Field::PerDivision(lane), "500 mV", "500 mV"),
            (Field::Holdoff, "3m", "3 ms"),
            (Field::Corner, "50", "50 Hz"),
            (Field::PulseMax, "20u", "20 \u{b5}s"),
            (Field::Dropout, "", "0 s"),
        ] {
            model.set_field(field, typed).unwrap();
            assert_eq!(model.field_text(field), shown, "{field:?}");
            model.set_field(field, shown).unwrap();
            assert_eq!(model.field_text(field), shown, "{field:?}");
        }
        for field in [Field::Scale(0), Field::PerDivision(lane), Field::Holdoff] {
            let before = model.field_text(field);
            for wrong in ["", "x", "-", "0/0"] {
                assert!(model.set_field(field, wrong).is_err(), "{field:?} {wrong}");
            }
            assert_eq!(model.field_text(field), before);
        }
        assert!(model.set_field(Field::Scale(0), "0").is_err());
        model.set_field(Field::Name(usize::MAX), "x").unwrap();
    }
}
