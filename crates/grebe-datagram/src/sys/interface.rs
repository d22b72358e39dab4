//! Index of a network interface on Unix.

use std::ffi::CString;

/// Index of the interface with this name (if_nametoindex(3)).
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` ends with a zero byte, and is only read.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index > 0).then_some(index)
}
