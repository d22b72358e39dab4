//! ZeroMQ, with peers that a test plays by hand: idle ones, late ones, and messages that are not GNU Radio's.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{finish, grebe, listening, text};

/// Greets and gets ready, as a socket of this type.
fn shake(stream: &mut TcpStream, kind: &str) {
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0".to_vec();
    ready.push(kind.len() as u8);
    ready.extend(kind.as_bytes());
    stream.write_all(&[&[4, ready.len() as u8], &ready[..]].concat()).unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; head[1].into()]).unwrap();
}

#[test]
fn an_idle_connection_delays_nobody_and_may_subscribe_late() {
    let to = "zmq://127.0.0.1:0?listen&format=i16";
    let (sender, address, _stderr) = listening(&["sg", "--rate", "1k", "--samples", "1000", "--to", to]);
    let mut idle = TcpStream::connect(&address).unwrap();
    idle.read_exact(&mut [0; 64]).unwrap();
    let mut reader = TcpStream::connect(&address).unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    shake(&mut reader, "SUB");
    idle.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let error = idle.read(&mut [0]).expect_err("it was not held up by the other, whose time is not over");
    assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut));
    // Longer than a handshake may last.
    std::thread::sleep(Duration::from_secs(11));
    reader.write_all(b"\0\x01\x01").unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() >= 2_000, "the sender waited for it, and sent all: {}", bytes.len());
    drop(idle);
    assert_eq!(finish(sender).status.code(), Some(0));
}

#[test]
fn messages_of_several_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    for (query, parts, why) in [
        (
            "",
            &b"\x01\x04adc1\x01\x04head\0\x08samples."[..],
            "of several parts: name the first one with key=",
        ),
        ("&key=adc1", b"\x01\x04adc1\x01\x04head\0\x08samples.", "of more parts than a key and the samples"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("zmq://{}?type=pull&format=i16{query}", listener.local_addr().unwrap());
        let recorder = grebe(&["record", &uri, file.to_str().unwrap(), "--overwrite"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        shake(&mut stream, "PUSH");
        stream.write_all(parts).unwrap();
        let output = finish(recorder);
        assert_eq!(output.status.code(), Some(1), "{query}");
        assert!(text(&output.stderr).contains(why), "{query}: {}", text(&output.stderr));
    }
}
