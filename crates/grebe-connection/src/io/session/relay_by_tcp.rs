//! Relay over TCP, for networks where UDP to the relay fails. A loopback address stands for the relay.
//!
//! ```text
//!  session's socket <== datagrams over loopback ==> this thread <== length-prefixed, over TCP ==> relay
//! ```
//!
//! The session sees one more address of the relay. A datagram that the TCP connection does not accept is
//! lost, as on any path, so the session's congestion control finds the rate.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_datagram::{wait_either_readable, wait_readable};
use socket2::SockRef;

use super::tcp::{self, PacketStream};

/// Stand-in for a relay until it is dropped.
#[derive(Debug)]
pub(super) struct RelayByTcp {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RelayByTcp {
    /// Starts a stand-in for the relay at these addresses. It accepts datagrams only from the session whose
    /// socket is bound to `local`.
    pub(super) fn start(relays: Vec<SocketAddr>, local: SocketAddr) -> io::Result<Self> {
        let is_v6_only = local.is_ipv6() && !local.ip().is_unspecified();
        let own = if is_v6_only { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let socket = UdpSocket::bind(SocketAddr::new(own, 0))?;
        socket.set_nonblocking(true)?;
        // A burst of the session exceeds the usual system default. A smaller buffer is not an error.
        let _ = SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
        let ip = if local.ip().is_unspecified() { own } else { local.ip() };
        let session = SocketAddr::new(ip, local.port());
        let (address, is_over) = (socket.local_addr()?, Arc::new(AtomicBool::new(false)));
        let carrier = Carrier { socket, session, relays, is_over: is_over.clone() };
        let thread = std::thread::Builder::new().name("grebe-relay-tcp".into());
        Ok(Self { address, is_over, thread: Some(thread.spawn(move || carrier.run())?) })
    }

    /// Address to send to instead of the relay's.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RelayByTcp {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

struct Carrier {
    socket: UdpSocket,
    session: SocketAddr,
    relays: Vec<SocketAddr>,
    is_over: Arc<AtomicBool>,
}

impl Carrier {
    fn run(self) {
        let mut datagram = vec![0; u16::MAX.into()];
        while !self.is_over() {
            let began = Instant::now();
            if let Some(stream) = self.dial() {
                self.carry(stream, &mut datagram);
            }
            // Limits the rate of attempts at a relay that closes each connection at once.
            while began.elapsed() < DIALLED_EVERY && !self.is_over() {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn dial(&self) -> Option<PacketStream> {
        let dialled = tcp::dial(&self.relays, DIALLED_FOR);
        while !self.is_over() {
            match dialled.recv_timeout(LOOK_EVERY) {
                Ok(stream) => return Some(stream),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Carries datagrams until the connection closes or nobody needs it.
    fn carry(&self, mut stream: PacketStream, datagram: &mut [u8]) {
        while !stream.is_over() {
            // Datagrams sent before the end still go out.
            let is_over = self.is_over();
            while stream.has_room() {
                let Ok((length, from)) = self.socket.recv_from(datagram) else { break };
                if from.port() == self.session.port() {
                    stream.send(&datagram[..length]);
                }
            }
            stream.flush();
            if is_over {
                return stream.finish();
            }
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = stream.receive() else { break };
                // A datagram that the session does not accept is lost, as on any path.
                let _ = self.socket.send_to(packet, self.session);
            }
            let (connection, time) = stream.waits(LOOK_EVERY);
            // A failed wait only shortens the turn.
            let _ = if stream.has_room() {
                wait_either_readable(&self.socket, connection, time)
            } else {
                wait_readable(connection, time)
            };
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

const BUFFER_BYTES: usize = 4 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const DIALLED_FOR: Duration = Duration::from_secs(10);
const DIALLED_EVERY: Duration = Duration::from_secs(1);

/// Maximum packets from the relay before the session gets its turn.
const PACKETS_A_TURN: usize = 256;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn datagrams_of_the_session_alone_go_to_the_relay_and_back_and_the_last_ones_too() {
        let relay = TcpListener::bind("127.0.0.1:0").unwrap();
        let session = UdpSocket::bind("127.0.0.1:0").unwrap();
        session.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (local, relays) = (session.local_addr().unwrap(), vec![relay.local_addr().unwrap()]);
        let standing = RelayByTcp::start(relays, local).unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"not the session's", standing.address()).unwrap();
        session.send_to(b"question", standing.address()).unwrap();
        let (connection, _) = relay.accept().unwrap();
        let mut far = tcp::tests::stream(connection);
        assert_eq!(tcp::tests::next(&mut far), b"question");
        for length in [1, 400, 1_400, 60_000] {
            far.send(&vec![length as u8; length]);
            far.flush();
            let mut datagram = [0; 65_536];
            let (came, from) = session.recv_from(&mut datagram).unwrap();
            assert_eq!((came, from), (length, standing.address()));
            assert!(datagram[..came].iter().all(|byte| *byte == length as u8));
        }
        session.send_to(b"leaves", standing.address()).unwrap();
        drop(standing);
        assert_eq!(tcp::tests::next(&mut far), b"leaves");
    }

    #[test]
    fn a_relay_that_is_not_there_keeps_nobody_from_ending() {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let session = UdpSocket::bind("127.0.0.1:0").unwrap();
        let standing = RelayByTcp::start(vec![nobody], session.local_addr().unwrap()).unwrap();
        session.send_to(b"question", standing.address()).unwrap();
        drop(standing);
    }
}
