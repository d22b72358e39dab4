//! Buttons and fields, which each front end draws in its own way.

use grebe_scope::Slope;
use grebe_scope::raster::Color;
use serde::{Deserialize, Serialize};

use crate::data::lane::LaneId;
use crate::data::trigger::TriggerCoupling;
use crate::model::action::Action;
use crate::model::fields::Field;
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;

pub(crate) type Rgb = [u8; 3];

/// Effect of a press on a widget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Press {
    Act(Action),
    /// Selects a lane and opens or closes its settings.
    Settings(LaneId),
    /// Goes to a trigger of the list, or to a search result.
    Trigger(f64),
    Found(usize),
    /// Pins a trigger to the list, or unpins it.
    Pin(f64),
    /// Goes to an annotation of the list, and selects it.
    Annotation(usize),
    /// The filter before the trigger.
    Coupling(TriggerCoupling),
    EndFind,
    /// Starts a search with the form's values; toggles the form's direction.
    Find,
    FindSlope(Slope),
    /// The waveform of the generator.
    Wave(String),
    /// Opens or closes the controls of the source.
    Source,
}

/// A label, a button, or a field.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Widget {
    pub(crate) words: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) title: String,
    /// Effect of a press.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act: Option<Press>,
    /// Whether it is disabled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_off: bool,
    /// Whether the toggled setting is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<Rgb>,
    /// The field of the text typed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Field>,
    /// Its look.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) class: &'static str,
}

impl Widget {
    pub(crate) fn label(words: impl Into<String>) -> Widget {
        Widget { words: words.into(), ..Widget::default() }
    }

    pub(crate) fn pressed(words: impl Into<String>, title: &str, press: Press) -> Widget {
        Widget { words: words.into(), title: title.into(), act: Some(press), ..Widget::default() }
    }

    pub(crate) fn button(words: impl Into<String>, title: &str, action: Action) -> Widget {
        Widget::pressed(words, title, Press::Act(action))
    }

    pub(crate) fn toggle(words: impl Into<String>, title: &str, action: Action, is_on: bool) -> Widget {
        Widget { is_on: Some(is_on), ..Widget::button(words, title, action) }
    }

    /// A button that opens the list of a setting's values.
    pub(crate) fn choice(words: impl Into<String>, title: &str, setting: Setting) -> Widget {
        Widget { class: "choice", ..Widget::button(words, title, Action::Choices(setting)) }
    }

    pub(crate) fn field(model: &ViewModel, title: &str, field: Field) -> Widget {
        Widget {
            words: model.field_text(field),
            title: title.into(),
            field: Some(field),
            ..Widget::default()
        }
    }

    pub(crate) fn is(self, class: &'static str) -> Widget {
        Widget { class, ..self }
    }

    pub(crate) fn colored(self, color: Rgb) -> Widget {
        Widget { color: Some(color), ..self }
    }
}

pub(crate) fn rgb(color: Color) -> Rgb {
    [color.r, color.g, color.b]
}
