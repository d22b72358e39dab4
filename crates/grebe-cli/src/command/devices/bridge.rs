//! Devices of a bridge.

use serde::Serialize;

/// Devices of a bridge.
#[derive(Debug, Serialize)]
pub(super) struct Bridge {
    /// Kind of the devices: `radios`.
    pub(super) bridge: &'static str,
    pub(super) devices: Vec<Device>,
    /// Reason for an empty or incomplete list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// Device or stream.
#[derive(Debug, Serialize)]
pub(super) struct Device {
    /// URI that opens it.
    pub(super) uri: String,
    /// Description for people.
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
