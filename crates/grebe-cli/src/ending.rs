//! How a command ends: its exit status, and what is said of an error.

use std::fmt;
use std::io::{self, ErrorKind};

use grebe_connection::Error as ConnectionError;
use grebe_process::Error as ProcessError;
use grebe_recording::Error as RecordingError;
use grebe_remote::Error as RemoteError;
use grebe_shm::Error as ShmError;
use grebe_stages::Error as StreamError;
use grebe_tree::Error as TreeError;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Good,
    /// Something was left out, and named.
    Partial,
    Interrupted,
    /// Who started it was told how; the exit status.
    Told(u8),
}

/// A combination of options that makes no sense.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

/// What failed at another host of a graph, and the exit status of that.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) what: String,
    pub(crate) status: u8,
}

/// An error and its causes, without those that only repeat what stands before them.
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
    line
}

/// Whether the user ended it while it waited for something.
pub(crate) fn is_cancelled(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(StreamError::Cancelled | StreamError::Recording(RecordingError::Cancelled))
        ) || matches!(cause.downcast_ref(), Some(RecordingError::Cancelled))
    })
}

/// The exit status that tells a script what went wrong.
pub(crate) fn exit_status(error: &anyhow::Error) -> u8 {
    error
        .chain()
        .find_map(|cause| {
            let stream = cause.downcast_ref().and_then(status_of_stream);
            let recording = || cause.downcast_ref().and_then(status_of_recording);
            let process = || cause.downcast_ref().and_then(status_of_process);
            let memory = || cause.downcast_ref().and_then(status_of_shared_memory);
            let connection = || cause.downcast_ref().and_then(status_of_connection);
            let elsewhere = || cause.downcast_ref().map(|error: &Elsewhere| error.status);
            let remote = || cause.downcast_ref().and_then(status_of_remote);
            let tree = || cause.downcast_ref().and_then(status_of_tree);
            let system = || cause.downcast_ref().and_then(status_of_system);
            let found = stream
                .or_else(recording)
                .or_else(process)
                .or_else(memory)
                .or_else(connection)
                .or_else(elsewhere)
                .or_else(remote)
                .or_else(tree)
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

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Elsewhere {}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// The other side fell silent, or is gone.
const SILENT: u8 = 3;
/// Something was left out.
pub(crate) const PARTIAL: u8 = 4;
/// The disk is full, or the file as large as it may be.
const FULL: u8 = 5;
/// As a shell says of a command that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn whatever_the_disk_has_no_room_for_is_told_by_its_status() {
        let status = |kind: ErrorKind| {
            let written: io::Result<()> = Err(kind.into());
            exit_status(&written.context("cannot write x.png").unwrap_err())
        };
        use ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};
        let kinds = [StorageFull, QuotaExceeded, FileTooLarge, PermissionDenied];
        assert_eq!(kinds.map(status), [FULL, FULL, FULL, FAILED]);
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::Error::msg("disk full").context("recorder: disk full").context("cannot record");
        assert_eq!(one_line(&error), "cannot record: recorder: disk full");
    }
}
