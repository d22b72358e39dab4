//! Packets. Each is signed, and its tag is checked before anything is used or answered.
//!
//! ```text
//!  0       4      5       8         16        24             40
//!  | magic | kind | zeros | session | number  | tag          | body ...          [| filler of Data and Size |]
//!  '---------------- signed, with the length and the body ---'
//! ```
//!
//! Numbers are big-endian. The filler is not signed, so a datagram of any size costs one hash of some hundred
//! bytes.

mod body;
mod request;
#[cfg(test)]
mod tests;

use grebe_packet::{Key, Reader, Writer};

pub(crate) use self::body::{Body, EndReason, Welcome};
use self::body::{DATA_BODY_BYTES, KIND_DATA, KIND_SIZE};
use self::request::TCP_REQUEST_BYTES;
pub(crate) use self::request::{Request, Response, SIZES_MAX, TCP_BINS, TcpArrivals, TcpRequest};
use crate::proto::signing::{Keys, Signer, TAG_BYTES};

/// Version of the protocol. Ends of different versions do not understand each other.
pub const PROTOCOL: u32 = 2;

/// Maximum length of a packet without its filler.
pub(crate) const PACKET_MAX: usize = 320;

/// Length of a client's first packets, so that no answer before the proof of its address is longer.
pub(crate) const OPENING_BYTES: usize = 256;

/// Bytes of a train's datagram before its filler.
pub(crate) const DATA_BYTES: usize = HEADER_BYTES + DATA_BODY_BYTES;

/// Bytes that open a TCP connection.
pub(crate) const TCP_OPENING_BYTES: usize = HEADER_BYTES + TCP_REQUEST_BYTES;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packet {
    pub(crate) session: u64,
    pub(crate) number: u64,
    pub(crate) body: Body,
}

impl Packet {
    /// Writes and signs the packet, and returns the bytes written. `len` is the length of the datagram with
    /// its filler, or 0 for no filler.
    pub(crate) fn encode(&self, signer: &Signer, len: usize, buffer: &mut [u8; PACKET_MAX]) -> usize {
        let mut writer = Writer::new(buffer);
        writer.put(&MAGIC).u8(self.body.kind()).zeros(3).u64(self.session).u64(self.number);
        writer.zeros(TAG_BYTES);
        self.body.write(&mut writer);
        let body_end = writer.written().expect("every body fits");
        let written = if self.body.is_opening() { OPENING_BYTES } else { body_end };
        let total = len.max(written) as u32;
        let (signed, rest) = buffer.split_at_mut(SIGNED_BYTES);
        let (tag, body) = rest.split_at_mut(TAG_BYTES);
        tag.copy_from_slice(&signer.tag(&[signed, &total.to_be_bytes(), &body[..written - HEADER_BYTES]]));
        written
    }

    /// Packet of a datagram, if `signer` signed it.
    #[inline]
    pub(crate) fn decode(datagram: &[u8], signer: &Signer) -> Option<Self> {
        let mut reader = Reader::new(datagram);
        let (magic, kind, zeros) = (reader.array::<4>().ok()?, reader.u8().ok()?, reader.array::<3>().ok()?);
        let (session, number, tag) =
            (reader.u64().ok()?, reader.u64().ok()?, reader.array::<TAG_BYTES>().ok()?);
        if magic != MAGIC || zeros != [0; 3] {
            return None;
        }
        let body = match kind {
            KIND_DATA => reader.take(DATA_BODY_BYTES).ok()?,
            KIND_SIZE => &[],
            _ if datagram.len() > PACKET_MAX => return None,
            _ => reader.all(),
        };
        let length = (datagram.len() as u32).to_be_bytes();
        if !signer.accepts(&[&datagram[..SIGNED_BYTES], &length, body], &tag) {
            return None;
        }
        Some(Self { session, number, body: Body::read(kind, body).ok()? })
    }

    /// Whether a datagram claims to belong to a train, before any check.
    #[inline]
    pub(crate) fn may_be_data(datagram: &[u8]) -> bool {
        datagram.len() >= DATA_BYTES && datagram[4] == KIND_DATA
    }

    /// Whether a datagram claims to test its length, before any check.
    pub(crate) fn may_be_size(datagram: &[u8]) -> bool {
        datagram.len() >= HEADER_BYTES && datagram[4] == KIND_SIZE
    }

    /// Session that a datagram claims, before any check.
    #[inline]
    pub(crate) fn claimed_session(datagram: &[u8]) -> Option<u64> {
        datagram.get(8..16)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

const HEADER_BYTES: usize = 8 + 8 + 8 + TAG_BYTES;
const SIGNED_BYTES: usize = HEADER_BYTES - TAG_BYTES;
const MAGIC: [u8; 4] = *b"GPB2";

/// Passes arbitrary bytes to the decoder with a valid signature, for fuzzing.
///
/// An accepted packet must stay the same when written again.
#[doc(hidden)]
pub fn fuzz_packet(bytes: &[u8]) {
    let signer = Keys::before_session(&Key::from_bytes([7; Key::BYTES])).client;
    assert_eq!(Packet::decode(bytes, &signer), None, "nobody knows the key");
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let mut signed = bytes.to_vec();
    signed[..4].copy_from_slice(&MAGIC);
    signed[5..8].fill(0);
    let body = match signed[4] {
        KIND_DATA if signed.len() >= DATA_BYTES => HEADER_BYTES..DATA_BYTES,
        KIND_SIZE => HEADER_BYTES..HEADER_BYTES,
        _ => HEADER_BYTES..signed.len(),
    };
    let length = (signed.len() as u32).to_be_bytes();
    let tag = signer.tag(&[&signed[..SIGNED_BYTES], &length, &signed[body]]);
    signed[SIGNED_BYTES..HEADER_BYTES].copy_from_slice(&tag);
    let Some(packet) = Packet::decode(&signed, &signer) else { return };
    let mut buffer = [0; PACKET_MAX];
    let written = packet.encode(&signer, 0, &mut buffer);
    assert_eq!(Packet::decode(&buffer[..written], &signer), Some(packet));
}
