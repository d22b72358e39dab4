//! `grebe`, `grebe demo`: a generator in a process of its own, UDP, and a scope.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use grebe_datagram::Options;
use grebe_flow::{Graph, QueueOptions};
use grebe_stages::{SampleFile, UdpSource};
use grebe_view::{ScopeStage, TriggerOptions};

use super::Ending;
use super::view::{HISTORY_BYTES, QUEUE_BATCHES};
use crate::cli::Demo;
use crate::face::{self, Face, Show, Shown};
use crate::generator::{self, Generator};

pub fn run(options: &Demo) -> Result<Ending> {
    if let Some(file) = &options.file {
        // What is wrong with the file is said here, not by a child that nobody hears.
        SampleFile::open(file)?;
    }
    // The port is bound before the generator starts, so that nothing it sends is lost.
    let source = UdpSource::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &Options::default())
        .context("cannot listen on the loopback address")?;
    let address = source.local_addr()?;
    let (scope, link) = ScopeStage::new(HISTORY_BYTES);
    let mut graph = Graph::new();
    let source = graph.add("source", source);
    let scope = graph.add("scope", scope);
    graph.connect(source, scope, QueueOptions::drop_oldest(QUEUE_BATCHES));
    let running = graph.start()?;
    let generator = start(options, address)?;
    let show = Show {
        command: "demo",
        name: format!("demo, {address}"),
        is_same_boot: true,
        span_s: None,
        theme: None,
        spectrum: false,
        channels: Vec::new(),
        trigger: TriggerOptions::default(),
        session: None,
        is_session_required: false,
        file_samples: None,
        failure: face::Failure::default(),
        generator_said: generator.said(),
        generator: Mutex::new(generator.remote().filter(|_| options.file.is_none())),
    };
    let face = if options.term { Face::Terminal } else { Face::Window };
    Ok(face::show(&face, vec![Shown { running, link, show }])?.0)
}

fn start(options: &Demo, to: SocketAddr) -> Result<Generator> {
    let mut command = generator::this()?;
    match &options.file {
        Some(file) => command.arg("play").arg(file).args(["--loop", "--tethered"]),
        None => command.args(["sg", "--channels", "4", "--rate", "25M", "--remote"]).args(WAVES),
    };
    command.args(["--to", &format!("udp://{to}")]);
    Generator::spawn(command.stdout(Stdio::null()))
}

/// A few periods of each in the span that the scope begins with; no two in step, so that the picture moves.
const WAVES: [&str; 4] = ["--wave", "sine,square,triangle,saw", "--frequency", "310,470,630,790"];
