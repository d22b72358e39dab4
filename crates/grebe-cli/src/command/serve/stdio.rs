//! The server that `ssh` starts: `grebe serve --stdio`, for one viewer over its pipes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use grebe_remote::{Call, Hello, Ready, serve};
use grebe_serve::serve_pipe;
use grebe_stages::Uri;
use serde::{Deserialize, Serialize};

use super::served::{offer, open, stop};
use crate::cli::Serve;
use crate::command::remote::failed;
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::show::RingSaver;
use crate::units;

/// Task of a server: the stream, and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::command) struct ShowTask {
    pub(in crate::command) uri: String,
    pub(in crate::command) history_bytes: Option<usize>,
    /// A folder on the server's machine.
    pub(in crate::command) ring: Option<PathBuf>,
    pub(in crate::command) last_us: Option<u64>,
}

/// Server of a scope. The protocol version changes with the task and the messages.
pub(in crate::command) const SHOWS: Call = Call {
    arguments: "serve --stdio",
    protocol: 2,
    does: "serves",
    instead: "run `grebe serve` on it and use its link",
    can_bootstrap: false,
};

pub(super) fn run(options: &Serve) -> Result<Ending> {
    serve_one(options).or_else(|error| Ok(failed(&error)))
}

fn serve_one(options: &Serve) -> Result<Ending> {
    let mut input = serve::own_input()?;
    let Some(Hello { task, .. }) = serve::hello::<ShowTask>(&mut input, &SHOWS)? else {
        return Ok(Ending::Good);
    };
    let (pipe, is_awaited) = watched(input)?;
    let uri: Uri = units::uri(&task.uri).map_err(|why| Usage(format!("{}: {why}", task.uri)))?;
    let options = Serve {
        uris: vec![uri.clone()],
        history: task.history_bytes.unwrap_or(options.history),
        ring: task.ring,
        last: task.last_us.map(Duration::from_micros),
        ..options.clone()
    };
    let shown = open(&uri, &options)?;
    let offer = offer(&shown, &options)?;
    is_awaited.store(true, Ordering::Release);
    serve::answer(&Ready::of(SHOWS.protocol))?;
    let served = serve_pipe(pipe, io::stdout(), &shown.link, &offer, shown.status());
    shown.show.keeper.iter().for_each(RingSaver::finish);
    stop(vec![shown])?;
    served?;
    Ok(Ending::Good)
}

/// The input as a pipe, and a flag for its reader. If the input ends while a source is still opening, no viewer is
/// left.
fn watched(mut input: serve::Input) -> Result<(io::PipeReader, Arc<AtomicBool>)> {
    let (pipe, mut writes) = io::pipe()?;
    let is_awaited = Arc::new(AtomicBool::new(false));
    let awaited = Arc::clone(&is_awaited);
    std::thread::spawn(move || {
        let _ = io::copy(&mut input, &mut writes);
        if !awaited.load(Ordering::Acquire) {
            interrupt::raise();
        }
    });
    Ok((pipe, is_awaited))
}
