//! The options that cut a band of frequencies out of a recording, or make sound of it.

use std::time::Duration;

use clap::Args;
use grebe_process::Modulation;
use grebe_recording::CutBox;

use crate::units;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Band")]
pub(crate) struct Cutting {
    /// Cut out the band around this frequency, which becomes 0 Hz.
    ///
    /// Frequencies are those on the air if the recording has a centre frequency, otherwise those in the signal.
    #[arg(long, value_name = "HZ", value_parser = frequency_hz)]
    pub(crate) center: Option<f64>,
    /// Width of the band: 200k.
    #[arg(long, value_name = "HZ", value_parser = units::rate_hz)]
    pub(crate) bandwidth: Option<f64>,
    /// Sample rate of the band [default: lowest that holds it].
    #[arg(long, value_name = "HZ", value_parser = units::rate_hz)]
    pub(crate) rate: Option<f64>,
    /// Cut out a box of seconds and hertz: 12.5,13,433.8M,434M; repeatable.
    ///
    /// Several boxes are cut in one pass, and their names follow that of OUT. Times may have units.
    #[arg(long = "box", id = "box", value_name = "T0,T1,F0,F1", value_parser = time_frequency_box, conflicts_with_all = ["start", "duration", "center", "bandwidth", "demodulate"])]
    pub(crate) boxes: Vec<TimeFrequencyBox>,
    /// Make sound of the band.
    #[arg(long, value_name = "MODE", value_parser = units::choice(&MODES))]
    pub(crate) demodulate: Option<Modulation>,
}

/// The options that make sound of a band while a recording plays.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sound")]
pub(crate) struct Sound {
    /// Play the sound of a band, by default on the sound device.
    #[arg(long, value_name = "MODE", value_parser = units::choice(&MODES))]
    pub(crate) demodulate: Option<Modulation>,
    /// Frequency of the carrier [default: centre of the recording].
    #[arg(long, value_name = "HZ", requires = "demodulate", value_parser = frequency_hz)]
    pub(crate) center: Option<f64>,
    /// Width of the band [default: by the mode].
    #[arg(long, value_name = "HZ", requires = "demodulate", value_parser = units::rate_hz)]
    pub(crate) bandwidth: Option<f64>,
    /// Sample rate of the sound [default: 48k].
    #[arg(long, value_name = "HZ", requires = "demodulate", value_parser = units::rate_hz)]
    pub(crate) rate: Option<f64>,
    /// Hear a box of seconds and hertz: 12.5,13,433.8M,434M.
    #[arg(long = "box", id = "box", value_name = "T0,T1,F0,F1", value_parser = time_frequency_box, requires = "demodulate", conflicts_with_all = ["start", "duration", "center", "bandwidth"])]
    pub(crate) time_frequency_box: Option<TimeFrequencyBox>,
}

/// A box of time and frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeFrequencyBox {
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    pub(crate) low_hz: f64,
    pub(crate) high_hz: f64,
}

impl TimeFrequencyBox {
    /// The box to cut.
    pub(crate) fn to_cut(self, rate_hz: Option<f64>) -> CutBox {
        CutBox {
            start: self.start,
            duration: Some(self.end - self.start),
            centre_hz: (self.low_hz + self.high_hz) / 2.0,
            bandwidth_hz: self.high_hz - self.low_hz,
            rate_hz,
        }
    }

    /// The box as a part of a file's name: `12.5s_13s_433.8MHz_434MHz`.
    pub(crate) fn file_words(&self) -> String {
        let [start, end] = [self.start, self.end].map(|time| format!("{}s", time.as_secs_f64()));
        let [low, high] = [self.low_hz, self.high_hz].map(|hertz| units::exact(hertz, "Hz").replace(' ', ""));
        format!("{start}_{end}_{low}_{high}")
    }
}

/// A box: `12.5,13,433.8M,434M`, `1m,90s,-20kHz,20kHz`.
pub(crate) fn time_frequency_box(text: &str) -> Result<TimeFrequencyBox, String> {
    let wrong =
        |what: &str| format!("{what}: give seconds and hertz, T0,T1,F0,F1, for example 12.5,13,433.8M,434M");
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [start, end, low, high] = parts[..] else {
        return Err(wrong(&format!("{} values", parts.len())));
    };
    let time = |text: &str| units::duration(text).map_err(|_| wrong(&format!("invalid time {text:?}")));
    let hertz = |text: &str| frequency_hz(text).map_err(|_| wrong(&format!("invalid frequency {text:?}")));
    let made =
        TimeFrequencyBox { start: time(start)?, end: time(end)?, low_hz: hertz(low)?, high_hz: hertz(high)? };
    if made.start >= made.end {
        return Err(wrong("T1 must be later than T0"));
    }
    if made.low_hz >= made.high_hz || !(made.high_hz - made.low_hz).is_finite() {
        return Err(wrong("F1 must be above F0"));
    }
    Ok(made)
}

/// A frequency: `433.92M`, `-100k`, `1.5 MHz`.
fn frequency_hz(text: &str) -> Result<f64, String> {
    let wrong = |_| format!("invalid frequency {text:?}: give hertz, for example 433.92M or -100k");
    units::number(text.trim().trim_end_matches("Hz").trim_end()).map_err(wrong)
}

/// Destination of sound.
pub(crate) const SPEAKER: &str = "audio:";
/// Names, help and modulations of `--demodulate`.
pub(crate) const MODES: [(&str, &str, Modulation); 6] = [
    ("am", "Amplitude modulation; 10 kHz", Modulation::Am),
    ("fm", "Narrow frequency modulation; 12.5 kHz", Modulation::Fm),
    ("wfm", "Broadcasts in mono, de-emphasis of 50 us; 200 kHz", Modulation::Wfm),
    ("usb", "Upper sideband of the carrier at --center; 2.8 kHz", Modulation::Usb),
    ("lsb", "Lower sideband of the carrier at --center; 2.8 kHz", Modulation::Lsb),
    ("cw", "A keyed carrier, as a tone of 700 Hz; 500 Hz", Modulation::Cw),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boxes_have_times_and_frequencies_with_units() {
        let parsed = time_frequency_box("12.5, 1m,433.8M,434 MHz").unwrap();
        assert_eq!((parsed.start, parsed.end), (Duration::from_millis(12_500), Duration::from_secs(60)));
        assert_eq!((parsed.low_hz, parsed.high_hz), (433.8e6, 434e6));
        assert_eq!(parsed.file_words(), "12.5s_60s_433.8MHz_434MHz");
        let cut = time_frequency_box("0,250ms,-20k,30kHz").unwrap().to_cut(Some(60e3));
        assert_eq!(
            (cut.duration, cut.centre_hz, cut.bandwidth_hz),
            (Some(Duration::from_millis(250)), 5e3, 50e3)
        );
        for (text, says) in [
            ("1,2,3", "3 values"),
            ("2,1,0,1k", "later"),
            ("1,2,1k,1k", "above"),
            ("1,x,0,1k", "invalid time \"x\""),
            ("1,2,0,wide", "invalid frequency \"wide\""),
            ("", "1 values"),
        ] {
            let error = time_frequency_box(text).unwrap_err();
            assert!(error.contains(says) && error.contains("T0,T1,F0,F1"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_box_or_an_error(text in "[-0-9.eknMGHzsmhu ,]{0,40}|\\PC{0,20}") {
            if let Ok(parsed) = time_frequency_box(&text) {
                let cut = parsed.to_cut(None);
                prop_assert!(cut.bandwidth_hz > 0.0 && cut.centre_hz.is_finite() && cut.duration > Some(Duration::ZERO));
                prop_assert!(!parsed.file_words().contains(['/', ' ', ',']));
            }
        }

        #[test]
        fn a_written_box_is_the_same_again(start_ms in 0u32.., length_ms in 1u32.., low in -1e9..1e9f64, width in 1.0..1e8f64) {
            let end_ms = u64::from(start_ms) + u64::from(length_ms);
            let parsed = time_frequency_box(&format!("{start_ms}ms,{end_ms}ms,{low},{}", low + width)).unwrap();
            // Times are read as seconds in double precision.
            let is_near = |time: Duration, ms: u64| time.abs_diff(Duration::from_millis(ms)) <= Duration::from_nanos(2);
            prop_assert!(is_near(parsed.start, start_ms.into()) && is_near(parsed.end, end_ms), "{:?}", parsed);
            prop_assert_eq!((parsed.low_hz, parsed.high_hz), (low, low + width));
        }
    }
}
