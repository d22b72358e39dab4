//! Files over long distances: links in the simulator and over an emulator, shares of a path, and two processes on this machine,
//! each beside TCP on the same path in the same run.

mod content;
mod emulated;
mod iperf;
mod kept;
mod link;
mod loopback;
mod options;
mod parallel;
mod program;
mod room;
mod row;
mod scp;
mod shares;
mod simulated;
mod tasks;
mod work;

pub use options::{Options, SEED};
pub(crate) use work::peer;

use crate::error::{Error, Result};
use crate::row::Tell;

type Part = fn(&Options, Tell) -> Result<()>;

const PARTS: [(&str, Part); 4] = [
    ("links", simulated::named),
    ("random", simulated::drawn),
    ("shares", shares::run),
    ("loopback", loopback::run),
];

/// Measures everything that the options name.
///
/// # Errors
/// [`Error::Unknown`]; [`Error::Cancelled`]; [`Error::Needs`] where something is missing without which nothing can be measured;
/// where a process fails, or a file came that is not the one that was sent.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    if let Some(program) = &options.emulator {
        return emulated::run(options, program, tell);
    }
    let by_name = |name: &String| {
        let found = PARTS.into_iter().find(|(known, _)| known == name);
        found.ok_or_else(|| Error::unknown("part", name, &PARTS.map(|(known, _)| known)))
    };
    let parts = match options.parts.as_slice() {
        [] => PARTS.to_vec(),
        names => names.iter().map(by_name).collect::<Result<_>>()?,
    };
    // A link that does not exist is said before anything is measured.
    link::choose(&options.links)?;
    parts.into_iter().try_for_each(|(_, run)| run(options, tell))
}
