//! Which face shows a stream, and what it is told of the source.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use grebe_flow::{
    Context, Counters, Inputs, Outcome, Outputs, Ports, Running, Snapshot, Stage, StageError, telemetry,
};
use grebe_stages::{SigmfSettings, SigmfWriter, StagesError};
use grebe_view::{
    ChannelSetup, Extract, GeneratorRemote, Loss, Picture, PngOptions, ScopeLink, SourceStatus, ThemeChoice,
    TriggerOptions, ViewError, ViewOptions,
};

use crate::command::Ending;
use crate::interrupt;
use crate::report::Losses;
use crate::sessions;

/// Where the picture goes.
pub enum Face {
    /// A window, or the terminal where there is no display.
    Window,
    Terminal,
    Png(PngOptions),
}

/// What is shown, and how.
pub struct Show {
    /// What `grebe top` calls it.
    pub command: &'static str,
    /// The source as the person named it.
    pub name: String,
    /// Whether the frames are stamped with this machine's clock.
    pub is_same_boot: bool,
    pub span_s: Option<f64>,
    pub theme: Option<ThemeChoice>,
    pub spectrum: bool,
    pub channels: Vec<ChannelSetup>,
    pub trigger: TriggerOptions,
    /// Where the settings are kept.
    pub session: Option<PathBuf>,
    /// Whether a session that cannot be read is an error.
    pub is_session_required: bool,
    /// How long a file is, in samples a channel.
    pub file_samples: Option<u64>,
    /// Why the source failed, once it has.
    pub failure: Failure,
    /// What its generator said of what went wrong.
    pub generator_said: Failure,
    /// What tells the generator what to make; taken by the face.
    pub generator: Mutex<Option<GeneratorRemote>>,
}

/// A source with its scope.
pub struct Shown {
    pub running: Running,
    pub link: ScopeLink,
    pub show: Show,
}

/// What ended a source, to be shown while the window is still open.
pub type Failure = Arc<Mutex<Option<String>>>;

impl Show {
    /// # Errors
    /// Where a session that was asked for cannot be read: to be said before anything is opened.
    pub fn check(&self) -> Result<()> {
        match &self.session {
            Some(path) if self.is_session_required => sessions::read(path).map(drop),
            _ => Ok(()),
        }
    }
}

/// Shows the streams until the person ends it, or the picture is written; then stops the graphs.
pub fn show(face: &Face, shown: Vec<Shown>) -> Result<(Ending, Option<Picture>)> {
    interrupt::catch();
    // A graph that cannot be watched is shown all the same.
    let _published: Vec<_> =
        shown.iter().map(|shown| telemetry::publish(&shown.running, shown.show.command).ok()).collect();
    let links: Vec<ScopeLink> = shown.iter().map(|shown| shown.link.clone()).collect();
    interrupt::then(move || links.iter().for_each(ScopeLink::close));
    let insisting = interrupt::insist();
    let mut picture = None;
    let ended = match (face, shown.as_slice()) {
        (Face::Png(png), [only, ..]) => {
            grebe_view::render_png(&only.link, only.options(), png).map(|drawn| {
                eprintln!("wrote {}", png.path.display());
                picture = Some(drawn);
            })
        }
        (Face::Terminal, [only, ..]) => grebe_view::run_terminal(only.link.clone(), only.options()),
        _ => window(&shown),
    };
    drop(insisting);
    for Shown { running, .. } in shown {
        // The stream's own error explains a face that got nothing.
        running.stop().context("the stream failed")?;
    }
    match ended {
        _ if interrupt::is_pending() => Ok((Ending::Interrupted, picture)),
        Err(ViewError::Interrupted) => Ok((Ending::Interrupted, picture)),
        Ok(()) => Ok((Ending::Good, picture)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(feature = "window")]
fn window(shown: &[Shown]) -> Result<(), ViewError> {
    let scopes = shown.iter().map(|shown| (shown.link.clone(), shown.options())).collect();
    match grebe_view::run_windows(scopes) {
        Err(ViewError::NoDisplay { why }) => in_terminal(shown, &why),
        Err(ViewError::DeviceLost { why }) => {
            in_terminal(shown, &format!("the graphics device was lost: {why}"))
        }
        ended => ended,
    }
}

#[cfg(not(feature = "window"))]
fn window(shown: &[Shown]) -> Result<(), ViewError> {
    in_terminal(shown, "this grebe was built without its window")
}

fn in_terminal(shown: &[Shown], why: &str) -> Result<(), ViewError> {
    let Some(first) = shown.first() else { return Ok(()) };
    let others = if shown.len() > 1 { format!(", {} alone", first.show.name) } else { String::new() };
    eprintln!("grebe: no window ({why}): showing the stream in the terminal{others}");
    grebe_view::run_terminal(first.link.clone(), first.options())
}

impl Shown {
    /// What a face is told.
    pub fn options(&self) -> ViewOptions {
        let Show { name, is_same_boot, file_samples, failure, .. } = &self.show;
        let observe = self.running.observer();
        let (name, is_same_boot, file_samples) = (name.clone(), *is_same_boot, *file_samples);
        let (failure, said) = (failure.clone(), self.show.generator_said.clone());
        let mut options = ViewOptions::new(move || {
            let snapshot = observe();
            let mut status = status(&snapshot, &name, is_same_boot);
            let failed = failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let failed = failed.or_else(|| said.lock().unwrap_or_else(PoisonError::into_inner).clone());
            status.notice = failed.or_else(|| reading(&snapshot, file_samples?));
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
            // One that was asked for was read once before; another is not worth an end.
            options.session = sessions::read(path).unwrap_or_else(|error| {
                eprintln!("grebe: {error:#}: beginning afresh");
                None
            });
            let path = path.clone();
            options.keep_session = Some(Box::new(move |session| {
                if let Err(error) = sessions::write(&path, session) {
                    eprintln!("grebe: {error:#}");
                }
            }));
        }
        options
    }
}

/// How far a file was read, until all of it was.
fn reading(snapshot: &Snapshot, samples: u64) -> Option<String> {
    let read = snapshot.stage("source")?.samples_out;
    (read < samples).then(|| format!("reading the file: {} %", read * 100 / samples.max(1)))
}

/// The visible samples as a recording, with the triggers as labels.
fn export(path: &Path, extract: &Extract) -> Result<PathBuf, String> {
    let write = || -> Result<PathBuf, StagesError> {
        let settings = SigmfSettings {
            channels: extract.runs.first().map_or(1, |run| run.channels.len()),
            sample_rate_hz: extract.rate_hz,
            description: Some("Saved from a scope".into()),
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(path, &settings)?;
        for run in &extract.runs {
            let channels: Vec<&[i16]> = run.channels.iter().map(Vec::as_slice).collect();
            writer.write(run.first_sample_index, &channels)?;
        }
        for &at in &extract.triggers {
            writer.annotate(at.max(0.0) as u64, 1, "trigger")?;
        }
        let files = writer.finish()?.files;
        Ok(files.into_iter().next().unwrap_or_else(|| path.into()))
    };
    write().map_err(|error| error.to_string())
}

/// A stage that leaves a word of what it fails of, and that word.
pub fn told(stage: Box<dyn Stage>) -> (Box<dyn Stage>, Failure) {
    let failure = Failure::default();
    (Box::new(Told { stage, failure: failure.clone() }), failure)
}

struct Told {
    stage: Box<dyn Stage>,
    failure: Failure,
}

impl Stage for Told {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let outcome = self.stage.process(input, output, ctx);
        if let Err(error) = &outcome {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        outcome
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> Result<(), StageError> {
        self.stage.finish(output, ctx)
    }

    fn counters(&self) -> Option<Counters> {
        self.stage.counters()
    }

    fn ports(&self) -> Ports {
        self.stage.ports()
    }
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

#[cfg(test)]
mod tests {
    use grebe_stages::SampleFile;
    use grebe_view::ExtractRun;

    use super::*;

    #[test]
    fn what_is_exported_reads_back_with_its_gaps_and_triggers() {
        let folder = tempfile::tempdir().unwrap();
        let run = |first_sample_index: u64, length: i16| ExtractRun {
            first_sample_index,
            channels: vec![(0..length).map(|n| n * 3 + first_sample_index as i16).collect()],
        };
        let extract = Extract {
            rate_hz: 360.0,
            range: 1000..2000,
            runs: vec![run(1000, 400), run(1600, 400)],
            triggers: vec![1010.5, 1700.0],
        };
        let path = export(&folder.path().join("seen.sigmf-meta"), &extract).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.sample_rate_hz(), file.channels(), file.len_samples()), (360.0, 1, 800));
        let segments: Vec<_> =
            file.segments().iter().map(|it| (it.position, it.first_sample_index)).collect();
        assert_eq!(segments, [(0, 1000), (400, 1600)]);
        let block = file.block(0, 800).unwrap();
        let samples = block.channel(0).to_vec();
        assert_eq!(samples, [run(1000, 400).channels.concat(), run(1600, 400).channels.concat()].concat());
        let meta = std::fs::read_to_string(&path).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        let annotations = meta["annotations"].as_array().unwrap();
        let places: Vec<_> = annotations.iter().map(|it| it["core:sample_start"].as_u64().unwrap()).collect();
        assert_eq!(places, [10, 500], "places in the file: the gap is not in it");
        assert!(annotations.iter().all(|it| it["core:label"] == "trigger"), "{annotations:?}");
    }
}
