//! The packets. Every one is signed; nothing is believed, and nothing answered, before its tag is checked.
//!
//! ```text
//!  0       4      5       8         16        24             40
//!  | magic | kind | zeros | session | number  | tag          | body ...          [| filler of Data and Size |]
//!  '---------------- signed, with the length and the body ---'
//! ```
//!
//! The filler carries nothing and is not signed: a train costs one hash of some hundred bytes a datagram, whatever its size.

use crate::key::{Signer, TAG_BYTES};
use crate::tracker::Summary;
use crate::train::Train;
use crate::wire::{Fields, Room};

/// The version of what two ends of a probe say to each other. Ends of different versions do not understand each other.
pub const PROTOCOL: u32 = 1;

/// The longest packet but for filler.
pub(crate) const PACKET_MAX: usize = 320;

/// What a client pads its first packets to, so that no answer before its address is proven is longer.
pub(crate) const OPENING_BYTES: usize = 256;

/// Bytes of the head of a datagram of a train; the rest is filler.
pub(crate) const DATA_BYTES: usize = HEADER_BYTES + 18 + 4 + 8;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packet {
    pub session: u64,
    pub number: u64,
    pub body: Body,
}

/// What a packet says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Body {
    /// Client: here I am.
    Hello { nonce: [u8; 16] },
    /// Server: prove that you are where you say.
    Challenge { nonce: [u8; 16], cookie: Cookie },
    /// Client: proof, and a wish to begin.
    Start { nonce: [u8; 16], cookie: Cookie },
    /// Server: others are before you.
    Wait { nonce: [u8; 16], position: u16 },
    /// Server: begin.
    Welcome(Welcome),
    /// Client: what is the time?
    Ping { sent_ns: u64 },
    /// Server: this.
    Pong { sent_ns: u64, arrived_ns: u64, answered_ns: u64 },
    /// Either: one datagram of a train.
    Data { train: Train, seq: u32, sent_ns: u64 },
    /// Either: can the path carry a datagram of this length?
    Size,
    /// Client: do this. The same id is the same question.
    Ask { id: u32, ask: Ask },
    /// Server: what came of it.
    Answer { id: u32, answer: Answer },
    /// Either: it is over.
    Bye { why: Why },
    /// Client, as the first bytes of a TCP connection.
    Stream(Stream),
}

/// What a client asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ask {
    /// Send this train.
    Send(Train),
    /// How is the train that you were asked for?
    Sent { train: u32 },
    /// What arrived of my train?
    Summary { train: u32 },
    /// Send datagrams of these lengths (0: none), each three times.
    Sizes([u16; SIZES_MAX]),
    /// Which is the longest of mine that you got?
    SizeSeen,
    /// What arrived of my TCP stream?
    Stream { id: u32 },
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// It will be done.
    Accepted,
    /// It will not: a limit of the server.
    Refused,
    /// Nothing is known of that, or not yet.
    Nothing,
    /// Of a train of the server's: how many were sent so far, and whether that is all.
    Sent { sent: u32, done: bool },
    /// Of a train of the client's.
    Summary(Summary),
    /// The longest datagram that arrived.
    SizeSeen { bytes: u16 },
    /// Of a TCP stream of the client's.
    Stream(Flow),
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Done,
    Limit,
    Busy,
}

/// Proof of an address, which only its maker can check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub made_ns: u64,
    pub tag: [u8; TAG_BYTES],
}

/// The beginning of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Welcome {
    pub nonce: [u8; 16],
    pub server_nonce: [u8; 16],
    pub session: u64,
    /// The server's wall clock, in ns since 1970, where its other stamps are 0.
    pub epoch_ns: u64,
    pub rate_max_bps: f64,
    pub bytes_max: u64,
    pub duration_max_ns: u64,
    /// The receive buffer that the server's kernel granted, and what it asked for.
    pub buffer_bytes: u64,
    pub buffer_asked_bytes: u64,
}

/// A TCP stream that a client opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    pub id: u32,
    /// Whether the server sends.
    pub down: bool,
    pub write_bytes: u32,
    pub duration_ns: u64,
    pub bytes_max: u64,
}

/// What arrived of a TCP stream, in all and in each of some equal times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Flow {
    pub bytes: u64,
    pub span_ns: u64,
    pub bin_ns: u64,
    pub bins: [u32; FLOW_BINS],
}

pub(crate) const FLOW_BINS: usize = 20;
pub(crate) const SIZES_MAX: usize = 20;
/// Bytes that open a TCP stream.
pub(crate) const STREAM_BYTES: usize = HEADER_BYTES + 4 + 1 + 4 + 8 + 8;

const HEADER_BYTES: usize = 8 + 8 + 8 + TAG_BYTES;
const SIGNED_BYTES: usize = HEADER_BYTES - TAG_BYTES;
const MAGIC: [u8; 4] = *b"GPB1";

impl Packet {
    /// Writes and signs the packet; `len` is how long the datagram will be with its filler (or 0: as long as the packet).
    /// Returns the bytes written.
    pub fn encode(&self, signer: &Signer, len: usize, buffer: &mut [u8; PACKET_MAX]) -> usize {
        let mut room = Room { buffer, at: 0 };
        room.put(&MAGIC).u8(self.body.kind()).put(&[0; 3]).u64(self.session).u64(self.number);
        room.put(&[0; TAG_BYTES]);
        self.body.write(&mut room);
        let written = if self.body.is_opening() { OPENING_BYTES } else { room.at.min(PACKET_MAX) };
        let total = len.max(written) as u32;
        let (signed, rest) = buffer.split_at_mut(SIGNED_BYTES);
        let (tag, body) = rest.split_at_mut(TAG_BYTES);
        tag.copy_from_slice(&signer.tag(&[signed, &total.to_le_bytes(), &body[..written - HEADER_BYTES]]));
        written
    }

    /// The packet in a datagram, if `signer` signed it.
    #[inline]
    pub fn decode(datagram: &[u8], signer: &Signer) -> Option<Self> {
        let mut fields = Fields(datagram);
        let (magic, kind, zeros) = (fields.bytes::<4>()?, fields.u8()?, fields.bytes::<3>()?);
        let (session, number, tag) = (fields.u64()?, fields.u64()?, fields.bytes::<TAG_BYTES>()?);
        if magic != MAGIC || zeros != [0; 3] {
            return None;
        }
        let body = match kind {
            kind::DATA => datagram.get(HEADER_BYTES..DATA_BYTES)?,
            kind::SIZE => &[],
            _ if datagram.len() > PACKET_MAX => return None,
            _ => &datagram[HEADER_BYTES..],
        };
        let length = (datagram.len() as u32).to_le_bytes();
        if !signer.accepts(&[&datagram[..SIGNED_BYTES], &length, body], &tag) {
            return None;
        }
        Some(Self { session, number, body: Body::read(kind, body)? })
    }

    /// Whether a datagram claims to be of a train, before anything is checked.
    #[inline]
    pub fn may_be_data(datagram: &[u8]) -> bool {
        datagram.len() >= DATA_BYTES && datagram[4] == kind::DATA
    }

    /// Whether a datagram claims to be a question of length.
    pub fn may_be_size(datagram: &[u8]) -> bool {
        datagram.len() >= HEADER_BYTES && datagram[4] == kind::SIZE
    }

    /// The session that a datagram claims to be of, before anything is checked.
    #[inline]
    pub fn claimed_session(datagram: &[u8]) -> Option<u64> {
        datagram.get(8..16)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

mod kind {
    pub const DATA: u8 = 12;
    pub const SIZE: u8 = 13;
}

impl Body {
    fn is_opening(&self) -> bool {
        matches!(self, Self::Hello { .. } | Self::Start { .. })
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Challenge { .. } => 2,
            Self::Start { .. } => 3,
            Self::Wait { .. } => 4,
            Self::Welcome(_) => 5,
            Self::Ping { .. } => 10,
            Self::Pong { .. } => 11,
            Self::Data { .. } => kind::DATA,
            Self::Size => kind::SIZE,
            Self::Ask { .. } => 14,
            Self::Answer { .. } => 15,
            Self::Bye { .. } => 16,
            Self::Stream(_) => 17,
        }
    }

    fn write(&self, room: &mut Room<'_>) {
        match self {
            Self::Hello { nonce } => room.put(nonce),
            Self::Challenge { nonce, cookie } | Self::Start { nonce, cookie } => {
                room.put(nonce).u64(cookie.made_ns).put(&cookie.tag)
            }
            Self::Wait { nonce, position } => room.put(nonce).u16(*position),
            Self::Welcome(welcome) => welcome.write(room),
            Self::Ping { sent_ns } => room.u64(*sent_ns),
            Self::Pong { sent_ns, arrived_ns, answered_ns } => {
                room.u64(*sent_ns).u64(*arrived_ns).u64(*answered_ns)
            }
            Self::Data { train, seq, sent_ns } => {
                train.write(room);
                room.u32(*seq).u64(*sent_ns)
            }
            Self::Size => room,
            Self::Ask { id, ask } => {
                room.u32(*id);
                ask.write(room)
            }
            Self::Answer { id, answer } => {
                room.u32(*id);
                answer.write(room)
            }
            Self::Bye { why } => room.u8(match why {
                Why::Done => 0,
                Why::Limit => 1,
                Why::Busy => 2,
            }),
            Self::Stream(stream) => {
                room.u32(stream.id).u8(stream.down.into()).u32(stream.write_bytes);
                room.u64(stream.duration_ns).u64(stream.bytes_max)
            }
        };
    }

    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let fields = &mut fields;
        Some(match kind {
            1 => Self::Hello { nonce: fields.bytes()? },
            2 => Self::Challenge { nonce: fields.bytes()?, cookie: Cookie::read(fields)? },
            3 => Self::Start { nonce: fields.bytes()?, cookie: Cookie::read(fields)? },
            4 => Self::Wait { nonce: fields.bytes()?, position: fields.u16()? },
            5 => Self::Welcome(Welcome::read(fields)?),
            10 => Self::Ping { sent_ns: fields.u64()? },
            11 => {
                Self::Pong { sent_ns: fields.u64()?, arrived_ns: fields.u64()?, answered_ns: fields.u64()? }
            }
            kind::DATA => {
                let (train, seq, sent_ns) = (Train::read(fields)?, fields.u32()?, fields.u64()?);
                if seq >= train.count {
                    return None;
                }
                Self::Data { train, seq, sent_ns }
            }
            kind::SIZE => Self::Size,
            14 => Self::Ask { id: fields.u32()?, ask: Ask::read(fields)? },
            15 => Self::Answer { id: fields.u32()?, answer: Answer::read(fields)? },
            16 => Self::Bye {
                why: match fields.u8()? {
                    0 => Why::Done,
                    1 => Why::Limit,
                    2 => Why::Busy,
                    _ => return None,
                },
            },
            17 => Self::Stream(Stream::read(fields)?),
            _ => return None,
        })
    }
}

impl Ask {
    fn write<'a, 'b>(&self, room: &'a mut Room<'b>) -> &'a mut Room<'b> {
        match self {
            Self::Send(train) => {
                train.write(room.u8(0));
                room
            }
            Self::Sent { train } => room.u8(1).u32(*train),
            Self::Summary { train } => room.u8(2).u32(*train),
            Self::Sizes(sizes) => {
                room.u8(3);
                sizes.iter().for_each(|size| {
                    room.u16(*size);
                });
                room
            }
            Self::SizeSeen => room.u8(4),
            Self::Stream { id } => room.u8(5).u32(*id),
        }
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(match fields.u8()? {
            0 => Self::Send(Train::read(fields)?),
            1 => Self::Sent { train: fields.u32()? },
            2 => Self::Summary { train: fields.u32()? },
            3 => {
                let mut sizes = [0; SIZES_MAX];
                for size in &mut sizes {
                    *size = fields.u16().filter(|&size| size <= Train::SIZE_MAX)?;
                }
                Self::Sizes(sizes)
            }
            4 => Self::SizeSeen,
            5 => Self::Stream { id: fields.u32()? },
            _ => return None,
        })
    }
}

impl Answer {
    fn write<'a, 'b>(&self, room: &'a mut Room<'b>) -> &'a mut Room<'b> {
        match self {
            Self::Accepted => room.u8(0),
            Self::Refused => room.u8(1),
            Self::Nothing => room.u8(2),
            Self::Sent { sent, done } => room.u8(3).u32(*sent).u8((*done).into()),
            Self::Summary(summary) => {
                summary.write(room.u8(4));
                room
            }
            Self::SizeSeen { bytes } => room.u8(5).u16(*bytes),
            Self::Stream(flow) => {
                room.u8(6).u64(flow.bytes).u64(flow.span_ns).u64(flow.bin_ns);
                flow.bins.iter().for_each(|bin| {
                    room.u32(*bin);
                });
                room
            }
        }
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(match fields.u8()? {
            0 => Self::Accepted,
            1 => Self::Refused,
            2 => Self::Nothing,
            3 => Self::Sent { sent: fields.u32()?, done: fields.u8()? != 0 },
            4 => Self::Summary(Summary::read(fields)?),
            5 => Self::SizeSeen { bytes: fields.u16()? },
            6 => {
                let mut flow = Flow {
                    bytes: fields.u64()?,
                    span_ns: fields.u64()?,
                    bin_ns: fields.u64()?,
                    ..Flow::default()
                };
                for bin in &mut flow.bins {
                    *bin = fields.u32()?;
                }
                Self::Stream(flow)
            }
            _ => return None,
        })
    }
}

impl Cookie {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { made_ns: fields.u64()?, tag: fields.bytes()? })
    }
}

impl Welcome {
    fn write<'a, 'b>(&self, room: &'a mut Room<'b>) -> &'a mut Room<'b> {
        room.put(&self.nonce).put(&self.server_nonce).u64(self.session).u64(self.epoch_ns);
        room.f64(self.rate_max_bps).u64(self.bytes_max).u64(self.duration_max_ns);
        room.u64(self.buffer_bytes).u64(self.buffer_asked_bytes)
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            nonce: fields.bytes()?,
            server_nonce: fields.bytes()?,
            session: fields.u64()?,
            epoch_ns: fields.u64()?,
            rate_max_bps: fields.f64().filter(|rate| *rate > 0.0)?,
            bytes_max: fields.u64()?,
            duration_max_ns: fields.u64()?,
            buffer_bytes: fields.u64()?,
            buffer_asked_bytes: fields.u64()?,
        })
    }
}

impl Stream {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            id: fields.u32()?,
            down: fields.u8()? != 0,
            write_bytes: fields.u32().filter(|bytes| (1..=16 << 20).contains(bytes))?,
            duration_ns: fields.u64()?,
            bytes_max: fields.u64()?,
        })
    }
}

/// Hands arbitrary bytes to the decoder, signed so that they get past the tag; for fuzzing.
///
/// What is accepted must say the same when it is written again.
#[doc(hidden)]
pub fn fuzz_packet(bytes: &[u8]) {
    let signer = crate::Key::from_bytes([7; 16]).outer().client;
    assert_eq!(Packet::decode(bytes, &signer), None, "nobody knows the key");
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let mut signed = bytes.to_vec();
    signed[..4].copy_from_slice(&MAGIC);
    signed[5..8].fill(0);
    let body = match signed[4] {
        kind::DATA if signed.len() >= DATA_BYTES => HEADER_BYTES..DATA_BYTES,
        kind::SIZE => HEADER_BYTES..HEADER_BYTES,
        _ => HEADER_BYTES..signed.len(),
    };
    let length = (signed.len() as u32).to_le_bytes();
    let tag = signer.tag(&[&signed[..SIGNED_BYTES], &length, &signed[body]]);
    signed[SIGNED_BYTES..HEADER_BYTES].copy_from_slice(&tag);
    let Some(packet) = Packet::decode(&signed, &signer) else { return };
    let mut buffer = [0; PACKET_MAX];
    let written = packet.encode(&signer, 0, &mut buffer);
    assert_eq!(Packet::decode(&buffer[..written], &signer), Some(packet));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Key;

    fn every_body() -> Vec<Body> {
        let (nonce, cookie) = ([3; 16], Cookie { made_ns: 9, tag: [4; 16] });
        let train = Train { id: 1, count: 10, size: 1_472, interval_ns: 161_000 };
        let summary = Summary { received: 9, lost: 1, kernel_drops: Some(3), ..Summary::default() };
        let asks = [
            Ask::Send(train),
            Ask::Sent { train: 1 },
            Ask::Summary { train: 1 },
            Ask::Sizes([1_472; SIZES_MAX]),
            Ask::SizeSeen,
            Ask::Stream { id: 1 },
        ];
        let answers = [
            Answer::Accepted,
            Answer::Refused,
            Answer::Nothing,
            Answer::Sent { sent: 7, done: true },
            Answer::Summary(summary),
            Answer::SizeSeen { bytes: 1_472 },
            Answer::Stream(Flow { bytes: 1, span_ns: 2, bin_ns: 3, bins: [4; FLOW_BINS] }),
        ];
        let mut bodies = vec![
            Body::Hello { nonce },
            Body::Challenge { nonce, cookie },
            Body::Start { nonce, cookie },
            Body::Wait { nonce, position: 2 },
            Body::Welcome(Welcome {
                nonce,
                server_nonce: nonce,
                session: 1,
                epoch_ns: 2,
                rate_max_bps: 1e9,
                bytes_max: 1,
                duration_max_ns: 1,
                buffer_bytes: 1,
                buffer_asked_bytes: 1,
            }),
            Body::Ping { sent_ns: 1 },
            Body::Pong { sent_ns: 1, arrived_ns: 2, answered_ns: 3 },
            Body::Data { train, seq: 9, sent_ns: 4 },
            Body::Size,
            Body::Stream(Stream { id: 1, down: true, write_bytes: 65_536, duration_ns: 1, bytes_max: 1 }),
        ];
        bodies.extend(asks.map(|ask| Body::Ask { id: 5, ask }));
        bodies.extend(answers.map(|answer| Body::Answer { id: 5, answer }));
        bodies.extend([Why::Done, Why::Limit, Why::Busy].map(|why| Body::Bye { why }));
        bodies
    }

    #[test]
    fn every_packet_round_trips_and_no_changed_bit_gets_through() {
        let signer = Key::from_bytes([1; 16]).outer().client;
        let other = Key::from_bytes([1; 16]).outer().server;
        let mut buffer = [0; PACKET_MAX];
        for body in every_body() {
            let packet = Packet { session: 8, number: 1 << 40, body };
            let len = packet.encode(&signer, 0, &mut buffer);
            assert_eq!(Packet::decode(&buffer[..len], &signer), Some(packet));
            assert_eq!(Packet::decode(&buffer[..len], &other), None);
            assert_eq!(Packet::decode(&buffer[..len - 1], &signer), None, "{body:?} cut");
            for bit in 0..len * 8 {
                buffer[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Packet::decode(&buffer[..len], &signer), None, "{body:?} with bit {bit} changed");
                buffer[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn filler_is_counted_but_not_read() {
        let signer = Key::from_bytes([1; 16]).outer().client;
        let train = Train { id: 1, count: 10, size: 1_472, interval_ns: 161_000 };
        let packet = Packet { session: 8, number: 0, body: Body::Data { train, seq: 3, sent_ns: 5 } };
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(&signer, 1_472, &mut buffer);
        let mut datagram = buffer[..len].to_vec();
        datagram.resize(1_472, 0xEE);
        assert_eq!(Packet::decode(&datagram, &signer), Some(packet));
        datagram.pop();
        assert_eq!(Packet::decode(&datagram, &signer), None);
    }

    #[test]
    fn no_answer_before_the_proof_is_longer_than_the_question() {
        let signer = Key::from_bytes([1; 16]).outer().client;
        let mut buffer = [0; PACKET_MAX];
        for body in every_body() {
            let len = Packet { session: 0, number: 0, body }.encode(&signer, 0, &mut buffer);
            match body {
                Body::Hello { .. } | Body::Start { .. } => assert_eq!(len, OPENING_BYTES),
                Body::Challenge { .. } | Body::Wait { .. } | Body::Welcome(_) => {
                    assert!(len <= OPENING_BYTES)
                }
                Body::Stream(_) => assert_eq!(len, STREAM_BYTES),
                _ => assert!(len < PACKET_MAX),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_understood(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..20) {
            let mut bytes = bytes;
            if let Some(place) = bytes.get_mut(4) {
                *place = kind;
            }
            fuzz_packet(&bytes);
        }
    }
}
