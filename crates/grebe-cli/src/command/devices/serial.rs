//! Serial ports.

use grebe_stages::serial_ports;

use super::bridge::{Bridge, Device};

pub(super) fn list() -> Bridge {
    let found = serial_ports().into_iter().map(|port| Device { uri: port.uri, about: port.what }).collect();
    let not_listed = if cfg!(unix) {
        "not listed here; name the port: serial:///dev/NAME"
    } else {
        "only on Linux and macOS"
    };
    Bridge::of("serial ports", if cfg!(target_os = "linux") { Ok(found) } else { Err(not_listed.to_owned()) })
}
