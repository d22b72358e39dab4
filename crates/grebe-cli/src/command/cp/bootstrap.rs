//! Brings this program along where there is none: into the user's cache there, under a name that says its version and its BLAKE3.
//!
//! It is taken in only if the system there is of the same kind and every byte has come. When it is started it compares itself with
//! the hash in its command line before it does anything else, so that a file that was cut or changed meanwhile does nothing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use super::config::Settings;
use crate::output::note;
use crate::ssh::{NotReady, Ready};

/// This program, to be brought along.
pub(super) struct Own {
    bytes: Vec<u8>,
    hash: String,
    /// What kind of system it runs on: `Linux x86_64`.
    system: String,
}

impl Own {
    /// Reads it.
    pub(super) fn read() -> Result<Self> {
        let path = own_path()?;
        let bytes =
            std::fs::read(&path).with_context(|| format!("--bootstrap: cannot read {}", path.display()))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let told = Command::new("uname").arg("-sm").output();
        let told = told.context("--bootstrap: this system does not say what it is (`uname -sm`)")?;
        Ok(Self { bytes, hash, system: String::from_utf8_lossy(&told.stdout).trim().to_owned() })
    }

    /// What starts it there if it was brought, and otherwise what is installed there; for the shell there.
    pub(super) fn line(&self, installed: &str, arguments: &str) -> Result<String> {
        let Self { hash, .. } = self;
        let folder = self.folder();
        in_sh(&format!(
            "p={folder}/grebe; [ ! -x \"$p\" ] || exec \"$p\" {arguments} --is {hash}; exec {installed} {arguments}"
        ))
    }

    /// The folder there, for a shell.
    fn folder(&self) -> String {
        let (version, hash) = (env!("CARGO_PKG_VERSION"), self.hash.get(..16).unwrap_or_default());
        format!("\"${{XDG_CACHE_HOME:-$HOME/.cache}}/grebe/{version}-{hash}\"")
    }

    /// What takes it in there, from its input.
    fn takes_in(&self) -> Result<String> {
        let (folder, size, system) = (self.folder(), self.bytes.len(), &self.system);
        let system = shlex::try_quote(system).map_err(|error| anyhow!("--bootstrap: {error}"))?;
        in_sh(&format!(
            "set -e; umask 077; s=$(uname -sm); [ \"$s\" = {system} ] || {{ echo \"{OTHER}$s\"; exit 0; }}; \
             d={folder}; mkdir -p \"$d\"; t=$d/new.$$; trap 'rm -f \"$t\"' EXIT; echo '{GO_ON}'; cat > \"$t\"; \
             [ \"$(wc -c < \"$t\")\" -eq {size} ] || {{ echo 'it is cut: is the disk full?' >&2; exit 1; }}; \
             chmod 700 \"$t\"; mv -f \"$t\" \"$d/grebe\""
        ))
    }
}

/// Brings it there.
pub(super) fn bring(own: &Own, settings: &Settings) -> Result<()> {
    let host = &settings.host;
    note!(
        "bringing grebe {} to {host} ({})",
        env!("CARGO_PKG_VERSION"),
        crate::transfer::size(own.bytes.len() as u64)
    );
    let is_ready = |line: &str| line.starts_with(OTHER) || line == GO_ON;
    let mut remote = settings.ssh.start(host, &own.takes_in()?, is_ready, "install OpenSSH")?;
    let refused = |why: &str| anyhow!("--bootstrap: {host} does not take it: {why}");
    match remote.ready() {
        Ok(Ready { line, .. }) if line == GO_ON => {}
        Ok(Ready { line, .. }) => bail!(
            "--bootstrap: {host} is {}, this is {}: install grebe for it there",
            line.trim_start_matches(OTHER),
            own.system
        ),
        Err(NotReady::Interrupted) => return Err(grebe_transfer::Error::Cancelled.into()),
        Err(NotReady::Ended(ended)) => return Err(refused(ended.last_line())),
    }
    let mut stdin = remote.stdin().ok_or_else(|| anyhow!("ssh has no input"))?;
    let written = std::io::Write::write_all(&mut stdin, &own.bytes);
    drop(stdin);
    let ended = remote.ended();
    if ended.status == Some(0) && written.is_ok() {
        return Ok(());
    }
    Err(refused(ended.last_line()))
}

/// Refuses to go on if this program is not the one of this hash.
pub(super) fn check_self(hash: &str) -> Result<()> {
    let path = own_path()?;
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        bail!("{} is not what was brought here: remove it, and say --bootstrap again", path.display());
    }
    Ok(())
}

fn own_path() -> Result<PathBuf> {
    if crate::this_command::is_carried() {
        bail!("--bootstrap: this grebe runs within another program, which cannot be brought along");
    }
    std::env::current_exe().context("cannot find the grebe command itself")
}

/// A script for `sh`, as a line for whatever shell a user has there.
fn in_sh(script: &str) -> Result<String> {
    let quoted = shlex::try_quote(script).map_err(|error| anyhow!("--bootstrap: {error}"))?;
    Ok(format!("exec sh -c {quoted}"))
}

const OTHER: &str = "grebe: another system: ";
const GO_ON: &str = "grebe: go on";
