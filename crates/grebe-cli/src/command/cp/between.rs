//! Copies between two other machines. Both ends are started from here. The data goes directly if the sender reaches
//! the receiver, else through here by two `ssh` connections.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use grebe_connection::Purpose;
use grebe_remote::{Channel, Meet, Remote, Route, Via};
use grebe_tree::Error;

use super::Copy;
use super::figures::{Figures, Outcome};
use super::lines::{COPIES, IS_FRESH, RECEIVES_INSIDE, ReportLevel, SENDS_DIRECTORY, Task};
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
        hello.task.tells =
            if self.reporter.reports_files() { ReportLevel::Files } else { ReportLevel::Figures };
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
        hello.task.what = Some(self.copy_options.clone());
        hello.terms.via = to_settings.via;
        let mut sender = match Remote::start(&from_settings, &COPIES, &hello, &interrupt::is_pending) {
            Ok(sender) => sender,
            Err(error) => return Err(self.reporter.explain(receiver, error.into())),
        };
        self.agree(&sender);
        let is_nested = sender.ready().has(SENDS_DIRECTORY) && receiver.ready().has(RECEIVES_INSIDE);
        self.note_nesting(is_nested);
        let route = match sender.route() {
            Some(Route::Relay) => {
                self.reporter.note(&format!("the data goes from {from} to {to} over UDP by the relay"));
                Route::Relay
            }
            Some(route) => {
                self.reporter
                    .note(&format!("the data goes directly from {from} to {to}, over {}", route.name()));
                route
            }
            None => {
                if to_settings.via == Via::Auto {
                    self.reporter.note(&format!(
                        "{from} cannot reach {to}: the data goes through this machine, over ssh"
                    ));
                }
                receiver.turn()?;
                relay(sender.over_ssh()?, receiver.over_ssh()?);
                Route::Ssh
            }
        };
        self.login = self.reporter.elapsed();
        let outcome = self.wait(&mut sender, &mut receiver);
        self.reporter.clear();
        match outcome {
            Ok(outcome) => {
                // The sender knows that the copy is complete, and is about to end.
                sender.ends_within(ENDING_TIME);
                sender.let_go();
                receiver.let_go();
                self.end(&outcome, route, None, shown)
            }
            Err(error) if sender.has_failed() || !receiver.has_failed() && sender.is_lost() => {
                Err(self.reporter.explain(sender, error))
            }
            Err(error) => Err(self.reporter.explain(receiver, error)),
        }
    }

    /// Shows progress until the receiver reports the outcome.
    fn wait(&mut self, sender: &mut Remote, receiver: &mut Remote) -> Result<Outcome> {
        let mut figures = Figures::default();
        let mut lost_since = None;
        loop {
            thread::sleep(super::SHOWN_EVERY);
            if interrupt::is_pending() {
                return Err(Error::Cancelled.into());
            }
            // Checked before events are read, because the receiver reports and then ends.
            let is_gone = receiver.is_gone();
            self.reporter.take_events(sender);
            let heard = self.reporter.take_events(receiver);
            if let Some(now) = heard.figures {
                figures = now;
            }
            self.reporter.show(&figures, None);
            if let Some(outcome) = heard.outcome {
                return Ok(outcome);
            }
            if sender.has_failed() || receiver.has_failed() {
                bail!("the copy failed");
            }
            // A killed sender never reports. A sender may also fail because of the receiver, which then gives the
            // reason.
            if sender.is_lost() {
                lost_since.get_or_insert_with(Instant::now);
            }
            if is_gone || lost_since.is_some_and(|since: Instant| since.elapsed() >= ENDING_TIME) {
                return Err(Error::Closed.into());
            }
        }
    }
}

/// Carries data between the two ends in both directions.
fn relay(one: Channel, other: Channel) {
    carry(one.reader, other.writer);
    carry(other.reader, one.writer);
}

/// Copies bytes. The end of one side ends the other, because its input closes.
fn carry(mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>) {
    thread::spawn(move || {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match from.read(&mut block) {
                // The ends themselves report failures.
                Ok(0) | Err(_) => return,
                Ok(bytes) if to.write_all(&block[..bytes]).is_ok() => {}
                Ok(_) => return,
            }
        }
    });
}

const BLOCK_BYTES: usize = 256 << 10;
const ENDING_TIME: Duration = Duration::from_secs(2);
