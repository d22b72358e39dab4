//! What a batch will ask of the kernel: datagrams grouped into messages, described by slices of the caller's memory.
//!
//! ```text
//!   slices    | h0 | p0 | h1 | p1 | h2 | p2 |  run of 40 x 1400  | h | p |
//!   messages  | 3 datagrams of 1400 (GSO)   | 40 datagrams (GSO) | 1     |
//! ```
//! Equal datagrams to one destination share a message while GSO may be used; a shorter one may end it.

use std::io::IoSlice;
use std::net::SocketAddr;

/// Bytes a UDP datagram over IPv4 carries at most, and a GSO message too (65,508: EMSGSIZE).
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Datagrams a batch holds at most before it flushes itself.
pub const MAX_BURST_DATAGRAMS: usize = 1_024;

/// Messages a system call: enough to amortise it, few enough that its cost stays far below a latency budget.
pub(crate) const MAX_MESSAGES: usize = 128;

/// Segments a GSO message (129: EINVAL; kernels before 6.9 take 64).
pub(crate) const MAX_SEGMENTS: usize = 128;

/// Slices a message: UIO_MAXIOV, beyond which Linux says EMSGSIZE.
const MAX_MESSAGE_SLICES: usize = 1_024;

const MAX_SLICES: usize = 2 * MAX_BURST_DATAGRAMS;

/// Payload bytes a batch: at 7 GB/s, 150 us; more would delay the first datagram for no gain.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Copied datagrams a batch, in bytes.
const INLINE_BYTES: usize = 256 << 10;

/// What may share a message now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coalesce {
    /// Segments a message; 1 where GSO is off.
    pub max_segments: usize,
    /// The longest segment that GSO may carry (what the route's MTU leaves).
    pub max_segment_bytes: usize,
}

/// One entry of a system call: one datagram, or several of equal length (the last may be shorter).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub bytes: usize,
    /// Length of every datagram but the last.
    pub segment_bytes: usize,
    pub datagrams: usize,
    pub to: Option<SocketAddr>,
    /// First slice, or first byte of the copied ones.
    first: usize,
    slices: usize,
    copied: bool,
    open: bool,
}

/// Where the bytes of a message lie.
pub(crate) enum Source<'a, 'd> {
    Slices(&'a [IoSlice<'d>]),
    Copied(&'a [u8]),
}

#[derive(Debug)]
pub(crate) struct Plan<'d> {
    slices: Vec<IoSlice<'d>>,
    messages: Vec<Message>,
    copied: Vec<u8>,
    datagrams: usize,
    bytes: usize,
}

/// The batch has no room: flush it first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Plan<'static> {
    pub fn new() -> Self {
        Self {
            slices: Vec::with_capacity(MAX_SLICES),
            messages: Vec::with_capacity(MAX_MESSAGES),
            copied: Vec::with_capacity(INLINE_BYTES),
            datagrams: 0,
            bytes: 0,
        }
    }
}

impl<'d> Plan<'d> {
    /// An empty plan that owns nothing, to stand in for one that is lent.
    pub fn hollow() -> Self {
        Self { slices: Vec::new(), messages: Vec::new(), copied: Vec::new(), datagrams: 0, bytes: 0 }
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub fn datagrams(&self) -> usize {
        self.datagrams
    }

    pub fn source(&self, message: &Message) -> Source<'_, 'd> {
        if message.copied {
            Source::Copied(&self.copied[message.first..message.first + message.bytes])
        } else {
            Source::Slices(&self.slices[message.first..message.first + message.slices])
        }
    }

    /// Adds a datagram that lies in two places, neither of them copied.
    #[inline]
    pub fn push(
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

    /// Adds a datagram and copies its bytes.
    #[inline]
    pub fn push_copied(
        &mut self,
        to: Option<SocketAddr>,
        header: &[u8],
        payload: &[u8],
        rule: Coalesce,
    ) -> Result<(), Full> {
        let bytes = header.len() + payload.len();
        if self.copied.len() + bytes > INLINE_BYTES {
            return Err(Full);
        }
        self.enter(to, bytes, 0, true, rule)?;
        self.copied.extend_from_slice(header);
        self.copied.extend_from_slice(payload);
        Ok(())
    }

    /// Adds as many datagrams of `segment_bytes` from the front of `run` as fit into one message, and returns their bytes.
    pub fn push_run(
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

    /// Calls `send` with each datagram of a message on its own, from the `skip`-th on.
    pub fn each_datagram<E>(
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
            // A datagram is a pair, or a piece of a run: two parts at most.
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

    /// Forgets the datagrams and keeps the memory, for data of another lifetime.
    pub fn recycle<'e>(mut self) -> Plan<'e> {
        self.slices.clear();
        self.messages.clear();
        self.copied.clear();
        // The vector is empty: the in-place collect only hands its allocation over to the other lifetime.
        let slices = self.slices.into_iter().map(|_| IoSlice::new(&[])).collect();
        Plan { slices, messages: self.messages, copied: self.copied, datagrams: 0, bytes: 0 }
    }

    pub fn clear(&mut self) {
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
        if self.datagrams >= MAX_BURST_DATAGRAMS || self.bytes >= MAX_BATCH_BYTES {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GSO: Coalesce = Coalesce { max_segments: MAX_SEGMENTS, max_segment_bytes: 65_507 };

    fn datagrams(plan: &Plan<'_>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for message in plan.messages() {
            plan.each_datagram(message, 0, |parts| {
                all.push(parts.iter().flat_map(|part| part.iter().copied()).collect());
                Ok::<(), ()>(())
            })
            .unwrap();
        }
        all
    }

    #[test]
    fn equal_datagrams_share_a_message_and_a_shorter_one_ends_it() {
        let data = [1_u8; 2_000];
        let mut plan = Plan::new();
        for bytes in [100, 100, 60, 100] {
            plan.push(None, &data[..20], &data[..bytes - 20], GSO).unwrap();
        }
        let shape: Vec<_> = plan.messages().iter().map(|m| (m.datagrams, m.bytes)).collect();
        assert_eq!(shape, [(3, 260), (1, 100)]);
    }

    #[test]
    fn a_message_keeps_the_kernels_limits() {
        let data = vec![1_u8; 65_507];
        let mut plan = Plan::new();
        for _ in 0..200 {
            plan.push(None, &[], &data[..10], GSO).unwrap();
        }
        assert_eq!(plan.messages()[0].datagrams, 128);
        let mut plan = Plan::new();
        for _ in 0..10 {
            plan.push(None, &[], &data[..9_000], GSO).unwrap();
        }
        assert_eq!(plan.messages()[0].bytes, 63_000);
    }

    #[test]
    fn a_segment_above_the_mtu_goes_alone() {
        let data = [1_u8; 1_473];
        let mut plan = Plan::new();
        let rule = Coalesce { max_segments: 128, max_segment_bytes: 1_472 };
        plan.push(None, &[], &data, rule).unwrap();
        plan.push(None, &[], &data, rule).unwrap();
        plan.push(None, &[], &data[..1_472], rule).unwrap();
        plan.push(None, &[], &data[..1_472], rule).unwrap();
        let shape: Vec<_> = plan.messages().iter().map(|m| m.datagrams).collect();
        assert_eq!(shape, [1, 1, 2]);
    }

    #[test]
    fn empty_datagrams_are_datagrams() {
        let mut plan = Plan::new();
        plan.push(None, &[], &[], GSO).unwrap();
        plan.push(None, &[], &[], GSO).unwrap();
        assert_eq!(datagrams(&plan), [vec![], vec![]] as [Vec<u8>; 2]);
        assert_eq!(plan.messages().len(), 2);
    }

    proptest! {
        #[test]
        fn every_byte_comes_out_once_in_order(
            pieces in prop::collection::vec((0_usize..1_500, 0_usize..3_000, 0_u8..3, 0_u16..2), 1..60),
            max_segments in 1_usize..130,
        ) {
            let data: Vec<u8> = (0..8_000_u32).map(|i| (i * 31 % 251) as u8).collect();
            let rule = Coalesce { max_segments, max_segment_bytes: 2_000 };
            let mut plan = Plan::new();
            let mut expected: Vec<Vec<u8>> = Vec::new();
            let mut destinations = Vec::new();
            'pieces: for (segment, bytes, kind, port) in pieces {
                let to = Some(SocketAddr::from(([127, 0, 0, 1], port)));
                match kind {
                    0 => {
                        plan.push(to, &data[..segment], &data[..bytes], rule).unwrap();
                        expected.push([&data[..segment], &data[..bytes]].concat());
                    }
                    1 => {
                        let bytes = bytes.min(500);
                        plan.push_copied(to, &data[..64], &data[..bytes], rule).unwrap();
                        expected.push([&data[..64], &data[..bytes]].concat());
                    }
                    _ => {
                        let segment = segment.max(40);
                        let mut run = &data[..bytes.max(1)];
                        for piece in run.chunks(segment) {
                            expected.push(piece.to_vec());
                        }
                        while !run.is_empty() {
                            match plan.push_run(to, run, segment, usize::MAX, rule) {
                                Ok(taken) => run = &run[taken..],
                                Err(Full) => {
                                    // Many short segments, a message each: what did not fit is not expected.
                                    expected.truncate(plan.datagrams());
                                    destinations.resize(expected.len(), to);
                                    break 'pieces;
                                }
                            }
                        }
                    }
                }
                destinations.resize(expected.len(), to);
                if plan.messages().len() > 100 || plan.datagrams() > 900 {
                    break;
                }
            }
            prop_assert_eq!(datagrams(&plan), expected);
            let to: Vec<_> = plan.messages().iter().flat_map(|m| vec![m.to; m.datagrams]).collect();
            prop_assert_eq!(to, destinations);
            for message in plan.messages() {
                prop_assert!(message.datagrams <= max_segments);
                prop_assert!(message.bytes <= MAX_DATAGRAM_BYTES);
                prop_assert!(message.datagrams == 1 || message.segment_bytes <= 2_000);
            }
        }
    }
}
