//! Tests both ends of a connection in this process, with sockets and threads as on two hosts.

#[path = "../detours/mod.rs"]
mod detours;
mod paths;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};
use std::time::Duration;

use self::detours::{address_of, pass_tcp_on, pass_udp_on, pass_udp_on_where};
use grebe_connection::{
    Connection, ConnectionListener, ConnectionOptions, ConnectionReader, ConnectionWriter, Error, Notice,
    Phase, Purpose, Ticket, Transport, connect,
};

fn listener() -> ConnectionListener {
    ConnectionListener::bind("127.0.0.1:0".parse().unwrap(), Purpose::Connection, Duration::from_secs(60))
        .unwrap()
}

/// Two ends, connected by these addresses of the listener.
fn pair_by(
    options: [&ConnectionOptions; 2],
    way: impl FnOnce(SocketAddr) -> Vec<SocketAddr>,
) -> [Connection; 2] {
    let listener = listener();
    let mut ticket = listener.ticket.clone();
    ticket.addresses = way(address_of(&ticket)).into_iter().map(Into::into).collect();
    scope(|scope| {
        let accepting = scope.spawn(|| listener.accept(options[1]).unwrap());
        let near = connect(&ticket, options[0]).unwrap();
        [near, accepting.join().unwrap()]
    })
}

fn pair() -> [Connection; 2] {
    let options = ConnectionOptions::default();
    pair_by([&options; 2], |address| vec![address])
}

fn byte(at: u64, seed: u64) -> u8 {
    ((at + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Writes `bytes` in pieces of various lengths.
fn write(writer: &mut ConnectionWriter, bytes: u64, seed: u64) -> io::Result<()> {
    let mut at = 0;
    for number in 0_u64.. {
        let length = (byte(number, seed) as u64 * byte(number, 77) as u64 * 5 + 1).min(bytes - at);
        let piece: Vec<u8> = (at..at + length).map(|at| byte(at, seed)).collect();
        writer.write_all(&piece)?;
        if number % 3 == 0 {
            writer.flush()?;
        }
        at += length;
        if at == bytes {
            break;
        }
    }
    Ok(())
}

/// Reads to the end in pieces of various lengths, and returns the total length.
fn read(reader: &mut ConnectionReader, seed: u64) -> io::Result<u64> {
    let (mut at, mut piece) = (0, vec![0; 400_000]);
    for number in 0_u64.. {
        let room = byte(number, seed) as usize * byte(number, 99) as usize * 6 + 1;
        let bytes = reader.read(&mut piece[..room])?;
        assert!(
            (at..).zip(&piece[..bytes]).all(|(at, came)| *came == byte(at, seed)),
            "in the {bytes} from {at}"
        );
        at += bytes as u64;
        if bytes == 0 {
            break;
        }
    }
    Ok(at)
}

/// Moves these amounts each way at once, and ends both.
fn exchange(ends: [Connection; 2], bytes: [u64; 2]) {
    scope(|scope| {
        for (number, end) in ends.into_iter().enumerate() {
            let Connection { mut reader, mut writer, status, .. } = end;
            scope.spawn(move || {
                assert_eq!(read(&mut reader, 1 - number as u64).unwrap(), bytes[1 - number]);
                assert_eq!(reader.read(&mut [0; 10]).unwrap(), 0, "the end stays the end");
                status.close().unwrap();
            });
            scope.spawn(move || {
                write(&mut writer, bytes[number], number as u64).unwrap();
                writer.finish().unwrap();
            });
        }
    });
}

#[test]
fn both_ways_at_once_every_byte_comes_in_order() {
    exchange(pair(), [30_000_000, 20_000_000]);
}

#[test]
fn streams_of_any_length_have_an_end() {
    for bytes in [0, 1, 1_163, 1_164, 131_071, 131_072, 131_073] {
        exchange(pair(), [bytes, 131_072 - bytes.min(131_072)]);
    }
}

#[test]
fn one_way_takes_as_long_as_it_likes_while_the_other_is_idle() {
    let [near, far] = pair();
    scope(|scope| {
        let Connection { mut reader, mut writer, status, .. } = near;
        scope.spawn(move || {
            write(&mut writer, 10_000_000, 0).unwrap();
            // Longer than the silence after which an end looks for another route.
            sleep(Duration::from_secs(6));
            let progress = status.progress();
            assert_eq!((progress.confirmed_bytes, progress.is_over_tcp), (10_000_000, false));
            writer.write_all(&[byte(10_000_000, 0)]).unwrap();
            writer.finish().unwrap();
            assert_eq!(read(&mut reader, 1).unwrap(), 0);
            status.close().unwrap();
        });
        let Connection { mut reader, writer, status, .. } = far;
        assert_eq!(read(&mut reader, 0).unwrap(), 10_000_001);
        drop(writer);
        status.close().unwrap();
    });
}

#[test]
fn questions_and_answers_take_turns() {
    let [near, far] = pair();
    scope(|scope| {
        let Connection { mut reader, mut writer, .. } = far;
        scope.spawn(move || {
            let mut question = [0; 4];
            while reader.read_exact(&mut question).is_ok() {
                writer.write_all(&(u32::from_be_bytes(question) + 1).to_be_bytes()).unwrap();
                writer.flush().unwrap();
            }
        });
        let Connection { mut reader, mut writer, .. } = near;
        for number in 0..2_000_u32 {
            writer.write_all(&number.to_be_bytes()).unwrap();
            writer.flush().unwrap();
            let mut answer = [0; 4];
            reader.read_exact(&mut answer).unwrap();
            assert_eq!(u32::from_be_bytes(answer), number + 1);
        }
    });
}

#[test]
fn what_nobody_flushes_comes_too() {
    let [mut near, mut far] = pair();
    for number in 0..20 {
        near.writer.write_all(&[number; 3]).unwrap();
        let mut came = [0; 3];
        far.reader.read_exact(&mut came).unwrap();
        assert_eq!(came, [number; 3]);
    }
}

#[test]
fn a_reader_that_stops_holds_the_writer_back() {
    let [near, far] = pair();
    let bytes = 200_000_000;
    scope(|scope| {
        let Connection { mut writer, status, .. } = near;
        let writing = scope.spawn(move || {
            write(&mut writer, bytes, 5).unwrap();
            writer.finish().unwrap();
        });
        // On a busy machine the writer may pause earlier.
        let mut before = 0;
        while before < 4 << 20 || status.progress().written_bytes != before {
            before = status.progress().written_bytes;
            sleep(Duration::from_millis(500));
        }
        assert!(before < 100_000_000, "{before} bytes wait");
        let Connection { mut reader, .. } = far;
        assert_eq!(read(&mut reader, 5).unwrap(), bytes);
        writing.join().unwrap();
    });
}

#[test]
fn who_does_not_want_to_read_holds_nobody_back() {
    let [near, far] = pair();
    drop(far.reader);
    let Connection { mut writer, .. } = near;
    write(&mut writer, 60_000_000, 5).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_host_that_vanishes_is_an_error_and_never_an_end() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let options = ConnectionOptions { keep_trying: Duration::from_secs(2), ..ConnectionOptions::default() };
    let [near, far] = pair_by([&options; 2], |address| vec![pass_udp_on(address, is_cut.clone())]);
    is_cut.store(true, Ordering::Relaxed);
    for Connection { mut reader, mut writer, status, .. } in [near, far] {
        let _ = writer.write_all(b"hello?");
        let error = reader.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::TimedOut);
        let error = status.close().unwrap_err();
        assert!(matches!(error, Error::Silent { waited } if waited == options.keep_trying), "{error}");
    }
}

#[test]
fn who_is_cancelled_tells_the_other_end_and_what_came_is_read_first() {
    let stopped = ConnectionOptions::default();
    let [mut near, mut far] = pair_by([&stopped, &ConnectionOptions::default()], |address| vec![address]);
    near.writer.write_all(b"the last words").unwrap();
    while near.status.progress().confirmed_bytes < 14 {
        sleep(Duration::from_millis(1));
    }
    stopped.cancel.cancel();
    let error = near.reader.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted, "{error}");
    let mut words = [0; 14];
    far.reader.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"the last words");
    let error = far.reader.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    assert!(far.writer.write_all(b"?").is_err());
    assert!(matches!(near.status.close(), Err(Error::Cancelled)));
    assert!(matches!(far.status.close(), Err(Error::Ended { .. })));
}

#[test]
fn who_has_heard_the_last_word_leaves_and_the_other_end_does_not_wait_for_it() {
    let [mut near, mut far] = pair();
    near.writer.write_all(b"question").unwrap();
    near.writer.flush().unwrap();
    let mut question = [0; 8];
    far.reader.read_exact(&mut question).unwrap();
    far.writer.write_all(b"all").unwrap();
    drop(far.writer);
    let mut word = String::new();
    near.reader.read_to_string(&mut word).unwrap();
    assert_eq!(word, "all");
    near.status.leave().unwrap();
    // Its own stream had not ended.
    let ended = far.status.close();
    assert!(matches!(ended, Err(Error::Ended { .. })), "{ended:?}");
}

#[test]
fn an_end_that_is_silent_is_waited_for_no_longer_than_is_said() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let options = ConnectionOptions { transport: Transport::Udp, ..ConnectionOptions::default() };
    let [near, far] = pair_by([&options; 2], |address| vec![pass_udp_on(address, is_cut.clone())]);
    is_cut.store(true, Ordering::Relaxed);
    drop(far.writer);
    let ended = far.status.close_within(Duration::from_millis(100));
    assert!(matches!(ended, Err(Error::Silent { .. })), "{ended:?}");
    drop(near);
}

#[test]
fn a_thread_that_reads_hears_that_the_connection_was_closed() {
    let [near, far] = pair();
    let Connection { mut reader, writer, status, .. } = near;
    scope(|scope| {
        let reading = scope.spawn(move || reader.read(&mut [0; 10]));
        scope.spawn(move || {
            sleep(Duration::from_millis(100));
            status.close().unwrap();
        });
        let error = reading.join().unwrap().unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::ConnectionAborted,
            "an aborted stream is not an end: {error}"
        );
        drop((writer, far.writer));
        far.status.close().unwrap();
    });
}

#[test]
fn a_greeting_comes_before_the_stream() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let connects = ConnectionOptions { transport, ..ConnectionOptions::default() };
        let greet = Arc::new(|| b"welcome".to_vec());
        let accepts = ConnectionOptions { greet: Some(greet), ..ConnectionOptions::default() };
        let [mut near, mut far] = pair_by([&connects, &accepts], |address| vec![address]);
        assert_eq!((&near.greeting[..], &far.greeting[..]), (&b""[..], &b"welcome"[..]));
        let mut heard = [0; 7];
        far.writer.write_all(b", and so on").unwrap();
        far.writer.finish().unwrap();
        near.reader.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"welcome");
        let mut rest = String::new();
        near.reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, ", and so on");
        near.writer.finish().unwrap();
        assert_eq!(far.reader.read(&mut [0; 9]).unwrap(), 0);
    }
}

#[test]
fn who_comes_second_with_a_ticket_is_told() {
    let listener = listener();
    let ticket = listener.ticket.clone();
    scope(|scope| {
        let accepting = scope.spawn(|| listener.accept(&ConnectionOptions::default()).unwrap());
        let mut first = connect(&ticket, &ConnectionOptions::default()).unwrap();
        first.writer.write_all(b"first").unwrap();
        let mut far = accepting.join().unwrap();
        let mut second = connect(&ticket, &ConnectionOptions::default()).unwrap();
        let error = second.reader.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
        let mut came = [0; 5];
        far.reader.read_exact(&mut came).unwrap();
        assert_eq!(&came, b"first");
    });
}

#[test]
fn tickets_are_for_one_purpose() {
    let probe = Ticket { purpose: Purpose::Probe, ..listener().ticket };
    let error = connect(&probe, &ConnectionOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Ticket { .. }), "{error}");
    let word = listener().ticket.word();
    assert!(Ticket::from_word(&word, Purpose::Transfer).is_err());
    assert_eq!(Ticket::from_word(&word, Purpose::Connection).unwrap().word(), word);
}

#[test]
fn nobody_is_waited_for_longer_than_the_ticket_is_good() {
    let listener =
        ConnectionListener::bind("127.0.0.1:0".parse().unwrap(), Purpose::Connection, Duration::ZERO)
            .unwrap();
    assert!(matches!(listener.accept(&ConnectionOptions::default()), Err(Error::Expired)));
    let cancelled = ConnectionOptions::default();
    cancelled.cancel.cancel();
    assert!(matches!(self::listener().accept(&cancelled), Err(Error::Cancelled)));
    assert!(matches!(connect(&self::listener().ticket, &cancelled), Err(Error::Cancelled)));
}
