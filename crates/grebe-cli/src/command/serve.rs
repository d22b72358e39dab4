//! `grebe serve`: serves a scope to remote viewers.

mod served;
pub(super) mod stdio;

use std::time::Duration;

use anyhow::Result;
use grebe_datagram::outgoing_addresses;
use grebe_serve::{ServeEvent, ServeOptions, Served, Server};
use grebe_view::Right;
use serde_json::json;

use self::served::{offer, open, stop};
use crate::cli::{Serve, printable};
use crate::ending::{Ending, Usage};
use crate::graph::listen_for_metrics;
use crate::interrupt;
use crate::output::{self, note, out};
use crate::show::{RingSaver, Shown};

pub(crate) fn run(options: &Serve) -> Result<Ending> {
    options.lab.configure();
    if options.stdio {
        return stdio::run(options);
    }
    refuse(options)?;
    let shown: Vec<Shown> = options.uris.iter().map(|uri| open(uri, options)).collect::<Result<_>>()?;
    let ended = serve_all(options, &shown);
    stop(shown)?;
    ended
}

/// Refuses options that exclude each other.
fn refuse(options: &Serve) -> Result<()> {
    let usage = |why: &str| Err(Usage(why.to_owned()).into());
    match options.uris.len() {
        0 | 1 => Ok(()),
        _ if options.ring.is_some() => usage("--ring needs a single stream: give one URI"),
        SOURCES_MAX.. => usage(&format!("a server has at most {} streams", SOURCES_MAX - 1)),
        _ => Ok(()),
    }
}

/// Serves viewers until Ctrl-C.
fn serve_all(options: &Serve, shown: &[Shown]) -> Result<Ending> {
    interrupt::catch();
    let _published: Vec<_> = shown.iter().map(|shown| shown.running.publish("serve")).collect();
    let metrics = listen_for_metrics(options.metrics.clone())?.map(|listener| {
        listener.serve((1..).zip(shown).map(|(number, shown)| {
            let name = if number == 1 { "serve".to_owned() } else { format!("serve-{number}") };
            (name, shown.running.observer())
        }))
    });
    let _metrics = metrics.transpose()?;
    let served = shown.iter().map(|shown| {
        Ok(Served { link: shown.link.clone(), offer: offer(shown, options)?, status: shown.status() })
    });
    let served = served.collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = shown.iter().map(|shown| shown.show.name.clone()).collect();
    let server = Server::start(
        ServeOptions {
            listen: options.listen,
            hosts: options.hosts.clone(),
            frame_origins: options.frame_origins.clone(),
            viewers_max: usize::from(options.viewers),
            tls: options.tls_cert.clone().zip(options.tls_key.clone()),
            gives_control: options.control,
            tell: Box::new(move |event| say(&names, event)),
        },
        served,
    )?;
    print(options, shown, &server)?;
    let mut said: Vec<_> = shown.iter().map(|shown| (None, shown.running.notes())).collect();
    while !interrupt::is_pending() {
        std::thread::sleep(POLL);
        for (shown, (said, notes)) in shown.iter().zip(&mut said) {
            notes().iter().for_each(|note| note!("{note}"));
            let failed = shown.show.failure.get();
            if failed != *said {
                if let Some(why) = &failed {
                    let name = &shown.show.name;
                    note!("grebe: the stream {name} failed: {why}; its history stays until Ctrl-C");
                }
                *said = failed;
            }
        }
    }
    server.stop();
    shown.iter().filter_map(|shown| shown.show.keeper.as_ref()).for_each(RingSaver::finish);
    Ok(Ending::Interrupted)
}

/// Prints the links, with a warning if they are not protected.
fn print(options: &Serve, shown: &[Shown], server: &Server) -> Result<()> {
    let own = outgoing_addresses(server.address().ip());
    let host = options.hosts.first().cloned().or(own.first().map(ToString::to_string)).unwrap_or_default();
    let to = |source: usize, right| server.link_for(&host, right).map(|it| it.of_source(source));
    let page_of = |source, right| to(source, right).map(|it| it.page()).unwrap_or_default();
    let link_of = |source, right| to(source, right).map(|it| it.to_string()).unwrap_or_default();
    let (page, link) = (|right| page_of(1, right), |right| link_of(1, right));
    let is_local = server.address().ip().is_loopback();
    if !is_local && options.tls_cert.is_none() {
        note!(
            "grebe: warning: the connection is not encrypted: use --tls-cert and --tls-key, or grebe view ssh://"
        );
    }
    if options.json {
        let mut printed = json!({
            "listen": server.address().to_string(), "page": page(Right::Look), "link": link(Right::Look),
        });
        if options.control {
            printed["control_page"] = page(Right::Control).into();
            printed["control_link"] = link(Right::Control).into();
        }
        let sources = (1..).zip(shown).map(|(number, shown)| {
            let mut source = json!({
                "name": shown.show.name, "page": page_of(number, Right::Look), "link": link_of(number, Right::Look),
            });
            if options.control {
                source["control_page"] = page_of(number, Right::Control).into();
                source["control_link"] = link_of(number, Right::Control).into();
            }
            source
        });
        printed["sources"] = sources.collect();
        return output::json(&printed);
    }
    let what = match shown {
        [only] => only.show.name.clone(),
        all => format!("{} streams", all.len()),
    };
    out!("serving {what} to up to {} viewers; Ctrl-C ends it", options.viewers)?;
    out!("  in a browser     {}", page(Right::Look))?;
    out!("  with grebe       grebe view {QUOTE}{}{QUOTE}", link(Right::Look))?;
    if options.control {
        out!("  with control of the source:")?;
        out!("  in a browser     {}", page(Right::Control))?;
        out!("  with grebe       grebe view {QUOTE}{}{QUOTE}", link(Right::Control))?;
    }
    if shown.len() > 1 {
        out!(
            "  these show the first source; for others use the list in the browser, the key & in grebe view, or:"
        )?;
        for (number, shown) in (1..).zip(shown) {
            out!("  &source={number:<8} {}", shown.show.name)?;
        }
    }
    if is_local && let [first, ..] = shown {
        out!(
            "  other machines   grebe view {QUOTE}ssh://THIS-MACHINE/{}{QUOTE}  (or --listen 0.0.0.0:4780)",
            first.show.name
        )?;
    }
    Ok(())
}

/// Shells take `&` for their own; each has another quote.
const QUOTE: char = if cfg!(windows) { '"' } else { '\'' };

fn say(names: &[String], event: ServeEvent) {
    // A single source needs no name.
    let name = |source: usize| names.get(source - 1).filter(|_| names.len() > 1);
    match event {
        ServeEvent::Came { from, source, viewers } => {
            let at = name(source).map(|name| format!(" at {name}")).unwrap_or_default();
            note!("grebe: {from} connected{at} ({viewers} now)");
        }
        ServeEvent::Left { from, viewers, why: None } => note!("grebe: {from} left ({viewers} now)"),
        ServeEvent::Left { from, viewers, why: Some(why) } => {
            note!("grebe: {from} was disconnected: {} ({viewers} now)", printable(why.as_bytes()));
        }
        ServeEvent::Changed { from, source, what } => {
            let of = name(source).map(|name| format!(" of {name}")).unwrap_or_default();
            note!("grebe: {from} requests {}{of}", printable(what.as_bytes()));
        }
        ServeEvent::Refused { from, why } => {
            note!("grebe: {from} was refused: {}", printable(why.as_bytes()));
        }
        _ => {}
    }
}

/// Maximum number of sources.
const SOURCES_MAX: usize = 65;
const POLL: Duration = Duration::from_millis(50);
