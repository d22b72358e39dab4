//! `grebe cp`: copies trees between machines by the user's own ssh.
//!
//! ```text
//!  this end ==ssh==> grebe cp --serve: its task, and the permitted routes    (grebe_remote, lines)
//!           <======= a ticket
//!  data:    UDP, else TCP at the same port, else the pipes of that ssh                    (grebe_remote)
//!  over it: grebe_tree::send at one end, grebe_tree::receive at the other                 (tree)
//! ```

mod between;
mod fetch;
mod figures;
mod lines;
mod nesting;
mod path_text;
mod progress_line;
mod recordings;
mod reporter;
mod serve;
mod summary;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use grebe_connection::{Cancel, ConnectionStatus};
use grebe_remote::{Config, Hello, Meet, Remote, Route, Settings, Via};
use grebe_tree::Progress;

pub(crate) use self::fetch::Fetch;

use self::figures::{Figures, Outcome};
use self::lines::{
    COPIES, CopyOptions, CopyTask, IS_FRESH, KNOWS_FSYNC_FILE, KNOWS_ORDER, KNOWS_SHORT_HASHES,
    RECEIVES_INSIDE, ReportLevel, SENDS_DIRECTORY, Task,
};
use self::path_text::PathText;
use self::reporter::Reporter;
use self::summary::Summary;
use super::remote::{self, dialer};
use crate::cli::{Cp, Location, SshHost};
use crate::ending::{Ending, Usage};
use crate::interrupt;

pub(crate) fn run(options: &Cp) -> Result<Ending> {
    if options.serve {
        return serve::run(options);
    }
    interrupt::catch();
    let config = if options.routing.no_config { Config::default() } else { Config::of_user()? };
    let ended = Copy::of(options, &config)?.run(&options.places);
    match ended {
        // A break by an interruption counts as the interruption.
        Err(_) if interrupt::is_pending() => Err(grebe_tree::Error::Cancelled.into()),
        ended => ended,
    }
}

/// Copy with its options.
struct Copy<'a> {
    options: &'a Cp,
    config: &'a Config,
    copy_options: CopyOptions,
    reporter: Reporter,
    /// Note, if a directory is copied into an existing one.
    nesting: Option<String>,
    /// Time until the other end was ready.
    login: Duration,
    /// Rate limit of both ends.
    limit_bits_per_s: Option<f64>,
}

impl<'a> Copy<'a> {
    fn of(options: &'a Cp, config: &'a Config) -> Result<Self> {
        let mut copy_options = CopyOptions::of(&options.selection);
        copy_options.exclude.extend(config.exclude(options.places.iter().filter_map(Location::host)));
        let reporter = Reporter::new(&options.reporting, options.selection.dry_run)?;
        Ok(Self {
            options,
            config,
            copy_options,
            reporter,
            nesting: None,
            login: Duration::ZERO,
            limit_bits_per_s: None,
        })
    }

    fn run(mut self, places: &[Location]) -> Result<Ending> {
        let Some((destination, sources)) = places.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Err(Usage("give what to copy, and where to: grebe cp SRC... DEST".into()).into());
        };
        let shown = destination.to_string();
        self.nesting = nesting::note(sources, &shown);
        match (From::of(sources)?, destination) {
            (From::Here(sources), Location::Local(destination)) => self.within(sources, destination, &shown),
            (From::Here(sources), Location::Remote { host, path }) => {
                let sources: Vec<_> = sources.iter().map(|path| PathText::of_path(path)).collect();
                let there = receive(PathText::of(path), &sources);
                self.with(host, self.send(sources), there, &shown)
            }
            (From::There(host, sources), Location::Local(destination)) => {
                let here = receive(PathText::of_path(destination), &sources);
                self.with(host, here, self.send(sources), &shown)
            }
            (From::There(host, sources), Location::Remote { host: to, path }) => {
                let receive = receive(PathText::of(path), &sources);
                self.between((host, self.send(sources)), (to, receive), &shown)
            }
        }
    }

    /// Copies within this machine.
    fn within(&mut self, sources: Vec<PathBuf>, destination: &Path, shown: &str) -> Result<Ending> {
        let texts: Vec<_> = sources.iter().map(|path| PathText::of_path(path)).collect();
        let receive = receive(PathText::of_path(destination), &texts);
        let is_directory = nesting::sends_directory(&self.send(texts));
        self.note_nesting(is_directory && nesting::receives_inside(&receive));
        if self.options.routing.bwlimit.is_some() {
            self.reporter.note("--bwlimit limits data between machines: this copy within one is not limited");
        }
        if self.copy_options.progressive {
            let all = "only the named files are copied, so name all files of a recording";
            self.reporter.note(&format!("--progressive is for data between machines: {all}"));
        }
        let (progress, cancel) = (Arc::new(self.reporter.progress()), interrupt::cancel());
        let copy_options = &self.copy_options;
        let copied = watch(&mut self.reporter, &progress, None, None, || {
            tree::copy(sources, destination, copy_options, &progress, &cancel)
        });
        self.end(&copied?, Route::Disk, None, shown)
    }

    /// Reports that a directory is copied into an existing one; only the first time.
    fn note_nesting(&mut self, is_nested: bool) {
        if let Some(note) = self.nesting.take().filter(|_| is_nested) {
            self.reporter.note(&note);
        }
    }

    /// Copies from this machine to another, or the reverse.
    fn with(&mut self, host: &SshHost, here: Task, there: Task, shown: &str) -> Result<Ending> {
        let settings = self.settings(host)?;
        if let Task::Send { sources, .. } = &here {
            // Before the login.
            let sources: Result<Vec<_>> = sources.iter().map(PathText::as_it_is).collect();
            grebe_tree::check_sources(&sources?)?;
        }
        self.limit_bits_per_s = settings.limit_bits_per_s;
        let cancel = interrupt::cancel();
        let hello = self.hello(&settings, there, settings.meet());
        let mut there = Remote::start(&settings, &COPIES, &hello, &interrupt::is_pending)?;
        self.agree(&there);
        let (sends, receives) = (nesting::sends_directory(&here), nesting::receives_inside(&here));
        let ready = there.ready();
        let is_nested = sends && ready.has(RECEIVES_INSIDE) || receives && ready.has(SENDS_DIRECTORY);
        self.note_nesting(is_nested);
        let mut dialer = dialer(&settings, &cancel, &self.reporter.notify());
        dialer.measures = matches!(here, Task::Send { .. });
        let connected = there.channel(&settings, &dialer);
        let channel = match connected {
            Ok(channel) => channel,
            Err(error) => return Err(self.reporter.explain(there, error.into())),
        };
        self.login = self.reporter.elapsed();
        let (route, status) = (channel.route, channel.status.clone());
        let is_relayed = channel.is_relayed.clone();
        self.reporter.route(route, settings.via == Via::Auto && route != Route::Udp);
        let progress = Arc::new(self.reporter.progress());
        let (copy_options, is_fresh) = (&self.copy_options, there.ready().has(IS_FRESH));
        let other = Some((&mut there, &cancel));
        let copied = watch(&mut self.reporter, &progress, status.as_ref(), other, || {
            tree::run(&here, Some(copy_options), is_fresh, channel, &progress, &cancel)
        });
        self.reporter.clear();
        match copied {
            Ok(outcome) => {
                there.let_go();
                let route = if is_relayed.load(Ordering::Relaxed) { Route::Relay } else { route };
                self.end(&outcome, route, status.as_ref(), shown)
            }
            Err(error) => Err(self.reporter.explain(there, error)),
        }
    }

    fn send(&self, sources: Vec<PathText>) -> Task {
        Task::Send { sources, recordings: self.copy_options.progressive, is_fresh: false }
    }

    /// Removes options that an older end does not support, with a note.
    fn agree(&mut self, there: &Remote) {
        let (host, theirs, ready) = (there.host(), there.version(), there.ready());
        self.copy_options.short_hashes &= ready.has(KNOWS_SHORT_HASHES);
        if self.copy_options.fsync_file && !ready.has(KNOWS_FSYNC_FILE) {
            let older = format!("{host} has grebe {theirs}, which does not know --fsync file");
            self.reporter.note(&format!("{older}: grebe flushes all files at the end"));
            self.copy_options.fsync_file = false;
        }
        if self.copy_options.has_order() && !ready.has(KNOWS_ORDER) {
            let ours = env!("CARGO_PKG_VERSION");
            let older = format!("{host} has grebe {theirs}, which knows neither --progressive nor --first");
            self.reporter.note(&format!("{older}: this is a plain copy; install grebe {ours} at both ends"));
            self.copy_options.without_order();
        }
    }

    fn settings(&self, host: &SshHost) -> Result<Settings> {
        remote::settings(self.config, host, &self.options.routing.host_options())
    }

    fn hello(&self, settings: &Settings, task: Task, meet: Meet) -> Hello<CopyTask> {
        let task = CopyTask { task, what: None, tells: ReportLevel::Failures };
        Hello::new(&COPIES, meet, settings.terms(), task)
    }

    fn end(
        &self,
        outcome: &Outcome,
        route: Route,
        status: Option<&ConnectionStatus>,
        destination: &str,
    ) -> Result<Ending> {
        let is_dry = self.copy_options.dry_run;
        let (login, limit_bits_per_s) = (self.login, self.limit_bits_per_s);
        self.reporter.end(&Summary { outcome, route, status, is_dry, login, limit_bits_per_s, destination })
    }
}

/// Sources, all on one machine.
enum From<'a> {
    Here(Vec<PathBuf>),
    There(&'a SshHost, Vec<PathText>),
}

impl<'a> From<'a> {
    fn of(sources: &'a [Location]) -> Result<Self> {
        let mut from = None;
        for source in sources {
            match (source, &mut from) {
                (Location::Local(path), None) => from = Some(Self::Here(vec![path.clone()])),
                (Location::Local(path), Some(Self::Here(paths))) => paths.push(path.clone()),
                (Location::Remote { host, path }, None) => {
                    from = Some(Self::There(host, vec![PathText::of(path)]))
                }
                (Location::Remote { host, path }, Some(Self::There(first, paths))) if host == *first => {
                    paths.push(PathText::of(path));
                }
                _ => {
                    let why = "the sources are on several machines: use a command for each machine";
                    return Err(Usage(why.to_owned()).into());
                }
            }
        }
        from.ok_or_else(|| Usage("there is nothing to copy".to_owned()).into())
    }
}

fn receive(destination: PathText, sources: &[PathText]) -> Task {
    Task::Receive { destination, name: nesting::kept_name(sources) }
}

/// Runs the work in a thread, and reports progress ten times a second.
fn watch(
    reporter: &mut Reporter,
    progress: &Arc<Progress>,
    status: Option<&ConnectionStatus>,
    mut there: Option<(&mut Remote, &Cancel)>,
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
                        reporter.take_events(there);
                        // Stops waiting for the other end.
                        if (interrupt::is_pending() || there.has_failed() || there.is_gone()) && there.cut() {
                            cancel.cancel();
                        }
                    }
                    reporter.show(&Figures::from(progress.snapshot()), status);
                }
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the copy ended without a result"),
            }
        }
    })
}

const SHOWN_EVERY: Duration = Duration::from_millis(100);
