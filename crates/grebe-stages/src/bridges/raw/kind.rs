//! Samples without headers.

use super::uri::RawStream;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Reads samples without headers, as other programs send them.
    source RawIn = "raw_in" of RawStream {
        /// The carrier and the format: pipe:?format=cu8&rate=2.4M, tcp://HOST:PORT?format=...,
        /// udp://HOST:PORT?format=...
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Writes samples without headers, as other programs read them.
    sink RawOut = "raw_out" of RawStream {
        /// The carrier and the format: pipe:?format=cf32, tcp://HOST:PORT?format=..., udp://HOST:PORT?format=...
        uri,
    }
}
