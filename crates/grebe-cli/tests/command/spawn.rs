//! A scope that starts its generator, and a generator that takes orders.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use crate::support::{Good, finish, grebe, run, text};
use grebe_frame::Header;
use grebe_process::synth::{GeneratorCommand, WaveName};

#[test]
fn a_scope_starts_its_generator_and_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("spawned.png");
    let recipe = "sg --rate 1M --samples 200k --wave 'square'";
    let output = run(&["view", "--spawn", recipe, "--png", png.to_str().unwrap(), "--json"]).good();
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(measured["channels"][0]["duty"].as_f64(), Some(0.5), "{measured}");
    assert!(png.exists());
}

#[test]
fn a_generator_that_cannot_be_started_is_explained() {
    let png = std::env::temp_dir().join("grebe-never.png");
    for (recipe, status, word) in [
        ("sg --frequency 2M --rate 1M", 1, "frequency"),
        ("sg --rate much", 2, "much"),
        ("sg 'open", 2, "quotation mark"),
        ("no-such-program --at-all", 1, "no-such-program"),
    ] {
        let output = run(&["view", "--spawn", recipe, "--png", png.to_str().unwrap()]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{recipe}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{recipe}: {said}");
    }
    assert!(!png.exists());
}

#[test]
fn a_generator_takes_orders_and_ends_with_one() {
    let mut generator = grebe(&["sg", "--remote", "--rate", "200k", "--to", "pipe:?wire=gfh2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = generator.stdin.take().unwrap();
    let mut frames = generator.stdout.take().unwrap();
    let mut next = 0;
    let mut header = || {
        let mut bytes = [0; 64];
        frames.read_exact(&mut bytes).ok()?;
        let header = Header::parse(&bytes).unwrap();
        frames.read_exact(&mut vec![0; header.frame_bytes() - 64]).unwrap();
        // Later output repeats the end of the stream.
        assert!(header.first_sample_index == next, "an order leaves nothing out");
        next = header.next_sample_index();
        Some(header)
    };
    assert_eq!(header().unwrap().sample_rate_hz, 200e3);
    for order in [GeneratorCommand::Wave(WaveName::Noise), GeneratorCommand::Rate(500e3)] {
        orders.write_all(&order.to_bytes()).unwrap();
    }
    while header().unwrap().sample_rate_hz != 500e3 {}
    orders.write_all(b"no order at all!").unwrap();
    orders.write_all(&GeneratorCommand::End.to_bytes()).unwrap();
    while header().is_some() {}
    let output = finish(generator);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("generator command"), "{}", text(&output.stderr));
}
