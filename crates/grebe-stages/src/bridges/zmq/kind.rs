//! Streams of GNU Radio's ZMQ blocks.

use super::uri::Zmq;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Reads from a ZMQ block of GNU Radio.
    source ZmqIn = "zmq_in" of Zmq {
        /// The block and its items: zmq://HOST:PORT?type=sub&format=cf32&rate=1M; type=pull; tags if it passes tags.
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Sends a stream to ZMQ blocks of GNU Radio.
    sink ZmqOut = "zmq_out" of Zmq {
        /// The address for the blocks and the items: zmq://:PORT?type=pub&format=cf32&listen; type=push; tags if they
        /// pass tags.
        uri,
    }
}
