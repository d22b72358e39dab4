//! The `grebe` command, as a program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(grebe_cli::run(std::env::args_os(), None))
}
