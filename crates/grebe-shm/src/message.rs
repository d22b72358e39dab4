//! Messages of a connection. One message is one packet, little-endian.
//!
//! ```text
//!   consumer --> Hello      policy, requested queue length and quota, name
//!   producer --> Welcome    sizes; with the memory of payload and lane     or  Refused: reason
//!            <-> Wake       work for the other, sleeping side
//!   producer --> Bye        reason for cutting the consumer off
//! ```

use grebe_frame::HEADER_BYTES;
use grebe_ring::Policy;

use crate::descriptions::Descriptions;

pub(crate) const MESSAGE_BYTES_MAX: usize = 256;
/// Memory with a message: payload and lane.
pub(crate) const MEMORIES_MAX: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// Introduction of a consumer.
    Hello(Hello),
    /// Admission.
    Welcome(Welcome),
    /// Refusal with the reason.
    Refused(String),
    /// Cut-off with the reason.
    Bye(String),
    /// Work for the other side.
    Wake,
}

/// Request of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Overflow policy.
    pub policy: Policy,
    /// Maximum queued batches.
    pub queue_batches: u32,
    /// Maximum chunks on loan: queued and held.
    pub quota_chunks: u32,
    /// Name in lists of consumers; at most 39 bytes are sent.
    pub name: String,
}

/// Grant of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// Bytes per chunk.
    pub chunk_bytes: u32,
    /// Chunks in the payload.
    pub chunks: u32,
    /// Words per chunk in the tables after the chunks.
    pub table_words: u32,
    /// Granted maximum of queued batches.
    pub queue_batches: u32,
    /// Granted maximum of chunks on loan.
    pub quota_chunks: u32,
}

/// Invalid packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// Wrong length, or wrong magic.
    #[error("it does not speak this protocol")]
    Foreign,
    /// Unsupported version.
    #[error("it speaks version {0} of the protocol, this is version {VERSION}")]
    Version(u16),
    /// Field with an impossible value.
    #[error("its {0} is invalid")]
    Field(&'static str),
}

impl Welcome {
    /// Length of the payload in bytes: chunks, then tables, then descriptions.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.descriptions_at() + Descriptions::words(self.chunks) * 8
    }

    /// Offset of the descriptions.
    pub(crate) fn descriptions_at(&self) -> usize {
        self.tables_at() + self.chunks as usize * self.table_words as usize * 8
    }

    /// Offset of the tables.
    pub(crate) fn tables_at(&self) -> usize {
        self.chunks as usize * self.chunk_bytes as usize
    }
}

impl Message {
    /// Writes the packet and returns its length.
    pub(crate) fn encode(&self, out: &mut [u8; MESSAGE_BYTES_MAX]) -> usize {
        out.fill(0);
        out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        let (kind, len) = match self {
            Message::Wake => {
                out[0] = WAKE;
                return 1;
            }
            Message::Hello(hello) => {
                let policy = POLICIES.iter().position(|known| *known == hello.policy).unwrap_or(0);
                put(out, &[policy as u32, hello.queue_batches, hello.quota_chunks]);
                let name = head(&hello.name, NAME_BYTES - 1).as_bytes();
                out[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
                (HELLO, NAME_AT + NAME_BYTES)
            }
            Message::Welcome(welcome) => {
                let Welcome { chunk_bytes, chunks, table_words, queue_batches, quota_chunks } = *welcome;
                put(out, &[chunk_bytes, chunks, table_words, queue_batches, quota_chunks]);
                (WELCOME, FIELDS_AT + 5 * 4)
            }
            Message::Refused(why) => (REFUSED, FIELDS_AT + put_text(out, why)),
            Message::Bye(why) => (BYE, FIELDS_AT + put_text(out, why)),
        };
        out[6..8].copy_from_slice(&u16::to_le_bytes(kind));
        len
    }

    /// Reads a packet and checks its values: sizes that fit this process, counts that are not zero.
    pub(crate) fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        if packet == [WAKE] {
            return Ok(Message::Wake);
        }
        if packet.len() < FIELDS_AT || packet.len() > MESSAGE_BYTES_MAX || packet[..4] != MAGIC.to_le_bytes()
        {
            return Err(Malformed::Foreign);
        }
        let short = |at: usize| u16::from_le_bytes([packet[at], packet[at + 1]]);
        if short(4) != VERSION {
            return Err(Malformed::Version(short(4)));
        }
        match (short(6), packet.len()) {
            (HELLO, HELLO_BYTES) => hello(packet),
            (WELCOME, WELCOME_BYTES) => welcome(packet),
            (REFUSED, _) => Ok(Message::Refused(text(&packet[FIELDS_AT..]))),
            (BYE, _) => Ok(Message::Bye(text(&packet[FIELDS_AT..]))),
            _ => Err(Malformed::Foreign),
        }
    }
}

fn hello(packet: &[u8]) -> Result<Message, Malformed> {
    let [policy, queue_batches, quota_chunks] = fields(packet);
    let policy = *POLICIES.get(policy as usize).ok_or(Malformed::Field("policy"))?;
    if queue_batches == 0 {
        return Err(Malformed::Field("length of the queue"));
    }
    if quota_chunks == 0 {
        return Err(Malformed::Field("quota"));
    }
    let name = &packet[NAME_AT..NAME_AT + NAME_BYTES];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    Ok(Message::Hello(Hello { policy, queue_batches, quota_chunks, name: text(&name[..end]) }))
}

fn welcome(packet: &[u8]) -> Result<Message, Malformed> {
    let [chunk_bytes, chunks, table_words, queue_batches, quota_chunks] = fields(packet);
    if chunk_bytes == 0 || !chunk_bytes.is_multiple_of(64) || chunk_bytes as usize > CHUNK_BYTES_MAX {
        return Err(Malformed::Field("size of a chunk"));
    }
    if table_words as usize > table_words_for(CHUNK_BYTES_MAX) {
        return Err(Malformed::Field("size of a table"));
    }
    let each = u64::from(chunk_bytes) + (u64::from(table_words) + Descriptions::words(1) as u64) * 8;
    // 2^40 bytes: more than any mapping, and sums of such sizes cannot overflow.
    let is_many = chunks as usize > CHUNKS_MAX;
    if chunks == 0 || is_many || u64::from(chunks).checked_mul(each).is_none_or(|bytes| bytes > 1 << 40) {
        return Err(Malformed::Field("number of chunks"));
    }
    if queue_batches == 0 || queue_batches > QUEUE_MAX {
        return Err(Malformed::Field("length of the queue"));
    }
    if quota_chunks == 0 || quota_chunks > chunks {
        return Err(Malformed::Field("quota"));
    }
    Ok(Message::Welcome(Welcome { chunk_bytes, chunks, table_words, queue_batches, quota_chunks }))
}

fn fields<const N: usize>(packet: &[u8]) -> [u32; N] {
    std::array::from_fn(|index| {
        let at = FIELDS_AT + index * 4;
        u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
    })
}

fn put(out: &mut [u8], fields: &[u32]) {
    for (place, field) in out[FIELDS_AT..].chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
}

fn put_text(out: &mut [u8], text: &str) -> usize {
    let text = head(text, MESSAGE_BYTES_MAX - FIELDS_AT).as_bytes();
    out[FIELDS_AT..FIELDS_AT + text.len()].copy_from_slice(text);
    text.len()
}

/// Text of another process, which may go to a terminal: no control characters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// First characters of a text that fit into `bytes`.
fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Words of a chunk's table, with two offsets each.
pub(crate) fn table_words_for(chunk_bytes: usize) -> usize {
    (chunk_bytes / HEADER_BYTES + 1).div_ceil(2)
}

pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 20;
pub(crate) const CHUNKS_MAX: usize = 1 << 20;
/// Maximum queued batches.
pub(crate) const QUEUE_MAX: u32 = 1 << 16;

/// Indexed by the number in a packet.
const POLICIES: [Policy; 3] = [Policy::Block, Policy::DropOldest, Policy::DropLatest];
const MAGIC: u32 = u32::from_le_bytes(*b"GSHM");
const VERSION: u16 = 3;
const HELLO: u16 = 1;
const WELCOME: u16 = 2;
const REFUSED: u16 = 3;
const BYE: u16 = 4;
const WAKE: u8 = b'w';
const FIELDS_AT: usize = 8;
const NAME_AT: usize = FIELDS_AT + 3 * 4;
const NAME_BYTES: usize = 40;
const HELLO_BYTES: usize = NAME_AT + NAME_BYTES;
const WELCOME_BYTES: usize = FIELDS_AT + 5 * 4;

#[cfg(test)]
mod tests;
