//! Radios behind SoapySDR.

use super::uri::Soapy;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Samples that a radio behind SoapySDR receives.
    source SoapyIn = "soapy_in" of Soapy {
        /// The radio and what it is set to: soapy:driver=rtlsdr?frequency=100M&rate=2.4M&gain=20
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails once nothing has come for this long.
        idle_timeout,
    }

    /// Sends a stream by a radio behind SoapySDR, at the pace at which it takes it.
    sink SoapyOut = "soapy_out" of Soapy {
        /// The radio and what it is set to: soapy:driver=hackrf?frequency=433.92M&gain=10; its rate is the stream's.
        uri,
    }
}
