//! Sound: what a microphone or a line brings, and what a loudspeaker gets: `audio:`, `audio:hw:1,0?rate=96k&format=i32`.
//!
//! ALSA's library is loaded when a device is opened, so that grebe neither needs it to be built nor to run. PipeWire and PulseAudio
//! are devices of ALSA's.
//!
//! ```text
//!  capture: what is read, and what was missed   sink: what is written     list
//!                      \---------------------------+--------------------/
//!                                    alsa: the library, and a device (or absent)
//! ```

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a C library that is loaded when it is used")]
mod alsa;
#[cfg(not(target_os = "linux"))]
#[path = "audio/absent.rs"]
mod alsa;
mod capture;
mod name;
mod sink;

pub use alsa::{sound_devices, sound_library};
pub(crate) use capture::source;
pub use name::AudioStream;
pub(crate) use sink::AudioSink;
