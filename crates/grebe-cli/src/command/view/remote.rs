//! `grebe view` of remote targets: a running `grebe serve`, or a server that `ssh` starts.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use grebe_remote::{Channel, Config, Error, Hello, Meet, Remote, Settings};
use grebe_serve::{NoPipes, RemoteViewer, ServerPipes, connect, view_pipe};
use grebe_stages::Uri;
use grebe_view::{Annotator, ChannelSetup, ScopeLink, SourceMenu, ViewOptions};

use super::outcome::print;
use super::settings::{initial, surface};
use crate::cli::{View, ViewTarget};
use crate::command::remote::settings;
use crate::command::serve::stdio::{SHOWS, ShowTask};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::show::{self, Followers, Show, Shown};

/// Shows remote targets; `here` are local ones.
pub(super) fn run(options: &View, here: &[Uri], elsewhere: &[ViewTarget]) -> Result<Ending> {
    refuse(options, here, elsewhere)?;
    interrupt::catch();
    let ways = Arc::new(Connections { options: options.clone(), open: Mutex::default() });
    let shown = elsewhere.iter().map(|place| ways.look(place, &Followers::default()));
    let shown = shown.collect::<Result<Vec<_>>>()?;
    let ended = show::run(&surface(options, false), shown, None);
    ways.close();
    print(options, ended?)
}

/// Connections to remote sources, as long as one is shown.
struct Connections {
    options: View,
    open: Mutex<Vec<RemoteViewer>>,
}

impl Connections {
    /// Connects to a target and shows it.
    fn look(self: &Arc<Self>, place: &ViewTarget, followers: &Followers) -> Result<Shown> {
        let (link, mut viewer) = open(place, &self.options)?;
        let mut shown = look(link, &mut viewer, place, &self.options)?;
        shown.show.sources = Mutex::new(self.menu(place, &viewer, followers));
        shown.show.followers = Arc::clone(followers);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(viewer);
        Ok(shown)
    }

    /// Menu of the other sources of the server.
    fn menu(
        self: &Arc<Self>,
        place: &ViewTarget,
        viewer: &RemoteViewer,
        followers: &Followers,
    ) -> Option<SourceMenu> {
        let ViewTarget::Served(address) = place else { return None };
        let names: Vec<String> = viewer.sources().iter().map(|name| shown_name(name)).collect();
        let (ways, address, shown) = (Arc::clone(self), address.clone(), address.source() - 1);
        let followers = Arc::clone(followers);
        let open = move |number: usize| {
            let place = ViewTarget::Served(address.clone().of_source(number + 1));
            let (ways, followers) = (Arc::clone(&ways), Arc::clone(&followers));
            let (opened, came) = channel();
            // In a thread, because a dead link takes long to fail.
            let look = move || {
                let looked = ways.follow(&place, &followers).map_err(|error| format!("{error:#}"));
                if let Err(unwanted) = opened.send(looked)
                    && let Ok((link, _)) = unwanted.0
                {
                    link.close();
                }
            };
            // Without a thread, the other end sees a closed channel.
            let _ = std::thread::Builder::new().name("grebe-open".into()).spawn(look);
            came
        };
        (names.len() > 1).then(|| SourceMenu { names, shown, open: Box::new(open) })
    }

    /// Replaces a shown source.
    fn follow(
        self: &Arc<Self>,
        place: &ViewTarget,
        followers: &Followers,
    ) -> Result<(ScopeLink, ViewOptions)> {
        let shown = self.look(place, followers)?;
        followers.lock().unwrap_or_else(PoisonError::into_inner).push(shown.link.clone());
        Ok((shown.link.clone(), shown.options()))
    }

    /// Ends all viewers and their servers.
    fn close(&self) {
        drop(std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Remote name in one line.
fn shown_name(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(NAME_MAX).collect()
}

/// Refuses options that exclude each other.
fn refuse(options: &View, here: &[Uri], elsewhere: &[ViewTarget]) -> Result<()> {
    let usage = |why: &str| Err(Usage(why.to_owned()).into());
    if !here.is_empty() {
        return usage("cannot show local and remote streams together: use a command for each");
    }
    if options.spawn.is_some() {
        return usage("--spawn works on this machine only: start the generator on the other one");
    }
    let is_started = |place: &ViewTarget| matches!(place, ViewTarget::Ssh { .. });
    if options.ring.is_some() && !(elsewhere.len() == 1 && is_started(&elsewhere[0])) {
        return usage("--ring needs a single local stream, or ssh://: give it to grebe serve instead");
    }
    if options.history.is_some() && !elsewhere.iter().all(is_started) {
        return usage("--history applies where the stream is: give it to grebe serve instead");
    }
    if options.metrics.metrics.is_some() {
        return usage("--metrics applies where the stream is: give it to grebe serve instead");
    }
    if options.bench.is_some() {
        return usage("--bench needs a local stream");
    }
    Ok(())
}

fn look(link: ScopeLink, viewer: &mut RemoteViewer, place: &ViewTarget, options: &View) -> Result<Shown> {
    let name = place.to_string();
    let controls = viewer.take_controls();
    let mut initial = initial(options)?;
    if initial.channels.is_empty() {
        let told = viewer.channels().iter().map(|it| ChannelSetup {
            name: it.name.clone(),
            unit: it.unit.clone(),
            scale: it.scale,
            offset: it.offset,
            ..ChannelSetup::default()
        });
        initial.channels = told.collect();
    }
    let session = match &options.session {
        _ if options.no_session => None,
        Some(path) => Some(path.clone()),
        None if options.png.is_some() => None,
        None => show::session_of_source(&name),
    };
    let show = Show {
        command: "view",
        initial,
        session,
        is_session_required: options.session.as_ref().is_some_and(|path| path.exists()),
        far: Mutex::new(viewer.take_status()),
        generator: Mutex::new(controls.generator),
        receiver: Mutex::new(controls.receiver),
        remote_keeper: Mutex::new(controls.keeper),
        remote_annotator: Mutex::new(Some(controls.annotator.unwrap_or_else(Annotator::refusing))),
        finder: viewer.finder().cloned(),
        name,
        ..Show::default()
    };
    show.link(link)
}

/// Connects to a target. Pictures arrive while the viewer exists.
fn open(place: &ViewTarget, options: &View) -> Result<(ScopeLink, RemoteViewer)> {
    let program = concat!("grebe ", env!("CARGO_PKG_VERSION"));
    match place {
        ViewTarget::Local(uri) => bail!("{uri} is local"),
        ViewTarget::Served(address) => Ok(connect(address, program, PICTURES_PER_S, interrupt::is_pending)?),
        ViewTarget::Ssh { host, uri } => {
            let mut settings = settings(&Config::of_user()?, host, &options.remote.host_options())?;
            // A cut ssh ends by itself, even after a kill of this process.
            settings.ssh = settings.ssh.watched();
            let task = ShowTask {
                uri: uri.clone(),
                history_bytes: options.history,
                ring: options.ring.clone(),
                last_us: options.last.map(|last| last.as_micros() as u64),
            };
            let pipes = start(&settings, &task, &interrupt::is_pending)?;
            settings.ssh = settings.ssh.unattended();
            let again = move |is_over: &dyn Fn() -> bool| {
                start(&settings, &task, is_over).map_err(|error| match error {
                    Error::NotStarted { why, is_refused: true } => {
                        NoPipes::Ever(format!("{why}; only a new grebe view can ask for a password"))
                    }
                    error => NoPipes::Now(error.to_string()),
                })
            };
            Ok(view_pipe(pipes, again, program, &host.to_string(), PICTURES_PER_S)?)
        }
    }
}

/// Starts a server and waits until it is ready, without a timeout because `ssh` may prompt for a password.
fn start(
    settings: &Settings,
    task: &ShowTask,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<ServerPipes, Error> {
    let hello = Hello::new(&SHOWS, Meet::Here, settings.terms(), task);
    let mut remote = Remote::start(settings, &SHOWS, &hello, is_cancelled)?;
    let Channel { reader, writer, .. } = remote.over_ssh()?;
    let end = move |is_over| {
        if !remote.ends_within(PATIENCE) {
            remote.kill();
        } else if is_over {
            // After the last picture.
            remote.poll();
        }
        remote.last_line()
    };
    Ok(ServerPipes { input: reader, output: writer, end: Box::new(end) })
}

const PICTURES_PER_S: f64 = 60.0;
/// Maximum length of a source's name.
const NAME_MAX: usize = 120;
/// Time for the server to end.
const PATIENCE: Duration = Duration::from_secs(2);
