//! The other end, which `ssh` started: `grebe cp --serve`.
//!
//! When its input ends, the process that started it is gone, and it ends soon. Its output carries two lines, and the
//! data if no other route works. Its events go to standard error.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use grebe_remote::{Dialer, Hello, check_self, event_line, serve};
use grebe_tree::Progress;

use super::figures::Figures;
use super::lines::{
    self, COPIES, CopyTask, Event, FileDone, RECEIVES_INSIDE, ReportLevel, SENDS_DIRECTORY, Task,
};
use super::{nesting, tree};
use crate::cli::Cp;
use crate::command::remote::{PROCESS, failed};
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::event;

pub(super) fn run(options: &Cp) -> Result<Ending> {
    if io::stdin().is_terminal() {
        return Err(Usage("--serve is internal: `grebe cp` starts it by ssh".into()).into());
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
    let ready = lines::ready(is_fresh)
        .with(SENDS_DIRECTORY, nesting::sends_directory(&asked.task))
        .with(RECEIVES_INSIDE, nesting::receives_inside(&asked.task));
    let mut dialer = Dialer::served(terms, &cancel);
    dialer.measures = matches!(asked.task, Task::Send { .. });
    let channel = serve::accept(&meet, &dialer, ready, input, PROCESS)?;
    let status = channel.status.clone();
    let progress = Arc::new(match asked.tells {
        ReportLevel::Files => {
            Progress::with_notify(|done| event(&event_line(&Event::File(FileDone::of(done)))))
        }
        _ => Progress::default(),
    });
    let outcome = thread::scope(|scope| {
        let (is_over, over) = mpsc::channel::<()>();
        if asked.tells >= ReportLevel::Figures {
            scope.spawn(|| report_progress(&progress, over));
        }
        let outcome = tree::run(&asked.task, asked.what.as_ref(), is_fresh, channel, &progress, &cancel);
        drop(is_over);
        outcome
    });
    // Before the other end learns of it by the route of the data, and leaves.
    let ended = match outcome {
        Ok(outcome) if asked.tells >= ReportLevel::Figures => {
            event(&event_line(&Event::Result(outcome)));
            Ending::Good
        }
        Ok(_) => Ending::Good,
        Err(error) => failed(&error),
    };
    if let Some(status) = status {
        // Lets the last message arrive, unless the other end has gone.
        let _ = status.close();
    }
    Ok(ended)
}

/// Whether it receives into an empty destination. The receiver keeps this promise.
fn is_fresh(task: &Task) -> bool {
    match task {
        Task::Receive { destination, .. } => destination.path().is_ok_and(|path| grebe_tree::is_fresh(&path)),
        Task::Send { is_fresh, .. } => *is_fresh,
    }
}

/// Ends in order, within a time: a hanging disk must not keep the process.
fn end_soon() {
    thread::spawn(|| {
        thread::sleep(ENDING_TIME);
        std::process::exit(ending::INTERRUPTED.into());
    });
}

/// Reports progress twice a second.
fn report_progress(progress: &Progress, over: Receiver<()>) {
    while matches!(over.recv_timeout(TOLD_EVERY), Err(mpsc::RecvTimeoutError::Timeout)) {
        event(&event_line(&Event::Progress(Figures::from(progress.snapshot()))));
    }
}

const TOLD_EVERY: Duration = Duration::from_millis(500);
/// Maximum time to flush received data once the other end is gone.
const ENDING_TIME: Duration = Duration::from_secs(5);
