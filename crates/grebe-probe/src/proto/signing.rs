//! Signing keys of each direction, derived from the ticket's key.

use grebe_packet::Key;

use crate::error::{Error, Result};

/// Length of a packet's tag.
pub(crate) const TAG_BYTES: usize = 16;

/// One signing key per direction, so that no packet can be reflected to its sender.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) client: Signer,
    pub(crate) server: Signer,
}

/// Signs and verifies packets.
#[derive(Clone)]
pub(crate) struct Signer([u8; 32]);

impl Keys {
    /// Keys for packets before a session.
    pub(crate) fn before_session(key: &Key) -> Self {
        Self::derive(&[key.as_bytes()])
    }

    /// The keys of one session.
    pub(crate) fn of_session(key: &Key, client_nonce: &[u8; 16], server_nonce: &[u8; 16]) -> Self {
        Self::derive(&[key.as_bytes(), client_nonce, server_nonce])
    }

    fn derive(material: &[&[u8]]) -> Self {
        let signer = |context| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            for part in material {
                hasher.update(part);
            }
            Signer(hasher.finalize().into())
        };
        Self {
            client: signer("grebe-probe 2 packets of the client"),
            server: signer("grebe-probe 2 packets of the server"),
        }
    }
}

impl Signer {
    /// Tag over the concatenated parts.
    #[inline]
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(part);
        }
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
        tag
    }

    /// Whether the tag is right, in constant time.
    #[inline]
    pub(crate) fn accepts(&self, parts: &[&[u8]], tag: &[u8; TAG_BYTES]) -> bool {
        self.tag(parts).iter().zip(tag).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// Unpredictable bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { action: "get random bytes", source: error.into() })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_and_session_has_its_own_key() {
        let key = Key::from_bytes([1; 32]);
        let before = Keys::before_session(&key);
        let session = Keys::of_session(&key, &[2; 16], &[3; 16]);
        let tags =
            [&before.client, &before.server, &session.client, &session.server].map(|it| it.tag(&[b"x"]));
        for (at, tag) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(tag));
        }
        assert!(before.client.accepts(&[b"x"], &tags[0]) && !before.client.accepts(&[b"y"], &tags[0]));
    }
}
