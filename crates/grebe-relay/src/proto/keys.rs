//! Keys that both ends of a ticket derive from its key. The relay learns the public half of one pair, from
//! which nothing leads back.

use grebe_packet::Key;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::proto::message::{
    KNOCK_BYTES, MeetingKey, MessageBuf, SEALED_BYTES_MAX, SIGNATURE_BYTES, Side, put_signature, signed_parts,
};

/// Keys of one meeting.
pub(crate) struct MeetingKeys {
    pub(crate) meeting: MeetingKey,
    pair: Ed25519KeyPair,
    /// Keys for the candidates of each side.
    waits: LessSafeKey,
    asks: LessSafeKey,
    knock: LessSafeKey,
}

impl MeetingKeys {
    /// # Errors
    /// [`Error::Keys`] if they cannot be computed.
    pub(crate) fn new(key: &Key) -> Result<Self> {
        let seed = derive("grebe relay 1 meeting", key);
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed)
            .map_err(|error| Error::Keys { what: error.to_string() })?;
        let mut meeting = [0; 32];
        meeting.copy_from_slice(pair.public_key().as_ref());
        Ok(Self {
            meeting,
            pair,
            waits: sealing_key("grebe relay 1 candidates of the end that waits", key)?,
            asks: sealing_key("grebe relay 1 candidates of the end that asks", key)?,
            knock: sealing_key("grebe relay 1 knock", key)?,
        })
    }

    /// Signs a JOIN.
    pub(crate) fn sign(&self, join: &mut MessageBuf) {
        let signature = self.pair.sign(&said(join));
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(signature.as_ref());
        put_signature(join, &bytes);
    }

    /// Encrypts data of `side` for the other end.
    ///
    /// # Errors
    /// [`Error::Keys`] if the system has no random numbers.
    pub(crate) fn seal(&self, side: Side, plain: &[u8]) -> Result<Vec<u8>> {
        debug_assert!(plain.len() <= PLAIN_BYTES_MAX);
        let nonce = random_nonce()?;
        let mut sealed = [&nonce[..], plain].concat();
        let tag = self
            .of(side)
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&self.meeting),
                &mut sealed[NONCE_LEN..],
            )
            .map_err(|_| Error::Malformed { what: "too long to seal" })?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Decrypts data of the end of `side`.
    ///
    /// # Errors
    /// [`Error::NotAuthentic`].
    pub(crate) fn open(&self, side: Side, sealed: &[u8]) -> Result<Vec<u8>> {
        open(self.of(side), &self.meeting, sealed)
    }

    /// # Errors
    /// [`Error::Keys`] if the system has no random numbers.
    pub(crate) fn knock(&self) -> Result<[u8; KNOCK_BYTES]> {
        let nonce = random_nonce()?;
        let tag = self
            .knock
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&self.meeting),
                &mut [],
            )
            .map_err(|_| Error::Malformed { what: "too long to seal" })?;
        let mut seal = [0; KNOCK_BYTES];
        seal[..NONCE_LEN].copy_from_slice(&nonce);
        seal[NONCE_LEN..].copy_from_slice(tag.as_ref());
        Ok(seal)
    }

    pub(crate) fn is_knock(&self, seal: &[u8; KNOCK_BYTES]) -> bool {
        open(&self.knock, &self.meeting, seal).is_ok()
    }

    fn of(&self, side: Side) -> &LessSafeKey {
        match side {
            Side::Waits => &self.waits,
            Side::Asks => &self.asks,
        }
    }
}

/// Whether the sender of a JOIN has the ticket of its meeting.
pub(crate) fn is_signed(join: &MessageBuf, meeting: &MeetingKey, signature: &[u8; SIGNATURE_BYTES]) -> bool {
    UnparsedPublicKey::new(&ED25519, meeting).verify(&said(join), signature).is_ok()
}

/// Signed bytes of a JOIN.
fn said(join: &MessageBuf) -> Vec<u8> {
    let [before, behind] = signed_parts(join);
    [&b"grebe relay 1 join"[..], before, behind].concat()
}

fn open(key: &LessSafeKey, meeting: &MeetingKey, sealed: &[u8]) -> Result<Vec<u8>> {
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(Error::NotAuthentic)?;
    let mut plain = rest.to_vec();
    let len = key
        .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(meeting), &mut plain)
        .map_err(|_| Error::NotAuthentic)?
        .len();
    plain.truncate(len);
    Ok(plain)
}

fn sealing_key(context: &str, key: &Key) -> Result<LessSafeKey> {
    let secret = derive(context, key);
    let key =
        UnboundKey::new(&AES_256_GCM, &*secret).map_err(|error| Error::Keys { what: error.to_string() })?;
    Ok(LessSafeKey::new(key))
}

fn derive(context: &str, key: &Key) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(context, key.as_bytes()))
}

/// A few hundred nonces per key: collisions of 96 random bits are negligible.
fn random_nonce() -> Result<[u8; NONCE_LEN]> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|error| Error::Keys { what: error.to_string() })?;
    Ok(nonce)
}

/// Room for candidates beside nonce and tag.
pub(crate) const PLAIN_BYTES_MAX: usize = SEALED_BYTES_MAX - NONCE_LEN - 16;

#[cfg(test)]
mod tests {
    use grebe_packet::Cookie;

    use super::*;
    use crate::proto::message::{Join, Message};

    fn keys(byte: u8) -> MeetingKeys {
        MeetingKeys::new(&Key::from_bytes([byte; 32])).unwrap()
    }

    #[test]
    fn only_the_ticket_opens_and_each_side_has_its_own_key() {
        let (ours, theirs) = (keys(1), keys(2));
        let sealed = ours.seal(Side::Waits, b"here").unwrap();
        assert_eq!(keys(1).open(Side::Waits, &sealed).unwrap(), b"here");
        assert!(ours.open(Side::Asks, &sealed).is_err() && theirs.open(Side::Waits, &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(ours.open(Side::Waits, &changed).is_err(), "byte {at}");
            assert!(ours.open(Side::Waits, &sealed[..at]).is_err());
        }
        let knock = ours.knock().unwrap();
        assert!(keys(1).is_knock(&knock) && !theirs.is_knock(&knock));
        assert!(ours.seal(Side::Waits, &[0; PLAIN_BYTES_MAX]).unwrap().len() <= SEALED_BYTES_MAX);
    }

    #[test]
    fn every_byte_of_a_join_is_signed() {
        let keys = keys(1);
        let join = Join {
            side: Side::Asks,
            is_leaving: false,
            meeting: keys.meeting,
            end: 7,
            number: 8,
            cookie: Cookie::default(),
            signature: [0; SIGNATURE_BYTES],
            sealed: b"sealed",
        };
        let mut bytes = Message::Join(join).encode();
        keys.sign(&mut bytes);
        let check = |bytes: &MessageBuf| match Message::decode(bytes) {
            Ok(Message::Join(join)) => is_signed(bytes, &join.meeting, &join.signature),
            _ => false,
        };
        assert!(check(&bytes));
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert!(!check(&changed), "byte {at}");
        }
    }
}
