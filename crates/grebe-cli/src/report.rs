//! Reports of errors that a user sends by hand: what grebe and the machine are, without names of people or hosts.

use std::backtrace::Backtrace;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hidden_secrets::without_secrets;
use crate::this_build;

/// Makes the first panic of this process leave a report, after the usual message.
pub(crate) fn on_panic(words: &[OsString]) {
    let words = without_values(words);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        before(panic);
        if !IS_WRITTEN.swap(true, Ordering::Relaxed) {
            tell_of(write_crash(&std::env::temp_dir(), &crash(panic, &words)));
        }
    }));
}

/// The head of each report, and how it is sent.
pub(crate) fn head(title: &str) -> String {
    format!(
        "{title}\n\nRead this file before you attach it to a bug report: names of people and hosts are replaced, other words may remain.\n\n\
         grebe {}\nsystem: {}\n",
        this_build::long_version(),
        system(),
    )
}

/// Text without the names of this user and host.
pub(crate) fn anonymous(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, instead) in names() {
        text = replace_word(&text, &name, instead);
    }
    text
}

/// Operating system, its version, and the environment that changes what grebe does.
pub(crate) fn system() -> String {
    let mut text = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if let Some(name) = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")) {
        let _ = write!(text, ", {}", name.trim_matches('"'));
    }
    let set = std::env::vars().filter(|(name, _)| {
        name.starts_with("GREBE_")
            || ["LANG", "TERM", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP"].contains(&name.as_str())
    });
    for (name, value) in set {
        // A value may be a key or a path.
        let value = if name.starts_with("GREBE_") { "set" } else { &value };
        let _ = write!(text, ", {name}={value}");
    }
    text
}

fn crash(panic: &PanicHookInfo<'_>, words: &str) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("no message");
    let thread = std::thread::current();
    let text = format!(
        "{}command: {words}\nthread: {}\nplace: {place}\nmessage: {message}\n\n{}\n",
        head("Report of a crash of grebe"),
        thread.name().unwrap_or("unnamed"),
        Backtrace::force_capture(),
    );
    anonymous(&text)
}

/// Writes a report beside earlier ones, and never replaces a file.
fn write_crash(folder: &Path, text: &str) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let path = folder.join(format!("grebe-crash-{}-{number}.txt", std::process::id()));
        match private_file(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_REPORTS => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Makes a file that only this user can read, because the folder is everybody's.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

/// `note!` takes locks, which the thread that panics may hold.
fn tell_of(written: io::Result<PathBuf>) {
    let line = match written {
        Ok(path) => format!("grebe: this is a bug. Report: {}; please attach it to an issue", path.display()),
        Err(error) => format!("grebe: this is a bug; its report cannot be written: {error}"),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

/// The words of a command line, of which only the command, options and schemes remain.
fn without_values(words: &[OsString]) -> String {
    let mut line = "grebe".to_owned();
    for (index, word) in words.iter().skip(1).enumerate() {
        let word = word.to_string_lossy();
        let kept = match (word.split_once("://"), word.split_once('=')) {
            (_, Some((option, _))) if word.starts_with('-') => format!("{option}=..."),
            _ if word.starts_with("--") => word.into_owned(),
            // A value may follow the letter of a short option.
            _ if word.starts_with('-') && word.chars().count() > 2 => {
                format!("{}...", word.chars().take(2).collect::<String>())
            }
            _ if word.starts_with('-') => word.into_owned(),
            (Some((scheme, _)), _) if scheme.chars().all(char::is_alphanumeric) => format!("{scheme}://..."),
            _ if index == 0 => without_secrets(&word),
            _ => "...".to_owned(),
        };
        let _ = write!(line, " {kept}");
    }
    line
}

/// Names that a report replaces: longer ones first, because a home folder contains the user's name.
fn names() -> Vec<(String, &'static str)> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut names = vec![
        (variable("HOME"), "~"),
        (variable("USERPROFILE"), "~"),
        (host.trim().to_owned(), "HOST"),
        (variable("HOSTNAME"), "HOST"),
        (variable("COMPUTERNAME"), "HOST"),
        (variable("USER"), "USER"),
        (variable("LOGNAME"), "USER"),
        (variable("USERNAME"), "USER"),
    ];
    names.retain(|(name, _)| name.len() > 1 && !COMMON.contains(&name.as_str()));
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

/// Replaces a name if it is a whole word.
fn replace_word(text: &str, name: &str, instead: &str) -> String {
    let is_part = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let after = &rest[at + name.len()..];
        let before = rest[..at].chars().next_back().or_else(|| replaced.chars().next_back());
        replaced.push_str(&rest[..at]);
        replaced.push_str(if is_part(before) || is_part(after.chars().next()) { name } else { instead });
        rest = after;
    }
    replaced + rest
}

static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
const MAX_REPORTS: u32 = 100;
/// Names of every machine, which reports need.
const COMMON: [&str; 3] = ["root", "localhost", "/root"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_replaced_only_as_a_word() {
        assert_eq!(
            replace_word("/home/ann/x: ann@mast, annual, Joann", "ann", "USER"),
            "/home/USER/x: USER@mast, annual, Joann"
        );
        assert_eq!(replace_word("ann", "ann", "USER"), "USER");
    }

    #[test]
    fn a_command_line_keeps_no_value() {
        let words = [
            "grebe",
            "view",
            "udp://mast:5000?key=x",
            "--png",
            "/home/ann/a.png",
            "--name=lab/x",
            "-r",
            "ann@mast:/data",
            "-oann",
        ];
        assert_eq!(
            without_values(&words.map(OsString::from)),
            "grebe view udp://... --png ... --name=... -r ... -o..."
        );
        let ticket = format!("grebe{}", "a2".repeat(40));
        assert_eq!(without_values(&["grebe", &ticket].map(OsString::from)), "grebe (a ticket)");
    }

    /// The test's program runs itself, because a hook belongs to the process.
    #[test]
    fn a_panic_leaves_a_report_without_names() {
        if std::env::var_os(IS_INNER).is_some() {
            on_panic(&["grebe", "view", "udp://mast:5000"].map(OsString::from));
            let _ = std::thread::Builder::new()
                .name("stage".into())
                .spawn(|| panic!("no such lane of ann at /home/ann"))
                .map(std::thread::JoinHandle::join);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "report::tests::a_panic_leaves_a_report_without_names", "--nocapture"])
            .envs([("TMPDIR", folder.path()), ("TMP", folder.path())])
            .envs([(IS_INNER, "1"), ("USER", "ann"), ("HOME", "/home/ann"), ("GREBE_KEY", "secret")])
            .output()
            .unwrap();
        let files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert_eq!(files.len(), 1, "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&*files[0].to_string_lossy()), "{said}");
        let text = std::fs::read_to_string(&files[0]).unwrap();
        for part in [
            "command: grebe view udp://...",
            "thread: stage",
            "report.rs:",
            "no such lane of USER at ~",
            "GREBE_KEY=set",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    const IS_INNER: &str = "GREBE_TEST_PANICS";

    #[test]
    fn a_crash_report_does_not_replace_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let first = write_crash(folder.path(), "first").unwrap();
        let second = write_crash(folder.path(), "second").unwrap();
        assert_ne!(first, second);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&first.metadata().unwrap()) & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(first).unwrap(), "first");
    }
}
