//! From one other machine to another: each end is started from here. The data goes directly between them where the one that sends
//! reaches the one that receives; else it goes through here, from one `ssh` to the other.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use grebe_connection::Purpose;
use grebe_remote::{Channel, Meet, Remote, Route, Via};
use grebe_tree::Error;

use super::Copy;
use super::figures::{Figures, Outcome};
use super::lines::{COPIES, IS_FRESH, Task, Tells};
use crate::cli::SshHost;
use crate::ending::Ending;
use crate::interrupt;

impl Copy<'_> {
    pub(super) fn between(
        &mut self,
        (from, mut send): (&SshHost, Task),
        (to, receive): (&SshHost, Task),
        shown: &str,
    ) -> Result<Ending> {
        let to_settings = self.settings(to)?;
        let from_settings = self.settings(from)?;
        let mut hello = self.hello(&to_settings, receive, to_settings.meet());
        hello.task.tells = if self.teller.tells_files() { Tells::Files } else { Tells::Figures };
        let mut receiver = Remote::start(&to_settings, &COPIES, &hello, &interrupt::is_pending)?;
        self.agree(&receiver);

        let meet = match receiver.ticket(&to_settings, Purpose::Connection)? {
            Some(ticket) => Meet::Connect { ticket: ticket.word().to_string() },
            None => Meet::Here,
        };
        if let Task::Send { is_fresh, .. } = &mut send {
            *is_fresh = receiver.ready().has(IS_FRESH);
        }
        let mut hello = self.hello(&from_settings, send, meet);
        hello.task.what = Some(self.wishes.clone());
        hello.terms.via = to_settings.via;
        let mut sender = match Remote::start(&from_settings, &COPIES, &hello, &interrupt::is_pending) {
            Ok(sender) => sender,
            Err(error) => return Err(self.teller.explain(receiver, error.into())),
        };
        self.agree(&sender);
        let route = match sender.route() {
            Some(Route::Relay) => {
                self.teller.note(&format!("the data goes from {from} to {to} by the relay, over UDP"));
                Route::Relay
            }
            Some(route) => {
                self.teller
                    .note(&format!("the data goes directly from {from} to {to}, over {}", route.name()));
                route
            }
            None => {
                if to_settings.via == Via::Auto {
                    self.teller
                        .note(&format!("{from} does not reach {to}: the data goes through here, over ssh"));
                }
                receiver.turn()?;
                relay(sender.over_ssh()?, receiver.over_ssh()?);
                Route::Ssh
            }
        };
        self.login = self.teller.elapsed();
        let outcome = self.wait(&mut sender, &mut receiver);
        self.teller.clear();
        match outcome {
            Ok(outcome) => {
                // It has been told that all is there, and is about to end.
                sender.ends_within(ENDING_TIME);
                sender.let_go();
                receiver.let_go();
                self.end(&outcome, route, None, shown)
            }
            Err(error) if sender.has_failed() || !receiver.has_failed() && sender.is_lost() => {
                Err(self.teller.explain(sender, error))
            }
            Err(error) => Err(self.teller.explain(receiver, error)),
        }
    }

    /// Says how far it is until the receiver has said what came of it.
    fn wait(&mut self, sender: &mut Remote, receiver: &mut Remote) -> Result<Outcome> {
        let mut figures = Figures::default();
        let mut lost_since = None;
        loop {
            thread::sleep(super::SHOWN_EVERY);
            if interrupt::is_pending() {
                return Err(Error::Cancelled.into());
            }
            // Asked first: what it said before it ended is taken in behind.
            let is_gone = receiver.is_gone();
            self.teller.hear(sender);
            let heard = self.teller.hear(receiver);
            if let Some(now) = heard.figures {
                figures = now;
            }
            self.teller.show(&figures, None);
            if let Some(outcome) = heard.outcome {
                return Ok(outcome);
            }
            if sender.has_failed() || receiver.has_failed() {
                bail!("the copy failed");
            }
            // A sender that was killed is waited for in vain. It may have failed because the receiver did, which says why.
            if sender.is_lost() {
                lost_since.get_or_insert_with(Instant::now);
            }
            if is_gone || lost_since.is_some_and(|since: Instant| since.elapsed() >= ENDING_TIME) {
                return Err(Error::Closed.into());
            }
        }
    }
}

/// Carries the data from one to the other, both ways.
fn relay(one: Channel, other: Channel) {
    carry(one.reader, other.writer);
    carry(other.reader, one.writer);
}

/// Whoever ends, ends the other too: its input is closed.
fn carry(mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>) {
    thread::spawn(move || {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match from.read(&mut block) {
                // How it ended, the ends themselves say.
                Ok(0) | Err(_) => return,
                Ok(bytes) if to.write_all(&block[..bytes]).is_ok() => {}
                Ok(_) => return,
            }
        }
    });
}

const BLOCK_BYTES: usize = 256 << 10;
const ENDING_TIME: Duration = Duration::from_secs(2);
