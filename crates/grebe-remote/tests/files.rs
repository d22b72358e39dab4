//! Tests both ends of a transfer in this process, with sockets, disks and threads as on two hosts.

#[path = "../../grebe-connection/tests/detours/mod.rs"]
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
use grebe_connection::{
    Cancel, ConnectionListener, ConnectionOptions, Error as Broken, Notice, Purpose, connect,
};
use grebe_remote::{Error, Offering, Reception, Result, TransferProgress, TransferReport, receive, send};

fn listener() -> ConnectionListener {
    let any = "127.0.0.1:0".parse().unwrap();
    ConnectionListener::bind(any, Purpose::Transfer, Duration::from_secs(60)).unwrap()
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn offering(path: &Path) -> Offering {
    Offering::look(&[path.to_path_buf()], &[], &Cancel::default()).unwrap()
}

fn reception(into: &Path) -> Reception {
    Reception { directory: into.to_path_buf(), overwrite: false, accept: None, sender_waits: false }
}

/// Which end made the ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Receiver,
    Sender,
}

/// A file between two ends. The waiting end is reached by these addresses.
struct Transfer {
    from: tempfile::TempDir,
    into: tempfile::TempDir,
    bytes: usize,
}

impl Transfer {
    fn of(bytes: usize) -> Self {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("f"), contents(bytes)).unwrap();
        Self { from, into, bytes }
    }

    fn file(&self) -> PathBuf {
        self.from.path().join("f")
    }

    fn run(
        &self,
        waits: Waits,
        way: impl FnOnce(SocketAddr) -> Vec<SocketAddr>,
        sends: &ConnectionOptions,
        receives: &ConnectionOptions,
        on_received: impl FnMut(&TransferProgress) + Send,
    ) -> [Result<TransferReport>; 2] {
        let listener = listener();
        let mut ticket = listener.ticket.clone();
        ticket.addresses = way(address_of(&ticket)).into_iter().map(Into::into).collect();
        let (offering, reception) = (offering(&self.file()), reception(self.into.path()));
        let mut listener = Some(listener);
        let (for_sender, for_receiver) = match waits {
            Waits::Sender => (listener.take(), None),
            Waits::Receiver => (None, listener.take()),
        };
        let meet = |waiting: Option<ConnectionListener>, options: &ConnectionOptions| match waiting {
            Some(listener) => listener.accept(options),
            None => connect(&ticket, options),
        };
        scope(|scope| {
            let receiving = scope
                .spawn(|| receive(meet(for_receiver, receives)?, &reception, &receives.cancel, on_received));
            let sent = meet(for_sender, sends)
                .map_err(Error::from)
                .and_then(|it| send(it, &offering, &sends.cancel, |_| {}));
            [sent, receiving.join().unwrap()]
        })
    }

    fn assert_whole(&self) {
        assert!(fs::read(self.into.path().join("f")).unwrap() == contents(self.bytes));
    }
}

fn slowly(limit_bits_per_s: f64) -> ConnectionOptions {
    ConnectionOptions { limit_bits_per_s: Some(limit_bits_per_s), ..ConnectionOptions::default() }
}

#[test]
fn a_stopped_transfer_says_so_and_resumes() {
    let transfer = Transfer::of(6_000_000);
    let sends = slowly(20e6);
    let [sent, received] = transfer.run(
        Waits::Receiver,
        |at| vec![at],
        &sends,
        &ConnectionOptions::default(),
        |progress| {
            if progress.bytes > 3_000_000 {
                sends.cancel.cancel();
            }
        },
    );
    assert!(
        matches!(sent, Err(Error::Tree(grebe_tree::Error::Cancelled) | Error::Connection(Broken::Cancelled))),
        "{sent:?}"
    );
    assert!(
        matches!(received, Err(Error::Connection(Broken::Ended { .. }) | Error::Tree(_))),
        "{received:?}"
    );
    assert!(!transfer.into.path().join("f").exists());
    let options = ConnectionOptions::default();
    let [sent, received] = transfer.run(Waits::Sender, |at| vec![at], &options, &options, |_| {});
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!(sent.resumed_bytes >= 1 << 20 && sent.resumed_bytes == received.resumed_bytes, "{sent:?}");
    assert_eq!((sent.file_bytes, received.files), (6_000_000, 1));
    transfer.assert_whole();
}

#[test]
fn a_listener_at_any_address_names_those_of_this_host() {
    let any = "0.0.0.0:0".parse().unwrap();
    let listener = ConnectionListener::bind(any, Purpose::Transfer, Duration::from_secs(60)).unwrap();
    assert!(!listener.ticket.addresses.is_empty());
    for address in &listener.ticket.addresses {
        let found = address.to_socket_addrs().unwrap().next().unwrap();
        assert!(!found.ip().is_unspecified() && found.port() != 0, "{found}");
    }
}

#[test]
fn a_missing_producer_is_an_error_that_names_the_search() {
    let ticket = listener().ticket;
    let options =
        ConnectionOptions { answer_within: Duration::from_millis(300), ..ConnectionOptions::default() };
    let error = connect(&ticket, &options).unwrap_err();
    assert!(error.to_string().contains(&ticket.addresses[0].to_string()), "{error}");
}

#[test]
fn the_first_question_is_sent_twice_at_once_since_one_may_be_lost() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut ticket = listener().ticket;
    ticket.addresses = vec![nobody.local_addr().unwrap().into()];
    let options =
        ConnectionOptions { answer_within: Duration::from_millis(120), ..ConnectionOptions::default() };
    connect(&ticket, &options).unwrap_err();
    nobody.set_nonblocking(true).unwrap();
    let mut datagrams = Vec::new();
    let mut bytes = [0; 2_000];
    while let Ok(length) = nobody.recv(&mut bytes) {
        datagrams.push(bytes[..length].to_vec());
    }
    assert!(datagrams.len() >= 2 && datagrams[0].len() == 1_200, "{}", datagrams.len());
    assert_eq!(datagrams[0], datagrams[1]);
}

/// Forwards connections at a limited rate.
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
                    // Like after a loss: nothing for a while, then everything at once.
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
    let options = ConnectionOptions::default();
    for waits in [Waits::Receiver, Waits::Sender] {
        let transfer = Transfer::of(12_000_000);
        let way = |at| match waits {
            Waits::Receiver => vec![pass_tcp_on_slowly(at)],
            Waits::Sender => vec![pass_tcp_on(at)],
        };
        let [sent, received] = transfer.run(waits, way, &options, &options, |_| {});
        received.unwrap();
        transfer.assert_whole();
        let counters = sent.unwrap().connection.counters;
        assert_eq!((counters.lost, counters.wire_bytes > 12_000_000), (0, true), "{counters:?}");
        assert!(counters.wire_bytes < 12_200_000, "{counters:?}");
    }
}

#[test]
fn a_peer_that_is_silent_for_longer_than_is_tried_is_gone() {
    let transfer = Transfer::of(4_000_000);
    for (keep_trying_s, is_whole) in [(1, false), (60, true)] {
        let is_cut = Arc::new(AtomicBool::new(false));
        let keep_trying = Duration::from_secs(keep_trying_s);
        let sends = ConnectionOptions { keep_trying, ..slowly(20e6) };
        let receives = ConnectionOptions { keep_trying, ..ConnectionOptions::default() };
        let (begun, has_begun) = std::sync::mpsc::channel();
        let [sent, received] = scope(|scope| {
            let cut = is_cut.clone();
            scope.spawn(move || {
                if has_begun.recv().is_ok() {
                    cut.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_secs(4));
                    cut.store(false, Ordering::Relaxed);
                }
            });
            transfer.run(
                Waits::Receiver,
                |at| vec![pass_udp_on(at, is_cut.clone())],
                &sends,
                &receives,
                move |progress| {
                    if progress.bytes > 500_000 {
                        let _ = begun.send(());
                    }
                },
            )
        });
        assert_eq!((sent.is_ok(), received.is_ok()), (is_whole, is_whole), "{sent:?} {received:?}");
        if !is_whole {
            assert!(
                matches!(sent, Err(Error::Connection(Broken::Silent { waited })) if waited == keep_trying),
                "{sent:?}"
            );
        }
    }
    transfer.assert_whole();
}

#[test]
fn addresses_are_tried_side_by_side_whatever_their_family() {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = notices.clone();
    let notify: grebe_connection::Notify = Arc::new(move |notice: Notice| heard.lock().unwrap().push(notice));
    let sends = ConnectionOptions { notify, ..ConnectionOptions::default() };
    // Nobody listens at the first two addresses, and the best one is of another family.
    let way = |alive| vec!["[::1]:9".parse().unwrap(), "127.0.0.1:9".parse().unwrap(), alive];
    let transfer = Transfer::of(100_000);
    let [sent, received] = transfer.run(Waits::Receiver, way, &sends, &ConnectionOptions::default(), |_| {});
    sent.unwrap();
    received.unwrap();
    assert_eq!(*notices.lock().unwrap(), [], "by UDP");
}

#[test]
fn idle_tcp_connections_do_not_block_the_way_back() {
    let mut idle = Vec::new();
    let way = |address| {
        idle.extend((0..12).map(|_| TcpStream::connect(address).unwrap()));
        vec![pass_tcp_on(address)]
    };
    let (transfer, options) = (Transfer::of(300_000), ConnectionOptions::default());
    let [sent, received] = transfer.run(Waits::Receiver, way, &options, &options, |_| {});
    sent.unwrap();
    received.unwrap();
    transfer.assert_whole();
}
