//! Tests both ends of a connection in this process, with sockets and threads as on two hosts.

mod detours;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{scope, sleep};
use std::time::Duration;

use self::detours::{address_of, pass_tcp_on, pass_udp_on, pass_udp_on_where};
use grebe_connection::{
    Connection, ConnectionListener, ConnectionOptions, ConnectionReader, ConnectionWriter, Error, Notice,
    Purpose, Ticket, Transport, connect,
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
fn where_no_udp_passes_tcp_does() {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = notices.clone();
    let notify: grebe_connection::Notify = Arc::new(move |notice: Notice| heard.lock().unwrap().push(notice));
    let options = ConnectionOptions { notify, ..ConnectionOptions::default() };
    let ends = pair_by([&options; 2], |address| vec![pass_tcp_on(address)]);
    let statuses = [ends[0].status.clone(), ends[1].status.clone()];
    exchange(ends, [20_000_000, 10_000_000]);
    assert!(statuses.iter().all(|status| status.progress().received_bytes >= 10_000_000));
    assert_eq!(*notices.lock().unwrap(), [Notice::OverTcp, Notice::OverTcp], "each end says so, once");
}

#[test]
fn udp_that_loses_the_first_questions_is_still_taken_before_tcp() {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = notices.clone();
    let notify: grebe_connection::Notify = Arc::new(move |notice: Notice| heard.lock().unwrap().push(notice));
    let options = ConnectionOptions { notify, ..ConnectionOptions::default() };
    let lost = Arc::new(AtomicU32::new(0));
    // TCP is dialled after two questions, and answered at once.
    let passes = move |is_forward: bool, _: usize| !is_forward || lost.fetch_add(1, Ordering::Relaxed) >= 4;
    let ends = pair_by([&options; 2], |address| {
        vec![pass_udp_on_where(address, passes.clone()), pass_tcp_on(address)]
    });
    exchange(ends, [100_000, 100_000]);
    assert_eq!(*notices.lock().unwrap(), []);
}

#[test]
fn udp_that_stops_in_the_middle_goes_on_by_tcp() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let slowly = ConnectionOptions { limit_bits_per_s: Some(40e6), ..ConnectionOptions::default() };
    // UDP passes a path that can be cut. TCP is direct: the ticket's second address accepts only TCP.
    let ends =
        pair_by([&slowly; 2], |address| vec![pass_udp_on(address, is_cut.clone()), pass_tcp_on(address)]);
    let statuses = [ends[0].status.clone(), ends[1].status.clone()];
    scope(|scope| {
        scope.spawn(|| exchange(ends, [4_000_000, 3_000_000]));
        while statuses[0].progress().confirmed_bytes < 500_000 {
            sleep(Duration::from_millis(1));
        }
        is_cut.store(true, Ordering::Relaxed);
    });
    assert!(statuses.iter().all(|status| status.progress().is_over_tcp));
}

#[test]
fn udp_that_stops_in_one_direction_or_for_long_datagrams_goes_on_by_tcp() {
    let is_data = |bytes| bytes > 1_100;
    let sizes = [4_000_000, 3_000_000];
    type Stops = fn(bool, bool) -> bool;
    let stops: [(&str, Stops); 4] = [
        ("what the end with the ticket sends", |is_forward, _| is_forward),
        ("what the other end sends", |is_forward, _| !is_forward),
        ("what is long of the end with the ticket", |is_forward, is_long| is_forward && is_long),
        ("what is long of the other end", |is_forward, is_long| !is_forward && is_long),
    ];
    scope(|scope| {
        for (what, stops) in stops {
            scope.spawn(move || {
                let is_cut = Arc::new(AtomicBool::new(false));
                let notices = Arc::new(Mutex::new(Vec::new()));
                let (cut, heard) = (is_cut.clone(), notices.clone());
                let notify: grebe_connection::Notify =
                    Arc::new(move |notice: Notice| heard.lock().unwrap().push(notice));
                let slowly = ConnectionOptions {
                    limit_bits_per_s: Some(40e6),
                    notify,
                    ..ConnectionOptions::default()
                };
                let passes = move |is_forward, bytes| {
                    !(cut.load(Ordering::Relaxed) && stops(is_forward, is_data(bytes)))
                };
                let ends = pair_by([&slowly; 2], |address| {
                    vec![pass_udp_on_where(address, passes), pass_tcp_on(address)]
                });
                let statuses = [ends[0].status.clone(), ends[1].status.clone()];
                std::thread::scope(|scope| {
                    scope.spawn(|| exchange(ends, sizes));
                    while statuses[0].progress().confirmed_bytes < 500_000 {
                        sleep(Duration::from_millis(1));
                    }
                    is_cut.store(true, Ordering::Relaxed);
                });
                assert!(statuses.iter().all(|status| status.progress().is_over_tcp), "{what}");
                assert_eq!(*notices.lock().unwrap(), [Notice::OverTcp, Notice::OverTcp], "{what}");
            });
        }
    });
}

#[test]
fn tcp_that_ends_while_udp_passes_again_is_not_the_end() {
    let (is_cut, is_closed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let slowly = ConnectionOptions { limit_bits_per_s: Some(20e6), ..ConnectionOptions::default() };
    let ends = pair_by([&slowly; 2], |address| {
        vec![pass_udp_on(address, is_cut.clone()), pass_tcp_on_until(address, is_closed.clone())]
    });
    let statuses = [ends[0].status.clone(), ends[1].status.clone()];
    let is_over_tcp = |expected| statuses.iter().all(|status| status.progress().is_over_tcp == expected);
    scope(|scope| {
        scope.spawn(|| exchange(ends, [15_000_000, 15_000_000]));
        while statuses[0].progress().confirmed_bytes < 500_000 {
            sleep(Duration::from_millis(1));
        }
        is_cut.store(true, Ordering::Relaxed);
        while !is_over_tcp(true) {
            sleep(Duration::from_millis(1));
        }
        is_cut.store(false, Ordering::Relaxed);
        is_closed.store(true, Ordering::Relaxed);
    });
    assert!(is_over_tcp(false));
}

/// A TCP-only port that forwards connections until it is closed.
fn pass_tcp_on_until(to: SocketAddr, is_closed: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if is_closed.load(Ordering::Relaxed) {
                return;
            }
            let (near, far) = (stream.unwrap(), TcpStream::connect(to).unwrap());
            for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                let is_closed = is_closed.clone();
                from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                std::thread::spawn(move || {
                    let mut bytes = vec![0; 65_536];
                    while !is_closed.load(Ordering::Relaxed) {
                        match from.read(&mut bytes) {
                            Ok(read @ 1..) if into.write_all(&bytes[..read]).is_ok() => {}
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                            _ => break,
                        }
                    }
                    let _ = from.shutdown(Shutdown::Both);
                    let _ = into.shutdown(Shutdown::Both);
                });
            }
        }
    });
    address
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
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted, "what is thrown away is no end: {error}");
        drop((writer, far.writer));
        far.status.close().unwrap();
    });
}

#[test]
fn a_path_that_repeats_changes_and_invents_datagrams_changes_nothing() {
    let ends = pair_by([&ConnectionOptions::default(); 2], |address| vec![pass_udp_on_badly(address)]);
    exchange(ends, [3_000_000, 3_000_000]);
}

/// Forwards datagrams, most of them more than once, and corrupted copies too.
fn pass_udp_on_badly(to: SocketAddr) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(to).unwrap();
    let address = near.local_addr().unwrap();
    let asking = Arc::new(Mutex::new(None));
    for is_forward in [true, false] {
        let (near, far, asking) = (near.try_clone().unwrap(), far.try_clone().unwrap(), asking.clone());
        std::thread::spawn(move || {
            let (mut bytes, mut kept) = (vec![0; 65_536], Vec::new());
            for number in 0_u64.. {
                let length = if is_forward {
                    let Ok((length, from)) = near.recv_from(&mut bytes) else { continue };
                    *asking.lock().unwrap() = Some(from);
                    length
                } else {
                    let Ok(length) = far.recv(&mut bytes) else { continue };
                    length
                };
                let pass = |bytes: &[u8]| {
                    let asking = *asking.lock().unwrap();
                    let _ = match (is_forward, asking) {
                        (true, _) => far.send(bytes),
                        (false, Some(asking)) => near.send_to(bytes, asking),
                        (false, None) => Ok(0),
                    };
                };
                let mut changed = bytes[..length].to_vec();
                changed[number as usize * 7 % length] ^= 1 << (number % 8);
                pass(&changed);
                pass(&changed[..length / 2]);
                pass(&bytes[..length]);
                pass(&bytes[..length]);
                if kept.len() < 1_000 {
                    kept.push(bytes[..length].to_vec());
                }
                pass(&kept[number as usize * 31 % kept.len()]);
            }
        });
    }
    address
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
