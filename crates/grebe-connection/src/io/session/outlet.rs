//! Outgoing packets: runs of equal length for the kernel, or single packets for a TCP connection.

use std::net::SocketAddr;

use grebe_datagram::Sender;

use super::tcp::PacketStream;
use crate::error::Result;

/// Output of a session's packets.
pub(super) struct Outlet {
    datagrams: Sender,
    /// Packets as they are handed to the kernel.
    slab: Vec<u8>,
    /// Runs of datagrams with equal length in the slab: start, end and datagram length.
    runs: Vec<(usize, usize, usize)>,
}

impl Outlet {
    pub(super) fn new(datagrams: Sender) -> Self {
        Self { datagrams, slab: vec![0; SLAB_BYTES], runs: Vec::with_capacity(256) }
    }

    /// Hands due packets to the kernel in as few calls as possible. `next` builds the next packet in the
    /// given buffer and returns its length, or `None` if none is due.
    ///
    /// # Errors
    /// Those of `next`. Nothing of this turn is sent then.
    pub(super) fn send_to(
        &mut self,
        peer: SocketAddr,
        mut next: impl FnMut(&mut [u8]) -> Result<Option<usize>>,
    ) -> Result<()> {
        let mut at = 0;
        self.runs.clear();
        while at + PACKET_BYTES_MAX <= SLAB_BYTES {
            let Some(length) = next(&mut self.slab[at..at + PACKET_BYTES_MAX])? else { break };
            match self.runs.last_mut() {
                Some((_, end, segment)) if *segment == length => *end += length,
                _ => self.runs.push((at, at + length, length)),
            }
            at += length;
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let mut batch = self.datagrams.batch();
        for (from, to, segment) in &self.runs {
            // A packet that the kernel refuses counts as lost. The core sends it again, or gives up after a
            // long silence.
            let _ = batch.push_run_to(peer, &self.slab[*from..*to], *segment);
        }
        let _ = batch.flush();
        Ok(())
    }

    /// Fills a TCP connection as far as it accepts data. Its backpressure limits this end.
    ///
    /// # Errors
    /// Those of `next`, see [`send_to`](Self::send_to).
    pub(super) fn send_by(
        &mut self,
        tcp: &mut PacketStream,
        mut next: impl FnMut(&mut [u8]) -> Result<Option<usize>>,
    ) -> Result<()> {
        tcp.flush();
        for _ in 0..PACKETS_A_TURN {
            if !tcp.has_room() {
                break;
            }
            let Some(length) = next(&mut self.slab[..PACKET_BYTES_MAX])? else { break };
            tcp.send(&self.slab[..length]);
        }
        tcp.flush();
        Ok(())
    }
}

/// Room for the longest packet.
pub(super) const PACKET_BYTES_MAX: usize = 65_536;

/// Small enough to stay in the core's cache until the kernel copies it.
const SLAB_BYTES: usize = 4 * PACKET_BYTES_MAX;

/// Maximum packets per turn for a TCP connection, so that other work gets its turn.
const PACKETS_A_TURN: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use grebe_datagram::Options;

    use super::*;
    use crate::error::Error;

    #[test]
    fn packets_leave_in_order_with_their_lengths_and_as_many_as_fit() {
        let near = Sender::unconnected("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut outlet = Outlet::new(near);
        let lengths = [1_200, 1_200, 1_200, 300, 1_200, 40, 40];
        let mut built = lengths.iter().enumerate();
        outlet
            .send_to(far.local_addr().unwrap(), |room| {
                Ok(built.next().map(|(number, length)| {
                    room[..*length].fill(number as u8);
                    *length
                }))
            })
            .unwrap();
        let mut datagram = [0; 2_048];
        for (number, length) in lengths.into_iter().enumerate() {
            let received = far.recv(&mut datagram).unwrap();
            assert_eq!(&datagram[..received], vec![number as u8; length]);
        }

        // Bounds a source that always has more: requests stop when the slab is full.
        let mut asked = 0;
        let always = |_: &mut [u8]| {
            asked += 1;
            Ok(Some(PACKET_BYTES_MAX))
        };
        outlet.send_to(far.local_addr().unwrap(), always).unwrap();
        assert_eq!(asked, SLAB_BYTES / PACKET_BYTES_MAX);
        let failed = outlet.send_to(far.local_addr().unwrap(), |_| Err(Error::Cancelled));
        assert!(matches!(failed, Err(Error::Cancelled)));
    }
}
