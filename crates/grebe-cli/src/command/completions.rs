//! `grebe completions`, `grebe man`: files that a package installs beside the command.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::cli;
use crate::ending::{Ending, Usage};
use crate::output;

/// Prints the completions for a shell.
pub(crate) fn run(shell: clap_complete::Shell) -> Result<Ending> {
    // Into memory first: the generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "grebe", &mut text);
    output::bytes(&text)?;
    Ok(Ending::Good)
}

/// Writes the manual pages of all commands into a folder.
pub(crate) fn all_pages(folder: &Path) -> Result<Ending> {
    clap_mangen::generate_to(cli::command(), folder)
        .with_context(|| format!("cannot write pages into {}", folder.display()))?;
    Ok(Ending::Good)
}

/// Prints the manual page of a command; of grebe itself without words.
pub(crate) fn man(words: &[String]) -> Result<Ending> {
    let mut command = cli::command();
    // After `build`, each command knows its full name.
    command.build();
    for word in words {
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| Usage(format!("unknown command: grebe {}", words.join(" "))))?;
    }
    let name = command.get_display_name().unwrap_or("grebe").to_owned();
    let mut text = Vec::new();
    clap_mangen::Man::new(command).title(name).render(&mut text)?;
    output::bytes(&text)?;
    Ok(Ending::Good)
}
