//! Starts this command again: generators and benches run in their own processes.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};

/// This command without arguments.
pub(crate) fn this_command() -> Result<Command> {
    match WORDS.get() {
        Some(words) => Ok(command_of(words)),
        None => Ok(Command::new(std::env::current_exe().context("cannot find the grebe command itself")?)),
    }
}

/// Whether the command runs within another program.
pub(crate) fn is_carried() -> bool {
    WORDS.get().is_some()
}

/// Sets how another program starts this command: its path, and the words before the arguments.
pub(crate) fn starts_by(words: Vec<OsString>) {
    // A process runs one command.
    let _ = WORDS.set(words);
}

fn command_of(words: &[OsString]) -> Command {
    let (program, before) =
        words.split_first().map_or((None, words), |(program, rest)| (Some(program), rest));
    let mut command = Command::new(program.map_or("grebe".as_ref(), OsString::as_os_str));
    command.args(before);
    command
}

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_says_how_it_starts_the_command() {
        let theirs = command_of(&["python3", "-m", "grebe"].map(OsString::from));
        assert_eq!(theirs.get_program(), "python3");
        assert_eq!(theirs.get_args().collect::<Vec<_>>(), ["-m", "grebe"]);
        assert_eq!(command_of(&[]).get_program(), "grebe");
    }
}
