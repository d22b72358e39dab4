//! Where files are: here, or on another machine.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use grebe_remote::{SshHost, ssh_host};

/// A path here, or one on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Here(PathBuf),
    There {
        host: SshHost,
        /// As it was typed, in the bytes of this system; relative to the home there.
        path: Vec<u8>,
    },
}

/// `[USER@]HOST:PATH`, `ssh://[USER@]HOST[:PORT]/PATH`, or a path here: a colon behind the first slash is a part of the name, as `scp` has it.
pub(crate) fn location(text: OsString) -> Result<Location, String> {
    let bytes = text.as_encoded_bytes();
    if let Some(rest) = bytes.strip_prefix(b"ssh://") {
        return by_url(rest);
    }
    if bytes.is_empty() {
        return Err("the path is empty; . is this directory".to_owned());
    }
    let Some(colon) = colon(bytes) else { return Ok(Location::Here(text.into())) };
    let (host, path) = (host_of(&bytes[..colon])?, home_relative(&bytes[colon + 1..]));
    Ok(Location::There { host, path })
}

impl Location {
    /// The other machine.
    pub(crate) fn host(&self) -> Option<&SshHost> {
        match self {
            Self::Here(_) => None,
            Self::There { host, .. } => Some(host),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(path) => f.write_str(&grebe_connection::shown(path)),
            Self::There { host, path } => write!(f, "{host}:{}", grebe_connection::printable(path)),
        }
    }
}

/// As git reads it: what stands behind the host is absolute, but for `/~/`.
fn by_url(rest: &[u8]) -> Result<Location, String> {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = match path.strip_prefix(b"/~") {
        Some(below) if below.is_empty() || below[0] == b'/' => below.strip_prefix(b"/").unwrap_or(below),
        _ => path,
    };
    Ok(Location::There { host: host_of(host)?, path: home_relative(path) })
}

fn host_of(bytes: &[u8]) -> Result<SshHost, String> {
    let text = str::from_utf8(bytes).map_err(|_| "the name of the host is no text".to_owned())?;
    ssh_host(text)
        .map_err(|why| format!("{why}, or [USER@]HOST:PATH; a file with a colon in its name is ./NAME"))
}

/// The home itself is `.` there.
fn home_relative(path: &[u8]) -> Vec<u8> {
    if path.is_empty() { b".".to_vec() } else { path.to_vec() }
}

/// Where the name of a host ends.
fn colon(bytes: &[u8]) -> Option<usize> {
    if cfg!(windows) && bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return None;
    }
    let mut in_brackets = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' if at == 0 || bytes[at - 1] == b'@' => in_brackets = true,
            b']' => in_brackets = false,
            b':' if !in_brackets => return (at > 0).then_some(at),
            b'/' => return None,
            b'\\' if cfg!(windows) => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_scp_reads_them() {
        let there = |user: Option<&str>, host: &str, port, path: &str| Location::There {
            host: SshHost { user: user.map(str::to_owned), host: host.to_owned(), port },
            path: path.as_bytes().to_vec(),
        };
        for (text, expected) in [
            ("lab:runs", there(None, "lab", None, "runs")),
            ("me@lab:/data/a:b", there(Some("me"), "lab", None, "/data/a:b")),
            ("lab:", there(None, "lab", None, ".")),
            ("me@[2001:db8::1]:x", there(Some("me"), "2001:db8::1", None, "x")),
            ("ssh://me@lab:2222/srv/x", there(Some("me"), "lab", Some(2_222), "/srv/x")),
            ("ssh://lab/~/x y", there(None, "lab", None, "x y")),
            ("ssh://lab/~", there(None, "lab", None, ".")),
            ("ssh://lab/~other/x", there(None, "lab", None, "/~other/x")),
            ("ssh://lab", there(None, "lab", None, ".")),
        ] {
            assert_eq!(location(text.into()), Ok(expected), "{text}");
        }
        for text in ["a", "./a:b", "/x/a:b", ":a", "dir/[a]:b", "."] {
            assert_eq!(location(text.into()), Ok(Location::Here(text.into())), "{text}");
        }
        for text in ["", "-oProxyCommand=x:y", "a b:c", "me@:x", "ssh://lab:0/x"] {
            assert!(location(text.into()).is_err(), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_are_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let Ok(Location::There { path, .. }) = location(OsString::from_vec(b"lab:\xff\n".to_vec())) else {
            panic!("it is there");
        };
        assert_eq!(path, b"\xff\n");
        assert_eq!(grebe_connection::printable(&path), "\\xff\\n");
    }
}
