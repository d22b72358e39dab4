//! `grebe`, `grebe demo`: a generator process, UDP, and a scope.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use grebe_recording::SampleFile;
use grebe_stages::{SourceOptions, open_source};

use crate::cli::Demo;
use crate::ending::Ending;
use crate::generator::Generator;
use crate::graph::print_notice;
use crate::show::{self, HISTORY_BYTES, Show, Surface};
use crate::this_command::this_command;

pub(crate) fn run(options: &Demo) -> Result<Ending> {
    if let Some(file) = &options.file {
        // Checked here, because nobody sees the errors of the child.
        SampleFile::open(file)?;
    }
    // The port is bound before the generator starts, so that no frame is lost.
    let uri = "udp://127.0.0.1:0".parse()?;
    let source = open_source(&uri, SourceOptions::default(), &mut print_notice)?;
    let address = source.address.context("the system does not report the chosen port")?;
    let show = Show {
        command: "demo",
        name: format!("demo, {address}"),
        is_same_boot: true,
        opener: Some(super::view::opener()),
        ..Show::default()
    };
    let mut shown = show.source(&uri, source, HISTORY_BYTES)?;
    let generator = start(options, address)?;
    // The demo has its own sender.
    shown.show.advice = None;
    shown.show.generator_said = generator.last_error();
    shown.show.generator = Mutex::new(generator.remote().filter(|_| options.file.is_none()));
    let surface = if options.term { Surface::Terminal } else { Surface::Window };
    Ok(show::run(&surface, vec![shown], None)?.0)
}

fn start(options: &Demo, to: SocketAddr) -> Result<Generator> {
    let mut command = this_command()?;
    match &options.file {
        Some(file) => command.arg("play").arg(file).args(["--repeat", "--tethered"]),
        None => command.args(["sg", "--channels", "4", "--rate", "25M", "--remote"]).args(WAVES),
    };
    command.args(["--to", &format!("udp://{to}")]);
    Generator::spawn(command.stdout(Stdio::null()))
}

/// A few periods of each wave in the first time span, out of step so that the picture moves.
const WAVES: [&str; 4] = ["--wave", "sine,square,triangle,saw", "--frequency", "310,470,630,790"];
