//! Memory of chunks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Memory that chunks are cut from: the heap, or a mapping made by another crate.
///
/// # Safety
/// `base..base + len` stays mapped, readable and initialised until the value is dropped, and `base` is
/// aligned to 64 bytes. Nobody writes to a lent chunk, except through the pool that lent it. If another
/// process has write access, the implementer trusts that process, and tells its own callers
/// ([`TrustedImport`](crate::TrustedImport)).
pub unsafe trait Memory: Send + Sync {
    /// First byte.
    fn base(&self) -> NonNull<u8>;
    /// Length in bytes.
    fn len(&self) -> usize;
    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Memory that this process may write to.
///
/// # Safety
/// `base..base + len` is writable until the value is dropped, and only the one pool made over it writes
/// there.
pub unsafe trait MemoryMut: Memory {}

/// Zeroed heap memory, aligned to a page, or to a huge page if it can hold one.
pub(crate) struct Heap {
    allocated: NonNull<u8>,
    layout: Layout,
    base: NonNull<u8>,
    len: usize,
}

impl Heap {
    pub(crate) fn zeroed(len: usize) -> Self {
        let (len, align) = (len.max(ALIGN), if len >= HUGE_PAGE { HUGE_PAGE } else { PAGE });
        // Aligned by hand. For a large alignment the standard library's allocator zeroes the memory itself.
        // That touches every page, even of chunks that are never used. Without alignment it gets fresh pages
        // as they are.
        let size = len.checked_add(align).expect("pool size overflows");
        let layout = Layout::from_size_align(size, 1).expect("pool size overflows");
        // SAFETY: the size is not zero.
        let allocated =
            NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let skip = allocated.as_ptr().align_offset(align);
        // SAFETY: less than `align`, by which the allocation is longer than `len`.
        let base = unsafe { allocated.add(skip) };
        Self { allocated, layout, base, len }
    }
}

// SAFETY: within its own allocation, aligned to a page, zeroed, freed on drop.
unsafe impl Memory for Heap {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.len
    }
}

// SAFETY: its own, and passed only to a pool.
unsafe impl MemoryMut for Heap {}

// SAFETY: plain memory, accessed only through the pool.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) }
    }
}

/// Chunks begin at multiples of a cache line.
pub(crate) const ALIGN: usize = 64;
const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Mapping of zero bytes.
    struct Nothing;

    // SAFETY: the range is empty.
    unsafe impl Memory for Nothing {
        fn base(&self) -> NonNull<u8> {
            NonNull::dangling()
        }

        fn len(&self) -> usize {
            0
        }
    }

    #[test]
    fn memory_without_bytes_is_empty() {
        assert!(Nothing.is_empty());
        assert!(!Heap::zeroed(0).is_empty());
    }

    #[test]
    fn heap_memory_lies_where_huge_pages_can_hold_it() {
        assert_eq!(
            (Heap::zeroed(0).len(), Heap::zeroed(100).len(), Heap::zeroed(HUGE_PAGE).len()),
            (64, 100, HUGE_PAGE)
        );
        for (len, align) in
            [(PAGE, PAGE), (HUGE_PAGE - 1, PAGE), (HUGE_PAGE, HUGE_PAGE), (3 * HUGE_PAGE, HUGE_PAGE)]
        {
            let memory = Heap::zeroed(len);
            assert_eq!(memory.base().as_ptr() as usize % align, 0, "{len} bytes");
        }
    }
}
