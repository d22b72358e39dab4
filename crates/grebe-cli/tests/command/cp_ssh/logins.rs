//! Logins whose startup files print, wait, or start something else, and shells of other kinds.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::sshd::Sshd;
use super::{Ended, path};
use crate::support::trees::{file, noise};
use crate::support::{MARK, finish, grebe, program, text};

/// How a command ended that logs in to the host `odd`.
fn with(ssh: &str, arguments: &[&str]) -> Ended {
    let (command, more) = arguments.split_first().unwrap();
    let program = program();
    let own = [command, "--ssh", ssh, "--remote-path", &program];
    let mut command = grebe(&[&own[..], more].concat());
    Ended::of(&finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

fn is_installed(program: &str) -> bool {
    let is_there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = is_there.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: {program} is not installed");
    }
    is_there
}

const BRIEF: [&str; 8] = ["--max-rate", "20M", "--max-bytes", "2M", "--tcp-write", "0", "--duration", "3s"];

/// All that logs in, each with a login of its own.
fn each_command(folder: &Path, run: impl Fn(&str, &[&str]) + Sync) {
    let (from, graph) = (folder.join("from"), folder.join("lab.toml"));
    file(&from, &noise(100_000, 1), 1);
    let near = "{ id = 'near', kind = 'record', params = { file = 'FILE', duration = '100ms' } }";
    let near = near.replace("FILE", path(&folder.join("near.sigmf-meta")));
    let adc = "{ id = 'adc', kind = 'synth', host = 'odd', params = { rate = '100k' } }";
    fs::write(&graph, format!("stage = [\n{adc},\n{near},\n]\nedge = [{{ from = 'adc', to = 'near' }}]\n"))
        .unwrap();
    let (to, picture) = (format!("odd:{}", folder.join("to").display()), folder.join("picture.png"));
    std::thread::scope(|scope| {
        scope.spawn(|| run("cp", &["cp", "--no-config", path(&from), &to]));
        scope.spawn(|| run("run", &["run", "--no-config", path(&graph)]));
        scope.spawn(|| {
            run("probe", &[&["probe", "ssh://odd", "--advertise", "127.0.0.1"], &BRIEF[..]].concat())
        });
        scope.spawn(|| {
            run(
                "view",
                &["view", "ssh://odd/synth:sine?rate=1M", "--png", path(&picture), "--after", "300ms"],
            );
        });
    });
}

#[test]
fn output_of_a_login_is_ignored() {
    let Some(sshd) = Sshd::start() else { return };
    for (name, startup) in [
        ("greets", "printf 'Welcome to lab, no line end'"),
        (
            "boasts",
            "printf '{\"serve\":1}\n{\"ticket\":\"grebea\",\"protocol\":1} {\"grebe-cp\":'; printf half >&2",
        ),
        ("echoes", "printf '%s' \"$BASH_EXECUTION_STRING\"; head -c 300000 /dev/zero"),
    ] {
        let (folder, ssh) = (tempfile::tempdir().unwrap(), sshd.login(name, "bash", ".bashrc", startup));
        each_command(folder.path(), |command, arguments| {
            let ended = with(&ssh, arguments);
            assert_eq!(ended.status, Some(0), "{name}, {command}: {}", ended.said);
        });
        assert_eq!(fs::read(folder.path().join("to")).unwrap(), noise(100_000, 1), "{name}");
    }
}

#[test]
fn the_remote_command_line_has_neither_a_ticket_nor_a_name() {
    let Some(sshd) = Sshd::start() else { return };
    let (folder, lines) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let startup = format!("printf '%s\\n' \"$BASH_EXECUTION_STRING\" >> {}", path(lines.path()));
    let ssh = sshd.login("writes", "bash", ".bashrc", &startup);
    each_command(folder.path(), |command, arguments| {
        let ended = with(&ssh, arguments);
        assert_eq!(ended.status, Some(0), "{command}: {}", ended.said);
    });
    let lines = fs::read_to_string(lines.path()).unwrap();
    assert_eq!(lines.lines().filter(|line| line.starts_with(&program())).count(), 4, "{lines}");
    assert!(!lines.contains(path(folder.path())) && !lines.contains("synth:"), "{lines}");
    let is_long = |word: &str| word.len() > 60 && word.chars().all(char::is_alphanumeric);
    assert!(!lines.split_whitespace().any(is_long), "{lines}");
}

#[test]
fn a_login_that_does_not_come_to_the_command_is_given_up_and_gets_nothing_to_run() {
    let Some(sshd) = Sshd::start() else { return };
    let logins = [
        ("reads", "read answer", "nothing was printed"),
        ("cats", "printf 'more: '; cat > \"$HOME/got\"", "\"more:\""),
        ("shells", "exec sh", "nothing was printed"),
        ("fishes", "exec fish -l", "nothing was printed"),
        ("dots", "while :; do printf .; done", "more than 1024 KiB"),
    ];
    std::thread::scope(|scope| {
        for (name, startup, words) in logins {
            if name == "fishes" && !is_installed("fish") {
                continue;
            }
            let sshd = &sshd;
            scope.spawn(move || {
                let (folder, ssh) =
                    (tempfile::tempdir().unwrap(), sshd.login(name, "bash", ".bashrc", startup));
                each_command(folder.path(), |command, arguments| {
                    let ended = with(&ssh, arguments);
                    let said = ended.said;
                    assert_eq!(ended.status, Some(1), "{name}, {command}: {said}");
                    assert!(
                        said.contains("the login at odd does not come to run"),
                        "{name}, {command}: {said}"
                    );
                    assert!(
                        said.contains(words) && said.contains("`ssh odd true`"),
                        "{name}, {command}: {said}"
                    );
                    assert!(!said.contains("protocol"), "{name}, {command}: {said}");
                });
            });
        }
    });
    assert_eq!(fs::read(sshd.path("cats/got")).unwrap(), b"", "it was sent what is meant for grebe");
}

#[test]
fn other_shells_run_it_and_take_it_in() {
    let Some(sshd) = Sshd::start() else { return };
    for (shell, startup) in [("tcsh", ".tcshrc"), ("fish", ".config/fish/config.fish"), ("dash", ".profile")]
    {
        if !is_installed(shell) {
            continue;
        }
        let (folder, ssh) =
            (tempfile::tempdir().unwrap(), sshd.login(shell, shell, startup, "echo -n hello"));
        each_command(folder.path(), |command, arguments| {
            let ended = with(&ssh, arguments);
            assert_eq!(ended.status, Some(0), "{shell}, {command}: {}", ended.said);
        });
        // Where letters mean something to one shell and not to others.
        let odd = sshd.script(&format!("it's a {shell}! $HOME"), &format!("exec {} \"$@\"", program()));
        let (from, to) =
            (folder.path().join("from"), |name: &str| format!("odd:{}", folder.path().join(name).display()));
        let copy = |program: &str, more: &[&str], name: &str| {
            let own = ["cp", "--no-config", "--ssh", &ssh, "--remote-path", program];
            let to = to(name);
            let command = [&own[..], more, &[path(&from), &to]].concat();
            Ended::of(&finish(grebe(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
        };
        let ended = copy(&odd, &[], "by an odd name");
        assert_eq!(ended.status, Some(0), "{shell}: {}", ended.said);
        let _ = fs::remove_dir_all(sshd.cache());
        for (name, is_brought) in [("brought", true), ("there", false)] {
            let ended = copy("/nowhere/grebe", &["--bootstrap"], name);
            assert_eq!(ended.status, Some(0), "{shell}, {name}: {}", ended.said);
            assert_eq!(ended.said.contains("bringing grebe"), is_brought, "{shell}, {name}: {}", ended.said);
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), noise(100_000, 1), "{shell}, {name}");
        }
    }
}

#[test]
fn a_ticket_is_not_shown_if_ssh_dies() {
    let Some(sshd) = Sshd::start() else { return };
    let (folder, ticket) = (tempfile::tempdir().unwrap(), "grebeasecretsecretsecret");
    let from = folder.path().join("from");
    file(&from, b"contents", 1);
    for (name, printed) in [("whole", "}}\\nWelcome"), ("cut", "")] {
        let ready =
            format!("{{\"grebe-cp\":{{\"protocol\":1,\"version\":\"0.1.0\",\"ticket\":\"{ticket}\"{printed}");
        let script = format!("printf 'Welcome'; echo {MARK}; printf 'Welcome{ready}'; kill -9 $PPID");
        let program = sshd.script(name, &script);
        let ended = super::run(&mut sshd.cp_with(&program, &[path(&from), "lab:x"]));
        assert!(ended.status != Some(0) && !ended.said.contains("secret"), "{name}: {}", ended.said);
    }
    let output = finish(
        grebe(&["probe", "ssh://lab", "--advertise", "127.0.0.1", "--ssh", &sshd.ssh(), "--remote-path"])
            .arg(sshd.script(
                "probed",
                &format!("printf Welcome; echo {MARK}; printf '{{\"grebe-cp\":{{\"ticket\":\"{ticket}'; kill -9 $PPID"),
            ))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let said = text(&output.stderr);
    assert!(!output.status.success() && !said.contains("secret"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_waits_for_its_source_ends_with_its_viewer() {
    use crate::support::{signal, wait_until};

    let Some(sshd) = Sshd::start() else { return };
    let pid = sshd.path("pid");
    let script = format!("echo $$ > {}; exec {} \"$@\"", pid.display(), program());
    let program = sshd.script("waits", &script);
    let stream = format!("ssh://lab/shm://waited-for-{}", std::process::id());
    let view = ["view", &stream, "--png", "-", "--ssh", &sshd.ssh(), "--remote-path", &program];
    let child = grebe(&view).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let threads = || {
        let id = fs::read_to_string(&pid).unwrap_or_default();
        fs::read_dir(format!("/proc/{}/task", id.trim())).map_or(0, Iterator::count)
    };
    // Beside its main thread, a reader and a signal thread: it has its task by then.
    wait_until("nothing is started", || threads() >= 3);
    signal("-KILL", child.id());
    finish(child);
    wait_until("the server waits without its viewer", || threads() == 0);
}
