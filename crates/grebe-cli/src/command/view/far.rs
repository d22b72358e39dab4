//! `grebe view` of what is somewhere else: by a link of `grebe serve`, or by a server that the user's own ssh starts there.

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use grebe_serve::{FarPipes, FarViewer, NoPipes, connect, view_pipe};
use grebe_stages::Uri;
use grebe_view::{ChannelSetup, ScopeLink, SourceMenu, ViewOptions};
use serde::{Deserialize, Serialize};

use crate::cli::{Shown as Place, SshHost, View};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::show::{self, Followers, Show, Shown, Stoppable};
use crate::ssh::{NotReady, Purpose, Ssh, word_there};

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
    open: Mutex<Vec<FarViewer>>,
}

impl Ways {
    /// Opens the way to a place, and shows it.
    fn look(self: &Arc<Self>, place: &Place, followers: &Followers) -> Result<Shown> {
        let (link, mut viewer) = open(place, &self.options)?;
        let mut shown = look(link, &mut viewer, place, &self.options)?;
        shown.show.sources = Mutex::new(self.menu(place, &viewer, followers));
        shown.show.followers = Arc::clone(followers);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(viewer);
        Ok(shown)
    }

    /// The other sources of the server that a place is of, if there are any.
    fn menu(
        self: &Arc<Self>,
        place: &Place,
        viewer: &FarViewer,
        followers: &Followers,
    ) -> Option<SourceMenu> {
        let Place::Served(address) = place else { return None };
        let names: Vec<String> = viewer.sources().iter().map(|name| shown_name(name)).collect();
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

    /// Ends all viewers and their servers.
    fn close(&self) {
        drop(std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner)));
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

fn look(link: ScopeLink, viewer: &mut FarViewer, place: &Place, options: &View) -> Result<Shown> {
    let name = place.to_string();
    let controls = viewer.take_controls();
    let given = super::setups(&options.channels.meanings)?;
    let told = viewer.channels().iter().map(|it| ChannelSetup {
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
        far: Mutex::new(viewer.take_status()),
        generator: Mutex::new(controls.generator),
        receiver: Mutex::new(controls.receiver),
        far_keeper: Mutex::new(controls.keeper),
        finder: viewer.finder().cloned(),
        name,
        ..Show::default()
    };
    show.check()?;
    Ok(Shown { running: Stoppable::nothing(), link, show })
}

/// Opens the way to a place: pictures come as long as the viewer is held.
fn open(place: &Place, options: &View) -> Result<(ScopeLink, FarViewer)> {
    let program = concat!("grebe ", env!("CARGO_PKG_VERSION"));
    match place {
        Place::Here(uri) => bail!("{uri} is of this machine"),
        Place::Served(address) => Ok(connect(address, program, PICTURES_PER_S, interrupt::is_pending)?),
        Place::Ssh { host, uri } => {
            // A cut ssh ends by itself, even after a kill of this process.
            let ssh = Ssh::by(options.far.ssh.as_deref())?.watched();
            let pipes = match start(&ssh, host, uri, options, &interrupt::is_pending) {
                Err(NoServer::Interrupted) => return Err(grebe_transfer::Error::Cancelled.into()),
                Err(NoServer::Refused(why) | NoServer::Other(why)) => return Err(why),
                Ok(pipes) => pipes,
            };
            let (ssh, host, uri, options) = (ssh.unattended(), host.clone(), uri.clone(), options.clone());
            let name = host.to_string();
            let again = move |is_over: &dyn Fn() -> bool| {
                start(&ssh, &host, &uri, &options, is_over).map_err(|none| match none {
                    NoServer::Refused(why) => {
                        NoPipes::Ever(format!("{why:#}; only a new grebe view can ask for a password"))
                    }
                    NoServer::Interrupted => NoPipes::Now("it was interrupted".into()),
                    NoServer::Other(why) => NoPipes::Now(format!("{why:#}")),
                })
            };
            Ok(view_pipe(pipes, again, program, &name, PICTURES_PER_S)?)
        }
    }
}

/// Why no server runs there.
enum NoServer {
    Interrupted,
    /// The login was.
    Refused(Error),
    Other(Error),
}

impl From<Error> for NoServer {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Starts a server there and waits until it is ready, as long as `ssh` takes: it may ask for a password.
fn start(
    ssh: &Ssh,
    host: &SshHost,
    uri: &str,
    options: &View,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<FarPipes, NoServer> {
    let program = options.far.remote_path.as_deref().unwrap_or("grebe");
    let line = line_there(program, uri, options.history, options.ring.as_deref(), options.last);
    let by_hand = format!("install OpenSSH, or run `grebe serve {uri}` at {host} and use its link");
    let mut remote = ssh.start(host, &line, |line| Ready::read(line).is_some(), &by_hand)?;
    let told = match remote.ready(&[], is_cancelled) {
        Ok(told) => told,
        Err(NotReady::Interrupted) => return Err(NoServer::Interrupted),
        Err(NotReady::Ended(ended)) => {
            let purpose = Purpose {
                host,
                program,
                arguments: ARGUMENTS,
                remedy: "say where it is: --remote-path /path/to/grebe",
                instead: "or run grebe serve there by hand",
            };
            let why = anyhow!("{}", purpose.why(&ended));
            return Err(if ended.is_refused() { NoServer::Refused(why) } else { NoServer::Other(why) });
        }
    };
    let ready = Ready::read(&told.line).context("the other end is not ready")?;
    if ready.serve != SERVE {
        let own = env!("CARGO_PKG_VERSION");
        return Err(anyhow!(
            "{host} serves in another way than this grebe {own}: have the same one at both ends"
        )
        .into());
    }
    let stdin = remote.stdin().context("cannot write to ssh")?;
    let end = move |is_over| {
        if !remote.has_ended_within(PATIENCE) {
            remote.kill();
        } else if is_over {
            // No picture is in the way any more.
            remote.poll();
        }
        remote.last_words().map(str::to_owned)
    };
    Ok(FarPipes { input: Box::new(told.rest), output: Box::new(stdin), end: Box::new(end) })
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
