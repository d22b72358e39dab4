//! Which face shows a stream, and what it is told of the source.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use grebe_flow::{Running, Snapshot, telemetry};
use grebe_view::{Loss, PngOptions, ScopeLink, SourceStatus, ThemeChoice, ViewError, ViewOptions};

use crate::command::Ending;
use crate::interrupt;
use crate::report::Losses;

/// Where the picture goes.
pub enum Face {
    /// A window, or the terminal where there is no display.
    Window,
    Terminal,
    Png(PngOptions),
}

/// What is shown, and how.
pub struct Show {
    /// What `grebe top` calls it.
    pub command: &'static str,
    pub face: Face,
    /// The source as the person named it.
    pub name: String,
    /// Whether the frames are stamped with this machine's clock.
    pub is_same_boot: bool,
    pub span_s: Option<f64>,
    pub theme: ThemeChoice,
}

/// Shows the stream until the person ends it, or the picture is written; then stops the graph.
pub fn show(running: Running, link: &ScopeLink, show: Show) -> Result<Ending> {
    interrupt::catch();
    // A graph that cannot be watched is shown all the same.
    let _published = telemetry::publish(&running, show.command).ok();
    let has_returned = Arc::new(AtomicBool::new(false));
    close_on_interrupt(link.clone(), has_returned.clone());
    let ended = match &show.face {
        Face::Png(png) => {
            let shown = grebe_view::render_png(link, options(&running, &show), png);
            shown.map(|_| eprintln!("wrote {}", png.path.display()))
        }
        Face::Terminal => grebe_view::run_terminal(link.clone(), options(&running, &show)),
        Face::Window => window(&running, link, &show),
    };
    has_returned.store(true, Ordering::Release);
    // The stream's own error explains a face that got nothing.
    running.stop().context("the stream failed")?;
    match ended {
        _ if interrupt::is_pending() => Ok(Ending::Interrupted),
        Err(ViewError::Interrupted) => Ok(Ending::Interrupted),
        Ok(()) => Ok(Ending::Good),
        Err(error) => Err(error.into()),
    }
}

/// Has the face closed when the person ends the command. A face whose terminal is gone may be caught in a read that never
/// ends: it has nothing to save, so the process ends without it.
fn close_on_interrupt(link: ScopeLink, has_returned: Arc<AtomicBool>) {
    interrupt::then(move || {
        link.close();
        let has_returned = has_returned.clone();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !has_returned.load(Ordering::Acquire) {
                std::process::exit(130);
            }
        });
    });
}

#[cfg(feature = "window")]
fn window(running: &Running, link: &ScopeLink, show: &Show) -> Result<(), ViewError> {
    match grebe_view::run_window(link.clone(), options(running, show)) {
        Err(ViewError::NoDisplay { why }) => in_terminal(running, link, show, &why),
        ended => ended,
    }
}

#[cfg(not(feature = "window"))]
fn window(running: &Running, link: &ScopeLink, show: &Show) -> Result<(), ViewError> {
    in_terminal(running, link, show, "this grebe was built without its window")
}

fn in_terminal(running: &Running, link: &ScopeLink, show: &Show, why: &str) -> Result<(), ViewError> {
    eprintln!("grebe: no window ({why}): showing the stream in the terminal");
    grebe_view::run_terminal(link.clone(), options(running, show))
}

fn options(running: &Running, show: &Show) -> ViewOptions {
    let (observe, name, is_same_boot) = (running.observer(), show.name.clone(), show.is_same_boot);
    let mut options = ViewOptions::new(move || status(&observe(), &name, is_same_boot));
    options.span = show.span_s;
    options.theme = show.theme;
    options
}

fn status(snapshot: &Snapshot, name: &str, is_same_boot: bool) -> SourceStatus {
    let losses = Losses::of(snapshot);
    let has_network = snapshot.stages.iter().any(|stage| stage.own("lost_frames").is_some());
    let queue = snapshot.queues.iter().fold(Loss::default(), |sum, queue| Loss {
        frames: sum.frames + queue.dropped_frames,
        samples: sum.samples + queue.dropped_samples,
    });
    SourceStatus {
        name: name.to_owned(),
        is_same_boot,
        network: has_network
            .then_some(Loss { frames: losses.network_frames, samples: losses.network_samples }),
        kernel_datagrams: losses.kernel_drops,
        queue: Some(queue),
        refused_datagrams: losses.refused_datagrams,
        notice: None,
    }
}

const PATIENCE: Duration = Duration::from_secs(2);
