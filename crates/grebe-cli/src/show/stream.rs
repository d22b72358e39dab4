//! What is shown of a stream, and what the scope is told of its source.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use grebe_flow::{Running, Snapshot};
use grebe_view::{
    ChannelSetup, GeneratorRemote, Loss, ScopeLink, SourceStatus, ThemeChoice, TriggerOptions, ViewOptions,
};

use super::export::export;
use super::failure::Failure;
use super::sessions;
use crate::graph::report::Losses;
use crate::output::note;

/// What is shown, and how.
#[derive(Default)]
pub(crate) struct Show {
    /// What `grebe top` calls it.
    pub(crate) command: &'static str,
    /// The source as the person named it.
    pub(crate) name: String,
    /// Whether the frames are stamped with this machine's clock.
    pub(crate) is_same_boot: bool,
    pub(crate) span_s: Option<f64>,
    pub(crate) theme: Option<ThemeChoice>,
    pub(crate) spectrum: bool,
    pub(crate) channels: Vec<ChannelSetup>,
    pub(crate) trigger: TriggerOptions,
    /// Where the settings are kept.
    pub(crate) session: Option<PathBuf>,
    /// Whether a session that cannot be read is an error.
    pub(crate) is_session_required: bool,
    /// How long a file is, in samples per channel.
    pub(crate) file_samples: Option<u64>,
    /// Why the source failed, once it has.
    pub(crate) failure: Failure,
    /// The last error of its generator.
    pub(crate) generator_said: Failure,
    /// The controls of its generator, until the scope takes them.
    pub(crate) generator: Mutex<Option<GeneratorRemote>>,
}

/// A source with its scope.
pub(crate) struct Shown {
    pub(crate) running: Running,
    pub(crate) link: ScopeLink,
    pub(crate) show: Show,
}

impl Show {
    /// Reads a session that was asked for, so that an error is said before anything is opened.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.session {
            Some(path) if self.is_session_required => sessions::read(path).map(drop),
            _ => Ok(()),
        }
    }
}

impl Shown {
    /// What the scope is told.
    pub(crate) fn options(&self) -> ViewOptions {
        let Show { name, is_same_boot, file_samples, failure, .. } = &self.show;
        let observe = self.running.observer();
        let (name, is_same_boot, file_samples) = (name.clone(), *is_same_boot, *file_samples);
        let (failure, said) = (failure.clone(), self.show.generator_said.clone());
        let mut options = ViewOptions::new(move || {
            let snapshot = observe();
            let mut status = status(&snapshot, &name, is_same_boot);
            status.notice =
                failure.get().or_else(|| said.get()).or_else(|| reading(&snapshot, file_samples?));
            status
        });
        options.span = self.show.span_s;
        options.theme = self.show.theme;
        options.spectrum = self.show.spectrum;
        options.channels = self.show.channels.clone();
        options.trigger = self.show.trigger;
        options.export = Some(Box::new(export));
        options.generator = self.show.generator.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = &self.show.session {
            // A session that was asked for was checked before. Without another one, the scope begins afresh.
            options.session = sessions::read(path).unwrap_or_else(|error| {
                note!("grebe: {error:#}: beginning afresh");
                None
            });
            let path = path.clone();
            options.keep_session = Some(Box::new(move |session| {
                if let Err(error) = sessions::write(&path, session) {
                    note!("grebe: {error:#}");
                }
            }));
        }
        options
    }
}

/// How much of a file was read, until all of it was.
fn reading(snapshot: &Snapshot, samples: u64) -> Option<String> {
    let read = snapshot.stage("source")?.samples_out;
    (read < samples).then(|| format!("reading the file: {} %", read * 100 / samples.max(1)))
}

fn status(snapshot: &Snapshot, name: &str, is_same_boot: bool) -> SourceStatus {
    let losses = Losses::of(snapshot);
    let has_arrivals = snapshot.stages.iter().any(|stage| stage.own("lost_frames").is_some());
    let queue = snapshot.queues.iter().fold(Loss::default(), |sum, queue| Loss {
        frames: sum.frames + queue.dropped_frames,
        samples: sum.samples + queue.dropped_samples,
    });
    let missing =
        has_arrivals.then_some(Loss { frames: losses.network_frames, samples: losses.network_samples });
    let is_shared_memory = name.starts_with("shm://");
    SourceStatus {
        name: name.to_owned(),
        is_same_boot,
        network: missing.filter(|_| !is_shared_memory),
        shared_memory: missing.filter(|_| is_shared_memory),
        kernel_datagrams: losses.kernel_drops,
        queue: Some(queue),
        refused_datagrams: losses.refused_datagrams,
        notice: None,
    }
}
