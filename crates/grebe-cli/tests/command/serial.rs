//! Serial ports: pseudo-terminals stand for boards.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{finish, grebe, run, text};
use grebe::recording::SampleFile;
use rustix::ioctl::{Getter, Setter, ioctl};
use rustix::termios::{ControlModes, LocalModes, tcgetattr};
use serde_json::Value;

/// A board at the other end of a serial line.
struct Board(File);

impl Board {
    /// One whose port has this name.
    fn plugged_in(port: &Path) -> Self {
        let master = File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        // SAFETY: both are of ioctl_tty(2), with the types that it says.
        let number = unsafe {
            ioctl(&master, Setter::<UNLOCK, i32>::new(0)).unwrap();
            ioctl(&master, Getter::<NUMBER, u32>::new()).unwrap()
        };
        let _ = fs::remove_file(port);
        std::os::unix::fs::symlink(format!("/dev/pts/{number}"), port).unwrap();
        Self(master)
    }

    /// Waits until somebody has opened the port and set it.
    fn wait(&self, baud: u32) {
        let began = Instant::now();
        loop {
            let settings = tcgetattr(&self.0).unwrap();
            if settings.output_speed() == baud && !settings.local_modes.contains(LocalModes::ICANON) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "nobody opens it");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn says(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }
}

/// `TIOCSPTLCK` and `TIOCGPTN`.
const UNLOCK: rustix::ioctl::Opcode = 0x4004_5431;
const NUMBER: rustix::ioctl::Opcode = 0x8004_5430;

fn port(folder: &tempfile::TempDir) -> (PathBuf, String) {
    let port = folder.path().join("board");
    (port.clone(), format!("serial://{}", port.display()))
}

fn started(arguments: &[&str]) -> Child {
    grebe(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_board_that_prints_numbers_is_recorded_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let (port, uri) = port(&folder);
    let mut board = Board::plugged_in(&port);
    let file = folder.path().join("x.sigmf-meta");
    let uri = format!("{uri}?baud=250000&rate=100");
    let recorder = started(&["record", &uri, file.to_str().unwrap(), "--samples", "1000", "--json"]);
    board.wait(250_000);
    // The board sends before anybody listens, garbles a line, loses half of one, and has a message.
    board.says(b"7.5,volt:3\r\n");
    for at in 0..1_000 {
        if at == 400 {
            board.says(b"temp:\xff\xfe\x00,volt:1\r\ntem\r\nsensor is warm\r\n,volt:\r\n");
        }
        board.says(format!("temp:{},volt:{}\r\n", at as f64 / 4.0, -at).as_bytes());
    }
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["bad_lines"].as_u64(), Some(2), "{report}");
    let mut recording = SampleFile::open(&file).unwrap();
    assert_eq!((recording.channels(), recording.len_samples()), (2, 1_000));
    let names: Vec<String> =
        recording.description(0).unwrap().channels.iter().map(|it| it.name.clone()).collect();
    assert_eq!(names, ["temp", "volt"]);
    let block = recording.block(0, 1_000).unwrap();
    let (temp, volt) = (block.channel::<f64>(0).unwrap(), block.channel::<f64>(1).unwrap());
    assert!((0..1_000).all(|at| temp[at] == at as f64 / 4.0 && volt[at] == -(at as f64)));
}

#[test]
fn the_rate_is_measured_where_nobody_says_it() {
    let folder = tempfile::tempdir().unwrap();
    let (port, uri) = port(&folder);
    let mut board = Board::plugged_in(&port);
    let file = folder.path().join("x.sigmf-meta");
    let recorder = started(&["record", &uri, file.to_str().unwrap(), "--samples", "150"]);
    board.wait(115_200);
    board.says(b"\n");
    for at in 0..150 {
        board.says(format!("{at}\n").as_bytes());
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut recording = SampleFile::open(&file).unwrap();
    // Nothing is asserted of how fast this machine sleeps.
    assert!(recording.rate_hz().is_some());
    let block = recording.block(0, 150).unwrap();
    assert!(block.channel::<f64>(0).unwrap().iter().enumerate().all(|(at, value)| *value == at as f64));
    let said = recording.description(0).unwrap().notes.clone().unwrap_or_default();
    assert!(said.contains("rate measured"), "{said}");
}

#[test]
fn an_unplugged_board_ends_the_stream_or_with_reconnect_continues_it() {
    let folder = tempfile::tempdir().unwrap();
    let (port, uri) = port(&folder);
    let graph = |query: &str| {
        let graph = folder.path().join("graph.toml");
        let edge = "[[edge]]\nfrom = \"in\"\nto = \"out\"\n";
        let stage = |id: &str, kind: &str, uri: &str| {
            format!("[[stage]]\nid = \"{id}\"\nkind = \"{kind}\"\nparams = {{ uri = \"{uri}\" }}\n")
        };
        let from = stage("in", "text_in", &format!("{uri}?rate=100{query}"));
        fs::write(&graph, from + &stage("out", "text_out", "pipe:?format=text&time") + edge).unwrap();
        graph.display().to_string()
    };

    let mut board = Board::plugged_in(&port);
    let mut command = started(&["run", &graph("")]);
    board.wait(115_200);
    board.says(b"\n1\n2\n");
    let mut lines = BufReader::new(command.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!([next(), next(), next()], ["time_s,ch1", "0.0,1.0", "0.01,2.0"]);
    drop(board);
    let output = finish(command);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was unplugged") && said.contains("reconnect"), "{said}");

    let mut board = Board::plugged_in(&port);
    let mut command = started(&["run", &graph("&reconnect")]);
    board.wait(115_200);
    board.says(b"\n1\n2\n");
    let mut lines = BufReader::new(command.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!([next(), next(), next()], ["time_s,ch1", "0.0,1.0", "0.01,2.0"]);
    drop(board);
    let mut board = Board::plugged_in(&port);
    board.wait(115_200);
    board.says(b"9\n3\n4\n");
    let (time, value) =
        next().split_once(',').map(|(time, value)| (time.to_owned(), value.to_owned())).unwrap();
    assert_eq!(value, "3.0");
    // Half a line before it, and a gap as long as it was away.
    assert!(time.parse::<f64>().unwrap() > 0.02, "{time}");
    assert!(next().ends_with(",4.0"));
    crate::support::signal("-INT", command.id());
    assert_eq!(finish(command).status.code(), Some(130));
}

#[test]
fn samples_without_headers_go_over_a_serial_line_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let (port, uri) = port(&folder);
    // Every byte there is, also those that a terminal takes for commands.
    let bytes: Vec<u8> = (0..4_096u32).map(|at| (at * 31 + at / 256) as u8).collect();
    let file = folder.path().join("x.sigmf-meta");
    let path = file.to_str().unwrap();
    let mut board = Board::plugged_in(&port);
    let uri = format!("{uri}?format=u8&rate=1k&baud=57600&mode=8O2");
    let recorder = started(&["record", &uri, path, "--samples", "4096"]);
    board.wait(57_600);
    // A pseudo-terminal knows no parity bit.
    let modes = tcgetattr(&board.0).unwrap().control_modes;
    assert!(modes.contains(ControlModes::PARODD | ControlModes::CSTOPB));
    bytes.chunks(256).for_each(|bytes| board.says(bytes));
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::read(file.with_extension("sigmf-data")).unwrap() == bytes);

    let mut board = Board::plugged_in(&port);
    let player = started(&["play", path, "--free-run", "--to", &uri]);
    let mut heard = vec![0; bytes.len()];
    board.wait(57_600);
    board.0.read_exact(&mut heard).unwrap();
    assert!(heard == bytes);
    assert_eq!(finish(player).status.code(), Some(0));
}

#[test]
fn an_unavailable_port_is_an_error_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (port, uri) = port(&folder);
    let board = Board::plugged_in(&port);
    let (file, other) = (folder.path().join("x.sigmf-meta"), folder.path().join("y.sigmf-meta"));
    let refused = |uri: &str, says: &str| {
        let output = run(&["record", uri, other.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says), "{said}");
    };
    let recorder = started(&["record", &uri, file.to_str().unwrap()]);
    board.wait(115_200);
    refused(&uri, "another program has it open");
    refused("serial:///dev/ttyNONE", "is it plugged in?");
    refused("serial:///dev/null", "it is not a serial port");
    refused(&format!("serial://{}", folder.path().display()), "cannot open serial://");
    crate::support::signal("-INT", recorder.id());
    assert_eq!(finish(recorder).status.code(), Some(130));
}
