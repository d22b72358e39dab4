//! Which files a recording has.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A recording's path without what follows the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base(PathBuf);

impl Base {
    /// Of any file of the recording; a name without one of SigMF's extensions is the base itself.
    pub(crate) fn of(path: &Path) -> Self {
        let known = path
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)));
        Self(if known { path.with_extension("") } else { path.into() })
    }

    /// Of a recording that lies beside this one.
    pub(super) fn beside(&self, name: &str) -> Self {
        Self(self.0.with_file_name(name))
    }

    /// Of channel `channel` (from 0) of a collection; the files count from 1.
    pub(super) fn channel(&self, channel: usize) -> Self {
        Self(self.with(&format!("_ch{}", channel + 1)))
    }

    pub(super) fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn meta(&self) -> PathBuf {
        self.with(".sigmf-meta")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.with(".sigmf-data")
    }

    pub(crate) fn collection(&self) -> PathBuf {
        self.with(".sigmf-collection")
    }

    fn with(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(&self.0);
        name.push(end);
        name.into()
    }
}

/// Where a file is written before it takes the place of `path`.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

const EXTENSIONS: [&str; 3] = ["sigmf-meta", "sigmf-data", "sigmf-collection"];
