//! What can be pressed or typed into: every front end draws it in its own way.

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

/// What a press on a widget does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Press {
    Act(Action),
    /// Chooses a lane and opens its settings, or closes them.
    Settings(LaneId),
    /// Goes to a trigger of the list, to something that was found.
    Trigger(f64),
    Found(usize),
    /// Keeps a trigger in the list, or no longer.
    Pin(f64),
    /// Goes to an annotation of the list, and chooses it.
    Annotation(usize),
    /// The part of the signal that the trigger sees.
    Coupling(TriggerCoupling),
    EndFind,
    /// Searches for what the form says; the direction that it says.
    Find,
    FindSlope(Slope),
    /// The waveform of the generator.
    Wave(String),
    /// Opens or closes what can be changed at the source.
    Source,
}

/// Words, a button, or a field.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Widget {
    pub(crate) words: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) title: String,
    /// What a press does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) act: Option<Press>,
    /// Whether it cannot be pressed now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_off: bool,
    /// Whether what it switches is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<Rgb>,
    /// What is typed here is sent as this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Field>,
    /// How it looks.
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

    /// A button that opens the list of what a setting can be.
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
