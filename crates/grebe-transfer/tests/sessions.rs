//! Both ends of a transfer in this process: sockets, disks and threads as two hosts would have them.

mod detours;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::scope;
use std::time::Duration;

use self::detours::{address_of, pass_tcp_on, pass_udp_on};
use grebe_transfer::{
    Error, Notice, Offered, ReceiveListener, ReceiveOptions, ReceiveProgress, ReceiveReport, Result,
    SendListener, SendOptions, SendReport, Source, Ticket, Verdict, receive, send,
};

/// What a test notes, it notes nowhere in the user's own directories.
fn receives() -> ReceiveOptions {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state");
    ReceiveOptions { state: Some(state), ..ReceiveOptions::default() }
}

fn listener() -> ReceiveListener {
    ReceiveListener::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(60)).unwrap()
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn source(paths: &[PathBuf]) -> Arc<Source> {
    Arc::new(Source::open(paths).unwrap())
}

/// Both ends in this process, by the ticket of the receiver.
fn transfer(
    paths: &[PathBuf],
    into: &Path,
    sends: &SendOptions,
    receives: &ReceiveOptions,
) -> (Result<SendReport>, Result<ReceiveReport>) {
    transfer_watched(paths, into, sends, receives, |_| {})
}

/// The same, with what is to be done at every progress of the receiver.
fn transfer_watched(
    paths: &[PathBuf],
    into: &Path,
    sends: &SendOptions,
    receives: &ReceiveOptions,
    on_received: impl FnMut(&ReceiveProgress) + Send,
) -> (Result<SendReport>, Result<ReceiveReport>) {
    let listener = listener();
    let ticket = listener.ticket.clone();
    scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(into, receives, on_received));
        let sent = send(&source(paths), &ticket, sends, |_| {});
        (sent, receiving.join().unwrap())
    })
}

/// So slow that what is done at a part of 5 MB is done long before the end.
fn slowly() -> SendOptions {
    SendOptions { limit_bits_per_s: Some(16e6), ..SendOptions::default() }
}

#[test]
fn a_file_arrives_whole_under_its_name() {
    for bytes in [0, 1, 1_163, 3_000_000] {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("sample.bin");
        fs::write(&file, contents(bytes)).unwrap();
        let (sent, received) = transfer(&[file], into.path(), &SendOptions::default(), &receives());
        assert_eq!(sent.unwrap().file_bytes, bytes as u64);
        let path = into.path().join("sample.bin");
        assert_eq!(received.unwrap().paths, std::slice::from_ref(&path));
        assert!(fs::read(&path).unwrap() == contents(bytes), "{bytes} bytes");
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
fn the_sender_may_make_the_ticket_and_directories_come_as_they_are() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(from.path().join("d/empty")).unwrap();
    for number in 0..300 {
        fs::write(from.path().join(format!("d/{number}")), contents(number * 17)).unwrap();
    }
    let listener = SendListener::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(60)).unwrap();
    let ticket = listener.ticket.clone();
    let files = source(&[from.path().join("d")]);
    scope(|scope| {
        let sending = scope.spawn(|| listener.send(&files, &SendOptions::default(), |_| {}));
        receive(&ticket, into.path(), &receives(), |_| {}).unwrap();
        sending.join().unwrap().unwrap();
    });
    assert!(into.path().join("d/empty").is_dir());
    for number in 0..300 {
        assert_eq!(fs::read(into.path().join(format!("d/{number}"))).unwrap(), contents(number * 17));
    }
}

#[test]
fn what_was_stopped_goes_on_where_it_was() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("sample.bin");
    fs::write(&file, contents(5_000_000)).unwrap();
    let (stopped, paths) = (receives(), [file]);
    let (sent, received) = transfer_watched(&paths, into.path(), &slowly(), &stopped, |progress| {
        if progress.received_bytes > 1_000_000 {
            stopped.cancel.cancel();
        }
    });
    assert!(matches!(sent, Err(Error::Ended { .. })), "{sent:?}");
    assert!(matches!(received, Err(Error::Cancelled)), "{received:?}");
    assert!(!into.path().join("sample.bin").exists());
    let (sent, received) = transfer(&paths, into.path(), &slowly(), &receives());
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!(received.resumed_bytes > 0, "it went on");
    assert_eq!(sent.resumed_bytes, received.resumed_bytes);
    assert!(fs::read(into.path().join("sample.bin")).unwrap() == contents(5_000_000));
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("precious.bin");
    fs::write(&file, contents(10_000)).unwrap();
    fs::write(into.path().join("precious.bin"), b"precious").unwrap();
    let (sent, received) = transfer(&[file], into.path(), &SendOptions::default(), &receives());
    assert!(matches!(sent, Err(Error::Ended { .. })), "{sent:?}");
    assert!(matches!(received, Err(Error::Exists { .. })), "{received:?}");
    assert_eq!(fs::read(into.path().join("precious.bin")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_file_that_is_there_costs_no_bytes_whatever_its_time() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("sample.bin");
    fs::write(&file, contents(8_000_000)).unwrap();
    let there = into.path().join("sample.bin");
    // The receiver has seconds to say what is there before all has left.
    let once = || transfer(std::slice::from_ref(&file), into.path(), &slowly(), &receives());
    assert!(once().0.unwrap().counters.wire_bytes > 8_000_000);
    for is_touched in [false, true] {
        if is_touched {
            let touched = fs::File::options().write(true).open(&there).unwrap();
            touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
        let (sent, received) = once();
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert!(sent.counters.wire_bytes < 8_000_000, "{:?}", sent.counters);
        assert!(sent.resumed_bytes > 6_000_000, "{}", sent.resumed_bytes);
        assert!(!sent.is_partial && received.left_out.is_empty());
        assert_eq!(received.paths, std::slice::from_ref(&there));
        assert!(fs::read(&there).unwrap() == contents(8_000_000));
    }
    // The last byte is another one, in a group of its own beside the statuses; then one in the middle.
    for at in [7_999_999, 4_000_000] {
        let mut other = contents(8_000_000);
        other[at] ^= 1;
        fs::write(&there, &other).unwrap();
        let (sent, received) = once();
        assert!(matches!(sent, Err(Error::Ended { verdict: Verdict::Exists })), "{sent:?}");
        assert!(matches!(received, Err(Error::Exists { .. })), "{received:?}");
        assert!(fs::read(&there).unwrap() == other, "it is not replaced");
    }
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn what_a_person_declines_does_not_come() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("line\nend\u{1b}[2J");
    fs::write(&file, contents(10_000)).unwrap();
    let accept: grebe_transfer::Accept = Arc::new(|offered: &Offered| {
        assert_eq!(
            (offered.names.clone(), offered.files, offered.bytes),
            (vec!["line\\nend\\u{1b}[2J".to_owned()], 1, 10_000)
        );
        false
    });
    let receives = ReceiveOptions { accept: Some(accept), asks: true, ..receives() };
    let (sent, received) = transfer(&[file], into.path(), &SendOptions::default(), &receives);
    assert!(matches!(sent, Err(Error::Ended { verdict: Verdict::Refused })), "{sent:?}");
    assert!(matches!(received, Err(Error::Declined)), "{received:?}");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_named_and_the_others_come() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| from.path().join("d").join(name);
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(at("changes"), contents(6_000_000)).unwrap();
    fs::write(at("good"), contents(700_000)).unwrap();
    let mut is_changed = false;
    let paths = [from.path().join("d")];
    let (sent, received) = transfer_watched(&paths, into.path(), &slowly(), &receives(), |progress| {
        if progress.received_bytes > 1_000_000 && !is_changed {
            let mut file = fs::OpenOptions::new().write(true).open(at("changes")).unwrap();
            file.write_all(&vec![9; 6_000_000]).unwrap();
            is_changed = true;
        }
    });
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!(sent.is_partial);
    assert_eq!(sent.left_out[0].path, at("changes"));
    assert_eq!(received.left_out[0].path, into.path().join("d/changes"));
    assert!(fs::read(into.path().join("d/good")).unwrap() == contents(700_000));
    assert!(!into.path().join("d/changes").exists(), "torn, and never verified");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
}

#[cfg(unix)]
#[test]
fn a_change_of_mode_or_links_costs_no_progress() {
    use std::os::unix::fs::PermissionsExt;
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("sample.bin");
    fs::write(&file, contents(5_000_000)).unwrap();
    let (stopped, paths) = (receives(), [file.clone()]);
    let (_, received) = transfer_watched(&paths, into.path(), &slowly(), &stopped, |progress| {
        if progress.received_bytes > 1_500_000 {
            stopped.cancel.cancel();
        }
    });
    assert!(matches!(received, Err(Error::Cancelled)));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(&file, from.path().join("link")).unwrap();
    let (sent, received) = transfer(&[file], into.path(), &slowly(), &receives());
    let sent = sent.unwrap();
    assert!(sent.resumed_bytes > 1_000_000, "{}", sent.resumed_bytes);
    assert!(received.unwrap().left_out.is_empty());
    let sample = into.path().join("sample.bin");
    assert!(fs::read(&sample).unwrap() == contents(5_000_000));
    assert_eq!(fs::metadata(sample).unwrap().permissions().mode() & 0o700, 0o600);
}

#[test]
fn a_sender_that_stops_says_so() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(2_000_000)).unwrap();
    let sends = SendOptions { limit_bits_per_s: Some(10e6), ..SendOptions::default() };
    let (sent, received) = transfer_watched(&[file], into.path(), &sends, &receives(), |progress| {
        if progress.received_bytes > 100_000 {
            sends.cancel.cancel();
        }
    });
    assert!(matches!(sent, Err(Error::Cancelled)), "{sent:?}");
    assert!(matches!(received, Err(Error::Ended { .. })), "{received:?}");
}

#[test]
fn a_listener_at_any_address_names_those_of_this_host() {
    let any = "0.0.0.0:0".parse().unwrap();
    let lifetime = Duration::from_secs(60);
    let receiver = ReceiveListener::bind(any, lifetime).unwrap();
    let sender = SendListener::bind(any, lifetime).unwrap();
    for ticket in [&receiver.ticket, &sender.ticket] {
        assert!(!ticket.addresses.is_empty());
        for address in &ticket.addresses {
            let found = address.to_socket_addrs().unwrap().next().unwrap();
            assert!(!found.ip().is_unspecified() && found.port() != 0, "{found}");
        }
    }
}

#[test]
fn nobody_there_is_an_error_that_says_whom_was_asked() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ticket: Ticket = listener().ticket.clone();
    let options = SendOptions { answer_within: Duration::from_millis(300), ..SendOptions::default() };
    let error = send(&source(&[file.path().into()]), &ticket, &options, |_| {}).unwrap_err();
    assert!(error.to_string().contains(&ticket.addresses[0].to_string()), "{error}");
}

#[test]
fn the_first_question_is_sent_twice_at_once_since_one_may_be_lost() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut ticket = listener().ticket;
    ticket.addresses = vec![nobody.local_addr().unwrap().into()];
    let options = SendOptions { answer_within: Duration::from_millis(120), ..SendOptions::default() };
    send(&source(&[file.path().into()]), &ticket, &options, |_| {}).unwrap_err();
    nobody.set_nonblocking(true).unwrap();
    let mut datagrams = Vec::new();
    let mut bytes = [0; 2_000];
    while let Ok(length) = nobody.recv(&mut bytes) {
        datagrams.push(bytes[..length].to_vec());
    }
    assert!(datagrams.len() >= 2 && datagrams[0].len() == 1_200, "{}", datagrams.len());
    assert_eq!(datagrams[0], datagrams[1]);
}

#[test]
fn where_no_udp_passes_tcp_does() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(3_000_000)).unwrap();
    let mut listener = listener();
    let only_tcp = pass_tcp_on(address_of(&listener.ticket));
    listener.ticket.addresses = vec![only_tcp.into()];
    let ticket = listener.ticket.clone();
    scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
        send(&source(&[file]), &ticket, &SendOptions::default(), |_| {}).unwrap();
        receiving.join().unwrap().unwrap();
    });
    assert!(fs::read(into.path().join("f")).unwrap() == contents(3_000_000));
}

/// Passes connections on, and takes only so many bytes at a time.
fn pass_tcp_on_slowly(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut near, far) = (stream.unwrap(), TcpStream::connect(to).unwrap());
            let (mut near_too, mut far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let mut far = far;
            std::thread::spawn(move || io::copy(&mut far_too, &mut near_too));
            std::thread::spawn(move || {
                let mut bytes = vec![0; 256 << 10];
                while let Ok(read @ 1..) = near.read(&mut bytes) {
                    // As behind a loss: nothing comes for a while, and then all at once.
                    std::thread::sleep(Duration::from_millis(30));
                    if far.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn over_tcp_nothing_is_sent_twice_however_slow_it_is() {
    for receiver_waits in [true, false] {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("f");
        fs::write(&file, contents(12_000_000)).unwrap();
        let files = source(&[file]);
        let sends = SendOptions::default();
        let any = "127.0.0.1:0".parse().unwrap();
        let sent = scope(|scope| {
            if receiver_waits {
                let mut listener = listener();
                listener.ticket.addresses = vec![pass_tcp_on_slowly(address_of(&listener.ticket)).into()];
                let ticket = listener.ticket.clone();
                let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
                let sent = send(&files, &ticket, &sends, |_| {}).unwrap();
                receiving.join().unwrap().unwrap();
                sent
            } else {
                let mut listener = SendListener::bind(any, Duration::from_secs(60)).unwrap();
                listener.ticket.addresses = vec![pass_tcp_on(address_of(&listener.ticket)).into()];
                let ticket = listener.ticket.clone();
                let sending = scope.spawn(|| listener.send(&files, &sends, |_| {}));
                receive(&ticket, into.path(), &receives(), |_| {}).unwrap();
                sending.join().unwrap().unwrap()
            }
        });
        assert!(fs::read(into.path().join("f")).unwrap() == contents(12_000_000));
        assert_eq!(
            (sent.counters.lost, sent.counters.wire_bytes > 12_000_000),
            (0, true),
            "{:?}",
            sent.counters
        );
        assert!(sent.counters.wire_bytes < 12_200_000, "{:?}", sent.counters);
    }
}

#[test]
fn a_ticket_that_is_over_is_not_answered() {
    let listener = ReceiveListener::bind("127.0.0.1:0".parse().unwrap(), Duration::ZERO).unwrap();
    let into = tempfile::tempdir().unwrap();
    let received = listener.receive(into.path(), &receives(), |_| {});
    assert!(matches!(received, Err(Error::Expired)));
}

/// Cuts the path after so long and, if it is to come back, makes it whole again after so long.
fn cut(is_cut: &AtomicBool, after: Duration, back_after: Option<Duration>) {
    std::thread::sleep(after);
    is_cut.store(true, Ordering::Relaxed);
    if let Some(back_after) = back_after {
        std::thread::sleep(back_after);
        is_cut.store(false, Ordering::Relaxed);
    }
}

#[test]
fn udp_that_stops_in_the_middle_goes_on_by_tcp_whoever_has_the_ticket() {
    for receiver_waits in [true, false] {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("f");
        fs::write(&file, contents(4_000_000)).unwrap();
        let files = source(&[file]);
        let is_cut = Arc::new(AtomicBool::new(false));
        let slowly = SendOptions { limit_bits_per_s: Some(20e6), ..SendOptions::default() };
        let any = "127.0.0.1:0".parse().unwrap();
        let way = |address: SocketAddr| {
            // UDP by a path that can be cut, TCP directly: the ticket's second address takes only TCP.
            vec![pass_udp_on(address, is_cut.clone()).into(), pass_tcp_on(address).into()]
        };
        scope(|scope| {
            if receiver_waits {
                let mut listener = listener();
                listener.ticket.addresses = way(address_of(&listener.ticket));
                let ticket = listener.ticket.clone();
                let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
                scope.spawn(|| cut(&is_cut, Duration::from_millis(700), None));
                send(&files, &ticket, &slowly, |_| {}).unwrap();
                receiving.join().unwrap().unwrap();
            } else {
                let mut listener = SendListener::bind(any, Duration::from_secs(60)).unwrap();
                listener.ticket.addresses = way(address_of(&listener.ticket));
                let ticket = listener.ticket.clone();
                let sending = scope.spawn(|| listener.send(&files, &slowly, |_| {}));
                scope.spawn(|| cut(&is_cut, Duration::from_millis(700), None));
                receive(&ticket, into.path(), &receives(), |_| {}).unwrap();
                sending.join().unwrap().unwrap();
            }
        });
        assert!(fs::read(into.path().join("f")).unwrap() == contents(4_000_000), "{receiver_waits}");
    }
}

#[test]
fn a_peer_that_is_silent_for_longer_than_is_tried_is_gone() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(4_000_000)).unwrap();
    for (keep_trying_s, is_whole) in [(1, false), (60, true)] {
        let is_cut = Arc::new(AtomicBool::new(false));
        let mut listener = listener();
        listener.ticket.addresses = vec![pass_udp_on(address_of(&listener.ticket), is_cut.clone()).into()];
        let ticket = listener.ticket.clone();
        let keep_trying = Duration::from_secs(keep_trying_s);
        let sends = SendOptions { limit_bits_per_s: Some(20e6), keep_trying, ..SendOptions::default() };
        let receives = ReceiveOptions { keep_trying, ..receives() };
        let (sent, received) = scope(|scope| {
            let (begun, has_begun) = std::sync::mpsc::channel();
            let (into, receives, is_cut) = (into.path(), &receives, &is_cut);
            let receiving = scope.spawn(move || {
                listener.receive(into, receives, |progress| {
                    if progress.received_bytes > 500_000 {
                        let _ = begun.send(());
                    }
                })
            });
            scope.spawn(move || {
                let _ = has_begun.recv();
                cut(is_cut, Duration::ZERO, Some(Duration::from_secs(4)));
            });
            let sent = send(&source(std::slice::from_ref(&file)), &ticket, &sends, |_| {});
            (sent, receiving.join().unwrap())
        });
        assert_eq!((sent.is_ok(), received.is_ok()), (is_whole, is_whole), "{sent:?} {received:?}");
        if !is_whole {
            assert!(matches!(sent, Err(Error::Silent { waited }) if waited == keep_trying), "{sent:?}");
        }
    }
    assert!(fs::read(into.path().join("f")).unwrap() == contents(4_000_000));
}

#[test]
fn who_comes_second_with_a_ticket_is_told_at_once() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(3_000_000)).unwrap();
    let files = source(&[file]);
    let listener = listener();
    let ticket = listener.ticket.clone();
    let slowly = SendOptions { limit_bits_per_s: Some(20e6), ..SendOptions::default() };
    scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
        let (begun, has_begun) = std::sync::mpsc::channel();
        let first = scope.spawn(|| {
            send(&files, &ticket, &slowly, move |_| {
                let _ = begun.send(());
            })
        });
        has_begun.recv().unwrap();
        let second = send(&files, &ticket, &SendOptions::default(), |_| {});
        assert!(matches!(second, Err(Error::Ended { verdict: Verdict::Taken })), "{second:?}");
        first.join().unwrap().unwrap();
        receiving.join().unwrap().unwrap();
    });
}

#[test]
fn addresses_are_tried_side_by_side_whatever_their_family() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(100_000)).unwrap();
    let mut listener = listener();
    let alive = listener.ticket.addresses[0].clone();
    // Nobody listens at the first two, and the best one is of another family.
    let dead: [SocketAddr; 2] = ["[::1]:9".parse().unwrap(), "127.0.0.1:9".parse().unwrap()];
    listener.ticket.addresses = dead.map(Into::into).into_iter().chain([alive]).collect();
    let ticket = listener.ticket.clone();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = notices.clone();
    let notify: grebe_transfer::Notify = Arc::new(move |notice: Notice| heard.lock().unwrap().push(notice));
    let options = SendOptions { notify, ..SendOptions::default() };
    scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
        send(&source(&[file]), &ticket, &options, |_| {}).unwrap();
        receiving.join().unwrap().unwrap();
    });
    assert_eq!(*notices.lock().unwrap(), [], "by UDP");
}

#[test]
fn idle_tcp_connections_do_not_block_the_way_back() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("f");
    fs::write(&file, contents(300_000)).unwrap();
    let mut listener = listener();
    let address = address_of(&listener.ticket);
    let idle: Vec<_> = (0..12).map(|_| TcpStream::connect(address).unwrap()).collect();
    listener.ticket.addresses = vec![pass_tcp_on(address).into()];
    let ticket = listener.ticket.clone();
    scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(into.path(), &receives(), |_| {}));
        send(&source(&[file]), &ticket, &SendOptions::default(), |_| {}).unwrap();
        receiving.join().unwrap().unwrap();
    });
    drop(idle);
}
