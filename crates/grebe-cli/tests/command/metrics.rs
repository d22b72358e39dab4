//! `--metrics` of running commands, as Prometheus reads it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{finish, grebe, run, text};
use prometheus_parse::{Scrape, Value};

/// A command that serves figures, until the test is over.
struct Served {
    child: Option<Child>,
    address: SocketAddr,
    /// Later messages stay in the pipe: a few lines.
    _stderr: BufReader<std::process::ChildStderr>,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let mut child = grebe(&[arguments, &["--metrics", "0"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{arguments:?} ended before it served figures");
            if let Some(place) = line.trim().strip_prefix("metrics at http://") {
                break place.strip_suffix("/metrics").unwrap().parse().unwrap();
            }
        };
        Self { child: Some(child), address, _stderr: stderr }
    }

    fn page(&self) -> String {
        let page = self.ask(&self.address.to_string());
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        body.to_owned()
    }

    /// The answer to a request for this host name.
    fn ask(&self, host: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    fn scrape(&self) -> Scrape {
        Scrape::parse(self.page().lines().map(|line| Ok(line.to_owned()))).unwrap()
    }

    /// A metric, once it has at least this value.
    fn wait_for(&self, name: &str, stage: &str, least: f64) -> f64 {
        let began = Instant::now();
        loop {
            let scrape = self.scrape();
            let found = scrape.samples.iter().find(|it| {
                it.metric == name
                    && it.labels.get("stage") == Some(stage)
                    && it.labels.get("direction") != Some("out")
            });
            let value = match found.map(|it| &it.value) {
                Some(Value::Counter(value) | Value::Gauge(value)) => *value,
                Some(Value::Histogram(buckets)) => buckets.iter().map(|it| it.count).fold(0.0, f64::max),
                _ => 0.0,
            };
            if value >= least {
                return value;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{name} is {value}:\n{}", self.page());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn families(&self) -> Vec<String> {
        let types = self.page();
        types
            .lines()
            .filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split_once(' ')?.0.to_owned()))
            .collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_metrics_of_a_recorder_equal_its_final_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let mut recorder =
        Served::start(&["record", "synth:sine?rate=1M", file.to_str().unwrap(), "--samples", "3M", "--json"]);
    recorder.wait_for("grebe_stage_samples_total", "recorder", 500_000.0);
    recorder.wait_for("grebe_stage_latency_seconds", "recorder", 1.0);
    let last = recorder.wait_for("grebe_stage_recorded_samples_total", "recorder", 1.0);
    let output = finish(recorder.child.take().unwrap());
    assert!(output.status.success());
    let said: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    // On a busy machine the generator leaves some out, and says so.
    let left_out = said["losses"]["generator_samples"].as_u64().unwrap();
    assert_eq!(said["samples"].as_u64().unwrap() + left_out, 3_000_000, "{said}");
    assert!(last <= 3_000_000.0);
    assert!(TcpStream::connect(recorder.address).is_err(), "the page ends with its command");
}

#[test]
fn requests_for_a_foreign_host_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let served = Served::start(&["record", "udp://127.0.0.1:0", file.to_str().unwrap()]);
    let port = served.address.port();
    for host in ["127.0.0.1", "[::1]:80", "localhost"] {
        assert!(served.ask(host).starts_with("HTTP/1.1 200 "), "{host}");
    }
    for host in
        ["evil.example".to_owned(), format!("evil.example:{port}"), format!("127.0.0.1.evil.example:{port}")]
    {
        let answer = served.ask(&host);
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("grebe_"), "{host}: {answer}");
    }
}

#[test]
fn metrics_count_the_lines_that_a_source_skips() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let logger = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}?format=text&rate=100", logger.local_addr().unwrap());
    let recorder = Served::start(&["record", &uri, file.to_str().unwrap()]);
    let (mut line, _) = logger.accept().unwrap();
    line.write_all(b"a:1,b:2\nhello there\na:3\na:x,b:4\na:5,b:6\n").unwrap();
    recorder.wait_for("grebe_stage_recorded_samples_total", "recorder", 3.0);
    for (name, count) in [("bad_lines", 1.0), ("word_lines", 1.0), ("held_values", 1.0), ("reconnects", 0.0)]
    {
        let name = format!("grebe_stage_{name}_total");
        assert_eq!(recorder.wait_for(&name, "source", count), count, "{name}");
    }
}

#[test]
fn an_unavailable_address_is_an_error_and_nothing_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let to = file.to_str().unwrap();
    let refused = run(&["record", "synth:", to, "--samples", "10", "--metrics", &address]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&address) && said.contains("give another address"), "{said}");
    assert!(!file.exists());
    let wrong = run(&["sg", "--metrics", "host:http"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("0.0.0.0:9464"), "{}", text(&wrong.stderr));
}

#[test]
fn the_dashboard_and_its_page_name_only_existing_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sigmf-meta");
    let recorder = Served::start(&["record", "udp://127.0.0.1:0", file.to_str().unwrap()]);
    let mut there = recorder.families();
    // A histogram appears with its first second of samples.
    let generator =
        Served::start(&["record", "synth:", folder.path().join("2.sigmf-meta").to_str().unwrap()]);
    generator.wait_for("grebe_stage_latency_seconds", "recorder", 1.0);
    there.extend(generator.families());
    let there_is = |name: &str| {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        there.iter().any(|it| it == name || Some(it.as_str()) == family)
    };
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    for page in ["grafana-dashboard.json", "metrics.md"] {
        let words = std::fs::read_to_string(format!("{docs}{page}")).unwrap();
        if page.ends_with(".json") {
            let _: serde_json::Value = serde_json::from_str(&words).unwrap();
        }
        let names: Vec<&str> = words
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .filter(|word| word.starts_with("grebe_") && !word.contains("NAME"))
            .collect();
        assert!(names.len() > 10, "{page}");
        for name in names {
            assert!(there_is(name), "{page} names {name}, and there are {there:#?}");
        }
    }
}
