//! Random kills, stops and restarts of grebe processes of all kinds, over shared memory, UDP and pipes.
//!
//! `cargo build -p grebe-cli && cargo run -p grebe-cli --example soak -- --duration 15m`
//!
//! Each round starts a generator, a bystander that records undisturbed, and victims (recorders, pictures, scopes in a
//! terminal), which are killed, stopped, continued and restarted at random. After each round:
//! - the bystander's recording equals the generator's output, bit for bit and at its index, and it reports exactly
//!   the injected losses: frames that a relay dropped on purpose, samples that a stopped generator did not make;
//! - so does every victim's recording, even a killed one's;
//! - nothing is left: no process, no socket, no file in /dev/shm, the runtime or the temporary directory.
//!
//! A seed repeats the random decisions, but not the scheduling of the processes. Status 1 for any fault.

#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod rounds;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the soak needs /proc, so it runs on Linux only");
    std::process::exit(2);
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match soak::run() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
mod soak {
    use std::path::PathBuf;
    use std::time::{Duration, Instant, SystemTime};

    use anyhow::{Result, ensure};
    use clap::Parser;
    use grebe_flow::Time;

    use crate::processes::Room;
    use crate::rounds::{Tally, play};

    /// Kills, stops and restarts grebe processes at random, and checks everybody else.
    #[derive(Debug, Parser)]
    struct Options {
        /// How long: no round begins later.
        #[arg(long, value_name = "TIME", default_value = "2m")]
        duration: Time,
        /// How the dice fall [default: by the clock].
        #[arg(long)]
        seed: Option<u64>,
        /// The command [default: beside this program].
        #[arg(long, value_name = "FILE")]
        grebe: Option<PathBuf>,
        /// Leave what was recorded in this directory.
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    }

    /// Whether all was right.
    pub(super) fn run() -> Result<bool> {
        let options = Options::parse();
        let by_clock =
            || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |at| at.as_nanos() as u64);
        let seed = options.seed.unwrap_or_else(by_clock);
        let beside =
            std::env::current_exe()?.parent().and_then(|examples| Some(examples.parent()?.join("grebe")));
        let grebe = options.grebe.or(beside).unwrap_or_else(|| "grebe".into());
        ensure!(
            grebe.is_file(),
            "{} is not there: cargo build -p grebe-cli makes it, --grebe names another",
            grebe.display()
        );
        eprintln!("seed {seed}, {}, for {:?}", grebe.display(), options.duration.0);
        let (began, mut tally) = (Instant::now(), Tally::default());
        let mut dice = Dice(seed | 1);
        while began.elapsed() < options.duration.0 {
            let mut room = Room::new(&grebe, options.keep.as_deref())?;
            let (failures, words) = (tally.failures.len(), play(&mut room, &mut dice, &mut tally)?);
            let left = room.left_behind();
            tally.failures.extend(left);
            tally.rounds += 1;
            eprintln!("round {}: {words}", tally.rounds);
            for failure in &tally.failures[failures..] {
                eprintln!("  WRONG: {failure}");
            }
        }
        let Tally { rounds, kills, stops, starts, recordings, samples, lost_frames, lost_samples, failures } =
            tally;
        let minutes = began.elapsed().max(Duration::from_secs(1)).as_secs_f64() / 60.0;
        println!(
            "{minutes:.1} min, {rounds} rounds, seed {seed}: {starts} processes started, {kills} killed, {stops} stopped; \
             {recordings} recordings of {samples} samples checked; injected and reported: {lost_frames} frames lost on the \
             way, {lost_samples} samples not generated; {} wrong",
            failures.len()
        );
        Ok(failures.is_empty())
    }

    /// A small generator of its own: faults must not depend on a library's version.
    pub(crate) struct Dice(pub(crate) u64);

    impl Dice {
        /// A number below `sides`.
        pub(crate) fn roll(&mut self, sides: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) % sides
        }
    }
}
