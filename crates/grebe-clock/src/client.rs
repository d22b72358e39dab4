//! Queries the clock of another host.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::HostClock;
use crate::estimator::{Echo, Estimator, Relation};
use crate::message::{Answer, MESSAGE_BYTES, Question};
use crate::responder::is_wait;

/// Queries one host until it is dropped: ten times at once for a first estimate, then once per second. Uses
/// one sleeping thread.
///
/// ```
/// use std::sync::LazyLock;
/// use std::time::Instant;
///
/// use grebe_clock::{ClockClient, HostClock, Responder};
///
/// static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// let ours = HostClock { id: 1, now_ns: || BEGAN.elapsed().as_nanos() as u64 };
/// let theirs = HostClock { id: 2, now_ns: || 37_000_000 + BEGAN.elapsed().as_nanos() as u64 };
///
/// let responder = Responder::start("127.0.0.1".parse().unwrap(), theirs)?;
/// let client = ClockClient::start(([127, 0, 0, 1], responder.port()).into(), ours)?;
/// let relation = loop {
///     match client.relation_to(2) {
///         Some(relation) => break relation,
///         None => std::thread::yield_now(),
///     }
/// };
/// assert!(relation.offset_ns.abs_diff(37_000_000) <= relation.error_ns);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ClockClient {
    peer: SocketAddr,
    published: Arc<Published>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Published {
    /// Version of the relation, which readers can check with one load.
    version: AtomicU64,
    relation: Mutex<Option<(u64, Relation)>>,
}

impl ClockClient {
    /// Starts querying this address.
    ///
    /// # Errors
    /// The system has no socket, route or thread.
    pub fn start(peer: SocketAddr, ours: HostClock) -> io::Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        // Receives only answers of this peer.
        socket.connect(peer)?;
        let (published, stops) = (Arc::new(Published::default()), Arc::new(AtomicBool::new(false)));
        let mut poller = Poller {
            socket,
            ours,
            estimator: Estimator::default(),
            clock: None,
            published: Arc::clone(&published),
            stops: Arc::clone(&stops),
        };
        let thread = std::thread::Builder::new().name("clock".to_owned()).spawn(move || poller.run())?;
        Ok(Self { peer, published, stops, thread: Some(thread) })
    }

    /// Address of the other host.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Version of the relation; increases with each update, 0 before the first.
    #[inline]
    pub fn version(&self) -> u64 {
        self.published.version.load(Ordering::Acquire)
    }

    /// Relation of that host's clock to ours, if it is the clock with this [`id`](HostClock::id). Updated
    /// only when it changes significantly.
    pub fn relation_to(&self, id: u64) -> Option<Relation> {
        let published = self.published.relation.lock().unwrap_or_else(PoisonError::into_inner);
        published.filter(|(of, _)| *of == id).map(|(_, relation)| relation)
    }
}

impl Drop for ClockClient {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        // The thread may be waiting for an answer, and ends by itself.
        drop(self.thread.take());
    }
}

struct Poller {
    socket: UdpSocket,
    ours: HostClock,
    estimator: Estimator,
    clock: Option<u64>,
    published: Arc<Published>,
    stops: Arc<AtomicBool>,
}

impl Poller {
    fn run(&mut self) {
        let mut requests = 0;
        while !self.stops.load(Ordering::Acquire) {
            let due = Instant::now() + if requests < FIRST_REQUESTS { FIRST_INTERVAL } else { INTERVAL };
            requests += 1;
            self.request(due);
            while !self.stops.load(Ordering::Acquire) && Instant::now() < due {
                std::thread::sleep(due.saturating_duration_since(Instant::now()).min(STOP_POLL));
            }
        }
    }

    /// Sends a request and waits for its answer until `due`.
    fn request(&mut self, due: Instant) {
        let Ok(number) = getrandom::u64() else { return };
        let sent_ns = (self.ours.now_ns)();
        if self.socket.send(&Question { number }.encode()).is_err() {
            return;
        }
        let mut buffer = [0; MESSAGE_BYTES + 1];
        while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if self.stops.load(Ordering::Acquire)
                || self.socket.set_read_timeout(Some(left.min(STOP_POLL))).is_err()
            {
                return;
            }
            let received = self.socket.recv(&mut buffer);
            let returned_ns = (self.ours.now_ns)();
            match received {
                Ok(len) => {
                    let answer = Answer::decode(&buffer[..len]).filter(|answer| answer.number == number);
                    if let Some(answer) = answer {
                        return self.take(sent_ns, &answer, returned_ns);
                    }
                }
                Err(error) if is_wait(&error) => {}
                // The host does not answer at present.
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, sent_ns: u64, answer: &Answer, returned_ns: u64) {
        if self.clock != Some(answer.clock) {
            self.clock = Some(answer.clock);
            self.estimator.clear();
        }
        let Answer { received_ns, replied_ns, clock, .. } = *answer;
        self.estimator.add(Echo { sent_ns, received_ns, replied_ns, returned_ns });
        let Some(relation) = self.estimator.at(returned_ns) else { return };
        let mut published = self.published.relation.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news =
            published.is_none_or(|(of, published)| of != clock || published.is_outdated_by(&relation));
        if is_news {
            *published = Some((clock, relation));
            self.published.version.fetch_add(1, Ordering::Release);
        }
    }
}

const FIRST_REQUESTS: u32 = 10;
const FIRST_INTERVAL: Duration = Duration::from_millis(30);
const INTERVAL: Duration = Duration::from_secs(1);
const STOP_POLL: Duration = Duration::from_millis(200);
