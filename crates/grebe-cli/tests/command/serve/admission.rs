//! Admission: tokens, certificates, limits, hostile visitors.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::picture;
use super::served::{hear, say, serve, until};
use crate::support::{run, text};

#[test]
fn a_viewer_without_a_token_is_refused_and_so_is_a_foreign_host_name() {
    let mut served = serve(&["synth:sine?rate=1M"]);
    let wrong = served.link.replace(&served.token, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let output = run(&["view", &wrong, "--png", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("does not let this viewer in") && said.contains("token"), "{said}");
    served.says("was refused");
    let nowhere = run(&["view", "serve://127.0.0.1:9?token=x", "--png", "-"]);
    assert!(text(&nowhere.stderr).contains("no connection to 127.0.0.1:9"), "{}", text(&nowhere.stderr));

    let host = &served.address;
    let page = served.ask(&format!("GET / HTTP/1.1\nHost: {host}\nConnection: close\n\n"));
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("default-src 'none'") && page.contains("nosniff"),
        "{page}"
    );
    let foreign = served.ask("GET / HTTP/1.1\nHost: evil.example\n\n");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    let upgrade = "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let page =
        served.ask(&format!("GET /scope HTTP/1.1\nHost: {host}\nOrigin: http://evil.example\n{upgrade}\n\n"));
    assert!(page.starts_with("HTTP/1.1 403"), "{page}");
    for (request, status) in [
        (format!("GET /etc/passwd HTTP/1.1\nHost: {host}\n\n"), "404"),
        (format!("GET /../../etc/passwd HTTP/1.1\nHost: {host}\n\n"), "404"),
        (format!("POST / HTTP/1.1\nHost: {host}\n\n"), "405"),
        (format!("GET /scope HTTP/1.1\nHost: {host}\n\n"), "426"),
    ] {
        let answer = served.ask(&request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
    }
}

#[test]
fn hostile_visitors_are_refused_and_a_viewer_continues() {
    let mut served = serve(&["synth:sine?channels=1&rate=1M&frequency=1k", "--history", "16M"]);
    // A viewer that reads all messages.
    let mut good = served.socket();
    say(&mut good, &served.hello()).unwrap();
    say(&mut good, r#"{"viewport":{"number":1,"columns":300,"span":0.01}}"#).unwrap();
    served.says("connected (1 now)");
    let pictures = |good: &mut TcpStream, more: usize| {
        let mut seen = 0;
        while seen < more {
            let (kind, bytes) = hear(good).expect("it is not sent away");
            if kind == 2 {
                seen += 1;
                let number =
                    bytes[1..].iter().enumerate().take(3).fold((0u64, true), |(sum, goes_on), (at, byte)| {
                        if goes_on {
                            (sum | u64::from(byte & 127) << (7 * at), byte & 128 != 0)
                        } else {
                            (sum, false)
                        }
                    });
                say(good, &format!(r#"{{"ack":{}}}"#, number.0)).unwrap();
            }
        }
    };
    pictures(&mut good, 5);

    let before = served.memory_bytes();

    // Garbage, half heads, a missing hello, silent connections: a thousand, with five hundred at a time.
    let mut strangers = VecDeque::new();
    for number in 0..1000 {
        let mut stream = served.connect();
        let _ = match number % 4 {
            0 => stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xff]),
            1 => stream.write_all(b"GET /scope HTTP/1.1\r\nHost:"),
            2 => stream.write_all(&[b'A'; 20_000]),
            _ => Ok(()),
        };
        strangers.push_back(stream);
        if strangers.len() > 500 {
            strangers.pop_front();
        }
    }
    pictures(&mut good, 20);
    // An accepted viewer that then sends invalid messages.
    for words in ["garbage", r#"{"ack":99999}"#, r#"{"viewport":{"xy":7}}"#] {
        let mut bad = served.socket();
        say(&mut bad, &served.hello()).unwrap();
        say(&mut bad, words).unwrap();
        let mut refused = String::new();
        while let Some((_, bytes)) = hear(&mut bad) {
            if text(&bytes).contains("refused") {
                refused = text(&bytes);
            }
        }
        assert!(refused.contains("refused"), "{words}: {refused}");
    }
    // One that floods.
    let mut flood = served.socket();
    say(&mut flood, &served.hello()).unwrap();
    let began = Instant::now();
    while say(&mut flood, r#"{"ping":{"at":1}}"#).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "a flood is not ended");
    }
    served.says("messages a second");
    // One that looks and never reads.
    let mut deaf = served.socket();
    say(&mut deaf, &served.hello()).unwrap();
    say(&mut deaf, r#"{"viewport":{"number":1,"columns":4096,"overview":2048,"spectrum":{}}}"#).unwrap();
    pictures(&mut good, 20);
    drop(strangers);
    if let Some((before, after)) = before.zip(served.memory_bytes()) {
        assert!(after < before + (64 << 20), "{before} bytes became {after}");
    }
    let _ = deaf.shutdown(Shutdown::Both);

    // A newcomer is let in still.
    let folder = tempfile::tempdir().unwrap();
    let numbers = picture(&served.link, &folder.path().join("x.png"), &["--span", "10ms"]);
    // Samples that a generator skipped on a busy machine are reported separately.
    assert_eq!(numbers["lost_samples"], 0, "no sample was lost at the source");
    assert!((numbers["channels"][0]["frequency"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{numbers}");
}

#[test]
fn a_viewer_that_asks_for_too_much_memory_gets_an_error_and_the_server_continues() {
    let history = 64 << 20;
    let served = serve(&["synth:?channels=255&rate=1k&format=cf32", "--history", "64M"]);
    let mut viewer = served.socket();
    say(&mut viewer, &served.hello()).unwrap();
    // Of a first picture a part of the samples that it asks for are there, and it gets the newest of them.
    say(&mut viewer, r#"{"extract":{"number":1,"from":0,"to":18446744073709551615}}"#).unwrap();
    say(&mut viewer, r#"{"viewport":{"number":1,"columns":100}}"#).unwrap();
    until(&mut viewer, r#""stream":{"#);
    let before = served.memory_bytes();
    let lanes: Vec<_> = (1..=255).map(|lane| format!(r#"{{"lane":"{lane}.i","low":-1,"high":1}}"#)).collect();
    let records = format!(
        r#"{{"viewport":{{"number":2,"span":16700,"trigger":{{"mode":"auto"}},"persistence":[{}]}}}}"#,
        lanes.join(",")
    );
    say(&mut viewer, &records).unwrap();
    let told = until(&mut viewer, r#""refused":"no persistence"#);
    assert!(told.contains("--history") && told.contains("show less time"), "{told}");
    // A large request is limited to the maximum columns of a picture.
    let all = r#"{"viewport":{"number":3,"span":0.1,"columns":4096,"overview":2048,"parts":["i","q","magnitude","db","phase","frequency"],
        "trigger":{"mode":"auto"},"persistence":[{"lane":"1.i","low":-1,"high":1}],"xy":{"x":"1.i","y":"1.q","x_range":[-1,1],"y_range":[-1,1],"size":[9999,9999]},
        "spectrum":{"size":4294967296,"averages":4294967295,"waterfall":0}}}"#;
    say(&mut viewer, all).unwrap();
    until(&mut viewer, r#""refused":null"#);
    if let Some((before, after)) = before.zip(served.memory_bytes()) {
        assert!(after < before + (8 * history), "{before} bytes became {after}");
    }
    let folder = tempfile::tempdir().unwrap();
    let numbers = picture(&served.link, &folder.path().join("x.png"), &["--span", "10ms", "--channels", "1"]);
    assert_eq!(numbers["channels"].as_array().unwrap().len(), 2, "others see on, I and Q: {numbers}");
}

#[test]
fn a_page_is_told_in_words_and_asks_for_no_more_than_a_viewer_may() {
    let history = 64 << 20;
    let served = serve(&["synth:?channels=255&rate=1k&format=cf32", "--history", "64M"]);
    let mut page = served.socket();
    say(&mut page, &served.hello().replace(r#""token""#, r#""page":{},"token""#)).unwrap();
    until(&mut page, r#""keys":[["#);
    let mut number = 0;
    let mut act = |page: &mut TcpStream, what: &str| {
        number += 1;
        say(page, &format!(r#"{{"do":{{"number":{number},"what":{what}}}}}"#)).unwrap();
    };
    let most = r#"{"size":{"columns":999999999,"overview":999999999,"plot":[9e9,9e9],"spectrum":[9e9,9e9],"waterfall":[9e9,9e9],"xy":[9e9,9e9]}}"#;
    act(&mut page, most);
    let told = until(&mut page, "\"stream\":\"255 \u{d7} 1 kS/s cf32");
    assert!(told.contains(r#""word":"#) && told.contains(r#""act":"autoset""#), "{told}");
    let before = served.memory_bytes();
    for part in ["magnitude", "db", "phase", "frequency"] {
        act(&mut page, &format!(r#"{{"act":{{"part":"{part}"}}}}"#));
    }
    for key in ["f", "w", "@", "v", "H"] {
        act(&mut page, &format!(r#"{{"key":"{key}"}}"#));
    }
    act(&mut page, r#"{"act":{"trigger":"auto"}}"#);
    act(&mut page, r#"{"show":{"ending":0,"samples":16700000}}"#);
    act(&mut page, r#"{"key":"End"}"#);
    act(&mut page, r#"{"key":"d"}"#);
    let told = until(&mut page, r#""notice":"no persistence"#);
    assert!(told.contains("--history"), "{told}");
    if let Some((before, after)) = before.zip(served.memory_bytes()) {
        assert!(after < before + (8 * history), "{before} bytes became {after}");
    }
    let folder = tempfile::tempdir().unwrap();
    let numbers = picture(&served.link, &folder.path().join("x.png"), &["--span", "10ms", "--channels", "1"]);
    assert_eq!(numbers["channels"].as_array().unwrap().len(), 2, "others see on, I and Q: {numbers}");
}

#[test]
fn a_certificate_is_known_by_its_link_and_another_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (key, certificate) = (at("key.pem"), at("cert.pem"));
    let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=mast";
    let made = std::process::Command::new("openssl")
        .args(make.split(' '))
        .args(["-keyout", &key, "-out", &certificate])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: no openssl to make a certificate with");
        return;
    }
    let served = serve(&["synth:sine?rate=1M&frequency=1k", "--tls-cert", &certificate, "--tls-key", &key]);
    let (_, digest) = served.link.split_once("&cert=").unwrap();
    let numbers = picture(&served.link, &folder.path().join("x.png"), &["--span", "10ms"]);
    assert!((numbers["channels"][0]["frequency"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{numbers}");
    let other = served.link.replace(digest, &"a5".repeat(32));
    let said = text(&run(&["view", &other, "--png", "-"]).stderr);
    assert!(said.contains("another certificate"), "{said}");
    let plain = served.link.replace(&format!("&cert={digest}"), "");
    assert!(!run(&["view", &plain, "--png", "-"]).status.success());
}

#[test]
fn only_so_many_look_at_once() {
    let mut served = serve(&["synth:sine?rate=1M", "--viewers", "1"]);
    let mut first = served.socket();
    say(&mut first, &served.hello()).unwrap();
    served.says("connected (1 now)");
    let output = run(&["view", &served.link, "--png", "-"]);
    let said = text(&output.stderr);
    assert!(said.contains("1 viewers look already") && said.contains("--viewers"), "{said}");
}
