//! SoapySDR radios: `soapy:driver=rtlsdr?frequency=100M&rate=2.4M`. The library is loaded when a radio is opened.
//!
//! ```text
//!  source, sink      frames from samples, samples from frames
//!    |      \-> device_time    gaps and times of samples, by the device's clock
//!    v
//!  radio             settings of a name, applied to a device    list    devices
//!    |                                                           |
//!    v                                                           v
//!  sys               the C interface: library -> device -> streams
//! ```

mod device_time;
mod kind;
mod list;
mod radio;
mod receive;
mod sink;
mod source;
#[allow(unsafe_code, reason = "calls of a C library that is loaded when it is used, nothing else")]
mod sys;
mod uri;

#[cfg(fuzzing)]
pub(crate) use device_time::fuzz;
pub(crate) use kind::SoapyIn;
pub use list::{SoapyDevice, SoapyLibrary, soapy_devices, soapy_library};
pub use uri::Soapy;

use std::fmt;

use grebe_flow::Kinds;

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Samples, Scheme, Traits};
use crate::session::Bounded as _;
use kind::SoapyOut;
use sink::SoapySink;
use source::SoapySource;

impl Scheme for Soapy {
    const WRITTEN: &'static str = "soapy:ARGUMENTS";
    const OTHERWISE: &'static str = "is not a radio: write soapy:driver=rtlsdr?frequency=100M&rate=2.4M";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("soapy:").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.short(), self.pairs())
    }

    fn traits(&self) -> Traits {
        // The device's clock may be set to UTC.
        Traits { is_local: false, ..Traits::LIVE }
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the radio {}", self.short()))
    }

    fn samples(&self) -> Samples {
        let channels = Some(self.channels.len().max(1) as u32);
        // Without an option the format is that of the device, which is not known yet.
        Samples { channels, format: self.format, rate_hz: self.rate_hz }
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let mut source = options
            .patience(self.reconnects)
            .open(notify, |_| SoapySource::open(self, options.tuner.as_ref()))?;
        let (driver, hardware) = source.made_by();
        let tuned = source.tuned();
        notify(Notice::Radio(format!("{hardware}: {}", source.words())));
        for (what, requested, is) in [
            ("samples per second", self.rate_hz, tuned.rate_hz),
            ("Hz", self.frequency_hz, tuned.frequency_hz),
        ] {
            // Drivers choose the nearest setting without reporting it.
            if let Some(requested) = requested.filter(|requested| (requested - is).abs() > requested * NEAR) {
                notify(Notice::Radio(format!(
                    "{hardware} has {is} {what} instead of the requested {requested}"
                )));
            }
        }
        if let Some((_, what)) = HIDES_LOSS.iter().find(|(name, _)| driver.eq_ignore_ascii_case(name)) {
            notify(Notice::UnseenLoss(what));
            source = source.loses_unseen();
        }
        let (tuner, rate_hz) = (Some(source.tuner()), Some(tuned.rate_hz).filter(|&rate_hz| rate_hz > 0.0));
        let source = source.bounded(&options);
        Ok(OpenSource { rate_hz, tuner, ..OpenSource::of(source) })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let sink = options.patience(self.reconnects).open(notify, |_| SoapySink::open(self))?;
        Ok(OpenSink::of(sink))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<SoapyIn>().add::<SoapyOut>();
    }
}

/// Tolerance, because oscillators are divided by integers.
const NEAR: f64 = 1e-4;
/// Drivers that do not report drops of the device or of the library below (according to their sources).
const HIDES_LOSS: [(&str, &str); 2] = [
    ("PlutoSDR", "the driver plutosdr does not report overflows: drops of the device"),
    ("Airspy", "the driver airspy reports only its own buffer: drops on USB"),
];
