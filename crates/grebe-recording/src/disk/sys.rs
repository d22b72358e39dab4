//! Platform differences in writing a file.

#[cfg(target_os = "linux")]
#[path = "sys/linux.rs"]
mod imp;
#[cfg(not(target_os = "linux"))]
#[path = "sys/other.rs"]
mod imp;

pub(super) use imp::{Bell, free_bytes, go_buffered, go_direct, reserve, write_at};
