//! How two sockets find each other: the connection and the handshake.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use grebe_ring::Cancel;

use crate::error::Error;
use crate::raw::Connector;
use crate::zmq::Socket;
use crate::zmq::name::PEERS_MAX;
use crate::zmq::wire::{self, COMMAND_BYTES_MAX, Garbage, Head};

/// Opens connections to sockets that fit ours.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) connector: Connector,
    pub(crate) socket: Socket,
    /// What a SUB wants to get.
    pub(crate) key: String,
}

/// Somebody who has said what it is.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// What a SUB has asked for so far.
    pub(crate) topics: Vec<Vec<u8>>,
}

/// Those who connect to a sender, met in a thread of its own: one that does not get on holds up nobody.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) met: Receiver<Peer>,
    cancel: Cancel,
}

/// Why the handshake went wrong.
enum Trouble {
    Io(io::Error),
    Garbage(Garbage),
}

impl Meeting {
    /// The next connection, the handshake done.
    pub(crate) fn open(&self, cancel: &Cancel) -> Result<Peer, Error> {
        let mut stream = self.connector.open(cancel)?;
        let mut shaking = Handshake { stream: &mut stream, until: Instant::now() + HANDSHAKE_WITHIN, cancel };
        let shaken = shaking.run(self);
        match shaken {
            Ok(topics) => Ok(Peer { stream, topics }),
            Err(_) if cancel.is_cancelled() => Err(Error::Cancelled),
            Err(Trouble::Garbage(what)) => Err(Error::Peer { uri: self.connector.uri(), what }),
            Err(Trouble::Io(source)) => {
                Err(Error::Tcp { action: "shake hands with", uri: self.connector.uri(), source })
            }
        }
    }

    /// Meets all who connect, until it is dropped.
    pub(crate) fn peers(self: Arc<Self>) -> Peers {
        let (sender, met) = sync_channel(PEERS_MAX);
        let cancel = Cancel::default();
        let until = cancel.clone();
        std::thread::spawn(move || {
            while !until.is_cancelled() {
                match self.open(&until) {
                    Ok(peer) => {
                        if sender.send(peer).is_err() {
                            return;
                        }
                    }
                    // Somebody who is no reader, or has gone: the next may be one.
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Peers { met, cancel }
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
    /// What a SUB asks for at once.
    fn run(&mut self, ours: &Meeting) -> Result<Vec<Vec<u8>>, Trouble> {
        self.stream.write_all(&wire::greeting())?;
        wire::check_greeting(&self.array()?)?;
        self.stream.write_all(&wire::ready(ours.socket))?;
        let (head, body) = self.frame()?;
        if !head.is_command {
            return Err(Trouble::Garbage("does not get ready"));
        }
        wire::check_ready(&body, ours.socket)?;
        match ours.socket {
            Socket::Sub => {
                let mut wanted = Vec::new();
                Head::put(1 + ours.key.len(), false, &mut wanted);
                wanted.push(1);
                wanted.extend(ours.key.as_bytes());
                self.stream.write_all(&wanted)?;
                Ok(Vec::new())
            }
            // It follows at once: a sender that begins before would begin without its reader.
            Socket::Pub => {
                let (head, body) = self.frame()?;
                Ok(wire::subscription(head.is_command, &body)
                    .filter(|(wants, _)| *wants)
                    .map(|(_, topic)| topic.to_vec())
                    .into_iter()
                    .collect())
            }
            Socket::Pull | Socket::Push => Ok(Vec::new()),
        }
    }

    fn frame(&mut self) -> Result<(Head, Vec<u8>), Trouble> {
        let mut bytes = self.array::<2>()?.to_vec();
        if Head::parse(&bytes)?.is_none() {
            bytes.extend(self.array::<7>()?);
        }
        let head = Head::parse(&bytes)?.ok_or(Trouble::Garbage("sends what is no frame of ZMTP"))?;
        if head.body_bytes > COMMAND_BYTES_MAX {
            return Err(Trouble::Garbage("sends samples before it gets ready"));
        }
        let mut body = vec![0; head.body_bytes as usize];
        self.fill(&mut body)?;
        Ok((head, body))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Trouble> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Trouble> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.cancel.is_cancelled() {
                return Err(Trouble::Io(io::ErrorKind::Interrupted.into()));
            }
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(Trouble::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => filled += read,
                Err(error) if is_nothing_yet(&error) && Instant::now() < self.until => {}
                Err(error) => return Err(Trouble::Io(error)),
            }
        }
        Ok(())
    }
}

/// Of a socket that waits no longer than a moment.
pub(super) fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Garbage> for Trouble {
    fn from(what: Garbage) -> Self {
        Self::Garbage(what)
    }
}

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
