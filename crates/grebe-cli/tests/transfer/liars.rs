//! A receiver that has the ticket and says what no receiver says.

use std::net::{ToSocketAddrs, UdpSocket};
use std::time::Duration;

use grebe_transfer::internals::{HEADER_BYTES, Initiator, Role, Session, TAG_BYTES};
use grebe_transfer::{Purpose, Ticket};

use crate::peers::{Waiting, file, path};

struct Liar {
    socket: UdpSocket,
    session: Session,
    number: u64,
}

impl Liar {
    fn with(ticket: &str) -> Self {
        let ticket = Ticket::from_word(ticket, Purpose::Transfer).unwrap();
        let to = ticket.addresses[0].to_socket_addrs().unwrap().next().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut initiator = Initiator::new(&ticket.key, Role::Receive).unwrap();
        socket.send(initiator.datagram()).unwrap();
        let mut reply = [0; 2_048];
        let length = socket.recv(&mut reply).unwrap();
        let session = initiator.on_reply(&reply[..length]).unwrap();
        Self { socket, session, number: 0 }
    }

    fn say(&mut self, frame: &[u8]) {
        let mut datagram = [&[0; HEADER_BYTES][..], frame, &[0; TAG_BYTES]].concat();
        self.session.seal(self.number, &mut datagram).unwrap();
        self.number += 1;
        // Nobody is there any more once it was too much.
        let _ = self.socket.send(&datagram);
    }
}

/// Ranges of a byte, with a byte between them, from there on.
fn held(from: u64, ranges: usize) -> Vec<u8> {
    const HELD: u8 = 0x23;
    let mut frame = vec![HELD];
    let mut gap = from;
    while gap > 0x7f {
        frame.push(gap as u8 | 0x80);
        gap >>= 7;
    }
    frame.push(gap as u8);
    frame.push(1);
    (1..ranges).for_each(|_| frame.extend([1, 1]));
    frame
}

#[test]
fn a_receiver_that_claims_to_hold_ranges_without_end_ends_the_transfer() {
    /// As many as fit into a datagram.
    const RANGES: usize = 570;
    let from = tempfile::tempdir().unwrap();
    let (large, _) = file(from.path(), "large.bin", 200_000_000);
    let sender = Waiting::start(&["send", path(&large)]);
    let mut liar = Liar::with(&sender.ticket);
    // In falling order each range costs the most to put in place.
    for number in (0..200_u64).rev() {
        liar.say(&held(1_000_000 + number * 2 * RANGES as u64, RANGES));
        std::thread::sleep(Duration::from_millis(2));
    }
    let sender = sender.finish();
    assert_eq!(sender.status, Some(1), "{}", sender.said);
    assert!(sender.said.contains("breaks the protocol"), "{}", sender.said);
}
