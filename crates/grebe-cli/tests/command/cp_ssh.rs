//! `grebe cp` to and from another machine, as a user runs it: through a real `sshd` on this one.
#![cfg(unix)]

mod graphs;
mod kills;
mod logins;
mod no_unix;
#[cfg(target_os = "linux")]
mod pictures;
mod relay;
mod sshd;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::trees::{assert_same, file, noise, plant, things};
use crate::support::{Good, MARK, finish, path, text};
use serde_json::Value;
use sshd::Sshd;

/// How it ended.
struct Ended {
    status: Option<i32>,
    events: Vec<Value>,
    said: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        let events = text(&output.stdout);
        let events = events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { status: output.status.code(), events, said: text(&output.stderr) }
    }

    fn event(&self, name: &str) -> &Value {
        self.events
            .iter()
            .find_map(|event| event.get(name))
            .unwrap_or_else(|| panic!("no {name}: {}", self.said))
    }
}

fn run(command: &mut Command) -> Ended {
    Ended::of(&finish(command.spawn().unwrap()))
}

fn there(path: &Path) -> String {
    format!("lab:{}", path.display())
}

#[test]
fn a_copy_into_an_existing_directory_of_another_machine_is_reported_the_first_time() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to, back) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
    fs::create_dir(&from).unwrap();
    file(&from.join("x"), b"x", 1);
    fs::create_dir(&to).unwrap();
    fs::create_dir(&back).unwrap();
    let notes = |source: &str, destination: &str| {
        let ended = run(&mut sshd.cp(&["-r", source, destination]));
        assert_eq!(ended.status, Some(0), "{}", ended.said);
        ended.said.contains("exists: the copy is ")
    };
    let contents = format!("{}/", path(&from));
    for (source, destination) in [(path(&from), there(&to)), (&*there(&from), path(&back).to_owned())] {
        assert!(notes(source, &destination), "{source}");
        assert!(!notes(source, &destination), "{source}: again");
    }
    assert!(!notes(&contents, &there(&to)), "contents");
    assert!(to.join("a/x").is_file() && back.join("a/x").is_file() && to.join("x").is_file());
}

#[test]
fn a_tree_comes_by_each_way_and_back() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    plant(&from);
    for (via, way) in [("udp", "udp"), ("tcp", "tcp"), ("ssh", "ssh"), ("auto", "udp")] {
        let (to, back) = (folder.path().join(format!("to {via}")), folder.path().join(format!("back {via}")));
        let pushed = run(&mut sshd.cp(&["-a", "--json", "--via", via, path(&from), &there(&to)]));
        assert_eq!(pushed.status, Some(0), "{via}: {}", pushed.said);
        assert_same(&from, &to, via);
        assert_eq!(pushed.event("route")["route"], way);
        assert_eq!(pushed.event("route")["fallback"], false);
        let result = pushed.event("result");
        assert!(result["bytes_copied"].as_u64().unwrap() >= 3_200_000, "{result}");
        assert!(result["wire_bytes"].as_u64().unwrap() >= 3_200_000, "{result}");

        let pulled = run(&mut sshd.cp(&["-a", "--json", "--via", via, &there(&to), path(&back)]));
        assert_eq!(pulled.status, Some(0), "{via}: {}", pulled.said);
        assert_same(&from, &back, via);
        assert_eq!(pulled.event("route")["route"], way);

        let again =
            run(&mut sshd.cp(&["-a", "--json", "--via", via, &format!("{}/", path(&from)), &there(&to)]));
        assert_eq!(again.status, Some(0), "{via}: {}", again.said);
        assert_eq!(again.event("result")["files_copied"], 0, "{}", again.said);
        assert!(again.event("result")["wire_bytes"].as_u64().unwrap() < 200_000, "{}", again.event("result"));
    }
}

#[test]
fn only_changes_are_sent_and_moved_content_is_reused() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to, old) = (folder.path().join("from"), folder.path().join("to"), folder.path().join("old"));
    for folder in [&from, &to, &old] {
        fs::create_dir(folder).unwrap();
    }
    let contents = noise(6_000_000, 1);
    file(
        &from.join("changed.bin"),
        &[&contents[..3_000_000], b"a change", &contents[3_000_000..]].concat(),
        1,
    );
    file(&to.join("changed.bin"), &contents, 2);
    file(&from.join("moved.bin"), &noise(5_000_000, 2), 3);
    file(&old.join("was called otherwise"), &noise(5_000_000, 2), 3);
    let source = format!("{}/", path(&from));
    let ended =
        run(&mut sshd.cp(&["-a", "--json", "--index", "--also-search", path(&old), &source, &there(&to)]));
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert_same(&from, &to, "what was there and a change");
    let result = ended.event("result");
    assert_eq!(result["bytes_copied"], 11_000_008, "{result}");
    assert!(result["wire_bytes"].as_u64().unwrap() < 1_000_000, "{result}");
}

#[test]
fn ssh_carries_the_data_if_no_datagram_arrives_and_a_note_says_so() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    // An address that nobody has.
    let nowhere = ["--address", "192.0.2.1"];
    let ended = run(&mut sshd.cp(&[&nowhere[..], &["-a", path(&from), &there(&to)]].concat()));
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert!(ended.said.contains("neither UDP nor TCP passes: the data goes through ssh"), "{}", ended.said);
    assert_same(&from, &to, "through ssh");
    let ended =
        run(&mut sshd.cp(&[&nowhere[..], &["-a", "--via", "udp", path(&from), &there(&to)]].concat()));
    assert_eq!(ended.status, Some(3), "no other way was wanted: {}", ended.said);
    assert!(ended.said.contains("192.0.2.1"), "{}", ended.said);
}

#[test]
fn patterns_and_homes_are_those_of_the_other_end() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    for name in ["a.bin", "b.bin", "c.dat", "d*.bin"] {
        file(&from.join(name), name.as_bytes(), 1);
    }
    let ended = run(&mut sshd.cp(&[
        &format!("{}/?.bin", there(&from)),
        &format!("{}/d*.bin", there(&from)),
        path(&to),
    ]));
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    let names: Vec<_> = things(&to).into_keys().map(|name| name.display().to_string()).collect();
    assert_eq!(names, ["a.bin", "b.bin", "d*.bin"]);
    let ended = run(&mut sshd.cp(&[&format!("{}/*.none", there(&from)), path(&to)]));
    assert_eq!(ended.status, Some(2), "{}", ended.said);
    assert!(ended.said.contains("lab: nothing matches"), "{}", ended.said);
    let ended = run(&mut sshd.cp(&["-n", "lab:~/grebe-has-no-such-file", path(&to)]));
    assert!(ended.said.contains("grebe-has-no-such-file") && !ended.said.contains('~'), "{}", ended.said);
}

#[test]
fn from_one_machine_to_another_it_goes_directly_or_through_here() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    plant(&from);
    for (more, way, words) in [
        (&["--via", "auto"][..], "udp", "directly from lab to store, over UDP"),
        (&["--via", "ssh"], "ssh", ""),
        (&["--address", "192.0.2.1"], "ssh", "lab cannot reach store: the data goes through this machine"),
    ] {
        let to = folder.path().join(format!("to{}", more.join("")));
        let place = format!("store:{}", to.display());
        let places = ["-av", &there(&from), &place];
        let ended = run(&mut sshd.cp(&[more, &places[..]].concat()));
        assert_eq!(ended.status, Some(0), "{more:?}: {}", ended.said);
        assert!(ended.said.contains(words), "{more:?}: {}", ended.said);
        assert_same(&from, &to, words);
        let again = run(&mut sshd.cp(&[more, &["--json"], &places[..]].concat()));
        assert_eq!(again.event("result")["route"], way, "{}", again.said);
    }
}

#[test]
fn a_failed_start_of_the_other_end_is_explained() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    file(&from, b"contents", 1);
    let greets = sshd
        .script("greets", &format!("echo Welcome; echo {MARK}; echo '{{\"grebe-cp\":{{\"protocol\":99,\"version\":\"9.9.9\"}}}}'; cat"));
    let fails = sshd.script("fails", "echo 'the library is missing' >&2; exit 1");
    let old = sshd.script("old", "echo \"error: unrecognized subcommand 'cp'\" >&2; exit 2");
    for (program, words) in [
        (
            "/nowhere/grebe",
            "`/nowhere/grebe` is not installed on lab: install grebe there, or give its path: --remote-path",
        ),
        (greets.as_str(), "lab has grebe 9.9.9, which copies in another way"),
        (fails.as_str(), "at lab ended: the library is missing"),
        (old.as_str(), "too old to be started from here"),
        ("true", "ended: it gave no reason"),
    ] {
        let ended = run(&mut sshd.cp_with(program, &[path(&from), &there(&to)]));
        assert_eq!(ended.status, Some(1), "{program}: {}", ended.said);
        assert!(ended.said.contains(words), "{program}: {}", ended.said);
    }
    let ended = run(&mut sshd.cp(&[path(&from), "gone:x"]));
    assert_eq!(ended.status, Some(1), "{}", ended.said);
    assert!(ended.said.contains("cannot reach gone: ssh: connect"), "{}", ended.said);
    assert!(!to.exists());
}

#[test]
fn errors_of_the_other_end_are_passed_on() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    plant(&from);
    file(&folder.path().join("file"), b"in the way", 1);
    for via in ["udp", "ssh"] {
        let ended =
            run(&mut sshd.cp(&["-a", "--via", via, path(&from), &there(&folder.path().join("file/below"))]));
        assert_eq!(ended.status, Some(1), "{via}: {}", ended.said);
        assert!(ended.said.contains("file/below"), "{via}: {}", ended.said);
        let none = there(&folder.path().join("none"));
        let ended = run(&mut sshd.cp(&["-a", "--via", via, &none, path(&folder.path().join("to"))]));
        assert_eq!(ended.status, Some(1), "{via}: {}", ended.said);
        assert!(ended.said.contains("none: file or directory not found"), "{via}: {}", ended.said);
        // A local failure is not attributed to the other end.
        let below_none = folder.path().join("none/below");
        let ended = run(&mut sshd.cp(&["-a", "--via", via, &there(&from), path(&below_none)]));
        assert_eq!(ended.status, Some(1), "{via}: {}", ended.said);
        assert!(ended.said.contains("none: directory not found; make it first"), "{}", ended.said);
        assert!(!ended.said.contains("lab"), "{via}: {}", ended.said);
    }
    let ended = run(&mut sshd.cp(&[path(&folder.path().join("none")), "nobody-has-this-name.invalid:x"]));
    assert_eq!(ended.status, Some(1), "{}", ended.said);
    assert!(
        ended.said.contains("none: file or directory not found"),
        "nobody needs to log in for that: {}",
        ended.said
    );
}

#[test]
fn grebe_is_brought_along_once_and_checked() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    file(&from, &noise(100_000, 1), 1);
    let copy =
        |to: &Path| run(&mut sshd.cp_with("/nowhere/grebe", &["--bootstrap", path(&from), &there(to)]));
    let ended = copy(&to);
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert!(ended.said.contains("bringing grebe"), "{}", ended.said);
    assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
    let brought: Vec<_> = things(&sshd.cache()).into_keys().filter(|name| name.ends_with("grebe")).collect();
    assert_eq!(brought.len(), 2, "the folder and the program: {brought:?}");

    let ended = copy(&folder.path().join("again"));
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert!(!ended.said.contains("bringing"), "it was there: {}", ended.said);

    // A modified program on the other host does not run, because it checks its own hash first.
    let program = sshd.cache().join(brought.into_iter().max_by_key(|name| name.as_os_str().len()).unwrap());
    let mut bytes = fs::read(&program).unwrap();
    bytes.push(0);
    // Its process may not have ended yet: a program that runs is not written to.
    fs::remove_file(&program).unwrap();
    fs::write(&program, bytes).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let ended = copy(&folder.path().join("changed"));
    assert_eq!(ended.status, Some(1), "{}", ended.said);
    assert!(ended.said.contains("differs from the program that was copied there"), "{}", ended.said);
    assert!(!folder.path().join("changed").exists());
}

#[test]
fn a_shared_connection_of_ssh_is_used_and_left_as_it_is() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    fs::create_dir(&to).unwrap();
    for again in ["first", "second"] {
        let to = to.join(again);
        let ended = run(&mut sshd.cp(&["-a", path(&from), &format!("shared:{}", to.display())]));
        assert_eq!(ended.status, Some(0), "{again}: {}", ended.said);
        assert_same(&from, &to, again);
    }
    let master =
        Command::new("ssh").arg("-F").arg(sshd.path("config")).args(["-O", "exit", "shared"]).output();
    master.unwrap().good();
}

#[test]
fn files_are_named_and_the_summary_is_in_words() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    let output = finish(sshd.cp(&["-av", path(&from), &there(&to)]).spawn().unwrap());
    let (listed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(listed.lines().any(|line| line == "copy from/deep/er/large.bin"), "{listed}");
    for words in ["the data goes over UDP", "copied 5", " to lab:", "over UDP", "on the wire"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    let quiet = finish(sshd.cp(&["-aq", path(&from), &there(&folder.path().join("quiet"))]).spawn().unwrap());
    assert_eq!(
        (quiet.status.code(), text(&quiet.stdout), text(&quiet.stderr)),
        (Some(0), String::new(), String::new())
    );
}
