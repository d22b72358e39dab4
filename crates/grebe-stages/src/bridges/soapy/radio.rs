//! Opens a device, applies the settings of its name, and describes the result.

use std::fmt::Display;

use grebe_flow::{RateHz, UtcClock, monotonic_ns};
use grebe_frame::{ChannelDescription, Description, SampleFormat};

use super::sys::{Device, Direction};
use super::uri::{Gain, Soapy};
use crate::error::Error;
use crate::tuner::{Switch, Tuning};

/// Handling of settings that a device refuses.
pub(super) enum Refusals {
    /// A refusal is an error.
    End,
    /// The device keeps its setting. Collects the refusals.
    Keep(Vec<String>),
}

impl Refusals {
    /// # Errors
    /// The refusal, if refusals are errors.
    fn take(&mut self, refusal: Error) -> Result<(), Error> {
        match self {
            Self::End => return Err(refusal),
            Self::Keep(refused) => refused.push(refusal.to_string()),
        }
        Ok(())
    }
}

/// Opens the device and applies the settings of its name.
///
/// # Errors
/// The device is missing, or refuses a setting; the error lists its valid values.
pub(super) fn open(
    name: &Soapy,
    direction: Direction,
    channels: &[usize],
    refusals: &mut Refusals,
) -> Result<Device, Error> {
    let failed = |why: String| Error::Soapy { action: "open".to_owned(), uri: name.short(), why };
    let device = Device::open(&name.args)?.map_err(|why| failed(absent(&why)))?;
    set(name, &device, direction, channels, refusals)?;
    Ok(device)
}

/// Applies the settings of a name to an open device.
///
/// # Errors
/// As [`open`].
pub(super) fn set(
    name: &Soapy,
    device: &Device,
    direction: Direction,
    channels: &[usize],
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let failed = |why: String| Error::Soapy { action: "open".to_owned(), uri: name.short(), why };
    let count = device.channels(direction);
    if let Some(missing) = channels.iter().find(|&&channel| channel >= count) {
        let verb = if direction == Direction::Rx { "receive" } else { "send" };
        return Err(failed(match count {
            0 => format!("it cannot {verb}"),
            1 => format!("it has no channel {missing} to {verb} by, only channel 0"),
            _ => format!("it has no channel {missing} to {verb} by, only 0 to {}", count - 1),
        }));
    }
    let mut radio = Radio { name, device, direction, refusals };
    radio.set_whole()?;
    channels.iter().try_for_each(|&channel| radio.set_channel(channel))
}

/// Restores the last tuning of a device that reconnected.
///
/// # Errors
/// A refused setting, if refusals are errors.
pub(super) fn restore_tuning(
    name: &Soapy,
    device: &Device,
    channels: &[usize],
    wanted: &Tuning,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let is = tuning(device, Direction::Rx, channels[0], wanted);
    for why in retune(device, channels, &is, wanted).1 {
        // Reported before, when the settings of the name were applied.
        let is_known =
            matches!(refusals, Refusals::Keep(known) if known.iter().any(|known| known.contains(&why)));
        if !is_known {
            refusals.take(Error::Soapy { action: "tune".to_owned(), uri: name.short(), why })?;
        }
    }
    Ok(())
}

/// Applies changed settings while the device runs. A setting that the driver refuses stays unchanged.
pub(super) fn retune(
    device: &Device,
    channels: &[usize],
    before: &Tuning,
    wanted: &Tuning,
) -> (Tuning, Vec<String>) {
    let (mut is, mut refused) = (*before, Vec::new());
    let every =
        |set: &dyn Fn(usize) -> Result<(), String>| channels.iter().try_for_each(|&channel| set(channel));
    if wanted.rate_hz != before.rate_hz {
        match every(&|channel| device.set_rate(Direction::Rx, channel, wanted.rate_hz)) {
            Ok(()) => is.rate_hz = wanted.rate_hz,
            Err(why) => refused.push(why),
        }
    }
    if wanted.frequency_hz != before.frequency_hz {
        match every(&|channel| device.set_frequency(Direction::Rx, channel, wanted.frequency_hz)) {
            Ok(()) => is.frequency_hz = wanted.frequency_hz,
            Err(why) => refused.push(why),
        }
    }
    if wanted.gain_db != before.gain_db {
        match every(&|channel| set_gain(device, Direction::Rx, channel, wanted.gain_db)) {
            Ok(()) => is.gain_db = wanted.gain_db,
            Err(why) => refused.push(why),
        }
    }
    (is, refused)
}

/// Applies dongle-specific settings by the names of SoapyRTLSDR. Other drivers may refuse.
pub(super) fn switch(device: &Device, channels: &[usize], switch: Switch, value: i32) -> Result<(), String> {
    let on = if value == 0 { "false" } else { "true" };
    match switch {
        Switch::CorrectionPpm => channels
            .iter()
            .try_for_each(|&channel| device.set_correction_ppm(Direction::Rx, channel, value.into())),
        Switch::DigitalGain => device.write_setting("digital_agc", on),
        Switch::DirectSampling => device.write_setting("direct_samp", &value.to_string()),
        Switch::OffsetTuning => device.write_setting("offset_tune", on),
        Switch::BiasTee => device.write_setting("biastee", on),
    }
}

/// Current tuning of a device, read from one channel. Values that the driver does not return come from `last`.
pub(super) fn tuning(device: &Device, direction: Direction, channel: usize, last: &Tuning) -> Tuning {
    let is_automatic =
        device.has_gain_mode(direction, channel) && device.is_gain_automatic(direction, channel);
    let rate_hz = known(device.rate_hz(direction, channel)).filter(|&hz| hz > 0.0);
    Tuning {
        frequency_hz: known(device.frequency_hz(direction, channel)).unwrap_or(last.frequency_hz),
        rate_hz: rate_hz.unwrap_or(last.rate_hz),
        gain_db: match is_automatic {
            true => None,
            false => known(device.gain_db(direction, channel)).or(last.gain_db),
        },
    }
}

/// Description of the stream of a device with this tuning.
pub(super) fn description(device: &Device, channels: &[usize], tuning: &Tuning) -> Description {
    let first = channels.first().copied().unwrap_or(0);
    let is_tunable = device.is_tunable(Direction::Rx, first);
    let named = |&channel: &usize| ChannelDescription { name: format!("RX{channel}"), ..Default::default() };
    Description {
        hardware: Some(hardware(device)),
        centre_frequency_hz: is_tunable.then_some(tuning.frequency_hz),
        bandwidth_hz: known(device.bandwidth_hz(Direction::Rx, first)).filter(|&hz| hz > 0.0),
        gain_db: tuning.gain_db.filter(|_| !device.gains(Direction::Rx, first).is_empty()),
        channels: if channels.len() > 1 { channels.iter().map(named).collect() } else { Vec::new() },
        clock: UtcClock::default().renewed(monotonic_ns()),
        ..Description::default()
    }
}

/// The same as a text.
pub(super) fn words(format: SampleFormat, tuning: &Tuning, description: &Description) -> String {
    let mut words = format!("{format} at {}", with_unit(tuning.rate_hz, "S/s"));
    if let Some(hz) = description.centre_frequency_hz {
        words += &format!(", {}", with_unit(hz, "Hz"));
    }
    match (description.gain_db, tuning.gain_db) {
        (Some(gain_db), _) => words + &format!(", gain {gain_db} dB"),
        (None, None) => words + ", gain automatic",
        // No amplifier.
        (None, Some(_)) => words,
    }
}

/// `433.920123 MHz`, with every digit, so that the step of a synthesiser shows.
fn with_unit(hz: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (multiple, prefix) = prefixes.into_iter().find(|(multiple, _)| hz >= *multiple).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", hz / multiple)
}

/// Names of a device and its driver.
pub(super) fn hardware(device: &Device) -> String {
    let (hardware, driver) = (device.hardware(), device.driver());
    match (hardware.is_empty(), driver.is_empty()) {
        (true, true) => "a radio without a name".to_owned(),
        (true, false) => driver,
        (false, true) => hardware,
        (false, false) => format!("{hardware} ({driver})"),
    }
}

/// The stream's format: the requested one, the device's own, or one that it supports.
///
/// # Errors
/// The device does not support the requested format; the error lists those that it does.
pub(super) fn format(
    device: &Device,
    direction: Direction,
    channel: usize,
    wanted: Option<SampleFormat>,
) -> Result<SampleFormat, String> {
    let offered: Vec<SampleFormat> =
        device.formats(direction, channel).iter().filter_map(|name| of_soapy(name)).collect();
    let names = || offered.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match wanted {
        Some(format) if offered.contains(&format) => Ok(format),
        Some(format) => Err(format!("it does not support {format}; supported: {}", names())),
        None => {
            let native = of_soapy(&device.native_format(direction, channel));
            let native = native.filter(|native| offered.contains(native));
            let first = || PREFERRED.into_iter().find(|format| offered.contains(format));
            native.or_else(first).ok_or_else(|| "it has no format that grebe supports".to_owned())
        }
    }
}

/// SoapySDR's name of a format.
pub(super) fn to_soapy(format: SampleFormat) -> &'static str {
    FORMATS.iter().find(|(ours, _)| *ours == format).map_or("", |(_, theirs)| theirs)
}

fn of_soapy(name: &str) -> Option<SampleFormat> {
    FORMATS.iter().find(|(_, theirs)| *theirs == name).map(|(ours, _)| *ours)
}

/// A number that the driver returned.
fn known(answer: Result<f64, String>) -> Option<f64> {
    answer.ok().filter(|number| number.is_finite())
}

/// The driver's message about a device that does not open, with advice.
fn absent(why: &str) -> String {
    let why = if why.is_empty() { "its driver does not say why" } else { why };
    format!("{why} (grebe devices lists the radios)")
}

fn set_gain(
    device: &Device,
    direction: Direction,
    channel: usize,
    gain_db: Option<f64>,
) -> Result<(), String> {
    let can_be_automatic = device.has_gain_mode(direction, channel);
    match gain_db {
        None if !can_be_automatic => Err("it has no automatic gain".to_owned()),
        None => device.set_automatic_gain(direction, channel, true),
        Some(db) => {
            if can_be_automatic {
                device.set_automatic_gain(direction, channel, false)?;
            }
            device.set_gain(direction, channel, db)
        }
    }
}

struct Radio<'a> {
    name: &'a Soapy,
    device: &'a Device,
    direction: Direction,
    refusals: &'a mut Refusals,
}

impl Radio<'_> {
    /// Applies settings that hold for all channels.
    fn set_whole(&mut self) -> Result<(), Error> {
        let Self { name, device, .. } = *self;
        if let Some(source) = &name.clock {
            self.settle("clock", source, device.set_clock_source(source))?;
        }
        if let Some(source) = &name.time {
            self.settle("time", source, device.set_time_source(source))?;
        }
        for (key, value) in &name.settings {
            self.settle(&format!("setting.{key}"), value, device.write_setting(key, value))?;
        }
        Ok(())
    }

    fn set_channel(&mut self, channel: usize) -> Result<(), Error> {
        let Self { name, device, direction, .. } = *self;
        if let Some(antenna) = &name.antenna {
            let there = device.antennas(direction, channel);
            let set = match there.is_empty() || there.contains(antenna) {
                true => device.set_antenna(direction, channel, antenna),
                false => Err(format!("it has {}", there.join(", "))),
            };
            self.settle("antenna", antenna, set)?;
        }
        if let Some(rate_hz) = name.rate_hz {
            let set = device.set_rate(direction, channel, rate_hz);
            self.settle("rate", rate_hz, set.map_err(within(|| device.rates_hz(direction, channel))))?;
        }
        if let Some(hz) = name.bandwidth_hz {
            self.settle("bandwidth", hz, device.set_bandwidth(direction, channel, hz))?;
        }
        if let Some(ppm) = name.correction_ppm {
            self.settle("ppm", ppm, device.set_correction_ppm(direction, channel, ppm))?;
        }
        if let Some(hz) = name.frequency_hz {
            let set = device.set_frequency(direction, channel, hz);
            self.settle("frequency", hz, set.map_err(within(|| device.frequencies_hz(direction, channel))))?;
        }
        if let Some(gain) = name.gain {
            let db = match gain {
                Gain::Auto => None,
                Gain::Db(db) => Some(db),
            };
            let set = set_gain(device, direction, channel, db).map_err(|why| {
                let (least, most) = device.gain_range_db(direction, channel);
                format!("{why}; valid: {least} to {most} dB")
            });
            self.settle("gain", db.map_or("auto".to_owned(), |db| db.to_string()), set)?;
        }
        for (element, db) in &name.gains {
            let there = device.gains(direction, channel);
            let set = match there.contains(element) {
                true => device.set_gain_of(direction, channel, element, *db),
                false if there.is_empty() => Err("it has no amplifiers".to_owned()),
                false => Err(format!("it has {}", there.join(", "))),
            };
            self.settle(&format!("gain.{element}"), db, set)?;
        }
        Ok(())
    }

    /// Handles the result of setting `key=requested`.
    fn settle(&mut self, key: &str, requested: impl Display, set: Result<(), String>) -> Result<(), Error> {
        let Err(why) = set else { return Ok(()) };
        let action = format!("set {key}={requested} of");
        self.refusals.take(Error::Soapy { action, uri: self.name.short(), why })
    }
}

/// Adds the valid range to a driver's message, if the device returns one.
fn within(may_be: impl FnOnce() -> Vec<(f64, f64)>) -> impl FnOnce(String) -> String {
    move |why| match ranges(&may_be()) {
        may_be if may_be.is_empty() => why,
        may_be => format!("{why}; valid: {may_be}"),
    }
}

/// Ranges or single values, in the notation of names.
fn ranges(ranges: &[(f64, f64)]) -> String {
    let one = |&(least, most): &(f64, f64)| match least == most {
        true => RateHz(least).to_string(),
        false => format!("{} to {}", RateHz(least), RateHz(most)),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(", ")
}

const FORMATS: [(SampleFormat, &str); 10] = [
    (SampleFormat::Ci16, "CS16"),
    (SampleFormat::Cf32, "CF32"),
    (SampleFormat::Ci8, "CS8"),
    (SampleFormat::Cu8, "CU8"),
    (SampleFormat::I16, "S16"),
    (SampleFormat::F32, "F32"),
    (SampleFormat::I8, "S8"),
    (SampleFormat::U8, "U8"),
    (SampleFormat::I32, "S32"),
    (SampleFormat::F64, "F64"),
];
/// For a native format that grebe lacks (12 bits, for example): lossless first, then the smallest.
const PREFERRED: [SampleFormat; 8] = [
    SampleFormat::Ci16,
    SampleFormat::Cf32,
    SampleFormat::Ci8,
    SampleFormat::Cu8,
    SampleFormat::I16,
    SampleFormat::F32,
    SampleFormat::I8,
    SampleFormat::U8,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_soapysdrs_and_back() {
        for format in SampleFormat::ALL {
            assert_eq!(of_soapy(to_soapy(format)), Some(format));
        }
        assert_eq!(of_soapy("CS12"), None);
    }

    #[test]
    fn the_settings_of_a_radio_are_reported_to_the_digit() {
        assert_eq!(with_unit(433_920_123.0, "Hz"), "433.920123 MHz");
        assert_eq!(with_unit(1_999.5, "S/s"), "1.9995 kS/s");
        assert_eq!(with_unit(100.0, "S/s"), "100 S/s");
    }

    #[test]
    fn values_that_a_radio_accepts_are_listed_as_a_uri_takes_them() {
        assert_eq!(ranges(&[(225e3, 300e3), (1e6, 1e6)]), "225k to 300k, 1M");
    }
}
