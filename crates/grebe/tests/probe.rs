//! `grebe probe` as a user runs it: two processes over loopback. What is measured is not asserted, only that it was.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

use support::{finish, grebe, run, text};

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
fn a_probe_tells_both_ways_within_its_bounds_and_the_server_ends() {
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
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for way in ["up", "down"] {
        let way = &report[way];
        assert_eq!(way["datagram_bytes"], 1_400);
        assert!(way["mtu_bytes"]["low"].as_f64().unwrap() >= 1_500.0, "{way}");
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
    let server = finish(server);
    assert!(server.status.success(), "{}", text(&server.stderr));
    assert!(text(&server.stderr).contains("probed by 127.0.0.1"), "{}", text(&server.stderr));
}

#[test]
fn the_experiment_of_the_one_who_asks_is_a_table_and_strangers_get_nothing() {
    let (server, ticket) = serve(&[]);
    let (address, key) = ticket.split_once('/').unwrap();
    // Who has no key gets nothing, by either transport.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for bytes in [&b"GPB1\x01\0\0\0hello"[..], &[0; 300], &[0xFF; 1_400], b""] {
        stranger.send_to(bytes, address).unwrap();
    }
    assert!(stranger.recv(&mut [0; 2_000]).is_err(), "an answer to garbage");
    let mut connection = TcpStream::connect(address).unwrap();
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
    for line in ["round trip", "clock offset", "2000.0 us asked", "loss", "jitter", "Spent: "] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(!said.contains("TCP, "), "{said}");
    assert!(!said.contains(key), "the key is not for the screen");
    assert!(finish(server).status.success());
}

#[test]
fn wrong_tickets_and_limits_say_what_to_do() {
    for (arguments, status, why) in [
        (vec!["probe", "host:1"], 2, "no key"),
        (vec!["probe", "127.0.0.1:9/00000000000000000000000000000000", "--size", "9"], 2, "64 to 65507"),
        (vec!["probe", "127.0.0.1:9/00000000000000000000000000000000", "--max-bytes", "1"], 2, "--max-bytes"),
        (vec!["probe", "203.0.113.1:9/00000000000000000000000000000000", "--max-rate", "9G"], 2, "--yes"),
        (vec!["probe", "--serve", "--bind", "127.0.0.1:0", "--idle-timeout", "10ms"], 1, "nobody came"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{arguments:?}: {}", text(&output.stderr));
    }
}
