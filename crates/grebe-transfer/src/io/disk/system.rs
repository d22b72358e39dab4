//! What each system does in its own way: names, modes of new files, and reading and writing at a place in a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::Directory;
use crate::error::Error;

/// Another name would be taken; a full disk or a missing right is no matter of the name.
pub(super) fn is_about_the_name(error: &io::Error) -> bool {
    /// Linux and macOS: not a name in the file system's encoding.
    const EILSEQ: [i32; 2] = [84, 92];
    matches!(
        error.kind(),
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput | io::ErrorKind::AlreadyExists
    ) || error.raw_os_error().is_some_and(|code| cfg!(unix) && EILSEQ.contains(&code))
}

/// The bits that the system takes off the mode of a new file: there is no other way to ask that harms no other thread.
#[cfg(unix)]
pub(super) fn umask(folder: &Directory) -> io::Result<u16> {
    use std::os::unix::fs::PermissionsExt;
    let name = Path::new("umask");
    // One that a killed process left says nothing.
    let _ = folder.remove_file(name);
    let mode = folder.create_file(name, 0o777)?.metadata()?.permissions().mode();
    folder.remove_file(name)?;
    Ok(!(mode as u16) & 0o777)
}

/// Bytes of a name as a path below `above`.
#[cfg(unix)]
pub(super) fn join(above: &Path, name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    above.join(std::ffi::OsStr::from_bytes(name))
}

#[cfg(not(unix))]
pub(super) fn umask(_: &Directory) -> io::Result<u16> {
    Ok(0)
}

#[cfg(not(unix))]
pub(super) fn join(above: &Path, name: &[u8]) -> PathBuf {
    name.split(|byte| *byte == b'/').fold(above.to_path_buf(), |path, part| path.join(windows_name(part)))
}

/// Which names files can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRules {
    /// All that a sender may name.
    Unix,
    Windows,
}

impl NameRules {
    pub(super) const HERE: Self = if cfg!(unix) { Self::Unix } else { Self::Windows };

    /// Whether the last part of a name becomes another one.
    pub(super) fn rename(self, name: &[u8]) -> bool {
        let part = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
        self == Self::Windows && windows_name(part).as_bytes() != part
    }
}

/// What Windows takes for a path, a stream, a pattern or a device becomes another letter.
fn windows_name(name: &[u8]) -> String {
    let plain = String::from_utf8_lossy(name);
    let mut plain: String = plain
        .chars()
        .map(|letter| if letter.is_control() || r#"<>:"/\|?*"#.contains(letter) { '_' } else { letter })
        .collect();
    let stem = plain.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_device = matches!(&*stem, "con" | "prn" | "aux" | "nul")
        || matches!(stem.split_at_checked(3), Some(("com" | "lpt", rest)) if rest.chars().count() == 1);
    if is_device || plain.ends_with(['.', ' ']) {
        plain.push('_');
    }
    plain
}

/// Bytes that the file system has room for, where it says so.
#[cfg(unix)]
pub(super) fn free_bytes(directory: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        offset += read as u64;
    }
    Ok(())
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::File { action, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_windows_cannot_have_become_others() {
        for (name, other) in [
            (&b"obs_2024-01-01T12:00:00.fits"[..], "obs_2024-01-01T12_00_00.fits"),
            (b"a\\b?", "a_b_"),
            (b"con.txt", "con.txt_"),
            (b"end.", "end._"),
            (b"\xff", "\u{fffd}"),
            ("é.bin".as_bytes(), "é.bin"),
        ] {
            assert_eq!(windows_name(name), other);
        }
    }
}
