//! Both sides as processes, and how they ended.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Output, Stdio};

use serde_json::Value;

pub(crate) use crate::support::path;
use crate::support::{finish, grebe, text, wait_until};

/// The side that prints the ticket.
pub(crate) struct Waiting {
    pub child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    pub ticket: String,
}

/// Result of a side: status, lines of JSON, messages.
pub(crate) struct Ended {
    pub status: Option<i32>,
    /// Of the last line.
    pub result: Value,
    /// Of the last line.
    pub error: Value,
    /// Of the lines before.
    pub progress: Vec<Value>,
    pub said: String,
}

impl Waiting {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(Path::new("."), arguments)
    }

    pub(crate) fn start_in(directory: &Path, arguments: &[&str]) -> Self {
        let mut command = grebe(arguments);
        command.current_dir(directory);
        command.args(["--json", "--listen", "127.0.0.1:0"]).env_remove("GREBE_TICKET");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no ticket: {line:?}"));
        let ticket = line["ticket"].as_str().unwrap().to_owned();
        assert!(ticket.starts_with("grebe"), "{ticket}");
        Self { child: Some(child), stdout, ticket }
    }

    pub(crate) fn recv(directory: &Path) -> Self {
        Self::start(&["recv", path(directory)])
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub(crate) fn finish(mut self) -> Ended {
        let output = finish(self.child.take().unwrap());
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        ended(&output, &stdout)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `grebe send` with a ticket on its standard input.
pub(crate) fn send(files: &[&Path], ticket: &str, more: &[&str]) -> Child {
    let mut command = grebe(&["send", "--json"]);
    command.args(more).args(files).arg("--to").env_remove("GREBE_TICKET");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{ticket}").unwrap();
    child
}

/// `grebe recv` with a ticket from its environment.
pub(crate) fn receive(ticket: &str, into: &Path) -> Child {
    let mut command = grebe(&["recv", path(into), "--json"]);
    command.env("GREBE_TICKET", ticket).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Sends files to `into`; how sender and receiver ended.
pub(crate) fn moved(files: &[&Path], into: &Path, more: &[&str]) -> (Ended, Ended) {
    let receiver = Waiting::recv(into);
    let sender = sent(send(files, &receiver.ticket, more));
    (sender, receiver.finish())
}

pub(crate) fn sent(child: Child) -> Ended {
    let output = finish(child);
    ended(&output, &text(&output.stdout))
}

pub(crate) fn ended(output: &Output, stdout: &str) -> Ended {
    let mut lines: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said = text(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    let mut last = lines.pop().unwrap_or_default();
    let progress = lines.iter_mut().filter_map(|line| line.get_mut("progress").map(Value::take)).collect();
    let (result, error) = (last["result"].take(), last["error"].take());
    Ended { status: output.status.code(), result, error, progress, said }
}

/// Bytes that no pattern repeats.
pub(crate) fn file(directory: &Path, name: &str, bytes: usize) -> (PathBuf, Vec<u8>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let contents: Vec<u8> = (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect();
    let path = directory.join(name);
    fs::write(&path, &contents).unwrap();
    (path, contents)
}

/// How much of a file that has come in part is noted as safe.
pub(crate) fn noted_bytes(directory: &Path) -> u64 {
    /// Start of a record; then 16 bytes of the file, the number, and a checksum of 16 bytes.
    const MAGIC: &[u8] = b"grebe j1";
    let Ok(folder) = fs::read_dir(directory.join(".grebe-partial")) else { return 0 };
    let journals = folder.flatten().filter(|it| it.file_name().as_encoded_bytes().starts_with(b".grebe-j"));
    let records = journals.flat_map(|journal| fs::read(journal.path()).unwrap_or_default());
    let records: Vec<u8> = records.collect();
    let noted = records.chunks_exact(48).filter(|record| record.starts_with(MAGIC));
    noted.map(|record| u64::from_be_bytes(record[24..32].try_into().unwrap())).max().unwrap_or(0)
}

/// Waits until that much of a file has been written down as safe.
pub(crate) fn wait_for_note(directory: &Path, least_bytes: u64) {
    wait_until("nothing is noted", || noted_bytes(directory) >= least_bytes);
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
