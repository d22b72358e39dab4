//! A reader that requests datagrams from a producer, and checks that they arrive.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_zenoh::{Answer, Found, Lab, Nonce, Request, StreamName};

use crate::bridges::udp::UdpSource;
use crate::bridges::zenoh::routes::WITHIN;
use crate::error::Error;
use crate::open::Transport;
use crate::transport::HostPort;

/// Datagrams of a stream, which the reader requests until this is dropped.
#[derive(Debug)]
pub(super) struct Asking {
    shared: Arc<Shared>,
    /// Whether to take another route if this one is bad.
    is_choosy: bool,
    thread: Option<JoinHandle<()>>,
}

/// State of the requested datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatagramState {
    /// They arrive.
    Arriving,
    /// The producer has stopped. Another request may restart it.
    Ended,
    /// Too many are lost, or none arrived before the producer stopped: this route is bad.
    Lost,
}

#[derive(Debug, Default)]
struct Shared {
    /// Frames received.
    frames: AtomicU64,
    has_ended: AtomicBool,
    are_lost: AtomicBool,
    stops: Mutex<bool>,
    stopped: Condvar,
}

impl Asking {
    /// Requests datagrams and listens. `None` if none arrive. `is_near`: they must not cross a router.
    ///
    /// # Errors
    /// The session is closed.
    pub(super) fn open(
        lab: &Lab,
        from: &Found,
        transport: &Transport,
        is_near: bool,
    ) -> Result<Option<(UdpSource, Self)>, Error> {
        let options = transport.socket_options(&HostPort::new("", 0))?;
        let every: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let source = every.into_iter().find_map(|ip| UdpSource::bind((ip, 0).into(), &options).ok());
        let Some(source) = source else { return Ok(None) };
        let (Ok(here), Ok(socket)) = (source.local_addr(), source.try_clone_socket()) else {
            return Ok(None);
        };
        let own = lab.addresses().into_iter().filter(|ip| ip.is_ipv4() || here.is_ipv6());
        let at: Vec<_> =
            own.map(|ip| SocketAddr::new(ip, here.port())).take(Request::ADDRESSES_MAX).collect();
        let producer = Producer { lab: lab.clone(), session: from.session.clone(), name: from.name.clone() };
        if at.is_empty()
            || producer.ask(&Request::Ask { at, is_near }, ANSWERS_WITHIN)? != Some(Answer::Asked)
        {
            return Ok(None);
        }
        let until = Instant::now() + WITHIN;
        // The producer sends no more than these. A foreign sender must not prolong the request.
        let probes = std::iter::from_fn(|| next_probe(&socket, until)).take(Request::ADDRESSES_MAX);
        for nonce in probes {
            let answer = producer.ask(&Request::Send { nonce }, ANSWERS_WITHIN)?;
            if !matches!(answer, Some(Answer::Sends { .. })) {
                continue;
            }
            if !hears_frames(&socket, WITHIN) {
                producer.ask(&Request::End { nonce }, ENDS_WITHIN)?;
                return Ok(None);
            }
            let shared = Arc::<Shared>::default();
            let state = shared.clone();
            let going_on = move || state.go_on(&producer, nonce, is_near);
            let thread = std::thread::Builder::new().name("asks for udp".to_owned()).spawn(going_on);
            // Without a thread to repeat the request, the datagrams end soon.
            let asking = |thread| Self { shared, is_choosy: is_near, thread: Some(thread) };
            return Ok(thread.ok().map(|thread| (source, asking(thread))));
        }
        Ok(None)
    }

    /// State of the datagrams, after `frames` frames have been sent on.
    pub(super) fn state(&self, frames: u64) -> DatagramState {
        let Shared { frames: came, has_ended, are_lost, .. } = &*self.shared;
        came.store(frames, Ordering::Relaxed);
        if has_ended.load(Ordering::Relaxed) {
            // Frames that no datagram carries, or none on this path; descriptions may have arrived.
            if frames == 0 && self.is_choosy { DatagramState::Lost } else { DatagramState::Ended }
        } else if are_lost.load(Ordering::Relaxed) {
            DatagramState::Lost
        } else {
            DatagramState::Arriving
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        *self.shared.stops.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic. If it did, it has ended as well.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Repeats the request. `is_choosy`: takes another route if this one loses too much.
    fn go_on(&self, producer: &Producer, nonce: Nonce, is_choosy: bool) {
        let mut share = Share::default();
        while !self.stops_within(REPEAT_EVERY) {
            match producer.ask(&Request::Send { nonce }, REPEAT_EVERY) {
                Ok(Some(Answer::Sends { frames })) => {
                    let is_bad = share.is_bad(frames, self.frames.load(Ordering::Relaxed), Instant::now());
                    self.are_lost.fetch_or(is_bad && is_choosy, Ordering::Relaxed);
                }
                Ok(Some(_)) => {
                    self.has_ended.store(true, Ordering::Relaxed);
                    return;
                }
                // The producer is gone or unreachable: the watcher of names finds out.
                Ok(None) => {}
                Err(_) => return,
            }
        }
        // Without this request the producer stops by itself.
        let _ = producer.ask(&Request::End { nonce }, ENDS_WITHIN);
    }

    fn stops_within(&self, timeout: Duration) -> bool {
        let stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.stopped.wait_timeout_while(stops, timeout, |stops| !*stops);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The producer to send requests to.
#[derive(Debug)]
struct Producer {
    lab: Lab,
    session: String,
    name: StreamName,
}

impl Producer {
    fn ask(&self, request: &Request, timeout: Duration) -> Result<Option<Answer>, Error> {
        Ok(self.lab.request(&self.session, &self.name, request, timeout)?)
    }
}

/// Share of the sent frames that arrive.
#[derive(Debug, Default)]
struct Share {
    /// Counts of sent and received frames, and their time.
    at: Option<(u64, u64, Instant)>,
    bad: u32,
}

impl Share {
    /// Whether more than a twentieth was lost for long, rather than in a short outage.
    fn is_bad(&mut self, sent: u64, came: u64, now: Instant) -> bool {
        let (sent_before, came_before, at) = *self.at.get_or_insert((sent, came, now));
        if now.saturating_duration_since(at) >= JUDGED_EVERY {
            let (sent_since, came_since) =
                (sent.saturating_sub(sent_before), came.saturating_sub(came_before));
            let is_bad = came_since.saturating_mul(20) < sent_since.saturating_mul(19);
            self.bad = if is_bad { self.bad + 1 } else { 0 };
            self.at = Some((sent, came, now));
        }
        self.bad >= JUDGED_BAD
    }
}

/// The next probe. Skips other datagrams until then.
fn next_probe(socket: &UdpSocket, until: Instant) -> Option<Nonce> {
    let mut datagram = [0; Nonce::PROBE_BYTES + 1];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        grebe_datagram::wait_readable(socket, left).ok()?;
        match socket.recv(&mut datagram) {
            Ok(bytes) => {
                if let Some(nonce) = Nonce::of_probe(&datagram[..bytes]) {
                    return Some(nonce);
                }
                if left.is_zero() {
                    return None;
                }
            }
            Err(_) if left.is_zero() => return None,
            Err(_) => {}
        }
    }
}

/// Whether a datagram other than a probe comes within `timeout`. It stays for the stream.
fn hears_frames(socket: &UdpSocket, timeout: Duration) -> bool {
    let until = Instant::now() + timeout;
    // Windows peeks only at datagrams that fit.
    let mut datagram = vec![0; 1 << 16];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if grebe_datagram::wait_readable(socket, left).is_err() {
            return false;
        }
        match socket.peek(&mut datagram) {
            Ok(bytes) if Nonce::of_probe(&datagram[..bytes]).is_none() => return true,
            _ if left.is_zero() => return false,
            // For another address of this host.
            Ok(_) => drop(socket.recv(&mut datagram)),
            Err(_) => {}
        }
    }
}

const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Three times within the timeout of the producer.
const REPEAT_EVERY: Duration = Duration::from_millis(500);
const ENDS_WITHIN: Duration = Duration::from_millis(200);
const JUDGED_EVERY: Duration = Duration::from_secs(2);
/// Consecutive bad judgements.
const JUDGED_BAD: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        there.connect(here.local_addr().unwrap()).unwrap();
        here.set_nonblocking(true).unwrap();
        (here, there)
    }

    #[test]
    fn probes_are_taken_and_what_follows_is_left_for_the_stream() {
        let (here, there) = pair();
        let nonce = Nonce::random();
        for datagram in [&b"x"[..], &nonce.probe(), &Nonce::random().probe(), b"GFH2 and so on"] {
            there.send(datagram).unwrap();
        }
        let later = Instant::now() + Duration::from_secs(30);
        assert_eq!(next_probe(&here, later), Some(nonce));
        assert!(hears_frames(&here, Duration::from_secs(30)));
        let mut datagram = [0; 64];
        let bytes = here.recv(&mut datagram).unwrap();
        assert_eq!(&datagram[..bytes], b"GFH2 and so on");
    }

    #[test]
    fn a_probe_is_not_a_frame() {
        let (here, there) = pair();
        assert_eq!(next_probe(&here, Instant::now()), None);
        there.send(&Nonce::random().probe()).unwrap();
        assert!(!hears_frames(&here, Duration::ZERO), "a probe is not a frame");
    }

    #[test]
    fn foreign_datagrams_do_not_delay_a_reader() {
        let (here, there) = pair();
        let probe = Nonce::random();
        for datagram in [&b"x"[..], b"x", &probe.probe()] {
            there.send(datagram).unwrap();
        }
        assert_eq!(next_probe(&here, Instant::now()), None, "the time is over");
        assert_eq!(next_probe(&here, Instant::now() + Duration::from_secs(30)), Some(probe));
        let probes = [Nonce::random(), Nonce::random()];
        for probe in &probes {
            there.send(&probe.probe()).unwrap();
        }
        assert!(!hears_frames(&here, Duration::ZERO));
        assert_eq!(next_probe(&here, Instant::now()), Some(probes[0]), "no more were read");
    }

    #[test]
    fn a_way_that_ended_before_anything_came_is_not_tried_again_where_there_is_another() {
        let asking = |is_choosy| Asking { shared: Arc::default(), is_choosy, thread: None };
        for (is_choosy, frames, state) in [
            (true, 0, DatagramState::Lost),
            (true, 1, DatagramState::Ended),
            (false, 0, DatagramState::Ended),
        ] {
            let asking = asking(is_choosy);
            assert_eq!(asking.state(frames), DatagramState::Arriving);
            asking.shared.has_ended.store(true, Ordering::Relaxed);
            assert_eq!(asking.state(frames), state);
        }
    }

    #[test]
    fn only_what_is_lost_for_long_is_a_reason_to_go() {
        let began = Instant::now();
        let mut share = Share::default();
        let mut judge =
            |round: u64, sent, came| share.is_bad(sent, came, began + JUDGED_EVERY * round as u32);
        assert!(!judge(0, 100, 50), "what was before is not known");
        assert!(!judge(1, 1_100, 1_040));
        assert!(!judge(2, 2_100, 1_040) && !judge(3, 3_100, 1_040), "a link was down");
        assert!(!judge(4, 4_100, 2_000), "and works again");
        assert!(!judge(5, 5_100, 2_800) && !judge(6, 6_100, 3_600));
        assert!(judge(7, 7_100, 4_400), "a fifth is lost all the time");
        let mut idle = Share::default();
        assert!((0..20).all(|round| !idle.is_bad(7, 7, began + JUDGED_EVERY * round)), "nothing is sent");
    }
}
