//! Unpredictable numbers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A new number per call, from hashers with random keys of the system.
pub(crate) fn id() -> [u8; 16] {
    let word = || RandomState::new().build_hasher().finish().to_le_bytes();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&word());
    id[8..].copy_from_slice(&word());
    id
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_are_alike() {
        let ids: std::collections::BTreeSet<_> = (0..100).map(|_| super::id()).collect();
        assert_eq!(ids.len(), 100);
    }
}
