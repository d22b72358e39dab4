//! Showing streams: in a window, in the terminal, or as a picture.

mod arriving;
mod export;
mod files;
mod finder;
mod keeper;
mod recording;
pub(crate) mod rings;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use grebe_flow::{
    Context, Counters, Graph, Inputs, Outputs, Ports, QueueOptions, Running, Snapshot, Stage, StageResult,
    telemetry::MetricsListener,
};
use grebe_stages::SecondSender;
use grebe_view::{
    ChannelSetup, Drawn, Error, Finder, GeneratorRemote, LaneMask, Loss, PngOptions, ReceiverRemote,
    Recording, RecordingScope, ScopeLink, ScopeStage, SourceMenu, SourceStatus, StretchKeeper, ThemeChoice,
    TriggerOptions, ViewOptions,
};

use crate::command::cp::Fetch;
use crate::ending::Ending;
use crate::graph::{self, About, WaitsFor, report::Losses, tell_wait};
use crate::interrupt;
use crate::output::{self, note};

pub(crate) use arriving::Incoming;
pub(crate) use files::session_of_source;
pub(crate) use finder::Held;
pub(crate) use keeper::Keeper;
pub(crate) use recording::{OnDisk, Progress};

/// Where the picture goes.
pub(crate) enum Surface {
    /// A window, or the terminal where there is no display.
    Window,
    Terminal,
    Png(PngOptions),
}

/// Shows the streams until the person ends it, or the picture is written, which is returned then by its parts; then stops the graphs.
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
        Surface::Png(png) => {
            let end = format!("the wait ends after {:?}", png.wait);
            let live = shown.iter().filter(|shown| shown.show.file_samples.is_none());
            let _waiting: Vec<_> = live
                .map(|Shown { running, show, .. }| {
                    let waits_for = WaitsFor { source: show.name.clone(), end: end.clone() };
                    tell_wait(waits_for, running.observer(), |words| note!("{words}"))
                })
                .collect();
            let write = |bytes: &[u8]| output::file(&png.path, bytes);
            grebe_view::render_pngs(scopes(&shown), png, write).map(|pictures| drawn = pictures)
        }
        Surface::Terminal => terminal(&shown),
        Surface::Window => window(&shown),
    };
    drop(insisting);
    for shown in shown {
        shown.show.keeper.iter().for_each(Keeper::finish);
        // The stream's own error explains a scope that got nothing.
        shown.running.stop().context("the stream failed")?;
        if let Some(opener) = &shown.show.opener {
            opener.stop()?;
        }
    }
    match ended {
        _ if interrupt::is_pending() => Ok((Ending::Interrupted, drawn)),
        Err(Error::Interrupted) => Ok((Ending::Interrupted, drawn)),
        Ok(()) => Ok((Ending::Good, drawn)),
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
    in_terminal(shown, "this grebe was built without its window")
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
    pub(crate) waterfall: bool,
    pub(crate) channels: Vec<ChannelSetup>,
    pub(crate) xy: bool,
    pub(crate) symbol_rate_hz: Option<f64>,
    pub(crate) band_hz: Option<(f64, f64)>,
    /// The channels and parts that are shown; `None`: as the session says, else all, and of complex ones I and Q.
    pub(crate) lanes: Option<LaneMask>,
    pub(crate) trigger: TriggerOptions,
    /// Where the settings are kept.
    pub(crate) session: Option<PathBuf>,
    /// Whether a session that cannot be read is an error.
    pub(crate) is_session_required: bool,
    /// How long a file is, in samples per channel.
    pub(crate) file_samples: Option<u64>,
    /// Why the source failed, once it has.
    pub(crate) failure: Failure,
    /// How much is known of a recording that is looked at where it lies.
    pub(crate) progress: Progress,
    /// Keeps stretches of it, where a ring records it.
    pub(crate) keeper: Option<Keeper>,
    /// Searches all that is held of it, where something can.
    pub(crate) finder: Option<Finder>,
    /// Who keeps stretches where it is somewhere else, until the scope takes that.
    pub(crate) far_keeper: Mutex<Option<StretchKeeper>>,
    /// Opens files in place of it.
    pub(crate) opener: Option<Arc<Opener>>,
    /// The other sources that are served where it is, until the scope takes them.
    pub(crate) sources: Mutex<Option<SourceMenu>>,
    /// The links of those that took its place.
    pub(crate) followers: Followers,
    /// Who else sends to the port.
    pub(crate) second_sender: Option<SecondSender>,
    /// How to send something there, while nothing came.
    pub(crate) advice: Option<String>,
    /// What is known of it where it is somewhere else, until the scope takes that.
    pub(crate) far: Mutex<Option<FarStatus>>,
    /// The last error of its generator.
    pub(crate) generator_said: Failure,
    /// Whether it is still being copied.
    pub(crate) is_incoming: bool,
    /// Brings it from another machine, as long as it is shown.
    pub(crate) fetch: Option<Fetch>,
    /// The controls of its generator, until the scope takes them.
    pub(crate) generator: Mutex<Option<GeneratorRemote>>,
    /// The same of its receiver.
    pub(crate) receiver: Mutex<Option<ReceiverRemote>>,
}

/// Links of what took the place of a source since; clones share them.
pub(crate) type Followers = Arc<Mutex<Vec<ScopeLink>>>;

/// What a scope asks where its source is somewhere else.
pub(crate) type FarStatus = Box<dyn Fn() -> SourceStatus + Send>;

/// A source with its scope.
pub(crate) struct Shown {
    pub(crate) running: Stoppable,
    pub(crate) link: ScopeLink,
    pub(crate) show: Show,
}

impl Show {
    /// Reads a session that was asked for, so that an error is said before anything is opened.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.session {
            Some(path) if self.is_session_required => files::read_session(path).map(drop),
            _ => Ok(()),
        }
    }
}

impl Shown {
    /// What is known of the source, whenever it is asked.
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
        let told = Mutex::new(Told { notes: self.running.notes(), last: None });
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

    /// What the scope is told.
    pub(crate) fn options(&self) -> ViewOptions {
        let (opener, first) = (self.show.opener.clone(), self.running.clone());
        let mut options = ViewOptions::new(self.status());
        options.span = self.show.span_s;
        options.theme = self.show.theme;
        options.spectrum = self.show.spectrum;
        options.waterfall = self.show.waterfall;
        options.channels = self.show.channels.clone();
        options.lanes = self.show.lanes;
        options.xy = self.show.xy;
        options.symbol_rate_hz = self.show.symbol_rate_hz;
        options.band_hz = self.show.band_hz;
        options.trigger = self.show.trigger;
        options.export = Some(Box::new(export::export));
        let far_keeper = self.show.far_keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.keeper = self.show.keeper.as_ref().map(Keeper::for_scope).or(far_keeper);
        options.finder.clone_from(&self.show.finder);
        if let Some(opener) = opener {
            options.open = Some(Box::new(move |path| opener.open(path, &first)));
        }
        options.generator = self.show.generator.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.sources = self.show.sources.lock().unwrap_or_else(PoisonError::into_inner).take();
        options.receiver = self.show.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = &self.show.session {
            // A session that was asked for was checked before. Without another one, the scope begins afresh.
            options.session = files::read_session(path).unwrap_or_else(|error| {
                note!("grebe: {error:#}: beginning afresh");
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

/// A graph that runs until somebody stops it, who may be one of several. Clones share it.
#[derive(Clone)]
pub(crate) struct Stoppable(Arc<Mutex<Option<Running>>>);

impl Stoppable {
    pub(crate) fn new(running: Running) -> Self {
        Self(Arc::new(Mutex::new(Some(running))))
    }

    /// Nothing that runs here.
    pub(crate) fn nothing() -> Self {
        Self(Arc::default())
    }

    /// Stops it, if nobody has; its own error.
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

    /// What its stages tell a person, since it was asked last.
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

/// What the stages of a graph told last, as long as a person should see it.
struct Told {
    notes: Notes,
    /// With when it was told, and how many samples the source had given then.
    last: Option<(String, Instant, u64)>,
}

impl Told {
    /// What is to be seen now: a source that waits for its device says so until its samples come again, and a while longer.
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

/// Opens files in place of what a scope shows.
pub(crate) struct Opener {
    open: Box<OpenFile>,
    /// What was opened so far; the last one is shown.
    opened: Mutex<Vec<Shown>>,
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path) -> Result<Shown> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { open: Box::new(open), opened: Mutex::default() })
    }

    /// Opens a file, and stops what it replaces: `first`, or the file before.
    fn open(&self, path: &Path, first: &Stoppable) -> Result<(ScopeLink, ViewOptions), String> {
        let shown = (self.open)(path).map_err(|error| format!("{error:#}"))?;
        let (link, options) = (shown.link.clone(), shown.options());
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let before = opened.last().map_or(first, |shown| &shown.running).clone();
        // The person does not wait for it; an error of what is no longer shown is of no use.
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
        foreign_datagrams: losses.foreign_datagrams,
        ..SourceStatus::default()
    }
}

/// A source that leads to a scope.
pub(crate) struct Scope {
    pub(crate) graph: Graph,
    pub(crate) link: ScopeLink,
    /// Why the source failed, once it has.
    pub(crate) failure: Failure,
}

impl Scope {
    /// One of so many scopes, which share the memory for their history. `queue` says what happens where it is too slow.
    pub(crate) fn new(source: Box<dyn Stage>, queue: fn(usize) -> QueueOptions, scopes: usize) -> Self {
        Self::with_history(source, queue, HISTORY_BYTES / scopes)
    }

    /// One whose history takes so many bytes.
    pub(crate) fn with_history(
        source: Box<dyn Stage>,
        queue: fn(usize) -> QueueOptions,
        history_bytes: usize,
    ) -> Self {
        let failure = Failure::default();
        let (scope, link) = ScopeStage::new(history_bytes);
        let mut graph = Graph::new();
        let source = graph.add("source", failure.watch(source));
        let scope = graph.add("scope", scope);
        graph.connect(source, scope, queue(QUEUE_BATCHES));
        Self { graph, link, failure }
    }

    /// One of a recording, which is read where a picture needs it.
    pub(crate) fn of_recording(recording: impl Recording + 'static) -> Result<Self> {
        let (scope, link) = RecordingScope::new(Box::new(recording))?;
        let mut graph = Graph::new();
        graph.add("scope", scope);
        Ok(Self { graph, link, failure: Failure::default() })
    }
}

/// The history that all scopes of a command keep together.
const HISTORY_BYTES: usize = 512 << 20;
/// 16 MiB of frames: what a scope may be late by before it loses any.
const QUEUE_BATCHES: usize = 256;

/// The last error of a stage or a generator, if there was one. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    pub(crate) fn set(&self, message: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stage; its error is kept here too.
    fn watch(&self, stage: Box<dyn Stage>) -> impl Stage + 'static {
        Watched { stage, failure: self.clone() }
    }
}

struct Watched {
    stage: Box<dyn Stage>,
    failure: Failure,
}

impl Stage for Watched {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let outcome = self.stage.process(input, output, ctx);
        if let Err(error) = &outcome {
            self.failure.set(error.to_string());
        }
        outcome
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.stage.finish(output, ctx)
    }

    fn counters(&self) -> Option<Counters> {
        self.stage.counters()
    }

    fn ports(&self) -> Ports {
        self.stage.ports()
    }
}
