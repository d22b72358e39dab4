//! TCP, for paths that let no UDP pass: the same packets, each behind its length, on one connection.
//!
//! TCP itself repeats, paces and holds back: the packets wait at the sender until the connection takes them, so none of them is lost.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What a packet that came by TCP is to this end.
pub(super) enum Heard {
    Nothing,
    /// A question: the connection brings the answer back.
    Question(Vec<u8>),
    /// It shows that the connection leads to the peer.
    Peer,
}

/// A connection that carries packets.
#[derive(Debug)]
pub(super) struct PacketStream {
    stream: TcpStream,
    /// What came and was not taken yet lies in `taken..filled`.
    inbox: Vec<u8>,
    taken: usize,
    filled: usize,
    /// What the connection did not take yet, from `sent` on.
    outbox: Vec<u8>,
    sent: usize,
    /// Only who has the ticket is answered.
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

    /// Who is at the other end.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// The next packet that has come.
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

    /// Hands a packet over; it waits where the connection takes no more for now.
    pub(super) fn send(&mut self, packet: &[u8]) {
        // A packet is shorter than 64 KiB.
        self.outbox.extend_from_slice(&(packet.len() as u16).to_be_bytes());
        self.outbox.extend_from_slice(packet);
        if self.outbox.len() - self.sent >= OUTBOX_BYTES {
            self.flush();
        }
    }

    /// Gives the connection as much as it takes.
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

    /// Whether the connection has taken what it was given: then more may follow.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < OUTBOX_BYTES && !self.is_over
    }

    /// Takes and sends no more.
    fn give_up(&mut self) {
        (self.is_over, self.filled) = (true, self.taken);
    }

    /// Whether the other end, or something between, has closed it.
    pub(super) fn is_over(&self) -> bool {
        self.is_over && self.taken == self.filled
    }

    /// What a thread waits for that waits for something else too, and for how long at most.
    pub(super) fn waits(&self, time: Duration) -> (&TcpStream, Duration) {
        (&self.stream, if self.outbox.is_empty() { time } else { time.min(FLUSH_EVERY) })
    }

    /// Gives the connection what is left, for a moment; what is still to be read would end it before the other end has all.
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

    /// Reads what is there; `false` where that is nothing.
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
            // Part of a packet is none.
            self.taken = self.filled;
        }
        false
    }
}

/// The port of the end that made the ticket, and those who came there and have not shown yet that they are the peer.
#[derive(Debug)]
pub(super) struct TcpDoor {
    listener: TcpListener,
    waiting: Vec<PacketStream>,
}

impl TcpDoor {
    /// Of a listener, if there is one: most transfers do not need it.
    pub(super) fn over(listener: io::Result<TcpListener>) -> Option<Self> {
        let listener = listener.ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, waiting: Vec::new() })
    }

    /// Lets in who has come, and passes on what they said; returns the connection that turns out to be the peer's.
    pub(super) fn poll(&mut self, mut take: impl FnMut(&mut [u8]) -> Heard) -> Option<PacketStream> {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.waiting.len() >= WAITING_MAX {
                // The oldest of those that were never answered gives way: it is no peer's.
                let Some(silent) = self.waiting.iter().position(|waiting| !waiting.is_answered) else {
                    continue;
                };
                self.waiting.remove(silent);
            }
            // A connection that cannot be served is closed, which its other end sees.
            self.waiting.extend(PacketStream::new(stream));
        }
        for at in 0..self.waiting.len() {
            let waiting = &mut self.waiting[at];
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = waiting.receive() else { break };
                match take(packet) {
                    Heard::Nothing => {}
                    // Who asks again and again, and does not read the answers, is no peer.
                    Heard::Question(_) if !waiting.has_room() => waiting.give_up(),
                    Heard::Question(answer) => {
                        waiting.is_answered = true;
                        waiting.send(&answer);
                        waiting.flush();
                    }
                    Heard::Peer => return Some(self.waiting.swap_remove(at)),
                }
            }
        }
        self.waiting.retain(|waiting| !waiting.is_over());
        None
    }
}

/// Connects to all of the addresses at once, each on a thread of its own; the connections arrive on the channel.
pub(super) fn dial(addresses: &[SocketAddr], within: Duration) -> Receiver<PacketStream> {
    let (tell, connected) = channel();
    for &address in addresses {
        let tell = tell.clone();
        std::thread::spawn(move || {
            if let Ok(stream) = TcpStream::connect_timeout(&address, within).and_then(PacketStream::new) {
                // Nobody waits for it any more where UDP was faster.
                let _ = tell.send(stream);
            }
        });
    }
    connected
}

const LENGTH_BYTES: usize = 2;

/// Room for the longest packet, and for as much again.
const INBOX_BYTES: usize = 2 * (LENGTH_BYTES + u16::MAX as usize);

/// What the kernel takes at once.
const OUTBOX_BYTES: usize = 64 << 10;

/// How often a connection that took no more is tried again: it has megabytes under way meanwhile.
const FLUSH_EVERY: Duration = Duration::from_millis(1);
const FINISH_TURNS: u32 = 1_000;

/// One is enough for the peer; the others are for strangers that connect and stay.
const WAITING_MAX: usize = 8;

/// What a stranger may have looked at in one turn.
const PACKETS_A_TURN: usize = 64;

#[cfg(test)]
pub(super) mod tests {
    use grebe_datagram::listen_tcp;

    use super::*;

    pub(in crate::io::session) fn stream(stream: TcpStream) -> PacketStream {
        PacketStream::new(stream).unwrap()
    }

    /// Both ends of a connection, the near one dialled and the far one let in.
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
                Heard::Question(b"answer".to_vec())
            });
            assert!(peer.is_none());
        }
        assert_eq!(next(&mut near), b"answer");
        near.send(b"peer");
        near.send(b"next");
        near.flush();
        loop {
            if let Some(far) = door.poll(|_| Heard::Peer) {
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
                    Heard::Nothing
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
            "{sent}: the connection takes only so many"
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
        while door.poll(|_| Heard::Peer).is_none() {
            assert!(door.waiting.len() <= WAITING_MAX);
        }
        drop(strangers);
    }
}
