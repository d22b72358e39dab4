//! Parameters in the name of a text file.

use std::path::{Path, PathBuf};

use grebe_frame::SampleFormat;
use grebe_process::query::Query;

use crate::error::{Error, ProcessError};
use crate::path_query;
use crate::table::TimeUnit;

/// The path, and the query after its `?`.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) path: PathBuf,
    pub(super) format: Option<SampleFormat>,
    pub(super) rate_hz: Option<f64>,
    pub(super) frequency_hz: Option<f64>,
    pub(super) time: TimeColumn,
    pub(super) channels: Option<Vec<String>>,
    /// Lines above the table.
    pub(super) skip: usize,
    pub(super) gaps: Gaps,
    /// Skip lines without samples.
    pub(super) skips_invalid: bool,
    query: String,
}

/// The time column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimeColumn {
    /// The one that is called so.
    Unsaid,
    None,
    /// By name or number.
    Asked(String, Option<TimeUnit>),
}

/// Handling of samples that are missing by the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    Keep,
    Close,
    Zeros,
    /// Repeat the previous value: for tables with one line per change.
    Hold,
}

impl Name {
    pub(super) fn parse(written: &Path) -> Result<Self, Error> {
        let (path, query) = path_query::split(written);
        let written_query = query.unwrap_or_default();
        let read = || {
            let mut query = Query::new(written_query)?;
            let format = query.format("format")?;
            let rate_hz = query.rate_hz()?;
            let frequency_hz = query.hertz("frequency")?;
            let time = query.value("time", "a column and its unit, as in t, 1:ms, or none", time)?;
            let channels = query.value("channels", "names or numbers of columns, as in a,b", |value| {
                let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
                names.iter().all(|name| !name.is_empty()).then_some(names)
            })?;
            let skip = query.whole("skip", 0..=MAX_SKIP)?;
            let gaps = query.choice("gaps", &GAPS)?;
            let invalid = query.choice("invalid", &[("refuse", false), ("skip", true)])?;
            query.end()?;
            Ok(Self {
                path: path.clone(),
                format,
                rate_hz,
                frequency_hz,
                time: time.unwrap_or(TimeColumn::Unsaid),
                channels,
                skip: skip.unwrap_or(0),
                gaps: gaps.unwrap_or(Gaps::Keep),
                skips_invalid: invalid.unwrap_or(false),
                query: written_query.to_owned(),
            })
        };
        read().map_err(|reason: String| {
            ProcessError::Name { name: written.display().to_string(), reason }.into()
        })
    }

    /// The name to type with these pairs, and with the other pairs that were typed.
    pub(super) fn typed(&self, pairs: &str) -> String {
        let key = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
        let new: Vec<String> = pairs.split('&').map(key).collect();
        let kept = self.query.split('&').filter(|pair| !pair.is_empty() && !new.contains(&key(pair)));
        let all: Vec<&str> = kept.chain([pairs]).collect();
        format!("'{}?{}'", self.path.display(), all.join("&"))
    }

    pub(super) fn line(&self, line: u64, what: &str) -> Error {
        Error::Field { path: self.path.clone(), what: format!("line {line}: {what}") }
    }

    pub(super) fn refused(&self, what: String) -> Error {
        Error::Field { path: self.path.clone(), what }
    }
}

/// `t`, `1:ms`, `none`.
fn time(value: &str) -> Option<TimeColumn> {
    if value == "none" {
        return Some(TimeColumn::None);
    }
    // A name may have colons of its own.
    let with_unit =
        value.rsplit_once(':').and_then(|(name, unit)| Some((name, Some(TimeUnit::named(unit)?))));
    let (name, unit) = with_unit.unwrap_or((value, None));
    (!name.is_empty()).then(|| TimeColumn::Asked(name.to_owned(), unit))
}

const GAPS: [(&str, Gaps); 4] =
    [("keep", Gaps::Keep), ("close", Gaps::Close), ("zeros", Gaps::Zeros), ("hold", Gaps::Hold)];
const MAX_SKIP: usize = 1_000_000;
