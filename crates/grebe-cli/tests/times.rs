//! When samples were made: from a generator's clock over UDP into a recording, and played from there on another day.

mod support;

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use grebe::flow::{UtcClock, monotonic_ns};
use grebe::frame::Header;
use grebe::stages::{SampleFile, Segment};
use support::{Listener, run, text};

/// Hands datagrams on to a receiver, but for the frames of these sequences.
struct Relay {
    address: String,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Relay {
    fn start(to: String, without: std::ops::Range<u64>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = is_over.clone();
        let thread = thread::spawn(move || {
            let mut datagram = vec![0; 65_536];
            while !ended.load(Ordering::Relaxed) {
                let Ok(bytes) = socket.recv(&mut datagram) else { continue };
                let header = Header::parse(&datagram[..bytes]);
                if !header.is_ok_and(|header| without.contains(&header.sequence)) {
                    // The receiver may be gone once it has the end.
                    let _ = socket.send_to(&datagram[..bytes], &to);
                }
            }
        });
        Self { address, is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn segments(path: &Path) -> Vec<Segment> {
    SampleFile::open(path).unwrap().segments().to_vec()
}

#[test]
fn a_recording_says_when_its_samples_were_made_and_says_so_again_when_it_is_played() {
    const RATE_HZ: u64 = 400_000;
    let folder = tempfile::tempdir().unwrap();
    let (first, again) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-meta"));
    let recorder = Listener::record(&first, &[]);
    let relay = Relay::start(recorder.address.clone(), 10..12);
    let before = SystemTime::now();
    let to = format!("udp://{}", relay.address);
    let sent = run(&[
        "sg",
        "--channels",
        "1",
        "--rate",
        "400k",
        "--samples",
        "30k",
        "--datagram-size",
        "1400",
        "--to",
        &to,
    ]);
    let after = SystemTime::now();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let (status, report, said) = recorder.finish();
    relay.end();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(report["losses"]["network_frames"], 2, "{said}");
    let recorded = segments(&first);
    assert_eq!(recorded.len(), 2);
    let made = recorded[0].recorded_at.unwrap();
    assert!(before <= made && made <= after, "{made:?} is not between {before:?} and {after:?}");
    let knows_its_error = UtcClock::default().renewed(monotonic_ns()).unwrap().error_ns.is_some();
    assert_eq!(recorded[0].recorded_error_ns.is_some(), knows_its_error);
    // Behind the gap, to the microsecond that the file has: a tenth of a sample.
    let missing = recorded[1].first_sample_index - recorded[0].first_sample_index;
    let later = recorded[1].recorded_at.unwrap().duration_since(made).unwrap();
    let expected = Duration::from_nanos(missing * 1_000_000_000 / RATE_HZ);
    assert!(later.abs_diff(expected) <= Duration::from_micros(1), "{later:?} instead of {expected:?}");

    let recorder = Listener::record(&again, &[]);
    let played = run(&["play", first.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "3"]);
    assert!(played.status.success(), "{}", text(&played.stderr));
    let (status, _, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(segments(&again), recorded, "not when they were played");
}
