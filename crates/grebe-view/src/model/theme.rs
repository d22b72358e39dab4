//! Dark or light.

use grebe_scope::raster::Theme;

/// One of the two themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeChoice {
    /// For dark surroundings.
    #[default]
    Dark,
    /// For bright surroundings and for print.
    Light,
}

impl ThemeChoice {
    pub(crate) fn colors(self) -> Theme {
        match self {
            ThemeChoice::Dark => Theme::dark(),
            ThemeChoice::Light => Theme::light(),
        }
    }

    pub(crate) fn other(self) -> ThemeChoice {
        match self {
            ThemeChoice::Dark => ThemeChoice::Light,
            ThemeChoice::Light => ThemeChoice::Dark,
        }
    }
}
