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
use grebe_remote::{Dialer, Hello, check_self, event_line, serve};
use grebe_tree::Progress;

use super::figures::Figures;
use super::lines::{self, COPIES, CopyTask, Event, FileDone, Task, Tells};
use super::tree;
use crate::cli::Cp;
use crate::command::remote::{PROCESS, failed};
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::event;

pub(super) fn run(options: &Cp) -> Result<Ending> {
    if io::stdin().is_terminal() {
        return Err(Usage("--serve is for `grebe cp` at the other end, which starts it by ssh".into()).into());
    }
    run_task(options).or_else(|error| Ok(failed(&error)))
}

fn run_task(options: &Cp) -> Result<Ending> {
    if let Some(hash) = &options.is {
        check_self(hash)?;
    }
    let cancel = interrupt::cancel();
    let mut input = serve::own_input()?;
    let Some(Hello { meet, terms, task: asked, .. }) = serve::hello::<CopyTask>(&mut input, &COPIES)? else {
        return Ok(Ending::Good);
    };
    interrupt::then(end_soon).for_good();
    let is_fresh = is_fresh(&asked.task);
    let dialer = Dialer::served(terms, &cancel);
    let channel = serve::accept(&meet, &dialer, lines::ready(is_fresh), input, PROCESS)?;
    let status = channel.status.clone();
    let progress = Arc::new(match asked.tells {
        Tells::Files => Progress::with_notify(|done| event(&event_line(&Event::File(FileDone::of(done))))),
        _ => Progress::default(),
    });
    let outcome = thread::scope(|scope| {
        let (is_over, over) = mpsc::channel::<()>();
        if asked.tells >= Tells::Figures {
            scope.spawn(|| tell(&progress, over));
        }
        let outcome = tree::run(&asked.task, asked.what.as_ref(), is_fresh, channel, &progress, &cancel);
        drop(is_over);
        outcome
    });
    // Before the other end hears of it by the data's way, and goes.
    let ended = match outcome {
        Ok(outcome) if asked.tells >= Tells::Figures => {
            event(&event_line(&Event::Result(outcome)));
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
        event(&event_line(&Event::Progress(Figures::from(progress.snapshot()))));
    }
}

const TOLD_EVERY: Duration = Duration::from_millis(500);
/// How long it may take to bring to the disk what has come, once the other end is gone.
const ENDING_TIME: Duration = Duration::from_secs(5);
