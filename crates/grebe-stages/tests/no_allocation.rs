//! In steady state no stage between a source and a sink allocates, whether it changes batches in place or in copies.

use std::path::Path;

use grebe_flow::{Cancel, GraphFile, Kinds};
use grebe_testing::{CountingAllocator, allocations_of_this_thread};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Every processing stage. `copied` and the stages after it must copy, because `direct` holds the batches.
const GRAPH: &str = r#"
stage = [
    { id = "generator", kind = "synth", params = { channels = 4, rate = "1G", free_run = true } },
    { id = "alone", kind = "gain", params = { gain = 0.5 } },
    { id = "copied", kind = "gain", params = { gain = [1, 2, 3, 4], offset = 1 } },
    { id = "meter", kind = "rate_meter" },
    { id = "some", kind = "select", params = { channels = [4, 1] } },
    { id = "envelope", kind = "decimate", params = { factor = 7 } },
    { id = "whole", kind = "fill_gaps" },
    { id = "split", kind = "tee" },
    { id = "pace", kind = "throttle", params = { rate = "900G" } },
    { id = "direct", kind = "null" },
    { id = "one", kind = "null" },
    { id = "other", kind = "null" },
    { id = "radio", kind = "synth", params = { channels = 2, format = "ci16", wave = "qpsk", snr = 20, rate = "1G", free_run = true } },
    { id = "floats", kind = "convert", params = { to = "cf32" } },
    { id = "tuned", kind = "mix", params = { frequency = "-1M" } },
    { id = "smooth", kind = "fir", params = { taps = [0.5, 0.25, 0.25] } },
    { id = "smoother", kind = "fir", params = { taps = TAPS } },
    { id = "narrow", kind = "decimate_filtered", params = { factor = 3 } },
    { id = "band", kind = "cut", params = { center = "100M", bandwidth = "20M" } },
    { id = "sound", kind = "demodulate", params = { mode = "fm", bandwidth = "1M", rate = "1M" } },
    { id = "level", kind = "magnitude", params = { unit = "db" } },
    { id = "third", kind = "null" },
    { id = "fourth", kind = "null" },
]
edge = [
    { from = "generator", to = "alone" },
    { from = "alone", to = "copied" },
    { from = "alone", to = "direct" },
    { from = "copied", to = "meter" },
    { from = "meter", to = "some" },
    { from = "some", to = "envelope" },
    { from = "envelope", to = "whole" },
    { from = "whole", to = "split" },
    { from = "split.out", to = "pace" },
    { from = "pace", to = "one" },
    { from = "split.copy", to = "other" },
    { from = "radio", to = "floats" },
    { from = "floats", to = "tuned" },
    { from = "tuned", to = "smooth" },
    { from = "smooth", to = "smoother" },
    { from = "smoother", to = "narrow" },
    { from = "narrow", to = "level" },
    { from = "level", to = "third" },
    { from = "floats", to = "band" },
    { from = "band", to = "sound" },
    { from = "sound", to = "fourth" },
]
"#;

#[test]
fn steady_state_allocates_nothing() {
    let kinds: Kinds = grebe_stages::kinds();
    // Enough taps for the filter to use blocks of frequencies.
    let text = GRAPH.replace("TAPS", &format!("{:?}", vec![0.01; 300]));
    let file = GraphFile::parse(&text, Path::new("graph"), &kinds).unwrap();
    let graph = file.build(&kinds, &Cancel::default(), &mut |_| ()).unwrap();
    let mut stepper = graph.stepper().unwrap();
    let mut steps = |count: usize| (0..count).for_each(|_| assert!(stepper.step().unwrap()));
    steps(100);
    let before = allocations_of_this_thread();
    steps(400);
    assert_eq!(allocations_of_this_thread() - before, 0);
    let snapshot = stepper.snapshot();
    let own = |stage: &str, name: &str| snapshot.stage(stage).unwrap().own(name).unwrap();
    assert!(own("copied", "copied_frames") > 0);
    assert_eq!(own("alone", "copied_frames"), 0);
    assert!(snapshot.stage("one").unwrap().frames_in > 0 && snapshot.stage("other").unwrap().frames_in > 0);
    assert!(snapshot.stage("third").unwrap().frames_in > 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_stream_in_shared_memory_allocates_nothing_at_either_end() {
    use grebe_flow::{Graph, QueueOptions};
    use grebe_process::Null;
    use grebe_process::synth::{ChannelSpec, SynthOptions, SynthSource};
    use grebe_shm::{PublisherOptions, SubscriberOptions};
    use grebe_stages::{ShmSink, ShmSource};

    let folder = tempfile::tempdir().unwrap();
    let directory = Some(folder.path().to_owned());
    let options = PublisherOptions { directory: directory.clone(), ..PublisherOptions::default() };
    let mut sink = ShmSink::create("x", options).unwrap();
    let synth = SynthOptions {
        format: grebe_frame::SampleFormat::I16,
        channels: vec![ChannelSpec::default(); 4],
        rate_hz: 1e6,
        paced: false,
        block_samples: 640,
        samples: None,
        flush_every: std::time::Duration::ZERO,
    };
    let source = SynthSource::new(synth).unwrap().pool(sink.lend_pool().unwrap());
    let options = SubscriberOptions { directory, ..SubscriberOptions::default() };
    let reader = ShmSource::connect("x", &options).unwrap();
    assert!(sink.wait_for_consumers(1, std::time::Duration::from_secs(30)));
    let graph = |from: Box<dyn grebe_flow::Stage>, to: Box<dyn grebe_flow::Stage>| {
        let mut graph = Graph::new();
        let (from, to) = (graph.add_boxed("from", from), graph.add_boxed("to", to));
        graph.connect(from, to, QueueOptions::block(4));
        graph.stepper().unwrap()
    };
    let mut producer = graph(Box::new(source), Box::new(sink));
    let mut consumer = graph(Box::new(reader), Box::new(Null {}));
    let mut rounds = |count: usize| {
        for _ in 0..count {
            // More batches than the queue holds, so the policy drops some.
            (0..3).for_each(|_| assert!(producer.step().unwrap()));
            (0..2).for_each(|_| assert!(consumer.step().unwrap()));
        }
    };
    rounds(200);
    let before = allocations_of_this_thread();
    rounds(400);
    assert_eq!(allocations_of_this_thread() - before, 0);
    let sent = producer.snapshot();
    let own = |name: &str| sent.stage("to").unwrap().own(name).unwrap();
    assert!(own("lent_frames") > 0 && own("consumers") == 1 && own("chunks_out") > 0);
    assert_eq!(own("copied_frames"), 0);
    assert!(consumer.snapshot().stage("to").unwrap().frames_in > 0);
}
