//! `grebe cp`: trees to or from another machine, by the user's own ssh.
//!
//! ```text
//!  this end ==ssh==> grebe cp --serve there: who is it, what is to be done, where does the data go    (lines, there)
//!           <======= a ticket
//!  data:    UDP, else TCP at the same port, else the pipes of that ssh                                (way)
//!  over it: grebe_tree::send at one end, grebe_tree::receive at the other                             (tree)
//! ```

mod between;
pub(super) mod bootstrap;
pub(super) mod config;
mod fetch;
mod figures;
pub(super) mod lines;
pub(super) mod meet;
mod progress_line;
mod recordings;
mod serve;
mod summary;
pub(super) mod teller;
pub(super) mod there;
mod tree;
pub(super) mod way;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use grebe_transfer::{Cancel, ConnectionStatus, Notify};
use grebe_tree::Progress;

pub(crate) use self::fetch::Fetch;

use self::config::{Config, Settings};
use self::figures::{Figures, Outcome};
use self::lines::{Hello, Meet, PROTOCOL, PathText, Task, Tells, Way, Wishes};
use self::summary::Whole;
use self::teller::Teller;
use self::there::{COPIES, There};
use self::way::Beside;
use crate::cli::{Cp, Location, SshHost, Via};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::note;

pub(crate) fn run(options: &Cp) -> Result<Ending> {
    if options.serve {
        return serve::run(options);
    }
    interrupt::catch();
    let config = if options.how.no_config { Config::default() } else { Config::of_user()? };
    let ended = Copy::of(options, &config)?.run(&options.places);
    if ended.is_err() && interrupt::is_pending() {
        note!("stopped; what has come is kept, and the same command goes on from there");
        return Ok(Ending::Interrupted);
    }
    ended
}

/// What is to be copied, and how.
struct Copy<'a> {
    options: &'a Cp,
    config: &'a Config,
    wishes: Wishes,
    teller: Teller,
    /// After how long the other end was ready.
    login: Duration,
    /// What it was told not to exceed.
    limit_bits_per_s: Option<f64>,
}

impl<'a> Copy<'a> {
    fn of(options: &'a Cp, config: &'a Config) -> Result<Self> {
        let mut wishes = Wishes::of(&options.what);
        wishes.exclude.extend(config.exclude(&options.places));
        let teller = Teller::new(&options.tell, options.what.dry_run)?;
        Ok(Self { options, config, wishes, teller, login: Duration::ZERO, limit_bits_per_s: None })
    }

    fn run(mut self, places: &[Location]) -> Result<Ending> {
        let Some((destination, sources)) = places.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Err(Usage("give what to copy, and where to: grebe cp SRC... DEST".into()).into());
        };
        let shown = destination.to_string();
        match (From::of(sources)?, destination) {
            (From::Here(sources), Location::Here(destination)) => self.within(sources, destination, &shown),
            (From::Here(sources), Location::There { host, path }) => {
                let sources = sources.iter().map(|path| PathText::of_path(path)).collect();
                let there = Task::Receive { destination: PathText::of(path) };
                self.with(host, self.send(sources), there, &shown)
            }
            (From::There(host, sources), Location::Here(destination)) => {
                let here = Task::Receive { destination: PathText::of_path(destination) };
                self.with(host, here, self.send(sources), &shown)
            }
            (From::There(host, sources), Location::There { host: to, path }) => {
                let receive = Task::Receive { destination: PathText::of(path) };
                self.between((host, self.send(sources)), (to, receive), &shown)
            }
        }
    }

    /// Within this machine.
    fn within(&mut self, sources: Vec<PathBuf>, destination: &Path, shown: &str) -> Result<Ending> {
        let (progress, cancel) = (Arc::new(self.teller.progress()), interrupt::cancel());
        let wishes = &self.wishes;
        let copied = watch(&mut self.teller, &progress, None, None, || {
            tree::copy(sources, destination, wishes, &progress, &cancel)
        });
        self.end(&copied?, Way::Disk, None, shown)
    }

    /// From here to another machine, or the reverse.
    fn with(&mut self, host: &SshHost, here: Task, there: Task, shown: &str) -> Result<Ending> {
        let settings = self.config.settings(host, &self.options.how)?;
        if let Task::Send { sources, .. } = &here {
            // Before anybody logs in.
            let sources: Result<Vec<_>> = sources.iter().map(PathText::as_it_is).collect();
            grebe_tree::check_sources(&sources?)?;
        }
        self.limit_bits_per_s = settings.limit_bits_per_s;
        let cancel = interrupt::cancel();
        let hello = self.hello(&settings, there, listen(&settings));
        let mut there = There::start(&settings, &COPIES, &hello)?;
        self.agree(&there);
        let connected = there.channel(&settings, &beside(&settings, &cancel, &self.teller.notify()));
        let channel = match connected {
            Ok(channel) => channel,
            Err(error) => return Err(there.explain(error, &self.teller)),
        };
        self.login = self.teller.elapsed();
        let (way, status) = (channel.way, channel.status.clone());
        let is_relayed = channel.is_relayed.clone();
        self.teller.way(way, settings.via == Via::Auto && way != Way::Udp);
        let progress = Arc::new(self.teller.progress());
        let (wishes, is_fresh) = (&self.wishes, there.is_fresh());
        let other = Some((&mut there, &cancel));
        let copied = watch(&mut self.teller, &progress, status.as_ref(), other, || {
            tree::run(&here, Some(wishes), is_fresh, channel, &progress, &cancel)
        });
        self.teller.clear();
        match copied {
            Ok(outcome) => {
                there.let_go();
                let way = if is_relayed.load(Ordering::Relaxed) { Way::Relay } else { way };
                self.end(&outcome, way, status.as_ref(), shown)
            }
            Err(error) => Err(there.explain(error, &self.teller)),
        }
    }

    fn send(&self, sources: Vec<PathText>) -> Task {
        Task::Send { sources, recordings: self.wishes.progressive, is_fresh: false }
    }

    /// An older end is not asked for what it does not know.
    fn agree(&mut self, there: &There) {
        self.wishes.short_hashes &= there.knows_short_hashes();
        if self.wishes.fsync_file && !there.knows_fsync_file() {
            let (host, theirs) = (&there.host, there.version());
            let older = format!("{host} has grebe {theirs}, which does not know --fsync file");
            self.teller.note(&format!("{older}: everything is brought to the disk before the end"));
            self.wishes.fsync_file = false;
        }
        if self.wishes.has_order() && !there.knows_order() {
            let (host, theirs, ours) = (&there.host, there.version(), env!("CARGO_PKG_VERSION"));
            let older = format!("{host} has grebe {theirs}, which knows neither --progressive nor --first");
            self.teller.note(&format!("{older}: this is a plain copy; have this grebe {ours} at both ends"));
            self.wishes.without_order();
        }
    }

    fn hello(&self, settings: &Settings, task: Task, meet: Meet) -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task,
            what: None,
            meet,
            terms: settings.terms(),
            tells: Tells::Failures,
        }
    }

    fn end(
        &self,
        outcome: &Outcome,
        way: Way,
        status: Option<&ConnectionStatus>,
        destination: &str,
    ) -> Result<Ending> {
        let is_dry = self.wishes.dry_run;
        let (login, limit_bits_per_s) = (self.login, self.limit_bits_per_s);
        self.teller.end(&Whole { outcome, way, status, is_dry, login, limit_bits_per_s, destination })
    }
}

/// Where it comes from: all of it from one machine.
enum From<'a> {
    Here(Vec<PathBuf>),
    There(&'a SshHost, Vec<PathText>),
}

impl<'a> From<'a> {
    fn of(sources: &'a [Location]) -> Result<Self> {
        let mut from = None;
        for source in sources {
            match (source, &mut from) {
                (Location::Here(path), None) => from = Some(Self::Here(vec![path.clone()])),
                (Location::Here(path), Some(Self::Here(paths))) => paths.push(path.clone()),
                (Location::There { host, path }, None) => {
                    from = Some(Self::There(host, vec![PathText::of(path)]))
                }
                (Location::There { host, path }, Some(Self::There(first, paths))) if host == *first => {
                    paths.push(PathText::of(path));
                }
                _ => {
                    let why = "all that is copied at once has to come from one machine: copy from one after the other";
                    return Err(Usage(why.to_owned()).into());
                }
            }
        }
        from.ok_or_else(|| Usage("there is nothing to copy".to_owned()).into())
    }
}

/// Runs the work in a thread, and says ten times a second how far it is.
fn watch(
    teller: &mut Teller,
    progress: &Arc<Progress>,
    status: Option<&ConnectionStatus>,
    mut there: Option<(&mut There, &Cancel)>,
    work: impl FnOnce() -> Result<Outcome> + Send,
) -> Result<Outcome> {
    thread::scope(|scope| {
        let (tells, told) = mpsc::sync_channel(1);
        scope.spawn(move || drop(tells.send(work())));
        loop {
            match told.recv_timeout(SHOWN_EVERY) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((there, cancel)) = &mut there {
                        there.poll(teller);
                        // Whoever waits for the other end is to wait no longer.
                        if (interrupt::is_pending() || there.has_failed() || there.is_gone()) && there.cut() {
                            cancel.cancel();
                        }
                    }
                    teller.show(&Figures::from(progress.snapshot()), status);
                }
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the copy ended without a word"),
            }
        }
    })
}

/// How an end on another machine is reached, where it does not have to be `ssh`.
pub(super) fn listen(settings: &Settings) -> Meet {
    match settings.via {
        Via::Ssh => Meet::Here,
        Via::Tcp => Meet::Listen { port: settings.port, relay: None },
        _ => Meet::Listen { port: settings.port, relay: settings.relay.as_ref().map(ToString::to_string) },
    }
}

pub(super) fn beside(settings: &Settings, cancel: &Cancel, notify: &Notify) -> Beside {
    Beside { terms: settings.terms(), cancel: cancel.clone(), notify: notify.clone() }
}

const SHOWN_EVERY: Duration = Duration::from_millis(100);
