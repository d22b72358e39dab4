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
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
pub(super) use imp::Bell;
#[cfg(windows)]
pub(super) use imp::{Direct, WRITES_IN_PARALLEL, free_bytes, open_folder, write_at};
pub(super) use imp::{go_buffered, go_direct, reserve};
#[cfg(unix)]
pub(super) use unix::{Direct, WRITES_IN_PARALLEL, free_bytes, open_folder, write_at};

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
