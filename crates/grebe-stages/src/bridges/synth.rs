//! Generators: `synth:`, `synth:sine?rate=1M`.

mod uri;

use std::fmt;

use grebe_flow::{Count, Kinds, SizeBytes, Time};
use grebe_process::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};
use grebe_process::synth::{Synth, SynthRemote};

use crate::error::Error;
use crate::open::{Notify, OpenSource, SourceOptions};
use crate::scheme::{End, Scheme, Traits};

impl Scheme for Synth {
    const WRITTEN: &'static str = "synth:";
    const OTHERWISE: &'static str = "is not a generator: write synth:, or synth:sine?rate=1M";

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

    /// Its options include the datagram size and the latency of the transport.
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
