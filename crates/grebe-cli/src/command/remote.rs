//! Settings and errors of a grebe process on another host.

use anyhow::Result;
use grebe_connection::{Cancel, Notify};
use grebe_remote::serve::Process;
use grebe_remote::{Config, Dialer, HostOptions, LastWord, Remote, Settings, failed_line};
use serde_json::Value;

use crate::cli::SshHost;
use crate::ending::{self, Ending, Usage};
use crate::interrupt;
use crate::output::{event, note};

/// Settings of a host.
pub(super) fn settings(config: &Config, host: &SshHost, how: &HostOptions) -> Result<Settings> {
    let settings = config.settings(host, how, |text| note!("{text}"))?;
    if settings.bootstrap && crate::this_command::is_carried() {
        let why = "--bootstrap: this grebe is part of another program, which cannot be copied";
        return Err(Usage(why.to_owned()).into());
    }
    Ok(settings)
}

pub(super) fn dialer(settings: &Settings, cancel: &Cancel, notify: &Notify) -> Dialer {
    Dialer { terms: settings.terms(), cancel: cancel.clone(), notify: notify.clone(), measures: false }
}

/// The reason of the other end for an error here, if it has reported one. Reports events that arrive meanwhile.
pub(super) fn explain(remote: Remote, error: anyhow::Error, on_event: impl FnMut(Value)) -> anyhow::Error {
    // The other end only repeats an error of this end.
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

/// Reports an error of the started end to the other one, unless that one caused it.
pub(super) fn failed(error: &anyhow::Error) -> Ending {
    if interrupt::is_pending() {
        return Ending::Interrupted;
    }
    let status = ending::exit_status(error);
    event(&failed_line(ending::one_line(error), status));
    Ending::Reported(status)
}

/// This process, if another host started it.
pub(super) const PROCESS: Process = Process {
    note: |text| note!("{text}"),
    end: interrupt::raise,
    ends_too: |cancel| interrupt::then(move || cancel.cancel()).for_good(),
};
