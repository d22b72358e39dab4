//! The TCP relay: the same datagrams over TCP, for paths that let no UDP pass.
//!
//! ```text
//!  asking socket <--UDP on loopback--> [ relay ] ~~~TCP: length, datagram, ...~~~ [ relay ] <--UDP on loopback--> listening socket
//! ```
//!
//! A relay knows no keys: a peer that connects to it can do what it could do over UDP, and no more.

use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Accepts TCP connections and passes their datagrams on to a UDP socket of this host, until dropped.
#[derive(Debug)]
pub(super) struct TcpRelay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TcpRelay {
    /// Listens at `listener` for what is to reach the UDP socket at `udp`. `None` where that is not possible: most transfers do
    /// not need it.
    pub(super) fn open(listener: SocketAddr, udp: SocketAddr) -> Option<Self> {
        let listener = TcpListener::bind(listener).ok()?;
        listener.set_nonblocking(true).ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = Builder::new()
            .name("grebe-tcp".into())
            .spawn(move || {
                let mut open: Vec<Connection> = Vec::new();
                while !stopped.load(Ordering::Acquire) {
                    let Ok((stream, _)) = listener.accept() else {
                        std::thread::sleep(ACCEPT_EVERY);
                        continue;
                    };
                    open.retain(|connection| !connection.is_over.load(Ordering::Acquire));
                    if open.len() >= CONNECTIONS_MAX {
                        // The oldest of those that were never answered gives way: it is no peer's.
                        let silent = open
                            .iter()
                            .position(|connection| !connection.is_answered.load(Ordering::Acquire));
                        let Some(at) = silent else { continue };
                        let _ = open.remove(at).stream.shutdown(Shutdown::Both);
                    }
                    // A connection that cannot be served is closed, which its other end sees.
                    open.extend(relay_to(stream, reachable(udp)));
                }
            })
            .ok()?;
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for TcpRelay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Connects to all of the addresses at once, takes the first that answers, and returns the UDP address on this host that leads there.
pub(super) fn dial(addresses: &[SocketAddr], within: Duration) -> Option<SocketAddr> {
    let (tell, connected) = channel();
    for &address in addresses {
        let tell = tell.clone();
        std::thread::spawn(move || {
            if let Ok(stream) = TcpStream::connect_timeout(&address, within) {
                let _ = tell.send(stream);
            }
        });
    }
    drop(tell);
    let stream = connected.recv().ok()?;
    let socket = UdpSocket::bind(loopback(stream.peer_addr().ok()?)).ok()?;
    let here = socket.local_addr().ok()?;
    // The first datagram shows which socket of this host the relay serves.
    let first = socket.try_clone().ok()?;
    Builder::new()
        .name("grebe-tcp".into())
        .spawn(move || {
            let mut datagram = [0; DATAGRAM_BYTES_MAX];
            if let Ok((_, from)) = first.peek_from(&mut datagram)
                && first.connect(from).is_ok()
            {
                let _ = relay(stream, first);
            }
        })
        .ok()?;
    Some(here)
}

/// A connection that is served.
struct Connection {
    stream: TcpStream,
    /// The socket that it leads to has answered, as it does only to who has the ticket.
    is_answered: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

fn relay_to(stream: TcpStream, udp: SocketAddr) -> io::Result<Connection> {
    stream.set_nonblocking(false)?;
    let socket = UdpSocket::bind(SocketAddr::new(unspecified(udp.ip()), 0))?;
    socket.connect(udp)?;
    relay(stream, socket)
}

/// Two threads that end with the connection.
fn relay(stream: TcpStream, socket: UdpSocket) -> io::Result<Connection> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    let (mut out, from) = (stream.try_clone()?, socket.try_clone()?);
    let connection =
        Connection { stream: stream.try_clone()?, is_answered: Arc::default(), is_over: Arc::default() };
    let (is_answered, is_over) = (connection.is_answered.clone(), connection.is_over.clone());
    std::thread::spawn(move || {
        let _ = to_stream(&from, &mut out, &is_answered);
        let _ = out.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let _ = to_socket(&mut BufReader::with_capacity(2 * DATAGRAM_BYTES_MAX, stream), &socket);
        is_over.store(true, Ordering::Release);
    });
    Ok(connection)
}

fn to_stream(socket: &UdpSocket, stream: &mut TcpStream, is_answered: &AtomicBool) -> io::Result<()> {
    let mut bytes = vec![0; 2 + DATAGRAM_BYTES_MAX];
    loop {
        let length = match socket.recv(&mut bytes[2..]) {
            Ok(length) => length,
            // Nobody listens there any more, or not yet: the next datagram may reach somebody.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        is_answered.store(true, Ordering::Release);
        bytes[..2].copy_from_slice(&(length as u16).to_be_bytes());
        stream.write_all(&bytes[..2 + length])?;
    }
}

fn to_socket(stream: &mut impl Read, socket: &UdpSocket) -> io::Result<()> {
    let mut bytes = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let datagram = &mut bytes[..usize::from(u16::from_be_bytes(length))];
        stream.read_exact(datagram)?;
        // A datagram for which there is no room is lost, as on any path.
        let _ = socket.send(datagram);
    }
}

/// The address by which this host reaches a socket that may be bound to all addresses.
fn reachable(bound: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() { SocketAddr::new(loopback(bound).ip(), bound.port()) } else { bound }
}

fn loopback(like: SocketAddr) -> SocketAddr {
    if like.is_ipv4() { (Ipv4Addr::LOCALHOST, 0).into() } else { (Ipv6Addr::LOCALHOST, 0).into() }
}

fn unspecified(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

const DATAGRAM_BYTES_MAX: usize = u16::MAX as usize;

/// One is enough for the peer; the others are for strangers that connect and stay.
const CONNECTIONS_MAX: usize = 8;

const ACCEPT_EVERY: Duration = Duration::from_millis(20);
const SILENCE_MAX: Duration = Duration::from_secs(90);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_pass_both_ways_with_their_boundaries() {
        let end = UdpSocket::bind("127.0.0.1:0").unwrap();
        end.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let _relay = TcpRelay::open(port, end.local_addr().unwrap()).unwrap();
        let here = dial(&[port], Duration::from_secs(5)).unwrap();
        let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut bytes = vec![0; 65_536];
        for length in [1, 0, 1_200, 60_000] {
            asking.send_to(&vec![7; length], here).unwrap();
            let (received, from) = end.recv_from(&mut bytes).unwrap();
            assert_eq!(received, length);
            end.send_to(&vec![8; length / 2], from).unwrap();
            assert_eq!(asking.recv_from(&mut bytes).unwrap().0, length / 2);
        }
    }
}
