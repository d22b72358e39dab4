//! Radios behind SoapySDR.

use std::sync::mpsc::channel;
use std::time::Duration;

use grebe_stages::soapy_devices;

use super::bridge::{Bridge, Device};

pub(super) fn list() -> Bridge {
    Bridge::of("radios (SoapySDR)", found())
}

fn found() -> Result<Vec<Device>, String> {
    let (sender, found) = channel();
    // Drivers are foreign code, and query the bus and the network.
    std::thread::spawn(move || drop(sender.send(soapy_devices())));
    let late = |_| format!("a driver did not answer within {} s", ANSWER_WITHIN.as_secs());
    let found = found.recv_timeout(ANSWER_WITHIN).map_err(late)?;
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|found| Device { uri: found.uri, about: found.label }).collect())
}

const ANSWER_WITHIN: Duration = Duration::from_secs(20);
