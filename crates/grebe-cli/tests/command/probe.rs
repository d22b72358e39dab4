//! `grebe probe` with two processes over loopback. The tests do not assert the measured values.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{Good, finish, grebe, run, text};
use grebe::probe::{Address, Key, Purpose, Ticket};

/// A server that is waiting, and its ticket.
fn serve(more: &[&str]) -> (Child, String) {
    let mut arguments = vec!["probe", "--serve", "--bind", "127.0.0.1:0", "--idle-timeout", "30s"];
    arguments.extend(more);
    let mut child = grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ticket = line.trim().strip_prefix("grebe probe ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, ticket)
}

#[test]
fn a_probe_tells_both_directions_within_its_bounds_and_the_server_ends() {
    let (server, ticket) = serve(&[]);
    // Small and slow, so that it says the same on any machine.
    let output = run(&[
        "probe",
        &ticket,
        "--json",
        "--max-rate",
        "20M",
        "--max-bytes",
        "30M",
        "--duration",
        "10s",
        "--size",
        "1400",
        "--tcp-write",
        "1400",
        "--amount",
        "10M",
    ])
    .good();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for direction in ["up", "down"] {
        let way = &report[direction];
        assert_eq!(way["datagram_bytes"], 1_400);
        // Unknown where a system cannot keep datagrams whole, such as wine.
        let mtu_bytes = way["mtu_bytes"]["low"].as_f64();
        assert!(mtu_bytes.map_or(cfg!(windows), |it| it >= 1_500.0), "{way}");
        assert!(way["knee_bps"]["value"].as_f64().unwrap() <= 20.5e6, "{way}");
        for figure in ["loss", "reordered", "duplicated", "jitter_ms", "udp_goodput_bps"] {
            let (figure, name) = (&way[figure], figure);
            let of = |end: &str| figure[end].as_f64().unwrap_or_else(|| panic!("{name} of {way}"));
            assert!(of("low") <= of("value") && of("value") <= of("high"), "{name} {figure}");
        }
        assert_eq!(way["tcp"].as_array().unwrap().len(), 1, "{way}");
        assert!(way["trains"].as_array().unwrap().len() >= 2, "{way}");
    }
    let spent = report["spent_bytes"].as_u64().unwrap();
    assert!((100_000..=33_000_000).contains(&spent), "{spent}");
    assert_eq!(report["advice"]["moves"].as_array().unwrap().len(), 2);
    assert!(!report["verdict"].as_array().unwrap().is_empty());
    let server = finish(server).good();
    assert!(text(&server.stderr).contains("probed by 127.0.0.1"), "{}", text(&server.stderr));
}

#[test]
fn a_train_at_a_given_interval_makes_a_table_and_strangers_get_no_answer() {
    let (server, ticket) = serve(&[]);
    let address = Ticket::from_word(&ticket, Purpose::Probe).unwrap().addresses[0].clone();
    // A client without the key gets no answer, over UDP or TCP.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for bytes in [&b"GPB2\x01\0\0\0hello"[..], &[0; 300], &[0xFF; 1_400], b""] {
        stranger.send_to(bytes, &address).unwrap();
    }
    assert!(stranger.recv(&mut [0; 2_000]).is_err(), "an answer to garbage");
    let mut connection = TcpStream::connect(&address).unwrap();
    connection.write_all(&[0x55; 200]).unwrap();
    assert!(matches!(connection.read(&mut [0; 100]), Ok(0) | Err(_)), "an answer to garbage");
    let output = run(&[
        "probe",
        &ticket,
        "--interval",
        "2ms",
        "--size",
        "1000",
        "--duration",
        "3s",
        "--tcp-write",
        "0",
    ]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    for line in ["round trip", "clock offset", "2000.0 us requested", "loss", "jitter", "Spent: "] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(!said.contains("TCP, "), "{said}");
    assert!(!said.contains(&ticket[5..]), "the ticket is not for the screen");
    assert!(finish(server).status.success());
}

#[test]
fn wrong_tickets_and_limits_say_what_to_do() {
    let (home, world) = (word("127.0.0.1"), word("203.0.113.1"));
    for (arguments, status, why) in [
        (vec!["probe", "host:1"], 2, "begins with grebe"),
        (vec!["probe", &home[..home.len() - 2]], 2, "not a ticket"),
        (vec!["probe", &home, "--size", "9"], 2, "64 to 65507"),
        (vec!["probe", &home, "--max-bytes", "1"], 2, "--max-bytes"),
        (vec!["probe", "ssh://-x"], 2, "give ssh://"),
        (vec!["probe", &world, "--max-rate", "9G"], 2, "--yes"),
        (
            vec!["probe", "--serve", "--bind", "127.0.0.1:0", "--idle-timeout", "10ms"],
            1,
            "no client connected",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{arguments:?}: {}", text(&output.stderr));
        assert!(
            !text(&output.stderr).contains(&home[5..60]),
            "a ticket is a secret: {}",
            text(&output.stderr)
        );
    }
}

/// A ticket for port 9 of a host, where nobody serves.
fn word(host: &str) -> String {
    let (addresses, key) = (vec![Address::new(host, 9).unwrap()], Key::from_bytes([7; Key::BYTES]));
    Ticket { purpose: Purpose::Probe, addresses, relay: None, expires_unix_s: 2_000_000_000, key }
        .word()
        .to_string()
}

/// An `ssh` that runs the command on this machine, or fails as the real one does, and a place where it leaves its
/// process id.
#[cfg(unix)]
struct Ssh {
    folder: tempfile::TempDir,
}

#[cfg(unix)]
impl Ssh {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssh");
        std::fs::write(&path, SSH).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// `grebe probe` with this `ssh`, as it does when asked `how`.
    fn probe(&self, how: &str, arguments: &[&str]) -> std::process::Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = grebe(&[&["probe"], arguments].concat());
        command.env("PATH", format!("{}:{path}", self.folder.path().display()));
        command.env("FAKE", how).env("FAKE_FOLDER", self.folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Its arguments, once it has started.
    fn called(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("called")).unwrap_or_default()
    }

    /// Waits until the server is up (or down). Without its tether it would run until its client has been silent for 10 s.
    fn wait(&self, is_there: bool) {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_secs(7) {
            let pid = std::fs::read_to_string(self.folder.path().join("pid")).unwrap_or_default();
            let lives = !pid.is_empty()
                && std::process::Command::new("sh")
                    .args(["-c", &format!("kill -0 {pid}")])
                    .stderr(Stdio::null())
                    .status()
                    .unwrap()
                    .success();
            if lives == is_there {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server is {}", if is_there { "not there" } else { "still there" });
    }
}

#[cfg(unix)]
const SSH: &str = r#"#!/bin/sh
case " $* " in *" -G "*) echo "user me"; echo "hostname 127.0.0.1"; exit 0;; esac
printf '%s\n' "$*" > "$FAKE_FOLDER/called"
for last; do :; done
case "$FAKE" in
  works) echo $$ > "$FAKE_FOLDER/pid.new"; mv "$FAKE_FOLDER/pid.new" "$FAKE_FOLDER/pid"
         echo "Welcome to this machine"; echo "a banner" >&2; exec sh -c "$last";;
  refuses) echo "me@127.0.0.1: Permission denied (publickey,password)." >&2; exit 255;;
  unreachable) echo "ssh: connect to host 127.0.0.1 port 22: Connection refused" >&2; exit 255;;
  old) echo "error: unexpected argument '--stdio' found" >&2; exit 2;;
  other) echo grebe-is-here-5d0b1f7c24e9; echo '{"grebe-cp":{"ticket":"grebea","version":"9.9.9","protocol":99}}'; cat;;
esac
"#;

#[cfg(unix)]
const BRIEF: [&str; 8] = ["--max-rate", "20M", "--max-bytes", "20M", "--tcp-write", "0", "--duration", "8s"];

#[cfg(unix)]
#[test]
fn the_server_is_started_over_ssh_and_ends_with_the_probe() {
    let ssh = Ssh::new();
    let exe = env!("CARGO_BIN_EXE_grebe");
    // Only ssh knows the alias.
    let there = ["ssh://me@lab.invalid:2200/srv", "--ssh", "ssh -v -4", "--remote-path", exe, "--json"];
    let arguments = [&there[..], &BRIEF[..]].concat();
    let output = finish(ssh.probe("works", &arguments).spawn().unwrap()).good();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{report}");
    assert!(report["up"]["loss"]["high"].as_f64().is_some(), "{report}");
    let down = &report["down"];
    // On a busy machine the search may end without a knee, and says why.
    assert!(down["knee_bps"].is_object() || down["limit"].is_string(), "{report}");
    // Datagrams of 64 KiB would come through here, and a burst of them spend all that was allowed.
    let spent = report["spent_bytes"].as_u64().unwrap();
    assert!(spent <= 20_000_000, "{spent}");
    let called = ssh.called();
    assert!(called.starts_with("-T -v -4 -x -o "), "{called}");
    assert!(called.contains(" -p 2200 -- me@lab.invalid "), "{called}");
    assert!(called.ends_with("probe --serve --stdio\n"), "all users there can see more: {called}");
    ssh.wait(false);
}

#[cfg(unix)]
#[test]
fn the_server_ends_however_its_client_does() {
    for signal in ["-KILL", "-INT"] {
        let ssh = Ssh::new();
        let exe = env!("CARGO_BIN_EXE_grebe");
        let arguments = [&["ssh://127.0.0.1", "--remote-path", exe], &BRIEF[..]].concat();
        let child = ssh.probe("works", &arguments).spawn().unwrap();
        ssh.wait(true);
        std::thread::sleep(Duration::from_millis(1_500));
        crate::support::signal(signal, child.id());
        let output = finish(child);
        assert_eq!(output.status.code(), (signal == "-INT").then_some(130), "{}", text(&output.stderr));
        ssh.wait(false);
    }
}

#[cfg(unix)]
#[test]
fn a_failed_start_of_the_probe_server_by_ssh_is_explained() {
    for (how, more, why) in [
        ("refuses", vec![], "refused the login: me@127.0.0.1: Permission denied"),
        ("unreachable", vec![], "cannot reach me@127.0.0.1: ssh: connect"),
        ("old", vec![], "too old"),
        ("other", vec![], "9.9.9, which probes in another way"),
        ("works", vec!["--remote-path", "/nowhere/grebe"], "--remote-path /path/to/grebe"),
        ("works", vec!["--remote-path", "false"], "`false probe --serve --stdio` at me@127.0.0.1 ended"),
    ] {
        let ssh = Ssh::new();
        let arguments = [&["ssh://me@127.0.0.1"], &more[..]].concat();
        let output = finish(ssh.probe(how, &arguments).spawn().unwrap());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{how}: {said}");
        assert!(said.contains(why), "{how}: {said}");
        ssh.wait(false);
    }
    let none = grebe(&["probe", "ssh://127.0.0.1"]).env("PATH", "/nowhere").stderr(Stdio::piped()).spawn();
    let said = text(&finish(none.unwrap()).stderr);
    assert!(said.contains("`ssh` is not installed on this machine"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_ticket_has_the_address_that_is_advertised() {
    let (server, ticket) = serve(&["--advertise", "lab.example.org:700", "--tethered"]);
    let ticket = Ticket::from_word(&ticket, Purpose::Probe).unwrap();
    assert_eq!(ticket.addresses, [Address::new("lab.example.org", 700).unwrap()]);
    // Its standard input is empty from the start.
    assert_eq!(finish(server).status.code(), Some(130));
}
