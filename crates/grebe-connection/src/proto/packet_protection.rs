//! Packet protection: AES-256-GCM with the packet number as nonce, one key per direction, and a new key every 2^20 packets.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::proto::wire::{HEADER_BYTES, Header, TAG_BYTES, expand_number};

/// Packets per key, well below the limit of AES-GCM in RFC 9001, appendix B.
const PACKETS_PER_KEY_LOG2: u32 = 20;

/// Seals outgoing packets.
pub(crate) struct Sealer {
    connection: u32,
    generation: u64,
    secret: Secret,
    key: LessSafeKey,
}

/// Opens incoming packets. It keeps the keys before and after the present one, so that reordering across a
/// key change loses no packet.
pub(crate) struct Opener {
    connection: u32,
    generation: u64,
    secret: Secret,
    before: Option<LessSafeKey>,
    now: LessSafeKey,
    after: LessSafeKey,
}

/// Secret from which the keys of one direction are derived in turn. Older secrets cannot be computed from it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl Sealer {
    pub(crate) fn new(connection: u32, secret: Secret) -> Result<Self> {
        Ok(Self { connection, generation: 0, key: secret.key()?, secret })
    }

    /// Seals one packet in place: `datagram` has [`HEADER_BYTES`] for the header, the frame, and
    /// [`TAG_BYTES`] for the tag. Numbers must ascend; none may be used twice.
    pub(crate) fn seal(&mut self, number: u64, datagram: &mut [u8]) -> Result<()> {
        let generation = number >> PACKETS_PER_KEY_LOG2;
        while self.generation < generation {
            self.secret = self.secret.next();
            self.key = self.secret.key()?;
            self.generation += 1;
        }
        let (head, rest) = datagram
            .split_first_chunk_mut::<HEADER_BYTES>()
            .ok_or(Error::Malformed { what: "no room for a header" })?;
        let header =
            Header { key_phase: generation & 1 == 1, connection: self.connection, number: number as u32 };
        header.encode(head);
        let (plain, tag_place) =
            rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(Error::Malformed { what: "no room for a tag" })?;
        let tag = self.key.seal_in_place_separate_tag(nonce(number), Aad::from(&head[..]), plain);
        tag_place.copy_from_slice(
            tag.map_err(|_| Error::Malformed { what: "a packet too long to seal" })?.as_ref(),
        );
        Ok(())
    }
}

impl Opener {
    pub(crate) fn new(connection: u32, secret: Secret) -> Result<Self> {
        Ok(Self {
            connection,
            generation: 0,
            before: None,
            now: secret.key()?,
            after: secret.next().key()?,
            secret,
        })
    }

    /// Full number of a packet that claims to belong to this session. The claim is not proven yet.
    pub(crate) fn number(&self, datagram: &[u8], expected: u64) -> Result<u64> {
        let header = Header::decode(datagram)?;
        if header.connection != self.connection {
            return Err(Error::NotAuthentic);
        }
        Ok(expand_number(header.number, expected))
    }

    /// Opens one packet in place and returns the frame. `number` comes from [`number`](Self::number) and is
    /// not a replay.
    pub(crate) fn open<'a>(&mut self, number: u64, datagram: &'a mut [u8]) -> Result<&'a [u8]> {
        let generation = number >> PACKETS_PER_KEY_LOG2;
        let (head, rest) = datagram.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Error::NotAuthentic)?;
        if u64::from(head[0] & 1) != generation & 1 {
            return Err(Error::NotAuthentic);
        }
        // A forged number must not trigger key derivation, so only neighbouring keys are tried.
        let key = match generation.wrapping_sub(self.generation) {
            0 => &self.now,
            1 => &self.after,
            u64::MAX => self.before.as_ref().ok_or(Error::NotAuthentic)?,
            _ => return Err(Error::NotAuthentic),
        };
        let plain =
            key.open_in_place(nonce(number), Aad::from(&head[..]), rest).map_err(|_| Error::NotAuthentic)?;
        if generation == self.generation + 1 {
            self.secret = self.secret.next();
            let after = self.secret.next().key()?;
            let now = std::mem::replace(&mut self.after, after);
            self.before = Some(std::mem::replace(&mut self.now, now));
            self.generation = generation;
        }
        Ok(plain)
    }
}

impl Secret {
    fn next(&self) -> Self {
        Self(blake3::derive_key("grebe transfer 1 next secret", &self.0))
    }

    /// Initial secret of the second session of the same handshake.
    pub(crate) fn second(&self) -> Self {
        Self(blake3::derive_key("grebe transfer 1 second session", &self.0))
    }

    fn key(&self) -> Result<LessSafeKey> {
        let mut bytes = blake3::derive_key("grebe transfer 1 packet key", &self.0);
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map(LessSafeKey::new);
        bytes.zeroize();
        key.map_err(|_| Error::Keys { what: "the cipher takes no key".into() })
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Sealer, Opener) {
        (Sealer::new(5, Secret([9; 32])).unwrap(), Opener::new(5, Secret([9; 32])).unwrap())
    }

    fn sealed(sealer: &mut Sealer, number: u64, frame: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0; HEADER_BYTES][..], frame, &[0; TAG_BYTES]].concat();
        sealer.seal(number, &mut datagram).unwrap();
        datagram
    }

    fn open(opener: &mut Opener, expected: u64, datagram: &[u8]) -> Result<Vec<u8>> {
        let mut datagram = datagram.to_vec();
        let number = opener.number(&datagram, expected)?;
        opener.open(number, &mut datagram).map(<[u8]>::to_vec)
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let (mut sealer, mut opener) = pair();
        let datagram = sealed(&mut sealer, 3, b"frame");
        assert_eq!(open(&mut opener, 0, &datagram).unwrap(), b"frame");
        for bit in 0..datagram.len() * 8 {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut opener, 0, &changed).is_err(), "bit {bit}");
        }
        assert!(!datagram.windows(5).any(|window| window == b"frame"));
    }

    #[test]
    fn keys_change_and_packets_may_overtake_each_other_across_the_change() {
        let (mut sealer, mut opener) = pair();
        let border = 1 << PACKETS_PER_KEY_LOG2;
        let early = sealed(&mut sealer, border - 1, b"early");
        let late = sealed(&mut sealer, border, b"late");
        let later = sealed(&mut sealer, 2 * border, b"later");
        assert!(open(&mut opener, border - 1, &later).is_err(), "two keys ahead");
        assert_eq!(open(&mut opener, border - 1, &late).unwrap(), b"late");
        assert_eq!(open(&mut opener, border + 1, &early).unwrap(), b"early");
        assert_eq!(open(&mut opener, border + 1, &later).unwrap(), b"later");
        assert!(open(&mut opener, 2 * border, &early).is_err(), "its key is gone");
    }

    #[test]
    fn directions_and_sessions_do_not_mix() {
        let (mut sealer, _) = pair();
        let datagram = sealed(&mut sealer, 3, b"frame");
        let mut other_key = Opener::new(5, Secret([8; 32])).unwrap();
        assert!(matches!(open(&mut other_key, 0, &datagram), Err(Error::NotAuthentic)));
        let mut other_connection = Opener::new(6, Secret([9; 32])).unwrap();
        assert!(matches!(open(&mut other_connection, 0, &datagram), Err(Error::NotAuthentic)));
    }
}
