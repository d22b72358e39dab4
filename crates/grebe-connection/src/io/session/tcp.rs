//! TCP for paths that block UDP: the same packets on one connection, each after its length.
//!
//! TCP retransmits, paces and pushes back. Packets wait at the sender until the connection accepts them, so
//! none is lost.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Meaning of a packet that came over TCP.
pub(super) enum TcpPacket {
    Nothing,
    /// Question; the connection carries the answer back.
    Question(Vec<u8>),
    /// Proof that the connection leads to the peer.
    Peer,
}

/// A connection that carries packets.
#[derive(Debug)]
pub(super) struct PacketStream {
    stream: TcpStream,
    /// Received data. `taken..filled` is not consumed yet.
    inbox: Vec<u8>,
    taken: usize,
    filled: usize,
    /// Data that the connection has not accepted yet, from `sent` on.
    outbox: Vec<u8>,
    sent: usize,
    /// Whether this end has answered a question. Only a holder of the ticket gets an answer.
    is_answered: bool,
    is_over: bool,
}

impl PacketStream {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            inbox: Vec::new(),
            taken: 0,
            filled: 0,
            outbox: Vec::new(),
            sent: 0,
            is_answered: false,
            is_over: false,
        })
    }

    /// Address of the other end.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// Returns the next packet that has arrived.
    pub(super) fn receive(&mut self) -> Option<&mut [u8]> {
        loop {
            let there = &self.inbox[self.taken..self.filled];
            if let Some((length, rest)) = there.split_first_chunk() {
                let length = usize::from(u16::from_be_bytes(*length));
                if rest.len() >= length {
                    let from = self.taken + LENGTH_BYTES;
                    self.taken = from + length;
                    return Some(&mut self.inbox[from..from + length]);
                }
            }
            if !self.read_more() {
                return None;
            }
        }
    }

    /// Queues a packet until the connection accepts it.
    pub(super) fn send(&mut self, packet: &[u8]) {
        // A packet is shorter than 64 KiB.
        self.outbox.extend_from_slice(&(packet.len() as u16).to_be_bytes());
        self.outbox.extend_from_slice(packet);
        if self.outbox.len() - self.sent >= OUTBOX_BYTES {
            self.flush();
        }
    }

    /// Writes as much as the connection accepts.
    pub(super) fn flush(&mut self) {
        while self.sent < self.outbox.len() && !self.is_over {
            match self.stream.write(&self.outbox[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.is_over = true,
            }
        }
        if self.sent == self.outbox.len() || self.is_over {
            self.outbox.clear();
            self.sent = 0;
        }
    }

    /// Whether the connection has accepted everything, so that more may follow.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < OUTBOX_BYTES && !self.is_over
    }

    /// Stops receiving and sending.
    fn give_up(&mut self) {
        (self.is_over, self.filled) = (true, self.taken);
    }

    /// Whether the other end, or a middlebox, has closed the connection.
    pub(super) fn is_over(&self) -> bool {
        self.is_over && self.taken == self.filled
    }

    /// Socket and maximum time for a thread that also waits for something else.
    pub(super) fn waits(&self, time: Duration) -> (&TcpStream, Duration) {
        (&self.stream, if self.outbox.is_empty() { time } else { time.min(FLUSH_EVERY) })
    }

    /// Briefly flushes the rest. Reads meanwhile, because unread data would reset the connection before the
    /// other end has everything.
    pub(super) fn finish(mut self) {
        for _ in 0..FINISH_TURNS {
            while self.receive().is_some() {}
            self.flush();
            if self.outbox.is_empty() {
                return;
            }
            std::thread::sleep(FLUSH_EVERY);
        }
    }

    /// Reads available data. `false`: there was none.
    fn read_more(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        self.inbox.copy_within(self.taken..self.filled, 0);
        (self.taken, self.filled) = (0, self.filled - self.taken);
        self.inbox.resize(INBOX_BYTES, 0);
        match self.stream.read(&mut self.inbox[self.filled..]) {
            Ok(0) => self.is_over = true,
            Ok(read) => {
                self.filled += read;
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return self.read_more(),
            Err(_) => self.is_over = true,
        }
        if self.is_over {
            // An incomplete packet is useless.
            self.taken = self.filled;
        }
        false
    }
}

/// TCP port of the maker of a ticket, with the connections that have not proven yet to be the peer.
#[derive(Debug)]
pub(super) struct TcpDoor {
    listener: TcpListener,
    waiting: Vec<PacketStream>,
}

impl TcpDoor {
    /// Uses a listener if there is one, since most transfers do not need it.
    pub(super) fn over(listener: io::Result<TcpListener>) -> Option<Self> {
        let listener = listener.ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, waiting: Vec::new() })
    }

    /// Accepts connections and passes on their packets. Returns the connection that proves to be the peer's.
    pub(super) fn poll(&mut self, mut take: impl FnMut(&mut [u8]) -> TcpPacket) -> Option<PacketStream> {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.waiting.len() >= WAITING_MAX {
                // Replaces the oldest connection that was never answered, because it is not the peer's.
                let Some(silent) = self.waiting.iter().position(|waiting| !waiting.is_answered) else {
                    continue;
                };
                self.waiting.remove(silent);
            }
            // Drops a connection that fails to set up; its other end sees the close.
            self.waiting.extend(PacketStream::new(stream));
        }
        for at in 0..self.waiting.len() {
            let waiting = &mut self.waiting[at];
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = waiting.receive() else { break };
                match take(packet) {
                    TcpPacket::Nothing => {}
                    // A peer that repeats its question without reading the answers is not the real one.
                    TcpPacket::Question(_) if !waiting.has_room() => waiting.give_up(),
                    TcpPacket::Question(answer) => {
                        waiting.is_answered = true;
                        waiting.send(&answer);
                        waiting.flush();
                    }
                    TcpPacket::Peer => return Some(self.waiting.swap_remove(at)),
                }
            }
        }
        self.waiting.retain(|waiting| !waiting.is_over());
        None
    }
}

/// Connects to all addresses at once, each on its own thread. The connections arrive on the channel.
pub(super) fn dial(addresses: &[SocketAddr], within: Duration) -> Receiver<PacketStream> {
    let (tell, connected) = channel();
    for &address in addresses {
        let tell = tell.clone();
        std::thread::spawn(move || {
            if let Ok(stream) = TcpStream::connect_timeout(&address, within).and_then(PacketStream::new) {
                // If UDP was faster, nobody receives this.
                let _ = tell.send(stream);
            }
        });
    }
    connected
}

const LENGTH_BYTES: usize = 2;

/// Room for two of the longest packets.
const INBOX_BYTES: usize = 2 * (LENGTH_BYTES + u16::MAX as usize);

/// Typical amount that the kernel accepts at once.
const OUTBOX_BYTES: usize = 64 << 10;

/// Retry interval of a connection that accepted no more; it has megabytes in flight meanwhile.
const FLUSH_EVERY: Duration = Duration::from_millis(1);
const FINISH_TURNS: u32 = 1_000;

/// The peer needs one. The others are for strangers that connect and stay.
const WAITING_MAX: usize = 8;

/// Maximum packets per turn from an unproven connection.
const PACKETS_A_TURN: usize = 64;

#[cfg(test)]
pub(super) mod tests {
    use grebe_datagram::listen_tcp;

    use super::*;

    pub(in crate::io::session) fn stream(stream: TcpStream) -> PacketStream {
        PacketStream::new(stream).unwrap()
    }

    /// Two ends of a connection: the dialled one and the accepted one.
    fn pair() -> (PacketStream, PacketStream) {
        let mut door = TcpDoor::over(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = door.listener.local_addr().unwrap();
        let mut near = dial(&[address], Duration::from_secs(10)).recv().unwrap();
        near.send(b"question");
        near.flush();
        let mut asked = false;
        while !asked {
            let peer = door.poll(|packet| {
                asked = packet == b"question";
                TcpPacket::Question(b"answer".to_vec())
            });
            assert!(peer.is_none());
        }
        assert_eq!(next(&mut near), b"answer");
        near.send(b"peer");
        near.send(b"next");
        near.flush();
        loop {
            if let Some(far) = door.poll(|_| TcpPacket::Peer) {
                return (near, far);
            }
        }
    }

    pub(in crate::io::session) fn next(stream: &mut PacketStream) -> Vec<u8> {
        loop {
            if let Some(packet) = stream.receive() {
                return packet.to_vec();
            }
            assert!(!stream.is_over());
            let (waited, time) = stream.waits(Duration::from_secs(10));
            let _ = grebe_datagram::wait_readable(waited, time);
        }
    }

    #[test]
    fn every_address_is_of_both_families() {
        let Some(mut door) = TcpDoor::over(listen_tcp("[::]:0".parse().unwrap())) else {
            return eprintln!("skipped: this machine has no IPv6");
        };
        let port = door.listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "::1"] {
            if TcpListener::bind((host, 0)).is_err() {
                eprintln!("skipped: this machine has no address {host}");
                continue;
            }
            let stream = TcpStream::connect((host, port)).unwrap();
            let mut near = PacketStream::new(stream).unwrap();
            near.send(host.as_bytes());
            near.flush();
            let mut heard = Vec::new();
            while heard.is_empty() {
                door.poll(|packet| {
                    heard = packet.to_vec();
                    TcpPacket::Nothing
                });
            }
            assert_eq!(heard, host.as_bytes());
        }
    }

    #[test]
    fn who_shows_to_be_the_peer_is_let_in_and_what_came_behind_is_not_lost() {
        let (_near, mut far) = pair();
        assert_eq!(next(&mut far), b"next");
    }

    #[test]
    fn packets_pass_both_ways_with_their_boundaries_and_wait_where_nobody_reads() {
        let (mut near, mut far) = pair();
        assert_eq!(next(&mut far), b"next");
        let packet = |number: usize| vec![number as u8; number * 37 % 60_000];
        let mut sent = 0;
        while near.has_room() {
            near.send(&packet(sent));
            sent += 1;
        }
        assert!(
            near.outbox.len() >= OUTBOX_BYTES && sent < 100_000,
            "{sent}: the connection bounds its outbox"
        );
        for number in 0..sent {
            near.flush();
            assert!(next(&mut far) == packet(number), "{number}");
        }
        far.send(b"back");
        far.finish();
        assert_eq!(next(&mut near), b"back");
        while !near.is_over() {
            assert!(near.receive().is_none());
        }
    }

    #[test]
    fn a_stranger_that_stays_gives_way() {
        let mut door = TcpDoor::over(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = door.listener.local_addr().unwrap();
        let strangers: Vec<_> = (0..3 * WAITING_MAX).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut peer = dial(&[address], Duration::from_secs(10)).recv().unwrap();
        peer.send(b"peer");
        peer.flush();
        while door.poll(|_| TcpPacket::Peer).is_none() {
            assert!(door.waiting.len() <= WAITING_MAX);
        }
        drop(strangers);
    }
}
