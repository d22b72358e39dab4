//! Synthetic waveforms, at memory speed.
//!
//! A sample is a pure function of the settings, the rate and its index. So a stream can be divided anywhere,
//! dropped samples do not affect others, and a test can compute the expected samples.
//!
//! ```
//! use grebe_process::synth::{ChannelSpec, Generator, Wave};
//!
//! let spec = ChannelSpec { wave: Wave::Square, frequency_hz: 250.0, ..ChannelSpec::default() };
//! let mut block = [0i16; 6];
//! Generator::new(&spec, 1_000.0)?.fill(2, &mut block);
//! assert_eq!(block, [-16384, -16384, 16384, 16384, -16384, -16384]);
//! # Ok::<(), grebe_process::Error>(())
//! ```

mod computed;
mod generator;
mod remote;
mod settings;
mod source;
mod wave;

pub use generator::Generator;
pub use remote::{GeneratorCommand, SynthRemote};
pub use settings::{Synth, WaveName};
pub use source::{SynthOptions, SynthSource};
pub use wave::{ChannelSpec, Wave};
