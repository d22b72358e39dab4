//! Messages during a transfer: silence, rate, limit.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::peers::{Waiting, file, moved, noted_bytes, path, send, sent, wait_for_note};
use crate::support::{signal, text};

#[test]
fn a_silent_peer_and_its_return_are_reported_once() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 8_000_000);
    let receiver = Waiting::recv(into.path());
    let mut sender = send(&[&large], &receiver.ticket, &["--bwlimit", "20M", "--keep-trying", "90s"]);
    let mut lines = BufReader::new(sender.stderr.take().unwrap()).lines().map_while(Result::ok);
    wait_for_note(into.path(), 1);
    signal("-STOP", receiver.id());
    // The system takes a connection over TCP for a process that is stopped.
    let mut next = || lines.find(|line| !line.contains("over TCP")).unwrap();
    let silent = next();
    assert!(silent.starts_with("nothing heard from 127.0.0.1:"), "{silent}");
    assert!(
        silent.ends_with(" for 6 s: this side tries UDP and TCP, and gives up after 90 s of silence"),
        "{silent}"
    );
    signal("-CONT", receiver.id());
    let heard = next();
    assert!(heard.starts_with("127.0.0.1:") && heard.contains(" is heard again after "), "{heard}");
    let sender = sent(sender);
    assert_eq!((sender.status, receiver.finish().status), (Some(0), Some(0)));
    assert!(
        sender.progress.iter().any(|it| it["silent_us"].as_u64() > Some(4_000_000)),
        "scripts see it, too: {:?}",
        sender.progress
    );
}

#[test]
fn a_ticket_is_in_no_message_and_in_no_file() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 8_000_000);
    let receiver = Waiting::recv(into.path());
    let ticket = receiver.ticket.clone();
    let sender = send(&[&large], &ticket, &["--bwlimit", "20M"]);
    wait_for_note(into.path(), 1);
    let holds = |place: &std::path::Path| {
        Command::new("grep").args(["-rqaF", &ticket[5..]]).arg(place).status().unwrap().success()
    };
    assert!(!holds(from.path()) && !holds(into.path()));
    signal("-INT", sender.id());
    let (sender, receiver) = (sent(sender), receiver.finish());
    for ended in [sender, receiver] {
        let all = format!("{} {} {} {:?}", ended.said, ended.result, ended.error, ended.progress);
        assert!(!all.contains(&ticket[5..]), "{all}");
    }
    // It may stand anywhere in a command line.
    let around = format!("'{}'", ticket.to_uppercase());
    for arguments in
        [&["send", &around][..], &["recv", path(into.path()), &around], &["info", &ticket], &[&ticket]]
    {
        let output = crate::support::run(arguments);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(
            !output.status.success() && !said.to_lowercase().contains(&ticket[5..25]),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_ticket_as_an_argument_warns_of_other_users() {
    let Ok(mut other) = Command::new("sleep").arg("60").uid(12_345).spawn() else {
        return eprintln!("skipped: only root can start a process of another user");
    };
    let output = crate::support::run(&["send", "Cargo.toml", "--to", "grebeaaaa"]);
    let _ = (other.kill(), other.wait());
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("other users of this machine can see the ticket"), "{said}");
}

#[test]
fn both_ends_say_how_to_resume_a_stopped_transfer() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 10_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "20M"]);
    wait_for_note(into.path(), 1);
    signal("-INT", sender.id());
    let (sender, receiver) = (sent(sender), receiver.finish());
    for said in [&sender.said, &receiver.said] {
        assert!(said.contains("start recv again, and give send its new ticket"), "{said}");
    }
}

#[test]
fn a_receiver_without_a_peer_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let receiver = Waiting::recv(&folder.path().join("there/deep/x"));
    assert!(folder.path().join("there/deep/x").is_dir());
    signal("-INT", receiver.id());
    assert_eq!(receiver.finish().status, Some(130));
    assert!(folder.path().join("there").is_dir() && !folder.path().join("there/deep").exists());
}

#[test]
fn existing_bytes_are_not_in_the_rate_and_the_limit_is_the_given_one() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (large, _) = file(from.path(), "large.bin", 40_000_000);
    let receiver = Waiting::recv(into.path());
    let sender = send(&[&large], &receiver.ticket, &["--bwlimit", "80M"]);
    wait_for_note(into.path(), 20_000_000);
    signal("-KILL", sender.id());
    assert_eq!(sent(sender).status, None);
    signal("-INT", receiver.id());
    receiver.finish();
    let left_bytes = 40_000_000 - noted_bytes(into.path());

    // Four seconds for the remaining data; the rest would make it several times as fast.
    let limit = format!("{}", left_bytes * 2);
    let (sender, receiver) = moved(&[&large], into.path(), &["--bwlimit", &limit]);
    assert_eq!((sender.status, receiver.status), (Some(0), Some(0)), "{} {}", sender.said, receiver.said);
    assert!(receiver.progress.len() > 2, "{:?}", receiver.progress);
    // The sender, too, reports the rate of arrival, not the capacity of the path.
    for progress in receiver.progress.iter().chain(&sender.progress) {
        let rate = progress["rate_bits_per_s"].as_f64().unwrap();
        assert!(rate < 2.0 * left_bytes as f64 * 2.0, "{limit} bit/s was the limit: {progress}");
    }
    let limits: Vec<_> = sender.progress.iter().map(|progress| &progress["limit"]).collect();
    let begun = limits.iter().position(|limit| *limit == "--bwlimit");
    assert!(begun.is_some_and(|at| limits[at..].iter().all(|limit| *limit != "starting")), "{limits:?}");
}
