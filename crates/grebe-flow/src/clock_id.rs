//! Identity of a monotonic clock among all hosts and boots.

use std::sync::OnceLock;

/// Identifier of the clock of [`monotonic_ns`](crate::monotonic_ns). Processes with the same identifier have
/// comparable stamps. It differs on another host, after a reboot, and in another time namespace. On other
/// systems than Linux each process has its own.
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

/// Identifier unique to this process: from its number, the time, and the random state of the standard
/// library's hash maps.
fn of_process() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let drawn = RandomState::new().hash_one(std::process::id());
    let now_ns = crate::clock::realtime_ns();
    hash(&[&drawn.to_le_bytes(), &now_ns.to_le_bytes()])
}

/// FNV-1a, because it is stable across versions and nothing more is needed.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_id_is_constant_and_differs_between_hosts() {
        assert_eq!(clock_id(), clock_id());
        assert_ne!(of_process(), of_process());
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        #[cfg(target_os = "linux")]
        assert_eq!(of_system(), Some(clock_id()));
    }
}
