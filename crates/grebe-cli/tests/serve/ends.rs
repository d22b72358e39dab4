//! How a server ends: with the viewer that started it by `ssh`, and by Ctrl-C.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served::{hear, say, serve};
use crate::support::{run, signal, text};

#[test]
fn ssh_starts_a_server_there_and_ends_it_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    // What `ssh` does with its last word: a shell there runs it.
    let ssh = folder.path().join("ssh");
    let started = folder.path().join("started");
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\necho $$ > {}\nexec sh -c \"exec $last\"\n",
        started.display()
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let picture = folder.path().join("x.png");
    let there = ["--ssh", ssh.to_str().unwrap(), "--remote-path", env!("CARGO_BIN_EXE_grebe")];
    let look = [
        "view",
        "ssh://me@mast/synth:sine?rate=1M&frequency=1k",
        "--png",
        picture.to_str().unwrap(),
        "--json",
        "--after",
        "1s",
        "--span",
        "10ms",
    ];
    let output = run(&[&look[..], &there].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let numbers: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((numbers["channels"][0]["frequency"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{numbers}");
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let id = fs::read_to_string(&started).unwrap();
    let began = Instant::now();
    while Path::new("/proc").join(id.trim()).join("exe").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the server there goes on without its viewer");
        std::thread::sleep(Duration::from_millis(20));
    }
    // What cannot be opened there is said here.
    let look = ["view", "ssh://me@mast//nowhere/x.sigmf-meta", "--png", picture.to_str().unwrap()];
    let output = run(&[&look[..], &there].concat());
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("nowhere"), "{said}");
    let none = run(&[
        "view",
        "ssh://me@mast/synth:",
        "--png",
        "-",
        "--ssh",
        ssh.to_str().unwrap(),
        "--remote-path",
        "/nowhere/grebe",
    ]);
    assert!(text(&none.stderr).contains("--remote-path"), "{}", text(&none.stderr));
}

#[test]
fn ctrl_c_ends_a_server_with_a_farewell() {
    let mut served = serve(&["synth:sine?rate=1M"]);
    let mut looks = served.socket();
    say(&mut looks, &served.hello()).unwrap();
    served.says("looks (1 now)");
    signal("-INT", served.child.id());
    let mut last = String::new();
    while let Some((kind, bytes)) = hear(&mut looks) {
        if kind == 1 {
            last = text(&bytes);
        }
    }
    assert!(last.contains("the server ended"), "{last}");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = served.child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(130));
}
