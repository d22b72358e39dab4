//! `grebe completions`, `grebe man`: what a package installs beside the command.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::ending::Ending;
use crate::output;

/// The completions for a shell.
pub(crate) fn run(shell: clap_complete::Shell) -> Result<Ending> {
    // Into memory first: the generator panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "grebe", &mut text);
    output::bytes(&text)?;
    Ok(Ending::Good)
}

/// The manual page.
pub(crate) fn man() -> Result<Ending> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    output::bytes(&text)?;
    Ok(Ending::Good)
}
