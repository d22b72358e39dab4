//! Name and options of a serial port.

use std::fmt;
use std::path::PathBuf;

use grebe_process::query::{Pairs, Query, Words};

/// One end of a serial line: `serial:///dev/ttyUSB0?baud=115200&mode=8N1&flow=none&hangup=no&reconnect`,
/// `serial://COM3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SerialEnd {
    /// `/dev/ttyUSB0`; `COM3` on Windows.
    pub(crate) path: PathBuf,
    pub(crate) baud: u32,
    /// 5 to 8.
    pub(crate) data_bits: u8,
    pub(crate) parity: Parity,
    /// 1 or 2.
    pub(crate) stop_bits: u8,
    pub(crate) flow: Flow,
    /// Whether closing the port drops DTR. On Windows, where it always does: whether DTR is on at all.
    pub(crate) hangs_up: bool,
    /// Whether to reopen an unplugged port.
    pub(crate) reconnects: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parity {
    None,
    Even,
    Odd,
}

/// Flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    None,
    /// RTS and CTS.
    Hardware,
    /// XON and XOFF, which samples must not contain.
    Software,
}

impl SerialEnd {
    /// Parses a port's name without its query: `///dev/ttyUSB0`, `ttyUSB0`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let name = name.strip_prefix("//").unwrap_or(name);
        if name.trim_matches('/').is_empty() {
            let example = if cfg!(windows) { "serial:COM3" } else { "serial:///dev/ttyUSB0" };
            return Err(format!("names no port: write {example}; grebe devices lists the ports"));
        }
        Ok(Self {
            path: if cfg!(windows) { windows_path(name) } else { unix_path(name) },
            baud: BAUD,
            data_bits: 8,
            parity: Parity::None,
            stop_bits: 1,
            flow: Flow::None,
            hangs_up: true,
            reconnects: false,
        })
    }

    /// Parses the options of the port.
    ///
    /// # Errors
    /// An option is malformed.
    pub(crate) fn take(&mut self, query: &mut Query<'_>) -> Result<(), String> {
        let baud = query.value("baud", "bits per second, as in 115200", |value| {
            value.parse().ok().filter(|&baud| baud > 0)
        })?;
        self.baud = baud.unwrap_or(self.baud);
        if let Some(mode) = query.value("mode", "data bits, parity and stop bits, as in 8N1 or 7E2", mode)? {
            (self.data_bits, self.parity, self.stop_bits) = mode;
        }
        self.flow = query.choice("flow", FLOWS)?.unwrap_or(self.flow);
        self.hangs_up = query.yes_or_no("hangup")?.unwrap_or(self.hangs_up);
        self.reconnects = query.flag("reconnect")?;
        Ok(())
    }

    /// Adds the options that differ from the defaults.
    pub(crate) fn write(&self, pairs: Pairs) -> Pairs {
        let parity = match self.parity {
            Parity::None => 'N',
            Parity::Even => 'E',
            Parity::Odd => 'O',
        };
        let mode = format!("{}{parity}{}", self.data_bits, self.stop_bits);
        pairs
            .add("baud", Some(self.baud).filter(|&baud| baud != BAUD))
            .add("mode", Some(mode).filter(|mode| mode != "8N1"))
            .choice("flow", FLOWS, self.flow, Some(Flow::None))
            .add("hangup", (!self.hangs_up).then_some("no"))
            .flag("reconnect", self.reconnects)
    }
}

/// A port without a folder is in `/dev`.
fn unix_path(name: &str) -> PathBuf {
    if name.starts_with('/') { name.into() } else { format!("/dev/{name}").into() }
}

/// `COM3`, `com3`, `/COM3` and `\\.\COM3` are one port.
fn windows_path(name: &str) -> PathBuf {
    let port = name.trim_start_matches('/').trim_start_matches(r"\\.\").to_ascii_uppercase();
    let number = port.strip_prefix("COM").unwrap_or_default();
    let is_port = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    if is_port { port.into() } else { name.into() }
}

/// `8N1`: data bits, parity, stop bits.
fn mode(text: &str) -> Option<(u8, Parity, u8)> {
    let [data @ b'5'..=b'8', parity, stop @ b'1'..=b'2'] = text.as_bytes() else { return None };
    let parity = match parity.to_ascii_uppercase() {
        b'N' => Parity::None,
        b'E' => Parity::Even,
        b'O' => Parity::Odd,
        _ => return None,
    };
    Some((data - b'0', parity, stop - b'0'))
}

impl fmt::Display for SerialEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serial://{}", self.path.display())
    }
}

const FLOWS: &Words<Flow> =
    &[("none", Flow::None), ("hardware", Flow::Hardware), ("software", Flow::Software)];
/// The setting of most boards today. USB boards accept any.
const BAUD: u32 = 115_200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uri;

    #[test]
    fn printed_names_are_parsed_again() {
        for text in [
            "serial:///dev/ttyACM0?format=text",
            "serial:///dev/ttyUSB0?format=text&baud=9600&mode=7E2&flow=hardware&hangup=no&reconnect",
            "serial:///dev/ttyS1?format=i16be&rate=1000&channels=3&baud=250000&mode=8O1&flow=software",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_port_of_windows_has_one_name() {
        for name in ["COM10", "com10", "/COM10", r"\\.\COM10", r"\\.\com10"] {
            assert_eq!(windows_path(name), PathBuf::from("COM10"));
        }
        for name in ["/dev/ttyACM0", "COM", "COMA", r"\\.\CNCA0"] {
            assert_eq!(windows_path(name), PathBuf::from(name));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_port_may_be_named_shortly() {
        for text in ["serial:ttyACM0", "serial://ttyACM0", "serial:/dev/ttyACM0", "serial:///dev/ttyACM0"] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), "serial:///dev/ttyACM0?format=text");
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("serial:", "names no port"),
            ("serial://", "names no port"),
            ("serial:ttyS0?baud=0", "as in 115200"),
            ("serial:ttyS0?baud=fast", "as in 115200"),
            ("serial:ttyS0?mode=9N1", "as in 8N1"),
            ("serial:ttyS0?mode=8X1", "as in 8N1"),
            ("serial:ttyS0?mode=8N", "as in 8N1"),
            ("serial:ttyS0?flow=maybe", "none, hardware or software"),
            ("serial:ttyS0?hangup=maybe", "yes or no"),
            ("serial:ttyS0?listen", "unknown 'listen'"),
            ("serial:ttyS0?format=i16&skip=4", "which are for datagrams"),
            ("tcp://h:1?format=text&baud=9600", "baud, which is for serial:"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
