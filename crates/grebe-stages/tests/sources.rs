//! What sources put into their frames: every sample once, in order, and the truth about those that are missing.

use std::time::Duration;

use grebe_datagram::{Options, Sender};
use grebe_flow::{
    Context, Count, Graph, Inputs, Kind, Outcome, Outputs, QueueOptions, RateHz, Site, Stage, StageBench,
    StageError, StageSnapshot,
};
use grebe_frame::{Arrival, Batch, BatchPool, Header, SampleFormat, StreamTracker};
use grebe_process::stream::block_length;
use grebe_process::synth::{ChannelSpec, Generator, Wave};
use grebe_process::synth::{GeneratorCommand, Synth, SynthOptions, SynthSource};
use grebe_process::{Decimate, FillGaps, Filler, Null, Select};
use grebe_recording::{SigmfSettings, SigmfWriter};
use grebe_stages::{PipeSink, SourceOptions, UdpSource, Uri, open_source};

fn made(source: impl Stage + 'static) -> Vec<Batch> {
    StageBench::new(source).unwrap().end().unwrap()
}

fn headers(batches: &[Batch]) -> Vec<Header> {
    batches.iter().flat_map(|batch| batch.frames()).map(|frame| frame.header()).collect()
}

fn channel(batches: &[Batch], channel: usize) -> Vec<i16> {
    let frames = batches.iter().flat_map(|batch| batch.frames());
    frames.flat_map(|frame| frame.channel::<i16>(channel).unwrap().into_owned()).collect()
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
fn a_generator_that_cannot_keep_its_rate_says_what_it_left_out() {
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

/// Tells the test every header.
struct Headers(std::sync::mpsc::Sender<Header>);

impl Stage for Headers {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        batch.frames().try_for_each(|frame| self.0.send(frame.header()))?;
        Ok(Outcome::Produced)
    }
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

/// Everything that a recording gives.
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

/// Hands batches to the test.
struct Tray(std::sync::mpsc::Sender<Batch>);

impl Stage for Tray {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.0.send(batch)?;
        Ok(Outcome::Produced)
    }
}

#[test]
fn a_receiver_ends_by_itself_after_the_samples_that_were_asked_for() {
    for block in [32u32, 20_000] {
        let options = Options { gso: false, gro: false, ..Options::default() };
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut sender = Sender::connect(source.local_addr().unwrap(), &options).unwrap();
        let (tray, taken) = std::sync::mpsc::channel();
        let mut graph = Graph::new();
        let source = graph.add("udp", source.samples(Some(u64::from(block) * 2 + 7)));
        let tray = graph.add("tray", Tray(tray));
        graph.connect(source, tray, QueueOptions::block(64));
        let running = graph.start().unwrap();
        for sequence in 0..4u64 {
            let header = Header {
                sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * u64::from(block),
                ..Header::default()
            };
            send(&mut sender, &header, &vec![1; block as usize * 2]);
        }
        // No end of stream was sent.
        running.wait().unwrap();
        let batches: Vec<Batch> = taken.into_iter().collect();
        let lengths: Vec<u32> = headers(&batches).iter().map(|header| header.block_length_samples).collect();
        assert_eq!(lengths, [block, block, 7]);
    }
}

#[test]
fn small_datagrams_are_gathered_and_large_ones_lent_as_they_came() {
    for (block, is_sparse) in [(32u32, true), (20_000, false)] {
        let options = Options { gso: false, gro: false, ..Options::default() };
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut sender = Sender::connect(source.local_addr().unwrap(), &options).unwrap();
        let (tray, taken) = std::sync::mpsc::channel();
        let mut graph = Graph::new();
        let source = graph.add("udp", source);
        let tray = graph.add("tray", Tray(tray));
        graph.connect(source, tray, QueueOptions::block(64));
        let running = graph.start().unwrap();
        let mut last = Header::default();
        for sequence in 0..40u64 {
            last = Header {
                sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * u64::from(block),
                ..Header::default()
            };
            send(&mut sender, &last, &vec![sequence as u8; block as usize * 2]);
        }
        send(&mut sender, &last.end_of_stream(1), &[]);
        let snapshot = running.wait().unwrap();
        let batches: Vec<Batch> = taken.into_iter().collect();
        let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
        assert_eq!(sequences, (0..40).collect::<Vec<_>>());
        for frame in batches.iter().flat_map(|batch| batch.frames()) {
            let value = frame.header().sequence as u8;
            assert!(frame.payload().iter().all(|&byte| byte == value));
        }
        let copied = snapshot.stage("udp").unwrap().own("copied_frames").unwrap();
        assert_eq!(copied, if is_sparse { 40 } else { 0 });
    }
}

/// What a receiver makes of what `send` sends it, up to the end that `send` must send; with a budget of 0.2 s, so that a slow
/// machine changes nothing.
fn received(send: impl FnOnce(std::net::SocketAddr, &Options)) -> (Vec<Batch>, StageSnapshot) {
    let options =
        Options { gso: false, gro: false, latency: Duration::from_millis(200), ..Options::default() };
    let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let at = source.local_addr().unwrap();
    let (tray, taken) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add("udp", source);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    send(at, &options);
    let snapshot = running.wait().unwrap();
    (taken.into_iter().collect(), snapshot.stage("udp").unwrap().clone())
}

fn numbered(sequence: u64, block: u32) -> Header {
    Header {
        sequence,
        producer_ts_ns: 1_000 + sequence,
        channel_count: 1,
        block_length_samples: block,
        sample_rate_hz: 1e6,
        first_sample_index: sequence * u64::from(block),
        ..Header::default()
    }
}

fn send_all(sender: &mut Sender, order: impl IntoIterator<Item = u64>, block: u32) {
    for sequence in order {
        send(sender, &numbered(sequence, block), &vec![sequence as u8; block as usize * 2]);
    }
}

fn counted(udp: &StageSnapshot) -> [u64; 5] {
    ["lost_frames", "late_frames", "duplicate_frames", "foreign_datagrams", "streams"]
        .map(|name| udp.own(name).unwrap())
}

#[test]
fn neighbours_that_the_network_swapped_are_put_in_order() {
    for block in [32u32, 4_000, 20_000] {
        // 0 | 1 | 2 | 4 3 | 5 | 7 6 | ... and once a frame that comes seven frames late, where a chunk holds as many.
        let mut order: Vec<u64> = (0..60).collect();
        order[3..].chunks_exact_mut(3).for_each(|three| three.swap(0, 1));
        if block < 20_000 {
            let late = order.remove(30);
            order.insert(37, late);
        }
        let (batches, udp) = received(|at, options| {
            let mut sender = Sender::connect(at, options).unwrap();
            send_all(&mut sender, order, block);
            send(&mut sender, &numbered(59, block).end_of_stream(2_000), &[]);
        });
        let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
        assert_eq!(sequences, (0..60).collect::<Vec<_>>(), "{block}");
        for frame in batches.iter().flat_map(|batch| batch.frames()) {
            let value = frame.header().sequence as u8;
            assert!(frame.payload().iter().all(|&byte| byte == value));
        }
        assert_eq!(counted(&udp), [0, 0, 0, 0, 1], "{block}");
    }
}

#[test]
fn what_comes_too_late_is_late_and_not_lost_and_what_comes_twice_counts_once() {
    let (batches, udp) = received(|at, options| {
        let mut sender = Sender::connect(at, options).unwrap();
        // 1 after more frames than are waited for; 60 twice while 59 misses; 71 never, and while it is waited for, 103 is swapped.
        send_all(&mut sender, (0..1).chain(2..50).chain([1]).chain(50..59).chain([60, 60, 59, 61]), 100);
        send_all(&mut sender, (62..71).chain(72..103).chain([104, 105, 106, 103]).chain(107..120), 100);
        send(&mut sender, &numbered(119, 100).end_of_stream(2_000), &[]);
    });
    let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
    assert_eq!(sequences, (0..1).chain(2..71).chain(72..120).collect::<Vec<_>>());
    assert_eq!(counted(&udp), [1, 1, 1, 0, 1]);
    assert_eq!((udp.own("lost_samples"), udp.own("late_samples")), (Some(100), Some(100)));
}

#[test]
fn a_sender_that_begins_again_takes_over_at_once_and_the_old_one_is_left_out() {
    let (batches, udp) = received(|at, options| {
        let mut first = Sender::connect(at, options).unwrap();
        send_all(&mut first, 0..100, 100);
        let mut again = Sender::connect(at, options).unwrap();
        for sequence in 0..50 {
            let header = Header { producer_ts_ns: 5_000 + sequence, ..numbered(sequence, 100) };
            send(&mut again, &header, &[7; 200]);
        }
        // The first was not dead, only overtaken.
        send_all(&mut first, 100..105, 100);
        let end = Header { producer_ts_ns: 6_000, ..numbered(49, 100) }.end_of_stream(7_000);
        send(&mut again, &end, &[]);
    });
    let sequences: Vec<u64> = headers(&batches).iter().map(|header| header.sequence).collect();
    assert_eq!(sequences, (0..100).chain(0..50).collect::<Vec<_>>());
    assert_eq!(counted(&udp), [0, 0, 0, 5, 2]);
}

#[test]
fn who_else_sends_is_known_by_address() {
    let options = Options { gso: false, gro: false, ..Options::default() };
    let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let (at, second) = (source.local_addr().unwrap(), source.second_sender());
    let mut graph = Graph::new();
    let (tray, _taken) = std::sync::mpsc::channel();
    let source = graph.add("udp", source);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    let sockets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let send = |socket: &std::net::UdpSocket, header: &Header, payload: &[u8]| {
        let mut head = [0; 64];
        header.write(&mut head);
        socket.send_to(&[&head, payload].concat(), at).unwrap();
    };
    let [ours, theirs] = &sockets;
    send(ours, &numbered(0, 100), &[1; 200]);
    assert_eq!(second.address(), None);
    for sequence in 1..20 {
        send(theirs, &numbered(5_000 + sequence, 100), &[2; 200]);
        send(ours, &numbered(sequence, 100), &[1; 200]);
    }
    send(ours, &numbered(20, 100).end_of_stream(9_000), &[]);
    let snapshot = running.wait().unwrap();
    assert_eq!(snapshot.stage("udp").unwrap().own("foreign_datagrams"), Some(19));
    assert_eq!(second.address(), theirs.local_addr().ok());
}

#[test]
fn who_else_sends_samples_without_headers_is_known_by_address_too() {
    let uri = "udp://127.0.0.1:0?format=i16&rate=1k".parse().unwrap();
    let source = open_source(&uri, SourceOptions::default(), &mut |_| ()).unwrap();
    let (at, second) = (source.address.unwrap(), source.second_sender.unwrap());
    let mut graph = Graph::new();
    let (tray, taken) = std::sync::mpsc::channel();
    let source = graph.add_boxed("udp", source.stage);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(64));
    let running = graph.start().unwrap();
    let [ours, theirs] = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    for _ in 0..20 {
        ours.send_to(&[1; 2], at).unwrap();
        theirs.send_to(&[2; 2], at).unwrap();
    }
    ours.send_to(&[], at).unwrap();
    let snapshot = running.wait().unwrap();
    assert_eq!(snapshot.stage("udp").unwrap().own("foreign_datagrams"), Some(20));
    assert_eq!(second.address(), theirs.local_addr().ok());
    assert_eq!(channel(&taken.iter().collect::<Vec<_>>(), 0), [0x0101; 20]);
}

fn send(sender: &mut Sender, header: &Header, payload: &[u8]) {
    let mut head = [0; 64];
    header.write(&mut head);
    let mut batch = sender.batch();
    batch.push(&head, payload).unwrap();
    batch.flush().unwrap();
}

/// Keeps what a sink writes.
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

/// Sends a frame of 12 samples, and says at its end that it dropped 90 more.
struct DropsAtItsEnd(Option<Batch>);

impl Stage for DropsAtItsEnd {
    fn process(
        &mut self,
        _: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
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

const END: Header = Header {
    format: SampleFormat::I16,
    sequence: 0,
    producer_ts_ns: 0,
    channel_count: 2,
    block_length_samples: 0,
    sample_rate_hz: 1e6,
    sg_drops_total: 0,
    first_sample_index: 0,
};

/// What a pipe carries of such a stream, behind these stages.
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
fn what_a_source_dropped_at_its_end_stands_in_the_end_of_the_stream() {
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
    // A stream of which no frame was left says so too.
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

#[test]
fn a_sender_that_never_comes_is_silent_too() {
    let options = SourceOptions { idle_timeout: Some(Duration::from_millis(50)), ..SourceOptions::default() };
    let source = open_source(&"udp://127.0.0.1:0".parse().unwrap(), options, &mut |_| ()).unwrap();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add("sink", Null {}));
    graph.connect(source, sink, QueueOptions::block(4));
    let error = graph.start().unwrap().wait().unwrap_err().to_string();
    assert!(error.contains("the sender is gone"), "{error}");
}

#[test]
fn a_port_without_a_host_is_heard_by_either_protocol() {
    let source = open_source(&"udp://:0".parse().unwrap(), SourceOptions::default(), &mut |_| ()).unwrap();
    let port = source.address.unwrap().port();
    let (tell, heard) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add("headers", Headers(tell)));
    graph.connect(source, sink, QueueOptions::block(4));
    let running = graph.start().unwrap();
    let mut frame = [0; 64 + 24];
    let header = Header { block_length_samples: 6, ..END };
    header.write(frame.first_chunk_mut().unwrap());
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&frame, ("127.0.0.1", port)).unwrap();
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap().block_length_samples, 6);
    running.stop().unwrap();
    // Where this machine has no IPv6, there is one protocol.
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        let source =
            open_source(&"udp://:0".parse().unwrap(), SourceOptions::default(), &mut |_| ()).unwrap();
        assert!(source.address.unwrap().is_ipv6());
    }
}

#[test]
fn a_receiver_that_listens_on_tells_the_end_and_takes_the_next_stream_at_once() {
    let from = SourceOptions { listens_on: true, ..SourceOptions::default() };
    let source = open_source(&"udp://127.0.0.1:0".parse().unwrap(), from, &mut |_| ()).unwrap();
    let address = source.address.unwrap();
    let (tell, headers) = std::sync::mpsc::channel();
    let mut graph = Graph::new();
    let source = graph.add_boxed("udp", source.stage);
    let sink = graph.add("headers", Headers(tell));
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    // The second sender's clock is behind the first one's.
    for producer_ts_ns in [9_000_000, 5_000_000] {
        let mut sender = Sender::connect(address, &Options::default()).unwrap();
        for (sequence, block) in [(0, 32), (1, 32), (2, 0), (2, 0)] {
            let header = Header {
                sequence,
                producer_ts_ns: producer_ts_ns + sequence,
                channel_count: 1,
                block_length_samples: block,
                first_sample_index: sequence * 32,
                ..Header::default()
            };
            send(&mut sender, &header, &vec![1; block as usize * 2]);
        }
        for expected in [(0, 32), (1, 32), (2, 0)] {
            let header: Header = headers.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!((header.sequence, header.block_length_samples), expected, "{producer_ts_ns}");
        }
    }
    running.stop().unwrap();
}
