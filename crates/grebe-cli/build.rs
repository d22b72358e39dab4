//! Passes the commit and the target to the command: for `grebe --version`, `grebe doctor` and crash reports.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GREBE_COMMIT");
    for name in ["TARGET", "PROFILE"] {
        println!("cargo::rustc-env=GREBE_{name}={}", env::var(name).unwrap_or_default());
    }
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=GREBE_COMMIT={commit}");
    }
}

/// The first 12 digits of the commit. None if the source does not contain it, as in a tarball.
fn commit() -> Option<String> {
    let folder = env::var("CARGO_MANIFEST_DIR").ok()?;
    let said = env::var("GREBE_COMMIT").ok().filter(|said| !said.is_empty());
    // Developers' builds have none, because each commit would build the command again.
    let found = said.or_else(|| packed(Path::new(&folder))).or_else(|| {
        let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
        is_release.then(|| checked_out(&folder)).flatten()
    })?;
    let commit: String = found.trim().chars().take(12).collect();
    (commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(commit)
}

/// The commit in the file that `cargo package` adds.
fn packed(folder: &Path) -> Option<String> {
    let path = folder.join(".cargo_vcs_info.json");
    let text = fs::read_to_string(path).ok()?;
    let (_, after) = text.split_once("\"sha1\"")?;
    after.split('"').nth(1).map(str::to_owned)
}

/// The commit of the clone that this crate is part of. The folder may lie in an unrelated repository.
fn checked_out(folder: &str) -> Option<String> {
    git(folder, &["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(folder, &["rev-parse", "--git-path", file])?;
        let path = Path::new(folder).join(path);
        // A file that is missing would build the command each time.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(folder, &["rev-parse", "HEAD"])
}

fn git(folder: &str, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
