//! Runs a part of a graph for a coordinator: `grebe run --serve`, which `ssh` starts.
//!
//! When its input ends, the coordinator is gone, and this part ends in order.

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
    FILL_BYTES_MAX, Failed, FillMeter, GONE, JOINS, PartTask, SILENT_FOR, ToCoordinator, ToHost, filler,
    words,
};
use super::links::{self, Ends};
use super::peers::Peers;
use crate::cli::Run;
use crate::command::remote::{PROCESS, failed};
use crate::ending::{self, Ending, OnOtherHost, Usage};
use crate::graph::{About, publish};
use crate::interrupt;

pub(super) fn run(options: &Run) -> Result<Ending> {
    if std::io::stdin().is_terminal() {
        return Err(Usage("--serve is internal: `grebe run` starts it by ssh".into()).into());
    }
    // Before the connection exists, messages go through ssh.
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
    let ends = Ends::of(&part)?.restarted(task.again);
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
                filled.into_iter().for_each(|filled| answers.say(words(&ToCoordinator::Filled(filled))));
                return;
            }
            match serde_json::from_slice(said) {
                // Answered at once, because the round trip is measured.
                Ok(ToHost::Clock(asked)) => answers.say(words(&ToCoordinator::Clock(asked, clock_reading()))),
                Ok(ToHost::Fill(bytes)) => {
                    filler(bytes.min(FILL_BYTES_MAX)).for_each(|words| answers.say(words))
                }
                Ok(said) => {
                    if said == ToHost::End {
                        waits.cancel();
                    }
                    let _ = tells.send(said);
                }
                // Messages of a later version are ignored.
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
        // Files are complete before this host reports the end.
        finish(&mut peers, &ends, &counts, &outbox, &told);
    }
    outbox.say(words(&ToCoordinator::Ended { counts: counts.clone(), failed: failed.clone() }));
    if failed.is_some() {
        finish(&mut peers, &ends, &counts, &outbox, &told);
    }
    outbox.finish();
    if outbox.wait_written(LAST_WORDS) {
        // The coordinator closes the connection after the last message.
        while told.recv_timeout(LAST_WORDS).is_ok() {}
    }
    if let Some(status) = channel.status {
        let _ = status.close();
    }
    Ok(failed.map_or(Ending::Good, |failed| Ending::Reported(failed.status)))
}

/// Obeys messages until the end of the graph.
fn follow(
    name: &str,
    part: &GraphFile,
    ends: &Ends,
    peers: &mut Peers,
    outbox: &Arc<Outbox>,
    told: &Receiver<ToHost>,
    cancel: &Cancel,
) -> (Snapshot, Result<()>) {
    let await_word = |word, peers: &mut Peers| match told
        .iter()
        .find(|said| *said != ToHost::Here && !peers.handle(said, ends))
    {
        Some(said) if said == word => Ok(()),
        _ => Err(anyhow!("ended before the start")),
    };
    let started = await_word(ToHost::Build, peers).and_then(|()| {
        let mut notify = |note| outbox.say(words(&ToCoordinator::Note(note)));
        let graph = ends.build(part, cancel, &mut notify, |link| peers.lead(link))?;
        outbox.say(words(&ToCoordinator::Built));
        await_word(ToHost::Start, peers)?;
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
    told: &Receiver<ToHost>,
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
            Ok(ToHost::Stop) => {
                peers.release_ends();
                running.end_sources();
            }
            Ok(ToHost::End) => return stop(running, ends, outbox, &observe),
            Ok(said) => {
                peers.handle(&said, ends);
            }
            Err(RecvTimeoutError::Timeout) if !interrupt::is_pending() && heard_at.elapsed() < SILENT_FOR => {
            }
            // The coordinator is gone, or this host shuts down.
            Err(_) => {
                let (counts, stopped) = stop(running, ends, outbox, &observe);
                let ended = || OnOtherHost { what: "ended on that host".to_owned(), status: GONE };
                return (counts, stopped.and_then(|()| Err(ended().into())));
            }
        }
        if let Some(error) = running.take_error() {
            // Data from other hosts would continue.
            let (counts, _) = stop(running, ends, outbox, &observe);
            return (counts, Err(error.into()));
        }
        peers.poll(ends);
        notes().into_iter().for_each(|note| outbox.say(words(&ToCoordinator::Note(note))));
        if said_at.elapsed() >= COUNTED_EVERY {
            outbox.say(words(&ToCoordinator::Counts(observe())));
            said_at = Instant::now();
        }
    }
    let ended = running.wait().map(drop);
    (observe(), ended.map_err(Into::into))
}

/// Ends all streams from other hosts, and processes queued samples. A disk may take its time.
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
                outbox.say(words(&ToCoordinator::Counts(observe())));
                said_at = Instant::now();
            }
        }
        stopping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    (observe(), stopped.map(drop).map_err(Into::into))
}

/// Waits until queued data has arrived at other hosts, as long as they and the coordinator are up.
fn finish(peers: &mut Peers, ends: &Ends, counts: &Snapshot, outbox: &Outbox, told: &Receiver<ToHost>) {
    peers.finish();
    let (mut said_at, mut heard_at) = (Instant::now(), Instant::now());
    while !peers.is_finished() {
        let patience = match told.recv_timeout(LOOK_EVERY) {
            Ok(said) => {
                heard_at = Instant::now();
                peers.handle(&said, ends);
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
        peers.poll(ends);
        if said_at.elapsed() >= COUNTED_EVERY {
            outbox.say(words(&ToCoordinator::Counts(counts.clone())));
            said_at = Instant::now();
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const COUNTED_EVERY: Duration = Duration::from_millis(250);
/// Time for the coordinator to receive the outcome.
const LAST_WORDS: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 256 << 10;
