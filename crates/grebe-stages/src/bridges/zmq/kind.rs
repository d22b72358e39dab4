//! What GNU Radio's ZMQ blocks send and take.

use super::uri::Zmq;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Reads what a ZMQ block of GNU Radio sends.
    source ZmqIn = "zmq_in" of Zmq {
        /// The block and what its items are: zmq://HOST:PORT?type=sub&format=cf32&rate=1M; type=pull, and tags where it passes tags.
        uri,
        /// Ends after this many samples per channel, or with the stream.
        samples,
        /// Fails once nothing has come for this long.
        idle_timeout,
    }

    /// Sends a stream to ZMQ blocks of GNU Radio.
    sink ZmqOut = "zmq_out" of Zmq {
        /// Where they connect to, and what its items are: zmq://:PORT?type=pub&format=cf32&listen; type=push, and tags where they pass tags.
        uri,
    }
}
