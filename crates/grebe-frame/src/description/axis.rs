//! Times by the monotonic clock of a host, which make streams of several hosts comparable.

use serde::{Deserialize, Serialize};

/// A time by the monotonic clock of a host, and the drift after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisTime {
    /// Identifies the clock among all hosts and boots.
    #[serde(with = "clock_id")]
    pub clock: u64,
    /// Time on the clock.
    pub ns: i64,
    /// Uncertainty to either side.
    pub error_ns: u64,
    /// Drift of the samples' clock against it, in parts per 10^9; positive if faster.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drift_ppb: i64,
    /// Uncertainty of the drift to either side.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drift_error_ppb: u64,
}

/// Measured relation of the clock that stamps frames to that of the receiving host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredClock {
    /// Time on the producer's clock,
    pub producer_ts_ns: u64,
    /// when the other one showed this.
    #[serde(flatten)]
    pub axis: AxisTime,
    /// The time in UTC then, in nanoseconds since 1970, by the other host; `None` if the producer knows it better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_time_ns: Option<i64>,
    /// Its uncertainty; `None` if that clock is not disciplined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_error_ns: Option<u64>,
}

impl AxisTime {
    /// The time `ns` later, by the clock of the samples.
    pub fn after(self, ns: i64) -> Self {
        let grown_ns =
            (u128::from(ns.unsigned_abs()) * u128::from(self.drift_error_ppb)).div_ceil(1_000_000_000);
        Self {
            ns: self.ns.saturating_add(saturated(i128::from(ns) - self.ahead_ns(ns))),
            error_ns: self.error_ns.saturating_add(grown_ns.try_into().unwrap_or(u64::MAX)),
            ..self
        }
    }

    /// Drift of the samples' clock within `ns`.
    fn ahead_ns(&self, ns: i64) -> i128 {
        (i128::from(ns) * i128::from(self.drift_ppb) + 500_000_000).div_euclid(1_000_000_000)
    }
}

impl MeasuredClock {
    /// Time on the other clock for a stamp of the producer.
    pub fn axis_time(&self, producer_ts_ns: u64) -> AxisTime {
        self.axis.after(saturated(i128::from(producer_ts_ns) - i128::from(self.producer_ts_ns)))
    }

    /// Time on the producer's clock at time `ns` of the other one.
    pub fn producer_ts_at(&self, ns: i64) -> u64 {
        let since_ns = ns.saturating_sub(self.axis.ns);
        let producer_ns =
            i128::from(self.producer_ts_ns) + i128::from(since_ns) + self.axis.ahead_ns(since_ns);
        producer_ns.clamp(0, u64::MAX.into()) as u64
    }

    /// Time in UTC, in nanoseconds since 1970, for a stamp of the producer, by the other host.
    pub fn unix_at(&self, producer_ts_ns: u64) -> Option<i64> {
        let since_ns = self.axis_time(producer_ts_ns).ns.saturating_sub(self.axis.ns);
        self.unix_time_ns?.checked_add(since_ns)
    }
}

fn saturated(ns: i128) -> i64 {
    ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn is_zero(number: &(impl Copy + Default + PartialEq)) -> bool {
    *number == Default::default()
}

/// As 16 hexadecimal digits, because a JSON number has 53 bits.
mod clock_id {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(clock: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{clock:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

/// The same for an optional value.
pub(super) mod optional_clock_id {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Clock(#[serde(with = "super::clock_id")] u64);

    pub(in super::super) fn serialize<S: Serializer>(
        clock: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match clock {
            Some(clock) => super::clock_id::serialize(clock, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Clock>::deserialize(deserializer)?.map(|clock| clock.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_clock_extrapolates_with_growing_error() {
        let axis = AxisTime {
            clock: 0xfedc_ba98_7654_3210,
            ns: -1_000,
            error_ns: 100,
            drift_ppb: 20_000,
            drift_error_ppb: 500,
        };
        let measured = MeasuredClock {
            producer_ts_ns: 5_000_000_000,
            axis,
            unix_time_ns: Some(1_700_000_000_000_000_000),
            unix_error_ns: None,
        };
        let time = measured.axis_time(6_000_000_000);
        assert_eq!((time.ns, time.error_ns), (-1_000 + 1_000_000_000 - 20_000, 600));
        assert_eq!(measured.axis_time(4_000_000_000).ns, -1_000 - 1_000_000_000 + 20_000);
        assert_eq!(measured.unix_at(6_000_000_000), Some(1_700_000_000_999_980_000));
        assert_eq!(measured.producer_ts_at(time.ns), 6_000_000_000);
        assert_eq!(measured.producer_ts_at(i64::MIN), 0);
        assert!(measured.axis_time(u64::MAX).error_ns > 0 && measured.axis_time(0).error_ns > 0);
        let text = serde_json::to_string(&measured).unwrap();
        assert!(text.contains(r#""clock":"fedcba9876543210""#) && text.contains(r#""ns":-1000"#), "{text}");
        assert_eq!(serde_json::from_str::<MeasuredClock>(&text).unwrap(), measured);
        for nonsense in ["\"xyz\"", "12", "\"\"", "\"11112222333344445\""] {
            let text = text.replace("\"fedcba9876543210\"", nonsense);
            assert!(serde_json::from_str::<MeasuredClock>(&text).is_err(), "{text}");
        }
        let plain = AxisTime { clock: 1, ns: 2, error_ns: 3, drift_ppb: 0, drift_error_ppb: 0 };
        assert_eq!(
            serde_json::to_string(&plain).unwrap(),
            r#"{"clock":"0000000000000001","ns":2,"error_ns":3}"#
        );
    }
}
