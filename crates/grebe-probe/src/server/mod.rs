//! The serving side: one socket for datagrams, one for TCP, and the machine that decides.

mod core;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::{Duration, Instant};

use self::core::{Core, Facts, Job};
use crate::endpoint::{Arrival, Endpoint, Outbox, Peer};
use crate::key::{Key, Ticket};
use crate::packet::{Body, Flow, Packet, STREAM_BYTES, Stream};
use crate::{Bounds, Error, Result, tcp};

pub(crate) use self::core::nothing_of;

/// How a server serves.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0: any.
    pub bind: SocketAddr,
    /// What each probe keeps to; what is left open is decided by the address that its client comes from.
    pub bounds: Bounds,
    /// Probes that the ticket is good for.
    pub clients: u32,
    /// It ends after this long, whatever came.
    pub idle_max: Duration,
}

/// A server that waits for its clients.
///
/// ```
/// use std::time::Duration;
/// use grebe_probe::{Bounds, ServeOptions, Server};
///
/// # fn main() -> Result<(), grebe_probe::Error> {
/// let bind = "127.0.0.1:0".parse().unwrap();
/// let bounds = Bounds::default();
/// let server = Server::bind(&ServeOptions { bind, bounds, clients: 1, idle_max: Duration::from_millis(10) })?;
/// println!("grebe probe {}", server.ticket());
/// assert_eq!(server.run(&|| false, &mut |_| {})?, 0, "nobody came");
/// # Ok(())
/// # }
/// ```
pub struct Server {
    endpoint: Endpoint,
    listener: TcpListener,
    core: Core,
    ticket: Ticket,
    idle_max: Duration,
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Serving {
    /// A client began.
    Began(SocketAddr),
    /// It ended.
    Ended,
}

impl Server {
    /// Opens the sockets, UDP and TCP at one port, and makes a key.
    ///
    /// # Errors
    /// [`Error::Datagram`], [`Error::System`] where a socket cannot be opened.
    pub fn bind(options: &ServeOptions) -> Result<Self> {
        let (endpoint, listener) = bind_both(options.bind)?;
        let address = endpoint.local_addr()?;
        let key = Key::random()?;
        let granted = endpoint.granted();
        let facts = Facts {
            epoch_ns: endpoint.clock.epoch_ns,
            buffer_bytes: granted.granted_bytes as u64,
            buffer_asked_bytes: granted.asked_bytes as u64,
        };
        let host = if address.ip().is_unspecified() { own_address(address) } else { address.ip() };
        Ok(Self {
            core: Core::new(key.clone(), options.bounds, facts, options.clients)?,
            ticket: Ticket { host: host.to_string(), port: address.port(), key },
            endpoint,
            listener,
            idle_max: options.idle_max,
        })
    }

    /// What a client needs. Its host is this machine's address as seen from here; behind a translator it is another.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Serves until the ticket is used up, nobody has come for long enough, or `is_interrupted`. Returns the probes served.
    ///
    /// # Errors
    /// [`Error::Datagram`] where the socket fails.
    pub fn run(mut self, is_interrupted: &dyn Fn() -> bool, told: &mut dyn FnMut(Serving)) -> Result<u32> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (asks, asked) = mpsc::sync_channel(CONNECTIONS_MAX);
        let accepting = accept(self.listener.try_clone(), asks, is_over.clone());
        let (mut client, mut idle_since) = (None, Instant::now());
        let mut outcome = Ok(());
        while outcome.is_ok() && !self.core.is_done() && !is_interrupted() {
            outcome = self.turn(&asked, is_interrupted);
            if self.core.client() != client {
                client = self.core.client();
                told(client.map_or(Serving::Ended, Serving::Began));
            }
            if client.is_some() {
                idle_since = Instant::now();
            } else if idle_since.elapsed() > self.idle_max {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        drop(asked);
        let _ = accepting.join();
        outcome.map(|()| self.core.served)
    }

    fn turn(&mut self, asked: &Receiver<FromTcp>, is_interrupted: &dyn Fn() -> bool) -> Result<()> {
        let mut turn = Turn { core: &mut self.core, asked, is_interrupted };
        self.endpoint.pump(PUMP, &mut turn)?;
        let Some((job, client, session, signer)) = turn.core.take_job() else { return Ok(()) };
        match job {
            Job::Send(train) => {
                let sent = self.endpoint.send_train(train, (Some(client), session, &signer), &mut turn)?;
                self.core.train_sent(train.id, sent.count, true);
            }
            Job::Sizes(sizes) => {
                let packet = Packet { session, number: 0, body: Body::Size };
                // Thrice, since the path may lose some.
                for &size in sizes.iter().cycle().take(3 * sizes.len()).filter(|&&size| size > 0) {
                    self.endpoint.send(Some(client), &packet, &signer, size.into())?;
                }
            }
        }
        Ok(())
    }
}

/// The machine, with the TCP connections' questions.
struct Turn<'a> {
    core: &'a mut Core,
    asked: &'a Receiver<FromTcp>,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl Peer for Turn<'_> {
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox) {
        self.core.arrived(arrival, out);
    }

    fn tick(&mut self, now_ns: u64, out: &mut Outbox) {
        while let Ok(message) = self.asked.try_recv() {
            match message {
                FromTcp::Open { from, bytes, answer } => {
                    let _ = answer.send(self.core.open_stream(from, &bytes, now_ns));
                }
                FromTcp::Done { id, moved, flow } => self.core.stream_done(id, moved, flow, now_ns),
            }
        }
        self.core.tick(now_ns, out);
    }

    fn stops(&self) -> bool {
        self.core.stops() || (self.is_interrupted)()
    }
}

/// What the thread of a connection says to the machine.
enum FromTcp {
    Open { from: IpAddr, bytes: [u8; STREAM_BYTES], answer: Sender<Option<(Stream, f64)>> },
    Done { id: u32, moved: u64, flow: Option<Flow> },
}

fn accept(
    listener: std::io::Result<TcpListener>,
    asks: SyncSender<FromTcp>,
    is_over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let Ok(listener) = listener else { return };
        let open = Arc::new(AtomicUsize::new(0));
        while !is_over.load(Ordering::Relaxed) {
            let Ok((socket, from)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            // Beyond this many strangers are turned away unheard.
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                tcp::abandon(&socket);
                continue;
            }
            let (asks, is_over, open) = (asks.clone(), is_over.clone(), open.clone());
            std::thread::spawn(move || {
                connection(socket, from, &asks, &is_over);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    })
}

/// One connection. Nothing is sent before its first bytes have proved that it belongs to the session.
fn connection(mut socket: TcpStream, from: SocketAddr, asks: &SyncSender<FromTcp>, is_over: &AtomicBool) {
    let mut bytes = [0; STREAM_BYTES];
    let is_heard = socket.set_nonblocking(false).is_ok()
        && socket.set_read_timeout(Some(OPENING_PATIENCE)).is_ok()
        && socket.read_exact(&mut bytes).is_ok();
    let (answer, answered) = mpsc::channel();
    let from = from.ip().to_canonical();
    if !is_heard || asks.send(FromTcp::Open { from, bytes, answer }).is_err() {
        return tcp::abandon(&socket);
    }
    let Ok(Some((stream, rate_max_bps))) = answered.recv() else { return tcp::abandon(&socket) };
    let moved = match stream.down {
        true => tcp::send(&mut socket, &stream, rate_max_bps, is_over),
        false => tcp::receive(&mut socket, &stream, OPENING_PATIENCE, is_over),
    };
    let _ = asks.send(FromTcp::Done { id: stream.id, moved: moved.bytes, flow: moved.flow });
}

/// UDP and TCP at the same port, so that one hole in a firewall does.
fn bind_both(address: SocketAddr) -> Result<(Endpoint, TcpListener)> {
    let failed = |source| Error::System { action: "listen for TCP", source };
    let mut tries = 0;
    loop {
        tries += 1;
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        match Endpoint::bind(local, None) {
            Ok(endpoint) => return Ok((endpoint, listener)),
            // Somebody else has that port of UDP; a port that was asked for is not exchanged.
            Err(_) if address.port() == 0 && tries < 16 => {}
            Err(error) => return Err(error),
        }
    }
}

/// This machine's address on the way to the world; nothing is sent to find it.
fn own_address(like: SocketAddr) -> IpAddr {
    let world: SocketAddr = if like.is_ipv4() {
        ([192, 0, 2, 1], 9).into()
    } else {
        ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9).into()
    };
    let ask = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind(SocketAddr::new(like.ip(), 0))?;
        socket.connect(world)?;
        Ok(socket.local_addr()?.ip())
    };
    ask().unwrap_or(if like.is_ipv4() {
        [127, 0, 0, 1].into()
    } else {
        IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1])
    })
}

const PUMP: Duration = Duration::from_millis(5);
const CONNECTIONS_MAX: usize = 8;
const OPENING_PATIENCE: Duration = Duration::from_secs(3);
