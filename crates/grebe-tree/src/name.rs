//! Names as bytes: validation and display.

use std::borrow::Cow;

pub(crate) use grebe_packet::printable;

/// Folder at the destination's root for incomplete files. Peers may not use names with our prefix.
pub(crate) const PARTIAL: &[u8] = b".grebe-partial";

/// Prefix of all our own names.
pub(crate) const OWN_PREFIX: &[u8] = b".grebe-";

/// Reason for refusing such names.
pub(crate) const OWN: &str = "such names are for grebe's own files";

/// Maximum length of a name; file systems have 255.
pub(crate) const NAME_BYTES_MAX: usize = 1_024;

/// Maximum directory depth, beyond any path that a system call accepts.
pub(crate) const DEPTH_MAX: u32 = 2_048;

/// Checks that this is a plain name inside a directory, and not one of ours.
pub(crate) fn check(name: &[u8]) -> Result<(), &'static str> {
    match name {
        [] => Err("an empty name"),
        b"." | b".." => Err("it leads out of the directory"),
        _ if name.len() > NAME_BYTES_MAX => Err("a name that is too long"),
        _ if name.contains(&b'/') => Err("it leads out of the directory"),
        _ if name.contains(&0) => Err("a name with a zero byte"),
        _ if is_own(name) => Err(OWN),
        _ => Ok(()),
    }
}

/// Whether grebe uses such names itself. Ignores case, as some file systems do.
pub(crate) fn is_own(name: &[u8]) -> bool {
    name.get(..OWN_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN_PREFIX))
}

/// `above/name`, or the name alone at the root.
pub(crate) fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// Names of a part in the folder and of its companions, derived from the file's path.
pub(crate) struct PartNames {
    pub(crate) part: Vec<u8>,
    pub(crate) journal: Vec<u8>,
    /// Map of the received blocks, for viewers.
    pub(crate) map: Vec<u8>,
    /// Ranges that a viewer wants.
    pub(crate) wanted: Vec<u8>,
}

impl PartNames {
    pub(crate) fn of(path: &[u8]) -> Self {
        let hash = blake3::hash(path).to_hex();
        let name = |letter: &[u8]| [OWN_PREFIX, letter, &hash.as_bytes()[..32]].concat();
        Self { part: name(b"p"), journal: name(b"j"), map: name(b"m"), wanted: name(b"w") }
    }
}

/// Message of a peer for display: printable, at most a line.
pub(crate) fn words(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 500;
    printable(&bytes[..bytes.len().min(BYTES_MAX)])
}

/// Path as the bytes on the wire: the system's bytes on Unix, UTF-8 elsewhere.
pub(crate) fn bytes_of(name: &std::ffi::OsStr) -> Cow<'_, [u8]> {
    #[cfg(unix)]
    let bytes = Cow::Borrowed(std::os::unix::ffi::OsStrExt::as_bytes(name));
    #[cfg(not(unix))]
    let bytes = match name.to_string_lossy() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    bytes
}

/// Reverse of [`bytes_of`]; `None` if the system cannot have such a name.
pub(crate) fn os_name(bytes: &[u8]) -> Option<&std::ffi::OsStr> {
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes));
    #[cfg(not(unix))]
    str::from_utf8(bytes).ok().map(std::ffi::OsStr::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_or_are_ours_are_refused() {
        for bad in [
            &b""[..],
            b".",
            b"..",
            b"a/b",
            b"/etc",
            b"a\0b",
            b".grebe-partial",
            b".GREBE-partial",
            b".grebe-",
            &[b'a'; NAME_BYTES_MAX + 1],
        ] {
            assert!(check(bad).is_err(), "{}", printable(bad));
        }
        for good in [&b"a"[..], b"...", b"a:b", b"line\nbreak", b"\xff\xfe", b"-rf", b".grebe", b" "] {
            assert!(check(good).is_ok(), "{}", printable(good));
        }
    }

    #[test]
    fn shown_names_contain_no_control_characters() {
        assert_eq!(printable(b"a\x1b[2J\n\xff\xe2\x80\xaeb"), "a\\u{1b}[2J\\n\\xff\\u{202e}b");
        assert_eq!(printable("grün".as_bytes()), "grün");
        assert_eq!(words(&[b'x'; 1_000]).len(), 500);
    }

    #[test]
    fn names_are_joined_below_the_root() {
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a/b", b"c"), b"a/b/c");
    }
}
