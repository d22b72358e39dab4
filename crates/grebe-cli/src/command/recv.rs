//! `grebe recv`: receives files from the peer of a ticket.

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use grebe_connection::{Cancel, ConnectionOptions, Ticket, shown};
use grebe_remote::{Accept, Offer, Reception, TransferProgress, TransferReport, receive};
use grebe_scope::Engineering;
use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::{Confirm, Recv};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::{self, note, out};
use crate::transfer::{self, Display, Side};
use crate::units::counted;

pub(crate) fn run(options: &Recv) -> Result<Ending> {
    let (ticket, directory) = places(options)?;
    let made = make(&directory)?;
    let display = Display::new(options.json);
    let (way, cancel) = (display.route(), interrupt::cancel());
    let prompt = Prompt { cancel: cancel.clone(), is_open: Arc::default() };
    let is_asked = prompt.is_open.clone();
    let accept = accept(options.ask, &directory, prompt);
    let sender_waits = options.ask == Confirm::Always;
    let reception = Reception { directory, overwrite: options.overwrite, accept: Some(accept), sender_waits };
    let greeting = reception.clone();
    let connects = ConnectionOptions {
        greet: Some(Arc::new(move || greeting.greeting())),
        ..transfer::options(&options.rendezvous, &way, &cancel)
    };
    let side = Side { rendezvous: &options.rendezvous, there: "grebe send FILE --to", json: options.json };
    let connection = side.meet(ticket, &connects).inspect_err(|_| remove(&made))?;
    let display = RefCell::new(display);
    let received = receive(connection, &reception, &cancel, |now| {
        // A progress line would replace the prompt.
        if !is_asked.load(Ordering::Relaxed) {
            show(&mut display.borrow_mut(), now);
        }
    });
    display.borrow().clear();
    let report = received?;
    transfer::report_skipped(&report.left_out, report.left_out_count);
    print_report(&report, &way, options.json)?;
    Ok(transfer::ending(&report))
}

/// The ticket, if given, and the directory.
fn places(options: &Recv) -> Result<(Option<Ticket>, PathBuf)> {
    let first = options.places.first().filter(|word| transfer::ticket_of(word).is_ok());
    if let (None, [word]) = (first, &options.places[..])
        && transfer::is_like_a_ticket(word)
    {
        // A mistyped ticket would become a directory, and the receiver would wait for ever.
        let word = Zeroizing::new(word.clone());
        return Err(transfer::ticket_of(&word).err().unwrap_or_else(usage));
    }
    let directory = match (&options.places[..], first) {
        ([_, directory], Some(_)) | ([directory], None) => directory.as_str(),
        ([] | [_], _) => ".",
        ([word, _], None) => {
            let word = Zeroizing::new(word.clone());
            return Err(transfer::ticket_of(&word).err().unwrap_or_else(usage));
        }
        _ => return Err(usage()),
    };
    if first.is_some() && options.from.is_some() {
        return Err(usage());
    }
    let ticket = transfer::given_ticket(first.or(options.from.as_ref()).map(String::as_str))?;
    Ok((ticket, Path::new(directory).to_path_buf()))
}

/// Creates the directory if missing. Returns the folders that it made, the innermost first.
fn make(directory: &Path) -> Result<Vec<PathBuf>> {
    if let Some(file) = directory.ancestors().find(|place| place.is_file()) {
        let file = shown(file);
        return Err(Usage(format!("{file} is a file: give a directory to receive into")).into());
    }
    let is_missing = |place: &&Path| !place.as_os_str().is_empty() && !place.exists();
    let missing = directory.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(missing)
}

/// Removes folders that are not needed after all, unless another program uses them by now.
fn remove(made: &[PathBuf]) {
    let _ = made.iter().try_for_each(std::fs::remove_dir);
}

/// Prints the offer, and prompts if requested, or if hidden files would go to the user's own.
fn accept(when: Confirm, directory: &Path, prompt: Prompt) -> Arc<Accept> {
    let is_among_own = is_home_or_here(directory);
    Arc::new(move |offered: &Offer| {
        const NAMES_SHOWN: usize = 8;
        let mut names = offered.names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if offered.names.len() > NAMES_SHOWN {
            names += &format!(" and {} more", offered.names.len() - NAMES_SHOWN);
        }
        let files = counted(offered.files, "file");
        note!("offered: {names} ({files}, {})", transfer::size(offered.bytes));
        let has_hidden = offered.names.iter().any(|name| name.starts_with('.'));
        match when {
            Confirm::Never => true,
            Confirm::Auto if !(is_among_own && has_hidden) => true,
            Confirm::Auto => {
                note!("names that begin with a dot may change how your programs work");
                prompt.prompt()
            }
            Confirm::Always => prompt.prompt(),
        }
    })
}

fn is_home_or_here(directory: &Path) -> bool {
    let same = |other: PathBuf| {
        std::fs::canonicalize(directory)
            .is_ok_and(|place| std::fs::canonicalize(other).is_ok_and(|other| place == other))
    };
    std::env::current_dir().is_ok_and(same) || std::env::home_dir().is_some_and(same)
}

/// Prompt at the terminal.
struct Prompt {
    cancel: Cancel,
    /// A prompt is open.
    is_open: Arc<AtomicBool>,
}

impl Prompt {
    /// Without a terminal, and after Ctrl-C, the answer is negative.
    fn prompt(&self) -> bool {
        if !std::io::stdin().is_terminal() {
            note!("cannot prompt without a terminal: run it in one, or use --ask=never");
            return false;
        }
        self.is_open.store(true, Ordering::Relaxed);
        note!("receive them? [y/N]");
        let (tell, answer) = channel();
        // A read of the terminal cannot be interrupted, so it has its own thread.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let _ = tell.send(read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes"));
        });
        let is_wanted = loop {
            match answer.recv_timeout(Duration::from_millis(50)) {
                Ok(is_wanted) => break is_wanted,
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_cancelled() => {}
                Err(_) => break false,
            }
        };
        self.is_open.store(false, Ordering::Relaxed);
        is_wanted
    }
}

fn usage() -> anyhow::Error {
    Usage("give one ticket and one directory at most".into()).into()
}

fn show(display: &mut Display, now: &TransferProgress) {
    let rtt_us = Some(now.connection.rtt_us).filter(|us| *us > 0);
    let rtt = || rtt_us.map_or("?".into(), |us| Engineering::new(us as f64 / 1e6, "s").to_string());
    display.show(now, || format!("RTT {}", rtt()), || json!({ "rtt_us": rtt_us }));
}

fn print_report(report: &TransferReport, way: &transfer::TransferRoute, json: bool) -> Result<()> {
    let seconds = report.took.as_secs_f64();
    if json {
        let paths: Vec<_> = report.paths.iter().map(|path| path.to_string_lossy()).collect();
        let result = json!({
            "result": {
                "paths": paths,
                "left_out": transfer::left_out_json(&report.left_out),
                "files": report.files,
                "bytes": report.file_bytes,
                "resumed_bytes": report.resumed_bytes,
                "hole_bytes": report.hole_bytes,
                "peer": report.peer.to_string(),
                "route": way.name(),
                "seconds": seconds,
            }
        });
        return output::json(&result);
    }
    for path in &report.paths {
        out!("{}", shown(path))?;
    }
    if report.files == 0 {
        note!("nothing received from {}", report.peer);
    } else {
        note!(
            "received {} in {seconds:.1} s from {}{}, verified",
            transfer::size(report.file_bytes),
            report.peer,
            transfer::there_before(report),
        );
    }
    Ok(())
}
