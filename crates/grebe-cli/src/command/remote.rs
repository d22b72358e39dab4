//! A grebe on another host, as this command uses one: how it is reached, ends and is told of.

use anyhow::Result;
use grebe_connection::{Cancel, Notify};
use grebe_remote::serve::Process;
use grebe_remote::{Config, Dialer, HostOptions, LastWord, Remote, Settings, failed_line};
use serde_json::Value;

use crate::cli::SshHost;
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::{event, note};

/// How to reach a host.
pub(super) fn settings(config: &Config, host: &SshHost, how: &HostOptions) -> Result<Settings> {
    let settings = config.settings(host, how, |text| note!("{text}"))?;
    if settings.bootstrap && crate::this_command::is_carried() {
        let why = "--bootstrap: this grebe runs within another program, which cannot be brought along";
        return Err(Usage(why.to_owned()).into());
    }
    Ok(settings)
}

pub(super) fn dialer(settings: &Settings, cancel: &Cancel, notify: &Notify) -> Dialer {
    Dialer { terms: settings.terms(), cancel: cancel.clone(), notify: notify.clone() }
}

/// Of an error here, the reason at the other end, where it has said one; events that come meanwhile are told.
pub(super) fn explain(remote: Remote, error: anyhow::Error, on_event: impl FnMut(Value)) -> anyhow::Error {
    // What this end has found itself, the other one only repeats.
    let is_ours = error.downcast_ref::<grebe_tree::Error>().is_some_and(grebe_tree::Error::is_ours);
    if is_ours || interrupt::is_pending() {
        return error;
    }
    match remote.last_word(on_event) {
        Some(LastWord::Failed(reason)) => reason.into(),
        Some(LastWord::Gone(how)) => error.context(how),
        None => error,
    }
}

/// At the end that was started: tells the other one of an error, unless that one is gone and knows.
pub(super) fn failed(error: &anyhow::Error) -> Ending {
    if interrupt::is_pending() {
        return Ending::Interrupted;
    }
    let status = ending::exit_status(error);
    event(&failed_line(ending::one_line(error), status));
    Ending::Told(status)
}

/// This one, where another host started it.
pub(super) const PROCESS: Process = Process {
    note: |text| note!("{text}"),
    end: interrupt::raise,
    ends_too: |cancel| interrupt::then(move || cancel.cancel()).for_good(),
};
