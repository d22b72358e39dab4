//! Sound devices.

use super::uri::AudioStream;
use crate::kind::stream_kinds;

stream_kinds! {
    /// Listens to a sound device: a microphone or a line.
    source AudioIn = "audio_in" of AudioStream {
        /// The device and what it is set to: audio:, audio:hw:1,0?rate=96k&channels=2&format=i32.
        uri,
        /// Ends after this many samples per channel.
        samples,
        /// Fails once nothing has come for this long.
        idle_timeout,
    }

    /// Plays a stream on a sound device.
    sink AudioOut = "audio_out" of AudioStream {
        /// The device: audio:, audio:hw:1,0; its rate, channels and format are the stream's.
        uri,
    }
}
