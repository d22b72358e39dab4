use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use grebe_flow::{
    Context, Counters, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageBench, StageResult,
};
use grebe_frame::{Batch, BatchPool, Description, Header, SampleFormat};

use super::tags::TagHeader;
use super::wire::Head;
use super::*;
use crate::{Cancel, SourceOptions, Uri, open_source};

/// Forwards its batches to a test.
struct Tray(Sender<Batch>);

impl Stage for Tray {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let _ = self.0.send(own(&batch));
        Ok(Outcome::Produced)
    }
}

/// A copy in its own memory, because the source would run out of chunks.
fn own(batch: &Batch) -> Batch {
    let bytes = batch.frames().map(|frame| frame.header().frame_bytes().next_multiple_of(64)).sum();
    let mut own = BatchPool::new(1, bytes).acquire().unwrap();
    own.describe(batch.description());
    batch.frames().for_each(|frame| own.push_copy(&frame).unwrap());
    own.freeze()
}

fn zmq(text: &str) -> Zmq {
    match text.parse() {
        Ok(Uri::Zmq(zmq)) => *zmq,
        other => panic!("{text}: {other:?}"),
    }
}

/// All batches of a source until its sender has gone, or its error.
fn reading(uri: String) -> JoinHandle<ReadResult> {
    reading_upto(uri, None)
}

/// The same with a limit of samples.
fn reading_upto(uri: String, samples: Option<u64>) -> JoinHandle<ReadResult> {
    thread::spawn(move || {
        let options = SourceOptions { samples, ..SourceOptions::default() };
        let source = open_source(&uri.parse().unwrap(), options, &mut |_| ());
        let source = source.map_err(|error| error.to_string())?;
        let counters = source.stage.counters().unwrap();
        let (tray, batches) = channel();
        let mut graph = Graph::new();
        let source = graph.add_boxed("source", source.stage);
        let tray = graph.add("tray", Tray(tray));
        graph.connect(source, tray, QueueOptions::block(4));
        let ended = graph.start().unwrap().wait();
        ended.map_err(|error| error.to_string())?;
        Ok((batches.try_iter().collect(), counters))
    })
}

/// The result of a reader.
type ReadResult = Result<(Vec<Batch>, Counters), String>;

/// A listening sink, and as many readers as it waits for.
fn sending(query: &str, readers: &[&str]) -> (StageBench, Counters, Vec<JoinHandle<ReadResult>>) {
    let (sender, address) = channel::<SocketAddr>();
    let readers: Vec<String> = readers.iter().map(|&reader| reader.to_owned()).collect();
    let count = readers.len();
    let starting = thread::spawn(move || {
        let address = address.recv().unwrap();
        readers.iter().map(|query| reading(format!("zmq://{address}?{query}"))).collect::<Vec<_>>()
    });
    let zmq = zmq(&format!("zmq://127.0.0.1:0?listen&wait={count}&{query}"));
    let socket = zmq.socket.unwrap_or(Socket::Pub);
    let sink = ZmqSink::open(&zmq, socket, &Cancel::default(), &mut told(sender)).unwrap();
    let counters = sink.counters().unwrap();
    (StageBench::new(sink).unwrap(), counters, starting.join().unwrap())
}

/// `samples` samples from `first` on, of two channels.
fn batch(first: u64, samples: u32, description: Option<&Arc<Description>>) -> Batch {
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    batch.describe(description);
    let header = Header {
        format: SampleFormat::I16,
        sequence: first,
        first_sample_index: first,
        block_length_samples: samples,
        channel_count: 2,
        sample_rate_hz: 1e6,
        ..Header::default()
    };
    let fill = |channel: usize, out: &mut [i16]| {
        out.iter_mut().zip(first..).for_each(|(out, at)| *out = (at * 3 + channel as u64) as i16);
    };
    batch.push(&header, fill).unwrap();
    batch.freeze()
}

/// Indices and samples of the first channel, frame by frame.
fn samples(batches: &[Batch]) -> Vec<(u64, i16)> {
    let frames = batches.iter().flat_map(|batch| batch.frames());
    frames
        .flat_map(|frame| {
            let first = frame.header().first_sample_index;
            let samples = frame.channel::<i16>(0).unwrap().into_owned();
            (first..).zip(samples).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn all_subscribers_of_a_key_get_all_and_others_nothing() {
    let query = "format=i16be&channels=2&key=adc";
    let (mut sink, counters, readers) = sending(query, &[query, query, "format=i16&channels=2&key=dac"]);
    for number in 0..40 {
        sink.feed(batch(number * 5_000, 5_000, None)).unwrap();
    }
    sink.end().unwrap();
    assert_eq!(counters.get("client_dropped_samples"), Some(0));
    let got: Vec<_> = readers.into_iter().map(|reader| samples(&reader.join().unwrap().unwrap().0)).collect();
    let sent: Vec<(u64, i16)> = (0..200_000).map(|at| (at, (at * 3) as i16)).collect();
    assert!(got[0] == sent && got[1] == sent && got[2].is_empty());
}

#[test]
fn a_push_gives_each_message_to_one_reader() {
    let query = "format=i16&channels=2&tags";
    let (mut sink, _, readers) =
        sending(&format!("{query}&type=push"), &["format=i16&channels=2&tags&type=pull"; 2]);
    for number in 0..200 {
        sink.feed(batch(number * 5_000, 5_000, None)).unwrap();
    }
    sink.end().unwrap();
    let got: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap().unwrap()).collect();
    assert!(got.iter().all(|(batches, _)| !batches.is_empty()));
    // Both ends count from their own start. The samples show their true place.
    let count: usize = got.iter().map(|(batches, _)| samples(batches).len()).sum();
    assert_eq!(count, 1_000_000);
}

#[test]
fn tags_say_what_the_stream_is_and_where_samples_are_missing() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
    let of = |first_sample_index, hz| {
        let centre_frequency_hz = Some(hz);
        Arc::new(Description {
            first_sample_index,
            centre_frequency_hz,
            recorded_at: Some(time),
            ..Description::default()
        })
    };
    let (low, high) = (of(0, 1e8), of(700, 2e8));
    let query = "format=i16&channels=2&tags";
    let (mut sink, counters, mut readers) = sending(query, &[query]);
    for batch in [
        batch(0, 300, Some(&low)),
        batch(300, 100, Some(&low)),
        batch(700, 50, Some(&high)),
        batch(750, 250, Some(&high)),
    ] {
        sink.feed(batch).unwrap();
    }
    sink.end().unwrap();
    assert_eq!(counters.get("unmarked_gap_samples"), Some(0));
    let (batches, counted) = readers.remove(0).join().unwrap().unwrap();
    let sent: Vec<(u64, i16)> = (0..400).chain(700..1_000).map(|at| (at, (at * 3) as i16)).collect();
    assert!(samples(&batches) == sent);
    assert_eq!((counted.get("lost_samples"), counted.get("unseen_loss")), (Some(300), Some(0)));
    for frame_batch in &batches {
        let header = frame_batch.frames().next().unwrap().header();
        let (description, expected) =
            (frame_batch.description().unwrap(), if header.first_sample_index < 700 { &low } else { &high });
        assert_eq!(description.centre_frequency_hz, expected.centre_frequency_hz);
        assert_eq!(description.first_sample_index, expected.first_sample_index);
        assert_eq!((description.recorded_at, header.sample_rate_hz), (Some(time), 1e6));
    }
}

#[test]
fn a_subscriber_that_does_not_read_delays_nobody_and_its_losses_are_counted() {
    let zmq = zmq("zmq://127.0.0.1:0?listen&format=i16&channels=2");
    let (sender, address) = channel::<SocketAddr>();
    let slow = thread::spawn(move || {
        let mut stream = TcpStream::connect(address.recv().unwrap()).unwrap();
        stream.write_all(&wire::greeting()).unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        stream.write_all(&wire::ready(Socket::Sub)).unwrap();
        stream.write_all(b"\0\x01\x01").unwrap();
        let mut ready = [0; 2];
        stream.read_exact(&mut ready).unwrap();
        stream.read_exact(&mut vec![0; ready[1].into()]).unwrap();
        stream
    });
    let sink = ZmqSink::open(&zmq, Socket::Pub, &Cancel::default(), &mut told(sender)).unwrap();
    let counters = sink.counters().unwrap();
    let (mut sink, mut slow) = (StageBench::new(sink).unwrap(), slow.join().unwrap());
    let dropped = || counters.get("client_dropped_samples").unwrap();
    let mut sent = 0;
    while dropped() == 0 {
        sink.feed(batch(sent * 15_000, 15_000, None)).unwrap();
        sent += 1;
        assert!(sent < 2_000, "it has room for 120 MB");
    }
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        slow.read_to_end(&mut bytes).map(|_| bytes.len() as u64).unwrap()
    });
    sink.end().unwrap();
    // A message is nine bytes, then its samples.
    let messages = sent - dropped() / 15_000;
    assert_eq!(reading.join().unwrap(), messages * 60_009);
}

/// Serves one reader after the handshake.
fn serve(socket: Socket, then: impl FnOnce(&mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || then(&mut met(&listener, socket)));
    address
}

/// The next connection after its handshake.
fn met(listener: &TcpListener, socket: Socket) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&wire::greeting()).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    stream.write_all(&wire::ready(socket)).unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; head[1].into()]).unwrap();
    stream
}

#[test]
fn a_sender_that_goes_within_a_message_and_returns_leaves_a_gap() {
    for (socket, query) in [(Socket::Push, "type=pull"), (Socket::Pub, "type=sub&tags")] {
        let message = move |first: u64, items: u64| {
            let (mut body, mut bytes) = (Vec::new(), Vec::new());
            if socket == Socket::Pub {
                TagHeader::put(first, &[], &mut body);
            }
            (first..first + items).for_each(|at| body.extend((at as u32).to_le_bytes()));
            Head::put(body.len(), false, &mut bytes);
            [bytes, body].concat()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let half = message(0, 300);
            for bytes in [&half[..half.len() - 4 * 100 - 1], &message(9_000, 200)] {
                let mut stream = met(&listener, socket);
                stream.write_all(bytes).unwrap();
                // Waits for the reader, because closing a socket with unread bytes discards sent ones.
                stream.shutdown(Shutdown::Write).unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let uri = format!("zmq://{address}?format=i16&channels=2&rate=1M&reconnect&{query}");
        let (batches, counters) = reading_upto(uri, Some(399)).join().unwrap().unwrap();
        server.join().unwrap();
        let count = |name| counters.get(name).unwrap();
        let lost = count("lost_samples");
        let after = (0..200).map(|at| (199 + lost + at, (9_000 + at) as i16));
        let expected: Vec<(u64, i16)> = (0..199).map(|at| (at, at as i16)).chain(after).collect();
        assert!(lost >= 1 && samples(&batches) == expected, "{query}: {lost}");
        assert_eq!(["lost_frames", "reconnects", "odd_bytes"].map(count), [1, 1, 3], "{query}");
    }
}

#[test]
fn a_sender_continues_when_its_reader_returns() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("zmq://{}?format=i16&channels=2&type=push&reconnect", listener.local_addr().unwrap());
    let (tell, told) = channel();
    let reader = thread::spawn(move || {
        let mut message = vec![0; 9 + 5_000 * 4];
        let mut heard = Vec::new();
        let mut stream = met(&listener, Socket::Pull);
        for _ in 0..2 {
            stream.read_exact(&mut message).unwrap();
            heard.push(i16::from_le_bytes([message[9], message[10]]));
        }
        drop(stream);
        let mut stream = met(&listener, Socket::Pull);
        for _ in 0..3 {
            stream.read_exact(&mut message).unwrap();
            heard.push(i16::from_le_bytes([message[9], message[10]]));
        }
        tell.send(heard).unwrap();
        // Keeps reading, because the sender would wait for its reader.
        io::copy(&mut stream, &mut io::sink()).unwrap();
    });
    let sink = ZmqSink::open(&zmq(&uri), Socket::Push, &Cancel::default(), &mut |_| ()).unwrap();
    let mut sink = StageBench::new(sink).unwrap();
    let mut sent = 0;
    let heard: Vec<i16> = loop {
        match told.try_recv() {
            Err(TryRecvError::Empty) => drop(sink.feed(batch(sent * 5_000, 5_000, None)).unwrap()),
            heard => break heard.unwrap(),
        }
        sent += 1;
    };
    drop(sink);
    reader.join().unwrap();
    let number = |heard: i16| (0..sent).position(|at| (at * 15_000) as i16 == heard).unwrap();
    assert_eq!((number(heard[0]), number(heard[1])), (0, 1));
    // Messages that the first connection had not read are lost. Later ones are whole and in order.
    let after = number(heard[2]);
    assert!(after > 1);
    let expected = [0, 1, 2].map(|at| ((after as u64 + at) * 15_000) as i16);
    assert_eq!(heard[2..], expected);
}

#[test]
fn messages_are_read_however_they_are_cut() {
    // Short messages, commands in between, long messages, one byte at a time.
    let mut bytes = Vec::new();
    let samples: Vec<u8> = (0..=255).cycle().take(4 * 500).collect();
    for (number, piece) in samples.chunks(4 * 100).enumerate() {
        bytes.extend(b"\x04\x06\x04PINGx");
        Head::put(4 * number, false, &mut bytes);
        bytes.extend(&piece[..4 * number]);
        Head::put(piece.len() - 4 * number, false, &mut bytes);
        bytes.extend(&piece[4 * number..]);
    }
    let address = serve(Socket::Push, move |stream| {
        bytes.chunks(7).for_each(|piece| stream.write_all(piece).unwrap());
    });
    let (batches, _) =
        reading(format!("zmq://{address}?type=pull&format=i16&channels=2")).join().unwrap().unwrap();
    let got: usize = batches.iter().map(|batch| batch.samples() as usize).sum();
    assert_eq!(got, 500);
    let first: Vec<i16> = batches
        .iter()
        .flat_map(|it| {
            it.frames().flat_map(|it| it.channel::<i16>(0).unwrap().into_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        first.iter().zip(samples.chunks(4)).all(|(&got, sent)| got == i16::from_le_bytes([sent[0], sent[1]]))
    );
}

#[test]
fn a_stream_that_cannot_be_read_is_an_error() {
    for (socket, message, query, why) in [
        (Socket::Push, &b"\0\x03abc"[..], "type=pull&format=i16", "partial samples"),
        (Socket::Push, b"\x42\x03abc", "type=pull&format=i16", "an invalid ZMTP frame"),
        (Socket::Push, b"\0\x04abcd", "type=pull&format=i16&tags&reconnect", "without GNU Radio's tags"),
        (Socket::Pub, b"", "type=pull&format=i16", "is not a PUSH, which type=pull needs"),
    ] {
        let address = serve(socket, move |stream| {
            stream.write_all(message).unwrap();
            let _ = stream.read(&mut [0]);
        });
        let error = reading(format!("zmq://{address}?{query}")).join().unwrap().unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

/// Forwards the address that a sink listens on.
fn told(sender: Sender<SocketAddr>) -> impl FnMut(Notice) {
    move |notice| {
        let Notice::WaitingForConnection { address, .. } = notice else { return };
        sender.send(address).unwrap();
    }
}
