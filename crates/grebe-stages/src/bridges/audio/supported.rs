//! The channels and rates of a device of Windows or macOS.

use cpal::traits::DeviceTrait as _;
use cpal::{SampleFormat, SupportedStreamConfigRange};

use super::settings::Direction;

/// The channels and rates of a device.
pub(super) fn supported(device: &cpal::Device, direction: Direction) -> Vec<SupportedStreamConfigRange> {
    let all: Vec<_> = match direction {
        Direction::Capture => device.supported_input_configs().into_iter().flatten().collect(),
        Direction::Playback => device.supported_output_configs().into_iter().flatten().collect(),
    };
    all.into_iter().filter(|range| range.sample_format() == SampleFormat::F32).collect()
}

/// Whether to try a setting. A device without a list may support it.
pub(super) fn is_supported(
    supported: &[SupportedStreamConfigRange],
    direction: Direction,
    channels: usize,
    rate_hz: u32,
) -> bool {
    // Windows converts what it plays.
    if supported.is_empty() || (direction == Direction::Playback && cfg!(windows)) {
        return true;
    }
    supported.iter().any(|range| {
        let has: usize = range.channels().into();
        let has_channels = if direction == Direction::Capture { has == channels } else { has >= channels };
        has_channels && range.contains_rate(rate_hz)
    })
}

/// `2 channels at 44100, 48000 S/s`.
pub(super) fn list(supported: &[SupportedStreamConfigRange]) -> String {
    let mut counts: Vec<u16> = supported.iter().map(SupportedStreamConfigRange::channels).collect();
    counts.sort_unstable();
    counts.dedup();
    let rates = |channels| {
        let of_count = supported.iter().filter(|range| range.channels() == channels);
        let mut rates: Vec<(u32, u32)> =
            of_count.map(|it| (it.min_sample_rate(), it.max_sample_rate())).collect();
        rates.sort_unstable();
        rates.dedup();
        let text = |(min, max)| if min == max { format!("{min}") } else { format!("{min} to {max}") };
        rates.into_iter().map(text).collect::<Vec<_>>().join(", ")
    };
    let lists = counts.into_iter().map(|channels| {
        let plural = if channels == 1 { "" } else { "s" };
        format!("{channels} channel{plural} at {} S/s", rates(channels))
    });
    let lists: Vec<String> = lists.collect();
    if lists.is_empty() { "no settings that it tells".to_owned() } else { lists.join("; ") }
}

#[cfg(test)]
mod tests {
    use cpal::SupportedBufferSize;

    use super::*;

    fn range(channels: u16, min_hz: u32, max_hz: u32) -> SupportedStreamConfigRange {
        SupportedStreamConfigRange::new(
            channels,
            min_hz,
            max_hz,
            SupportedBufferSize::Unknown,
            SampleFormat::F32,
        )
    }

    #[test]
    fn a_refused_setting_is_answered_by_a_list() {
        let supported = [range(2, 48_000, 48_000), range(2, 44_100, 44_100), range(1, 8_000, 96_000)];
        assert_eq!(list(&supported), "1 channel at 8000 to 96000 S/s; 2 channels at 44100, 48000 S/s");
        let captures = |channels, rate| is_supported(&supported, Direction::Capture, channels, rate);
        assert!(captures(2, 44_100) && captures(1, 22_050));
        assert!(!captures(2, 22_050) && !captures(3, 48_000));
        assert!(is_supported(&[], Direction::Capture, 2, 48_000));
    }
}
