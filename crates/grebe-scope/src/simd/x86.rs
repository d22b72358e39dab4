//! x86-64: what does not depend on the kind of value.

use std::arch::x86_64::*;

#[inline]
pub(super) fn prefetch<V>(lines: &[V]) {
    for line in lines.chunks(64 / size_of::<V>()) {
        // SAFETY: SSE is part of x86-64, and a prefetch of any address has no effect but on the caches.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
}

/// Orders stores past the caches before later stores.
pub(super) fn fence() {
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() }
}
