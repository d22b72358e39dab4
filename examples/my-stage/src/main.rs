//! Runs a graph file with the built-in kinds and the kinds of this crate.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use grebe_flow::{Cancel, Error, GraphFile};
use my_stage::{Rms, Threshold};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: my-stage GRAPH.toml");
        return ExitCode::from(2);
    };
    match run(Path::new(&path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &Path) -> Result<(), Error> {
    let mut kinds = grebe_stages::kinds();
    kinds.add::<Rms>().add::<Threshold>();
    let file = GraphFile::load(path, &kinds)?;
    let graph = file.build(&kinds, &Cancel::default(), &mut |note| eprintln!("{note}"))?;
    let snapshot = graph.start()?.wait()?;
    for stage in &snapshot.stages {
        let own: Vec<String> = stage.own.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        println!("{}: {} samples{}", stage.name, stage.samples_in.max(stage.samples_out), own.concat());
    }
    Ok(())
}
