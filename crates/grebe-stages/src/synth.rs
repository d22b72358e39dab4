//! Synthetic waveforms, at memory speed.
//!
//! A sample is a pure function of what was asked for, the rate and its index, so that a stream can be cut into blocks
//! anywhere, dropped samples leave the rest as it would have been, and a test can compute what a receiver must hold.
//!
//! ```
//! use grebe_stages::synth::{ChannelSpec, Generator, Wave};
//!
//! let spec = ChannelSpec { wave: Wave::Square, frequency_hz: 250.0, ..ChannelSpec::default() };
//! let mut block = [0i16; 6];
//! Generator::new(&spec, 1_000.0)?.fill(2, &mut block);
//! assert_eq!(block, [-16384, -16384, 16384, 16384, -16384, -16384]);
//! # Ok::<(), grebe_stages::Error>(())
//! ```

mod computed;
mod generator;
mod remote;
mod settings;
mod source;
mod uri;
mod wave;

pub use {
    generator::Generator,
    remote::{GeneratorCommand, SynthRemote},
    settings::{Synth, WaveName},
    source::{SynthOptions, SynthSource},
    wave::{ChannelSpec, Wave},
};

use std::fmt;

use grebe_flow::Kinds;
use grebe_flow::{Count, SizeBytes, Time};

use crate::error::Error;
use crate::open::{Notify, OpenSource, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};

impl Scheme for Synth {
    const WRITTEN: &'static str = "synth:";
    const OTHERWISE: &'static str = "is no generator: write synth:, or synth:sine?rate=1M";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("synth:").map(uri::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "synth:{}", uri::write(self))
    }

    fn traits(&self) -> Traits {
        Traits { is_shared: false, ..Traits::LIVE }
    }

    fn check(&self, end: End) -> Result<(), String> {
        match end {
            End::Source => Ok(()),
            End::Sink => Err("cannot be sent to: it is a generator".to_owned()),
        }
    }

    /// Its datagram size and latency are those of the transport.
    fn open_source(&self, options: SourceOptions, _: Notify<'_>) -> Result<OpenSource, Error> {
        let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
        check_datagram_bytes(datagram_bytes)?;
        let samples = self.length_samples().into_iter().chain(options.samples).min().map(Count);
        let synth = Self {
            samples,
            datagram_size: SizeBytes(datagram_bytes),
            latency: Time(options.transport.latency),
            ..self.clone()
        };
        let (mut source, remote) = SynthRemote::new(synth)?;
        if let Some(pool) = options.pool {
            source = source.pool(pool);
        }
        Ok(OpenSource { remote: Some(remote), ..OpenSource::of(source) })
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<Self>();
    }
}
