//! `rtl_tcp://HOST:PORT?...`

use grebe_flow::RateHz;
use grebe_process::query::{Pairs, Query, finite};

use crate::transport::HostPort;
use crate::tuner::Tuning;

/// An `rtl_tcp` server to read from, or such a server itself, as [`Uri::RtlTcp`](crate::Uri::RtlTcp) names it.
///
/// | in the query | means | default |
/// |---|---|---|
/// | `frequency=` | centre frequency in hertz, up to 4.29 GHz | 100 MHz |
/// | `rate=` | samples per second: `2.4M` | 2.048 MS/s |
/// | `gain=` | dB, or `auto` | `auto` |
/// | `ppm=` | error of the oscillator, in parts per million | 0 |
/// | `reconnect` | waits for a lost server, and continues | ends with it |
/// | `listen` | is a server | a sink always is one |
/// | `wait=` | clients that a server waits for before it starts, 0 to 64 | 1 |
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
    /// Parses the part after `rtl_tcp://`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (at, mut query) = Query::split(text)?;
        let at = HostPort::parse("rtl_tcp", at)?;
        let hertz = |value: &str| {
            let number = value.parse().ok().filter(|&RateHz(hz)| (1.0..=f64::from(u32::MAX)).contains(&hz));
            number.map(|RateHz(hz)| hz)
        };
        let gain_db = query.value("gain", "dB, as in 20.7, or auto", |value| match value {
            "auto" => Some(None),
            _ => finite(value).filter(|gain_db| gain_db.abs() <= GAIN_DB_MAX).map(Some),
        })?;
        let tuning = Tuning {
            frequency_hz: query
                .value("frequency", "hertz up to 4.29 G, as in 433.92M", hertz)?
                .unwrap_or(FREQUENCY_HZ),
            rate_hz: query.value("rate", "samples per second, as in 2.4M", hertz)?.unwrap_or(RATE_HZ),
            gain_db: gain_db.flatten(),
        };
        let rtl = Self {
            at,
            tuning,
            correction_ppm: query.value("ppm", "a whole number", |value| value.parse().ok())?.unwrap_or(0),
            wait_clients: query.whole("wait", 0..=CLIENTS_MAX)?.unwrap_or(1),
            reconnects: query.flag("reconnect")?,
            listens: query.flag("listen")?,
        };
        query.end()?;
        Ok(rtl)
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        let Tuning { frequency_hz, rate_hz, gain_db } = self.tuning;
        Pairs::default()
            .add("frequency", Some(frequency_hz))
            .add("rate", Some(rate_hz))
            .add("gain", gain_db)
            .add("ppm", Some(self.correction_ppm).filter(|&ppm| ppm != 0))
            .add("wait", Some(self.wait_clients).filter(|&clients| clients != 1))
            .flag("reconnect", self.reconnects)
            .flag("listen", self.listens)
    }
}

/// Maximum clients of a server at a time.
pub(super) const CLIENTS_MAX: usize = 64;

/// The defaults of `rtl_tcp` itself.
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
    fn invalid_options_are_refused() {
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
