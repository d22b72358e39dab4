//! Files that take their places together.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use super::checksum::Summing;
use super::names::temporary;
use crate::error::Error;

/// Files under temporary names, which take their places together, or are removed.
#[derive(Debug, Default)]
pub(super) struct Staged {
    files: Vec<(PathBuf, PathBuf)>,
}

impl Staged {
    /// A new file that will be `path`.
    pub(super) fn create(&mut self, path: PathBuf) -> Result<File, Error> {
        let temporary = temporary(&path);
        let file = File::create(&temporary).map_err(|source| Error::Create { path: path.clone(), source })?;
        self.files.push((temporary, path));
        Ok(file)
    }

    /// Writes a value; the sum of the file.
    pub(super) fn json(
        &mut self,
        path: PathBuf,
        value: &impl serde::Serialize,
        durable: bool,
    ) -> Result<String, Error> {
        let failed = |source| Error::Create { path: path.clone(), source };
        let mut out = Summing::new(BufWriter::with_capacity(BUFFER_BYTES, self.create(path.clone())?));
        serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
        out.write_all(b"\n").map_err(failed)?;
        let (out, sum) = out.finish();
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if durable {
            file.sync_all().map_err(failed)?;
        }
        Ok(sum)
    }

    pub(super) fn append(&mut self, mut other: Staged) {
        self.files.append(&mut other.files);
    }

    /// Gives all files their names.
    pub(super) fn commit(mut self) -> Result<(), Error> {
        for (temporary, path) in &self.files {
            fs::rename(temporary, path).map_err(|source| Error::Create { path: path.clone(), source })?;
        }
        self.files.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}

const BUFFER_BYTES: usize = 256 << 10;
