//! Serial ports, `serial:///dev/ttyUSB0?baud=115200`: lines of numbers, or samples without headers, in both directions.

mod list;
mod name;
#[cfg(unix)]
mod port;
#[cfg(windows)]
#[path = "serial/port_windows.rs"]
#[allow(unsafe_code, reason = "the settings of a port are system calls")]
mod port;
#[cfg(windows)]
#[allow(unsafe_code, reason = "the list of the ports is in the registry")]
mod registry;

use std::io;

use crate::error::Error;

pub use list::{Device, serial_ports};
pub(crate) use name::SerialEnd;
pub(crate) use port::SerialPort;

/// An error of opening or setting a port.
fn failed(end: &SerialEnd, action: &'static str, source: io::Error, advice: &'static str) -> Error {
    Error::Device { action, name: end.to_string(), source, advice }
}

/// Checks the rate that the port granted. Some ports take the nearest one that they have.
///
/// # Errors
/// [`Error::Device`].
fn check_rate(end: &SerialEnd, granted_baud: u32) -> Result<(), Error> {
    if granted_baud.abs_diff(end.baud) > end.baud / BAUD_ERROR_PARTS {
        let source = io::Error::other(format!("it supports {granted_baud} baud instead of {}", end.baud));
        return Err(failed(end, "set", source, ""));
    }
    Ok(())
}

fn unplugged() -> io::Error {
    let what = "the serial port was unplugged (with reconnect in its name, grebe waits for it)";
    io::Error::new(io::ErrorKind::NotConnected, what)
}

const MISSING: &str = "; is it plugged in? grebe devices lists the ports";
const IN_USE: &str = "; another program has it open: end that one first";
const NOT_A_PORT: &str = "; it is not a serial port";
const REFUSED: &str = "; the port does not know one of baud=, mode= and flow=";
/// A larger error of the rate than one part in this number garbles the data.
const BAUD_ERROR_PARTS: u32 = 40;
