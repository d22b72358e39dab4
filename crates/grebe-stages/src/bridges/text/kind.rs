//! Lines of numbers.

use super::uri::TextStream;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Reads lines of numbers, as microcontrollers and loggers print them: 1,2,3 or a:1,b:2.
    source TextIn = "text_in" of TextStream {
        /// What carries them: serial:///dev/ttyACM0?baud=115200, pipe:?format=text&rate=100, tcp://HOST:PORT?format=text, udp://:PORT?format=text
        uri,
        /// Ends after this many lines, or with the stream.
        samples,
        /// Fails once nothing has come for this long.
        idle_timeout,
    }

    /// Writes lines of numbers: one of names, then one per sample.
    sink TextOut = "text_out" of TextStream {
        /// What carries them: pipe:?format=text, with &time each behind its time; tcp://HOST:PORT?format=text, serial:PORT
        uri,
    }
}
