//! The stream's description of one channel, in units without a prefix.

use grebe_frame::ChannelDescription;

/// The stream's description of one channel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaneDescription {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) scale: f64,
    pub(crate) offset: f64,
}

impl Default for LaneDescription {
    fn default() -> LaneDescription {
        LaneDescription { name: String::new(), unit: String::new(), scale: 1.0, offset: 0.0 }
    }
}

impl LaneDescription {
    /// Converts a description. The scope chooses the prefix of a unit by the value, so `mV` becomes volts here.
    /// `zero` is the value that was subtracted from the samples.
    pub(super) fn of(channel: &ChannelDescription, zero: f64) -> LaneDescription {
        let (unit, factor) = without_prefix(&channel.unit);
        // A scale of zero or infinity would hide the samples.
        let is_scale = channel.scale.is_finite() && channel.scale != 0.0;
        let scale = if is_scale { channel.scale * factor } else { factor };
        let offset = if channel.offset.is_finite() { channel.offset * factor } else { 0.0 };
        LaneDescription {
            name: channel.name.clone(),
            unit: unit.to_owned(),
            scale,
            // Without an offset, the subtracted value means zero.
            offset: if offset == 0.0 { 0.0 } else { offset + zero * scale },
        }
    }
}

/// Splits a unit into its base unit and the factor of its prefix. An unknown prefix stays.
fn without_prefix(unit: &str) -> (&str, f64) {
    let prefixes = [
        ("p", 1e-12),
        ("n", 1e-9),
        ("\u{b5}", 1e-6),
        ("\u{3bc}", 1e-6),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
    ];
    let parts = prefixes.iter().filter_map(|&(prefix, factor)| Some((unit.strip_prefix(prefix)?, factor)));
    parts.into_iter().find(|(base, _)| PREFIXED.contains(base)).unwrap_or((unit, 1.0))
}

/// Units that take prefixes.
const PREFIXED: [&str; 16] = [
    "V",
    "A",
    "W",
    "Pa",
    "Hz",
    "T",
    "N",
    "F",
    "H",
    "C",
    "\u{3a9}",
    "\u{2126}",
    "Ohm",
    "m/s\u{b2}",
    "m/s^2",
    "bar",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_goes_into_the_scale_and_what_is_none_stays() {
        assert_eq!(without_prefix("mV"), ("V", 1e-3));
        assert_eq!(without_prefix("\u{b5}T"), ("T", 1e-6));
        assert_eq!(without_prefix("Pa"), ("Pa", 1.0));
        assert_eq!(without_prefix("mmHg"), ("mmHg", 1.0));
        assert_eq!(without_prefix(""), ("", 1.0));
        let lead = ChannelDescription { unit: "mV".into(), scale: 0.005, offset: 2.0, ..Default::default() };
        let told = LaneDescription::of(&lead, 0.0);
        assert_eq!((told.unit.as_str(), told.scale, told.offset), ("V", 5e-6, 2e-3));
        let broken = ChannelDescription { scale: 0.0, offset: f64::NAN, ..lead };
        assert_eq!(
            (LaneDescription::of(&broken, 0.0).scale, LaneDescription::of(&broken, 0.0).offset),
            (1e-3, 0.0)
        );
    }
}
