//! `grebe serve` and its viewers, as a user runs them: what is seen, who is let in, and what hostile visitors can do.

mod support;

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use grebe_scope::Scale;
use grebe_serve::{FarViewer, connect};
use grebe_view::{Finding, FoundEvent, ScopeLink, Sought};
use serde_json::Value;
use support::{example, finish, grebe, run, text};

/// A server, and what it printed.
struct Served {
    child: Child,
    /// For `grebe view`.
    link: String,
    /// Host and port.
    address: String,
    token: String,
    /// The token of who may change the source.
    control: Option<String>,
    stderr: BufReader<ChildStderr>,
}

fn serve(arguments: &[&str]) -> Served {
    let arguments = [&["serve", "--json"], arguments].concat();
    let mut child = grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let Ok(printed) = serde_json::from_str::<Value>(&line) else {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        panic!("{line:?} {said}");
    };
    let of = |key: &str| printed[key].as_str().unwrap().to_owned();
    let (link, address) = (of("link"), of("listen"));
    let token_of = |link: &str| link.split("token=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let token = token_of(&link);
    let control = printed["control_link"].as_str().map(token_of);
    assert!(of("page").ends_with(&format!("#token={token}")), "{printed}");
    Served { child, link, address, token, control, stderr }
}

impl Served {
    /// Waits until it has said so.
    fn says(&mut self, words: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended before it said {words:?}");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// What it has of the machine's memory, where that can be asked.
    fn memory_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// What is answered to a request.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        text(&answer)
    }

    /// A connection that speaks as viewers do, up to its first message.
    fn socket(&self) -> TcpStream {
        let mut stream = self.connect();
        let request = format!(
            "GET /scope HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(text(&head).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{}", text(&head));
        stream
    }

    fn hello(&self) -> String {
        format!(r#"{{"hello":{{"protocol":1,"token":"{}"}}}}"#, self.token)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a text as a viewer does: masked.
fn say(stream: &mut TcpStream, words: &str) -> std::io::Result<()> {
    let mut frame = vec![0x81];
    match words.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend((long as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(words.as_bytes());
    stream.write_all(&frame)
}

/// The next message of a server: its opcode and its bytes; `None` at the end.
fn hear(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    let length = match head[1] {
        126 => {
            let mut more = [0; 2];
            stream.read_exact(&mut more).ok()?;
            u16::from_be_bytes(more).into()
        }
        127 => {
            let mut more = [0; 8];
            stream.read_exact(&mut more).ok()?;
            u64::from_be_bytes(more) as usize
        }
        short => usize::from(short),
    };
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    Some((head[0] & 15, bytes))
}

/// A picture of what is served, and its numbers: of a recording once it is whole.
fn picture(link: &str, file: &Path, more: &[&str]) -> Value {
    let arguments = [&["view", link, "--png", file.to_str().unwrap(), "--json"], more].concat();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_far_picture_of_a_recording_is_that_of_the_recording_to_the_pixel() {
    let folder = tempfile::tempdir().unwrap();
    let (far, near) = (folder.path().join("far.png"), folder.path().join("near.png"));
    let recording = example("ecg.sigmf-meta");
    let recording = recording.to_str().unwrap();
    let served = serve(&[recording, "--names", "ECG", "--units", "V", "--scale", "5u"]);
    let look = ["--span", "9s", "--size", "900x500"];
    let numbers = picture(&served.link, &far, &look);
    let near_look = ["--names", "ECG", "--units", "V", "--scale", "5u"];
    let arguments =
        [&["view", recording, "--png", near.to_str().unwrap(), "--json"], &look[..], &near_look[..]].concat();
    let output = run(&arguments);
    let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(numbers["channels"], expected["channels"]);
    assert_eq!(numbers["channels"][0]["name"], "ECG");
    assert_eq!(numbers["trigger"]["found"], expected["trigger"]["found"]);
    let [far, near] = [far, near].map(|path| fs::read(path).unwrap());
    assert!(far == near, "the pictures differ: {} and {} bytes", far.len(), near.len());
}

#[test]
fn two_look_at_once_each_at_what_they_want_and_the_server_says_who() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = serve(&["synth:sine,square?channels=2&rate=1M&frequency=1k"]);
    let link = served.link.clone();
    let (one, other) = (folder.path().join("one.png"), folder.path().join("other.png"));
    let (wide, narrow) = std::thread::scope(|scope| {
        let wide = scope.spawn(|| picture(&link, &one, &["--span", "100ms"]));
        let narrow = picture(&link, &other, &["--span", "2ms", "--show", "2", "--spectrum"]);
        (wide.join().unwrap(), narrow)
    });
    let frequency = |numbers: &Value| numbers["channels"][0]["frequency"].as_f64().unwrap();
    assert_eq!(
        (wide["channels"].as_array().unwrap().len(), narrow["channels"].as_array().unwrap().len()),
        (2, 1)
    );
    assert!(
        (frequency(&wide) - 1000.0).abs() < 1.0 && (frequency(&narrow) - 1000.0).abs() < 5.0,
        "{wide} {narrow}"
    );
    let peak = narrow["channels"][0]["peaks"][0]["hz"].as_f64().unwrap();
    assert!((peak - 1000.0).abs() < 130.0, "{peak}");
    assert!(served.says("looks (2 now)").contains("127.0.0.1"));
    served.says("left (0 now)");
}

#[test]
fn of_several_sources_each_viewer_sees_the_one_that_its_link_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let recording = example("ecg.sigmf-meta");
    let square = "synth:square?channels=2&rate=1M&frequency=2k";
    let mut served =
        serve(&["synth:sine?channels=1&rate=1M&frequency=1k", square, recording.to_str().unwrap()]);
    let link = |source: usize| format!("{}&source={source}", served.link);
    let (first, second, third) = (served.link.clone(), link(2), link(3));
    let (beyond, look) = (link(4), ["--span", "10ms"]);
    let [first, second, third] = std::thread::scope(|scope| {
        let second = scope.spawn(|| picture(&second, &at("2.png"), &look));
        let third = scope.spawn(|| picture(&third, &at("3.png"), &["--span", "9s"]));
        [picture(&first, &at("1.png"), &look), second.join().unwrap(), third.join().unwrap()]
    });
    let frequency = |numbers: &Value| numbers["channels"][0]["frequency"].as_f64().unwrap();
    let channels = |numbers: &Value| numbers["channels"].as_array().unwrap().len();
    assert_eq!((channels(&first), channels(&second)), (1, 2));
    assert!((frequency(&first) - 1000.0).abs() < 1.0 && (frequency(&second) - 2000.0).abs() < 5.0);
    assert_eq!(third["sample_rate_hz"], 360.0);
    let output = run(&["view", &beyond, "--png", "-"]);
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && said.contains("no source 4") && said.contains("2 synth:square"),
        "{said}"
    );
    served.says("looks at synth:square");
}

/// What a far viewer finds in all that a server holds, and how the search ended.
fn found(viewer: &FarViewer, words: &str, scales: &[Scale]) -> (Vec<FoundEvent>, String) {
    let finding = viewer.finder().unwrap().find(Sought { words: words.into(), scales: scales.to_vec() });
    let (began, mut events) = (Instant::now(), Vec::new());
    loop {
        if let Some(news) = finding.take_news() {
            events.extend(news.events);
            if let Some(ended) = news.ended {
                assert_eq!(news.found, events.len() as u64, "{ended}");
                return (events, ended);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{words}: it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What `grebe find` finds of the same.
fn found_beside(recording: &str, words: &str) -> Vec<FoundEvent> {
    let words: Vec<&str> = words.split(' ').collect();
    let said = run(&[&["find", recording, "--json", "--trigger"], &words[..]].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let of = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        FoundEvent {
            index: event["sample_index"].as_u64().unwrap(),
            length_samples: event["samples"].as_u64().unwrap(),
            lane: event["channel"].as_str().map(|lane| lane.parse().unwrap()),
        }
    };
    text(&said.stdout).lines().map(of).collect()
}

fn look(served: &Served) -> (ScopeLink, FarViewer) {
    connect(&served.link.parse().unwrap(), "a test", 60.0, || false).unwrap()
}

/// 8 channels of f64, so large that a scope looks at it where it lies, with a pulse of 1.5 in the first here and there, and a gap.
fn large_recording(folder: &Path) -> String {
    let samples = 1_100_000u64;
    let mut data = fs::File::create(folder.join("large.sigmf-data")).unwrap();
    data.set_len(samples * 64).unwrap();
    for (position, length) in [(10u64, 3u64), (65_534, 5), (499_999, 2), (700_000, 70_000), (1_099_990, 1)] {
        for at in position..position + length {
            data.seek(SeekFrom::Start(at * 64)).unwrap();
            data.write_all(&1.5f64.to_le_bytes()).unwrap();
        }
    }
    let meta = serde_json::json!({
        "global": { "core:datatype": "rf64_le", "core:version": "1.2.0", "core:sample_rate": 1e6, "core:num_channels": 8 },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 0 },
            { "core:sample_start": 500_000, "core:global_index": 500_100 },
        ],
        "annotations": [],
    });
    let path = folder.join("large.sigmf-meta");
    fs::write(&path, meta.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_far_viewer_finds_in_a_recording_what_grebe_find_does_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (ecg, large) = (example("ecg.sigmf-meta"), large_recording(folder.path()));
    let served = serve(&[ecg.to_str().unwrap(), &large]);
    let (_link, viewer) = look(&served);
    // Of a short one that was read into the scope's memory; in units that the viewer has.
    let millivolts = "edge --level 0.6 --hysteresis 0.1";
    let beside = found_beside(ecg.to_str().unwrap(), millivolts);
    let halves = [Scale { factor: 0.5, offset: 100.0 }];
    let (events, ended) = found(&viewer, "edge --level 160 --hysteresis 10", &halves);
    assert!(beside.len() > 100 && ended == "all of it was searched", "{} {ended}", beside.len());
    assert!(events == beside, "{} and {} events", events.len(), beside.len());
    for words in [
        millivolts,
        "level --level 0.6 --longer 10ms",
        "pulse --level 0.6 --shorter 50ms",
        "power --level -40 --window 100ms",
        "gap",
    ] {
        assert_eq!(found(&viewer, words, &[]).0, found_beside(ecg.to_str().unwrap(), words), "{words}");
    }
    // Of one that lies on the disk.
    let mut served = served;
    served.link += "&source=2";
    let (_link, viewer) = look(&served);
    for words in
        ["edge --level 1", "level --level 1 --longer 2us --channel 1", "pulse --level 1 --longer 2us", "gap"]
    {
        let (events, ended) = found(&viewer, words, &[]);
        assert_eq!(events, found_beside(&large, words), "{words}");
        assert!(!events.is_empty() && ended == "all of it was searched", "{words}: {ended}");
    }
    // What means nothing is said, and the next search goes on.
    for (words, why) in
        [("glitch", "edge, pulse"), ("edge", "--level"), ("edge --level 1 --channel 9", "there are 8")]
    {
        let (events, ended) = found(&viewer, words, &[]);
        assert!(events.is_empty() && ended.starts_with("not searched: ") && ended.contains(why), "{ended}");
    }
    assert_eq!(found(&viewer, "gap", &[]).0.len(), 1);
}

#[test]
fn a_far_viewer_finds_events_in_the_history_of_a_stream() {
    let served = serve(&["synth:square?channels=2&rate=100k&frequency=100&amplitude=0.5"]);
    let (link, viewer) = look(&served);
    let began = Instant::now();
    let events = loop {
        let (events, ended) = found(&viewer, "edge --level 0 --channel 2", &[]);
        if events.len() >= 10 {
            assert!(ended.starts_with("all of it was searched, "), "{ended}");
            break events;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{ended}");
    };
    let apart: Vec<u64> = events.windows(2).map(|two| two[1].index - two[0].index).collect();
    assert!(apart.iter().all(|&apart| apart == 1000), "{apart:?}");
    assert!(events.iter().all(|event| event.lane.unwrap().to_string() == "2"));
    // The newest wins: the one before is over. Who is gone wants nothing any more.
    let finder = viewer.finder().unwrap().clone();
    let sought = || Sought { words: "edge --level 0".into(), scales: Vec::new() };
    let (first, second) = (finder.find(sought()), finder.find(sought()));
    let until = |finding: &Finding| loop {
        if let Some(ended) = finding.take_news().and_then(|news| news.ended) {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(until(&first).contains("ended before"), "the other took its place");
    assert!(until(&second).starts_with("all of it"));
    drop((link, viewer));
    assert!(until(&finder.find(sought())).contains("no connection"));
}

#[test]
fn who_has_no_token_is_told_so_and_nobody_comes_by_another_name() {
    let mut served = serve(&["synth:sine?rate=1M"]);
    let wrong = served.link.replace(&served.token, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let output = run(&["view", &wrong, "--png", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("does not let this viewer in") && said.contains("token"), "{said}");
    served.says("was not let in");
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
fn hostile_visitors_are_sent_away_and_a_viewer_that_is_there_sees_on() {
    let mut served = serve(&["synth:sine?channels=1&rate=1M&frequency=1k", "--history", "16M"]);
    // One that looks, and takes in what comes.
    let mut good = served.socket();
    say(&mut good, &served.hello()).unwrap();
    say(&mut good, r#"{"viewport":{"number":1,"columns":300,"span":0.01}}"#).unwrap();
    served.says("looks (1 now)");
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

    // Garbage, half heads, a hello that never comes, hundreds that say nothing: a thousand, half of them at once as this end sees it.
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
    // A viewer that was let in, and then says what it likes.
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
    // What a generator leaves out that a busy machine did not let run is told apart.
    assert_eq!(numbers["lost_samples"], 0, "no sample was lost at the source");
    assert!((numbers["channels"][0]["frequency"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{numbers}");
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

/// Waits until a server says so, and acknowledges its pictures: what is told comes with them.
fn until(stream: &mut TcpStream, words: &str) -> String {
    loop {
        let (kind, bytes) = hear(stream).unwrap_or_else(|| panic!("it ended before it said {words:?}"));
        if kind == 2 {
            let (number, length) =
                bytes[1..].iter().enumerate().fold((0, None), |(sum, end), (at, byte)| match end {
                    None => (sum | u64::from(byte & 127) << (7 * at), (byte & 128 == 0).then_some(at)),
                    end => (sum, end),
                });
            assert!(length.is_some());
            say(stream, &format!(r#"{{"ack":{number}}}"#)).unwrap();
        } else if text(&bytes).contains(words) {
            return text(&bytes);
        }
    }
}

#[test]
fn who_has_the_second_link_changes_the_source_and_who_has_the_first_is_told_that_it_may_not() {
    let mut served = serve(&["synth:sine?rate=1M&frequency=1k", "--control"]);
    let control = served.control.clone().unwrap();
    assert_ne!(control, served.token);
    let mut looks = served.socket();
    say(&mut looks, &served.hello()).unwrap();
    let welcome = until(&mut looks, "welcome");
    assert!(welcome.contains(r#""may_control":false"#) && welcome.contains("square"), "{welcome}");
    say(&mut looks, r#"{"viewport":{"number":1,"columns":100,"span":0.01}}"#).unwrap();
    say(&mut looks, r#"{"control":{"rate":500000}}"#).unwrap();
    let refused = until(&mut looks, "said");
    assert!(refused.contains("--control"), "{refused}");
    say(&mut looks, r#"{"control":{"keep":{"number":7}}}"#).unwrap();
    let refused = until(&mut looks, "kept");
    assert!(refused.contains("not kept") && refused.contains("--control"), "{refused}");

    let mut controls = served.socket();
    say(&mut controls, &served.hello().replace(&served.token, &control)).unwrap();
    assert!(until(&mut controls, "welcome").contains(r#""may_control":true"#));
    say(&mut controls, r#"{"control":{"rate":2000000}}"#).unwrap();
    served.says("wants the generator at 2000000 samples a second");
    until(&mut looks, r#""rate_hz":2000000.0"#);
    say(&mut controls, r#"{"control":{"wave":"cube"}}"#).unwrap();
    assert!(until(&mut controls, "said").contains("cube"));
    say(&mut controls, r#"{"control":{"keep":{"number":8}}}"#).unwrap();
    assert!(until(&mut controls, "kept").contains("--ring DIR"));
    // A wish that is none ends the one who says it, and nobody else.
    say(&mut controls, r#"{"control":{"format":"the disk"}}"#).unwrap();
    until(&mut controls, "refused");
    say(&mut looks, r#"{"control":"pause"}"#).unwrap();
    until(&mut looks, "said");
}

#[test]
#[cfg(target_os = "linux")]
fn who_has_the_second_link_keeps_stretches_of_the_ring_that_a_recorder_has_of_the_stream() {
    /// Killed with the test.
    struct Killed(Child);
    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let start = |arguments: &[&str]| {
        Killed(grebe(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ring = folder.path().to_str().unwrap();
    let stream = format!("shm://held-{}", std::process::id());
    let _generator = start(&["sg", "--to", &stream, "--rate", "1M"]);
    let served = serve(&[&stream, "--control", "--last", "300ms"]);
    let mut controls = served.socket();
    say(&mut controls, &served.hello().replace(&served.token, served.control.as_ref().unwrap())).unwrap();
    assert!(until(&mut controls, "welcome").contains("the last 300 ms"));
    say(&mut controls, r#"{"viewport":{"number":1,"columns":100,"span":0.01}}"#).unwrap();
    say(&mut controls, r#"{"control":{"keep":{"number":1}}}"#).unwrap();
    let said = until(&mut controls, "kept");
    assert!(said.contains(&format!("nothing there records a ring of {stream}")), "{said}");
    let _recorder = start(&["record", &stream, ring, "--ring", "16M"]);
    let names =
        || fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    while !names().any(|name| name.ends_with(".sigmf-meta") && !name.starts_with('.')) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The recorder says what it does once it has time for it.
    let began = Instant::now();
    let said = loop {
        say(&mut controls, r#"{"control":{"keep":{"number":2}}}"#).unwrap();
        let said = until(&mut controls, "kept");
        if !said.contains("nothing there records") || began.elapsed() > Duration::from_secs(50) {
            break said;
        }
    };
    assert!(said.contains(ring), "{said}");
    assert!(names().any(|name| name.starts_with("save_") && name.ends_with(".sigmf-meta")), "{said}");
}

#[test]
fn only_so_many_look_at_once() {
    let mut served = serve(&["synth:sine?rate=1M", "--viewers", "1"]);
    let mut first = served.socket();
    say(&mut first, &served.hello()).unwrap();
    served.says("looks (1 now)");
    let output = run(&["view", &served.link, "--png", "-"]);
    let said = text(&output.stderr);
    assert!(said.contains("1 viewers look already") && said.contains("--viewers"), "{said}");
}

#[cfg(unix)]
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

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_server_with_a_farewell() {
    let mut served = serve(&["synth:sine?rate=1M"]);
    let mut looks = served.socket();
    say(&mut looks, &served.hello()).unwrap();
    served.says("looks (1 now)");
    support::signal("-INT", served.child.id());
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

#[test]
fn what_cannot_be_is_said_before_anything_runs() {
    for (arguments, words) in [
        (
            vec![
                "serve",
                "synth:",
                "--listen",
                "127.0.0.1:0",
                "--tls-cert",
                "nowhere.pem",
                "--tls-key",
                "nowhere.key",
            ],
            "nowhere.pem",
        ),
        (vec!["serve", "synth:", "--listen", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1"),
        (vec!["serve", "synth:", "synth:square", "--stdio"], "--stdio serves one stream"),
        (vec!["serve", "synth:", "nowhere.sigmf-meta"], "nowhere.sigmf-meta"),
        (vec!["serve", "nowhere.sigmf-meta"], "nowhere.sigmf-meta"),
        (vec!["view", "serve://mast", "--png", "-"], "port is missing"),
        (vec!["view", "ssh://mast", "--png", "-"], "say what to look at there"),
        (vec!["view", "serve://a:1?token=x", "synth:", "--term"], "in commands of their own"),
        (
            vec!["view", "serve://a:1?token=x", "--ring", "/data/box", "--term"],
            "give it to grebe serve there",
        ),
        (
            vec!["view", "serve://a:1?token=x", "--history", "1G", "--png", "-"],
            "give it to grebe serve there",
        ),
    ] {
        let output = finish(grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}
