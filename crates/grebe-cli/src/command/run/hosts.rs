//! A graph on several hosts, from its start to its end.
//!
//! ```text
//!  log in everywhere -> connect -> all build -> all start -> ... -> one ends, fails or goes away, or Ctrl-C
//!                                                                    -> sources end, the rest drains, all end -> close
//! ```
//!
//! Samples from one other host to a second one go through here.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::{Cut, CutEdge, GraphFile, Policy, Running, Snapshot, monotonic_ns};
use grebe_stages::link::{BadLink, Outbox, Route, Routes};

use super::far::{Far, Heard, State};
use super::lines::{ToHere, ToThere};
use super::links::Ends;
use crate::cli::{Run, printable};
use crate::command::cp::config::Config;
use crate::ending::{Elsewhere, Ending, one_line};
use crate::graph::{About, Progress, listen_for_metrics, publish_observed, report};
use crate::interrupt;
use crate::output::note;

/// Runs a graph that was cut.
pub(super) fn run(name: &str, file: &GraphFile, cut: Cut, options: &Run) -> Result<Ending> {
    interrupt::catch();
    let shown: Vec<String> = file.ends().map(|stage| shown_name(stage.host.as_deref(), &stage.id)).collect();
    let metrics = listen_for_metrics(options.metrics)?;
    let mut whole = match Whole::connect(name, cut, options) {
        Err(_) if interrupt::is_pending() => return Ok(Ending::Interrupted),
        connected => connected?,
    };
    whole.tell_ways();
    let observe = whole.start();
    let _published = publish_observed(observe.clone(), name, About::new());
    let _served = metrics.map(|listener| listener.serve([(name.to_owned(), observe.clone())])).transpose()?;
    let progress = Progress::of(shown.first().cloned().unwrap_or_default());
    whole.drive(&progress, &observe);
    progress.clear();
    let (snapshot, ending) = (observe(), whole.end());
    let error = ending.as_ref().err().map(one_line);
    report::print_graph(shown.iter().map(String::as_str), &snapshot, error, options.json)?;
    ending
}

/// All parts of a graph.
struct Whole {
    cut: Cut,
    here: Ends,
    far: Vec<Far>,
    heard: Receiver<(usize, Heard)>,
    /// Not yet started, and at work.
    graph: Option<grebe_flow::Graph>,
    running: Option<Running>,
    stopping: Option<Stopping>,
    /// Why it ends, or what was lost of it.
    failed: Option<anyhow::Error>,
    is_interrupted: bool,
}

/// Since when sources are ending, and when something last got on.
struct Stopping {
    began: Instant,
    moved: Instant,
    taken: u64,
    is_ending: bool,
}

impl Whole {
    /// Logs in everywhere, and opens everything.
    fn connect(name: &str, cut: Cut, options: &Run) -> Result<Self> {
        let config = if options.how.no_config { Config::default() } else { Config::of_user()? };
        let cancel = interrupt::cancel();
        let elsewhere = cut.parts.iter().enumerate().filter(|(_, part)| part.host.is_some());
        let far: Vec<Result<Far>> = thread::scope(|scope| {
            let config = &config;
            let start = |(at, part)| scope.spawn(move || Far::start(name, part, at, config, &options.how));
            let starting: Vec<_> = elsewhere.map(start).collect();
            let joined = starting.into_iter().map(|starting| starting.join());
            joined.map(|far| far.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let far = far.into_iter().collect::<Result<Vec<_>>>()?;
        let here = cut.here().map_or_else(|| Ok(Ends::default()), |part| Ends::of(&part.file))?;
        let (tells, heard) = mpsc::channel();
        let mut whole = Self {
            cut,
            here,
            far,
            heard,
            graph: None,
            running: None,
            stopping: None,
            failed: None,
            is_interrupted: false,
        };
        for at in 0..whole.far.len() {
            let routes = whole.routes(at);
            whole.far[at].connect(at, routes, &tells);
            whole.far[at].say(ToThere::Build);
        }
        whole.build(&cancel)?;
        Ok(whole)
    }

    /// Where what comes from a host goes.
    fn routes(&self, at: usize) -> Routes {
        let part = self.far[at].part;
        let mut routes = self.here.routes(|link| self.other_end(link, part).is_some());
        for (link, other) in
            (0..self.cut.links.len() as u16).filter_map(|link| Some((link, self.other_end(link, part)?)))
        {
            if let Some(outbox) = self.outbox(other) {
                routes.insert(link, Route::Relay(outbox));
            }
        }
        routes
    }

    /// The part at the other end of a link, if it has one of its ends in this part.
    fn other_end(&self, link: u16, part: usize) -> Option<usize> {
        let CutEdge { from, to, .. } = *self.cut.links.get(usize::from(link))?;
        if from == part { Some(to) } else { (to == part).then_some(from) }
    }

    /// What leads to a part on another host.
    fn outbox(&self, part: usize) -> Option<Arc<Outbox>> {
        self.far.iter().find(|far| far.part == part).map(|far| far.outbox.clone())
    }

    /// Opens the part here, and waits until the others are open.
    fn build(&mut self, cancel: &grebe_ring::Cancel) -> Result<()> {
        let own = self.cut.parts.iter().position(|part| part.host.is_none());
        let built = own.map(|own| {
            let outbox = |link| self.other_end(link, own).and_then(|other| self.outbox(other));
            self.here.build(&self.cut.parts[own].file, cancel, &mut |note| note!("{note}"), outbox)
        });
        let built = built.transpose().and_then(|graph| {
            self.graph = graph;
            while self.failed.is_none() && self.far.iter().any(|far| far.state == State::Opening) {
                if interrupt::is_pending() {
                    return Err(grebe_transfer::Error::Cancelled.into());
                }
                self.listen();
                if self.far.iter().any(|far| far.state == State::Ended) {
                    break;
                }
            }
            self.failed.take().map_or(Ok(()), Err)
        });
        if built.is_err() {
            self.far.iter().for_each(|far| far.say(ToThere::End));
            self.far.drain(..).for_each(Far::close);
        }
        built
    }

    /// Says which way the samples go, where that is worth a word.
    fn tell_ways(&self) {
        for far in &self.far {
            note!("{}: samples go over {}", far.name, far.way.name());
        }
    }

    /// Starts all; what they have counted together.
    fn start(&mut self) -> impl Fn() -> Snapshot + Clone + Send + Sync + use<> {
        // Those that receive are there before the first sample: the links hold it.
        self.far.iter().for_each(|far| far.say(ToThere::Start));
        match self.graph.take().map(grebe_flow::Graph::start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => self.fail(error.into()),
        }
        let own = self.running.as_ref().map(|running| Arc::new(running.observer()));
        let far: Vec<_> = self.far.iter().map(|far| (far.name.clone(), far.counts.clone())).collect();
        move || {
            let mut all = own.as_ref().map(|own| own()).unwrap_or_default();
            all.at_ns = monotonic_ns();
            for (host, counts) in &far {
                all.add_host(host, counts.lock().unwrap_or_else(PoisonError::into_inner).clone());
            }
            all
        }
    }

    /// To the end of all parts.
    fn drive(&mut self, progress: &Progress, observe: &impl Fn() -> Snapshot) {
        let mut notes = self.running.as_ref().map(Running::notes);
        while !self.is_over() {
            self.listen();
            notes.iter_mut().flat_map(|notes| notes()).for_each(|note| progress.say(&note));
            if let Some(error) = self.running.as_ref().and_then(Running::take_error) {
                self.fail(error.into());
            }
            for at in 0..self.far.len() {
                if !self.far[at].is_over() && self.far[at].is_gone() {
                    self.lose(at, None);
                }
            }
            if interrupt::is_pending() && !self.is_interrupted {
                self.is_interrupted = true;
                self.stop();
            }
            let counted = observe();
            match &self.stopping {
                Some(stopping) => progress.show_closing(&counted, stopping.began.elapsed()),
                None => progress.show(&counted),
            }
            self.end_what_stands_still(&counted);
        }
    }

    fn is_over(&self) -> bool {
        self.running.as_ref().is_none_or(Running::is_ended) && self.far.iter().all(Far::is_over)
    }

    /// Takes in what hosts say, for a moment.
    fn listen(&mut self) {
        match self.heard.recv_timeout(LOOK_EVERY) {
            Ok(heard) => self.hear(heard),
            Err(RecvTimeoutError::Timeout) => {}
            // Every reader has ended, which each has said.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
        while let Ok(heard) = self.heard.try_recv() {
            self.hear(heard);
        }
    }

    fn hear(&mut self, (at, heard): (usize, Heard)) {
        let far = &mut self.far[at];
        match heard {
            Heard::Said(ToHere::Note(note)) => note!("{}: {}", far.name, printable(note.as_bytes())),
            Heard::Said(ToHere::Built) => far.state = State::Built,
            Heard::Said(ToHere::Counts(counts)) => far.counted(counts),
            Heard::Said(ToHere::Ended { counts, failed }) => {
                far.counted(counts);
                far.state = State::Ended;
                if let Some(failed) = failed {
                    let what = format!("{}: {}", far.name, printable(failed.why.as_bytes()));
                    self.fail(Elsewhere { what, status: failed.status }.into());
                }
            }
            Heard::Closed(_) if far.is_over() => {}
            Heard::Closed(read) => {
                // That a connection broke says less than why the other end is gone.
                let broke = |error: &BadLink| !matches!(error, BadLink::Io(_) | BadLink::Cut);
                self.lose(at, read.err().filter(broke));
            }
        }
    }

    /// A host is gone without a word: its links end, and where one of them makes its producer wait, the graph does.
    fn lose(&mut self, at: usize, broke: Option<BadLink>) {
        let far = &mut self.far[at];
        let was_built = far.state == State::Built;
        far.state = State::Lost;
        far.outbox.close();
        let why = far.why_lost();
        let why = broke.map_or_else(|| one_line(&why), |broke| format!("{}: {broke}", one_line(&why)));
        let (part, name) = (far.part, far.name.clone());
        let mut must_end = !was_built;
        for (link, edge) in (0..).zip(&self.cut.links) {
            if edge.from != part && edge.to != part {
                continue;
            }
            must_end |= edge.queue.policy == Policy::Block;
            match (edge.from == part, self.outbox(if edge.from == part { edge.to } else { edge.from })) {
                (true, Some(consumer)) => consumer.end_link(link),
                (true, None) => self.here.end(link),
                (false, Some(producer)) => producer.close_link(link),
                // Its outbox is closed.
                (false, None) => {}
            }
        }
        let lost = Elsewhere { what: why.clone(), status: GONE };
        match must_end && self.stopping.is_none() {
            true => self.fail(lost.into()),
            false => {
                if self.stopping.is_none() {
                    note!("{why}; the rest of the graph goes on without {name}");
                }
                self.failed.get_or_insert_with(|| lost.into());
            }
        }
    }

    /// The first failure is what the graph fails with.
    fn fail(&mut self, error: anyhow::Error) {
        self.failed.get_or_insert(error);
        self.stop();
    }

    /// Ends the sources everywhere; the rest goes on with what is under way.
    fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        self.far.iter().for_each(|far| far.say(ToThere::Stop));
        if let Some(running) = &self.running {
            running.end_sources();
        }
        let now = Instant::now();
        self.stopping = Some(Stopping { began: now, moved: now, taken: 0, is_ending: false });
    }

    /// Once nothing gets on any more, every stage ends at its next step.
    fn end_what_stands_still(&mut self, counted: &Snapshot) {
        let Some(stopping) = &mut self.stopping else { return };
        let taken: u64 = counted.stages.iter().map(|stage| stage.frames_in).sum();
        if std::mem::replace(&mut stopping.taken, taken) != taken {
            stopping.moved = Instant::now();
        }
        let is_late = stopping.moved.elapsed() > DRAIN_TIMEOUT || stopping.began.elapsed() > DRAIN_MAX;
        if !is_late || stopping.is_ending {
            return;
        }
        stopping.is_ending = true;
        self.far.iter().for_each(|far| far.say(ToThere::End));
        self.here.end_all();
        if let Some(running) = self.running.take() {
            // Its counters are still seen; a second Ctrl-C ends what hangs.
            if let Err(error) = running.stop() {
                self.failed.get_or_insert(error.into());
            }
        }
    }

    /// Closes all connections; how it ended.
    fn end(mut self) -> Result<Ending> {
        if let Some(error) = self.running.take().and_then(|running| running.wait().err()) {
            self.failed.get_or_insert(error.into());
        }
        thread::scope(|scope| {
            for far in self.far.drain(..) {
                scope.spawn(move || far.close());
            }
        });
        match self.failed {
            Some(error) => Err(error),
            None if self.is_interrupted => Ok(Ending::Interrupted),
            None => Ok(Ending::Good),
        }
    }
}

/// How a stage is called among those of all hosts.
fn shown_name(host: Option<&str>, stage: &str) -> String {
    host.map_or_else(|| stage.to_owned(), |host| format!("{host}:{stage}"))
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Without a frame that gets on anywhere; what hosts count comes four times a second.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// The exit status where another host is gone.
const GONE: u8 = 3;
