//! Files over long distances: links in the simulator and over an emulator, shares of a path, and two processes on this machine,
//! each beside TCP on the same path in the same run.
//!
//! ```no_run
//! use grebe_bench::transfer::{self, Plan, Told};
//! # fn peer() -> std::process::Command { std::process::Command::new("grebe") }
//! let rows = transfer::run(&Plan::new(peer), |told| {
//!     if let Told::Row(row) = told {
//!         println!("{}", row.line());
//!     }
//! });
//! println!("{}", transfer::markdown(&rows.unwrap()));
//! ```

mod content;
mod emulated;
mod iperf;
mod job;
mod link;
mod loopback;
mod parallel;
mod peer;
mod row;
mod scp;
mod shares;
mod simulated;
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use grebe_transfer::Cancel;

pub use job::peer_main;
pub use link::{Link, drawn, named};
pub use row::{Baseline, CopyRow, LinkRow, Over, PhaseRow, Row, ShareRow};
pub use table::markdown;

use crate::{Error, Result};

/// What to measure.
#[derive(Clone)]
pub struct Plan {
    /// Which parts. Not looked at where there is an emulator.
    pub parts: Vec<Part>,
    /// The links A to E that are measured.
    pub links: Vec<Link>,
    /// How many links are drawn at random.
    pub drawn: usize,
    /// By this seed, which every other random choice follows too.
    pub seed: u64,
    /// Runs of each kind; medians are reported.
    pub repeats: usize,
    /// Bytes of the file on this machine.
    pub size_bytes: u64,
    /// Where it lies, and where it comes to. `None`: in memory where there is room, else among the temporary files.
    pub directory: Option<PathBuf>,
    /// The program that emulates a link, instead of the parts.
    pub emulator: Option<PathBuf>,
    /// Makes a command that calls [`peer_main`] in a process of its own.
    pub spawn: Arc<dyn Fn() -> Command + Send + Sync>,
    /// Ends the run from elsewhere.
    pub cancel: Cancel,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The links A to E, in the simulator.
    Links,
    /// Links drawn at random, in the simulator.
    Random,
    /// Shares of a path beside TCP and beside each other, in the simulator.
    Shares,
    /// Two processes on this machine.
    Loopback,
}

/// What a run tells while it goes on.
#[derive(Debug)]
pub enum Told<'a> {
    /// What is measured now.
    Doing(&'a str),
    /// A result.
    Row(&'a Row),
}

impl Plan {
    /// Everything that needs no privilege, with processes that `spawn` makes.
    pub fn new(spawn: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self {
            parts: Part::ALL.to_vec(),
            links: named(),
            drawn: 10,
            seed: SEED,
            repeats: 3,
            size_bytes: 1 << 30,
            directory: None,
            emulator: None,
            spawn: Arc::new(spawn),
            cancel: Cancel::default(),
        }
    }
}

/// The seed of the links that the documentation shows.
pub const SEED: u64 = 20_261_121;

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Links, Part::Random, Part::Shares, Part::Loopback];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::Links => "links",
            Part::Random => "random",
            Part::Shares => "shares",
            Part::Loopback => "loopback",
        }
    }

    /// The part of this name.
    ///
    /// # Errors
    /// [`Error::UnknownPart`], which lists them all.
    pub fn by_name(name: &str) -> Result<Part> {
        Part::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| Error::UnknownPart {
            name: name.to_owned(),
            known: Part::ALL.map(Part::name).join(", "),
        })
    }
}

/// Measures everything that the plan names, and calls `tell` with each row as soon as it is known.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Needs`] where something is missing without which nothing can be measured; where a process
/// fails, or a file came that is not the one that was sent.
pub fn run(plan: &Plan, mut tell: impl FnMut(Told)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut tell = |told: Told| {
        if let Told::Row(row) = &told {
            rows.push((*row).clone());
        }
        tell(told);
    };
    if let Some(program) = &plan.emulator {
        emulated::run(plan, program, &mut tell)?;
        return Ok(rows);
    }
    for part in &plan.parts {
        match part {
            Part::Links => simulated::run(plan, plan.links.clone(), &mut tell)?,
            Part::Random => simulated::run(plan, drawn(plan.drawn, plan.seed), &mut tell)?,
            Part::Shares => shares::run(plan, &mut tell)?,
            Part::Loopback => loopback::run(plan, &mut tell)?,
        }
    }
    Ok(rows)
}
