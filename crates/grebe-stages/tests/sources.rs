//! Frames of sources: every sample once, in order, with exact counts of missing ones.

mod support;

use std::time::Duration;

use grebe_flow::{
    Context, Count, Graph, Inputs, Kind, Outcome, Outputs, QueueOptions, RateHz, Site, Stage, StageBench,
    StageError, StageResult, StageSnapshot,
};
use grebe_frame::{Arrival, Batch, BatchPool, Header, SampleFormat, StreamTracker};
use grebe_process::stream::block_length;
use grebe_process::synth::{ChannelSpec, Generator, Wave};
use grebe_process::synth::{GeneratorCommand, Synth, SynthOptions, SynthSource};
use grebe_process::{Decimate, FillGaps, Filler, Select};
use grebe_recording::{SigmfSettings, SigmfWriter};
use grebe_stages::{PipeSink, SourceOptions, Uri, open_source};
use support::{END, Headers, Tray, channel, headers};

fn made(source: impl Stage + 'static) -> Vec<Batch> {
    StageBench::new(source).unwrap().end().unwrap()
}

fn synth(rate_hz: f64, paced: bool, samples: u64) -> SynthSource {
    let channel = |wave| ChannelSpec { wave, ..ChannelSpec::default() };
    SynthSource::new(SynthOptions {
        format: SampleFormat::I16,
        channels: vec![channel(Wave::Sine), channel(Wave::Noise { seed: 3 })],
        rate_hz,
        paced,
        block_samples: block_length(1400, 2, SampleFormat::I16, rate_hz),
        samples: Some(samples),
        flush_every: Duration::from_micros(125),
    })
    .unwrap()
}

#[test]
fn a_generator_ends_after_its_samples_with_a_shorter_block() {
    let batches = made(synth(1e6, false, 1_000));
    let lengths: Vec<u32> = headers(&batches).iter().map(|header| header.block_length_samples).collect();
    assert_eq!(lengths, [320, 320, 320, 40]);
    for (index, wave) in [Wave::Sine, Wave::Noise { seed: 3 }].into_iter().enumerate() {
        let mut expected = vec![0; 1_000];
        Generator::new(&ChannelSpec { wave, ..ChannelSpec::default() }, 1e6).unwrap().fill(0, &mut expected);
        assert_eq!(channel(&batches, index), expected);
    }
}

#[test]
fn a_generator_that_cannot_keep_its_rate_counts_dropped_samples() {
    // No machine makes 2 x 1 T sample/s.
    let (tell, headers) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add("synth", synth(1e12, true, u64::MAX));
    let sink = graph.add("headers", Headers(tell));
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    let until = |reached: &dyn Fn(&StageSnapshot) -> bool| {
        while !reached(running.snapshot().stage("synth").unwrap()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until(&|synth| synth.own("dropped_samples") > Some(0));
    let frames = running.snapshot().stage("synth").unwrap().frames_out;
    until(&|synth| synth.frames_out > frames + 1_000);
    running.stop().unwrap();
    let (mut tracker, mut last) = (StreamTracker::new(), Header::default());
    for header in headers {
        tracker.arrive(&header);
        last = header;
    }
    let counts = tracker.counts();
    assert_eq!(
        (counts.lost_frames, counts.lost_samples),
        (0, 0),
        "what was not made was not lost on the way"
    );
    assert_eq!(counts.samples + counts.generator_samples, last.next_sample_index());
    assert!(counts.generator_samples > 0, "{counts:?}");
    assert!(last.sg_drops_total >= counts.generator_samples);
}

#[test]
fn a_running_generator_takes_another_rate_pauses_and_ends() {
    let source = open_source(&"synth:".parse().unwrap(), SourceOptions::default(), &mut |_| ()).unwrap();
    let mut remote = source.remote.unwrap();
    let (tell, headers) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add_boxed("synth", source.stage);
    let sink = graph.add("headers", Headers(tell));
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    let mut tracker = StreamTracker::new();
    let mut next = || {
        let header: Header = headers.recv_timeout(Duration::from_secs(20)).unwrap();
        tracker.arrive(&header);
        header
    };
    assert_eq!(next().sample_rate_hz, 1e6);
    remote.obey(GeneratorCommand::Rate(50e3)).unwrap();
    while next().sample_rate_hz != 50e3 {}
    remote.obey(GeneratorCommand::TogglePause).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let made = running.snapshot().stage("synth").unwrap().frames_out;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        running.snapshot().stage("synth").unwrap().frames_out,
        made,
        "it makes nothing while it is paused"
    );
    remote.obey(GeneratorCommand::TogglePause).unwrap();
    while running.snapshot().stage("synth").unwrap().frames_out == made {
        std::thread::sleep(Duration::from_millis(5));
    }
    remote.obey(GeneratorCommand::End).unwrap();
    let snapshot = running.wait().unwrap();
    let last = headers.try_iter().inspect(|header| _ = tracker.arrive(header)).last().unwrap();
    assert_eq!((tracker.counts().lost_frames, last.sample_rate_hz), (0, 50e3));
    assert_eq!(snapshot.stage("headers").unwrap().frames_in, last.sequence + 1);
}

fn recording(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("gaps.sigmf-meta");
    let settings = SigmfSettings { channels: 1, sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let ramp = |first: i16, count: i16| (first..first + count).collect::<Vec<i16>>();
    writer.write(100, &[&ramp(0, 50)]).unwrap();
    writer.write(200, &[&ramp(50, 30)]).unwrap();
    writer.write(0, &[&ramp(80, 20)]).unwrap();
    writer.finish().unwrap();
    path
}

/// All batches of a recording.
fn played(path: &std::path::Path, options: SourceOptions) -> Vec<Batch> {
    let source = open_source(&Uri::File(path.into()), options, &mut |_| ()).unwrap();
    let (tray, taken) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add_boxed("file", source.stage);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    let batches = taken.into_iter().collect();
    running.wait().unwrap();
    batches
}

#[test]
fn a_recording_is_played_with_its_gaps_and_its_streams() {
    let folder = tempfile::tempdir().unwrap();
    let batches = played(&recording(folder.path()), SourceOptions::default());
    assert_eq!(channel(&batches, 0), (0..100).collect::<Vec<i16>>());
    let mut tracker = StreamTracker::new();
    let arrivals: Vec<Arrival> = headers(&batches).iter().map(|header| tracker.arrive(header)).collect();
    assert!(
        matches!(arrivals[..], [Arrival::First, Arrival::After(gap), Arrival::Restart] if gap.samples == 50)
    );
    assert_eq!(
        tracker.counts().generator_samples,
        50,
        "the source did not have them: nobody lost them on the way"
    );
}

#[test]
fn a_recording_is_repeated_without_a_gap_and_cut_where_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.sigmf-meta");
    let mut writer = SigmfWriter::create(
        &path,
        &SigmfSettings { channels: 1, sample_rate_hz: 1e3, ..SigmfSettings::default() },
    )
    .unwrap();
    writer.write(0, &[&(0..70).collect::<Vec<i16>>()]).unwrap();
    writer.finish().unwrap();
    let batches =
        played(&path, SourceOptions { repeat: true, samples: Some(200), ..SourceOptions::default() });
    let expected: Vec<i16> = (0..200).map(|sample| sample % 70).collect();
    assert_eq!(channel(&batches, 0), expected);
    let mut tracker = StreamTracker::new();
    for header in headers(&batches) {
        tracker.arrive(&header);
    }
    assert_eq!((tracker.counts().streams, tracker.counts().lost_samples), (1, 0));
}

/// Collects the bytes that a sink writes.
#[derive(Clone, Default)]
struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Sends a frame of 12 samples, and reports 90 dropped ones at its end.
struct DropsAtItsEnd(Option<Batch>);

impl Stage for DropsAtItsEnd {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = self.0.take() else { return Ok(Outcome::End) };
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> Result<(), StageError> {
        let end =
            Header { sequence: 1, channel_count: 2, first_sample_index: 102, sg_drops_total: 90, ..END };
        ctx.set_end_of_stream(end);
        Ok(())
    }
}

/// The headers that a pipe carries after these stages.
fn piped(frame: Option<Batch>, between: &[&str]) -> Vec<Header> {
    let written = Written::default();
    let mut graph = Graph::new();
    let mut last = graph.add("source", DropsAtItsEnd(frame));
    for kind in between {
        let stage: Box<dyn Stage> = match *kind {
            "select" => Select { channels: vec![2] }.build(&mut Site::new("select")).unwrap(),
            "decimate" => Decimate { factor: Count(3) }.build(&mut Site::new("decimate")).unwrap(),
            _ => FillGaps { with: Filler::Zero, longest: Count(1) }.build(&mut Site::new("fill")).unwrap(),
        };
        let next = graph.add_boxed(*kind, stage);
        graph.connect(last, next, QueueOptions::block(4));
        last = next;
    }
    let sink = graph.add("pipe", PipeSink::new(written.clone()));
    graph.connect(last, sink, QueueOptions::block(4));
    graph.start().unwrap().wait().unwrap();
    let bytes = written.0.lock().unwrap().clone();
    let (mut headers, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let header = Header::parse(&bytes[at..]).unwrap();
        at += header.frame_bytes();
        headers.push(header);
    }
    headers
}

#[test]
fn drops_at_the_end_of_a_source_are_in_the_end_of_the_stream() {
    let frame = || {
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        batch.push::<i16>(&Header { block_length_samples: 12, ..END }, |_, samples| samples.fill(1)).unwrap();
        Some(batch.freeze())
    };
    for (between, index, drops) in
        [(&[][..], 102, 90), (&["select"], 102, 90), (&["fill"], 102, 90), (&["decimate"], 68, 60)]
    {
        let headers = piped(frame(), between);
        let mut tracker = StreamTracker::new();
        for header in &headers {
            tracker.arrive(header);
        }
        assert!(tracker.is_ended(), "{between:?}");
        assert_eq!(tracker.next_sample_index(), Some(index), "{between:?}");
        let counts = tracker.counts();
        assert_eq!((counts.lost_samples, counts.generator_samples), (0, drops), "{between:?}");
    }
    // A stream without frames still sends its end.
    let headers = piped(None, &[]);
    assert_eq!(headers.len(), 1);
    assert!(headers[0].is_end_of_stream() && headers[0].first_sample_index == 102);
}

#[test]
fn a_slow_generator_drops_nothing() {
    let slow = Synth { rate: RateHz(5.0), samples: Some(Count(3)), ..Synth::default() };
    let source = open_source(&Uri::Synth(Box::new(slow)), SourceOptions::default(), &mut |_| ()).unwrap();
    let (tell, heard) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add("headers", Headers(tell)));
    graph.connect(source, sink, QueueOptions::block(4));
    graph.start().unwrap().wait().unwrap();
    let headers: Vec<Header> = heard.into_iter().collect();
    assert_eq!(headers.iter().map(|header| header.first_sample_index).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(headers.iter().all(|header| header.sg_drops_total == 0));
}
