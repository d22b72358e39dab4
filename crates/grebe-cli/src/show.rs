//! Shows streams in a window, in the terminal or as a picture.

mod annotator;
mod box_sound;
mod export;
mod failure;
mod files;
mod finder;
mod follower;
mod held;
mod incoming;
mod listener;
mod opening;
mod recording;
mod ring;
mod ring_saver;
pub(crate) mod rings;
mod speaker;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use grebe_flow::{Running, Snapshot, telemetry::MetricsListener};
use grebe_stages::SecondSender;
use grebe_view::{
    Annotator, Drawn, Error, Finder, GeneratorRemote, InitialView, Listener, Loss, PngOptions,
    ReceiverRemote, ScopeLink, SourceMenu, SourceStatus, StreamInfo, StretchKeeper, ViewOptions,
};

use self::annotator::annotator_of;
use crate::command::cp::Fetch;
use crate::ending::{Ending, Usage};
use crate::graph::{self, About, WaitsFor, report::Losses, report_wait};
use crate::interrupt;
use crate::output::{self, note};

pub(crate) use failure::Failure;
pub(crate) use files::session_of_source;
pub(crate) use held::Held;
pub(crate) use incoming::Incoming;
pub(crate) use recording::{HISTORY_BYTES, Progress};
pub(crate) use ring_saver::RingSaver;
pub(crate) use stored::{Stored, newest_of_folder};

/// Output of the scope.
pub(crate) enum Surface {
    /// Window, or the terminal without a display.
    Window,
    Terminal,
    Png(PngOptions, Check),
}

/// Checks the streams of a picture before it is drawn; the error is one line for a person.
pub(crate) type Check = Box<dyn Fn(&[StreamInfo]) -> Result<(), String>>;

/// Shows the streams until the user quits, or the picture is drawn, and stops the graphs. Returns the parts of the
/// picture.
pub(crate) fn run(
    surface: &Surface,
    shown: Vec<Shown>,
    metrics: Option<MetricsListener>,
) -> Result<(Ending, Vec<Drawn>)> {
    interrupt::catch();
    let _published: Vec<_> = shown.iter().map(|shown| shown.running.publish(shown.show.command)).collect();
    let served = metrics.map(|listener| {
        listener.serve((1..).zip(&shown).map(|(number, shown)| {
            let command = shown.show.command;
            let name = if number == 1 { command.to_owned() } else { format!("{command}-{number}") };
            (name, shown.running.observer())
        }))
    });
    let _served = served.transpose()?;
    let links: Vec<(ScopeLink, Option<Arc<Opener>>, Followers)> = shown
        .iter()
        .map(|Shown { link, show, .. }| (link.clone(), show.opener.clone(), show.followers.clone()))
        .collect();
    let _closing = interrupt::then(move || {
        for (link, opener, followers) in &links {
            link.close();
            opener.iter().for_each(|opener| opener.close());
            followers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(ScopeLink::close);
        }
    });
    let insisting = interrupt::insist();
    let mut drawn = Vec::new();
    let ended = match surface {
        Surface::Png(png, check) => {
            let end = format!("the wait ends after {:?}", png.wait);
            let live = shown.iter().filter(|shown| shown.show.file_samples.is_none());
            let _waiting: Vec<_> = live
                .map(|Shown { running, show, .. }| {
                    let waits_for = WaitsFor { source: show.name.clone(), end: end.clone() };
                    report_wait(waits_for, running.observer(), |words| note!("{words}"))
                })
                .collect();
            let write = |bytes: &[u8]| output::file(&png.path, bytes);
            grebe_view::render_pngs(scopes(&shown), png, check, write).map(|pictures| drawn = pictures)
        }
        Surface::Terminal => terminal(&shown),
        Surface::Window => window(&shown),
    };
    drop(insisting);
    for shown in shown {
        shown.show.keeper.iter().for_each(RingSaver::finish);
        // The stream's own error explains an empty scope.
        shown.running.stop().context("the stream failed")?;
        if let Some(opener) = &shown.show.opener {
            opener.stop()?;
        }
    }
    match ended {
        _ if interrupt::is_pending() => Ok((Ending::Interrupted, drawn)),
        Err(Error::Interrupted) => Ok((Ending::Interrupted, drawn)),
        Ok(()) => Ok((Ending::Good, drawn)),
        Err(error @ Error::Terminal { .. }) => {
            let instead = "cannot show a scope here (--png FILE draws a picture instead)";
            Err(anyhow::Error::from(error).context(instead))
        }
        Err(Error::Refused { why }) => Err(Usage(why).into()),
        Err(error) => Err(error.into()),
    }
}

fn scopes(shown: &[Shown]) -> Vec<(ScopeLink, ViewOptions)> {
    shown.iter().map(|shown| (shown.link.clone(), shown.options())).collect()
}

#[cfg(feature = "window")]
fn window(shown: &[Shown]) -> Result<(), Error> {
    match grebe_view::run_windows(scopes(shown)) {
        Err(Error::NoDisplay { why }) => in_terminal(shown, &why),
        Err(Error::DeviceLost { why }) => in_terminal(shown, &format!("the graphics device was lost: {why}")),
        ended => ended,
    }
}

#[cfg(not(feature = "window"))]
fn window(shown: &[Shown]) -> Result<(), Error> {
    in_terminal(shown, "this grebe was built without the window")
}

fn in_terminal(shown: &[Shown], why: &str) -> Result<(), Error> {
    let what = if shown.len() > 1 { "the streams" } else { "the stream" };
    note!("grebe: no window ({why}): showing {what} in the terminal");
    terminal(shown)
}

fn terminal(shown: &[Shown]) -> Result<(), Error> {
    interrupt::end_with_terminal();
    grebe_view::run_terminals(scopes(shown))
}

/// Settings of a scope.
#[derive(Default)]
pub(crate) struct Show {
    /// Name in `grebe top`.
    pub(crate) command: &'static str,
    /// Source as the user named it.
    pub(crate) name: String,
    /// Whether frames have time stamps of this machine's clock.
    pub(crate) is_same_boot: bool,
    /// View to begin with.
    pub(crate) initial: InitialView,
    /// Settings file.
    pub(crate) session: Option<PathBuf>,
    /// Whether an unreadable settings file is an error.
    pub(crate) is_session_required: bool,
    /// Length of a file in samples per channel.
    pub(crate) file_samples: Option<u64>,
    /// Failure of the source.
    pub(crate) failure: Failure,
    /// Progress of reading a recording.
    pub(crate) progress: Progress,
    /// Saves ranges of the ring that records the stream.
    pub(crate) keeper: Option<RingSaver>,
    /// Search of all available samples.
    pub(crate) finder: Option<Finder>,
    /// Sound of boxes.
    pub(crate) listener: Option<Listener>,
    /// Saves ranges at a remote source, until the scope takes it.
    pub(crate) remote_keeper: Mutex<Option<StretchKeeper>>,
    /// The recording that is shown, and takes annotations.
    pub(crate) recording: Option<PathBuf>,
    /// Takes changes to annotations at a remote source, until the scope takes it.
    pub(crate) remote_annotator: Mutex<Option<Annotator>>,
    /// Opens files in place of the source.
    pub(crate) opener: Option<Arc<Opener>>,
    /// Other sources of a remote server, until the scope takes them.
    pub(crate) sources: Mutex<Option<SourceMenu>>,
    /// Links of sources that replaced this one.
    pub(crate) followers: Followers,
    /// Detection of a second sender.
    pub(crate) second_sender: Option<SecondSender>,
    /// How to send a stream to a silent source.
    pub(crate) advice: Option<String>,
    /// Status of a remote source, until the scope takes it.
    pub(crate) far: Mutex<Option<StatusQuery>>,
    /// Last error of its generator.
    pub(crate) generator_said: Failure,
    /// Whether it is still being copied.
    pub(crate) is_incoming: bool,
    /// Fetches it from another machine while it is shown.
    pub(crate) fetch: Option<Fetch>,
    /// Controls of its generator, until the scope takes them.
    pub(crate) generator: Mutex<Option<GeneratorRemote>>,
    /// Controls of its receiver.
    pub(crate) receiver: Mutex<Option<ReceiverRemote>>,
}

/// Links of sources that replaced another; clones share them.
pub(crate) type Followers = Arc<Mutex<Vec<ScopeLink>>>;

/// Query for the status of a remote source.
pub(crate) type StatusQuery = Box<dyn Fn() -> SourceStatus + Send>;

/// Source with its scope.
pub(crate) struct Shown {
    pub(crate) running: Stoppable,
    pub(crate) link: ScopeLink,
    pub(crate) show: Show,
}

impl Shown {
    /// Query for the status of the source.
    pub(crate) fn status(&self) -> Box<dyn Fn() -> SourceStatus + Send> {
        if let Some(far) = self.show.far.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return far;
        }
        let Show { name, is_same_boot, file_samples, failure, .. } = &self.show;
        let observe = self.running.observer();
        let (name, is_same_boot, file_samples) = (name.clone(), *is_same_boot, *file_samples);
        let (second_sender, advice) = (self.show.second_sender.clone(), self.show.advice.clone());
        let (failure, said) = (failure.clone(), self.show.generator_said.clone());
        let progress = self.show.progress.clone();
        let told = Mutex::new(LastNote { notes: self.running.notes(), last: None });
        Box::new(move || {
            let snapshot = observe();
            let mut status = status(&snapshot, &name, is_same_boot);
            status.is_recording = file_samples.is_some();
            status.is_being_recorded = progress.is_being_recorded();
            status.second_sender = second_sender.as_ref().and_then(SecondSender::address);
            status.advice.clone_from(&advice);
            let told = told.lock().unwrap_or_else(PoisonError::into_inner).look(&snapshot);
            let notice = failure.get().or_else(|| said.get()).or(told).or_else(|| progress.get());
            status.notice = notice.or_else(|| reading(&snapshot, file_samples?));
            status
        })
    }

    /// Takes changes to its annotations.
    pub(crate) fn annotator(&self) -> Annotator {
        annotator_of(&self.link, self.show.recording.clone())
    }

    /// Options of the scope.
    pub(crate) fn options(&self) -> ViewOptions {
        let (opener, first) = (self.show.opener.clone(), self.running.clone());
        let mut options = ViewOptions::new(self.status());
        options.initial.clone_from(&self.show.initial);
        let name = self.show.name.clone();
        options.export =
            Some(Box::new(move |path, extract, band| export::export(&name, path, extract, band)));
        let remote_keeper = self.show.remote_keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.keeper = self.show.keeper.as_ref().map(RingSaver::for_scope).or(remote_keeper);
        let remote_annotator =
            self.show.remote_annotator.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.annotator = remote_annotator.or_else(|| Some(self.annotator()));
        options.finder.clone_from(&self.show.finder);
        options.listener.clone_from(&self.show.listener);
        options.hear = Some(Box::new(|sound| Some(speaker::repeat(sound))));
        if self.show.listener.as_ref().is_some_and(Listener::has_live) {
            let link = self.link.clone();
            options.hear_live = Some(Box::new(move |heard| Some(speaker::play_live(&link, &heard))));
        }
        if let Some(opener) = opener {
            options.open = Some(Box::new(move |path| opener.open(path, &first)));
        }
        options.generator = self.show.generator.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.sources = self.show.sources.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.receiver = self.show.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = &self.show.session {
            // Required files were checked before. Others fall back to defaults.
            options.session = files::read_session(path).unwrap_or_else(|error| {
                note!("grebe: {error:#}: using defaults");
                None
            });
            let path = path.clone();
            options.keep_session = Some(Box::new(move |session| {
                if let Err(error) = files::write_session(&path, session) {
                    note!("grebe: {error:#}");
                }
            }));
        }
        options
    }
}

/// Graph that one of several owners stops. Clones share it.
#[derive(Clone)]
pub(crate) struct Stoppable(Arc<Mutex<Option<Running>>>);

impl Stoppable {
    pub(crate) fn new(running: Running) -> Self {
        Self(Arc::new(Mutex::new(Some(running))))
    }

    /// Without a graph.
    pub(crate) fn nothing() -> Self {
        Self(Arc::default())
    }

    /// Stops it unless stopped; returns its error.
    pub(crate) fn stop(&self) -> Result<()> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.map_or(Ok(()), |running| Ok(running.stop().map(drop)?))
    }

    pub(crate) fn observer(&self) -> Box<dyn Fn() -> Snapshot + Send + Sync> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(running) => Box::new(running.observer()),
            None => Box::new(Snapshot::default),
        }
    }

    /// New notes of its stages.
    pub(crate) fn notes(&self) -> Notes {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(running) => Box::new(running.notes()),
            None => Box::new(Vec::new),
        }
    }

    pub(crate) fn publish(&self, command: &str) -> Option<graph::Published> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(graph::publish(running.as_ref()?, command, About::new()))
    }
}

type Notes = Box<dyn FnMut() -> Vec<String> + Send>;

/// Last note of a graph, while it should be visible.
struct LastNote {
    notes: Notes,
    /// With its time, and the samples of the source at that time.
    last: Option<(String, Instant, u64)>,
}

impl LastNote {
    /// The visible note: a waiting source keeps its note until samples arrive, and a while longer.
    fn look(&mut self, snapshot: &Snapshot) -> Option<String> {
        let samples = snapshot.stage("source").map_or(0, |source| source.samples_out);
        if let Some(words) = (self.notes)().pop() {
            self.last = Some((words, Instant::now(), samples));
        }
        let (words, at, told_samples) = self.last.as_mut()?;
        if samples == *told_samples {
            *at = Instant::now();
        }
        (at.elapsed() < SHOWN_FOR).then(|| words.clone())
    }
}

const SHOWN_FOR: Duration = Duration::from_secs(5);

type OpenFile = dyn Fn(&Path) -> Result<Shown> + Send + Sync;

/// Opens files in place of the shown one.
pub(crate) struct Opener {
    open: Box<OpenFile>,
    /// Opened files; the last one is shown.
    opened: Mutex<Vec<Shown>>,
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path) -> Result<Shown> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { open: Box::new(open), opened: Mutex::default() })
    }

    /// Opens a file, and stops the previous one: `first`, or the file before.
    fn open(&self, path: &Path, first: &Stoppable) -> Result<(ScopeLink, ViewOptions), String> {
        let shown = (self.open)(path).map_err(|error| format!("{error:#}"))?;
        let (link, options) = (shown.link.clone(), shown.options());
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let before = opened.last().map_or(first, |shown| &shown.running).clone();
        // In the background; errors of a replaced source do not matter.
        std::thread::spawn(move || before.stop());
        opened.push(shown);
        Ok((link, options))
    }

    fn close(&self) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.iter().for_each(|shown| shown.link.close());
    }

    fn stop(&self) -> Result<()> {
        let opened = std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        opened.iter().try_for_each(|shown| shown.running.stop())
    }
}

/// Progress of reading a file, until it is complete.
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
        foreign_datagrams: losses.foreign_datagrams,
        ..SourceStatus::default()
    }
}
