//! Platform differences in writing a file.
//!
//! | | Linux | macOS | Windows |
//! |---|---|---|---|
//! | past the page cache | `O_DIRECT` | `F_NOCACHE` | a second handle, with `FILE_FLAG_NO_BUFFERING` |
//! | reserves room | `fallocate` | - | allocation size |
//! | free bytes | `fstatvfs` | `fstatvfs` | `FileFsFullSizeInformation` |
//!
//! Each system has the same functions, and `Direct`: what it opened to bypass the page cache.

#[cfg(target_os = "linux")]
#[path = "sys/linux.rs"]
mod imp;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "sys/macos.rs"]
mod imp;
#[cfg(windows)]
#[path = "sys/windows.rs"]
#[allow(unsafe_code, reason = "system calls")]
mod imp;

#[cfg(target_os = "linux")]
pub(super) use imp::Bell;
pub(super) use imp::{
    Direct, WRITES_IN_PARALLEL, free_bytes, go_buffered, go_direct, open_folder, reserve, write_at,
};

/// Wakes a thread that waits for something else than messages: never on these systems.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum Bell {}

#[cfg(not(target_os = "linux"))]
impl Bell {
    pub(super) fn ring(&self) {
        match *self {}
    }
}

/// Alignment of offsets, lengths and memory past the page cache: memory is aligned to it, and every device's block
/// divides it.
pub(super) const ALIGNMENT: usize = 4096;
