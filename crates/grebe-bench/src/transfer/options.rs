use std::path::PathBuf;

use grebe_transfer::Cancel;

use crate::peer::Launcher;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// By name: `links`, `random`, `shares`, `loopback`; none: all of them. Not looked at where there is an emulator.
    pub parts: Vec<String>,
    /// Which of the links A to E; none: all of them.
    pub links: Vec<String>,
    /// How many links are drawn at random.
    pub drawn: usize,
    /// By this seed, which every other random choice follows too.
    pub seed: u64,
    /// Runs of each kind; medians are reported.
    pub repeats: usize,
    /// Bytes of the file that goes from process to process on this machine.
    pub size_bytes: u64,
    /// Where files lie, and where they come to. `None`: in memory where there is room, else among the temporary files.
    pub directory: Option<PathBuf>,
    /// The program that emulates a link, instead of the parts.
    pub emulator: Option<PathBuf>,
    /// Starts the processes of a run.
    pub launcher: Launcher,
    /// Ends the run from elsewhere.
    pub cancel: Cancel,
}

impl Options {
    /// Everything that needs no privilege.
    pub fn new(launcher: Launcher) -> Self {
        Self {
            parts: Vec::new(),
            links: Vec::new(),
            drawn: 10,
            seed: SEED,
            repeats: 3,
            size_bytes: 1 << 30,
            directory: None,
            emulator: None,
            launcher,
            cancel: Cancel::default(),
        }
    }
}

/// The seed of the links that the documentation shows.
pub const SEED: u64 = 20_261_121;
