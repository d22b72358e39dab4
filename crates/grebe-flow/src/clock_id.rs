//! Which monotonic clock this is, of all hosts and boots.

use std::sync::OnceLock;

/// The clock of [`monotonic_ns`](crate::monotonic_ns): the same for all processes whose stamps can be subtracted from each other, and
/// another one on another host, after another boot, and in another time namespace. Where the system cannot say (anything but Linux), each
/// process has one of its own.
pub fn clock_id() -> u64 {
    static ID: OnceLock<u64> = OnceLock::new();
    *ID.get_or_init(|| of_system().unwrap_or_else(of_process))
}

#[cfg(target_os = "linux")]
fn of_system() -> Option<u64> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    // A kernel without time namespaces has one clock.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(hash(&[boot.trim_ascii_end(), namespace.as_os_str().as_encoded_bytes()]))
}

#[cfg(not(target_os = "linux"))]
fn of_system() -> Option<u64> {
    None
}

/// Of numbers that no other process has at once: its own, the time, and what the standard library draws for its hash maps.
fn of_process() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let drawn = RandomState::new().hash_one(std::process::id());
    let now_ns = crate::clock::realtime_ns();
    hash(&[&drawn.to_le_bytes(), &now_ns.to_le_bytes()])
}

/// FNV-1a: the same in every version, and no more than that is wanted.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_what_it_is_and_parts_tell_apart() {
        assert_eq!(clock_id(), clock_id());
        assert_ne!(of_process(), of_process());
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        #[cfg(target_os = "linux")]
        assert_eq!(of_system(), Some(clock_id()));
    }
}
