//! `grebe run`: runs a graph from a file, on this host and others.
//!
//! ```text
//!  grebe run ==ssh==> grebe run --serve on the other host: its part of the graph, start, end      (hosts, serve, lines)
//!            <======= its counters, its outcome
//!  samples:  over the same connection; UDP, else TCP, else the pipes of that ssh, as for `grebe cp`;
//!            between two other hosts directly if one reaches the other                             (direct, peers)
//! ```

mod check;
mod counters;
mod direct;
mod hosts;
mod lines;
mod links;
mod login;
mod pair;
mod peer_connection;
mod peers;
mod remote_host;
mod restart;
mod serve;
mod silence;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context as _, Result};
use grebe_flow::{Error, GraphFile, KindInfo, Kinds, Ports};
use grebe_recording::SampleFile;
use serde_json::{Map, Value};

use crate::cli::{Check, Run};
use crate::ending::{Ending, Usage};
use crate::graph::{Progress, WaitsFor, drive, report};
use crate::output::note;
use crate::units::counted;
use crate::{interrupt, output};

pub(crate) fn run(options: &Run) -> Result<Ending> {
    options.lab.configure();
    if options.serve {
        return serve::run(options);
    }
    let kinds = grebe_stages::kinds();
    if let Some(name) = &options.kinds {
        return describe(name, &kinds, options.json).map(|()| Ending::Good);
    }
    let path = options.graph.as_deref().context("no graph file given")?;
    let file = load(path, &kinds)?;
    let cut = file.has_hosts().then(|| file.cut());
    match &cut {
        Some(cut) => cut.here().map_or(Ok(()), |here| here.file.check_memory())?,
        None => file.check_memory()?,
    }
    if options.check == Some(Check::File) || options.check.is_some() && cut.is_none() {
        let hosts = cut.map(|cut| format!(", {} hosts", cut.parts.len())).unwrap_or_default();
        let (stages, edges) = (file.stages().len(), file.edges().len());
        note!("{} is valid: {stages} stages, {edges} edges{hosts}", path.display());
        return Ok(Ending::Good);
    }
    if options.json
        && let Some(stage) = file.stages().iter().find(|stage| stage.kind == "pipe_out")
    {
        let message = format!("--json and the stage '{}' would both write to standard output", stage.id);
        return Err(Usage(message).into());
    }
    let name = path.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    if let Some(cut) = cut {
        return hosts::run(&name, &file, cut, options);
    }
    // Before anything is opened, so that an interruption leaves nothing behind.
    let insisting = interrupt::insist();
    let graph = file.build(&kinds, &interrupt::cancel(), &mut |note| note!("{note}"))?;
    drop(insisting);
    let followed = file.ends().next().map(|stage| stage.id.clone()).unwrap_or_default();
    let end = "idle_timeout of a source ends the wait".to_owned();
    let waits_for = WaitsFor { source: format!("the sources of {}", path.display()), end };
    let progress = Progress::of(followed).waiting_for(waits_for);
    let (snapshot, ending) = drive(&name, graph, &progress, options.metrics.clone())?;
    report::print_graph(file.ends().map(|stage| stage.id.as_str()), &snapshot, ending, options.json, |_| ())
}

/// Parses the file. Errors are shown at their places, before a summary.
fn load(path: &Path, kinds: &Kinds) -> Result<GraphFile> {
    if SampleFile::format_name(path).is_some() {
        let file = path.display();
        return Err(
            Usage(format!("{file} is a recording, not a graph file: see grebe view, grebe play")).into()
        );
    }
    match GraphFile::load(path, kinds) {
        Err(Error::Mistakes(mistakes)) => {
            // The renderer escapes control characters itself.
            output::say_drawn(&format!("{}\n", mistakes.render(std::io::stderr().is_terminal())));
            let errors = counted(mistakes.iter().len() as u64, "error");
            Err(Usage(format!("{} has {errors}", path.display())).into())
        }
        other => Ok(other?),
    }
}

/// Prints all kinds for people, the schema of one kind, or all schemas.
fn describe(name: &str, kinds: &Kinds, as_json: bool) -> Result<()> {
    let text = match name {
        "" if as_json => {
            let schemas: Map<String, Value> =
                kinds.iter().map(|kind| (kind.name().to_owned(), kind.schema().clone())).collect();
            format!("{:#}\n", Value::Object(schemas))
        }
        "" => list(kinds),
        name => {
            let kind = kinds.get(name).ok_or_else(|| {
                let known: Vec<&str> = kinds.iter().map(KindInfo::name).collect();
                Usage(format!("unknown kind '{name}'; known: {}", known.join(", ")))
            })?;
            format!("{:#}\n", kind.schema())
        }
    };
    output::text(&text)
}

/// Heading, and a test for the ports of its kinds.
type Role = (&'static str, fn(Ports) -> bool);

fn list(kinds: &Kinds) -> String {
    let mut text = String::new();
    let roles: [Role; 3] = [
        ("Sources", |ports| ports.inputs.is_empty()),
        ("Processing", |ports| !ports.inputs.is_empty() && !ports.outputs.is_empty()),
        ("Sinks", |ports| ports.outputs.is_empty()),
    ];
    for (title, is_role) in roles {
        text.push_str(&format!("{title}\n"));
        kinds.iter().filter(|kind| is_role(kind.ports())).for_each(|kind| list_kind(&mut text, kind));
        text.push('\n');
    }
    text.push_str("grebe run --kinds KIND prints the JSON schema of a kind's parameters.\n");
    text
}

fn list_kind(text: &mut String, kind: &KindInfo) {
    text.push_str(&format!("  {:<12}{}\n", kind.name(), on_one_line(kind.about())));
    let ports = kind.ports();
    if ports.inputs.len() > 1 || ports.outputs.len() > 1 {
        let ends = format!("inputs: {}; outputs: {}", ports.inputs.join(", "), ports.outputs.join(", "));
        text.push_str(&format!("    {ends}\n"));
    }
    for param in kind.params() {
        let default = match (&param.default, param.is_required) {
            (_, true) => " [required]".to_owned(),
            (Some(default), false) => format!(" [default: {default}]"),
            (None, false) => String::new(),
        };
        text.push_str(&format!("    {:<16}{}{default}\n", param.name, on_one_line(param.about)));
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
