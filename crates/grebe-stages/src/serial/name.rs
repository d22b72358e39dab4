//! What the name of a serial port says.

use std::path::{Path, PathBuf};

/// One end of a serial line: `serial:///dev/ttyUSB0?baud=115200&mode=8N1&flow=none&hangup=no&reconnect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SerialEnd {
    pub(crate) path: PathBuf,
    pub(crate) baud: u32,
    /// 5 to 8.
    pub(crate) data_bits: u8,
    pub(crate) parity: Parity,
    /// 1 or 2.
    pub(crate) stop_bits: u8,
    pub(crate) flow: Flow,
    /// Whether DTR falls when the port is closed.
    pub(crate) hangs_up: bool,
    /// It is opened again once it was unplugged.
    pub(crate) reconnects: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parity {
    None,
    Even,
    Odd,
}

/// Who may tell the other end to wait, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    None,
    /// RTS and CTS.
    Hardware,
    /// XON and XOFF, which can be in no samples then.
    Software,
}

impl SerialEnd {
    /// The port that a name names, without its query: `///dev/ttyUSB0`, `ttyUSB0`.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let name = name.strip_prefix("//").unwrap_or(name);
        if name.trim_matches('/').is_empty() {
            return Err(
                "names no port: write serial:///dev/ttyUSB0; grebe devices lists what is there".into()
            );
        }
        let path = if name.starts_with('/') { PathBuf::from(name) } else { Path::new("/dev").join(name) };
        Ok(Self {
            path,
            baud: BAUD,
            data_bits: 8,
            parity: Parity::None,
            stop_bits: 1,
            flow: Flow::None,
            hangs_up: true,
            reconnects: false,
        })
    }

    /// Takes a pair of a query; `false`: it says nothing of the port.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "baud" => match value.parse() {
                Ok(baud) if baud > 0 => self.baud = baud,
                _ => return Err(format!("has baud={value}: give bits per second, as in 115200")),
            },
            "mode" => {
                let wrong =
                    || format!("has mode={value}: give data bits, parity and stop bits, as in 8N1 or 7E2");
                let [data, parity, stop] = value.as_bytes() else { return Err(wrong()) };
                if !(b'5'..=b'8').contains(data) || !(b'1'..=b'2').contains(stop) {
                    return Err(wrong());
                }
                (self.data_bits, self.stop_bits) = (data - b'0', stop - b'0');
                self.parity = match parity.to_ascii_uppercase() {
                    b'N' => Parity::None,
                    b'E' => Parity::Even,
                    b'O' => Parity::Odd,
                    _ => return Err(wrong()),
                };
            }
            "flow" => {
                self.flow = match value {
                    "none" => Flow::None,
                    "hardware" => Flow::Hardware,
                    "software" => Flow::Software,
                    _ => return Err(format!("has flow={value}: give none, hardware or software")),
                }
            }
            "hangup" => match value {
                "yes" => self.hangs_up = true,
                "no" => self.hangs_up = false,
                _ => return Err(format!("has hangup={value}: give yes or no")),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What differs from what is chosen by default, each with an `&` before it.
    pub(crate) fn options(&self) -> String {
        let parity = match self.parity {
            Parity::None => 'N',
            Parity::Even => 'E',
            Parity::Odd => 'O',
        };
        let mode = format!("{}{parity}{}", self.data_bits, self.stop_bits);
        let flow = match self.flow {
            Flow::None => "",
            Flow::Hardware => "&flow=hardware",
            Flow::Software => "&flow=software",
        };
        let baud = if self.baud == BAUD { String::new() } else { format!("&baud={}", self.baud) };
        let mode = if mode == "8N1" { String::new() } else { format!("&mode={mode}") };
        let hangup = if self.hangs_up { "" } else { "&hangup=no" };
        format!("{baud}{mode}{flow}{hangup}{}", if self.reconnects { "&reconnect" } else { "" })
    }
}

/// As most boards are set to today; one on USB takes any.
const BAUD: u32 = 115_200;

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
        for text in [
            "serial:///dev/ttyACM0?format=text",
            "serial:///dev/ttyUSB0?format=text&baud=9600&mode=7E2&flow=hardware&hangup=no&reconnect",
            "serial:///dev/ttyS1?format=i16be&rate=1000&channels=3&baud=250000&mode=8O1&flow=software",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_port_may_be_named_shortly() {
        for text in ["serial:ttyACM0", "serial://ttyACM0", "serial:/dev/ttyACM0", "serial:///dev/ttyACM0"] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), "serial:///dev/ttyACM0?format=text");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
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
            ("tcp://h:1?format=text&baud=9600", "baud=, which is for serial:"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
