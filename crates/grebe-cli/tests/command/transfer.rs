//! `grebe send` and `grebe recv` over loopback: results, interruptions, errors.
#![cfg(unix)]

mod detour;
mod hostile_links;
mod kills;
mod messages;
pub(crate) mod peers;
mod swaps;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use self::peers::{Waiting, file, moved, names, path, receive, send, sent, wait_for_note};
use crate::support::{Good, grebe, signal, text};

#[test]
fn files_and_directories_arrive_as_they_are() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 20_000_003);
    let (empty, _) = file(from.path(), "empty", 0);
    let logs = from.path().join("logs");
    fs::create_dir_all(logs.join("deep/er")).unwrap();
    for number in 0..200 {
        file(&logs.join("deep"), &format!("{number} ä"), number * 31);
    }
    std::os::unix::fs::symlink("/etc/passwd", logs.join("link")).unwrap();

    let receiver = Waiting::recv(&into.path().join("new"));
    let sender = sent(send(&[&large, &empty, &logs], &receiver.ticket, &[]));
    assert_eq!(sender.status, Some(4), "a link was skipped: {}", sender.said);
    let left_out = &sender.result["left_out"];
    assert_eq!(left_out.as_array().unwrap().len(), 1, "{left_out}");
    assert_eq!(left_out[0]["path"], "logs/link");
    assert_eq!(sender.result["complete"], false);
    let receiver = receiver.finish();
    assert_eq!(receiver.status, Some(4), "and knows it: {}", receiver.said);
    assert!(receiver.said.contains("offered: large.bin, empty, logs (202 files"), "{}", receiver.said);

    let into = into.path().join("new");
    assert_eq!(names(&into), ["empty", "large.bin", "logs"], "nothing else is left");
    assert!(fs::read(into.join("large.bin")).unwrap() == contents);
    assert_eq!(fs::read(into.join("empty")).unwrap(), b"");
    assert!(into.join("logs/deep/er").is_dir() && !into.join("logs/link").exists());
    for number in 0..200 {
        let name = format!("logs/deep/{number} ä");
        assert_eq!(fs::read(into.join(&name)).unwrap(), fs::read(from.path().join(&name)).unwrap());
    }
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(&into.join("large.bin")), modified(&large));
    assert!(sender.said.contains("skipped") && sender.said.contains("link"), "{}", sender.said);
    assert_eq!(sender.result["files"], 202);
    assert_eq!(sender.result["resumed_bytes"], 0);
    let overhead = sender.result["wire_bytes"].as_f64().unwrap() / sender.result["bytes"].as_f64().unwrap();
    assert!(overhead < 1.5, "{overhead}");
}

#[test]
fn the_sender_may_print_the_ticket() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 100_000);
    let sender = Waiting::start(&["send", path(&one)]);
    let receiver = sent(receive(&sender.ticket, into.path()));
    assert_eq!(receiver.status, Some(0), "{}", receiver.said);
    assert_eq!(sender.finish().status, Some(0));
    assert!(fs::read(into.path().join("one")).unwrap() == contents);

    let into = tempfile::tempdir().unwrap();
    let sender = Waiting::start(&["send", path(&one)]);
    let receiver = crate::support::run(&["recv", &sender.ticket, path(into.path())]).good();
    assert!(text(&receiver.stdout).contains("one"));
    assert!(fs::read(into.path().join("one")).unwrap() == contents);

    let into = tempfile::tempdir().unwrap();
    let (odd, _) = file(from.path(), "a\u{1b}[2J\u{202e}b", 100);
    let sender = Waiting::start(&["send", path(&odd)]);
    let receiver = crate::support::run(&["recv", &sender.ticket, path(into.path())]);
    assert!(text(&receiver.stdout).ends_with("/a\\u{1b}[2J\\u{202e}b\n"), "{:?}", text(&receiver.stdout));
}

#[test]
fn a_killed_receiver_resumes() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 20_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "40M"]);
    wait_for_note(into.path(), 1_100_000);
    signal("-KILL", receiver.id());
    signal("-KILL", sender.id());
    assert_eq!(sent(sender).status, None);
    drop(receiver);
    assert!(!into.path().join("large.bin").exists());

    let (sender, receiver) = moved(&[&large], into.path(), &["--bwlimit", "80M"]);
    assert_eq!((sender.status, receiver.status), (Some(0), Some(0)), "{} {}", sender.said, receiver.said);
    assert!(sender.result["resumed_bytes"].as_u64().unwrap() >= 1_000_000, "{}", sender.result);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
    assert_eq!(names(into.path()), ["large.bin"]);
}

#[test]
fn a_killed_sender_resumes() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, contents) = file(from.path(), "large.bin", 20_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "40M"]);
    wait_for_note(into.path(), 1_100_000);
    signal("-KILL", sender.id());
    assert_eq!(sent(sender).status, None);
    signal("-INT", receiver.id());
    let receiver = receiver.finish();
    assert_eq!(receiver.status, Some(130), "{}", receiver.said);
    assert!(receiver.said.contains("on from there"), "{}", receiver.said);

    let receiver = Waiting::recv(into.path());
    let sender = sent(send(&[&large], &receiver.ticket, &[]));
    assert_eq!(sender.status, Some(0), "{}", sender.said);
    let receiver = receiver.finish();
    assert_eq!(receiver.result["resumed_bytes"], sender.result["resumed_bytes"]);
    assert!(sender.result["resumed_bytes"].as_u64().unwrap() >= 1_000_000, "{}", sender.result);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
}

#[test]
fn a_changed_file_is_sent_from_the_start() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 10_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "40M"]);
    wait_for_note(into.path(), 1_100_000);
    signal("-INT", sender.id());
    assert_eq!(sent(sender).status, Some(130));
    receiver.finish();
    let (large, contents) = file(from.path(), "large.bin", 9_000_000);

    let (sender, receiver) = moved(&[&large], into.path(), &[]);
    assert_eq!(
        (sender.status, receiver.status),
        (Some(0), Some(0)),
        "what came of another content is in nobody's way: {}",
        receiver.said
    );
    assert_eq!(sender.result["resumed_bytes"], 0);
    assert!(fs::read(into.path().join("large.bin")).unwrap() == contents);
}

#[test]
fn ctrl_c_ends_both_sides_at_once() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 20_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "10M"]);
    wait_for_note(into.path(), 1);
    signal("-INT", sender.id());
    assert_eq!(sent(sender).status, Some(130));
    let receiver = receiver.finish();
    assert_eq!(receiver.status, Some(1));
    let is_told = ["the other side ended the transfer", "the other end stopped"];
    assert!(is_told.iter().any(|it| receiver.said.contains(it)), "{}", receiver.said);
    assert!(!into.path().join("large.bin").exists());

    for waiting in [Waiting::recv(into.path()), Waiting::start(&["send", path(&large)])] {
        signal("-INT", waiting.id());
        let waiting = waiting.finish();
        assert_eq!(waiting.status, Some(130), "while it waits, too");
        assert!(waiting.said.contains("stopped before the other side connected"), "{}", waiting.said);
        assert!(!waiting.said.contains("kept"), "nothing came: {}", waiting.said);
    }
}

#[test]
fn an_invalid_ticket_is_wrong_usage_and_shown_unless_secret() {
    let from = tempfile::tempdir().unwrap();
    let (one, _) = file(from.path(), "one", 10);
    for (word, named) in [
        ("hello", "'hello': not a ticket: it does not begin with grebe"),
        ("grebe", "'grebe': not a ticket"),
        ("grebeaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a word of 38 letters: not a ticket"),
    ] {
        let sender = sent(send(&[&one], word, &[]));
        assert_eq!(sender.status, Some(2), "{}", sender.said);
        assert!(sender.said.contains(named) && !sender.said.contains("eaaa"), "{}", sender.said);
        assert!(sender.error.as_str().is_some_and(|error| error.contains(named)), "{}", sender.error);
    }
    let receiver = Waiting::recv(from.path());
    let cut = &receiver.ticket[..receiver.ticket.len() - 3];
    let sender = sent(send(&[&one], cut, &[]));
    assert_eq!(sender.status, Some(2), "{}", sender.said);
    assert!(!sender.said.contains(&cut[5..20]), "a ticket is a secret: {}", sender.said);
}

#[test]
fn a_ticket_is_good_once_and_for_its_time() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, _) = file(from.path(), "one", 10);
    let receiver = Waiting::recv(into.path());
    let ticket = receiver.ticket.clone();
    assert_eq!(sent(send(&[&one], &ticket, &[])).status, Some(0));
    receiver.finish();
    let again = sent(send(&[&one], &ticket, &["--wait", "300ms"]));
    assert_eq!(again.status, Some(3), "{}", again.said);
    assert!(again.said.contains("no answer from 127.0.0.1"), "{}", again.said);

    let receiver = Waiting::start(&["recv", path(into.path()), "--expires", "1s"]).finish();
    assert_eq!(receiver.status, Some(3), "{}", receiver.said);
    assert!(receiver.said.contains("the ticket expired unused"), "{}", receiver.said);
}

#[test]
fn nothing_is_replaced_without_consent() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, contents) = file(from.path(), "one", 1_000);
    fs::write(into.path().join("one"), b"precious").unwrap();
    let (sender, receiver) = moved(&[&one], into.path(), &[]);
    assert_eq!((sender.status, receiver.status), (Some(4), Some(4)));
    assert!(receiver.said.contains("it exists"), "{}", receiver.said);
    assert!(sender.said.contains("it exists"), "the sender knows why: {}", sender.said);
    assert_eq!(fs::read(into.path().join("one")).unwrap(), b"precious");
    assert_eq!(names(into.path()), ["one"]);

    fs::write(into.path().join("one.part"), b"foreign").unwrap();
    for _ in 0..2 {
        // The second time it has the right length and time, which is fine.
        let receiver = Waiting::start(&["recv", path(into.path()), "--overwrite"]);
        assert_eq!(sent(send(&[&one], &receiver.ticket, &[])).status, Some(0));
        receiver.finish();
        assert!(fs::read(into.path().join("one")).unwrap() == contents);
        assert_eq!(fs::read(into.path().join("one.part")).unwrap(), b"foreign");
    }
    let receiver = Waiting::recv(into.path());
    assert_eq!(sent(send(&[&one], &receiver.ticket, &[])).status, Some(0), "without --overwrite, too");
    assert_eq!(receiver.finish().status, Some(0));
}

#[test]
fn names_of_any_characters_arrive_and_print_safely() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let long = "x".repeat(255);
    let names_sent = ["obs_2024-01-01T12:00:00.fits", "tab\tnew\nline", "back\\slash", "\u{1b}[2J", &long]
        .map(str::to_owned);
    let directory = from.path().join("d");
    fs::create_dir(&directory).unwrap();
    for name in &names_sent {
        file(&directory, name, 100);
    }
    fs::write(directory.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), b"x").unwrap();
    let ours = [".grebe-partial", ".grebe-0123456789abcdef.journal"];
    for name in ours {
        file(&directory, name, 100);
    }
    std::os::unix::fs::symlink("nowhere", directory.join("\u{1b}link")).unwrap();
    let (sender, receiver) = moved(&[&directory], into.path(), &[]);
    assert_eq!((sender.status, receiver.status), (Some(4), Some(4)), "{} {}", sender.said, receiver.said);
    assert_eq!(sender.result["left_out"].as_array().unwrap().len(), 2, "{}", sender.result);
    assert!(!sender.said.contains('\u{1b}') && sender.said.contains("\\u{1b}link"), "{}", sender.said);
    assert_eq!(fs::read_dir(into.path().join("d")).unwrap().count(), names_sent.len() + 1);
    for name in &names_sent {
        assert_eq!(fs::read(into.path().join("d").join(name)).unwrap().len(), 100, "{name:?}");
    }
}

#[test]
fn hidden_names_enter_the_home_directory_only_on_consent() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (hidden, _) = file(from.path(), ".profile", 100);
    for (options, status) in [(&[][..], 1), (&["--ask=never"], 0)] {
        let receiver = Waiting::start_in(into.path(), &[&["recv"], options].concat());
        let sender = sent(send(&[&hidden], &receiver.ticket, &[]));
        let receiver = receiver.finish();
        assert_eq!((sender.status, receiver.status), (Some(status), Some(status)), "{}", receiver.said);
        assert!(receiver.said.contains("offered: .profile"), "{}", receiver.said);
    }
    assert_eq!(names(into.path()), [".profile"]);
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_ends_the_question_whether_files_are_wanted() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, _) = file(from.path(), "one", 100);
    let sender = Waiting::start(&["send", path(&one)]);
    let arguments = ["recv", &sender.ticket, path(into.path()), "--ask=always"];
    let Some(mut screen) = crate::support::screen::Screen::start(&arguments) else { return };
    screen.sees("receive them?");
    assert_eq!(screen.end_by(b"\x03"), Some(130));
    assert_ne!(sender.finish().status, Some(0));
    assert!(names(into.path()).is_empty());
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let into = tempfile::tempdir().unwrap();
    let (taken, contents) = file(into.path(), "taken", 10);
    for place in [taken.clone(), taken.join("below")] {
        let output = crate::support::run(&["recv", path(&place), "--json"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        let why = format!("{} is a file: give a directory", taken.display());
        assert!(text(&output.stderr).contains(&why), "{}", text(&output.stderr));
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line["exit_status"], 2);
        assert!(line["error"].as_str().unwrap().contains(&why), "{line}");
    }
    assert!(fs::read(taken).unwrap() == contents);
}

#[test]
fn a_ticket_that_was_cut_makes_no_directory() {
    let into = tempfile::tempdir().unwrap();
    let receiver = Waiting::recv(into.path());
    let cut = &receiver.ticket[..receiver.ticket.len() - 3];
    let mut command = grebe(&["recv", cut]);
    let output = crate::support::finish(
        command.current_dir(into.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    );
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("not a ticket"), "{}", text(&output.stderr));
    assert!(names(into.path()).is_empty());
}

#[test]
fn an_unreadable_source_is_an_error_before_the_peer_is_asked() {
    let missing = crate::support::run(&["send", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/no/such/file"));
    let device = crate::support::run(&["send", "/dev/null"]);
    assert_eq!(device.status.code(), Some(1));
    assert!(text(&device.stderr).contains("neither a file nor a directory"));
}

/// Mounts a file system of four megabytes; needs root.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(directory.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_reported_on_both_sides() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: only root can mount a small file system");
        return;
    };
    let from = tempfile::tempdir().unwrap();
    let (large, _) = file(from.path(), "large.bin", 9_000_000);
    let (sender, receiver) = moved(&[&large], disk.0.path(), &[]);
    assert_eq!((sender.status, receiver.status), (Some(1), Some(5)));
    assert!(receiver.said.contains("has room for"), "{}", receiver.said);
    assert!(sender.said.contains("has room for"), "and the sender knows: {}", sender.said);

    // The disk fills up: received data stays, and the transfer resumes once there is space.
    let (small, contents) = file(from.path(), "small.bin", 3_600_000);
    let receiver = Waiting::recv(disk.0.path());
    let sender = send(&[&small], &receiver.ticket, &["--bwlimit", "12M"]);
    wait_for_note(disk.0.path(), 1);
    let ballast = disk.0.path().join("ballast");
    // The disk refuses the rest of it.
    let _ = fs::write(&ballast, vec![0; 4_000_000]);
    let (sender, receiver) = (sent(sender), receiver.finish());
    assert_eq!((sender.status, receiver.status), (Some(1), Some(5)), "{} {}", sender.said, receiver.said);
    assert!(receiver.said.contains("has no room left"), "{}", receiver.said);
    fs::remove_file(ballast).unwrap();
    let receiver = Waiting::recv(disk.0.path());
    let sender = sent(send(&[&small], &receiver.ticket, &[]));
    assert_eq!(sender.status, Some(0), "{}", sender.said);
    receiver.finish();
    assert!(fs::read(disk.0.path().join("small.bin")).unwrap() == contents);
}
