//! Settings that change while a radio runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use grebe::flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageResult};
use grebe::frame::Complex;
use grebe::stages::{SourceOptions, Tuner, open_source};

use super::radio::{calls, module, run};
use crate::support::{Good, finish, grebe, signal, text, until_listening};

/// Frequency at which a sample was received, and the described one: in MHz, for each sample.
#[derive(Default)]
struct Seen {
    received_mhz: Vec<i64>,
    said_mhz: Vec<i64>,
    rates_hz: Vec<f64>,
}

/// After this many samples.
type Change = (usize, fn(&Tuner));

/// Looks at a stream, and has its radio tuned at some of its samples.
struct Watcher {
    seen: Arc<Mutex<Seen>>,
    tuner: Tuner,
    changes: Vec<Change>,
    /// In MHz, from a sample on.
    said: Vec<(u64, i64)>,
}

impl Stage for Watcher {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if let Some(description) = batch.description() {
            let says =
                (description.first_sample_index, (description.centre_frequency_hz.unwrap() / 1e6) as i64);
            if self.said.last() != Some(&says) {
                self.said.push(says);
            }
        }
        let mut seen = self.seen.lock().unwrap();
        for frame in batch.frames() {
            let header = frame.header();
            for (at, sample) in (header.first_sample_index..).zip(frame.channel::<Complex<i16>>(0)?.iter()) {
                seen.received_mhz.push(i64::from(sample.im >> 9));
                let said = self.said.iter().rev().find(|(first, _)| *first <= at).unwrap();
                seen.said_mhz.push(said.1);
                seen.rates_hz.push(header.sample_rate_hz);
            }
        }
        if let Some(position) = self.changes.iter().position(|(at, _)| seen.received_mhz.len() >= *at) {
            (self.changes.remove(position).1)(&self.tuner);
        }
        Ok(Outcome::Produced)
    }
}

#[test]
fn a_description_changes_at_the_sample_from_which_it_holds() {
    let Some(module) = module() else { return };
    // The library finds modules through the environment of the process, so this test needs its own process.
    if std::env::var_os("GREBE_SOAPY_TUNING").is_none() {
        let name = "tuning::a_description_changes_at_the_sample_from_which_it_holds";
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env("GREBE_SOAPY_TUNING", "1")
            .env("SOAPY_SDR_PLUGIN_PATH", module)
            .output()
            .unwrap()
            .good();
        return;
    }
    // A setting takes effect 5,000 samples after the next one to be read.
    let uri =
        "soapy:driver=grebe_test, tag=1, time=1, late=5000?rate=1M&frequency=10M&gain=5".parse().unwrap();
    let options = SourceOptions { samples: Some(400_000), ..SourceOptions::default() };
    let source = open_source(&uri, options, &mut |_| ()).unwrap();
    let (seen, tuner) = (Arc::new(Mutex::new(Seen::default())), source.tuner.unwrap());
    let changes: Vec<Change> = vec![
        (100_000, |tuner| tuner.change(|it| it.frequency_hz = 20e6)),
        // It cannot be tuned there, and stays.
        (200_000, |tuner| tuner.change(|it| it.frequency_hz = 7e9)),
        (300_000, |tuner| tuner.change(|it| it.rate_hz = 2e6)),
    ];
    let watcher = Watcher { seen: seen.clone(), tuner: tuner.clone(), changes, said: Vec::new() };
    let mut graph = Graph::new();
    let source = graph.add_boxed("radio", source.stage);
    let watcher = graph.add("watcher", watcher);
    graph.connect(source, watcher, QueueOptions::block(4));
    graph.start().unwrap().wait().unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.received_mhz.len(), 400_000);
    let first = |of: &[i64], mhz: i64| of.iter().position(|it| *it == mhz).unwrap();
    // The module begins with its initial frequency, for the time before the first setting.
    let at = first(&seen.received_mhz, 20);
    assert!(at >= 100_000, "{at}");
    assert_eq!(first(&seen.said_mhz, 20), at);
    assert!(seen.received_mhz[at..].iter().all(|it| *it == 20));
    assert_eq!(tuner.tuning().frequency_hz, 20e6, "what was refused is as it was");
    let faster = seen.rates_hz.iter().position(|hz| *hz == 2e6).unwrap();
    assert!(faster >= 300_000 && seen.rates_hz[faster..].iter().all(|hz| *hz == 2e6));
}

#[test]
fn clients_of_rtl_tcp_tune_the_receiver_that_a_graph_names() {
    let Some(module) = module() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (graph, calls_file) = (folder.path().join("serve.toml"), folder.path().join("calls"));
    let of = |tunes: &str| {
        format!(
            r#"
            stage = [
                {{ id = "radio", kind = "soapy_in", params = {{ uri = "soapy:driver=grebe_test, paced=1, calls={}?format=cu8&rate=1M&frequency=10M&gain=auto" }} }},
                {{ id = "clients", kind = "rtl_tcp_out", params = {{ uri = "rtl_tcp://127.0.0.1:0", tunes = "{tunes}" }} }},
            ]
            edge = [{{ from = "radio", to = "clients" }}]
            "#,
            calls_file.display()
        )
    };
    fs::write(&graph, of("raido")).unwrap();
    let refused = run(&["run", "--check", graph.to_str().unwrap()]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("unknown stage 'raido': name a stage of soapy_in or rtl_tcp_in"), "{said}");

    fs::write(&graph, of("radio")).unwrap();
    let mut command = grebe(&["run", graph.to_str().unwrap()]);
    let (running, said, _stderr) = until_listening(command.env("SOAPY_SDR_PLUGIN_PATH", module));
    let mut client = TcpStream::connect(said.rsplit("rtl_tcp://").next().unwrap().trim()).unwrap();
    let mut hello = [0; 12];
    client.read_exact(&mut hello).unwrap();
    // A rate, a frequency and a gain of 7 dB, cut within a command.
    let commands =
        [[2, 0, 0x1e, 0x84, 0x80], [1, 0x01, 0x31, 0x2d, 0], [3, 0, 0, 0, 1], [4, 0, 0, 0, 70]].concat();
    commands.chunks(7).for_each(|piece| client.write_all(piece).unwrap());
    let expected = ["rate=2000000.000000", "frequency=20000000.000000", "gain=7.000000"];
    let mut bytes = vec![0; 100_000];
    // The radio is opened once a client is there.
    let told = || fs::read_to_string(&calls_file).unwrap_or_default();
    while !expected.iter().all(|it| told().lines().any(|call| call == *it)) {
        client.read_exact(&mut bytes).unwrap();
    }
    signal("-INT", running.id());
    let _ = std::io::copy(&mut client, &mut std::io::sink());
    assert_eq!(finish(running).status.code(), Some(130));
    assert_eq!(
        calls(&calls_file)[..3],
        ["rate=1000000.000000", "frequency=10000000.000000", "gain_mode=auto"]
    );
}
