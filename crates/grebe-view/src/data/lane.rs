//! Lanes, drawn one below the other: the samples of a real channel, or parts of a complex channel and values derived
//! from them.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The identity of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId {
    /// The channel of the stream, from 0; 0 for the math lane.
    pub channel: usize,
    /// The part of the channel.
    pub part: Part,
}

/// The part of a channel that a lane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The samples of a real channel.
    Real,
    /// In-phase component of complex samples.
    I,
    /// Quadrature component.
    Q,
    /// Magnitude, in the unit of the components.
    Magnitude,
    /// Magnitude in decibels of full scale.
    #[serde(rename = "db")]
    MagnitudeDb,
    /// Phase in radians, -pi to pi.
    Phase,
    /// Instantaneous frequency in cycles per sample, -0.5 to 0.5. Shown in hertz if the rate is known.
    Frequency,
    /// The result of the math operation.
    Math,
}

impl LaneId {
    /// The math lane.
    pub const MATH: LaneId = LaneId { channel: 0, part: Part::Math };

    /// The lane of a real channel.
    pub const fn real(channel: usize) -> LaneId {
        LaneId { channel, part: Part::Real }
    }

    /// The first lane of a channel: its samples, or I.
    pub(crate) const fn first_of(channel: usize, is_complex: bool) -> LaneId {
        LaneId { channel, part: if is_complex { Part::I } else { Part::Real } }
    }

    pub(crate) fn is_math(self) -> bool {
        self.part == Part::Math
    }
}

impl Part {
    /// The parts of a complex channel, in the order of their lanes.
    pub const COMPLEX: [Part; 6] =
        [Part::I, Part::Q, Part::Magnitude, Part::MagnitudeDb, Part::Phase, Part::Frequency];

    /// The parts that are derived from I and Q.
    pub(crate) const DERIVED: [Part; 4] = [Part::Magnitude, Part::MagnitudeDb, Part::Phase, Part::Frequency];

    /// The suffix of the part after the channel's number; empty for real samples.
    pub fn symbol(self) -> &'static str {
        match self {
            Part::Real => "",
            Part::I => "I",
            Part::Q => "Q",
            Part::Magnitude => "|A|",
            Part::MagnitudeDb => "dB",
            Part::Phase => "\u{3c6}",
            Part::Frequency => "f",
            Part::Math => "M",
        }
    }

    /// The part as one word, as in files and commands.
    pub fn name(self) -> &'static str {
        match self {
            Part::Real => "real",
            Part::I => "i",
            Part::Q => "q",
            Part::Magnitude => "magnitude",
            Part::MagnitudeDb => "db",
            Part::Phase => "phase",
            Part::Frequency => "frequency",
            Part::Math => "math",
        }
    }

    /// Whether the lane shows samples as they came, not derived values.
    pub(crate) fn is_sampled(self) -> bool {
        matches!(self, Part::Real | Part::I | Part::Q)
    }

    /// Whether the values have the samples' unit.
    pub(crate) fn has_unit_of_samples(self) -> bool {
        self.is_sampled() || self == Part::Magnitude
    }
}

/// As in commands and files: `3` for a real channel (counted from 1), `3.magnitude` for a part, `math`.
impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Math => f.write_str("math"),
            Part::Real => write!(f, "{}", self.channel + 1),
            part => write!(f, "{}.{}", self.channel + 1, part.name()),
        }
    }
}

impl FromStr for LaneId {
    type Err = String;

    fn from_str(text: &str) -> Result<LaneId, String> {
        let wrong = || {
            format!(
                "unknown lane {text:?}: use 1 for the first channel, 1.i, 1.q, 1.magnitude, 1.db, 1.phase or 1.frequency for a part of a complex one, or math"
            )
        };
        if text == "math" {
            return Ok(LaneId::MATH);
        }
        let (number, part) = match text.split_once('.') {
            None => (text, Part::Real),
            Some((number, name)) => {
                let named = Part::COMPLEX.into_iter().find(|part| part.name() == name);
                (number, named.ok_or_else(wrong)?)
            }
        };
        let number: usize = number.parse().map_err(|_| wrong())?;
        let channel = number.checked_sub(1).filter(|&channel| channel < CHANNELS_MAX).ok_or_else(wrong)?;
        Ok(LaneId { channel, part })
    }
}

/// Serializes as text.
impl Serialize for LaneId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LaneId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LaneId, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The visible channels, and the visible parts of complex channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LaneNames", into = "LaneNames")]
pub struct LaneMask {
    channels: [u64; CHANNELS_MAX / 64],
    parts: u8,
}

/// A [`LaneMask`] by names: its channels, unless all are shown, and its parts.
#[derive(Serialize, Deserialize)]
struct LaneNames {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<usize>>,
    #[serde(default = "usual_parts")]
    parts: Vec<Part>,
}

fn usual_parts() -> Vec<Part> {
    LaneNames::from(LaneMask::ALL).parts
}

impl From<LaneMask> for LaneNames {
    fn from(lanes: LaneMask) -> LaneNames {
        let channels: Vec<usize> = (0..CHANNELS_MAX).filter(|&it| lanes.has_channel(it)).collect();
        LaneNames {
            channels: (channels.len() < CHANNELS_MAX).then_some(channels),
            parts: Part::COMPLEX.into_iter().filter(|&part| lanes.has_part(part)).collect(),
        }
    }
}

impl From<LaneNames> for LaneMask {
    fn from(shown: LaneNames) -> LaneMask {
        let mut lanes = LaneMask::ALL;
        if let Some(mut channels) = shown.channels {
            channels.retain(|&it| it < CHANNELS_MAX);
            channels.sort_unstable();
            channels.dedup();
            lanes = lanes.only(channels);
        }
        let is_other = |part: &Part| LaneMask::ALL.has_part(*part) != shown.parts.contains(part);
        Part::COMPLEX.into_iter().filter(is_other).fold(lanes, LaneMask::part_toggled)
    }
}

impl LaneMask {
    /// Every channel, with I and Q of complex ones.
    pub const ALL: LaneMask =
        LaneMask { channels: [u64::MAX; CHANNELS_MAX / 64], parts: bit_of(Part::I) | bit_of(Part::Q) };
    pub(crate) const NONE: LaneMask = LaneMask { channels: [0; CHANNELS_MAX / 64], ..LaneMask::ALL };

    /// Whether the channel (from 0) is visible.
    pub fn has_channel(&self, channel: usize) -> bool {
        self.channels.get(channel / 64).is_some_and(|word| word & (1 << (channel % 64)) != 0)
    }

    /// Whether this part of complex channels is visible.
    pub fn has_part(&self, part: Part) -> bool {
        self.parts & bit_of(part) != 0
    }

    /// Toggles a channel (from 0). A channel beyond 255 changes nothing.
    #[must_use]
    pub fn toggled(mut self, channel: usize) -> LaneMask {
        if let Some(word) = self.channels.get_mut(channel / 64) {
            *word ^= 1 << (channel % 64);
        }
        self
    }

    /// Toggles a part of complex channels. `Real` and `Math` change nothing.
    #[must_use]
    pub fn part_toggled(mut self, part: Part) -> LaneMask {
        self.parts ^= bit_of(part);
        self
    }

    /// Only these channels (from 0), with the same parts.
    pub fn only(self, channels: impl IntoIterator<Item = usize>) -> LaneMask {
        let none = LaneMask { channels: [0; CHANNELS_MAX / 64], ..self };
        channels.into_iter().fold(none, LaneMask::toggled)
    }

    /// The visible lanes of a stream of `channels` channels.
    pub(crate) fn lanes(self, channels: usize, is_complex: bool) -> impl Iterator<Item = LaneId> {
        let parts = if is_complex { &Part::COMPLEX[..] } else { &[Part::Real][..] };
        let shown = move |channel: usize| {
            let parts = parts.iter().filter(move |&&part| !is_complex || self.has_part(part));
            parts.map(move |&part| LaneId { channel, part })
        };
        (0..channels).filter(move |&channel| self.has_channel(channel)).flat_map(shown)
    }
}

const fn bit_of(part: Part) -> u8 {
    match part {
        Part::Real | Part::Math => 0,
        Part::I => 1,
        Part::Q => 2,
        Part::Magnitude => 4,
        Part::MagnitudeDb => 8,
        Part::Phase => 16,
        Part::Frequency => 32,
    }
}

/// A value for each of some lanes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PerLane<T>(Vec<(LaneId, T)>);

impl<T> PerLane<T> {
    pub(crate) fn get(&self, lane: LaneId) -> Option<&T> {
        self.0.binary_search_by_key(&lane, |(lane, _)| *lane).ok().map(|place| &self.0[place].1)
    }

    pub(crate) fn get_mut(&mut self, lane: LaneId) -> Option<&mut T> {
        self.0.binary_search_by_key(&lane, |(lane, _)| *lane).ok().map(|place| &mut self.0[place].1)
    }

    pub(crate) fn insert(&mut self, lane: LaneId, it: T) {
        match self.0.binary_search_by_key(&lane, |(lane, _)| *lane) {
            Ok(place) => self.0[place].1 = it,
            Err(place) => self.0.insert(place, (lane, it)),
        }
    }

    pub(crate) fn remove(&mut self, lane: LaneId) -> Option<T> {
        let place = self.0.binary_search_by_key(&lane, |(lane, _)| *lane).ok()?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn or_insert_with(&mut self, lane: LaneId, make: impl FnOnce() -> T) -> &mut T {
        let place = match self.0.binary_search_by_key(&lane, |(lane, _)| *lane) {
            Ok(place) => place,
            Err(place) => {
                self.0.insert(place, (lane, make()));
                place
            }
        };
        &mut self.0[place].1
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (LaneId, &T)> {
        self.0.iter().map(|(lane, it)| (*lane, it))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, it)| it)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T> Default for PerLane<T> {
    fn default() -> PerLane<T> {
        PerLane(Vec::new())
    }
}

impl<T> FromIterator<(LaneId, T)> for PerLane<T> {
    fn from_iter<I: IntoIterator<Item = (LaneId, T)>>(all: I) -> PerLane<T> {
        let mut found = PerLane(all.into_iter().collect());
        found.0.sort_by_key(|(lane, _)| *lane);
        found.0.dedup_by_key(|(lane, _)| *lane);
        found
    }
}

/// Serializes as a list of pairs: the lane's name and its value.
impl<T: Serialize> Serialize for PerLane<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|(lane, it)| OfLane { lane: *lane, it }))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for PerLane<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PerLane<T>, D::Error> {
        let all = Vec::<OfLane<T>>::deserialize(from)?;
        Ok(all.into_iter().map(|OfLane { lane, it }| (lane, it)).collect())
    }
}

#[derive(Serialize, Deserialize)]
struct OfLane<T> {
    lane: LaneId,
    #[serde(flatten)]
    it: T,
}

/// Channels that a stream can have, and one that no stream has.
pub(crate) const CHANNELS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_read_as_it_is_written_and_nonsense_is_refused() {
        for channel in [0, 7, 254] {
            for part in Part::COMPLEX.into_iter().chain([Part::Real]) {
                let lane = LaneId { channel, part };
                assert_eq!(lane.to_string().parse(), Ok(lane));
            }
        }
        assert_eq!("math".parse(), Ok(LaneId::MATH));
        for wrong in ["", "0", "257", "1.", "1.x", "x.i", "-1"] {
            assert!(wrong.parse::<LaneId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mask_has_the_lanes_of_the_channels_and_parts_that_are_on() {
        let shown = |mask: LaneMask, channels, is_complex| {
            mask.lanes(channels, is_complex).map(|lane| lane.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(LaneMask::ALL, 3, false), "1 2 3");
        assert_eq!(shown(LaneMask::ALL.toggled(1), 3, true), "1.i 1.q 3.i 3.q");
        let phase = LaneMask::ALL.part_toggled(Part::Phase).part_toggled(Part::I);
        assert_eq!(shown(phase, 1, true), "1.q 1.phase");
        assert_eq!(shown(phase, 2, false), "1 2", "real channels have no parts");
        assert!(LaneMask::ALL.has_channel(254) && !LaneMask::NONE.has_channel(254));
        assert_eq!(LaneMask::ALL.toggled(256), LaneMask::ALL);
        assert_eq!(shown(LaneMask::ALL.only([200, 2]), 201, false), "3 201");
    }
}
