//! Opening a radio, and once more when it was lost.

use std::sync::atomic::{AtomicU32, Ordering};

use grebe_frame::SampleFormat;

use super::radio::{self, Refusals};
use super::sys::{Direction, RxStream};
use super::uri::Soapy;
use crate::error::Error;
use crate::transport::{Reconnect, is_absent};
use crate::tuner::{Tuner, Tuning};

/// Opens the device again once it was lost, set as it was. What it refuses each time, it will never take: then it goes on as it is, and
/// a person is told.
pub(super) fn again(
    name: &Soapy,
    format: SampleFormat,
    channels: Vec<usize>,
    tuner: Tuner,
) -> Reconnect<RxStream> {
    // What comes back must be what it was.
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
                "{}; it goes on as it is set: {}",
                refused.join("; "),
                radio::words(format, &is, &said)
            ));
        }
        Ok(radio)
    })
}

/// Opens the device, tunes it, and has it run.
pub(super) fn receive(
    name: &Soapy,
    channels: &[usize],
    tuning: Option<&Tuning>,
    refusals: &mut Refusals,
) -> Result<(RxStream, SampleFormat), Error> {
    let failed = |action: &str, why| Error::Soapy { action: action.to_owned(), uri: name.short(), why };
    let device = radio::open(name, Direction::Rx, channels, refusals)?;
    if let Some(wanted) = tuning {
        // What was changed while it ran holds after it came back.
        radio::tune_again(name, &device, channels, wanted, refusals)?;
    }
    let format = radio::format(&device, Direction::Rx, channels[0], name.format);
    let format = format.map_err(|why| failed("receive from", why))?;
    let stream = RxStream::open(device, radio::to_soapy(format), format.bytes(), channels, &name.stream_args);
    let mut stream = stream.map_err(|why| failed("receive from", why))?;
    stream.activate().map_err(|why| failed("start", why))?;
    Ok((stream, format))
}

/// So often a setting may be refused by a device that has just come back, and may not be ready.
const REFUSALS_MAX: u32 = 3;
