//! Primitives of the handshake: those of ring, which also protects the packets. Only the curve is another's, because a
//! private key of ring agrees once, and a forged reply must not use it up.

use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::proto::wire::TAG_BYTES;

/// Those of `Noise_*_25519_ChaChaPoly_SHA256`.
pub(super) struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(System))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(X25519::default()) as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| Box::new(Sha256(Context::new(&SHA256))) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly(key(&[0; 32]))) as _)
    }
}

/// Random numbers of the system.
struct System;

impl Random for System {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        getrandom::fill(bytes).map_err(|_| Error::Rng)
    }
}

#[derive(Default, Zeroize, ZeroizeOnDrop)]
struct X25519 {
    private: [u8; 32],
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(self.private).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; 32];
        random.try_fill_bytes(&mut private)?;
        self.set(&private);
        private.zeroize();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], shared: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        let agreed = MontgomeryPoint(*public).mul_clamped(self.private);
        shared.first_chunk_mut().ok_or(Error::Dh).map(|shared| *shared = agreed.to_bytes())
    }
}

struct Sha256(Context);

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Context::new(&SHA256);
    }

    fn input(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn result(&mut self, sum: &mut [u8]) {
        sum[..32].copy_from_slice(self.0.clone().finish().as_ref());
    }
}

struct ChaChaPoly(LessSafeKey);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, bytes: &[u8; 32]) {
        self.0 = key(bytes);
    }

    fn encrypt(&self, number: u64, head: &[u8], plain: &[u8], sealed: &mut [u8]) -> usize {
        let length = plain.len() + TAG_BYTES;
        let (text, tag) = sealed[..length].split_at_mut(plain.len());
        text.copy_from_slice(plain);
        let made = self.0.seal_in_place_separate_tag(nonce(number), Aad::from(head), text);
        tag.copy_from_slice(made.expect("a message of a handshake is short").as_ref());
        length
    }

    fn decrypt(&self, number: u64, head: &[u8], sealed: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        // There is no room for the tag in `plain`.
        let mut opened = sealed.to_vec();
        let opened = self.0.open_in_place(nonce(number), Aad::from(head), &mut opened);
        let opened = opened.map_err(|_| Error::Decrypt)?;
        plain.get_mut(..opened.len()).ok_or(Error::Decrypt)?.copy_from_slice(opened);
        Ok(opened.len())
    }
}

fn key(bytes: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("a key has 32 bytes"))
}

/// Noise, section 12.3: four zero bytes, then the number as little-endian.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use snow::Builder;

    use super::*;

    /// From the collection of test vectors of the Noise implementations (cacophony).
    #[test]
    fn a_handshake_has_the_bytes_of_other_implementations() {
        let bytes = |hex: &str| HEXLOWER.decode(hex.as_bytes()).unwrap();
        let psk: [u8; 32] = *b"This is my Austrian perspective!";
        let ephemerals = [
            bytes("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"),
            bytes("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"),
        ];
        let builder = |ephemeral| {
            let builder = Builder::with_resolver(
                "Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().unwrap(),
                Box::new(Primitives),
            );
            let builder = builder.psk(0, &psk).unwrap().prologue(b"John Galt").unwrap();
            builder.fixed_ephemeral_key_for_testing_only(ephemeral)
        };
        let mut initiator = builder(&ephemerals[0]).build_initiator().unwrap();
        let mut responder = builder(&ephemerals[1]).build_responder().unwrap();
        for (plain, sealed, is_first) in [
            (
                &b"Ludwig von Mises"[..],
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                 79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54",
                true,
            ),
            (
                b"Murray Rothbard",
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
                 d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3",
                false,
            ),
        ] {
            let (mut message, mut read) = ([0; 100], [0; 100]);
            let (writer, reader) =
                if is_first { (&mut initiator, &mut responder) } else { (&mut responder, &mut initiator) };
            let length = writer.write_message(plain, &mut message).unwrap();
            assert_eq!(HEXLOWER.encode(&message[..length]), sealed);
            let length = reader.read_message(&message[..length], &mut read).unwrap();
            assert_eq!(&read[..length], plain);
        }
        assert_eq!(
            HEXLOWER.encode(initiator.get_handshake_hash()),
            "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf"
        );
    }
}
