//! Runs a graph on several hosts.
//!
//! ```text
//!  log in everywhere -> connect -> all build -> all start -> ... -> one ends, fails or goes away, or Ctrl-C
//!                                                                    -> sources end, the rest drains, all end -> close
//!  restart = "always":    away <-> log in -> connect -> build -> start -> its links join, each in a new epoch
//! ```
//! Samples between two other hosts go directly if one reaches the other, else through here, see `direct`. Such links
//! join as those of a restarted host do.
//! of a host that is started again do.

mod loss;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_flow::{Cut, CutEdge, GraphFile, Running, Snapshot, monotonic_ns};
use grebe_link::edge::{BadLink, LinkRoute, Outbox, Route, Routes};
use grebe_remote::Config;
use grebe_ring::Cancel;
use serde_json::{Value, json};

use super::check::{self, Found};
use super::direct::Pairs;
use super::lines::{HERE_EVERY, ToCoordinator, ToHost};
use super::links::Ends;
use super::remote_host::{News, Received, RemoteHost, State, next_of};
use super::restart::RestartState;
use crate::cli::{Run, printable};
use crate::ending::{Ending, OnOtherHost};
use crate::graph::{About, Progress, listen_for_metrics, publish_observed, report};
use crate::interrupt;
use crate::output::note;

/// Runs a graph that was cut into parts.
pub(super) fn run(name: &str, file: &GraphFile, cut: Cut, options: &Run) -> Result<Ending> {
    interrupt::catch();
    let shown: Vec<String> = file.ends().map(|stage| shown_name(stage.host.as_deref(), &stage.id)).collect();
    let metrics = listen_for_metrics(options.metrics.clone())?;
    let is_check = options.check.is_some();
    let opened = Coordinator::connect(name, cut, options).and_then(|mut whole| {
        whole.go_directly();
        whole.report_routes();
        whole.check(is_check);
        match is_check {
            true => whole.close(),
            false => whole.build(&interrupt::cancel())?,
        }
        Ok(whole)
    });
    let mut whole = match opened {
        Err(_) if interrupt::is_pending() => return Ok(Ending::Interrupted),
        Ok(_) if is_check => return Ok(Ending::Good),
        opened => opened?,
    };
    let observe = whole.start();
    let _published = publish_observed(observe.clone(), name, About::new());
    let _served = metrics.map(|listener| listener.serve([(name.to_owned(), observe.clone())])).transpose()?;
    let progress = Progress::of(shown.first().cloned().unwrap_or_default());
    whole.drive(&progress, &observe);
    progress.clear();
    let (snapshot, ways, ending) = (observe(), whole.routes_json(), whole.end());
    let shown = shown.iter().map(String::as_str);
    report::print_graph(shown, &snapshot, ending, options.json, |report| report["routes"] = ways)
}

/// All parts of a graph.
struct Coordinator {
    cut: Cut,
    here: Ends,
    remote: Vec<RemoteHost>,
    pairs: Pairs,
    /// Last epoch of each link.
    epochs: Vec<u32>,
    tells: Sender<Received>,
    heard: Receiver<Received>,
    /// Time of the last keep-alive to the hosts.
    told_at: Instant,
    /// The part of this host, before and after its start.
    graph: Option<grebe_flow::Graph>,
    running: Option<Running>,
    has_started: bool,
    stopping: Option<Stopping>,
    /// Reason for the end, or for a loss.
    failed: Option<anyhow::Error>,
    is_interrupted: bool,
}

/// Start of the end of the sources, and time of the last progress.
struct Stopping {
    began: Instant,
    moved: Instant,
    taken: u64,
    is_ending: bool,
}

impl Coordinator {
    /// Logs in to all hosts.
    fn connect(name: &str, cut: Cut, options: &Run) -> Result<Self> {
        let config = if options.routing.no_config { Config::default() } else { Config::of_user()? };
        let elsewhere = cut.parts.iter().enumerate().filter(|(_, part)| part.host.is_some());
        let remote: Vec<Result<RemoteHost>> = thread::scope(|scope| {
            let config = &config;
            let start =
                |(at, part)| scope.spawn(move || RemoteHost::start(name, part, at, config, &options.routing));
            let starting: Vec<_> = elsewhere.map(start).collect();
            let joined = starting.into_iter().map(|starting| starting.join());
            joined.map(|remote| remote.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let remote = remote.into_iter().collect::<Result<Vec<_>>>()?;
        let here = cut.here().map_or_else(|| Ok(Ends::default()), |part| Ends::of(&part.file))?;
        let (tells, heard) = mpsc::channel();
        let mut whole = Self {
            epochs: vec![0; cut.links.len()],
            pairs: Pairs::of(&cut, &remote),
            cut,
            here,
            remote,
            tells,
            heard,
            told_at: Instant::now(),
            graph: None,
            running: None,
            has_started: false,
            stopping: None,
            failed: None,
            is_interrupted: false,
        };
        for at in 0..whole.remote.len() {
            whole.open(at);
        }
        Ok(whole)
    }

    /// Lets hosts with edges between them connect directly.
    fn go_directly(&mut self) {
        let mut others = Vec::new();
        self.pairs.meet(&self.remote);
        while self.pairs.are_meeting() && !interrupt::is_pending() {
            match self.heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) if self.pairs.handle(heard.at, &heard.news, &mut self.remote) => {}
                Ok(heard) => {
                    if matches!(heard.news, News::Closed(_)) {
                        self.pairs.leave(heard.at, &self.remote);
                    }
                    others.push(heard);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Their messages are reported together.
            self.turn_pairs(&|_| {});
        }
        self.put_back(others);
    }

    /// Checks clocks and routes; reports problems, or all findings.
    fn check(&self, says_all: bool) {
        let mut others = Vec::new();
        let say = |name: &str, found: Found| {
            let words = if says_all { found.all(name) } else { Vec::new() };
            words.iter().chain(&found.warnings(name)).for_each(|words| note!("{words}"));
        };
        let through: Vec<_> =
            self.links().filter(|(link, _)| !self.pairs.has(*link)).map(|(_, edge)| edge.clone()).collect();
        for (at, remote) in self.remote.iter().enumerate() {
            let next = |until| next_of(&self.heard, at, until, &mut others);
            say(&remote.name, check::check_host(remote, &through, says_all, next));
        }
        let next = |at, until| next_of(&self.heard, at, until, &mut others);
        for (names, found) in self.pairs.check(&self.remote, &self.cut.links, says_all, next) {
            say(&names, found);
        }
        self.put_back(others);
    }

    /// Messages that were not handled.
    fn put_back(&self, heard: Vec<Received>) {
        heard.into_iter().for_each(|heard| drop(self.tells.send(heard)));
    }

    /// Ends before the start.
    fn close(&mut self) {
        self.remote.iter().for_each(|remote| remote.say(ToHost::End));
        self.remote.drain(..).for_each(RemoteHost::close);
    }

    /// Opens the conversation with a host.
    fn open(&mut self, at: usize) {
        let routes = self.routes(at);
        self.remote[at].open(at, routes, &self.tells);
    }

    /// Destinations of data from a host.
    fn routes(&self, at: usize) -> Routes {
        let part = self.remote[at].part;
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

    /// The part at the other end of a link, if one end is in this part.
    fn other_end(&self, link: u16, part: usize) -> Option<usize> {
        let CutEdge { from, to, .. } = *self.cut.links.get(usize::from(link))?;
        if from == part { Some(to) } else { (to == part).then_some(from) }
    }

    /// The queue of messages to a part on another host.
    fn outbox(&self, part: usize) -> Option<Arc<Outbox>> {
        self.remote.iter().find(|remote| remote.part == part).map(|remote| remote.outbox.clone())
    }

    /// Opens the part here, and waits for the others.
    fn build(&mut self, cancel: &Cancel) -> Result<()> {
        self.remote.iter().for_each(|remote| remote.say(ToHost::Build));
        let own = self.cut.parts.iter().position(|part| part.host.is_none());
        let built = own.map(|own| {
            let outbox = |link| self.other_end(link, own).and_then(|other| self.outbox(other));
            let lead = |link| Some(Arc::new(LinkRoute::new(link, outbox(link)?)));
            self.here.build(&self.cut.parts[own].file, cancel, &mut |note| note!("{note}"), lead)
        });
        let built = built.transpose().and_then(|graph| {
            self.graph = graph;
            while self.failed.is_none() && self.remote.iter().any(|remote| remote.state == State::Opening) {
                if interrupt::is_pending() {
                    return Err(grebe_connection::Error::Cancelled.into());
                }
                self.listen(None);
                if self.remote.iter().any(|remote| remote.state == State::Ended) {
                    break;
                }
            }
            self.failed.take().map_or(Ok(()), Err)
        });
        if built.is_err() {
            self.close();
        }
        built
    }

    /// Reports notable routes.
    fn report_routes(&self) {
        for remote in &self.remote {
            let mut links = self.links_of(remote.part).map(|(link, _)| link).peekable();
            let goes_elsewhere = links.peek().is_some() && links.all(|link| self.pairs.has(link));
            if let Some(route) = remote.route().filter(|_| !goes_elsewhere) {
                note!("{}: samples go over {}", remote.name, route.name());
            }
        }
        self.pairs.route_texts(&self.remote).iter().for_each(|words| note!("{words}"));
    }

    /// Routes for programs.
    fn routes_json(&self) -> Value {
        let remote = self
            .remote
            .iter()
            .map(|remote| json!({ "host": remote.name, "other": null, "route": remote.route() }));
        remote.chain(self.pairs.json(&self.remote, &self.cut.links)).collect()
    }

    /// Starts all parts; returns their counters.
    fn start(&mut self) -> impl Fn() -> Snapshot + Clone + Send + Sync + use<> {
        // Receivers start before the first sample, because links hold it.
        self.remote.iter().for_each(|remote| remote.say(ToHost::Start));
        match self.graph.take().map(grebe_flow::Graph::start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => self.fail(error.into()),
        }
        self.has_started = true;
        let own = self.running.as_ref().map(|running| Arc::new(running.observer()));
        let remote: Vec<_> = self.remote.iter().map(RemoteHost::counted).collect();
        move || {
            let mut all = own.as_ref().map(|own| own()).unwrap_or_default();
            all.at_ns = monotonic_ns();
            for counted in &remote {
                counted.lock().unwrap_or_else(PoisonError::into_inner).add_to(&mut all);
            }
            all
        }
    }

    /// Runs until all parts have ended.
    fn drive(&mut self, progress: &Progress, observe: &impl Fn() -> Snapshot) {
        let mut notes = self.running.as_ref().map(Running::notes);
        while !self.is_over() {
            self.listen(Some(progress));
            notes.iter_mut().flat_map(|notes| notes()).for_each(|note| progress.say(&note));
            if let Some(error) = self.running.as_ref().and_then(Running::take_error) {
                self.fail(error.into());
            }
            self.say_here();
            for at in 0..self.remote.len() {
                self.watch_host(at, progress);
            }
            self.turn_pairs(&|words| progress.say(words));
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
        self.running.as_ref().is_none_or(Running::is_ended) && self.remote.iter().all(RemoteHost::is_over)
    }

    /// Hosts without messages for long end their part.
    fn say_here(&mut self) {
        if self.told_at.elapsed() >= HERE_EVERY {
            self.told_at = Instant::now();
            self.remote.iter().filter(|remote| remote.is_there()).for_each(|remote| remote.say(ToHost::Here));
        }
    }

    /// Handles messages of hosts for a moment.
    fn listen(&mut self, progress: Option<&Progress>) {
        match self.heard.recv_timeout(LOOK_EVERY) {
            Ok(heard) => self.handle(heard, progress),
            Err(RecvTimeoutError::Timeout) => {}
            // All readers have ended, and have reported it.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
        while let Ok(heard) = self.heard.try_recv() {
            self.handle(heard, progress);
        }
    }

    fn handle(&mut self, heard: Received, progress: Option<&Progress>) {
        let at = heard.at;
        let remote = &mut self.remote[at];
        if !remote.is_of_now(&heard) || remote.state == State::Lost {
            return;
        }
        let say = |words: &str| match progress {
            Some(progress) => progress.say(words),
            None => note!("{words}"),
        };
        match heard.news {
            News::Said(ToCoordinator::Note(note)) => {
                say(&format!("{}: {}", remote.name, printable(note.as_bytes())))
            }
            News::Said(ToCoordinator::Built)
                if remote.restart_state.is_some() && remote.state == State::Opening =>
            {
                self.is_back(at, &say);
            }
            News::Said(ToCoordinator::Built) => remote.state = State::Built,
            News::Said(ToCoordinator::Counts(counts)) => remote.count().update(counts),
            News::Said(ToCoordinator::Ended { counts, failed }) => {
                remote.count().update(counts);
                remote.state = State::Ended;
                let Some(failed) = failed else { return };
                let what = format!("{}: {}", remote.name, printable(failed.why.as_bytes()));
                match self.is_restarted(at) {
                    true => self.leave(at, &what, &say),
                    false => self.fail(OnOtherHost { what, status: failed.status }.into()),
                }
            }
            News::Closed(_) if remote.is_over() => {}
            News::Closed(read) => {
                // The reason for the end of a host says more than a broken connection.
                let broke = |error: &BadLink| !matches!(error, BadLink::Io(_) | BadLink::Cut);
                let broke = read.err().filter(broke).map(|broke| broke.to_string());
                match self.is_restarted(at) {
                    true => self.leave(at, &broke.unwrap_or_default(), &say),
                    false => self.lose_for_good(at, broke),
                }
            }
            ref news @ News::Said(
                ToCoordinator::Ticket { .. }
                | ToCoordinator::Met { .. }
                | ToCoordinator::Broke { .. }
                | ToCoordinator::Hears { .. },
            ) => {
                self.pairs.handle(at, news, &mut self.remote);
            }
            News::Said(
                ToCoordinator::Clock(..) | ToCoordinator::Filled(_) | ToCoordinator::PeerFilled { .. },
            )
            | News::Filled(_) => {}
            News::Gone(why) => say(&format!("{why}; restarting {}", remote.name)),
        }
    }

    /// The edges between parts.
    fn links(&self) -> impl Iterator<Item = (u16, &CutEdge)> {
        (0..).zip(&self.cut.links)
    }

    /// The edges to or from a part.
    fn links_of(&self, part: usize) -> impl Iterator<Item = (u16, &CutEdge)> {
        self.links().filter(move |(_, edge)| edge.from == part || edge.to == part)
    }

    /// The graph fails with the first failure.
    fn fail(&mut self, error: anyhow::Error) {
        self.failed.get_or_insert(error);
        self.stop();
    }

    /// Ends all sources; queued samples are processed.
    fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        for at in 0..self.remote.len() {
            let is_coming =
                self.remote[at].restart_state.is_some() && self.remote[at].state == State::Opening;
            if is_coming || self.remote[at].state == State::Away {
                self.give_up(at);
            }
        }
        self.remote.iter().for_each(|remote| remote.say(ToHost::Stop));
        if let Some(running) = &self.running {
            running.end_sources();
        }
        let now = Instant::now();
        self.stopping = Some(Stopping { began: now, moved: now, taken: 0, is_ending: false });
    }

    /// Ends all stages once nothing progresses.
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
        self.remote.iter().for_each(|remote| remote.say(ToHost::End));
        self.here.end_all();
        if let Some(running) = self.running.take() {
            // Its counters stay visible; a second Ctrl-C ends a hanging stage.
            if let Err(error) = running.stop() {
                self.failed.get_or_insert(error.into());
            }
        }
    }

    /// Closes all connections, and returns the outcome.
    fn end(mut self) -> Result<Ending> {
        if let Some(error) = self.running.take().and_then(|running| running.wait().err()) {
            self.failed.get_or_insert(error.into());
        }
        let is_trying = self
            .remote
            .iter()
            .any(|remote| remote.restart_state.as_ref().is_some_and(RestartState::is_trying));
        if is_trying {
            // A running login is no longer needed.
            interrupt::raise();
        }
        thread::scope(|scope| {
            for remote in self.remote.drain(..) {
                scope.spawn(move || remote.close());
            }
        });
        match self.failed {
            Some(error) => Err(error),
            None if self.is_interrupted => Ok(Ending::Interrupted),
            None => Ok(Ending::Good),
        }
    }
}

/// Name of a stage among those of all hosts.
fn shown_name(host: Option<&str>, stage: &str) -> String {
    host.map_or_else(|| stage.to_owned(), |host| format!("{host}:{stage}"))
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time without progress anywhere; hosts report counters four times a second.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_MAX: Duration = Duration::from_secs(10);
