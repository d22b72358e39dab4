//! Installs this program on a host without one, in the user's cache there, under a name with its version and
//! BLAKE3 hash.
//!
//! The remote system must be of the same kind, with a POSIX shell, and every byte must arrive. At its start the program first
//! compares itself with the hash in its command line, so a truncated or modified file does nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::config::Settings;
use crate::error::{During, Error, Result};
use crate::hello::VERSION;
use crate::ssh::{Began, MARK, NotReady};

/// Whether this program can be installed on the other host.
pub(crate) enum Bootstrap {
    Unwanted,
    Possible(Own),
    /// The reason, for the user.
    Impossible(&'static str),
}

/// This program, for installation.
pub(crate) struct Own {
    bytes: Vec<u8>,
    hash: String,
    /// Kind of system it runs on: `Linux x86_64`.
    system: String,
}

impl Bootstrap {
    pub(crate) fn new(is_wanted: bool) -> Result<Self> {
        Ok(match is_wanted {
            false => Self::Unwanted,
            true if cfg!(windows) => Self::Impossible("this grebe is for Windows"),
            true => Self::Possible(Own::read()?),
        })
    }
}

impl Own {
    /// Reads this program.
    fn read() -> Result<Self> {
        let path = own_path()?;
        let bytes = fs::read(&path).during(format!("--bootstrap: cannot read {}", path.display()))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let told = Command::new("uname").arg("-sm").output();
        let told = told.during("--bootstrap: this system does not report its type (`uname -sm`)")?;
        Ok(Self { bytes, hash, system: String::from_utf8_lossy(&told.stdout).trim().to_owned() })
    }

    /// Shell command that starts the installed copy if there is one, otherwise the regular program there.
    pub(crate) fn line(&self, installed: &str, arguments: &str) -> Result<String> {
        let Self { hash, .. } = self;
        let folder = self.folder();
        let script = format!(
            "p={folder}/grebe; if [ -x \"$p\" ]; then exec \"$p\" {arguments} --is {hash}; fi; exec \"$0\" {arguments}"
        );
        Ok(format!("{} {installed}", in_sh(&script)?))
    }

    /// Remote folder, for a shell.
    fn folder(&self) -> String {
        let (version, hash) = (VERSION, self.hash.get(..HASH_DIGITS).unwrap_or_default());
        format!("\"${{XDG_CACHE_HOME:-$HOME/.cache}}/grebe/{version}-{hash}\"")
    }

    /// Shell command that installs the program from its input.
    fn takes_in(&self) -> Result<String> {
        let (folder, size, system) = (self.folder(), self.bytes.len(), &self.system);
        in_sh(&format!(
            "set -e; umask 077; echo {MARK}; s=$(uname -sm) || s=\"a system without uname\"; [ \"$s\" = \"{system}\" ] || {{ echo \"{OTHER}$s\"; exit 0; }}; \
             d={folder}; mkdir -p \"$d\"; t=$d/new.$$; c() {{ rm -f \"$t\"; }}; trap c EXIT; echo \"{GO_ON}\"; cat > \"$t\"; \
             [ \"$(wc -c < \"$t\")\" -eq {size} ] || {{ echo \"it is cut: is the disk full?\" >&2; exit 1; }}; \
             chmod 700 \"$t\"; mv -f \"$t\" \"$d/grebe\""
        ))
    }
}

/// Installs the program on the remote host.
pub(crate) fn bring(own: &Own, settings: &Settings, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    let (host, megabytes) = (&settings.host, own.bytes.len() as f64 / 1e6);
    settings.ssh.tell(&format!("bringing grebe {VERSION} to {host} ({megabytes:.1} MB)"));
    let is_ready = |line: &str| line.starts_with(OTHER) || line == GO_ON;
    let mut remote = settings.ssh.start(host, &own.takes_in()?, is_ready, "")?;
    let refused = |why: &str| Error::not_started(format!("--bootstrap: cannot install on {host}: {why}"));
    match remote.ready(&[], is_cancelled) {
        Ok(Began { line, .. }) if line == GO_ON => {}
        Ok(Began { line, .. }) => {
            let (theirs, ours) = (line.trim_start_matches(OTHER), &own.system);
            return Err(Error::not_started(format!(
                "--bootstrap: {host} is {theirs}, this is {ours}: install grebe for it there"
            )));
        }
        Err(NotReady::Interrupted) => return Err(Error::Interrupted),
        Err(NotReady::Ended(ended)) => {
            return Err(refused(ended.stuck.as_deref().unwrap_or(ended.last_line())));
        }
    }
    let mut stdin = remote.stdin().ok_or_else(|| refused("ssh has no input"))?;
    let written = std::io::Write::write_all(&mut stdin, &own.bytes);
    drop(stdin);
    let ended = remote.ended();
    if ended.status == Some(0) && written.is_ok() {
        return Ok(());
    }
    Err(refused(ended.last_line()))
}

/// Exits with an error if this program does not have this hash. Also removes older installed copies that were
/// not used lately.
///
/// # Errors
/// [`Error::Peer`] if it is another program.
pub fn check_self(hash: &str) -> Result<()> {
    let path = own_path()?;
    let bytes = fs::read(&path).during(format!("cannot read {}", path.display()))?;
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        let path = path.display();
        return Err(Error::Peer(format!(
            "{path} differs from the program that was copied there: remove it, and use --bootstrap again"
        )));
    }
    if let Some(own) = path.parent().filter(|own| is_brought(own)) {
        remove_unused(own);
    }
    Ok(())
}

/// Removes installed copies except the most recently used ones, which include this one. Failures are
/// harmless.
fn remove_unused(own: &Path) {
    let _ = fs::File::open(own).and_then(|own| own.set_modified(SystemTime::now()));
    let Some(beside) = own.parent().and_then(|cache| fs::read_dir(cache).ok()) else { return };
    let others = beside.filter_map(Result::ok).map(|entry| entry.path());
    let others = others.filter(|other| other != own && is_brought(other));
    let used = |path: PathBuf| fs::metadata(&path).and_then(|of| of.modified()).ok().map(|used| (used, path));
    let mut others: Vec<_> = others.filter_map(used).collect();
    others.sort_by(|one, other| other.cmp(one));
    for (_, unused) in others.into_iter().skip(KEPT - 1) {
        // Only installed files: a folder with other contents stays.
        let _ = fs::remove_file(unused.join("grebe"));
        let _ = fs::remove_dir(unused);
    }
}

/// Whether it is the folder of an installed copy: `VERSION-HASH`.
fn is_brought(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
    name.is_some_and(|(version, hash)| {
        version.starts_with(|first: char| first.is_ascii_digit())
            && hash.len() == HASH_DIGITS
            && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn own_path() -> Result<PathBuf> {
    std::env::current_exe().during("cannot find the grebe command itself")
}

/// Wraps a script for `sh` into a line for any login shell. Inside single quotes, these characters still mean
/// something to csh or fish.
fn in_sh(script: &str) -> Result<String> {
    match script.contains(['\'', '!', '\\', '\n']) {
        true => {
            Err(Error::Usage(format!("--bootstrap: not every shell passes on all letters of {script:?}")))
        }
        false => Ok(format!("exec sh -c '{script}'")),
    }
}

const OTHER: &str = "{another system} ";
const GO_ON: &str = "{go on}";
/// Digits of the hash in a folder's name.
const HASH_DIGITS: usize = 16;
/// Maximum installed copies. Users copy from several machines with different versions; more copies are old
/// ones.
const KEPT: usize = 3;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_used_copies_stay_and_other_files_are_not_removed() {
        let cache = tempfile::tempdir().unwrap();
        let names = |number: u64| format!("0.1.{number}-{number:016x}");
        for number in 0..6 {
            let folder = cache.path().join(names(number));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("grebe"), "program").unwrap();
            if number == 5 {
                fs::write(folder.join("mine"), "not ours").unwrap();
            }
            let used = SystemTime::now() - Duration::from_secs(3_600 * (number + 1));
            fs::File::open(&folder).unwrap().set_modified(used).unwrap();
        }
        fs::create_dir(cache.path().join("pictures-of-2026")).unwrap();
        // The running copy was the second longest unused.
        remove_unused(&cache.path().join(names(4)));
        let mut left: Vec<_> =
            fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let expected = [names(0), names(1), names(4), names(5), "pictures-of-2026".to_owned()];
        assert_eq!(left, expected.map(std::ffi::OsString::from));
        assert!(cache.path().join(names(5)).join("mine").exists());
        assert!(cache.path().join(names(4)).join("grebe").exists());
    }

    #[test]
    fn folders_of_other_owners_are_not_used() {
        for (name, is_ours) in [
            ("0.1.0-0123456789abcdef", true),
            ("0.1.0-beta-0123456789abcdef", true),
            ("0.1.0-0123456789abcde", false),
            ("0.1.0-0123456789abcdeg", false),
            ("backup-0123456789abcdef", false),
            ("0123456789abcdef", false),
        ] {
            assert_eq!(is_brought(Path::new("/cache/grebe").join(name).as_path()), is_ours, "{name}");
        }
    }
}
