//! Connection and handshake of two sockets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use grebe_ring::Cancel;

use crate::bridges::zmq::uri::{PEERS_MAX, Socket, Zmq};
use crate::bridges::zmq::wire::{self, COMMAND_BYTES_MAX, Garbage, Head};
use crate::error::Error;
use crate::open::Notify;
use crate::transport::Connector;

/// Opens connections to sockets that match ours.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) connector: Connector,
    pub(crate) socket: Socket,
    /// Subscription of a SUB.
    pub(crate) key: String,
}

/// A peer after its handshake.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

/// Accepted peers. Each handshake has a thread, so a slow one holds up no other.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) met: Receiver<Peer>,
    cancel: Cancel,
}

/// A failed handshake.
enum HandshakeError {
    Io(io::Error),
    Garbage(Garbage),
}

impl Meeting {
    /// Connects to or listens on the address of the name. Reports the address listened on.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) fn new(zmq: &Zmq, socket: Socket, notify: Notify<'_>) -> Result<Arc<Self>, Error> {
        let connector = zmq.end.connector("zmq", notify)?;
        Ok(Arc::new(Self { connector, socket, key: zmq.key.clone() }))
    }

    /// The next connection after its handshake. A listener takes the first peer that completes it. Waits up to
    /// `within`.
    pub(crate) fn open(self: &Arc<Self>, cancel: &Cancel, within: Option<Duration>) -> Result<Peer, Error> {
        if !self.connector.listens() {
            return self.shake(self.connector.open(cancel, within)?, cancel);
        }
        let (peers, began) = (self.peers(), Instant::now());
        loop {
            match peers.met.recv_timeout(CHECK_EVERY) {
                Ok(peer) => return Ok(peer),
                Err(RecvTimeoutError::Timeout) if !cancel.is_cancelled() => {
                    if let Some(timeout) = within.filter(|&within| began.elapsed() >= within) {
                        return Err(Error::Idle { timeout });
                    }
                }
                Err(_) => return Err(Error::Cancelled),
            }
        }
    }

    /// Accepts peers until it is dropped.
    pub(crate) fn peers(self: &Arc<Self>) -> Peers {
        let (sender, met) = sync_channel(PEERS_MAX);
        let (meeting, cancel, under_way) = (self.clone(), Cancel::default(), Arc::new(()));
        let until = cancel.clone();
        std::thread::spawn(move || {
            while !until.is_cancelled() {
                // Further connections wait in the system's queue.
                let next = if Arc::strong_count(&under_way) > HANDSHAKES_MAX {
                    None
                } else {
                    meeting.connector.open(&until, None).ok()
                };
                let Some(stream) = next else {
                    std::thread::sleep(CHECK_EVERY);
                    continue;
                };
                let (meeting, until, sender, one) =
                    (meeting.clone(), until.clone(), sender.clone(), under_way.clone());
                let shake = move || {
                    let _one = one;
                    // Errors of one peer do not affect others.
                    if let Ok(peer) = meeting.shake(stream, &until) {
                        let _ = sender.send(peer);
                    }
                };
                // Without a thread the connection is closed, and the peer may retry.
                drop(std::thread::Builder::new().spawn(shake));
            }
        });
        Peers { met, cancel }
    }

    fn shake(&self, mut stream: TcpStream, cancel: &Cancel) -> Result<Peer, Error> {
        let mut shaking = Handshake { stream: &mut stream, until: Instant::now() + HANDSHAKE_WITHIN, cancel };
        match shaking.run(self) {
            Ok(()) => Ok(Peer { stream }),
            Err(_) if cancel.is_cancelled() => Err(Error::Cancelled),
            Err(HandshakeError::Garbage(what)) => Err(Error::Peer { uri: self.connector.uri(), what }),
            Err(HandshakeError::Io(source)) => {
                Err(Error::Tcp { action: "shake hands with", uri: self.connector.uri(), source })
            }
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

struct Handshake<'a> {
    stream: &'a mut TcpStream,
    until: Instant,
    cancel: &'a Cancel,
}

impl Handshake<'_> {
    /// The handshake. Subscriptions of a SUB may follow at any time.
    fn run(&mut self, ours: &Meeting) -> Result<(), HandshakeError> {
        self.stream.write_all(&wire::greeting())?;
        wire::check_greeting(&self.array()?)?;
        self.stream.write_all(&wire::ready(ours.socket))?;
        let (head, body) = self.frame()?;
        if !head.is_command {
            return Err(HandshakeError::Garbage("sends no READY"));
        }
        wire::check_ready(&body, ours.socket)?;
        if ours.socket == Socket::Sub {
            let mut wanted = Vec::new();
            Head::put(1 + ours.key.len(), false, &mut wanted);
            wanted.push(1);
            wanted.extend(ours.key.as_bytes());
            self.stream.write_all(&wanted)?;
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<(Head, Vec<u8>), HandshakeError> {
        let mut bytes = self.array::<2>()?.to_vec();
        if Head::parse(&bytes)?.is_none() {
            bytes.extend(self.array::<7>()?);
        }
        let head = Head::parse(&bytes)?.ok_or(HandshakeError::Garbage("sends an invalid ZMTP frame"))?;
        if head.body_bytes > COMMAND_BYTES_MAX {
            return Err(HandshakeError::Garbage("sends samples before READY"));
        }
        let mut body = vec![0; head.body_bytes as usize];
        self.fill(&mut body)?;
        Ok((head, body))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], HandshakeError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), HandshakeError> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.cancel.is_cancelled() {
                return Err(HandshakeError::Io(io::ErrorKind::Interrupted.into()));
            }
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => filled += read,
                Err(error) if is_nothing_yet(&error) && Instant::now() < self.until => {}
                Err(error) => return Err(HandshakeError::Io(error)),
            }
        }
        Ok(())
    }
}

/// For a socket with a short timeout.
pub(super) fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Garbage> for HandshakeError {
    fn from(what: Garbage) -> Self {
        Self::Garbage(what)
    }
}

const CHECK_EVERY: Duration = Duration::from_millis(20);
const HANDSHAKES_MAX: usize = 64;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
