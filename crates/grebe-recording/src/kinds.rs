//! File kinds by file name.

use std::path::Path;

use crate::headerless;
use crate::path_query::split;
use crate::unpacked::plain_name;

/// A format that has a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    SigMf,
    Wav,
    NumPy,
    /// SDRangel's.
    SdrIq,
    /// DAB receivers.
    Uff,
    Flac,
    /// NumPy's arrays in a zip.
    Npz,
    Matlab,
    Sigrok,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::SigMf,
        Self::Wav,
        Self::NumPy,
        Self::SdrIq,
        Self::Uff,
        Self::Flac,
        Self::Npz,
        Self::Matlab,
        Self::Sigrok,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SigMf => "SigMF",
            Self::Wav => "WAV",
            Self::NumPy => "NumPy",
            Self::SdrIq => "SDRangel",
            Self::Uff => "UFF",
            Self::Flac => "FLAC",
            Self::Npz => "NPZ",
            Self::Matlab => "MATLAB",
            Self::Sigrok => "sigrok",
        }
    }

    /// How its files end, in lower case.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::SigMf => &["sigmf-meta", "sigmf-data", "sigmf-collection", "sigmf"],
            Self::Wav => &["wav", "wave"],
            Self::NumPy => &["npy"],
            Self::SdrIq => &["sdriq"],
            Self::Uff => &["uff"],
            Self::Flac => &["flac"],
            Self::Npz => &["npz"],
            Self::Matlab => &["mat"],
            Self::Sigrok => &["sr"],
        }
    }
}

/// The format with a header that a name says.
pub(crate) fn kind_of(path: &Path) -> Option<Kind> {
    let (path, query) = split(path);
    let extension = plain_name(&path).extension()?.to_string_lossy().to_ascii_lowercase();
    // Data whose metadata are lost, or whose header is unknown, count as raw samples: then the name states
    // the format.
    let is_raw = query.is_some_and(|query| match extension.as_str() {
        "sigmf-data" => true,
        "uff" => query.contains("format="),
        _ => false,
    });
    Kind::ALL.into_iter().filter(|_| !is_raw).find(|kind| kind.extensions().contains(&extension.as_str()))
}

/// Whether the name is that of a raw file.
pub(crate) fn is_raw(path: &Path) -> bool {
    let (path, query) = split(path);
    let is_given = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("format=")));
    (is_given && !has_extension(&path, &["csv", "tsv"])) || headerless::format_of(&path).is_some()
}

/// Whether the name is that of a recording.
pub fn is_recording(path: &Path) -> bool {
    kind_of(path).is_some() || is_raw(path)
}

/// Whether the name is that of a stream: `tcp://host:1`. No file is meant by it, unless there is one.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://")) && !path.exists()
}

/// Whether the name is that of comma-separated values.
pub fn is_csv(path: &Path) -> bool {
    has_extension(path, &["csv"])
}

/// Whether the name is that of a table, which [`import_csv`](crate::import_csv) reads.
pub fn is_table(path: &Path) -> bool {
    has_extension(path, &["csv", "tsv"]) || has_extension(path, &["txt"]) && !is_raw(path)
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    let (path, _) = split(path);
    plain_name(&path)
        .extension()
        .is_some_and(|extension| known.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}
