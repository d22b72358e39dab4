//! `rtl_tcp://HOST:PORT?...`

use std::fmt;

use grebe_flow::RateHz;

use crate::tuner::Tuning;
use crate::uri::HostPort;

/// A receiver behind `rtl_tcp`, or a server of that kind, as [`Uri::RtlTcp`](crate::Uri::RtlTcp) names it.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `frequency=` | what it is tuned to, in hertz, up to 4.29 GHz | 100 MHz |
/// | `rate=` | samples per second: `2.4M` | 2.048 MS/s |
/// | `gain=` | dB, or `auto` | `auto` |
/// | `ppm=` | how far its oscillator is off, in parts per million | 0 |
/// | `reconnect` | waits for a server that has gone, and goes on | ends with it |
/// | `listen` | is a server | as a sink it is one anyhow |
/// | `wait=` | a server begins once so many clients are there, 0 to 64 | 1 |
#[derive(Debug, Clone, PartialEq)]
pub struct RtlTcp {
    pub(crate) at: HostPort,
    pub(crate) tuning: Tuning,
    pub(crate) correction_ppm: i32,
    pub(crate) reconnects: bool,
    pub(crate) listens: bool,
    pub(crate) wait_clients: usize,
}

impl RtlTcp {
    /// Reads the query of a name.
    pub(crate) fn parse(at: HostPort, query: &str) -> Result<Self, String> {
        let mut rtl = Self {
            at,
            tuning: Tuning { frequency_hz: FREQUENCY_HZ, rate_hz: RATE_HZ, gain_db: None },
            correction_ppm: 0,
            reconnects: false,
            listens: false,
            wait_clients: 1,
        };
        let hertz = |value: &str| {
            let number = value.parse().ok().filter(|&RateHz(hz)| (1.0..=f64::from(u32::MAX)).contains(&hz));
            number.map(|RateHz(hz)| hz)
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "frequency" => {
                    let wrong = || format!("has frequency={value}: give hertz up to 4.29 G, as in 433.92M");
                    rtl.tuning.frequency_hz = hertz(value).ok_or_else(wrong)?;
                }
                "rate" => {
                    let wrong = || format!("has rate={value}: give samples per second, as in 2.4M");
                    rtl.tuning.rate_hz = hertz(value).ok_or_else(wrong)?;
                }
                "gain" if value == "auto" => rtl.tuning.gain_db = None,
                "gain" => match value.parse::<f64>() {
                    Ok(gain_db) if gain_db.abs() <= GAIN_DB_MAX => rtl.tuning.gain_db = Some(gain_db),
                    _ => return Err(format!("has gain={value}: give dB, as in 20.7, or auto")),
                },
                "ppm" => {
                    rtl.correction_ppm =
                        value.parse().map_err(|_| format!("has ppm={value}: give a whole number"))?;
                }
                "wait" => match value.parse() {
                    Ok(clients) if clients <= CLIENTS_MAX => rtl.wait_clients = clients,
                    _ => return Err(format!("has wait={value}: give 0 to {CLIENTS_MAX} clients")),
                },
                "reconnect" if value.is_empty() => rtl.reconnects = true,
                "listen" if value.is_empty() => rtl.listens = true,
                _ => {
                    return Err(format!(
                        "has an unknown '{key}': known are frequency, rate, gain, ppm, reconnect, listen and wait"
                    ));
                }
            }
        }
        Ok(rtl)
    }
}

impl fmt::Display for RtlTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tuning { frequency_hz, rate_hz, gain_db } = self.tuning;
        write!(f, "rtl_tcp://{}?frequency={frequency_hz}&rate={rate_hz}", self.at)?;
        if let Some(gain_db) = gain_db {
            write!(f, "&gain={gain_db}")?;
        }
        if self.correction_ppm != 0 {
            write!(f, "&ppm={}", self.correction_ppm)?;
        }
        if self.wait_clients != 1 {
            write!(f, "&wait={}", self.wait_clients)?;
        }
        f.write_str(if self.reconnects { "&reconnect" } else { "" })?;
        f.write_str(if self.listens { "&listen" } else { "" })
    }
}

/// The most clients that a server has at a time.
pub(super) const CLIENTS_MAX: usize = 64;

/// As `rtl_tcp` itself begins.
const FREQUENCY_HZ: f64 = 100e6;
const RATE_HZ: f64 = 2_048_000.0;
const GAIN_DB_MAX: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uri;

    #[test]
    fn a_name_says_what_the_receiver_is_tuned_to() {
        let Ok(Uri::RtlTcp(rtl)) =
            "rtl_tcp://pi:1234?frequency=433.92M&rate=2.4M&gain=20.7&ppm=-3&reconnect".parse()
        else {
            panic!("a receiver")
        };
        assert_eq!(rtl.tuning, Tuning { frequency_hz: 433.92e6, rate_hz: 2.4e6, gain_db: Some(20.7) });
        assert!(rtl.reconnects && !rtl.listens && rtl.correction_ppm == -3);
        for text in [
            "rtl_tcp://pi:1234?frequency=433920000&rate=2400000&gain=20.7&ppm=-3&reconnect",
            "rtl_tcp://:1234?frequency=100000000&rate=2048000&wait=2&listen",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("rtl_tcp://pi", "no port"),
            ("rtl_tcp://pi:1?frequency=5G", "give hertz up to 4.29 G"),
            ("rtl_tcp://pi:1?rate=0", "give samples per second"),
            ("rtl_tcp://pi:1?gain=loud", "give dB"),
            ("rtl_tcp://pi:1?ppm=x", "a whole number"),
            ("rtl_tcp://pi:1?wait=65", "give 0 to 64"),
            ("rtl_tcp://pi:1?format=cu8", "unknown 'format'"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
