//! Path of the other end, as it travels.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::ending::Usage;

/// Path of the other end: text if it is UTF-8, else its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum PathText {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl PathText {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { bytes: bytes.to_vec() },
        }
    }

    /// A local path.
    pub(super) fn of_path(path: &Path) -> Self {
        Self::of(path.as_os_str().as_encoded_bytes())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes { bytes } => bytes,
        }
    }

    /// As a local path, without expansion.
    pub(super) fn as_it_is(&self) -> Result<PathBuf> {
        of_bytes(self.bytes())
    }

    /// As a local path, with `~` expanded.
    pub(super) fn path(&self) -> Result<PathBuf> {
        let bytes = self.bytes();
        let below = if bytes == b"~" { Some(&[][..]) } else { bytes.strip_prefix(b"~/") };
        let Some(below) = below else { return of_bytes(bytes) };
        let home = std::env::home_dir().ok_or_else(|| Usage("no home directory for `~`".to_owned()))?;
        Ok(if below.is_empty() { home } else { home.join(of_bytes(below)?) })
    }
}

#[cfg(unix)]
fn of_bytes(bytes: &[u8]) -> Result<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn of_bytes(bytes: &[u8]) -> Result<PathBuf> {
    let text = str::from_utf8(bytes);
    let text = text.map_err(|_| Usage("this system has no paths that are not Unicode".to_owned()))?;
    Ok(PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(PathText::of(b"~").path().unwrap(), home);
        let below = PathText::of(b"~/x/").path().unwrap();
        assert!(
            below == home.join("x") && below.to_string_lossy().ends_with('/'),
            "what is in it: {below:?}"
        );
        assert_eq!(PathText::of(b"x/~").path().unwrap(), PathBuf::from("x/~"));
    }
}
