//! Answers queries for this host's clock.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::HostClock;
use crate::message::{Answer, MESSAGE_BYTES, Question};

/// Answers queries for this host's monotonic clock until it is dropped. Uses one sleeping thread. Answers are
/// as long as questions, and limited to a thousand per second.
///
/// ```
/// # use grebe_clock::{HostClock, Responder};
/// # let clock = HostClock { id: 1, now_ns: || 0 };
/// let responder = Responder::start("127.0.0.1".parse().unwrap(), clock)?;
/// println!("ask at UDP port {}", responder.port());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Responder {
    port: u16,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Starts at any free port of an address of this host.
    ///
    /// # Errors
    /// The system has no socket or thread.
    pub fn start(at: IpAddr, clock: HostClock) -> io::Result<Self> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        let port = socket.local_addr()?.port();
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let answering = move || answer(&socket, clock, &stopped);
        let thread = std::thread::Builder::new().name("clock".to_owned()).spawn(answering)?;
        Ok(Self { port, stops, thread: Some(thread) })
    }

    /// Port for queries.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it did, it would be gone as well.
            let _ = thread.join();
        }
    }
}

fn answer(socket: &UdpSocket, clock: HostClock, stops: &AtomicBool) {
    let mut allowance = Allowance { left: PER_S, since: Instant::now() };
    // One byte more, so that a longer foreign datagram is seen as too long.
    let mut buffer = [0; MESSAGE_BYTES + 1];
    while !stops.load(Ordering::Acquire) {
        let received = socket.recv_from(&mut buffer);
        let received_ns = (clock.now_ns)();
        match received {
            Ok((len, from)) => {
                if let Some(question) = Question::decode(&buffer[..len]).filter(|_| allowance.take()) {
                    reply(socket, clock, from, &question, received_ns);
                }
            }
            Err(error) if is_wait(&error) => {}
            // A peer is gone, or the network is down for now.
            Err(_) => std::thread::sleep(LATER),
        }
    }
}

fn reply(socket: &UdpSocket, clock: HostClock, to: SocketAddr, question: &Question, received_ns: u64) {
    let number = question.number;
    let answer = Answer { number, received_ns, replied_ns: (clock.now_ns)(), clock: clock.id };
    // The peer asks again.
    let _ = socket.send_to(&answer.encode(), to);
}

/// Whether the read timed out, or a signal interrupted it.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Limit of answers per second.
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    fn take(&mut self) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self { left: PER_S, since: Instant::now() };
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

const PER_S: u32 = 1_000;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_question_and_nothing_else_is_answered() {
        static NOW_NS: AtomicU64 = AtomicU64::new(0);
        let clock = HostClock { id: 9, now_ns: || NOW_NS.fetch_add(10, Ordering::Relaxed) };
        let responder = Responder::start(IpAddr::from([127, 0, 0, 1]), clock).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", responder.port())).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let question = Question { number: 7 };
        let own_answer = Answer { number: 1, received_ns: 2, replied_ns: 3, clock: 4 };
        for nonsense in [&b""[..], b"x", &[0; 48], &[0; 4_000], &own_answer.encode()] {
            socket.send(nonsense).unwrap();
        }
        socket.send(&question.encode()).unwrap();
        let mut buffer = [0; 100];
        let len = socket.recv(&mut buffer).unwrap();
        let answer = Answer::decode(&buffer[..len]).expect("the first that is answered is the question");
        assert_eq!((len, answer.number, answer.clock), (MESSAGE_BYTES, 7, 9));
        assert_eq!(
            answer.replied_ns - answer.received_ns,
            10,
            "looked at as the question came, and as the answer left"
        );
    }

    #[test]
    fn the_number_of_answers_is_bounded() {
        let mut allowance = Allowance { left: PER_S, since: Instant::now() };
        let began = Instant::now();
        let given = (0..10 * PER_S).filter(|_| allowance.take()).count();
        assert!(given as u64 <= u64::from(PER_S) * (1 + began.elapsed().as_secs()));
    }
}
