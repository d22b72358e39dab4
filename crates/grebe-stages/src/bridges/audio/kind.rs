//! Sound devices.

use super::uri::AudioStream;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Captures from a sound device: a microphone or a line input.
    source AudioIn = "audio_in" of AudioStream {
        /// The device and its settings: audio:, audio:hw:1,0?rate=96k&channels=2&format=i32.
        uri,
        /// Ends after this many samples per channel.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Plays a stream on a sound device.
    sink AudioOut = "audio_out" of AudioStream {
        /// The device: audio:, audio:hw:1,0. Rate, channels and format are those of the stream.
        uri,
    }
}
