//! A recording that is put together from stretches of others, whose bytes the system copies.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_frame::Description;
use serde_json::{Map, Value};

use super::captured::Captured;
use super::create::{SigmfSettings, metadata};
use super::described::Tuning;
use super::layout::{Annotation, Base};
use super::metadata::{Metadata, State};
use super::staging_folder::StagingFolder;
use crate::error::Error;
use crate::sample_file::{RecordedAt, SampleFile, Segment};

/// A recording that becomes longer, and has its name once it is whole.
#[derive(Debug)]
pub(crate) struct Assembler {
    apart: StagingFolder,
    to: PathBuf,
    metadata: Metadata,
    /// The data files, and the number of their bytes that may not be on the disk.
    data: Vec<File>,
    unsynced_bytes: u64,
    len_samples: u64,
    /// Stream index after the newest sample.
    next_sample_index: Option<u64>,
    description: Option<Arc<Description>>,
}

impl Assembler {
    /// Starts a recording for samples like those of `like`.
    ///
    /// # Errors
    /// [`Error::Exists`] if the recording exists and must not be overwritten, [`Error::Busy`] while another recorder
    /// writes it, [`Error::File`].
    pub(crate) fn create(to: &Path, like: &SampleFile, overwrite: bool) -> Result<Self, Error> {
        let settings = SigmfSettings {
            format: like.format(),
            channels: like.channels(),
            sample_rate_hz: like.rate_hz().unwrap_or(0.0),
            overwrite,
            ..SigmfSettings::default()
        };
        let apart = StagingFolder::create(to, &settings)?;
        let metadata = metadata(&settings, &apart.base());
        let create = |base: &Base| {
            let file = OpenOptions::new().write(true).create_new(true).open(base.data());
            file.map_err(Error::file("create", to))
        };
        let data = metadata.recordings.iter().map(create).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            apart,
            to: to.into(),
            metadata,
            data,
            unsynced_bytes: 0,
            len_samples: 0,
            next_sample_index: None,
            description: None,
        })
    }

    /// Samples per channel so far.
    pub(crate) fn len_samples(&self) -> u64 {
        self.len_samples
    }

    /// Appends these samples of a recording of the same kind, with its metadata except annotations.
    ///
    /// # Errors
    /// [`Error::File`] where the disk is full or fails.
    pub(crate) fn append(&mut self, file: &SampleFile, samples: Range<u64>) -> Result<(), Error> {
        file.copy_to(samples.clone(), &self.data, &self.to)?;
        let first = file.segment_at(samples.start);
        let behind = file.segments().iter().filter(|segment| samples.contains(&segment.position));
        for segment in std::iter::once(first).chain(behind.filter(|it| it.position > samples.start)) {
            self.enter(file, segment, samples.clone());
        }
        let bytes = (samples.end - samples.start) * self.metadata.frame_bytes() * self.data.len() as u64;
        self.len_samples += samples.end - samples.start;
        self.unsynced_bytes += bytes;
        if self.unsynced_bytes >= UNSYNCED_BYTES_MAX {
            // Writes through the page cache must not fill it: that would block every writer.
            self.sync()?;
        }
        Ok(())
    }

    /// Begins a capture where samples continue, if none does.
    fn enter(&mut self, file: &SampleFile, segment: &Segment, samples: Range<u64>) {
        let begin = segment.position.max(samples.start);
        let first_sample_index = segment.first_sample_index + (begin - segment.position);
        let end = (segment.position + segment.length_samples).min(samples.end);
        let description = file.description(begin).cloned();
        let channels = 0..file.channels();
        let before = Tuning::of(self.description.as_deref(), channels.clone());
        let is_tuned = Tuning::of(description.as_deref(), channels).differs(&before);
        if is_tuned || self.next_sample_index != Some(first_sample_index) {
            let error_ns = segment.recorded_error_ns;
            let axis = file.axis_at(begin);
            let recorded_at = file.time_at(begin).map(|time| RecordedAt { time, error_ns, axis });
            let position = self.len_samples + (begin - samples.start);
            let description = description.clone();
            let stripe_start = None;
            self.metadata.enter(Captured {
                position,
                first_sample_index,
                recorded_at,
                description,
                stripe_start,
            });
        }
        self.description = description;
        self.next_sample_index = Some(first_sample_index + (end - begin));
    }

    /// Labels a stretch of the recording.
    pub(crate) fn annotate(&mut self, position: u64, length_samples: u64, rest: Map<String, Value>) {
        let annotation = Annotation { sample_start: position, sample_count: Some(length_samples), rest };
        self.metadata.annotations.place(annotation);
    }

    /// Waits until the disk has all of it, and gives it its name; its files, the one to open first.
    ///
    /// # Errors
    /// [`Error::Empty`] without a sample; [`Error::File`].
    pub(crate) fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        if self.len_samples == 0 {
            return Err(Error::Empty { path: self.to });
        }
        self.sync()?;
        self.metadata.cut(self.len_samples);
        self.metadata.write(&State { is_closed: true, is_durable: true, sums: &[] })?;
        let Metadata { collection, recordings, .. } = &self.metadata;
        let mut files: Vec<PathBuf> = collection.iter().map(Base::collection).collect();
        files.extend(recordings.iter().flat_map(|recording| [recording.meta(), recording.data()]));
        self.apart.publish(&files)
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.unsynced_bytes = 0;
        self.data.iter().try_for_each(File::sync_data).map_err(Error::file("write", &self.to))
    }
}

const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
