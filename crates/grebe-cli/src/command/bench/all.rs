//! `grebe bench all`: every bench after the other, each in a process of its own, so that none leaves anything to the next.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use super::printer::write_json;
use crate::cli::Results;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::note;
use crate::this_command::this_command;

/// The name of each in the results, and its arguments.
const BENCHES: [(&str, &[&str]); 6] = [
    ("udp", &["udp"]),
    ("udp-recv", &["udp", "--recv"]),
    ("flow", &["flow"]),
    ("shm", &["shm", "--parts", "shm,pipe,ingress"]),
    ("view", &["view"]),
    ("transfer", &["transfer"]),
];

pub(super) fn run(options: &Results) -> Result<Ending> {
    interrupt::catch();
    let folder = tempfile::tempdir().context("cannot make a directory for the results")?;
    let (mut results, mut failed) = (Map::new(), Vec::new());
    for (name, arguments) in BENCHES {
        let words = format!("grebe bench {}", arguments.join(" "));
        if name == "view"
            && let Some(why) = no_window()
        {
            note!("{words} left out: {why}");
            note!("");
            continue;
        }
        note!("{words}");
        let path = folder.path().join("results.json");
        let mut command = this_command()?;
        command.arg("bench").args(arguments);
        if options.table {
            command.arg("--table");
        }
        if options.json {
            command.arg("--json").stdout(File::create(&path).context("cannot keep the results")?);
        }
        let is_good = finish(&mut command).context(words)?;
        results.extend(take(&path).map(|result| (name.to_owned(), result)));
        if interrupt::is_pending() {
            write_json(options, &results)?;
            return Ok(Ending::Interrupted);
        }
        if !is_good {
            failed.push(name);
        }
        note!("");
    }
    write_json(options, &results)?;
    if !failed.is_empty() {
        bail!("these benches failed, and said why: {}", failed.join(", "));
    }
    Ok(Ending::Good)
}

/// What a bench wrote, if it came to that.
fn take(json: &Path) -> Option<Value> {
    let text = std::fs::read(json).ok()?;
    // The next one writes its own.
    let _ = std::fs::remove_file(json);
    // Behind the results of one that failed stands its error.
    serde_json::Deserializer::from_slice(&text).into_iter().next()?.ok()
}

/// Whether it ended well. Ctrl-C is handed on once: a second one would keep it from tidying up.
fn finish(command: &mut Command) -> Result<bool> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().context("cannot start it")?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for it")? {
            return Ok(status.success());
        }
        if interrupt::is_pending() && !is_told {
            is_told = true;
            hand_on(&mut child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
fn hand_on(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    // To the whole group, as a terminal does: a bench's receivers end by it, too. It was not waited for since it ended, so that
    // its number is still its own.
    let _ = kill_process_group(Pid::from_child(child), Signal::INT);
}

/// A console hands it on by itself.
#[cfg(not(unix))]
fn hand_on(_: &mut Child) {}

/// Why there is no window to measure, if there is none.
fn no_window() -> Option<&'static str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !cfg!(feature = "window") {
        return Some("this grebe was built without its window");
    }
    let needs_server = cfg!(all(unix, not(target_os = "macos")));
    (needs_server && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
        .then_some("there is no display (DISPLAY, WAYLAND_DISPLAY)")
}
