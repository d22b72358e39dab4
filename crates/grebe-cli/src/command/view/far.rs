//! `grebe view` of what is somewhere else: by a link of `grebe serve`, or by a server that the user's own ssh starts there.

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use grebe_serve::{FarViewer, connect, view_pipe};
use grebe_stages::Uri;
use grebe_view::{ChannelSetup, ScopeLink, SourceMenu, ViewOptions};
use serde::{Deserialize, Serialize};

use crate::cli::{Shown as Place, SshHost, View};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::show::{self, Followers, Show, Shown, Stoppable};
use crate::ssh::{NotReady, Purpose, Remote, Ssh, word_there};

/// Shows what is elsewhere; `here` has what is not.
pub(super) fn run(options: &View, here: &[Uri], elsewhere: &[Place]) -> Result<Ending> {
    refuse(options, here, elsewhere)?;
    interrupt::catch();
    let ways = Arc::new(Ways { options: options.clone(), open: Mutex::default() });
    let shown = elsewhere.iter().map(|place| ways.look(place, &Followers::default()));
    let shown = shown.collect::<Result<Vec<_>>>()?;
    let ended = show::run(&super::surface(options, false), shown, None);
    ways.close();
    super::print(options, ended?)
}

/// The ways to all that was looked at, as long as any of it is shown.
struct Ways {
    options: View,
    open: Mutex<Vec<Way>>,
}

impl Ways {
    /// Opens the way to a place, and shows it.
    fn look(self: &Arc<Self>, place: &Place, followers: &Followers) -> Result<Shown> {
        let (link, mut way) = Way::open(place, &self.options)?;
        let mut shown = look(link, &mut way, place, &self.options)?;
        shown.show.sources = Mutex::new(self.menu(place, &way, followers));
        shown.show.followers = Arc::clone(followers);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(way);
        Ok(shown)
    }

    /// The other sources of the server that a place is of, if there are any.
    fn menu(self: &Arc<Self>, place: &Place, way: &Way, followers: &Followers) -> Option<SourceMenu> {
        let Place::Served(address) = place else { return None };
        let names: Vec<String> = way.viewer.sources().iter().map(|name| shown_name(name)).collect();
        let (ways, address, shown) = (Arc::clone(self), address.clone(), address.source() - 1);
        let followers = Arc::clone(followers);
        let open = move |number: usize| {
            let place = Place::Served(address.clone().of_source(number + 1));
            let (ways, followers) = (Arc::clone(&ways), Arc::clone(&followers));
            let (opened, came) = channel();
            // A link that is dead takes long to say so.
            let look = move || {
                let looked = ways.follow(&place, &followers).map_err(|error| format!("{error:#}"));
                if let Err(unwanted) = opened.send(looked)
                    && let Ok((link, _)) = unwanted.0
                {
                    link.close();
                }
            };
            // Without a thread the other end hears that nobody says anything.
            let _ = std::thread::Builder::new().name("grebe-open".into()).spawn(look);
            came
        };
        (names.len() > 1).then(|| SourceMenu { names, shown, open: Box::new(open) })
    }

    /// Shows another place in place of one that is shown.
    fn follow(self: &Arc<Self>, place: &Place, followers: &Followers) -> Result<(ScopeLink, ViewOptions)> {
        let shown = self.look(place, followers)?;
        followers.lock().unwrap_or_else(PoisonError::into_inner).push(shown.link.clone());
        Ok((shown.link.clone(), shown.options()))
    }

    fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.into_iter().for_each(Way::close);
    }
}

/// A name from elsewhere, as one line.
fn shown_name(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(NAME_MAX).collect()
}

/// What cannot be had together.
fn refuse(options: &View, here: &[Uri], elsewhere: &[Place]) -> Result<()> {
    let usage = |why: &str| Err(Usage(why.to_owned()).into());
    if !here.is_empty() {
        return usage("show streams of this machine and those of others in commands of their own");
    }
    if options.spawn.is_some() {
        return usage("--spawn is of this machine: start the generator there");
    }
    let is_started = |place: &Place| matches!(place, Place::Ssh { .. });
    if options.ring.is_some() && !(elsewhere.len() == 1 && is_started(&elsewhere[0])) {
        return usage("--ring is of one stream of this machine or of ssh://: give it to grebe serve there");
    }
    if options.history.is_some() && !elsewhere.iter().all(is_started) {
        return usage("--history is of the machine that has the stream: give it to grebe serve there");
    }
    if options.metrics.metrics.is_some() {
        return usage(
            "--metrics is of graphs, and that of what is elsewhere runs there: give it to grebe serve there",
        );
    }
    if options.bench.is_some() {
        return usage("--bench measures the scope of this machine");
    }
    Ok(())
}

fn look(link: ScopeLink, way: &mut Way, place: &Place, options: &View) -> Result<Shown> {
    let name = place.to_string();
    let controls = way.viewer.take_controls();
    let given = super::setups(&options.channels.meanings)?;
    let told = way.viewer.channels().iter().map(|it| ChannelSetup {
        name: it.name.clone(),
        unit: it.unit.clone(),
        scale: it.scale,
        offset: it.offset,
        ..ChannelSetup::default()
    });
    let session = match &options.session {
        _ if options.no_session => None,
        Some(path) => Some(path.clone()),
        None if options.png.is_some() => None,
        None => show::session_of_source(&name),
    };
    let show = Show {
        command: "view",
        span_s: options.span.map(|span| span.as_secs_f64()),
        theme: options.theme,
        spectrum: options.spectrum || options.band.is_some(),
        waterfall: options.waterfall,
        xy: options.xy || options.symbol_rate.is_some(),
        symbol_rate_hz: options.symbol_rate,
        band_hz: options.band,
        channels: if given.is_empty() { told.collect() } else { given },
        lanes: super::lanes(&options.channels)?,
        trigger: options.trigger.options(),
        session,
        is_session_required: options.session.as_ref().is_some_and(|path| path.exists()),
        far: Mutex::new(way.viewer.take_status()),
        generator: Mutex::new(controls.generator),
        receiver: Mutex::new(controls.receiver),
        far_keeper: Mutex::new(controls.keeper),
        finder: way.viewer.finder().cloned(),
        name,
        ..Show::default()
    };
    show.check()?;
    Ok(Shown { running: Stoppable::nothing(), link, show })
}

/// How pictures come, as long as this is held.
struct Way {
    viewer: FarViewer,
    /// The server there, if it was started for this.
    remote: Option<Remote>,
}

impl Way {
    fn open(place: &Place, options: &View) -> Result<(ScopeLink, Way)> {
        let program = concat!("grebe ", env!("CARGO_PKG_VERSION"));
        match place {
            Place::Here(uri) => bail!("{uri} is of this machine"),
            Place::Served(address) => {
                let (link, viewer) = connect(address, program, PICTURES_PER_S, interrupt::is_pending)?;
                Ok((link, Way { viewer, remote: None }))
            }
            Place::Ssh { host, uri } => {
                let there = start(host, uri, options)?;
                let (mut remote, stdin, rest) = there;
                let opened = view_pipe(rest, stdin, program, &host.to_string(), PICTURES_PER_S);
                let (link, viewer) = opened.map_err(|error| {
                    let words = remote.last_words().map(|words| format!(": {words}")).unwrap_or_default();
                    anyhow!("{error}{words}")
                })?;
                Ok((link, Way { viewer, remote: Some(remote) }))
            }
        }
    }

    /// Ends it: what was started for this ends with its input.
    fn close(self) {
        let Way { viewer, remote } = self;
        drop(viewer);
        if let Some(mut remote) = remote {
            if remote.has_ended_within(PATIENCE) {
                remote.poll();
            } else {
                remote.let_go();
            }
        }
    }
}

type Pipes = (Remote, std::process::ChildStdin, std::io::BufReader<std::process::ChildStdout>);

/// Starts a server there and waits until it is ready, as long as `ssh` takes: it may ask for a password.
fn start(host: &SshHost, uri: &str, options: &View) -> Result<Pipes> {
    let ssh = Ssh::by(options.far.ssh.as_deref())?;
    let program = options.far.remote_path.as_deref().unwrap_or("grebe");
    let line = line_there(program, uri, options.history, options.ring.as_deref(), options.last);
    let by_hand = format!("install OpenSSH, or run `grebe serve {uri}` at {host} and use its link");
    let mut remote = ssh.start(host, &line, |line| Ready::read(line).is_some(), &by_hand)?;
    let told = match remote.ready(&[], interrupt::is_pending) {
        Ok(told) => told,
        Err(NotReady::Interrupted) => return Err(grebe_transfer::Error::Cancelled.into()),
        Err(NotReady::Ended(ended)) => {
            let purpose = Purpose {
                host,
                program,
                arguments: ARGUMENTS,
                remedy: "say where it is: --remote-path /path/to/grebe",
                instead: "or run grebe serve there by hand",
            };
            bail!("{}", purpose.why(&ended));
        }
    };
    let ready = Ready::read(&told.line).ok_or_else(|| anyhow!("the other end is not ready"))?;
    if ready.serve != SERVE {
        bail!(
            "{host} serves in another way than this grebe {}: have the same one at both ends",
            env!("CARGO_PKG_VERSION")
        );
    }
    let stdin = remote.stdin().ok_or_else(|| anyhow!("cannot write to ssh"))?;
    Ok((remote, stdin, told.rest))
}

/// The command there. A ring is a folder there, and how much of what came last is kept of it.
fn line_there(
    program: &str,
    uri: &str,
    history: Option<usize>,
    ring: Option<&Path>,
    last: Option<Duration>,
) -> String {
    let history = history.map(|bytes| format!(" --history {bytes}")).unwrap_or_default();
    let ring =
        ring.map(|folder| format!(" --ring {}", word_there(&folder.to_string_lossy()))).unwrap_or_default();
    let last = last.map(|last| format!(" --last {}us", last.as_micros())).unwrap_or_default();
    format!("{} {ARGUMENTS}{history}{ring}{last} -- {}", word_there(program), word_there(uri))
}

/// What a server prints for who started it, before its first message.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::command) struct Ready {
    serve: u32,
}

impl Ready {
    pub(in crate::command) fn line() -> String {
        // A name and a number: it cannot fail.
        serde_json::to_string(&Ready { serve: SERVE }).unwrap_or_default()
    }

    fn read(line: &str) -> Option<Ready> {
        serde_json::from_str(line.trim()).ok()
    }
}

/// Changes with what is said between the two.
const SERVE: u32 = 1;
const ARGUMENTS: &str = "serve --stdio";
const PICTURES_PER_S: f64 = 60.0;
/// Of the name of a source, in letters.
const NAME_MAX: usize = 120;
/// What a server there may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_there_has_the_options_that_are_of_there() {
        assert_eq!(
            line_there("grebe", "udp://:5000", None, None, None),
            "grebe serve --stdio -- udp://:5000"
        );
        let (ring, last) = (Some(Path::new("/data/my box")), Some(Duration::from_millis(1500)));
        let line = line_there("~/bin/grebe", "shm://adc?readers=1&memory=1G", Some(4 << 30), ring, last);
        assert_eq!(
            line,
            "~/bin/grebe serve --stdio --history 4294967296 --ring '/data/my box' --last 1500000us -- 'shm://adc?readers=1&memory=1G'"
        );
    }
}
