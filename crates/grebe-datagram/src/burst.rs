//! Datagrams for one system call: grouped into messages, as slices of the caller's memory.
//!
//! ```text
//!   slices    | h0 | p0 | h1 | p1 | h2 | p2 |  run of 40 x 1400  | h | p |
//!   messages  | 3 datagrams of 1400 (GSO)   | 40 datagrams (GSO) | 1     |
//! ```
//! Datagrams of equal length to one destination share a message while GSO is allowed. A shorter one may end it.

use std::io::IoSlice;
use std::net::SocketAddr;

/// Maximum payload of a UDP datagram over IPv4, and of a GSO message (65,508: EMSGSIZE).
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Maximum datagrams of a batch before it flushes itself.
pub const MAX_BURST_DATAGRAMS: usize = 1_024;

/// Messages per system call: enough to amortise it, few enough to stay far below a latency budget.
pub(crate) const MAX_MESSAGES: usize = 128;

/// Segments per GSO message (129: EINVAL; kernels before 6.9 take 64).
pub(crate) const MAX_SEGMENTS: usize = 128;

/// Slices per message: UIO_MAXIOV, beyond which Linux returns EMSGSIZE.
const MAX_MESSAGE_SLICES: usize = 1_024;

const MAX_SLICES: usize = 2 * MAX_BURST_DATAGRAMS;

/// Payload bytes per burst: at 7 GB/s, 150 us; more would delay the first datagram without a gain.
const MAX_BURST_BYTES: usize = 1 << 20;

/// Maximum bytes of copied datagrams in a burst.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// Conditions for datagrams to share a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coalesce {
    /// Maximum segments per message; 1 without GSO.
    pub(crate) max_segments: usize,
    /// Maximum segment length for GSO, which follows from the route's MTU.
    pub(crate) max_segment_bytes: usize,
}

/// Entry of a system call: one datagram, or several of equal length (the last may be shorter).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) bytes: usize,
    /// Length of every datagram except the last.
    pub(crate) segment_bytes: usize,
    pub(crate) datagrams: usize,
    pub(crate) to: Option<SocketAddr>,
    /// Index of the first slice, or of the first copied byte.
    first: usize,
    slices: usize,
    copied: bool,
    open: bool,
}

/// Location of a message's bytes.
pub(crate) enum Source<'a, 'd> {
    Slices(&'a [IoSlice<'d>]),
    Copied(&'a [u8]),
}

#[derive(Debug)]
pub(crate) struct Burst<'d> {
    slices: Vec<IoSlice<'d>>,
    messages: Vec<Message>,
    copied: Vec<u8>,
    datagrams: usize,
    bytes: usize,
}

/// The burst has no room; send it first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Burst<'static> {
    pub(crate) fn new() -> Self {
        Self {
            slices: Vec::with_capacity(MAX_SLICES),
            messages: Vec::with_capacity(MAX_MESSAGES),
            copied: Vec::with_capacity(COPIED_BYTES_MAX),
            datagrams: 0,
            bytes: 0,
        }
    }
}

impl<'d> Burst<'d> {
    /// Empty burst without memory, as a placeholder for one on loan.
    pub(crate) fn hollow() -> Self {
        Self { slices: Vec::new(), messages: Vec::new(), copied: Vec::new(), datagrams: 0, bytes: 0 }
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn datagrams(&self) -> usize {
        self.datagrams
    }

    pub(crate) fn source(&self, message: &Message) -> Source<'_, 'd> {
        if message.copied {
            Source::Copied(&self.copied[message.first..message.first + message.bytes])
        } else {
            Source::Slices(&self.slices[message.first..message.first + message.slices])
        }
    }

    /// Adds a datagram in two parts without copying.
    #[inline]
    pub(crate) fn push(
        &mut self,
        to: Option<SocketAddr>,
        header: &'d [u8],
        payload: &'d [u8],
        rule: Coalesce,
    ) -> Result<(), Full> {
        let bytes = header.len() + payload.len();
        let slices = usize::from(!header.is_empty()) + usize::from(!payload.is_empty());
        if self.slices.len() + slices > MAX_SLICES {
            return Err(Full);
        }
        self.enter(to, bytes, slices, false, rule)?;
        if !header.is_empty() {
            self.slices.push(IoSlice::new(header));
        }
        if !payload.is_empty() {
            self.slices.push(IoSlice::new(payload));
        }
        Ok(())
    }

    /// Adds a datagram by copying its bytes.
    #[inline]
    pub(crate) fn push_copied(
        &mut self,
        to: Option<SocketAddr>,
        header: &[u8],
        payload: &[u8],
        rule: Coalesce,
    ) -> Result<(), Full> {
        let bytes = header.len() + payload.len();
        if self.copied.len() + bytes > COPIED_BYTES_MAX {
            return Err(Full);
        }
        self.enter(to, bytes, 0, true, rule)?;
        self.copied.extend_from_slice(header);
        self.copied.extend_from_slice(payload);
        Ok(())
    }

    /// Adds as many datagrams of `segment_bytes` from the front of `run` as fit into one message. Returns
    /// their length.
    pub(crate) fn push_run(
        &mut self,
        to: Option<SocketAddr>,
        run: &'d [u8],
        segment_bytes: usize,
        most: usize,
        rule: Coalesce,
    ) -> Result<usize, Full> {
        if self.slices.len() == MAX_SLICES || self.datagrams >= MAX_BURST_DATAGRAMS {
            return Err(Full);
        }
        let segments = run.len().div_ceil(segment_bytes).min(most).min(MAX_BURST_DATAGRAMS - self.datagrams);
        let first = run.len().min(segment_bytes);
        self.enter(to, first, 1, false, rule)?;
        let Some(message) = self.messages.last_mut() else { return Err(Full) };
        let mut taken = first;
        for _ in 1..segments {
            let next = segment_bytes.min(run.len() - taken);
            if !message.takes(next, rule) {
                break;
            }
            message.add(next);
            self.bytes += next;
            self.datagrams += 1;
            taken += next;
        }
        self.slices.push(IoSlice::new(&run[..taken]));
        Ok(taken)
    }

    /// Calls `send` with each datagram of a message, except for the first `skip`.
    pub(crate) fn each_datagram<E>(
        &self,
        message: &Message,
        skip: usize,
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole;
        let slices = match self.source(message) {
            Source::Slices(slices) => slices,
            Source::Copied(bytes) => {
                whole = [IoSlice::new(bytes)];
                &whole
            }
        };
        let (mut slice, mut offset) = (0, 0);
        for index in 0..message.datagrams {
            let mut left = message.segment_bytes.min(message.bytes - index * message.segment_bytes);
            let mut parts = [IoSlice::new(&[]), IoSlice::new(&[])];
            let mut count = 0;
            // A datagram is a pair, or a piece of a run: at most two parts.
            while left > 0 && count < parts.len() {
                let rest = &slices[slice][offset..];
                let take = rest.len().min(left);
                parts[count] = IoSlice::new(&rest[..take]);
                count += 1;
                left -= take;
                offset += take;
                if offset == slices[slice].len() {
                    (slice, offset) = (slice + 1, 0);
                }
            }
            if index >= skip {
                send(&parts[..count])?;
            }
        }
        Ok(())
    }

    /// Removes the datagrams and keeps the memory, for data of another lifetime.
    pub(crate) fn recycle<'e>(mut self) -> Burst<'e> {
        self.slices.clear();
        self.messages.clear();
        self.copied.clear();
        // The vector is empty, so the in-place collect only moves its allocation to the other lifetime.
        let slices = self.slices.into_iter().map(|_| IoSlice::new(&[])).collect();
        Burst { slices, messages: self.messages, copied: self.copied, datagrams: 0, bytes: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.slices.clear();
        self.messages.clear();
        self.copied.clear();
        self.datagrams = 0;
        self.bytes = 0;
    }

    /// Finds the message for one more datagram: the last one, or a new one.
    #[inline]
    fn enter(
        &mut self,
        to: Option<SocketAddr>,
        bytes: usize,
        slices: usize,
        copied: bool,
        rule: Coalesce,
    ) -> Result<(), Full> {
        if self.datagrams >= MAX_BURST_DATAGRAMS || self.bytes >= MAX_BURST_BYTES {
            return Err(Full);
        }
        let joined = match self.messages.last_mut() {
            Some(last)
                if last.copied == copied
                    && last.takes(bytes, rule)
                    && last.slices + slices <= MAX_MESSAGE_SLICES
                    && last.to == to =>
            {
                last.add(bytes);
                last.slices += slices;
                true
            }
            _ => false,
        };
        if !joined {
            if self.messages.len() == MAX_MESSAGES {
                return Err(Full);
            }
            let first = if copied { self.copied.len() } else { self.slices.len() };
            let open = bytes > 0 && bytes <= rule.max_segment_bytes;
            self.messages.push(Message {
                bytes,
                segment_bytes: bytes,
                datagrams: 1,
                to,
                first,
                slices,
                copied,
                open,
            });
        }
        self.datagrams += 1;
        self.bytes += bytes;
        Ok(())
    }
}

impl Message {
    fn takes(&self, bytes: usize, rule: Coalesce) -> bool {
        self.open
            && bytes > 0
            && bytes <= self.segment_bytes
            && self.datagrams < rule.max_segments
            && self.bytes + bytes <= MAX_DATAGRAM_BYTES
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.datagrams += 1;
        self.open = bytes == self.segment_bytes;
    }
}

#[cfg(test)]
mod tests;
