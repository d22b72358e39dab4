use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageBench, StageResult};
use grebe_frame::{Batch, BatchPool, Header, SampleFormat};

use super::*;
use crate::tuner::{Switch, Tuner};
use crate::{Cancel, OpenSource, SourceOptions, Uri, open_source};

/// Forwards its batches to a test.
struct Tray(Sender<Batch>);

impl Stage for Tray {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let _ = self.0.send(batch);
        Ok(Outcome::Produced)
    }
}

/// A local port that the test serves.
fn serve() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Greets a client, and reads the commands that tune the receiver.
fn greet(listener: &TcpListener, commands: usize) -> (TcpStream, Vec<Command>) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&Hello { tuner: 5, gains: 29 }.to_bytes()).unwrap();
    let heard = hear(&mut stream, commands);
    (stream, heard)
}

fn hear(stream: &mut TcpStream, commands: usize) -> Vec<Command> {
    let mut bytes = vec![0; commands * Command::BYTES];
    stream.read_exact(&mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|command| Command::parse(*command)).collect()
}

fn open(address: SocketAddr, query: &str, samples: Option<u64>) -> OpenSource {
    let uri = format!("rtl_tcp://{address}?{query}").parse().unwrap();
    open_source(&uri, SourceOptions { samples, ..SourceOptions::default() }, &mut |_| ()).unwrap()
}

/// Runs a source in a thread.
fn run(source: OpenSource) -> (Receiver<Batch>, grebe_flow::Running) {
    let (tray, batches) = channel();
    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source.stage);
    let tray = graph.add("tray", Tray(tray));
    graph.connect(source, tray, QueueOptions::block(4));
    (batches, graph.start().unwrap())
}

fn bytes_of(batch: &Batch) -> Vec<u8> {
    batch.frames().flat_map(|frame| frame.channel_bytes(0).unwrap().to_vec()).collect()
}

#[test]
fn tuning_a_running_receiver_changes_the_description() {
    let (listener, address) = serve();
    let server = thread::spawn(move || {
        let (mut stream, first) = greet(&listener, 4);
        stream.write_all(&[1; 1_000]).unwrap();
        // Sends more after the commands arrived.
        let second = hear(&mut stream, 3);
        stream.write_all(&[2; 600]).unwrap();
        (first, second)
    });
    let mut source = open(address, "frequency=433.92M&rate=1M&gain=20.7", None);
    let tuner = source.tuner.take().unwrap();
    let (batches, running) = run(source);
    let first = batches.recv().unwrap();
    tuner.change(|tuning| *tuning = crate::Tuning { frequency_hz: 868e6, rate_hz: 2e6, gain_db: None });
    let all: Vec<Batch> = [first].into_iter().chain(batches.iter()).collect();
    running.wait().unwrap();
    let (told_first, told_second) = server.join().unwrap();
    let gain = [Command::AutomaticGain(false), Command::Gain(207)];
    assert_eq!(
        told_first,
        [&[Command::RateHz(1_000_000), Command::FrequencyHz(433_920_000)][..], &gain].concat()
    );
    let automatic = Command::AutomaticGain(true);
    assert_eq!(told_second, [Command::RateHz(2_000_000), Command::FrequencyHz(868_000_000), automatic]);

    let description = all[0].description().unwrap();
    assert_eq!((description.centre_frequency_hz, description.gain_db), (Some(433.92e6), Some(20.7)));
    assert_eq!(description.hardware.as_deref(), Some("RTL-SDR, R820T"));
    assert!(description.clock.is_some());
    for batch in all.iter().filter(|batch| bytes_of(batch).contains(&2)) {
        let description = batch.description().unwrap();
        assert_eq!((description.centre_frequency_hz, description.gain_db), (Some(868e6), None));
        assert!(description.first_sample_index <= 500);
        assert!(batch.frames().all(|frame| frame.header().sample_rate_hz == 2e6));
    }
    let samples: Vec<u8> = all.iter().flat_map(bytes_of).collect();
    assert!(samples == [vec![1; 1_000], vec![2; 600]].concat());
}

#[test]
fn switches_of_a_dongle_reach_the_receiver_once_each() {
    let (listener, address) = serve();
    let server = thread::spawn(move || {
        let (mut stream, first) = greet(&listener, 4);
        // Each change repeats the tuning, and sends only new switches.
        let second = hear(&mut stream, 4);
        stream.write_all(&[2; 600]).unwrap();
        (first, second)
    });
    let mut source = open(address, "frequency=1M&rate=1M&ppm=7", None);
    let tuner = source.tuner.take().unwrap();
    tuner.set(Switch::BiasTee, 1);
    let (batches, running) = run(source);
    batches.iter().for_each(drop);
    running.wait().unwrap();
    let (first, second) = server.join().unwrap();
    assert_eq!(first[0], Command::Switch(Switch::CorrectionPpm, 7));
    assert_eq!(second[3], Command::Switch(Switch::BiasTee, 1));
}

#[test]
fn a_server_that_goes_and_returns_leaves_a_gap() {
    let (listener, address) = serve();
    let server = thread::spawn(move || {
        let (mut stream, first) = greet(&listener, 3);
        // Half a sample at the end.
        stream.write_all(&[1; 1_001]).unwrap();
        drop(stream);
        let (mut stream, second) = greet(&listener, 3);
        stream.write_all(&[2; 600]).unwrap();
        assert_eq!(first, second, "it is tuned again");
        // Until the receiver has enough.
        let _ = stream.read(&mut [0]);
    });
    let source = open(address, "frequency=100M&rate=1M&reconnect", Some(800));
    let counters = source.stage.counters().unwrap();
    let (batches, running) = run(source);
    let all: Vec<Batch> = batches.iter().collect();
    running.wait().unwrap();
    server.join().unwrap();
    let samples: Vec<u8> = all.iter().flat_map(bytes_of).collect();
    assert!(samples == [vec![1; 1_000], vec![2; 600]].concat());
    let headers: Vec<Header> =
        all.iter().flat_map(|batch| batch.frames().map(|frame| frame.header())).collect();
    let behind = headers.iter().position(|header| header.first_sample_index > 500).unwrap();
    let (before, after) = (&headers[behind - 1], &headers[behind]);
    assert_eq!(after.sequence, before.sequence + 2);
    let gap = after.first_sample_index - before.next_sample_index();
    let count = |name| counters.get(name).unwrap();
    assert!(gap >= 1 && count("lost_samples") == gap);
    assert_eq!(["lost_frames", "reconnects", "odd_bytes"].map(count), [1, 1, 1]);
}

#[test]
fn other_programs_are_distinguished_from_rtl_tcp() {
    for (said, why) in
        [(&b"HTTP/1.1 400 Bad Request\r\n"[..], "does not send RTL0"), (b"RTL0", "cannot read from")]
    {
        let (listener, address) = serve();
        let server = thread::spawn(move || listener.accept().unwrap().0.write_all(said));
        let uri: Uri = format!("rtl_tcp://{address}").parse().unwrap();
        let error = open_source(&uri, SourceOptions::default(), &mut |_| ()).err().unwrap().to_string();
        server.join().unwrap().unwrap();
        assert!(error.contains(why) && error.contains(&address.to_string()), "{error}");
    }
}

/// A server with its clients, after the greeting.
fn server(clients: usize, tuner: Option<Tuner>) -> (StageBench, grebe_flow::Counters, Vec<TcpStream>) {
    let Ok(Uri::RtlTcp(rtl)) = format!("rtl_tcp://127.0.0.1:0?listen&wait={clients}").parse() else {
        panic!("a server")
    };
    let (sender, address) = channel();
    let connecting = thread::spawn(move || {
        let address: SocketAddr = address.recv().unwrap();
        let connect = |_| {
            let mut client = TcpStream::connect(address).unwrap();
            let mut hello = [0; Hello::BYTES];
            client.read_exact(&mut hello).unwrap();
            assert_eq!(Hello::parse(&hello).unwrap().tuner_name(), "R820T");
            client
        };
        (0..clients).map(connect).collect()
    });
    let told = &mut |notice| {
        let Notice::WaitingForConnection { address, .. } = notice else { return };
        sender.send(address).unwrap();
    };
    let server = RtlTcpServer::open(&rtl, tuner, &Cancel::default(), told).unwrap();
    let counters = server.counters().unwrap();
    (StageBench::new(server).unwrap(), counters, connecting.join().unwrap())
}

/// The next 32,000 samples.
fn batch(number: u64) -> Batch {
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    let header = Header {
        format: SampleFormat::Cu8,
        sequence: number,
        first_sample_index: number * 32_000,
        block_length_samples: 32_000,
        channel_count: 1,
        ..Header::default()
    };
    batch
        .push_bytes(&header, |_, out| out.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8))
        .unwrap();
    batch.freeze()
}

#[test]
fn a_client_that_does_not_read_delays_nobody_and_its_losses_are_counted() {
    let (mut server, counters, mut clients) = server(2, None);
    let (mut slow, mut fast) = (clients.remove(0), clients.remove(0));
    let dropped = || counters.get("client_dropped_samples").unwrap();
    let (mut sent, mut got) = (0, vec![0; 64_000]);
    while dropped() == 0 {
        server.feed(batch(sent)).unwrap();
        fast.read_exact(&mut got).unwrap();
        assert_eq!(got[..300], bytes_of(&batch(0))[..300]);
        sent += 1;
        assert!(sent < 2_000, "it has room for 128 MB");
    }
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        slow.read_to_end(&mut bytes).map(|_| bytes.len() as u64).unwrap()
    });
    server.end().unwrap();
    assert_eq!(reading.join().unwrap() + 2 * dropped(), sent * 64_000);
}

#[test]
fn requests_of_clients_reach_the_tuner() {
    let tuner = Tuner::new(crate::Tuning { frequency_hz: 1e8, rate_hz: 1e6, gain_db: None });
    let (mut server, counters, mut clients) = server(1, Some(tuner.clone()));
    // In pieces, because TCP may cut anywhere.
    let told: Vec<u8> =
        [Command::FrequencyHz(7), Command::Gain(15), Command::Switch(Switch::BiasTee, 1), Command::RateHz(9)]
            .into_iter()
            .flat_map(Command::to_bytes)
            .collect();
    clients[0].write_all(&told[..8]).unwrap();
    let mut rest = Some(&told[8..]);
    let mut number = 0;
    while counters.get("commands") != Some(4) {
        if counters.get("commands") == Some(1)
            && let Some(rest) = rest.take()
        {
            clients[0].write_all(rest).unwrap();
        }
        server.feed(batch(number)).unwrap();
        clients[0].read_exact(&mut [0; 64_000]).unwrap();
        number += 1;
    }
    assert_eq!(tuner.tuning(), crate::Tuning { frequency_hz: 7.0, rate_hz: 9.0, gain_db: Some(1.5) });
    assert_eq!(tuner.switches().into_iter().collect::<Vec<_>>(), [(Switch::BiasTee, 1)]);
}

#[test]
fn other_samples_than_its_own_are_refused() {
    let (mut server, _, _clients) = server(1, None);
    let error = server.feed(grebe_testing::stream::stream(1, &[(0, 5)]).remove(0)).unwrap_err().to_string();
    assert!(error.contains("rtl_tcp carries cu8 in one"), "{error}");
}
