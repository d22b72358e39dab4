//! Exit status of a command, and reports of errors.

use std::fmt;
use std::io::{self, ErrorKind};

use clap::error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind};
use grebe_bench::Error as BenchError;
use grebe_connection::Error as ConnectionError;
use grebe_probe::Error as ProbeError;
use grebe_process::Error as ProcessError;
use grebe_recording::Error as RecordingError;
use grebe_remote::Error as RemoteError;
use grebe_shm::Error as ShmError;
use grebe_stages::Error as StreamError;
use grebe_tree::Error as TreeError;
use grebe_view::Error as ViewError;
use serde_json::json;

use crate::hidden_secrets::without_secrets;
use crate::output::{self, note};

/// How a command ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Good,
    /// Parts were skipped and named.
    Partial,
    Interrupted,
    /// The starter of this process was notified; the exit status.
    Reported(u8),
}

/// Invalid combination of options.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

/// Failure on another host of a graph, with its exit status.
#[derive(Debug)]
pub(crate) struct OnOtherHost {
    pub(crate) what: String,
    pub(crate) status: u8,
}

/// Error that the JSON output contains already.
#[derive(Debug)]
struct ReportedInJson(anyhow::Error);

/// Marks an error that the JSON output contains: no other line follows.
pub(crate) fn reported_in_json(error: anyhow::Error) -> anyhow::Error {
    ReportedInJson(error).into()
}

/// Fails if one of several files failed; JSON has each error with its name.
pub(crate) fn fail_each(
    mut failures: Vec<anyhow::Error>,
    as_json: bool,
    of_several: impl FnOnce(usize) -> String,
) -> anyhow::Result<()> {
    let error = match failures.len() {
        0 => return Ok(()),
        1 => failures.remove(0),
        count => {
            failures.iter().for_each(|error| note!("grebe: {}", one_line(error)));
            anyhow::Error::msg(of_several(count))
        }
    };
    Err(if as_json { reported_in_json(error) } else { error })
}

/// Reports a failure, also as JSON if requested, and returns the exit status. `replaces`: how the command replaces a
/// recording that exists.
pub(crate) fn fail(error: &anyhow::Error, as_json: bool, replaces: Option<&str>) -> u8 {
    let status = exit_status(error);
    let mut why = one_line(error);
    if let Some(replaces) = replaces.filter(|_| error.chain().any(already_exists)) {
        why.push_str("; ");
        why.push_str(replaces);
    }
    if !is_cancelled(error) {
        note!("grebe: {why}");
    }
    if as_json && !error.chain().any(|cause| cause.is::<ReportedInJson>()) {
        fail_in_json(&why, status);
    }
    status
}

/// Whether a recording of the same name exists.
fn already_exists(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(RecordingError::Exists { .. }))
        || matches!(cause.downcast_ref(), Some(StreamError::Recording(RecordingError::Exists { .. })))
}

/// Reports an error of clap for this command. Its text may contain untrusted names.
pub(crate) fn refuse(mut error: clap::Error, command: Option<&str>, as_json: bool) -> u8 {
    if error.kind() == ClapErrorKind::UnknownArgument {
        // clap advises to give the option as a value, which is never meant.
        error.remove(ContextKind::Suggested);
        let option = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let other = OTHER_SIDE.iter().find(|(of, given, _)| {
            command == Some(of) && option.as_deref().is_some_and(|option| option.starts_with(given))
        });
        if let Some((.., tip)) = other {
            error.remove(ContextKind::SuggestedArg);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        }
    }
    let error = &error;
    let plain = error.render().to_string();
    let shown = without_secrets(&plain);
    if error.use_stderr() && output::printable_lines(&shown) != plain {
        output::say_lines(shown.trim_end());
    } else {
        // Ignored, because standard error is closed.
        let _ = error.print();
    }
    let status = error.exit_code() as u8;
    if as_json && error.use_stderr() {
        fail_in_json(&one_line_of_clap(error), status);
    }
    status
}

fn fail_in_json(error: &str, status: u8) {
    // The exit status remains if this cannot be written.
    let _ = output::json(&json!({ "error": error, "exit_status": status }));
}

/// Options of the other side of a transfer, with the advice for this side.
const OTHER_SIDE: [(&str, &str, &str); 2] = [
    ("recv", "--to", "recv has --from, for the ticket of the sender"),
    ("send", "--from", "send has --to, for the ticket of the receiver"),
];

/// The reason of an error, without the usage text.
pub(crate) fn one_line_of_clap(error: &clap::Error) -> String {
    let text = without_secrets(&error.render().to_string());
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// An error with its causes, without repetitions and tickets.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.ends_with(&cause) && !line.contains(&cause) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&cause);
        }
    }
    without_secrets(&line)
}

/// Whether the user ended the command.
fn is_cancelled(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(StreamError::Cancelled | StreamError::Recording(RecordingError::Cancelled))
        ) || matches!(cause.downcast_ref(), Some(RecordingError::Cancelled))
            || matches!(cause.downcast_ref(), Some(ProbeError::Cancelled))
            || matches!(cause.downcast_ref(), Some(BenchError::Cancelled))
    })
}

/// The exit status of an error, for scripts.
pub(crate) fn exit_status(error: &anyhow::Error) -> u8 {
    if is_cancelled(error) {
        return INTERRUPTED;
    }
    error
        .chain()
        .find_map(|cause| {
            let stream = cause.downcast_ref().and_then(status_of_stream);
            let recording = || cause.downcast_ref().and_then(status_of_recording);
            let process = || cause.downcast_ref().and_then(status_of_process);
            let memory = || cause.downcast_ref().and_then(status_of_shared_memory);
            let connection = || cause.downcast_ref().and_then(status_of_connection);
            let probe = || cause.downcast_ref().and_then(status_of_probe);
            let elsewhere = || cause.downcast_ref().map(|error: &OnOtherHost| error.status);
            let remote = || cause.downcast_ref().and_then(status_of_remote);
            let tree = || cause.downcast_ref().and_then(status_of_tree);
            let view = || cause.downcast_ref().and_then(status_of_view);
            let system = || cause.downcast_ref().and_then(status_of_system);
            let found = stream
                .or_else(recording)
                .or_else(process)
                .or_else(memory)
                .or_else(connection)
                .or_else(probe)
                .or_else(elsewhere)
                .or_else(remote)
                .or_else(tree)
                .or_else(view)
                .or_else(system);
            found.or(cause.is::<Usage>().then_some(USAGE))
        })
        .unwrap_or(FAILED)
}

fn status_of_stream(error: &StreamError) -> Option<u8> {
    match error {
        StreamError::Idle { .. }
        | StreamError::Gone
        | StreamError::ProducerGone { .. }
        | StreamError::DeviceGone { .. } => Some(SILENT),
        StreamError::Name { .. } => Some(USAGE),
        StreamError::Shm(error) => status_of_shared_memory(error),
        StreamError::Recording(error) => status_of_recording(error),
        StreamError::Process(error) => status_of_process(error),
        _ => None,
    }
}

fn status_of_recording(error: &RecordingError) -> Option<u8> {
    match error {
        RecordingError::Process(error) => status_of_process(error),
        error => error.is_full().then_some(FULL),
    }
}

fn status_of_process(error: &ProcessError) -> Option<u8> {
    matches!(error, ProcessError::Name { .. } | ProcessError::Setting { .. }).then_some(USAGE)
}

fn status_of_shared_memory(error: &ShmError) -> Option<u8> {
    match error {
        ShmError::ProducerGone { .. } => Some(SILENT),
        ShmError::Name { .. } | ShmError::Setting { .. } => Some(USAGE),
        _ => None,
    }
}

fn status_of_connection(error: &ConnectionError) -> Option<u8> {
    match error {
        ConnectionError::NoAnswer { .. }
        | ConnectionError::Relay { .. }
        | ConnectionError::Silent { .. }
        | ConnectionError::Expired => Some(SILENT),
        ConnectionError::Ticket { .. } => Some(USAGE),
        ConnectionError::Cancelled => Some(INTERRUPTED),
        _ => None,
    }
}

fn status_of_probe(error: &ProbeError) -> Option<u8> {
    matches!(error, ProbeError::Limit { .. } | ProbeError::Ticket(_)).then_some(USAGE)
}

fn status_of_remote(error: &RemoteError) -> Option<u8> {
    match error {
        RemoteError::Usage(_) => Some(USAGE),
        RemoteError::Interrupted => Some(INTERRUPTED),
        RemoteError::Failed { status, .. } => Some(*status),
        RemoteError::Connection(error) => status_of_connection(error),
        RemoteError::Tree(error) => status_of_tree(error),
        RemoteError::System { source, .. } => status_of_system(source),
        _ => None,
    }
}

fn status_of_system(error: &io::Error) -> Option<u8> {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge).then_some(FULL)
}

fn status_of_view(error: &ViewError) -> Option<u8> {
    matches!(error, ViewError::NothingArrived { .. }).then_some(SILENT)
}

fn status_of_tree(error: &TreeError) -> Option<u8> {
    match error {
        TreeError::Cancelled => Some(INTERRUPTED),
        TreeError::Closed | TreeError::Stream(_) => Some(SILENT),
        TreeError::Pattern { .. } | TreeError::Roles { .. } => Some(USAGE),
        TreeError::NoRoom { .. } | TreeError::TooMuch { .. } => Some(FULL),
        _ => None,
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl fmt::Display for ReportedInJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ReportedInJson {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl fmt::Display for OnOtherHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for OnOtherHost {}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// The other side was silent, or is gone.
const SILENT: u8 = 3;
/// Parts were skipped.
pub(crate) const PARTIAL: u8 = 4;
/// The disk is full, or the file at its size limit.
const FULL: u8 = 5;
/// As shells report SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn every_error_of_a_full_disk_has_its_exit_status() {
        let status = |kind: ErrorKind| {
            let written: io::Result<()> = Err(kind.into());
            exit_status(&written.context("cannot write x.png").unwrap_err())
        };
        use ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};
        let kinds = [StorageFull, QuotaExceeded, FileTooLarge, PermissionDenied];
        assert_eq!(kinds.map(status), [FULL, FULL, FULL, FAILED]);
    }

    #[test]
    fn a_picture_of_a_silent_stream_ends_as_silence_does() {
        let silent = ViewError::NothingArrived { seconds: 1.0, path: "x.png".into() };
        assert_eq!(exit_status(&silent.into()), SILENT);
    }

    #[test]
    fn causes_are_reported_once() {
        let error = anyhow::Error::msg("disk full").context("recorder: disk full").context("cannot record");
        assert_eq!(one_line(&error), "cannot record: recorder: disk full");
    }
}
