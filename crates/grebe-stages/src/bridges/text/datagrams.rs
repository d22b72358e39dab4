//! Lines in UDP datagrams.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grebe_datagram::Receiver;

/// Reads datagrams of lines as if from a pipe: the end of a datagram ends a line. All senders share one
/// stream, which ends once each of them has sent an empty datagram.
#[derive(Debug)]
pub(crate) struct Datagrams {
    receiver: Receiver<Vec<u8>>,
    slab: Option<Vec<u8>>,
    lines: Vec<u8>,
    begin: usize,
    /// Senders of lines without an end of stream.
    senders: Vec<SocketAddr>,
    /// Too many senders to track: it is unknown when all have ended.
    is_crowded: bool,
    is_over: bool,
    kernel_drops: KernelDrops,
}

/// Kernel buffers that found the receive buffer full. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct KernelDrops(Arc<AtomicU64>);

impl KernelDrops {
    /// `None`: the system cannot tell.
    pub(crate) fn total(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&total| total != UNKNOWN)
    }
}

impl Datagrams {
    pub(crate) fn new(receiver: Receiver<Vec<u8>>) -> Self {
        Self {
            receiver,
            slab: None,
            lines: Vec::new(),
            begin: 0,
            senders: Vec::with_capacity(SENDERS_MAX),
            is_crowded: false,
            is_over: false,
            kernel_drops: KernelDrops(Arc::new(AtomicU64::new(UNKNOWN))),
        }
    }

    /// Kernel drops, for the reader of the lines.
    pub(crate) fn kernel_drops(&self) -> KernelDrops {
        self.kernel_drops.clone()
    }

    /// Receives waiting datagrams; waits a moment for the first.
    fn receive(&mut self) -> io::Result<()> {
        self.lines.clear();
        self.begin = 0;
        let (slab, lines, is_over) = (&mut self.slab, &mut self.lines, &mut self.is_over);
        let (senders, is_crowded) = (&mut self.senders, &mut self.is_crowded);
        let deliver = |slab: Vec<u8>, received: grebe_datagram::Received| {
            match (received.len, senders.iter().position(|&sender| sender == received.from)) {
                (0, Some(at)) => {
                    senders.swap_remove(at);
                    *is_over |= senders.is_empty() && !*is_crowded;
                }
                (1.., None) if senders.len() == SENDERS_MAX => *is_crowded = true,
                (1.., None) => senders.push(received.from),
                _ => {}
            }
            for range in received.segments() {
                lines.extend_from_slice(&slab[range]);
                lines.push(b'\n');
            }
            Some(slab)
        };
        let received = self.receiver.recv(|| slab.take().or_else(|| Some(vec![0; SLAB_BYTES])), deliver);
        let drops = received.map_err(io::Error::other)?.kernel_drops;
        self.kernel_drops.0.store(drops.unwrap_or(UNKNOWN), Ordering::Relaxed);
        Ok(())
    }
}

impl Read for Datagrams {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.begin == self.lines.len() && !self.is_over {
            self.receive()?;
        }
        let rest = &self.lines[self.begin..];
        if rest.is_empty() && !self.is_over {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        self.begin += length;
        Ok(length)
    }
}

const UNKNOWN: u64 = u64::MAX;
const SENDERS_MAX: usize = 64;
/// As many coalesced datagrams as the kernel hands over at a time.
const SLAB_BYTES: usize = 65_536;
