//! Size of a core's private cache.

/// Size of the second-level cache, if the system provides it.
#[cfg(target_os = "linux")]
pub(crate) fn own_bytes() -> Option<usize> {
    (0..8).find_map(|index| {
        let of = |what| {
            std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok()
        };
        (of("level")?.trim() == "2").then(|| size(&of("size")?)).flatten()
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn own_bytes() -> Option<usize> {
    None
}

/// Size in the kernel's notation: `2048K`.
#[cfg(any(test, target_os = "linux"))]
fn size(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, unit) = match text.strip_suffix(['K', 'M']) {
        Some(digits) => (digits, if text.ends_with('K') { 1 << 10 } else { 1 << 20 }),
        None => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            ["2048K\n", "2M", "512", "K", "", "-1K"].map(size),
            [Some(2 << 20), Some(2 << 20), Some(512), None, None, None]
        );
        assert!(own_bytes().is_none_or(|bytes| bytes >= 1 << 10));
    }
}
