//! Location of a recording's summary: beside it, or in the user's cache.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use super::format::Kind;
use crate::hexadecimal::hex;
use crate::path_query::split;

/// Path beside the recording: `x.grebe-summary` for `x.sigmf-meta` and its files, `x.wav.grebe-summary` for
/// `x.wav`.
pub(crate) fn beside(path: &Path, kind: Kind) -> PathBuf {
    named_beside(path, kind.extension())
}

/// The same with another extension.
pub(crate) fn named_beside(path: &Path, extension: &str) -> PathBuf {
    let (path, _) = split(path);
    let is_sigmf =
        path.extension().is_some_and(|extension| extension.to_string_lossy().starts_with("sigmf-"));
    let name = if is_sigmf { path.file_stem() } else { path.file_name() };
    let mut name: OsString = name.unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

/// Path in the user's cache, unique to the recording; `None` if the system has no such folder.
pub(super) fn in_cache(path: &Path, kind: Kind) -> Option<PathBuf> {
    let home = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = home("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| home("LOCALAPPDATA")).or_else(|| Some(home("HOME")?.join(".cache")))?;
    let place = std::path::absolute(path).ok()?;
    let digest = digest(&SHA256, place.as_os_str().as_encoded_bytes());
    let digest = hex(&digest.as_ref()[..8]);
    let name = place.file_name()?.to_string_lossy().into_owned();
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    Some(cache.join("grebe").join("summaries").join(format!("{name}-{digest}.{}", kind.extension())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_lies_beside_its_recording() {
        for (path, expected) in [
            ("a/x.sigmf-meta", "a/x.grebe-summary"),
            ("a/x.y.sigmf-data", "a/x.y.grebe-summary"),
            ("x.sigmf-collection", "x.grebe-summary"),
            ("a/x.wav", "a/x.wav.grebe-summary"),
            ("a/x.cu8?rate=2.4M", "a/x.cu8.grebe-summary"),
        ] {
            assert_eq!(beside(Path::new(path), Kind::Extremes), Path::new(expected));
        }
        assert_eq!(beside(Path::new("x.sigmf-meta"), Kind::Spectra), Path::new("x.grebe-spectra"));
        let [one, other] = ["a/x.wav", "b/x.wav"].map(|path| in_cache(Path::new(path), Kind::Spectra));
        assert_ne!(one.expect("a test has a home"), other.expect("a test has a home"));
    }
}
