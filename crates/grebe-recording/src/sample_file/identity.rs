//! Identity of a recording, or of a part of it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ring::digest::{Context, SHA256};
use serde_json::{Value, json};

use super::{RawFile, SampleFile};
use crate::error::Error;
use crate::hexadecimal::hex;

impl SampleFile {
    /// The first bytes of a SHA-256 over samples from the beginning, the end and between.
    ///
    /// # Errors
    /// [`Error::File`] where the file cannot be read.
    pub(crate) fn fingerprint(&mut self) -> Result<[u8; 16], Error> {
        let samples = self.len_samples();
        let length = samples.min(LOOK_SAMPLES);
        let (mut hash, mut block) = (Context::new(&SHA256), Vec::new());
        for look in 0..LOOKS {
            let position = ((samples - length) as u128 * look as u128 / (LOOKS - 1) as u128) as u64;
            self.read(position, length as usize, &mut block)?;
            hash.update(&block);
        }
        let digest = hash.finish();
        Ok(std::array::from_fn(|place| digest.as_ref()[place]))
    }

    /// Source and method of reading these samples: equal values give equal samples.
    ///
    /// # Errors
    /// Those of [`fingerprint`](Self::fingerprint).
    pub(crate) fn identity(&mut self) -> Result<Value, Error> {
        let files: Vec<Value> = self.sources.iter().map(identity_of).collect();
        let mut segments = Context::new(&SHA256);
        for segment in &self.segments {
            for number in [segment.position, segment.length_samples, segment.first_sample_index] {
                segments.update(&number.to_le_bytes());
            }
        }
        Ok(json!({
            "files": files,
            "format": self.format.name(),
            "conversion": self.converted.as_ref().map(|converted| format!("{:?}", converted.conversion)),
            "sample_rate_hz": self.sample_rate_hz,
            "samples": self.len_samples,
            "segments": hex(&segments.finish().as_ref()[..16]),
            "fingerprint": hex(&self.fingerprint()?),
        }))
    }
}

fn identity_of(source: &RawFile) -> Value {
    let mut identity = identity(source.path(), source.size());
    identity["stretch"] = source.layout().into();
    identity
}

/// Identifies a file and its current content.
pub(crate) fn file_identity(path: &Path) -> Value {
    let there = fs::metadata(path).ok();
    let bytes = there.as_ref().map_or(0, fs::Metadata::len);
    identity(path, (bytes, there.and_then(|there| there.modified().ok())))
}

fn identity(path: &Path, (bytes, modified): (u64, Option<SystemTime>)) -> Value {
    let modified = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    json!({
        "path": path.display().to_string(),
        "bytes": bytes,
        "modified_ns": modified.map(|since| since.as_nanos() as u64),
    })
}

const LOOKS: u64 = 16;
const LOOK_SAMPLES: u64 = 1024;
