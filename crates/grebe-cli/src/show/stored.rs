//! Recordings that a scope reads on demand, the same for every command: on disk, still being copied, or a ring.

use std::path::Path;
use std::time::Duration;

use grebe_recording::{Error, newest_recording, ring_part_paths};
use grebe_stages::{Notice, Uri};
use grebe_view::{Recording, RecordingOutline};

use super::incoming::Incoming;
use super::recording::{OnDisk, Progress, span_samples};
use super::ring::RingOnDisk;
use crate::ending::Usage;
use crate::graph::print_notice;
use crate::output::note;

/// A recording of any size.
#[derive(Debug)]
pub(crate) enum Stored {
    OnDisk(Box<OnDisk>),
    Incoming(Incoming),
    Ring(RingOnDisk),
}

impl Stored {
    /// Opens the ring in a folder, a recording that is being copied, or one that [`OnDisk::open`] reads on demand.
    pub(crate) fn open(path: &Path, history_bytes: usize) -> Result<Option<Self>, Error> {
        if path.is_dir()
            && let Some(ring) = RingOnDisk::open(path)?
        {
            return Ok(Some(Self::Ring(ring)));
        }
        if let Some(incoming) = Incoming::open(path)? {
            return Ok(Some(Self::Incoming(incoming)));
        }
        Ok(OnDisk::open(path, history_bytes)?.map(Box::new).map(Self::OnDisk))
    }

    /// Prints how the file was read.
    pub(crate) fn print_notes(&self) {
        if let Self::OnDisk(recording) = self {
            recording.file().notes().iter().for_each(|note| print_notice(Notice::Recording(note.clone())));
        }
    }

    /// Shows nothing that is recorded from now on.
    pub(crate) fn cut_off_now(self) -> Self {
        match self {
            Self::OnDisk(recording) => Self::OnDisk(Box::new(recording.cut_off_now())),
            Self::Incoming(incoming) => Self::Incoming(incoming),
            Self::Ring(ring) => Self::Ring(ring.cut_off_now()),
        }
    }

    /// The recording up to this time; of one that is being copied, all of it.
    pub(crate) fn up_to(self, after: Duration) -> Result<Self, Usage> {
        match self {
            Self::OnDisk(recording) => {
                match (after.as_secs_f64() * recording.file().rate_hz().unwrap_or(0.0)) as u64 {
                    0 => Err(Usage("--after is too short, or the rate of the recording is unknown".into())),
                    samples => Ok(Self::OnDisk(Box::new(recording.up_to(samples)))),
                }
            }
            Self::Incoming(incoming) => Ok(Self::Incoming(incoming)),
            Self::Ring(_) => Err(Usage("--after is for a recording: name a part of the ring".into())),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        match self {
            Self::OnDisk(recording) => recording.progress(),
            Self::Incoming(incoming) => incoming.progress(),
            Self::Ring(ring) => ring.progress(),
        }
    }

    /// Samples per second; `None` if unknown.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        Some(self.outline().rate_hz).filter(|&rate_hz| rate_hz > 0.0)
    }

    /// Samples per channel.
    pub(crate) fn len_samples(&self) -> u64 {
        self.outline().stretches.iter().map(|stretch| stretch.length_samples).sum()
    }

    /// From the first to the last sample, gaps included.
    pub(crate) fn span_samples(&self) -> u64 {
        span_samples(self.outline())
    }

    fn outline(&self) -> &RecordingOutline {
        match self {
            Self::OnDisk(recording) => recording.outline(),
            Self::Incoming(incoming) => incoming.outline(),
            Self::Ring(ring) => ring.outline(),
        }
    }

    pub(super) fn into_recording(self) -> Box<dyn Recording> {
        match self {
            Self::OnDisk(recording) => recording,
            Self::Incoming(incoming) => Box::new(incoming),
            Self::Ring(ring) => Box::new(ring),
        }
    }
}

/// Replaces a folder by its newest recording, except the folder of a ring.
pub(crate) fn newest_of_folder(uri: &mut Uri) {
    if let Uri::File(path) = uri
        && path.is_dir()
        && ring_part_paths(path).is_empty()
        && let Some(newest) = newest_recording(path)
    {
        note!("grebe: {} is the newest recording there", newest.display());
        *path = newest;
    }
}
