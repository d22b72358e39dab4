//! The settings of a scope as a file, so that the next scope can continue.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use grebe_scope::raster::Color;
use grebe_scope::{Slope, Window as Weighting};

use crate::data::lane::{CHANNELS_MAX, LaneId, LaneMask, Part};
use crate::data::math::MathOperation;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings};
use crate::data::viewport::{Detector, SpectrumSettings};
use crate::error::Error;
use crate::model::channel::{ChannelSetup, ThemeChoice};
use crate::model::controls::{Controls, Show};
use crate::model::quantities::QuantitySet;
use crate::model::vertical::{ValueRange, VerticalScale};

/// The settings of a scope, to be kept and restored.
///
/// ```
/// use grebe_view::Session;
/// let session = Session::from_toml("span_s = 0.01\n[trigger]\nmode = 'normal'\nlevel = 120\n")?;
/// assert!(session.to_toml().contains("mode = \"normal\""));
/// assert!(Session::from_toml("span_s = 'long'").unwrap_err().to_string().contains("span_s"));
/// # Ok::<(), grebe_view::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    #[serde(alias = "span")]
    span_s: Option<f64>,
    light: bool,
    #[serde(deserialize_with = "lenient")]
    cursors: Option<[f64; 2]>,
    #[serde(deserialize_with = "lenient")]
    value_cursors: Option<[f64; 2]>,
    /// Visible part of the spectrum, as parts of the rate.
    #[serde(deserialize_with = "lenient")]
    markers: Option<[f64; 2]>,
    /// Lowest and highest level of the waterfall's colours, in decibels; none: automatic, from the noise floor.
    #[serde(deserialize_with = "lenient")]
    levels: Option<(f64, f64)>,
    measure: bool,
    /// Measurements of the table, by the names of `--measure json`; none: the default.
    #[serde(deserialize_with = "lenient")]
    quantities: Option<Vec<String>>,
    /// Reference lane for delay and phase; none: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<LaneId>,
    show: Show,
    trigger: TriggerToml,
    spectrum: SpectrumToml,
    math: MathToml,
    /// Hidden channels, from 1.
    hidden: Vec<usize>,
    /// Visible parts of complex channels, by name; none: I and Q.
    #[serde(deserialize_with = "lenient")]
    parts: Option<Vec<String>>,
    lanes: Vec<LaneToml>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct TriggerToml {
    /// None: depends on the span.
    #[serde(deserialize_with = "lenient")]
    mode: Option<TriggerMode>,
    #[serde(deserialize_with = "lenient")]
    kind: TriggerKind,
    lane: String,
    falling: bool,
    level: Option<f64>,
    hysteresis: Option<f64>,
    position: Option<f64>,
    lf_reject: bool,
    hf_reject: bool,
    noise_reject: bool,
    /// Corner of either filter; none: two cycles per screen for LF reject, a hundred for HF reject.
    corner_hz: Option<f64>,
    holdoff_s: f64,
    pulse_min_s: Option<f64>,
    pulse_max_s: Option<f64>,
    dropout_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct SpectrumToml {
    size: usize,
    window: String,
    averages: u32,
    peak_hold: bool,
    #[serde(deserialize_with = "lenient")]
    detector: Detector,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct MathToml {
    #[serde(deserialize_with = "lenient")]
    operation: Option<MathOperation>,
    a: String,
    b: String,
}

impl Default for MathToml {
    fn default() -> MathToml {
        MathToml { operation: None, a: "1".into(), b: "2".into() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct LaneToml {
    /// `1` for a channel, `1.q` for a part of a complex one, `math`.
    lane: String,
    name: String,
    unit: String,
    scale: f64,
    offset: f64,
    inverted: bool,
    ac: bool,
    color: Option<[u8; 3]>,
    per_division: Option<f64>,
    position: Option<f64>,
    /// As `quantities` of all channels; none: the same as all.
    #[serde(deserialize_with = "lenient")]
    quantities: Option<Vec<String>>,
}

impl Default for LaneToml {
    fn default() -> LaneToml {
        LaneToml::of(LaneId::real(0), &ChannelSetup::default())
    }
}

impl Session {
    /// Reads a session. Missing settings have their defaults; unknown ones are ignored.
    ///
    /// # Errors
    /// [`Error::Session`], with the line and the field.
    pub fn from_toml(text: &str) -> Result<Session, Error> {
        toml::from_str(text).map_err(|error| Error::Session { why: error.to_string().trim_end().to_owned() })
    }

    /// The session as a file that people can read and edit.
    pub fn to_toml(&self) -> String {
        // TOML can express numbers, strings and lists.
        toml::to_string(self).unwrap_or_default()
    }

    pub(crate) fn of(controls: &Controls) -> Session {
        let (trigger, is_mode_chosen) = (controls.trigger.settings, controls.trigger.is_mode_chosen);
        let spectrum = controls.spectrum;
        let shown = controls.shown;
        let hidden = (0..CHANNELS_MAX).filter(|&channel| !shown.has_channel(channel));
        let parts = Part::COMPLEX.into_iter().filter(|&part| shown.has_part(part));
        let mut lanes: Vec<LaneId> = controls.lanes.set().chain(controls.measured.with_own()).collect();
        lanes.sort();
        lanes.dedup();
        Session {
            span_s: controls.time.span,
            light: controls.theme == ThemeChoice::Light,
            cursors: controls.cursors.times,
            value_cursors: controls.cursors.values,
            markers: controls.markers,
            levels: controls.levels.map(|levels| (levels.bottom, levels.top)),
            measure: controls.is_measuring,
            quantities: Some(controls.measured.of_all().names()),
            against: controls.against,
            show: controls.show,
            trigger: TriggerToml {
                mode: is_mode_chosen.then_some(trigger.mode),
                kind: trigger.kind,
                lane: trigger.lane.to_string(),
                falling: trigger.slope == Slope::Falling,
                level: trigger.level,
                hysteresis: trigger.hysteresis,
                position: Some(trigger.position),
                lf_reject: trigger.coupling.is_lf_reject(),
                hf_reject: matches!(trigger.coupling, TriggerCoupling::HfReject { .. }),
                noise_reject: trigger.is_noise_reject,
                corner_hz: trigger.coupling.set_corner_hz(),
                holdoff_s: trigger.holdoff_s,
                pulse_min_s: trigger.pulse_min_s,
                pulse_max_s: trigger.pulse_max_s,
                dropout_s: trigger.dropout_s,
            },
            spectrum: SpectrumToml {
                size: spectrum.size,
                window: spectrum.window.name().into(),
                averages: spectrum.averages,
                peak_hold: spectrum.is_peak_held,
                detector: spectrum.detector,
            },
            math: MathToml {
                operation: controls.math,
                a: controls.math_inputs[0].to_string(),
                b: controls.math_inputs[1].to_string(),
            },
            hidden: hidden.map(|channel| channel + 1).collect(),
            parts: Some(parts.map(|part| part.name().to_owned()).collect()),
            lanes: lanes
                .into_iter()
                .map(|lane| LaneToml {
                    quantities: controls.measured.own(lane).map(QuantitySet::names),
                    ..LaneToml::of(lane, &controls.lanes.own(lane))
                })
                .filter(|toml| *toml != LaneToml { lane: toml.lane.clone(), ..LaneToml::default() })
                .collect(),
        }
    }

    /// Applies the settings; a number out of range keeps its default.
    pub(crate) fn restore(&self, controls: &mut Controls) {
        let is_positive = |value: &f64| value.is_finite() && *value > 0.0;
        controls.time.span = self.span_s.filter(is_positive);
        controls.theme = if self.light { ThemeChoice::Light } else { ThemeChoice::Dark };
        controls.cursors.times = self.cursors;
        controls.cursors.values = self.value_cursors;
        controls.markers = self.markers.filter(|at| at.iter().all(|at| at.is_finite()));
        controls.levels = self.levels.and_then(|(bottom, top)| ValueRange::of_levels(bottom, top));
        controls.is_measuring |= self.measure;
        let named = |names: &Vec<String>| QuantitySet::named(names);
        // An invalid lane is ignored, like other invalid values.
        let lanes = || self.lanes.iter().filter_map(|toml| Some((toml.lane.parse::<LaneId>().ok()?, toml)));
        let own = lanes().filter_map(|(lane, toml)| Some((lane, named(toml.quantities.as_ref()?))));
        controls.measured.set(self.quantities.as_ref().map(named), own);
        controls.against = self.against;
        controls.show = self.show;
        let fresh = TriggerSettings::new(TriggerMode::Auto);
        controls.trigger.is_mode_chosen = self.trigger.mode.is_some();
        controls.trigger.settings = TriggerSettings {
            mode: self.trigger.mode.unwrap_or(fresh.mode),
            kind: self.trigger.kind,
            lane: self.trigger.lane.parse().unwrap_or(fresh.lane),
            slope: if self.trigger.falling { Slope::Falling } else { Slope::Rising },
            level: self.trigger.level.filter(|level| level.is_finite()),
            hysteresis: self.trigger.hysteresis.filter(|it| it.is_finite() && *it >= 0.0),
            position: self.trigger.position.filter(|at| (0.0..=1.0).contains(at)).unwrap_or(fresh.position),
            is_noise_reject: self.trigger.noise_reject,
            coupling: match (self.trigger.lf_reject, self.trigger.hf_reject) {
                (true, _) => {
                    TriggerCoupling::LfReject { corner_hz: self.trigger.corner_hz.filter(is_positive) }
                }
                (_, true) => {
                    TriggerCoupling::HfReject { corner_hz: self.trigger.corner_hz.filter(is_positive) }
                }
                _ => TriggerCoupling::Dc,
            },
            holdoff_s: Some(self.trigger.holdoff_s).filter(is_positive).unwrap_or(0.0),
            pulse_min_s: self.trigger.pulse_min_s.filter(is_positive),
            pulse_max_s: self.trigger.pulse_max_s.filter(is_positive),
            dropout_s: self.trigger.dropout_s.filter(is_positive),
            shot: 0,
        };
        let window = Weighting::ALL.into_iter().find(|window| window.name() == self.spectrum.window);
        let is_size = self.spectrum.size.is_power_of_two();
        let fresh = SpectrumSettings::default();
        controls.spectrum = SpectrumSettings {
            size: if is_size { self.spectrum.size.clamp(16, 1 << 18) } else { fresh.size },
            window: window.unwrap_or(fresh.window),
            averages: self.spectrum.averages.clamp(1, 1024),
            is_peak_held: self.spectrum.peak_hold,
            detector: self.spectrum.detector,
            waterfall: None,
            band: None,
        };
        controls.math = self.math.operation;
        for (input, text) in controls.math_inputs.iter_mut().zip([&self.math.a, &self.math.b]) {
            *input = text.parse().unwrap_or(*input);
        }
        for (lane, toml) in lanes() {
            *controls.lanes.setup_mut(lane) = toml.setup();
        }
        let hidden = self.hidden.iter().filter_map(|number| number.checked_sub(1));
        let parts = self.parts.iter().flatten();
        let parts = parts.filter_map(|name| Part::COMPLEX.into_iter().find(|part| part.name() == name));
        let parts: Vec<Part> = parts.collect();
        let is_other =
            |part: &Part| self.parts.is_some() && parts.contains(part) != LaneMask::ALL.has_part(*part);
        controls.shown =
            Part::COMPLEX.into_iter().filter(is_other).fold(LaneMask::ALL, LaneMask::part_toggled);
        let shown = (0..CHANNELS_MAX).filter(|channel| !hidden.clone().any(|it| it == *channel));
        controls.shown = controls.shown.only(shown);
    }
}

impl LaneToml {
    fn of(lane: LaneId, setup: &ChannelSetup) -> LaneToml {
        LaneToml {
            lane: lane.to_string(),
            name: setup.name.clone(),
            unit: setup.unit.clone(),
            scale: setup.scale,
            offset: setup.offset,
            inverted: setup.is_inverted,
            ac: setup.is_ac,
            color: setup.color.map(|color| [color.r, color.g, color.b]),
            per_division: setup.vertical.map(|vertical| vertical.per_division),
            position: setup.vertical.map(|vertical| vertical.position),
            quantities: None,
        }
    }

    fn setup(&self) -> ChannelSetup {
        let is_scale = self.scale.is_finite() && self.scale != 0.0;
        let per_division = self.per_division.filter(|value| value.is_finite() && *value > 0.0);
        let position = self.position.filter(|value| value.is_finite()).unwrap_or(0.0);
        ChannelSetup {
            name: self.name.clone(),
            unit: self.unit.clone(),
            scale: if is_scale { self.scale } else { 1.0 },
            offset: if self.offset.is_finite() { self.offset } else { 0.0 },
            is_inverted: self.inverted,
            is_ac: self.ac,
            color: self.color.map(|[r, g, b]| Color::rgb(r, g, b)),
            vertical: per_division.map(|per_division| VerticalScale { per_division, position }),
        }
    }
}

/// Reads a name; an unknown one becomes the default.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(toml::Value::deserialize(from)?.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::picture::Picture;
    use crate::model::action::{Action, Step};
    use crate::model::setting::Setting;

    fn controls() -> Controls {
        Controls::new()
    }

    #[test]
    fn what_was_set_is_there_again() {
        let (mut set, picture) = (controls(), Picture::waiting());
        for action in [
            Action::Longer,
            Action::Theme,
            Action::Channel(2),
            Action::Channel(100),
            Action::Part(Part::Q),
            Action::Part(Part::Phase),
            Action::Trigger(TriggerMode::Normal),
            Action::Next(Setting::TriggerKind),
            Action::Slope,
            Action::TriggerCoupling,
            Action::NoiseReject,
            Action::Corner(Step::Up),
            Action::Holdoff(Step::Up),
            Action::Cursors,
            Action::Statistics,
            Action::Spectrum,
            Action::TransformSize(Step::Up),
            Action::Next(Setting::Weighting),
            Action::Select(LaneId::real(1)),
            Action::Invert,
            Action::Coupling,
            Action::Vertical(Step::Up),
            Action::Overlay,
            Action::Next(Setting::Math),
            Action::Next(Setting::Math),
        ] {
            set.apply(action, &picture);
        }
        set.trigger.settings.level = Some(-77.0);
        set.trigger.settings.pulse_min_s = Some(20e-6);
        set.trigger.settings.pulse_max_s = Some(1e-3);
        set.trigger.settings.dropout_s = Some(0.25);
        set.trigger.settings.hysteresis = Some(40.0);
        set.set(Setting::Quantities, 13, &picture);
        set.measured.toggle_own(LaneId::real(2));
        set.set(Setting::Quantities, 0, &picture);
        set.cursors.values = Some([-1.5, 2.0]);
        set.lanes.channel_mut(1).name = "probe \"x\"".into();
        set.lanes.channel_mut(1).color = Some(Color::rgb(1, 2, 3));
        let phase = LaneId { channel: 200, part: Part::Phase };
        set.lanes.setup_mut(phase).is_inverted = true;
        let session = Session::of(&set);
        let read = Session::from_toml(&session.to_toml()).unwrap();
        assert_eq!(read, session);
        let mut restored = controls();
        read.restore(&mut restored);
        assert_eq!(Session::of(&restored), session);
        assert_eq!(restored.viewport(&picture, 9), set.viewport(&picture, 9));
        for lane in [LaneId::real(0), LaneId::real(1), phase, LaneId::MATH] {
            assert_eq!(restored.lanes.setup(lane), set.lanes.setup(lane));
        }
        assert_eq!(restored.measured, set.measured);
    }

    #[test]
    fn an_empty_session_is_a_new_scope_and_nonsense_is_passed_over() {
        let (fresh, picture) = (controls(), Picture::waiting());
        for text in [
            "",
            "span_s = -1\nfuture = 3\n[spectrum]\nsize = 1000\nwindow = 'round'\n[trigger]\nposition = 7\nkind = 'x'\nholdoff_s = -1\ncorner_hz = 0",
            "[[lanes]]\nscale = 0\nper_division = -1\noffset = nan\n[[lanes]]\nlane = 'x'\nscale = 7",
            "hidden = [0, 1000]\nparts = ['i', 'q', 'x']",
        ] {
            let mut restored = controls();
            Session::from_toml(text).unwrap().restore(&mut restored);
            assert_eq!(restored.viewport(&picture, 9), fresh.viewport(&picture, 9), "{text}");
            for lane in [LaneId::real(0), LaneId::MATH] {
                assert_eq!(restored.lanes.setup(lane), fresh.lanes.setup(lane), "{text}");
            }
        }
    }
}
