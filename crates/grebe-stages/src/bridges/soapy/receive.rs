//! Opens a receiving radio, and reopens it after a loss.

use std::sync::atomic::{AtomicU32, Ordering};

use grebe_frame::SampleFormat;

use super::radio::{self, Refusals};
use super::sys::{Direction, RxStream};
use super::uri::{Gain, Soapy};
use crate::error::Error;
use crate::transport::{Reconnect, is_absent};
use crate::tuner::{Tuner, Tuning};

/// Reopens a lost device with its settings. After repeated refusals it continues with the device's own values and
/// reports a notice.
pub(super) fn reconnect(
    name: &Soapy,
    format: SampleFormat,
    channels: Vec<usize>,
    tuner: Tuner,
) -> Reconnect<RxStream> {
    // The format must not change.
    let name = Soapy { format: Some(format), ..name.clone() };
    let failures = AtomicU32::new(0);
    Reconnect::telling(name.short(), move |cancel, tell| {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let has_patience = failures.load(Ordering::Relaxed) < REFUSALS_MAX;
        let mut refusals = if has_patience { Refusals::End } else { Refusals::Keep(Vec::new()) };
        let received = receive(&name, &channels, Some(&tuner.tuning()), &mut refusals);
        let failed = received.as_ref().is_err_and(|error| !is_absent(error));
        failures.store(if failed { failures.load(Ordering::Relaxed) + 1 } else { 0 }, Ordering::Relaxed);
        let (radio, format) = received?;
        if let Refusals::Keep(refused) = refusals
            && !refused.is_empty()
        {
            let is = radio::tuning(radio.device(), Direction::Rx, channels[0], &tuner.tuning());
            let said = radio::description(radio.device(), &channels, &is);
            tell(format!(
                "{}; it continues with its own setting: {}",
                refused.join("; "),
                radio::words(format, &is, &said)
            ));
        }
        Ok(radio)
    })
}

/// Opens the device, tunes it, and starts it.
pub(super) fn receive(
    name: &Soapy,
    channels: &[usize],
    tuning: Option<&Tuning>,
    refusals: &mut Refusals,
) -> Result<(RxStream, SampleFormat), Error> {
    let failed = |action: &str, why| Error::Soapy { action: action.to_owned(), uri: name.short(), why };
    let device = radio::open(name, Direction::Rx, channels, refusals)?;
    if let Some(wanted) = tuning {
        // Changes made while it ran are restored.
        radio::restore_tuning(name, &device, channels, wanted, refusals)?;
    }
    let format = radio::format(&device, Direction::Rx, channels[0], name.format);
    let format = format.map_err(|why| failed("receive from", why))?;
    let stream = RxStream::open(device, radio::to_soapy(format), format.bytes(), channels, &name.stream_args);
    let mut stream = stream.map_err(|why| failed("receive from", why))?;
    stream.activate().map_err(|why| failed("start", why))?;
    Ok((stream, format))
}

/// The tuning that the name requests.
pub(super) fn requested_tuning(name: &Soapy) -> Tuning {
    let gain_db = match name.gain {
        Some(Gain::Db(gain_db)) => Some(gain_db),
        _ => None,
    };
    let (frequency_hz, rate_hz) = (name.frequency_hz.unwrap_or(0.0), name.rate_hz.unwrap_or(0.0));
    Tuning { frequency_hz, rate_hz, gain_db }
}

/// Refusals of a setting before it is given up, because a device that has just reconnected may not be ready.
const REFUSALS_MAX: u32 = 3;
