//! `grebe recv`: files from whoever holds the other end of a ticket.

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use grebe_scope::Engineering;
use grebe_transfer::{
    Accept, Error, Offered, ReceiveListener, ReceiveOptions, ReceiveProgress, ReceiveReport, Ticket, receive,
    shown,
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::cli::{AskWhen, Recv};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::{self, note, out};
use crate::transfer::{self, Display};

pub(crate) fn run(options: &Recv) -> Result<Ending> {
    let (ticket, directory) = places(options)?;
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let way = transfer::Way::default();
    let receives = ReceiveOptions {
        overwrite: options.overwrite,
        asks: options.ask != AskWhen::Never,
        accept: Some(accept(options.ask, &directory)),
        state: None,
        memory_bytes_max: options.memory as u64,
        via: options.meeting.via,
        answer_within: options.meeting.wait,
        keep_trying: options.meeting.keep_trying,
        cancel: interrupt::cancel(),
        notify: way.notify(),
    };
    let display = RefCell::new(Display::new(options.json));
    let began = RefCell::new(None);
    let on_progress =
        |arrival: &ReceiveProgress| show(&mut display.borrow_mut(), &mut began.borrow_mut(), arrival);
    let received = match ticket {
        Some(ticket) => receive(&ticket, &directory, &receives, on_progress),
        None => {
            let meeting = &options.meeting;
            let mut listener = transfer::listen(meeting, ReceiveListener::bind)?;
            transfer::advertise(&mut listener.ticket, meeting)?;
            transfer::announce(&listener.ticket, meeting, "grebe send FILE --to", options.json)?;
            listener.receive(&directory, &receives, on_progress)
        }
    };
    display.borrow().clear();
    match received {
        Ok(received) => {
            transfer::tell_left_out(&received.left_out);
            for renamed in received.renamed.iter().take(RENAMED_SHOWN) {
                note!("renamed: {} is {} here", renamed.name, shown(&renamed.path));
            }
            if received.renamed.len() > RENAMED_SHOWN {
                note!("renamed: {} more; --json has them all", received.renamed.len() - RENAMED_SHOWN);
            }
            tell(&received, &way, options.json)?;
            Ok(if received.left_out.is_empty() { Ending::Good } else { Ending::Partial })
        }
        Err(error @ Error::Cancelled) => {
            note!("{error}");
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

/// The ticket, if one was given, and the directory.
fn places(options: &Recv) -> Result<(Option<Ticket>, PathBuf)> {
    let first = options.places.first().filter(|word| transfer::ticket_of(word).is_ok());
    if let (None, [word]) = (first, &options.places[..])
        && transfer::is_like_a_ticket(word)
    {
        // A directory of that name would be made, and nobody would ever come.
        let word = Zeroizing::new(word.clone());
        return Err(transfer::ticket_of(&word).err().map_or_else(usage, Into::into));
    }
    let directory = match (&options.places[..], first) {
        ([_, directory], Some(_)) | ([directory], None) => directory.as_str(),
        ([] | [_], _) => ".",
        ([word, _], None) => {
            // The error says what is wrong with the ticket, and does not repeat it: it is a secret.
            let word = Zeroizing::new(word.clone());
            return Err(transfer::ticket_of(&word).err().map_or_else(usage, Into::into));
        }
        _ => return Err(usage()),
    };
    if first.is_some() && options.from.is_some() {
        return Err(usage());
    }
    let ticket = transfer::given_ticket(first.or(options.from.as_ref()).map(String::as_str))?;
    Ok((ticket, Path::new(directory).to_path_buf()))
}

/// Says what is offered, and asks where the user wants to be asked, or where hidden files would come among the user's own.
fn accept(when: AskWhen, directory: &Path) -> Accept {
    let is_among_own = is_home_or_here(directory);
    Arc::new(move |offered: &Offered| {
        const NAMES_SHOWN: usize = 8;
        let mut names = offered.names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if offered.names.len() > NAMES_SHOWN {
            names += &format!(" and {} more", offered.names.len() - NAMES_SHOWN);
        }
        let files = if offered.files == 1 { "1 file".into() } else { format!("{} files", offered.files) };
        note!("offered: {names} ({files}, {})", transfer::size(offered.bytes));
        let has_hidden = offered.names.iter().any(|name| name.starts_with('.'));
        match when {
            AskWhen::Never => true,
            AskWhen::Auto if !(is_among_own && has_hidden) => true,
            AskWhen::Auto => {
                note!("names that begin with a dot may change how your programs work");
                is_wanted()
            }
            AskWhen::Always => is_wanted(),
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

/// Asks at the terminal; without one the answer is no.
fn is_wanted() -> bool {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        note!("nobody can be asked here: name another directory, or say --ask=never");
        return false;
    }
    note!("take them? [y/N]");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).is_ok_and(|_| matches!(answer.trim(), "y" | "Y" | "yes"))
}

const RENAMED_SHOWN: usize = 20;

fn usage() -> anyhow::Error {
    Usage("give one ticket and one directory at most".into()).into()
}

fn show(display: &mut Display, began: &mut Option<(Instant, u64)>, arrival: &ReceiveProgress) {
    // Bytes of an earlier session say nothing about the rate.
    let (since, before) = *began.get_or_insert((Instant::now(), arrival.received_bytes));
    let rate = (arrival.received_bytes - before) as f64 / since.elapsed().as_secs_f64().max(0.1);
    display.show(
        arrival.received_bytes,
        arrival.total_bytes,
        || {
            format!(
                "{}  RTT {}  {}",
                Engineering::new(rate * 8.0, "bit/s"),
                arrival.rtt_us.map_or("?".into(), |us| Engineering::new(us as f64 / 1e6, "s").to_string()),
                transfer::time_left(arrival.total_bytes - arrival.received_bytes, rate),
            )
        },
        || {
            json!({
                "progress": {
                    "bytes": arrival.received_bytes,
                    "total_bytes": arrival.total_bytes,
                    "rate_bits_per_s": rate * 8.0,
                    "rtt_us": arrival.rtt_us,
                }
            })
        },
    );
}

fn tell(received: &ReceiveReport, way: &transfer::Way, json: bool) -> Result<()> {
    let seconds = received.took.as_secs_f64();
    if json {
        let paths: Vec<_> = received.paths.iter().map(|path| path.to_string_lossy()).collect();
        let result = json!({
            "result": {
                "paths": paths,
                "left_out": transfer::left_out_json(received.left_out.iter()),
                "renamed": received
                    .renamed
                    .iter()
                    .map(|it| json!({ "name": it.name, "path": it.path.to_string_lossy() }))
                    .collect::<Vec<_>>(),
                "bytes": received.content_bytes,
                "resumed_bytes": received.resumed_bytes,
                "peer": received.peer.to_string(),
                "way": way.name(),
                "seconds": seconds,
            }
        });
        return output::json(&result);
    }
    for path in &received.paths {
        out!("{}", shown(path))?;
    }
    let resumed = match received.resumed_bytes {
        0 => String::new(),
        bytes => format!(", {} of it were there", transfer::size(bytes)),
    };
    note!(
        "received {}{resumed} in {seconds:.1} s from {}, verified",
        transfer::size(received.content_bytes),
        received.peer
    );
    Ok(())
}
