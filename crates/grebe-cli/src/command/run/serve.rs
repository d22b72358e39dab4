//! The end that `ssh` started: `grebe run --serve`, with a part of a graph that another host runs.
//!
//! Its input is its tether: when that ends, the other end is gone, and this part ends in order.

use std::io::{BufReader, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use grebe_flow::{GraphFile, Running, Snapshot};
use grebe_link::edge::{Outbox, read_messages};
use grebe_remote::{Dialer, Hello, Ready, check_self, serve};
use grebe_ring::Cancel;

use super::check::clock_reading;
use super::lines::{
    FILL_BYTES_MAX, Failed, FillMeter, GONE, JOINS, PartTask, SILENT_FOR, ToHere, ToThere, filler, words,
};
use super::links::{self, Ends};
use super::peers::Peers;
use crate::cli::Run;
use crate::command::remote::{PROCESS, failed};
use crate::ending::{self, Elsewhere, Ending, Usage};
use crate::graph::{About, publish};
use crate::interrupt;

pub(super) fn run(options: &Run) -> Result<Ending> {
    if std::io::stdin().is_terminal() {
        return Err(Usage("--serve is for `grebe run` on another host, which starts it by ssh".into()).into());
    }
    // There is no connection yet: through ssh.
    run_part(options).or_else(|error| Ok(failed(&error)))
}

fn run_part(options: &Run) -> Result<Ending> {
    if let Some(hash) = &options.is {
        check_self(hash)?;
    }
    let cancel = interrupt::cancel();
    let mut input = serve::own_input()?;
    let Some(Hello { meet, terms, task, .. }) = serve::hello::<PartTask>(&mut input, &JOINS)? else {
        return Ok(Ending::Good);
    };
    let part = GraphFile::parse(&task.part, Path::new(&task.name), &links::kinds());
    let part = part.map_err(|mistakes| {
        let said: Vec<_> = mistakes.iter().map(|mistake| mistake.message().to_owned()).collect();
        Usage(format!("its grebe {} does not run that: {}", env!("CARGO_PKG_VERSION"), said.join("; ")))
    })?;
    part.check_memory()?;
    let ends = Ends::of(&part)?.again(task.again);
    let dialer = Dialer::served(terms, &cancel);
    let channel = serve::accept(&meet, &dialer, Ready::of(JOINS.protocol), input, PROCESS)?;
    let (outbox, (tells, told)) = (Arc::new(Outbox::default()), mpsc::channel());
    let line = outbox.connect();
    if task.restarts {
        outbox.hold_ends();
    }
    let (routes, answers, waits) = (ends.routes(|_| true), outbox.clone(), cancel.clone());
    let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
    thread::spawn(move || {
        let mut meter = FillMeter::default();
        let _ = read_messages(reader, &routes, &answers, line, |said| {
            if let Some(filled) = meter.take(said) {
                filled.into_iter().for_each(|filled| answers.say(words(&ToHere::Filled(filled))));
                return;
            }
            match serde_json::from_slice(said) {
                // At once: how long it takes is what is asked.
                Ok(ToThere::Clock(asked)) => answers.say(words(&ToHere::Clock(asked, clock_reading()))),
                Ok(ToThere::Fill(bytes)) => {
                    filler(bytes.min(FILL_BYTES_MAX)).for_each(|words| answers.say(words))
                }
                Ok(said) => {
                    if said == ToThere::End {
                        waits.cancel();
                    }
                    let _ = tells.send(said);
                }
                // What a later version says, this one leaves.
                Err(_) => {}
            }
        });
        answers.close();
        interrupt::raise();
    });
    let (writes, writer) = (outbox.clone(), channel.writer);
    thread::spawn(move || writes.write_to(line, writer));

    let mut peers = Peers::new(outbox.clone(), &ends, task.restarts);
    let (counts, ended) = follow(&task.name, &part, &ends, &mut peers, &outbox, &told, &cancel);
    let failed = ended
        .err()
        .map(|error| Failed { why: ending::one_line(&error), status: ending::exit_status(&error) });
    if failed.is_none() {
        peers.release_ends();
        // What this host has made is to be there before it is said to be done.
        finish(&mut peers, &ends, &counts, &outbox, &told);
    }
    outbox.say(words(&ToHere::Ended { counts: counts.clone(), failed: failed.clone() }));
    if failed.is_some() {
        finish(&mut peers, &ends, &counts, &outbox, &told);
    }
    outbox.finish();
    if outbox.wait_written(LAST_WORDS) {
        // The other end closes the connection once it has heard all.
        while told.recv_timeout(LAST_WORDS).is_ok() {}
    }
    if let Some(status) = channel.status {
        let _ = status.close();
    }
    Ok(failed.map_or(Ending::Good, |failed| Ending::Told(failed.status)))
}

/// Does as it is told, to the end of the graph.
fn follow(
    name: &str,
    part: &GraphFile,
    ends: &Ends,
    peers: &mut Peers,
    outbox: &Arc<Outbox>,
    told: &Receiver<ToThere>,
    cancel: &Cancel,
) -> (Snapshot, Result<()>) {
    let await_word = |word, peers: &mut Peers| match told
        .iter()
        .find(|said| *said != ToThere::Here && !peers.hear(said, ends))
    {
        Some(said) if said == word => Ok(()),
        _ => Err(anyhow!("it was ended before it began")),
    };
    let started = await_word(ToThere::Build, peers).and_then(|()| {
        let mut notify = |note| outbox.say(words(&ToHere::Note(note)));
        let graph = ends.build(part, cancel, &mut notify, |link| peers.lead(link))?;
        outbox.say(words(&ToHere::Built));
        await_word(ToThere::Start, peers)?;
        Ok(graph.start()?)
    });
    match started {
        Ok(running) => drive(name, running, ends, peers, outbox, told),
        Err(error) => (Snapshot::default(), Err(error)),
    }
}

fn drive(
    name: &str,
    running: Running,
    ends: &Ends,
    peers: &mut Peers,
    outbox: &Outbox,
    told: &Receiver<ToThere>,
) -> (Snapshot, Result<()>) {
    let _published = publish(&running, name, About::new());
    let (observe, mut notes) = (running.observer(), running.notes());
    let (mut said_at, mut heard_at) = (Instant::now(), Instant::now());
    while !running.is_ended() {
        let heard = told.recv_timeout(LOOK_EVERY);
        if heard.is_ok() {
            heard_at = Instant::now();
        }
        match heard {
            Ok(ToThere::Stop) => {
                peers.release_ends();
                running.end_sources();
            }
            Ok(ToThere::End) => return stop(running, ends, outbox, &observe),
            Ok(said) => {
                peers.hear(&said, ends);
            }
            Err(RecvTimeoutError::Timeout) if !interrupt::is_pending() && heard_at.elapsed() < SILENT_FOR => {
            }
            // The other end is gone, or somebody here wants to end this process, as a host does that shuts down.
            Err(_) => {
                let (counts, stopped) = stop(running, ends, outbox, &observe);
                let ended = || Elsewhere { what: "it was stopped there".to_owned(), status: GONE };
                return (counts, stopped.and_then(|()| Err(ended().into())));
            }
        }
        if let Some(error) = running.take_error() {
            // What comes from elsewhere would go on.
            let (counts, _) = stop(running, ends, outbox, &observe);
            return (counts, Err(error.into()));
        }
        peers.look(ends);
        notes().into_iter().for_each(|note| outbox.say(words(&ToHere::Note(note))));
        if said_at.elapsed() >= COUNTED_EVERY {
            outbox.say(words(&ToHere::Counts(observe())));
            said_at = Instant::now();
        }
    }
    let ended = running.wait().map(drop);
    (observe(), ended.map_err(Into::into))
}

/// Nothing comes from elsewhere any more: what is here is brought to its end, which may take a disk as long as it takes.
fn stop(
    running: Running,
    ends: &Ends,
    outbox: &Outbox,
    observe: &(impl Fn() -> Snapshot + Sync),
) -> (Snapshot, Result<()>) {
    ends.end_all();
    let stopped = thread::scope(|scope| {
        let stopping = scope.spawn(move || running.stop());
        let mut said_at = Instant::now();
        while !stopping.is_finished() {
            thread::sleep(LOOK_EVERY);
            if said_at.elapsed() >= COUNTED_EVERY {
                outbox.say(words(&ToHere::Counts(observe())));
                said_at = Instant::now();
            }
        }
        stopping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    (observe(), stopped.map(drop).map_err(Into::into))
}

/// What is under way to other hosts arrives there, as long as they are there, and so is the process that runs the graph.
fn finish(peers: &mut Peers, ends: &Ends, counts: &Snapshot, outbox: &Outbox, told: &Receiver<ToThere>) {
    peers.finish();
    let (mut said_at, mut heard_at) = (Instant::now(), Instant::now());
    while !peers.is_finished() {
        let patience = match told.recv_timeout(LOOK_EVERY) {
            Ok(said) => {
                heard_at = Instant::now();
                peers.hear(&said, ends);
                SILENT_FOR
            }
            Err(RecvTimeoutError::Timeout) => SILENT_FOR,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(LOOK_EVERY);
                LAST_WORDS
            }
        };
        if heard_at.elapsed() > patience {
            return;
        }
        peers.look(ends);
        if said_at.elapsed() >= COUNTED_EVERY {
            outbox.say(words(&ToHere::Counts(counts.clone())));
            said_at = Instant::now();
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const COUNTED_EVERY: Duration = Duration::from_millis(250);
/// How long the other end may take to hear how it ended.
const LAST_WORDS: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 256 << 10;
