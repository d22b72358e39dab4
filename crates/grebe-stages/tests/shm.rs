//! Streams in shared memory as ends of a graph: the same samples, without a copy.
#![cfg(any(target_os = "linux", target_os = "macos", windows))]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Running, Stage, StageResult};
use grebe_process::synth::ChannelSpec;
use grebe_process::synth::{SynthOptions, SynthSource};
use grebe_shm::{Policy, PublisherOptions, SubscriberOptions};
use grebe_stages::{ShmSink, ShmSource, UdpSink, UdpSource};

/// Collects the samples of the first channel.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<i16>>>);

impl Stage for Notes {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            self.0.lock().unwrap().extend_from_slice(&frame.channel::<i16>(0).unwrap());
        }
        Ok(Outcome::Produced)
    }
}

fn synth(samples: u64, block_samples: u32) -> SynthSource {
    SynthSource::new(SynthOptions {
        format: grebe_frame::SampleFormat::I16,
        channels: vec![ChannelSpec { frequency_hz: 1234.5, ..ChannelSpec::default() }],
        rate_hz: 1e6,
        paced: false,
        block_samples,
        samples: Some(samples),
        flush_every: Duration::ZERO,
    })
    .unwrap()
}

/// The samples of the generator itself.
fn expected(samples: u64, block_samples: u32) -> Vec<i16> {
    let notes = Notes::default();
    let mut graph = Graph::new();
    let source = graph.add("source", synth(samples, block_samples));
    let sink = graph.add("sink", notes.clone());
    graph.connect(source, sink, QueueOptions::block(4));
    graph.start().unwrap().wait().unwrap();
    Arc::try_unwrap(notes.0).unwrap().into_inner().unwrap()
}

fn read(name: &str, folder: &tempfile::TempDir) -> (Running, Notes) {
    let options = SubscriberOptions {
        policy: Policy::Block,
        directory: Some(folder.path().to_owned()),
        ..SubscriberOptions::default()
    };
    let notes = Notes::default();
    let mut graph = Graph::new();
    let source = graph.add("source", ShmSource::connect(name, &options).unwrap());
    let sink = graph.add("sink", notes.clone());
    graph.connect(source, sink, QueueOptions::block(4));
    (graph.start().unwrap(), notes)
}

fn options(folder: &tempfile::TempDir) -> PublisherOptions {
    PublisherOptions {
        chunk_bytes: 65_536,
        chunks: 256,
        reserve_chunks: 128,
        directory: Some(folder.path().to_owned()),
        ..PublisherOptions::default()
    }
}

const SAMPLES: u64 = 1_000_003;

#[test]
fn a_generator_writes_into_the_stream_and_two_readers_see_every_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ShmSink::create("x", options(&folder)).unwrap();
    let source = synth(SAMPLES, 640).pool(sink.lend_pool().unwrap());
    let (one, seen_by_one) = read("x", &folder);
    let (two, seen_by_two) = read("x", &folder);
    assert!(sink.wait_for_consumers(2, Duration::from_secs(30)));
    let mut graph = Graph::new();
    let source = graph.add("source", source);
    let sink = graph.add("sink", sink);
    graph.connect(source, sink, QueueOptions::block(4));
    let made = graph.start().unwrap().wait().unwrap();
    let sent = made.stage("sink").unwrap();
    assert_eq!((sent.own("copied_frames"), sent.own("consumer_drops")), (Some(0), Some(0)));
    assert_eq!(sent.own("lent_frames"), Some(2 * sent.frames_in));
    let expected = expected(SAMPLES, 640);
    for (reader, seen) in [(one, seen_by_one), (two, seen_by_two)] {
        let snapshot = reader.wait().unwrap();
        assert_eq!(snapshot.stage("source").unwrap().own("lost_frames"), Some(0));
        assert_eq!(snapshot.stage("source").unwrap().own("copied_frames"), Some(0));
        assert!(*seen.0.lock().unwrap() == expected);
    }
}

#[test]
fn batches_of_another_pool_are_copied_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let sink = ShmSink::create("x", options(&folder)).unwrap();
    let (reader, seen) = read("x", &folder);
    assert!(sink.wait_for_consumers(1, Duration::from_secs(30)));
    let mut graph = Graph::new();
    // Blocks with holes between frames, and a shorter last one.
    let source = graph.add("source", synth(SAMPLES, 1001));
    let sink = graph.add("sink", sink);
    graph.connect(source, sink, QueueOptions::block(4));
    let made = graph.start().unwrap().wait().unwrap();
    let sent = made.stage("sink").unwrap();
    assert_eq!(sent.own("copied_frames"), Some(sent.frames_in));
    reader.wait().unwrap();
    assert!(*seen.0.lock().unwrap() == expected(SAMPLES, 1001));
}

#[test]
fn datagrams_are_received_into_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ShmSink::create("x", options(&folder)).unwrap();
    let source =
        UdpSource::bind("127.0.0.1:0".parse().unwrap(), &grebe_datagram::Options::default()).unwrap();
    let address = source.local_addr().unwrap();
    let (reader, seen) = read("x", &folder);
    assert!(sink.wait_for_consumers(1, Duration::from_secs(30)));
    let mut graph = Graph::new();
    let source = graph.add("source", source.pool(sink.lend_pool().unwrap()));
    let sink = graph.add("sink", sink);
    graph.connect(source, sink, QueueOptions::block(4));
    let relay = graph.start().unwrap();
    let mut graph = Graph::new();
    let source = graph.add("source", synth(64_000, 32_000));
    let sink = graph.add("sink", UdpSink::connect(address, &grebe_datagram::Options::default()).unwrap());
    graph.connect(source, sink, QueueOptions::block(4));
    graph.start().unwrap().wait().unwrap();
    let relayed = relay.wait().unwrap();
    assert_eq!(relayed.stage("sink").unwrap().own("copied_frames"), Some(0));
    assert_eq!(relayed.stage("source").unwrap().own("copied_frames"), Some(0), "none was sparse");
    reader.wait().unwrap();
    assert!(*seen.0.lock().unwrap() == expected(64_000, 32_000));
}

#[test]
fn a_producer_without_an_end_ends_its_readers_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let sink = ShmSink::create("x", options(&folder)).unwrap();
    let (reader, _) = read("x", &folder);
    // Dropped without an end, as by a crash.
    drop(sink);
    let error = reader.wait().unwrap_err().to_string();
    assert!(error.contains("producer gone: 'x'"), "{error}");
}
