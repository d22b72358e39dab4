//! A graph on several hosts, from its start to its end.
//!
//! ```text
//!  log in everywhere -> connect -> all build -> all start -> ... -> one ends, fails or goes away, or Ctrl-C
//!                                                                    -> sources end, the rest drains, all end -> close
//!  restart = "always":    away <-> log in -> connect -> build -> start -> its links join, each in a new era
//! ```
//!
//! Samples from one other host to a second one go directly where one reaches the other, else through here: see `direct`. Their links join as those
//! of a host that is started again do.

mod gone;

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
use super::comeback::Comeback;
use super::direct::Pairs;
use super::far::{Far, Heard, News, State};
use super::lines::{HERE_EVERY, ToHere, ToThere};
use super::links::Ends;
use crate::cli::{Run, printable};
use crate::ending::{Elsewhere, Ending};
use crate::graph::{About, Progress, listen_for_metrics, publish_observed, report};
use crate::interrupt;
use crate::output::note;

/// Runs a graph that was cut.
pub(super) fn run(name: &str, file: &GraphFile, cut: Cut, options: &Run) -> Result<Ending> {
    interrupt::catch();
    let shown: Vec<String> = file.ends().map(|stage| shown_name(stage.host.as_deref(), &stage.id)).collect();
    let metrics = listen_for_metrics(options.metrics.clone())?;
    let is_check = options.check.is_some();
    let opened = Whole::connect(name, cut, options).and_then(|mut whole| {
        whole.go_directly();
        whole.tell_ways();
        whole.look(is_check);
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
    let (snapshot, ways, ending) = (observe(), whole.ways(), whole.end());
    let shown = shown.iter().map(String::as_str);
    report::print_graph(shown, &snapshot, ending, options.json, |report| report["ways"] = ways)
}

/// All parts of a graph.
struct Whole {
    cut: Cut,
    here: Ends,
    far: Vec<Far>,
    pairs: Pairs,
    /// Of each link, the last era that began.
    eras: Vec<u32>,
    tells: Sender<Heard>,
    heard: Receiver<Heard>,
    /// When hosts were told last that this process is there.
    told_at: Instant,
    /// Not yet started, and at work.
    graph: Option<grebe_flow::Graph>,
    running: Option<Running>,
    has_started: bool,
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
    /// Logs in everywhere.
    fn connect(name: &str, cut: Cut, options: &Run) -> Result<Self> {
        let config = if options.how.no_config { Config::default() } else { Config::of_user()? };
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
            eras: vec![0; cut.links.len()],
            pairs: Pairs::of(&cut, &far),
            cut,
            here,
            far,
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
        for at in 0..whole.far.len() {
            whole.open(at);
        }
        Ok(whole)
    }

    /// Lets hosts find each other that have edges between them.
    fn go_directly(&mut self) {
        let mut others = Vec::new();
        self.pairs.meet(&self.far);
        while self.pairs.are_meeting() && !interrupt::is_pending() {
            match self.heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) if self.pairs.hear(heard.at, &heard.news, &mut self.far) => {}
                Ok(heard) => {
                    if matches!(heard.news, News::Closed(_)) {
                        self.pairs.leave(heard.at, &self.far);
                    }
                    others.push(heard);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // What a person is to know of it is told together.
            self.turn_pairs(&|_| {});
        }
        self.put_back(others);
    }

    /// Looks whether clocks and ways are good for it; says what is not, or all of it.
    fn look(&self, says_all: bool) {
        let mut others = Vec::new();
        let say = |name: &str, found: Found| {
            let words = if says_all { found.all(name) } else { Vec::new() };
            words.iter().chain(&found.warnings(name)).for_each(|words| note!("{words}"));
        };
        let through: Vec<_> =
            self.links().filter(|(link, _)| !self.pairs.has(*link)).map(|(_, edge)| edge.clone()).collect();
        for (at, far) in self.far.iter().enumerate() {
            let next = |until| next_of(&self.heard, at, until, &mut others);
            say(&far.name, check::look(far, &through, says_all, next));
        }
        let next = |at, until| next_of(&self.heard, at, until, &mut others);
        for (names, found) in self.pairs.look(&self.far, &self.cut.links, says_all, next) {
            say(&names, found);
        }
        self.put_back(others);
    }

    /// Nobody has looked at these.
    fn put_back(&self, heard: Vec<Heard>) {
        heard.into_iter().for_each(|heard| drop(self.tells.send(heard)));
    }

    /// Nothing is to be started.
    fn close(&mut self) {
        self.far.iter().for_each(|far| far.say(ToThere::End));
        self.far.drain(..).for_each(Far::close);
    }

    /// Begins to talk with a host.
    fn open(&mut self, at: usize) {
        let routes = self.routes(at);
        self.far[at].open(at, routes, &self.tells);
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
    fn build(&mut self, cancel: &Cancel) -> Result<()> {
        self.far.iter().for_each(|far| far.say(ToThere::Build));
        let own = self.cut.parts.iter().position(|part| part.host.is_none());
        let built = own.map(|own| {
            let outbox = |link| self.other_end(link, own).and_then(|other| self.outbox(other));
            let lead = |link| Some(Arc::new(LinkRoute::new(link, outbox(link)?)));
            self.here.build(&self.cut.parts[own].file, cancel, &mut |note| note!("{note}"), lead)
        });
        let built = built.transpose().and_then(|graph| {
            self.graph = graph;
            while self.failed.is_none() && self.far.iter().any(|far| far.state == State::Opening) {
                if interrupt::is_pending() {
                    return Err(grebe_connection::Error::Cancelled.into());
                }
                self.listen(None);
                if self.far.iter().any(|far| far.state == State::Ended) {
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

    /// Says which way the samples go, where that is worth a word.
    fn tell_ways(&self) {
        for far in &self.far {
            let mut links = self.links_of(far.part).map(|(link, _)| link).peekable();
            let goes_elsewhere = links.peek().is_some() && links.all(|link| self.pairs.has(link));
            if let Some(route) = far.route().filter(|_| !goes_elsewhere) {
                note!("{}: samples go over {}", far.name, route.name());
            }
        }
        self.pairs.ways(&self.far).iter().for_each(|words| note!("{words}"));
    }

    /// The same for programs.
    fn ways(&self) -> Value {
        let far = self.far.iter().map(|far| json!({ "host": far.name, "other": null, "way": far.route() }));
        far.chain(self.pairs.json(&self.far, &self.cut.links)).collect()
    }

    /// Starts all; what they have counted together.
    fn start(&mut self) -> impl Fn() -> Snapshot + Clone + Send + Sync + use<> {
        // Those that receive are there before the first sample: the links hold it.
        self.far.iter().for_each(|far| far.say(ToThere::Start));
        match self.graph.take().map(grebe_flow::Graph::start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => self.fail(error.into()),
        }
        self.has_started = true;
        let own = self.running.as_ref().map(|running| Arc::new(running.observer()));
        let far: Vec<_> = self.far.iter().map(Far::counted).collect();
        move || {
            let mut all = own.as_ref().map(|own| own()).unwrap_or_default();
            all.at_ns = monotonic_ns();
            for counted in &far {
                counted.lock().unwrap_or_else(PoisonError::into_inner).add_to(&mut all);
            }
            all
        }
    }

    /// To the end of all parts.
    fn drive(&mut self, progress: &Progress, observe: &impl Fn() -> Snapshot) {
        let mut notes = self.running.as_ref().map(Running::notes);
        while !self.is_over() {
            self.listen(Some(progress));
            notes.iter_mut().flat_map(|notes| notes()).for_each(|note| progress.say(&note));
            if let Some(error) = self.running.as_ref().and_then(Running::take_error) {
                self.fail(error.into());
            }
            self.say_here();
            for at in 0..self.far.len() {
                self.look_after(at, progress);
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
        self.running.as_ref().is_none_or(Running::is_ended) && self.far.iter().all(Far::is_over)
    }

    /// Hosts that hear nothing for long end their part.
    fn say_here(&mut self) {
        if self.told_at.elapsed() >= HERE_EVERY {
            self.told_at = Instant::now();
            self.far.iter().filter(|far| far.is_there()).for_each(|far| far.say(ToThere::Here));
        }
    }

    /// Takes in what hosts say, for a moment.
    fn listen(&mut self, progress: Option<&Progress>) {
        match self.heard.recv_timeout(LOOK_EVERY) {
            Ok(heard) => self.hear(heard, progress),
            Err(RecvTimeoutError::Timeout) => {}
            // Every reader has ended, which each has said.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
        while let Ok(heard) = self.heard.try_recv() {
            self.hear(heard, progress);
        }
    }

    fn hear(&mut self, heard: Heard, progress: Option<&Progress>) {
        let at = heard.at;
        let far = &mut self.far[at];
        if !far.is_of_now(&heard) || far.state == State::Lost {
            return;
        }
        let say = |words: &str| match progress {
            Some(progress) => progress.say(words),
            None => note!("{words}"),
        };
        match heard.news {
            News::Said(ToHere::Note(note)) => say(&format!("{}: {}", far.name, printable(note.as_bytes()))),
            News::Said(ToHere::Built) if far.comeback.is_some() && far.state == State::Opening => {
                self.is_back(at, &say);
            }
            News::Said(ToHere::Built) => far.state = State::Built,
            News::Said(ToHere::Counts(counts)) => far.count().tell(counts),
            News::Said(ToHere::Ended { counts, failed }) => {
                far.count().tell(counts);
                far.state = State::Ended;
                let Some(failed) = failed else { return };
                let what = format!("{}: {}", far.name, printable(failed.why.as_bytes()));
                match self.is_restarted(at) {
                    true => self.leave(at, &what, &say),
                    false => self.fail(Elsewhere { what, status: failed.status }.into()),
                }
            }
            News::Closed(_) if far.is_over() => {}
            News::Closed(read) => {
                // That a connection broke says less than why the other end is gone.
                let broke = |error: &BadLink| !matches!(error, BadLink::Io(_) | BadLink::Cut);
                let broke = read.err().filter(broke).map(|broke| broke.to_string());
                match self.is_restarted(at) {
                    true => self.leave(at, &broke.unwrap_or_default(), &say),
                    false => self.lose_for_good(at, broke),
                }
            }
            ref news @ News::Said(
                ToHere::Ticket { .. } | ToHere::Met { .. } | ToHere::Broke { .. } | ToHere::Hears { .. },
            ) => {
                self.pairs.hear(at, news, &mut self.far);
            }
            News::Said(ToHere::Clock(..) | ToHere::Filled(_) | ToHere::PeerFilled { .. })
            | News::Filled(_) => {}
            News::Gone(why) => say(&format!("{why}; {} is started again", far.name)),
        }
    }

    /// The edges that were cut.
    fn links(&self) -> impl Iterator<Item = (u16, &CutEdge)> {
        (0..).zip(&self.cut.links)
    }

    /// The edges that lead to or from a part.
    fn links_of(&self, part: usize) -> impl Iterator<Item = (u16, &CutEdge)> {
        self.links().filter(move |(_, edge)| edge.from == part || edge.to == part)
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
        for at in 0..self.far.len() {
            let is_coming = self.far[at].comeback.is_some() && self.far[at].state == State::Opening;
            if is_coming || self.far[at].state == State::Away {
                self.give_up(at);
            }
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
        let is_trying = self.far.iter().any(|far| far.comeback.as_ref().is_some_and(Comeback::is_trying));
        if is_trying {
            // A login that is under way is of no use any more.
            interrupt::raise();
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

/// What comes from a host until then; what comes from others, and that it is gone, is put aside.
fn next_of(heard: &Receiver<Heard>, at: usize, until: Instant, others: &mut Vec<Heard>) -> Option<Heard> {
    while Instant::now() < until && !interrupt::is_pending() {
        match heard.recv_timeout(LOOK_EVERY) {
            Ok(heard) if heard.at != at => others.push(heard),
            Ok(heard) if matches!(heard.news, News::Closed(_)) => {
                others.push(heard);
                return None;
            }
            Ok(heard) => return Some(heard),
            Err(_) => {}
        }
    }
    None
}

/// How a stage is called among those of all hosts.
fn shown_name(host: Option<&str>, stage: &str) -> String {
    host.map_or_else(|| stage.to_owned(), |host| format!("{host}:{stage}"))
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Without a frame that gets on anywhere; what hosts count comes four times a second.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_MAX: Duration = Duration::from_secs(10);
