//! Files over long distances: links in the simulator and over an emulator, shares of a path, and two processes on
//! this machine, each beside TCP on the same path in the same run.

mod emulated;
mod link;
mod loopback;
mod options;
mod peers;
mod programs;
mod room;
mod row;
mod shares;
mod simulated;

use clap::ValueEnum as _;

pub use options::{Options, Part};
pub(crate) use {options::TransferTask, peers::peer};

use crate::error::{Error, Result};
use crate::row::Tell;

/// Measures the selected parts.
///
/// # Errors
/// [`Error::Usage`]; [`Error::Cancelled`]; if a required program is missing, a process fails, or a received file
/// differs from the sent one.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    // Unknown names are errors before the measurement.
    let links = link::chosen(&options.only)?;
    if options.file_size == 0 {
        return Err(Error::Usage("--file-size 0: give at least a byte".to_owned()));
    }
    if let Some(program) = &options.wanlink {
        return emulated::run(options, program, &links, tell);
    }
    let parts = if options.parts.is_empty() { Part::value_variants() } else { &options.parts };
    for part in parts {
        match part {
            Part::Links => simulated::run(options, &links, tell)?,
            Part::Random => {
                simulated::run(options, &link::drawn(options.links.into(), options.seed), tell)?;
            }
            Part::Shares => shares::run(options, tell)?,
            Part::Loopback => loopback::run(options, tell)?,
        }
    }
    Ok(())
}
