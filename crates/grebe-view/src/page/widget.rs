//! What can be pressed or typed into, as the page draws it.

use grebe_scope::raster::Color;
use serde::Serialize;

use super::asked::Deed;
use crate::model::action::Action;
use crate::model::fields::Field;
use crate::model::setting::Setting;
use crate::model::view_model::ViewModel;

pub(super) type Rgb = [u8; 3];

/// Words, a button, or a field.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(super) struct Widget {
    pub(super) words: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) title: String,
    /// What to send back when it is pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) act: Option<Deed>,
    /// Whether what it switches is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) color: Option<Rgb>,
    /// What is typed here is sent as this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<Field>,
    /// How it looks.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) class: &'static str,
}

impl Widget {
    pub(super) fn label(words: impl Into<String>) -> Widget {
        Widget { words: words.into(), ..Widget::default() }
    }

    pub(super) fn deed(words: impl Into<String>, title: &str, deed: Deed) -> Widget {
        Widget { words: words.into(), title: title.into(), act: Some(deed), ..Widget::default() }
    }

    pub(super) fn button(words: impl Into<String>, title: &str, action: Action) -> Widget {
        Widget::deed(words, title, Deed::Act(action))
    }

    pub(super) fn toggle(words: impl Into<String>, title: &str, action: Action, is_on: bool) -> Widget {
        Widget { is_on: Some(is_on), ..Widget::button(words, title, action) }
    }

    /// A button that opens the list of what a setting can be.
    pub(super) fn choice(words: impl Into<String>, title: &str, setting: Setting) -> Widget {
        Widget { class: "choice", ..Widget::button(words, title, Action::Choices(setting)) }
    }

    pub(super) fn field(model: &ViewModel, title: &str, field: Field) -> Widget {
        Widget {
            words: model.field_text(field),
            title: title.into(),
            field: Some(field),
            ..Widget::default()
        }
    }

    pub(super) fn is(self, class: &'static str) -> Widget {
        Widget { class, ..self }
    }

    pub(super) fn colored(self, color: Rgb) -> Widget {
        Widget { color: Some(color), ..self }
    }
}

pub(super) fn rgb(color: Color) -> Rgb {
    [color.r, color.g, color.b]
}
