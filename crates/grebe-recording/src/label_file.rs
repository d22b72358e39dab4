//! Annotations as files of other programs: CSV, Audacity's labels, metadata of SigMF.

mod audacity;
mod csv;
mod fields;
#[cfg(test)]
mod tests;
mod times;

use std::path::Path;

use crate::error::Error;
use crate::sample_file::{Annotation, SampleFile};
use crate::sigmf;
use times::Times;

/// A file of annotations, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelFile {
    /// A line for each, with all fields.
    Csv,
    /// Tab-separated times and labels, with a second line for frequencies.
    Audacity,
    /// Metadata of SigMF: `.sigmf-meta`, `.sigmf-annotations`.
    SigMf,
}

/// Annotations that were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadLabels {
    /// In the order of their file.
    pub annotations: Vec<Annotation>,
    /// Number of annotations outside of the recording.
    pub outside: usize,
}

impl LabelFile {
    /// The kind that a name says: `.csv`, `.txt`, `.sigmf-meta`, `.sigmf-annotations`.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "txt" => Some(Self::Audacity),
            "sigmf-meta" | "sigmf-annotations" => Some(Self::SigMf),
            _ => None,
        }
    }

    /// Reads annotations for a recording. Times are those of its signal, gaps included.
    ///
    /// # Errors
    /// [`Error::Content`], with the line and a remedy.
    pub fn read(self, path: &Path, text: &str, file: &SampleFile) -> Result<ReadLabels, Error> {
        let times = Times::of(file);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = match self {
            Self::Csv => csv::read(text, &times),
            Self::Audacity => audacity::read(text, &times),
            Self::SigMf => Ok(sigmf::annotations_in(path, text, file)?.into_iter().map(Some).collect()),
        };
        let read = read.map_err(|what| Error::Content { path: path.into(), what })?;
        let mut labels = ReadLabels::default();
        for annotation in read {
            match annotation.filter(|it| it.position < file.len_samples()) {
                Some(mut annotation) => {
                    let room = file.len_samples() - annotation.position;
                    annotation.length_samples = annotation.length_samples.min(room);
                    labels.annotations.push(annotation);
                }
                None => labels.outside += 1,
            }
        }
        Ok(labels)
    }

    /// The text of such a file with annotations of a recording, and the number of annotations that it shortens.
    ///
    /// # Errors
    /// [`Error::Field`]: its times need the sample rate.
    pub fn write(
        self,
        path: &Path,
        file: &SampleFile,
        annotations: &[Annotation],
    ) -> Result<(String, usize), Error> {
        let times = Times::of(file);
        match self {
            Self::Csv => Ok((csv::write(annotations, &times), 0)),
            Self::Audacity if file.rate_hz().is_none() => {
                let what = "its labels have times, and the sample rate is unknown: export .csv".to_owned();
                Err(Error::Field { path: path.into(), what })
            }
            Self::Audacity => Ok(audacity::write(annotations, &times)),
            Self::SigMf => Ok((sigmf::annotation_file(path, file, annotations)?, 0)),
        }
    }
}

impl SampleFile {
    /// The time of a sample of the file, in seconds of the signal from its first sample on, gaps included; `None`
    /// without a sample rate.
    pub fn seconds_at(&self, position: u64) -> Option<f64> {
        Times::of(self).seconds(position)
    }

    /// The sample at a time; in a gap, the next sample. `None` before the first, or without a sample rate.
    pub fn position_at(&self, seconds: f64) -> Option<u64> {
        Times::of(self).position(seconds)
    }
}
