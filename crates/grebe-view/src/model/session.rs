//! What a person has set, as a file: the next scope goes on from there.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use grebe_scope::raster::Color;
use grebe_scope::{Slope, Window as Weighting};

use crate::data::math::MathOperation;
use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings};
use crate::data::viewport::{ChannelMask, SpectrumSettings};
use crate::error::Error;
use crate::model::channel::{ChannelSetup, ThemeChoice};
use crate::model::controls::{Controls, Show};
use crate::model::quantities::QuantitySet;
use crate::model::vertical::VerticalScale;

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
    span_s: Option<f64>,
    light: bool,
    #[serde(deserialize_with = "lenient")]
    cursors: Option<[f64; 2]>,
    #[serde(deserialize_with = "lenient")]
    value_cursors: Option<[f64; 2]>,
    measure: bool,
    /// Which measurements stand in the table, by the names of `--measure json`; none: the usual.
    #[serde(deserialize_with = "lenient")]
    quantities: Option<Vec<String>>,
    show: Show,
    trigger: TriggerToml,
    spectrum: SpectrumToml,
    math: MathToml,
    channels: Vec<ChannelToml>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct TriggerToml {
    /// None: what suits the span.
    #[serde(deserialize_with = "lenient")]
    mode: Option<TriggerMode>,
    #[serde(deserialize_with = "lenient")]
    kind: TriggerKind,
    channel: usize,
    falling: bool,
    level: Option<i16>,
    position: Option<f64>,
    lf_reject: bool,
    /// Corner of LF reject; none: two cycles per screen.
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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct MathToml {
    #[serde(deserialize_with = "lenient")]
    operation: Option<MathOperation>,
    a: usize,
    b: usize,
}

impl Default for MathToml {
    fn default() -> MathToml {
        MathToml { operation: None, a: 1, b: 2 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ChannelToml {
    on: bool,
    name: String,
    unit: String,
    scale: f64,
    offset: f64,
    inverted: bool,
    ac: bool,
    color: Option<[u8; 3]>,
    per_division: Option<f64>,
    position: Option<f64>,
    /// As `quantities` of all channels; none: as all.
    #[serde(deserialize_with = "lenient")]
    quantities: Option<Vec<String>>,
}

impl Default for ChannelToml {
    fn default() -> ChannelToml {
        ChannelToml::of(&ChannelSetup::default(), true)
    }
}

impl Session {
    /// Reads a session. Missing settings are as in a new scope; unknown ones are ignored.
    ///
    /// # Errors
    /// [`Error::Session`], with the line and the field.
    pub fn from_toml(text: &str) -> Result<Session, Error> {
        toml::from_str(text).map_err(|error| Error::Session { why: error.to_string().trim_end().to_owned() })
    }

    /// The session as a file that people can read and edit.
    pub fn to_toml(&self) -> String {
        // Numbers, strings and lists: TOML can express all of it.
        toml::to_string(self).unwrap_or_default()
    }

    pub(crate) fn of(controls: &Controls) -> Session {
        let (trigger, is_mode_chosen) = (controls.trigger.settings, controls.trigger.is_mode_chosen);
        let spectrum = controls.spectrum;
        let channels = 0..controls.lanes.setups.len();
        Session {
            span_s: controls.time.span,
            light: controls.theme == ThemeChoice::Light,
            cursors: controls.cursors.times,
            value_cursors: controls.cursors.values,
            measure: controls.is_measuring,
            quantities: Some(controls.measured.of_all().names()),
            show: controls.show,
            trigger: TriggerToml {
                mode: is_mode_chosen.then_some(trigger.mode),
                kind: trigger.kind,
                channel: trigger.channel + 1,
                falling: trigger.slope == Slope::Falling,
                level: trigger.level,
                position: Some(trigger.position),
                lf_reject: trigger.coupling.is_lf_reject(),
                corner_hz: match trigger.coupling {
                    TriggerCoupling::LfReject { corner_hz } => corner_hz,
                    TriggerCoupling::Dc => None,
                },
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
            },
            math: MathToml {
                operation: controls.math,
                a: controls.math_inputs[0] + 1,
                b: controls.math_inputs[1] + 1,
            },
            channels: channels
                .map(|channel| ChannelToml {
                    quantities: controls.measured.own(channel).map(QuantitySet::names),
                    ..ChannelToml::of(&controls.lanes.own(channel), controls.channels.contains(channel))
                })
                .collect(),
        }
    }

    /// Sets what the session says; a number out of range is as in a new scope.
    pub(crate) fn restore(&self, controls: &mut Controls) {
        let is_positive = |value: &f64| value.is_finite() && *value > 0.0;
        controls.time.span = self.span_s.filter(is_positive);
        controls.theme = if self.light { ThemeChoice::Light } else { ThemeChoice::Dark };
        controls.cursors.times = self.cursors;
        controls.cursors.values = self.value_cursors;
        controls.is_measuring |= self.measure;
        let named = |names: &Vec<String>| QuantitySet::named(names);
        let own = self.channels.iter().map(|channel| channel.quantities.as_ref().map(named));
        controls.measured.set(self.quantities.as_ref().map(named), own);
        controls.show = self.show;
        let fresh = TriggerSettings::new(TriggerMode::Auto);
        controls.trigger.is_mode_chosen = self.trigger.mode.is_some();
        controls.trigger.settings = TriggerSettings {
            mode: self.trigger.mode.unwrap_or(fresh.mode),
            kind: self.trigger.kind,
            channel: self.trigger.channel.saturating_sub(1).min(7),
            slope: if self.trigger.falling { Slope::Falling } else { Slope::Rising },
            level: self.trigger.level,
            position: self.trigger.position.filter(|at| (0.0..=1.0).contains(at)).unwrap_or(fresh.position),
            coupling: match self.trigger.lf_reject {
                true => TriggerCoupling::LfReject { corner_hz: self.trigger.corner_hz.filter(is_positive) },
                false => TriggerCoupling::Dc,
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
            waterfall: None,
        };
        controls.math = self.math.operation;
        controls.math_inputs = [self.math.a, self.math.b].map(|channel| channel.saturating_sub(1).min(7));
        let mut mask = ChannelMask::ALL;
        for (channel, (setup, toml)) in controls.lanes.setups.iter_mut().zip(&self.channels).enumerate() {
            *setup = toml.setup();
            mask = if toml.on { mask } else { mask.toggled(channel) };
        }
        controls.channels = mask;
    }
}

impl ChannelToml {
    fn of(setup: &ChannelSetup, on: bool) -> ChannelToml {
        ChannelToml {
            on,
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

/// Reads a name; one that is not known is as in a new scope.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(toml::Value::deserialize(from)?.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::picture::Picture;
    use crate::model::action::{Action, Step};
    use crate::model::choices::Setting;

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
            Action::Trigger(TriggerMode::Normal),
            Action::Next(Setting::TriggerKind),
            Action::Slope,
            Action::TriggerCoupling,
            Action::Corner(Step::Up),
            Action::Holdoff(Step::Up),
            Action::Cursors,
            Action::Statistics,
            Action::Spectrum,
            Action::TransformSize(Step::Up),
            Action::Next(Setting::Weighting),
            Action::Select(1),
            Action::Invert,
            Action::Coupling,
            Action::Vertical(Step::Up),
            Action::Overlay,
            Action::Next(Setting::Math),
            Action::Next(Setting::Math),
        ] {
            set.apply(action, &picture);
        }
        set.trigger.settings.level = Some(-77);
        set.trigger.settings.pulse_min_s = Some(20e-6);
        set.trigger.settings.pulse_max_s = Some(1e-3);
        set.trigger.settings.dropout_s = Some(0.25);
        set.set(Setting::Quantities, 13, &picture);
        set.measured.toggle_own(2);
        set.set(Setting::Quantities, 0, &picture);
        set.cursors.values = Some([-1.5, 2.0]);
        set.lanes.setups[1].name = "probe \"x\"".into();
        set.lanes.setups[1].color = Some(Color::rgb(1, 2, 3));
        let session = Session::of(&set);
        let read = Session::from_toml(&session.to_toml()).unwrap();
        assert_eq!(read, session);
        let mut restored = controls();
        read.restore(&mut restored);
        assert_eq!(Session::of(&restored), session);
        assert_eq!(restored.viewport(&picture, 9), set.viewport(&picture, 9));
        assert_eq!(restored.lanes.setups, set.lanes.setups);
        assert_eq!(restored.measured, set.measured);
    }

    #[test]
    fn an_empty_session_is_a_new_scope_and_nonsense_is_passed_over() {
        let (fresh, picture) = (controls(), Picture::waiting());
        for text in [
            "",
            "span_s = -1\nfuture = 3\n[spectrum]\nsize = 1000\nwindow = 'round'\n[trigger]\nposition = 7\nkind = 'x'\nholdoff_s = -1\ncorner_hz = 0",
            "[[channels]]\nscale = 0\nper_division = -1\noffset = nan",
        ] {
            let mut restored = controls();
            Session::from_toml(text).unwrap().restore(&mut restored);
            assert_eq!(restored.viewport(&picture, 9), fresh.viewport(&picture, 9), "{text}");
            assert_eq!(restored.lanes.setups, fresh.lanes.setups, "{text}");
        }
    }
}
