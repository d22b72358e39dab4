//! Paths on this machine and on others.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use grebe_remote::{SshHost, ssh_host};

/// Path on this machine or on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Local(PathBuf),
    Remote {
        host: SshHost,
        /// As typed, in bytes; relative to the remote home directory.
        path: Vec<u8>,
    },
}

/// Parses `[USER@]HOST:PATH`, `ssh://[USER@]HOST[:PORT]/PATH` or a local path. As in `scp`, a colon after a slash belongs to the path.
pub(crate) fn location(text: OsString) -> Result<Location, String> {
    let bytes = text.as_encoded_bytes();
    if let Some(rest) = bytes.strip_prefix(b"ssh://") {
        return by_url(rest);
    }
    if bytes.is_empty() {
        return Err("empty path; . is this directory".to_owned());
    }
    let Some(colon) = colon(bytes) else { return Ok(Location::Local(text.into())) };
    let (host, path) = (host_of(&bytes[..colon])?, home_relative(&bytes[colon + 1..]));
    Ok(Location::Remote { host, path })
}

impl Location {
    /// The host of a remote path.
    pub(crate) fn host(&self) -> Option<&SshHost> {
        match self {
            Self::Local(_) => None,
            Self::Remote { host, .. } => Some(host),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(&grebe_connection::shown(path)),
            Self::Remote { host, path } => write!(f, "{host}:{}", grebe_connection::printable(path)),
        }
    }
}

/// Parses the rest of an `ssh://` URL. As in git, the path is absolute unless it begins with `/~/`.
fn by_url(rest: &[u8]) -> Result<Location, String> {
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = match path.strip_prefix(b"/~") {
        Some(below) if below.is_empty() || below[0] == b'/' => below.strip_prefix(b"/").unwrap_or(below),
        _ => path,
    };
    Ok(Location::Remote { host: host_of(host)?, path: home_relative(path) })
}

fn host_of(bytes: &[u8]) -> Result<SshHost, String> {
    let text = str::from_utf8(bytes).map_err(|_| "invalid UTF-8 in the host name".to_owned())?;
    ssh_host(text)
        .map_err(|why| format!("{why}, or [USER@]HOST:PATH; a file with a colon in its name is ./NAME"))
}

/// An empty path is the home directory, `.`.
fn home_relative(path: &[u8]) -> Vec<u8> {
    if path.is_empty() { b".".to_vec() } else { path.to_vec() }
}

/// Position of the colon after a host name.
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
    fn paths_are_parsed_as_scp_does() {
        let remote = |user: Option<&str>, host: &str, port, path: &str| Location::Remote {
            host: SshHost { user: user.map(str::to_owned), host: host.to_owned(), port },
            path: path.as_bytes().to_vec(),
        };
        for (text, expected) in [
            ("lab:runs", remote(None, "lab", None, "runs")),
            ("me@lab:/data/a:b", remote(Some("me"), "lab", None, "/data/a:b")),
            ("lab:", remote(None, "lab", None, ".")),
            ("me@[2001:db8::1]:x", remote(Some("me"), "2001:db8::1", None, "x")),
            ("ssh://me@lab:2222/srv/x", remote(Some("me"), "lab", Some(2_222), "/srv/x")),
            ("ssh://lab/~/x y", remote(None, "lab", None, "x y")),
            ("ssh://lab/~", remote(None, "lab", None, ".")),
            ("ssh://lab/~other/x", remote(None, "lab", None, "/~other/x")),
            ("ssh://lab", remote(None, "lab", None, ".")),
        ] {
            assert_eq!(location(text.into()), Ok(expected), "{text}");
        }
        for text in ["a", "./a:b", "/x/a:b", ":a", "dir/[a]:b", "."] {
            assert_eq!(location(text.into()), Ok(Location::Local(text.into())), "{text}");
        }
        for text in ["", "-oProxyCommand=x:y", "a b:c", "me@:x", "ssh://lab:0/x"] {
            assert!(location(text.into()).is_err(), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_are_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let Ok(Location::Remote { path, .. }) = location(OsString::from_vec(b"lab:\xff\n".to_vec())) else {
            panic!("not remote");
        };
        assert_eq!(path, b"\xff\n");
        assert_eq!(grebe_connection::printable(&path), "\\xff\\n");
    }
}
