//! The settings as lines of text that a page keeps. It sends them again after a reconnect, and a link to a view
//! contains them.

use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::model::channel::ThemeChoice;
use crate::model::controls::TimeFrequencyBox;
use crate::model::session::Session;
use crate::model::view_model::ViewModel;

/// A session, with the visible range that a new scope lacks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct View {
    /// The sample index of the right edge, if the picture is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<f64>,
    /// The visible part of the spectrum.
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<(f64, f64)>,
    /// The box: its first and its last sample, its lower and its upper frequency.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    boxed: Option<(u64, u64, f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    select: Option<LaneId>,
    #[serde(flatten)]
    session: Session,
}

/// The settings that differ from a new scope, one per line: `trigger.kind = "pulse"` with the full key.
pub(super) fn view_of(model: &ViewModel) -> String {
    let controls = &model.controls;
    let zoom = controls.spectrum_zoom;
    let selected = model.selected();
    let view = View {
        at: controls.time.held_at().map(f64::round),
        band: (zoom != (0.0, 1.0)).then_some(zoom),
        boxed: controls
            .boxed
            .map(|TimeFrequencyBox { samples: [from, to], frequencies: [low, high] }| (from, to, low, high)),
        select: (selected != model.channel_lane(0)).then_some(selected),
        session: Session::of(controls),
    };
    let fresh = View { session: Session::of(&crate::model::controls::Controls::new()), ..View::default() };
    let value = |view: &View| toml::Value::try_from(view).ok();
    let (Some(now), Some(fresh)) = (value(&view), value(&fresh)) else { return String::new() };
    let mut lines = Vec::new();
    differences("", &now, Some(&fresh), &mut lines);
    lines.join("\n")
}

fn differences(key: &str, now: &toml::Value, fresh: Option<&toml::Value>, lines: &mut Vec<String>) {
    match now {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                differences(&key, value, fresh.and_then(|fresh| fresh.get(name)), lines);
            }
        }
        value if Some(value) != fresh => lines.push(format!("{key}={value}")),
        _ => {}
    }
}

/// Applies lines; invalid ones are ignored. `is_light` is the theme, if no line sets it.
pub(super) fn restore(model: &mut ViewModel, lines: &str, is_light: bool) {
    let known = lines.lines().filter(|line| toml::from_str::<View>(line).is_ok());
    let text = known.take(LINES_MAX).collect::<Vec<_>>().join("\n");
    let view: View = toml::from_str(&text).unwrap_or_default();
    let has_theme = text.lines().any(|line| line.starts_with("light"));
    if !text.is_empty() {
        view.session.restore(&mut model.controls);
    }
    if !has_theme {
        model.controls.theme = if is_light { ThemeChoice::Light } else { ThemeChoice::Dark };
    }
    if let Some((from, to)) = view.band.filter(|(from, to)| *from >= 0.0 && from < to && *to <= 1.0) {
        model.controls.spectrum_zoom = (from, to);
    }
    if let Some((from, to, low, high)) = view.boxed.filter(|(from, to, low, high)| from < to && low < high) {
        model.controls.boxed = Some(TimeFrequencyBox { samples: [from, to], frequencies: [low, high] });
    }
    if let Some(lane) = view.select {
        model.controls.lanes.selected = lane;
    }
    if let Some(at) = view.at.filter(|at| at.is_finite()) {
        model.controls.time.hold_at(at);
    }
}

const LINES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::{Action, Step};
    use crate::model::options::ViewOptions;

    fn model() -> ViewModel {
        let (_, link) = ScopeFeed::new(1 << 20);
        ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode)
    }

    #[test]
    fn what_is_set_is_there_again_and_a_new_scope_has_nothing_to_say() {
        let mut set = model();
        assert_eq!(view_of(&set), "");
        for action in [
            Action::Spectrum,
            Action::Measure,
            Action::Longer,
            Action::Slope,
            Action::Invert,
            Action::Vertical(Step::Up),
            Action::Theme,
            Action::Channel(3),
            Action::Cursors,
        ] {
            set.act(action);
        }
        set.controls.spectrum_zoom = (0.25, 0.5);
        set.controls.time.hold_at(123_456.0);
        let view = view_of(&set);
        let mut again = model();
        restore(&mut again, &view, false);
        assert_eq!(view_of(&again), view);
        assert_eq!(
            again.controls.viewport(&again.seen.picture, 9),
            set.controls.viewport(&set.seen.picture, 9)
        );
        for line in
            ["show.spectrum=true", "measure=true", "trigger.falling=true", "light=true", "at=123456.0"]
        {
            assert!(view.lines().any(|it| it == line), "{line} in {view}");
        }
    }

    #[test]
    fn lines_that_mean_nothing_are_passed_over_and_the_theme_is_the_pages_where_none_is_said() {
        let mut model = model();
        restore(
            &mut model,
            "nonsense\nspan=0.25\nshow={\ntrigger.kind=\"pulse\"\nat=1e999\nband=[3,1]",
            true,
        );
        assert_eq!((model.controls.time.span, model.controls.theme), (Some(0.25), ThemeChoice::Light));
        assert_eq!(model.controls.trigger.settings.kind.name(), "pulse");
        assert_eq!(model.controls.spectrum_zoom, (0.0, 1.0));
        restore(&mut model, "light=false", true);
        assert_eq!(model.controls.theme, ThemeChoice::Dark);
    }
}
