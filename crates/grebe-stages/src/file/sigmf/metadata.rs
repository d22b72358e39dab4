//! What the metadata of a recording say.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use grebe_frame::{ChannelDescription, Description, SampleFormat};
use serde_json::{Map, Value};

use super::checksum::Summing;
use super::described::{self, Tuning};
use super::layout::{
    Annotation, Base, Capture, Collection, CollectionFile, Global, MetaOut, NOT_CLOSED, Stream, VERSION,
    datatype, datetime, temporary,
};
use crate::error::Error;
use crate::file::output::followed;

/// Where samples go on after a gap, or another description holds.
#[derive(Debug, Clone)]
pub(super) struct Captured {
    pub(super) position: u64,
    pub(super) first_sample_index: u64,
    pub(super) recorded_at: Option<SystemTime>,
    pub(super) description: Option<Arc<Description>>,
}

/// The metadata of all files of a recording.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) format: SampleFormat,
    /// Of each recording.
    pub(super) channels: usize,
    /// One per channel, or one of all of them.
    pub(super) recordings: Vec<Base>,
    /// What ties more than one together.
    pub(super) collection: Option<Base>,
    pub(super) sample_rate_hz: f64,
    /// What the recorder says where the stream has no notes.
    pub(super) notes: Option<String>,
    /// What the stream said first.
    pub(super) description: Option<Arc<Description>>,
    /// Whether a capture has words of that extension.
    pub(super) has_details: bool,
    pub(super) segments: Vec<Captured>,
    pub(super) annotations: Vec<Annotation>,
    /// Samples per channel up to which all segments are entered.
    pub(super) known_samples: u64,
}

impl Metadata {
    /// Writes the metadata in place of what is there; `closed` with the sums, where there are any.
    pub(super) fn write(&self, closed: Option<Option<Vec<String>>>) -> Result<(), Error> {
        let durable = closed.is_some();
        self.stage(closed)?.commit()?;
        if durable {
            self.sync_folder();
        }
        Ok(())
    }

    /// Of one sample of each channel of a recording.
    pub(super) fn frame_bytes(&self) -> u64 {
        (self.format.bytes() * self.channels) as u64
    }

    /// Writes the metadata beside what is there.
    pub(super) fn stage(&self, closed: Option<Option<Vec<String>>>) -> Result<Staged, Error> {
        let mut staged = Staged::default();
        let mut streams = Vec::new();
        let durable = closed.is_some();
        for (number, base) in self.recordings.iter().enumerate() {
            let channels = number * self.channels..(number + 1) * self.channels;
            let sum = closed.as_ref().map(|sums| sums.as_ref().map(|sums| sums[number].clone()));
            let global = self.global(sum, channels.clone());
            let described = self.described_channels(channels.clone());
            let meta = MetaOut {
                global: &global,
                captures: self.segments.iter().map(|segment| segment.capture(channels.clone(), described)),
                annotations: self.annotations.iter(),
            };
            let hash = staged.json(base.meta(), &meta, durable)?;
            streams.push(Stream::Object { name: base.name(), hash: Some(hash) });
        }
        if let Some(base) = &self.collection {
            let (version, description) = (VERSION.into(), self.notes.clone());
            let file = CollectionFile { collection: Collection { version, description, streams } };
            staged.json(base.collection(), &file, durable)?;
        }
        Ok(staged)
    }

    /// What `global` says of the channels of a recording.
    fn described_channels(&self, channels: Range<usize>) -> Option<&[ChannelDescription]> {
        self.description.as_ref().map(|description| described::part(&description.channels, channels))
    }

    fn global(&self, closed: Option<Option<String>>, channels: Range<usize>) -> Global {
        let uses: &[&str] = match (closed.is_none(), self.has_details) {
            (true, true) => &["grebe", "capture_details"],
            (true, false) => &["grebe"],
            (false, true) => &["capture_details"],
            (false, false) => &[],
        };
        let description = self.description.as_deref();
        let state = if closed.is_some() { "" } else { NOT_CLOSED };
        Global {
            datatype: datatype(self.format),
            sample_rate: Some(self.sample_rate_hz).filter(|&rate_hz| rate_hz > 0.0),
            version: VERSION.into(),
            num_channels: Some(self.channels as u64),
            recorder: Some(format!("grebe {}{state}", env!("CARGO_PKG_VERSION"))),
            collection: self.collection.as_ref().map(Base::name),
            dataset: None,
            metadata_only: None,
            offset: None,
            trailing_bytes: None,
            known_samples: closed.is_none().then_some(self.known_samples),
            sha512: closed.flatten(),
            rest: described::global(description, self.notes.as_ref(), channels, uses),
        }
    }

    /// Enters where samples go on.
    pub(super) fn enter(&mut self, segment: Captured) {
        self.describe(segment.description.as_ref());
        self.segments.push(segment);
    }

    /// Notes what the stream is: what was said first holds for all of it.
    pub(super) fn describe(&mut self, description: Option<&Arc<Description>>) {
        let channels = 0..self.channels * self.recordings.len();
        self.has_details |= Tuning::of(description.map(Arc::as_ref), channels).has_details();
        self.description = self.description.take().or_else(|| description.cloned());
    }

    /// Enters a stretch of the stream where it stands in the file; what lies in a gap is left out of it.
    pub(super) fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    ) {
        let sample_start = self.position(first_sample_index);
        let end = self.position(first_sample_index.saturating_add(length_samples));
        let sample_count = Some(end.saturating_sub(sample_start));
        let annotation = Annotation { sample_start, sample_count, rest };
        let place = self.annotations.partition_point(|other| other.sample_start <= sample_start);
        self.annotations.insert(place, annotation);
    }

    /// Where a sample of the stream stands in the file, or what follows it there. The newest segments come first: those of
    /// a stream that began again hide older ones, and most notes are on what just happened.
    fn position(&self, index: u64) -> u64 {
        let mut end = u64::MAX;
        for segment in self.segments.iter().rev() {
            if segment.first_sample_index <= index {
                return segment.position.saturating_add(index - segment.first_sample_index).min(end);
            }
            end = segment.position;
        }
        0
    }

    /// Leaves out what lies behind the end.
    pub(super) fn cut(&mut self, len_samples: u64) {
        self.segments.retain(|segment| segment.position < len_samples);
        self.annotations.retain(|annotation| annotation.sample_start < len_samples);
        for annotation in &mut self.annotations {
            let left = len_samples - annotation.sample_start;
            annotation.sample_count = annotation.sample_count.map(|count| count.min(left));
        }
    }

    /// So that the new names survive a loss of power too. Not every system can; the data are safe without.
    fn sync_folder(&self) {
        if cfg!(unix) {
            let folder = self.recordings[0].path().parent().filter(|folder| !folder.as_os_str().is_empty());
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        }
    }
}

impl Captured {
    /// `described` is what `global` says of these channels.
    fn capture(&self, channels: Range<usize>, described: Option<&[ChannelDescription]>) -> Capture {
        let mut capture = Capture {
            sample_start: self.position,
            // SigMF's largest index.
            global_index: Some(self.first_sample_index.min(i64::MAX as u64)),
            datetime: self.recorded_at.and_then(datetime),
            ..Capture::default()
        };
        Tuning::of(self.description.as_deref(), channels).write(described, &mut capture);
        capture
    }
}

/// Files under temporary names, which take their places together, or are removed.
#[derive(Debug, Default)]
pub(in crate::file) struct Staged {
    files: Vec<(PathBuf, PathBuf)>,
}

impl Staged {
    /// A new file that will be `path`, and where it is until then.
    pub(in crate::file) fn create(&mut self, path: &Path) -> Result<(File, PathBuf), Error> {
        let mut create = || {
            let place = followed(path)?;
            let temporary = temporary(&place);
            let file = File::create(&temporary)?;
            self.files.push((temporary.clone(), place));
            Ok((file, temporary))
        };
        create().map_err(Error::file("create", path))
    }

    /// Writes a value; the sum of the file.
    fn json(&mut self, path: PathBuf, value: &impl serde::Serialize, durable: bool) -> Result<String, Error> {
        let failed = Error::file("create", &path);
        let mut out = Summing::new(BufWriter::with_capacity(BUFFER_BYTES, self.create(&path)?.0));
        serde_json::to_writer_pretty(&mut out, value).map_err(|error| failed(error.into()))?;
        out.write_all(b"\n").map_err(&failed)?;
        let (out, sum) = out.finish();
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if durable {
            file.sync_all().map_err(&failed)?;
        }
        Ok(sum)
    }

    pub(super) fn append(&mut self, mut other: Staged) {
        self.files.append(&mut other.files);
    }

    /// Gives all files their names.
    pub(in crate::file) fn commit(mut self) -> Result<(), Error> {
        for (temporary, path) in &self.files {
            fs::rename(temporary, path).map_err(Error::file("create", path))?;
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
