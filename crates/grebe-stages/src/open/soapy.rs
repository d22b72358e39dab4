//! Radios behind SoapySDR.

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::soapy::{Soapy, SoapySink, SoapySource};

pub(super) fn source(
    soapy: &Soapy,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let mut source = options
        .patience(soapy.reconnects)
        .open(notify, |_| SoapySource::open(soapy, options.tuner.as_ref()))?;
    let (driver, hardware) = source.made_by();
    let tuned = source.tuned();
    notify(Notice::Radio(format!("{hardware}: {}", source.words())));
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

/// So near is as asked: oscillators are divided by whole numbers.
const NEAR: f64 = 1e-4;
/// Drivers that do not tell of what the device, or the library below them, has dropped (read in their sources).
const HIDES_LOSS: [(&str, &str); 2] = [
    ("PlutoSDR", "the driver plutosdr does not tell of overflows: what the device drops"),
    ("Airspy", "the driver airspy tells of its own buffer only: what is dropped on USB"),
];
