//! The two messages of the protocol.

use crate::tuner::{Switch, Tuning};

/// The greeting of a server: `RTL0`, then two numbers of four bytes, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Type of the dongle's tuner.
    pub(crate) tuner: u32,
    /// Number of gains that the tuner offers.
    pub(crate) gains: u32,
}

/// A command of a client: its number, then its value in four bytes, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    FrequencyHz(u32),
    RateHz(u32),
    /// Whether the receiver chooses its own gain.
    AutomaticGain(bool),
    /// In tenths of a dB.
    Gain(i32),
    /// By index in the tuner's list of gains.
    GainIndex(u32),
    Switch(Switch, i32),
    /// A command that only a real dongle knows: its number and its value.
    Other(u8, u32),
}

impl Hello {
    pub(crate) const BYTES: usize = 12;

    /// `None` unless the bytes begin with `RTL0`.
    pub(crate) fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [b'R', b'T', b'L', b'0', a, b, c, d, e, f, g, h] = *bytes else { return None };
        Some(Self { tuner: u32::from_be_bytes([a, b, c, d]), gains: u32::from_be_bytes([e, f, g, h]) })
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.tuner.to_be_bytes(), self.gains.to_be_bytes());
        [b'R', b'T', b'L', b'0', a, b, c, d, e, f, g, h]
    }

    /// Name of the tuner.
    pub(crate) fn tuner_name(self) -> &'static str {
        let names = ["unknown tuner", "E4000", "FC0012", "FC0013", "FC2580", "R820T", "R828D"];
        names.get(self.tuner as usize).copied().unwrap_or(names[0])
    }
}

impl Command {
    pub(crate) const BYTES: usize = 5;

    /// Every five bytes are a command.
    pub(crate) fn parse([number, value @ ..]: [u8; Self::BYTES]) -> Self {
        let value = u32::from_be_bytes(value);
        match number {
            FREQUENCY => Self::FrequencyHz(value),
            RATE => Self::RateHz(value),
            // 1 selects manual gain.
            GAIN_MODE => Self::AutomaticGain(value == 0),
            GAIN => Self::Gain(value.cast_signed()),
            GAIN_INDEX => Self::GainIndex(value),
            _ => match SWITCHES.iter().find(|(_, its)| *its == number) {
                Some((switch, _)) => Self::Switch(*switch, value.cast_signed()),
                None => Self::Other(number, value),
            },
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (number, value) = match self {
            Self::FrequencyHz(hz) => (FREQUENCY, hz),
            Self::RateHz(hz) => (RATE, hz),
            Self::AutomaticGain(is_automatic) => (GAIN_MODE, u32::from(!is_automatic)),
            Self::Gain(tenths) => (GAIN, tenths.cast_unsigned()),
            Self::GainIndex(index) => (GAIN_INDEX, index),
            Self::Switch(switch, value) => {
                let number =
                    SWITCHES.iter().find(|(other, _)| *other == switch).map_or(0, |(_, number)| *number);
                (number, value.cast_unsigned())
            }
            Self::Other(number, value) => (number, value),
        };
        let [a, b, c, d] = value.to_be_bytes();
        [number, a, b, c, d]
    }

    /// The commands that tune a receiver.
    pub(crate) fn tuning(tuning: &Tuning) -> impl Iterator<Item = Self> {
        let gain = tuning.gain_db.map(|gain_db| Self::Gain((gain_db * 10.0).round() as i32));
        // Values are clamped to the range of the field.
        let first = [
            Self::RateHz(tuning.rate_hz.round() as u32),
            Self::FrequencyHz(tuning.frequency_hz.round() as u32),
        ];
        first.into_iter().chain([Self::AutomaticGain(gain.is_none())]).chain(gain)
    }

    /// Applies the command to a tuning. Returns whether it is a tuning command.
    pub(crate) fn apply(self, tuning: &mut Tuning) -> bool {
        match self {
            // SDR++ starts with 0, before the user has tuned it.
            Self::FrequencyHz(hz) if hz > 0 => tuning.frequency_hz = f64::from(hz),
            Self::RateHz(hz) if hz > 0 => tuning.rate_hz = f64::from(hz),
            Self::AutomaticGain(true) => tuning.gain_db = None,
            Self::Gain(tenths) => tuning.gain_db = Some(f64::from(tenths) / 10.0),
            Self::GainIndex(index) => match R820T_GAINS.get(index as usize) {
                Some(&tenths) => tuning.gain_db = Some(f64::from(tenths) / 10.0),
                None => return false,
            },
            _ => return false,
        }
        true
    }
}

const FREQUENCY: u8 = 0x01;
const RATE: u8 = 0x02;
const GAIN_MODE: u8 = 0x03;
const GAIN: u8 = 0x04;
const GAIN_INDEX: u8 = 0x0d;
const SWITCHES: [(Switch, u8); 5] = [
    (Switch::CorrectionPpm, 0x05),
    (Switch::DigitalGain, 0x08),
    (Switch::DirectSampling, 0x09),
    (Switch::OffsetTuning, 0x0a),
    (Switch::BiasTee, 0x0e),
];
/// In tenths of a dB: the gains that librtlsdr lists for the tuner that a server reports.
pub(super) const R820T_GAINS: [i16; 29] = [
    0, 9, 14, 27, 37, 77, 87, 125, 144, 157, 166, 197, 207, 229, 254, 280, 297, 328, 338, 364, 372, 386, 402,
    421, 434, 439, 445, 480, 496,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_messages_are_those_of_rtl_tcp() {
        let hello = Hello { tuner: 5, gains: 29 };
        assert_eq!(hello.to_bytes(), *b"RTL0\0\0\0\x05\0\0\0\x1d");
        assert_eq!(hello.tuner_name(), "R820T");
        assert_eq!(Hello::parse(b"HTTP/1.1 400"), None);
        assert_eq!(Command::FrequencyHz(433_920_000).to_bytes(), [1, 0x19, 0xdd, 0x18, 0]);
        assert_eq!(Command::AutomaticGain(true).to_bytes(), [3, 0, 0, 0, 0]);
        assert_eq!(Command::Gain(-99).to_bytes(), [4, 0xff, 0xff, 0xff, 0x9d]);
        assert_eq!(Command::parse([0x0e, 0, 0, 0, 1]), Command::Switch(Switch::BiasTee, 1));
        assert_eq!(Command::Switch(Switch::CorrectionPpm, -3).to_bytes(), [5, 0xff, 0xff, 0xff, 0xfd]);
        assert_eq!(Command::parse([0x0b, 0, 0, 0, 1]), Command::Other(11, 1));
    }

    #[test]
    fn a_tuning_is_stated_as_a_whole() {
        let tuning = Tuning { frequency_hz: 1e8, rate_hz: 2.4e6, gain_db: Some(20.7) };
        let mut told = Tuning { frequency_hz: 0.0, rate_hz: 1.0, gain_db: None };
        assert_eq!(Command::tuning(&tuning).filter(|command| command.apply(&mut told)).count(), 3);
        assert_eq!(told, tuning);
        assert!(!Command::RateHz(0).apply(&mut told) && !Command::FrequencyHz(0).apply(&mut told));
        assert!(!Command::GainIndex(29).apply(&mut told));
        assert_eq!(told, tuning, "none of these is an order");
        assert!(Command::GainIndex(12).apply(&mut told) && told.gain_db == Some(20.7));
    }

    proptest! {
        #[test]
        fn rtl_tcp_commands_round_trip(bytes: [u8; 5], hello: [u8; 8]) {
            let command = Command::parse(bytes);
            prop_assert_eq!(Command::parse(command.to_bytes()), command);
            let mut whole = *b"RTL0........";
            whole[4..].copy_from_slice(&hello);
            prop_assert_eq!(Hello::parse(&whole).unwrap().to_bytes(), whole);
        }
    }
}
