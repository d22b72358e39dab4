//! How a server ends: with the viewer that started it by `ssh`, and by Ctrl-C.

use std::fs;
#[cfg(target_os = "linux")]
use std::net::{TcpListener, TcpStream};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::served::{hear, say, serve, ssh_in};
use crate::support::{Good, run, signal, text, wait_until};

#[test]
fn ssh_starts_a_remote_server_and_ends_it_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let (ssh, started) = ssh_in(folder.path());
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
    let output = run(&[&look[..], &there].concat()).good();
    let numbers: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((numbers["channels"][0]["frequency"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{numbers}");
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let id = fs::read_to_string(&started).unwrap();
    wait_until("the server there goes on without its viewer", || {
        !Path::new("/proc").join(id.trim()).join("exe").exists()
    });
    // A failure to open on the other host is reported here.
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
    served.says("connected (1 now)");
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

/// Forwards the bytes of a port, or holds them while `stands` is set, as a link that is down does.
#[cfg(target_os = "linux")]
fn link_to(address: String, stands: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&address) else { return };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let stands = stands.clone();
                std::thread::spawn(move || {
                    let mut block = [0; 4096];
                    while let Ok(bytes @ 1..) = std::io::Read::read(&mut from, &mut block) {
                        while stands.load(Ordering::Relaxed) {
                            std::thread::sleep(Duration::from_millis(10));
                        }
                        if std::io::Write::write_all(&mut to, &block[..bytes]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    here
}

#[test]
#[cfg(target_os = "linux")]
fn a_viewer_says_that_its_link_is_dead_and_comes_back_when_it_is_not() {
    use crate::support::screen::Screen;

    let served = serve(&["synth:sine?rate=100k"]);
    let stands = Arc::new(AtomicBool::new(false));
    let link = served.link.replace(&served.address, &link_to(served.address.clone(), stands.clone()));
    let Some(mut screen) = Screen::start(&["view", &link, "--term", "--no-session"]) else { return };
    screen.sees("LIVE");
    stands.store(true, Ordering::Relaxed);
    screen.sees("nothing has come from the server for");
    stands.store(false, Ordering::Relaxed);
    screen.sees_no("nothing has come");
    stands.store(true, Ordering::Relaxed);
    screen.sees("trying again");
    stands.store(false, Ordering::Relaxed);
    screen.sees_no("trying again");
    screen.sees("LIVE");
    stands.store(true, Ordering::Relaxed);
    screen.sees("trying again");
    screen.quit();
}
