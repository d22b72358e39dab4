//! One sender, several readers of a group on this machine.
#![cfg(target_os = "linux")]

use std::io::Read;

use crate::support::{finish, listening, run, text};

#[test]
fn several_readers_of_a_group_get_what_one_sender_sends() {
    let folder = tempfile::tempdir().unwrap();
    // The first is given a port, which the others share with it.
    let mut port = 0;
    let mut readers = Vec::new();
    for number in 0..3 {
        let uri = format!("udp://239.255.77.2:{port}?interface=lo");
        let file = folder.path().join(format!("{number}.sigmf-meta"));
        let (reader, address, stderr) = listening(&["record", &uri, file.to_str().unwrap(), "--json"]);
        port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        readers.push((reader, stderr));
    }
    let to = format!("udp://239.255.77.2:{port}?interface=lo&ttl=0");
    let sent = run(&["sg", "--rate", "200k", "--samples", "10000", "--datagram-size", "1400", "--to", &to]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    for (reader, mut stderr) in readers {
        let (output, mut said) = (finish(reader), String::new());
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let lost = report["losses"]["network_samples"].as_u64().unwrap();
        assert_eq!(report["samples"].as_u64().unwrap() + lost, 10_000, "{report} {said}");
    }
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let output = run(&["sg", "--samples", "10", "--to", "udp://239.1.2.3:5000?interface=nowhere0"]);
    assert_ne!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(said.contains("unknown network interface 'nowhere0'"), "{said}");
}
