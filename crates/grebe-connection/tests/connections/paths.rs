//! Paths that block UDP, lose, repeat and change packets.

use super::*;

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

/// Without data there is no other train.
#[test]
fn the_handshake_measures_a_path() {
    let options = ConnectionOptions { measures: true, ..ConnectionOptions::default() };
    let is_measured = |end: &Connection| end.status.progress().phases[Phase::Ramp as usize].entries == 1;
    let attempt = || {
        let is_held = Arc::new(AtomicBool::new(true));
        let passes = move |is_forward: bool, _: usize| {
            // The answer takes a while, and the path spreads the train.
            let is_first = !is_forward && is_held.swap(false, Ordering::Relaxed);
            sleep(if is_first { Duration::from_millis(30) } else { Duration::from_micros(100) });
            true
        };
        let [near, far] = pair_by([&options; 2], |address| vec![pass_udp_on_where(address, passes)]);
        for _ in 0..100 {
            if is_measured(&near) {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        assert!(!is_measured(&far));
        is_measured(&near).then_some([near, far])
    };
    // A machine that is busy for a moment holds a train back, and nothing is measured.
    let ends = (0..30).find_map(|_| attempt()).expect("one train of many is measured");
    exchange(ends, [3_000_000, 1_000_000]);
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
