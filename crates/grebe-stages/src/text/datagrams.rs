//! Lines in UDP datagrams.

use std::io::{self, Read};

use grebe_datagram::Receiver;

/// Reads datagrams of lines as if they came through a pipe: the end of one ends a line. Those of all senders make one stream; an
/// empty one ends it.
#[derive(Debug)]
pub(crate) struct Datagrams {
    receiver: Receiver<Vec<u8>>,
    slab: Option<Vec<u8>>,
    lines: Vec<u8>,
    begin: usize,
    is_over: bool,
}

impl Datagrams {
    pub(crate) fn new(receiver: Receiver<Vec<u8>>) -> Self {
        Self { receiver, slab: None, lines: Vec::new(), begin: 0, is_over: false }
    }

    /// Takes what has come; waits a moment for it.
    fn receive(&mut self) -> io::Result<()> {
        self.lines.clear();
        self.begin = 0;
        let (slab, lines, is_over) = (&mut self.slab, &mut self.lines, &mut self.is_over);
        let deliver = |slab: Vec<u8>, received: grebe_datagram::Received| {
            *is_over |= received.len == 0;
            for range in received.segments() {
                lines.extend_from_slice(&slab[range]);
                lines.push(b'\n');
            }
            Some(slab)
        };
        let received = self.receiver.recv(|| slab.take().or_else(|| Some(vec![0; SLAB_BYTES])), deliver);
        received.map_err(io::Error::other)?;
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

/// As many coalesced datagrams as the kernel hands over at a time.
const SLAB_BYTES: usize = 65_536;
