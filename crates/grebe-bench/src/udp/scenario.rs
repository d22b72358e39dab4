use crate::{Error, Result};

/// What is sent: the labels, channels, blocks and rates of the C++ program, so that its tables can be put beside ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// Its name, as `--scenario` takes it.
    pub label: &'static str,
    /// Channels a frame.
    pub channels: u32,
    /// Samples a channel and frame; `None`: what the datagram holds.
    pub block: Option<u32>,
    /// Samples a second and channel, in millions; `None`: as fast as it goes.
    pub target_msps: Option<f64>,
}

const fn scenario(
    label: &'static str,
    channels: u32,
    block: Option<u32>,
    target_msps: Option<f64>,
) -> Scenario {
    Scenario { label, channels, block, target_msps }
}

/// All scenarios.
pub const SCENARIOS: [Scenario; 13] = [
    scenario("1ch_max", 1, None, None),
    scenario("1ch_256", 1, Some(256), None),
    scenario("1ch_64", 1, Some(64), None),
    scenario("2ch_max", 2, None, None),
    scenario("4ch_max", 4, None, None),
    scenario("1ch_1MSPS", 1, None, Some(1.0)),
    scenario("1ch_10MSPS", 1, None, Some(10.0)),
    scenario("1ch_100MSPS", 1, None, Some(100.0)),
    scenario("1ch_1GSPS", 1, None, Some(1_000.0)),
    scenario("4ch_1MSPS", 4, None, Some(1.0)),
    scenario("4ch_10MSPS", 4, None, Some(10.0)),
    scenario("4ch_100MSPS", 4, None, Some(100.0)),
    scenario("4ch_1GSPS", 4, None, Some(1_000.0)),
];

impl Scenario {
    /// The scenario with this label.
    ///
    /// # Errors
    /// [`Error::UnknownScenario`], which lists them all.
    pub fn by_label(label: &str) -> Result<Scenario> {
        SCENARIOS.into_iter().find(|scenario| scenario.label == label).ok_or_else(|| Error::UnknownScenario {
            label: label.to_owned(),
            known: SCENARIOS.map(|scenario| scenario.label).join(", "),
        })
    }

    /// Samples a channel in a frame that fits into `datagram_bytes`.
    ///
    /// # Errors
    /// [`Error::DatagramTooSmall`].
    pub fn block_for(&self, datagram_bytes: usize) -> Result<u32> {
        let room = datagram_bytes.saturating_sub(grebe_frame::HEADER_BYTES) / (2 * self.channels as usize);
        if room == 0 {
            let needed = grebe_frame::HEADER_BYTES + 2 * self.channels as usize;
            return Err(Error::DatagramTooSmall { datagram_bytes, channels: self.channels, needed });
        }
        let room = room as u32;
        Ok(self.block.map_or(room, |block| block.min(room)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_seeds() {
        let block = |label, bytes| Scenario::by_label(label).unwrap().block_for(bytes).unwrap();
        assert_eq!(block("1ch_max", 1_400), 668);
        assert_eq!(block("1ch_max", 65_000), 32_468);
        assert_eq!(block("4ch_max", 65_000), 8_117);
        assert_eq!(block("1ch_256", 1_400), 256);
    }

    #[test]
    fn an_unknown_label_is_answered_with_the_known_ones() {
        let error = Scenario::by_label("9ch").unwrap_err().to_string();
        assert!(error.contains("9ch") && error.contains("4ch_1GSPS"), "{error}");
    }

    #[test]
    fn a_datagram_without_room_is_refused() {
        assert!(Scenario::by_label("4ch_max").unwrap().block_for(71).is_err());
    }
}
