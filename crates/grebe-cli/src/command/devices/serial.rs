//! Serial ports.

use grebe_stages::serial_ports;

use super::bridge::{Bridge, Device};

pub(super) fn list() -> Bridge {
    let found = serial_ports().into_iter().map(|port| Device { uri: port.uri, about: port.what }).collect();
    Bridge::of("serial ports", Ok(found))
}
