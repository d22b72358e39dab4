//! Names of files with a query: `x.bin?format=cf32`.

use std::path::{Path, PathBuf};

/// Splits a file's path from its query.
pub(crate) fn split(path: &Path) -> (PathBuf, Option<&str>) {
    // A file of that very name is meant, where there is one.
    let parts = path.to_str().and_then(|text| text.rsplit_once('?')).filter(|_| !path.exists());
    match parts {
        Some((path, query)) => (path.into(), Some(query)),
        None => (path.into(), None),
    }
}
