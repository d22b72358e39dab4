//! The consuming side of a run, a process of its own.

use super::consume::{connect, lent, read_all};
use super::graphs;
use super::options::{Other, Technique};
use super::task::ShmTask;
use crate::error::{Error, Result};
use crate::stream::Checker;
use crate::{peer, system};

/// Runs a consumer as a process: it says when it is ready, where it has to, and after the run what it saw.
pub(crate) fn peer(task: &ShmTask, other: Option<&dyn Other>) -> Result<()> {
    grebe_flow::short_slices();
    if task.core.is_some() {
        system::stay_on(task.core);
    }
    if !matches!(task.technique, Technique::Pipe | Technique::PlainPipe) {
        peer::end_with_input();
    }
    if task.in_graph {
        return peer::say(&graphs::consume(task)?);
    }
    let mut checker = Checker::new(task.plan.format, task.plan.channels, task.plan.block, task.work)?;
    match task.technique {
        Technique::Shm => lent(task, &mut checker)?,
        Technique::UnixStream => read_all(connect(task)?, task, &mut checker)?,
        Technique::Pipe | Technique::PlainPipe => {
            // What was to be prepared is: it takes a while, in which nothing is to be sent.
            peer::say(&())?;
            read_all(peer::stdin_unbuffered()?, task, &mut checker)?;
        }
        Technique::Other => {
            let other = other.ok_or_else(|| Error::peer("consumer", "it knows no other program"))?;
            other.consume(&task.for_other(), &mut |chunk| {
                checker.frames(chunk, Checker::now_ns());
                checker.is_ended()
            })?;
        }
        Technique::Udp | Technique::Embedded => {
            return Err(Error::peer("consumer", "this technique has no consumer of its own"));
        }
    }
    peer::say(&checker.finish())
}
