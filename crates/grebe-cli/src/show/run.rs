//! The surface that shows streams, until the person ends it.

use anyhow::{Context as _, Result};
use grebe_flow::telemetry;
use grebe_view::{Error, Picture, PngOptions, ScopeLink};

use super::stream::Shown;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::note;

/// Where the picture goes.
pub(crate) enum Surface {
    /// A window, or the terminal where there is no display.
    Window,
    Terminal,
    Png(PngOptions),
}

/// Shows the streams until the person ends it, or the picture is written; then stops the graphs.
pub(crate) fn run(surface: &Surface, shown: Vec<Shown>) -> Result<(Ending, Option<Picture>)> {
    interrupt::catch();
    // A graph that cannot be watched is shown all the same.
    let _published: Vec<_> =
        shown.iter().map(|shown| telemetry::publish(&shown.running, shown.show.command).ok()).collect();
    let links: Vec<ScopeLink> = shown.iter().map(|shown| shown.link.clone()).collect();
    interrupt::then(move || links.iter().for_each(ScopeLink::close));
    let insisting = interrupt::insist();
    let mut picture = None;
    let ended = match (surface, shown.as_slice()) {
        (Surface::Png(png), [only, ..]) => {
            grebe_view::render_png(&only.link, only.options(), png).map(|drawn| {
                note!("wrote {}", png.path.display());
                picture = Some(drawn);
            })
        }
        (Surface::Terminal, [only, ..]) => grebe_view::run_terminal(only.link.clone(), only.options()),
        _ => window(&shown),
    };
    drop(insisting);
    for Shown { running, .. } in shown {
        // The stream's own error explains a scope that got nothing.
        running.stop().context("the stream failed")?;
    }
    match ended {
        _ if interrupt::is_pending() => Ok((Ending::Interrupted, picture)),
        Err(Error::Interrupted) => Ok((Ending::Interrupted, picture)),
        Ok(()) => Ok((Ending::Good, picture)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(feature = "window")]
fn window(shown: &[Shown]) -> Result<(), Error> {
    let scopes = shown.iter().map(|shown| (shown.link.clone(), shown.options())).collect();
    match grebe_view::run_windows(scopes) {
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
    let Some(first) = shown.first() else { return Ok(()) };
    let others = if shown.len() > 1 { format!(", {} alone", first.show.name) } else { String::new() };
    note!("grebe: no window ({why}): showing the stream in the terminal{others}");
    grebe_view::run_terminal(first.link.clone(), first.options())
}
