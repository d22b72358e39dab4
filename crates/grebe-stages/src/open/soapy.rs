//! Radios behind SoapySDR.

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::soapy::{Soapy, SoapySink, SoapySource};
use crate::tuner::Tuning;

pub(super) fn source(
    soapy: &Soapy,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let mut source = options.patience(soapy.reconnects).open(notify, |_| SoapySource::open(soapy))?;
    let (driver, hardware) = source.made_by();
    let tuned = source.tuned();
    notify(Notice::Radio(format!("{hardware}: {}", words(&tuned, &source))));
    for (what, asked, is) in
        [("samples per second", soapy.rate_hz, tuned.rate_hz), ("Hz", soapy.frequency_hz, tuned.frequency_hz)]
    {
        // Drivers take the nearest that there is, and say nothing.
        if let Some(asked) = asked.filter(|asked| (asked - is).abs() > asked * NEAR) {
            notify(Notice::Radio(format!(
                "{hardware} has {is} {what}, and not the {asked} that were asked for"
            )));
        }
    }
    if let Some((_, what)) = HIDES_LOSS.iter().find(|(name, _)| driver.eq_ignore_ascii_case(name)) {
        notify(Notice::UnseenLoss(what));
        source = source.loses_unseen();
    }
    let (tuner, rate_hz) = (Some(source.tuner()), Some(tuned.rate_hz).filter(|&rate_hz| rate_hz > 0.0));
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { rate_hz, tuner, ..OpenSource::of(source) })
}

pub(super) fn sink(
    soapy: &Soapy,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<SoapySink, Error> {
    options.patience(soapy.reconnects).open(notify, |_| SoapySink::open(soapy))
}

/// What a radio is set to.
fn words(tuned: &Tuning, source: &SoapySource) -> String {
    let mut words = format!("{} at {}", source.format(), with_unit(tuned.rate_hz, "S/s"));
    if let Some(hz) = source.description().centre_frequency_hz {
        words += &format!(", {}", with_unit(hz, "Hz"));
    }
    match (source.description().gain_db, tuned.gain_db) {
        (Some(gain_db), _) => words + &format!(", gain {gain_db} dB"),
        (None, None) => words + ", gain automatic",
        // It has no amplifier.
        (None, Some(_)) => words,
    }
}

/// `433.920123 MHz`: every digit, so that a step of a synthesiser shows.
fn with_unit(hz: f64, unit: &str) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (multiple, prefix) = prefixes.into_iter().find(|(multiple, _)| hz >= *multiple).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", hz / multiple)
}

/// So near is as asked: oscillators are divided by whole numbers.
const NEAR: f64 = 1e-4;
/// Drivers that do not tell of what the device, or the library below them, has dropped (read in their sources).
const HIDES_LOSS: [(&str, &str); 2] = [
    ("PlutoSDR", "the driver plutosdr does not tell of overflows: what the device drops"),
    ("Airspy", "the driver airspy tells of its own buffer only: what is dropped on USB"),
];

#[cfg(test)]
mod tests {
    use super::with_unit;

    #[test]
    fn what_a_radio_is_set_to_is_said_to_the_digit() {
        assert_eq!(with_unit(433_920_123.0, "Hz"), "433.920123 MHz");
        assert_eq!(with_unit(1_999.5, "S/s"), "1.9995 kS/s");
        assert_eq!(with_unit(100.0, "S/s"), "100 S/s");
    }
}
