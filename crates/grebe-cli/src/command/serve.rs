//! `grebe serve`: a scope for viewers elsewhere.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use grebe_flow::QueueOptions;
use grebe_serve::{ServeEvent, ServeOptions, Server, serve_pipe};
use grebe_shm::Policy;
use grebe_stages::{Notice, SourceOptions, Uri, open_source};
use grebe_view::{ChannelMeaning, FarOffer, Right, SharedControls, SourceControls};
use serde_json::json;

use super::view::{advice, far::Ready, is_file, setups};
use crate::cli::{Serve, printable};
use crate::ending::Ending;
use crate::generator;
use crate::graph::{listen_for_metrics, tell};
use crate::interrupt;
use crate::output::{note, out};
use crate::receiver;
use crate::show::{Keeper, OnDisk, Scope, Show, Shown, Stoppable};

pub(crate) fn run(options: &Serve) -> Result<Ending> {
    options.lab.configure();
    let shown = open(options)?;
    let offer = FarOffer { controls: controls(&shown), ..offer(options)? };
    let ended = match options.stdio {
        true => serve_one(&shown, &offer),
        false => serve_all(options, &shown, offer),
    };
    // The stream's own error explains a server that shows nothing.
    shown.running.stop().context("the stream failed")?;
    ended
}

/// Serves whoever has the link, until the user ends it.
fn serve_all(options: &Serve, shown: &Shown, offer: FarOffer) -> Result<Ending> {
    interrupt::catch();
    let _published = shown.running.publish("serve");
    let served = listen_for_metrics(options.metrics)?
        .map(|listener| listener.serve([("serve".to_owned(), shown.running.observer())]));
    let _served = served.transpose()?;
    let server = Server::start(
        ServeOptions {
            listen: options.listen,
            hosts: options.hosts.clone(),
            frame_origins: options.frame_origins.clone(),
            viewers_max: usize::from(options.viewers),
            tls: options.tls_cert.clone().zip(options.tls_key.clone()),
            gives_control: options.control,
            offer,
            status: shown.status(),
            tell: Box::new(say),
        },
        shown.link.clone(),
    )?;
    print(options, shown, &server)?;
    let mut said = None;
    while !interrupt::is_pending() {
        std::thread::sleep(POLL);
        let failed = shown.show.failure.get();
        if failed != said {
            if let Some(why) = &failed {
                note!("grebe: the stream failed: {why}; what came before stays until Ctrl-C");
            }
            said = failed;
        }
    }
    server.stop();
    shown.show.keeper.iter().for_each(Keeper::finish);
    Ok(Ending::Interrupted)
}

/// Serves the viewer at the other end of standard input and output, until it is gone.
fn serve_one(shown: &Shown, offer: &FarOffer) -> Result<Ending> {
    out!("{}", Ready::line())?;
    serve_pipe(io::stdin(), io::stdout(), &shown.link, offer, shown.status())?;
    shown.show.keeper.iter().for_each(Keeper::finish);
    Ok(Ending::Good)
}

/// The source with a scope, running.
fn open(options: &Serve) -> Result<Shown> {
    let uri = &options.uri;
    let keeper = options.ring.as_ref().map(|folder| Keeper::new(folder, options.last));
    let show = Show { command: "serve", name: uri.to_string(), keeper, ..Show::default() };
    if let Uri::File(path) = uri
        && let Some(recording) = OnDisk::open(path)?
    {
        recording.file().notes().iter().for_each(|note| tell(Notice::Recording(note.clone())));
        let show = Show {
            is_same_boot: true,
            file_samples: Some(recording.file().len_samples()),
            progress: recording.progress(),
            ..show
        };
        let scope = Scope::of_recording(recording)?;
        return Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show });
    }
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "serve".to_owned(),
        policy: Policy::DropOldest,
        waits: true,
        listens_on: true,
        ends_with_writer: true,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    let source = open_source(uri, from, &mut tell)?;
    // A live stream is never held up by its scope; a file can wait, and should be seen whole.
    let queue = if is_file(uri) { QueueOptions::block } else { QueueOptions::drop_oldest };
    let scope = Scope::with_history(source.stage, queue, options.history);
    let show = Show {
        is_same_boot: !matches!(uri, Uri::Udp(..) | Uri::Vita49(_) | Uri::Soapy(_)),
        file_samples: source.samples,
        failure: scope.failure,
        second_sender: source.second_sender,
        advice: advice(uri, source.address),
        generator: Mutex::new(source.remote.map(generator::remote_of)),
        receiver: Mutex::new(source.tuner.map(receiver::remote_of)),
        ..show
    };
    Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
}

/// What viewers with the second right can change.
fn controls(shown: &Shown) -> SharedControls {
    let Show { generator, receiver, keeper, .. } = &shown.show;
    SharedControls::new(SourceControls {
        generator: generator.lock().unwrap_or_else(PoisonError::into_inner).take(),
        receiver: receiver.lock().unwrap_or_else(PoisonError::into_inner).take(),
        keeper: keeper.as_ref().map(Keeper::for_scope),
    })
}

fn offer(options: &Serve) -> Result<FarOffer> {
    let channels = setups(&options.meanings)?.into_iter();
    Ok(FarOffer {
        name: options.uri.to_string(),
        program: concat!("grebe ", env!("CARGO_PKG_VERSION")).to_owned(),
        channels: channels
            .map(|it| ChannelMeaning { name: it.name, unit: it.unit, scale: it.scale, offset: it.offset })
            .collect(),
        ..FarOffer::default()
    })
}

/// Prints the links, and what to think of before they are handed on.
fn print(options: &Serve, shown: &Shown, server: &Server) -> Result<()> {
    let host = options.hosts.first().cloned().unwrap_or_else(|| reached_at(server.address()).to_string());
    let page = |right| server.page_for(&host, right).unwrap_or_default();
    let link = |right| server.link_for(&host, right).map(|it| it.to_string()).unwrap_or_default();
    let is_local = server.address().ip().is_loopback();
    if !is_local && options.tls_cert.is_none() {
        note!(
            "grebe: whoever is on the way can read the link and the pictures: give --tls-cert and --tls-key, or look by grebe view ssh://"
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
        return out!("{printed}");
    }
    out!("serving {} to up to {} viewers; Ctrl-C ends it", shown.show.name, options.viewers)?;
    out!("  in a browser     {}", page(Right::Look))?;
    out!("  with grebe       grebe view '{}'", link(Right::Look))?;
    if options.control {
        out!("  and who may change what the source makes:")?;
        out!("  in a browser     {}", page(Right::Control))?;
        out!("  with grebe       grebe view '{}'", link(Right::Control))?;
    }
    if is_local {
        out!(
            "  from elsewhere   grebe view ssh://THIS-MACHINE/{}  (or --listen 0.0.0.0:4780)",
            shown.show.name
        )?;
    }
    Ok(())
}

/// An address by which others find what listens there.
fn reached_at(listens: SocketAddr) -> IpAddr {
    if !listens.ip().is_unspecified() {
        return listens.ip();
    }
    // Nothing is sent: the system only says which of its addresses it would be sent from.
    let own = UdpSocket::bind((listens.ip(), 0)).and_then(|socket| {
        let outside = if listens.is_ipv4() { "192.0.2.1:9" } else { "[2001:db8::1]:9" };
        socket.connect(outside)?;
        Ok(socket.local_addr()?.ip())
    });
    own.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

fn say(event: ServeEvent) {
    match event {
        ServeEvent::Came { from, viewers } => note!("grebe: {from} looks ({viewers} now)"),
        ServeEvent::Left { from, viewers, why: None } => note!("grebe: {from} left ({viewers} now)"),
        ServeEvent::Left { from, viewers, why: Some(why) } => {
            note!("grebe: {from} was sent away: {} ({viewers} now)", printable(why.as_bytes()));
        }
        ServeEvent::Changed { from, what } => note!("grebe: {from} wants {}", printable(what.as_bytes())),
        ServeEvent::Refused { from, why } => {
            note!("grebe: {from} was not let in: {}", printable(why.as_bytes()));
        }
        _ => {}
    }
}

const POLL: Duration = Duration::from_millis(50);
