//! The end that `ssh` started: `grebe cp --serve`.
//!
//! Its input is its tether: when that ends, the other end is gone, and so is this one soon. Its output carries two lines, and the data
//! where no other way leads here. What it has to say goes to standard error, in lines for the process that started it.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use grebe_tree::Progress;

use super::bootstrap;
use super::figures::Figures;
use super::lines::{Event, FileDone, Hello, PROTOCOL, Ready, Task, Tells};
use super::meet;
use super::tree;
use super::way::Beside;
use crate::cli::Cp;
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::event;

pub(super) fn run(options: &Cp) -> Result<Ending> {
    if io::stdin().is_terminal() {
        return Err(Usage("--serve is for `grebe cp` at the other end, which starts it by ssh".into()).into());
    }
    serve(options).or_else(|error| Ok(failed(&error)))
}

/// Says why it could not, unless the other end is gone, and knows.
fn failed(error: &anyhow::Error) -> Ending {
    if interrupt::is_pending() {
        return Ending::Interrupted;
    }
    let status = ending::exit_status(error);
    event(&Event::Failed { why: ending::one_line(error), status }.line());
    Ending::Told(status)
}

fn serve(options: &Cp) -> Result<Ending> {
    if let Some(hash) = &options.is {
        bootstrap::check_self(hash)?;
    }
    let cancel = interrupt::cancel();
    let mut input = meet::own_input()?;
    let Some(hello) = meet::hello::<Hello>(&mut input, PROTOCOL, "grebe cp")? else {
        return Ok(Ending::Good);
    };
    interrupt::then(end_soon).for_good();
    let is_fresh = is_fresh(&hello.task);
    let beside = Beside::served(hello.terms, &cancel);
    let channel = meet::meet(&hello.meet, &beside, Ready { is_fresh, ..Ready::of(PROTOCOL) }, input)?;
    let status = channel.status.clone();
    let progress = Arc::new(match hello.tells {
        Tells::Files => Progress::with_notify(|done| event(&Event::File(FileDone::of(done)).line())),
        _ => Progress::default(),
    });
    let outcome = thread::scope(|scope| {
        let (is_over, over) = mpsc::channel::<()>();
        if hello.tells >= Tells::Figures {
            scope.spawn(|| tell(&progress, over));
        }
        let outcome = tree::run(&hello.task, hello.what.as_ref(), is_fresh, channel, &progress, &cancel);
        drop(is_over);
        outcome
    });
    // Before the other end hears of it by the data's way, and goes.
    let ended = match outcome {
        Ok(outcome) if hello.tells >= Tells::Figures => {
            event(&Event::Result(outcome).line());
            Ending::Good
        }
        Ok(_) => Ending::Good,
        Err(error) => failed(&error),
    };
    if let Some(status) = status {
        // What it said last is to arrive; where that cannot be, the other end has gone, and has all.
        let _ = status.close();
    }
    Ok(ended)
}

/// Whether it receives, and nothing is there: what is then promised, the receiver keeps.
fn is_fresh(task: &Task) -> bool {
    match task {
        Task::Receive { destination } => destination.path().is_ok_and(|path| grebe_tree::is_fresh(&path)),
        Task::Send { is_fresh, .. } => *is_fresh,
    }
}

/// What can be ended in order is; a disk that hangs keeps nobody.
fn end_soon() {
    thread::spawn(|| {
        thread::sleep(ENDING_TIME);
        std::process::exit(ending::INTERRUPTED.into());
    });
}

/// Says twice a second how far it is.
fn tell(progress: &Progress, over: Receiver<()>) {
    while matches!(over.recv_timeout(TOLD_EVERY), Err(mpsc::RecvTimeoutError::Timeout)) {
        event(&Event::Progress(Figures::from(progress.snapshot())).line());
    }
}

const TOLD_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to bring to the disk what has come, once the other end is gone.
const ENDING_TIME: Duration = Duration::from_secs(5);
