//! Radios behind SoapySDR.

use super::uri::Soapy;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Samples from a SoapySDR radio.
    source SoapyIn = "soapy_in" of Soapy {
        /// The radio and its settings: soapy:driver=rtlsdr?frequency=100M&rate=2.4M&gain=20
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Transmits a stream with a SoapySDR radio, at the radio's rate.
    sink SoapyOut = "soapy_out" of Soapy {
        /// The radio and its settings: soapy:driver=hackrf?frequency=433.92M&gain=10. Its rate is that of the stream.
        uri,
    }
}
