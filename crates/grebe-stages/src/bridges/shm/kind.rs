//! Streams in shared memory.

use grebe_flow::{Count, Fault, Kind, Ports, Site, Stage, StageResult, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::uri::ShmName;
use crate::error::Error;
use crate::kind::{check, source, source_options, stream_kinds};
use crate::scheme::{End, Scheme as _};

stream_kinds! {
    /// Lends a stream to other processes of this machine, in shared memory.
    sink ShmOut = "shm_out" of ShmName {
        /// The stream: shm://NAME. ?wait=N starts the graph after N readers have joined, ?block=no lets no reader block
        /// it, ?readers=N sets the readers that share its memory (default 4), ?memory=1G its size (default 256 MiB).
        uri,
    }
}

/// Reads a stream in shared memory that another process on this machine makes. The stream must exist.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShmIn {
    /// The stream: shm://NAME, or shm://NAME?policy=drop_latest for the policy of a slow reader.
    uri: String,
    /// Ends after this many samples per channel, or with the stream.
    samples: Option<Count>,
    /// Fails when the producer is silent for this long.
    idle_timeout: Option<Time>,
}

impl Kind for ShmIn {
    const NAME: &'static str = "shm_in";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        check(self.stream())
    }

    fn build(self, site: &mut Site) -> StageResult<Box<dyn Stage>> {
        let options = source_options(self.samples, self.idle_timeout, site);
        source(&self.stream()?, options, site)
    }
}

impl ShmIn {
    fn stream(&self) -> Result<ShmName, Error> {
        let shm = ShmName::named(&self.uri, End::Source)?;
        if shm.wait_consumers > 0 {
            let reason = "has wait=, which is for the stage that makes the stream: shm_out".to_owned();
            return Err(Error::Name { name: self.uri.clone(), reason });
        }
        Ok(shm)
    }
}
