//! Server: one socket for datagrams, and TCP connections at the same port.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grebe_datagram::{bind_with_tcp, listen_anywhere, outgoing_addresses};
use grebe_packet::{Cancel, Key, Purpose, Ticket};

use crate::error::{Error, Result};
use crate::io::endpoint::Endpoint;
use crate::io::tcp::{Acceptor, FromConnection};
use crate::proto::handler::{Arrival, Outbox, PacketHandler};
use crate::proto::limits::{Bounds, Limits};
use crate::proto::packet::{Body, Packet};
use crate::proto::server::session::SendTask;
use crate::proto::server::{ServerCore, ServerFacts};

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Address to listen at; port 0: any. `None`: any port of every address of both families.
    pub bind: Option<SocketAddr>,
    /// Limits per probe. Open ones get a default by the client's address.
    pub bounds: Bounds,
    /// Number of probes that the ticket allows.
    pub clients: u32,
    /// Maximum time without a client, after which the server ends.
    pub idle_max: Duration,
    /// Stops the server.
    pub cancel: Cancel,
}

/// A server for the probes of one ticket.
///
/// ```
/// use std::time::Duration;
/// use grebe_probe::{ServeOptions, Server};
///
/// # fn main() -> Result<(), grebe_probe::Error> {
/// let bind = Some("127.0.0.1:0".parse().unwrap());
/// let server = Server::bind(&ServeOptions { bind, idle_max: Duration::from_millis(10), ..ServeOptions::default() })?;
/// println!("grebe probe {}", *server.ticket().word());
/// assert_eq!(server.run(|_| {})?, 0, "nobody came");
/// # Ok(())
/// # }
/// ```
pub struct Server {
    endpoint: Endpoint,
    listener: TcpListener,
    core: ServerCore,
    ticket: Ticket,
    idle_max: Duration,
    cancel: Cancel,
}

/// Event of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeEvent {
    /// A client began.
    Began(SocketAddr),
    /// A client ended.
    Ended,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            bind: None,
            bounds: Bounds::default(),
            clients: 1,
            idle_max: Duration::from_secs(600),
            cancel: Cancel::default(),
        }
    }
}

impl Server {
    /// Opens the sockets, UDP and TCP at one port, and makes a ticket.
    ///
    /// # Errors
    /// [`Error::Datagram`], [`Error::System`] if a socket cannot be opened.
    pub fn bind(options: &ServeOptions) -> Result<Self> {
        let open = |at| Endpoint::bind(at, None);
        let (endpoint, address, listener) = match options.bind {
            Some(address) => bind_with_tcp(address, open, Endpoint::local_addr)?,
            None => listen_anywhere(0, |any| bind_with_tcp(any, open, Endpoint::local_addr))?,
        };
        let failed = |source| Error::System { action: "listen for TCP", source };
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let key = Key::random()?;
        let granted = endpoint.granted();
        let facts = ServerFacts {
            epoch_ns: endpoint.clock.epoch_ns,
            buffer_bytes: granted.granted_bytes as u64,
            buffer_asked_bytes: granted.asked_bytes as u64,
        };
        let own = outgoing_addresses(address.ip()).into_iter();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticket = Ticket {
            purpose: Purpose::Probe,
            addresses: own.map(|ip| SocketAddr::new(ip, address.port()).into()).collect(),
            relay: None,
            expires_unix_s: now.saturating_add(lifetime_max(options)).as_secs(),
            key: key.clone(),
        };
        Ok(Self {
            core: ServerCore::new(key, options.bounds, facts, options.clients)?,
            ticket,
            endpoint,
            listener,
            idle_max: options.idle_max,
            cancel: options.cancel.clone(),
        })
    }

    /// Ticket for the client. It names this host's own address, which differs from the public one behind a
    /// NAT.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Serves until the ticket is used up, the idle time is over, or it is cancelled. Returns the number of
    /// probes.
    ///
    /// # Errors
    /// [`Error::Datagram`] if the socket fails.
    pub fn run(mut self, mut on_event: impl FnMut(ServeEvent)) -> Result<u32> {
        let acceptor = Acceptor::start(self.listener.try_clone());
        let (mut client, mut idle_since) = (None, Instant::now());
        while !self.core.is_done() && !self.cancel.is_cancelled() {
            self.turn(&acceptor)?;
            if self.core.client() != client {
                client = self.core.client();
                on_event(client.map_or(ServeEvent::Ended, ServeEvent::Began));
            }
            if client.is_some() {
                idle_since = Instant::now();
            } else if idle_since.elapsed() > self.idle_max {
                break;
            }
        }
        Ok(self.core.served)
    }

    /// Reads and answers packets, and sends the data that a client requested.
    fn turn(&mut self, acceptor: &Acceptor) -> Result<()> {
        let mut handler = ServerHandler { core: &mut self.core, acceptor, cancel: &self.cancel };
        self.endpoint.pump(PUMP, &mut handler)?;
        let Some(session) = handler.core.session() else { return Ok(()) };
        let Some((task, signer)) = session.take_task() else { return Ok(()) };
        let (client, id) = (Some(session.peer), session.welcome.session);
        match task {
            SendTask::Train(train) => {
                let sent = self.endpoint.send_train(train, (client, id, &signer), &mut handler)?;
                if let Some(session) = self.core.session() {
                    session.train_sent(train.id, sent);
                }
            }
            SendTask::Sizes(sizes) => {
                let packet = Packet { session: id, number: 0, body: Body::Size };
                // Three times, because the path may lose some.
                for &size in sizes.iter().cycle().take(3 * sizes.len()).filter(|&&size| size > 0) {
                    self.endpoint.send(client, &packet, &signer, size.into())?;
                }
            }
        }
        Ok(())
    }
}

/// The core, with the requests of TCP connections.
struct ServerHandler<'a> {
    core: &'a mut ServerCore,
    acceptor: &'a Acceptor,
    cancel: &'a Cancel,
}

impl PacketHandler for ServerHandler<'_> {
    fn arrived(&mut self, arrival: Arrival<'_>, out: &mut Outbox) {
        self.core.arrived(arrival, out);
    }

    fn tick(&mut self, now_ns: u64, out: &mut Outbox) {
        while let Some(message) = self.acceptor.next() {
            let session = self.core.session();
            match message {
                FromConnection::Open { from, bytes, answer } => {
                    let granted = session.and_then(|session| session.open_tcp(from, &bytes, now_ns));
                    // The connection may be gone.
                    let _ = answer.send(granted);
                }
                FromConnection::Done { id, moved } => {
                    if let Some(session) = session {
                        session.tcp_done(id, moved.bytes, moved.arrivals, now_ns);
                    }
                }
            }
        }
        self.core.tick(now_ns, out);
    }

    fn should_stop(&self) -> bool {
        self.core.should_stop() || self.cancel.is_cancelled()
    }
}

/// Maximum lifetime of a server: it waits for each of its clients, and serves it.
fn lifetime_max(options: &ServeOptions) -> Duration {
    let session_max = options.bounds.duration_max.unwrap_or(Limits::DURATION_MAX);
    options.idle_max.saturating_add(session_max).saturating_mul(options.clients)
}

const PUMP: Duration = Duration::from_millis(5);
