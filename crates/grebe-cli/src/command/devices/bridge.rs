//! What a bridge has to offer.

use serde::Serialize;

/// What a bridge has to offer.
#[derive(Debug, Serialize)]
pub(super) struct Bridge {
    /// What its devices are: `radios`.
    pub(super) bridge: &'static str,
    pub(super) devices: Vec<Device>,
    /// Why there are none, or not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// Something that can be opened.
#[derive(Debug, Serialize)]
pub(super) struct Device {
    /// What opens it.
    pub(super) uri: String,
    /// What it is, for people.
    pub(super) about: String,
}

impl Bridge {
    pub(super) fn of(bridge: &'static str, found: Result<Vec<Device>, String>) -> Self {
        match found {
            Ok(devices) => Self { bridge, devices, note: None },
            Err(note) => Self { bridge, devices: Vec::new(), note: Some(note) },
        }
    }
}
