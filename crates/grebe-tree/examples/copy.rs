//! Copies a tree and reports the time: in one process, or over a pair of pipes as between two hosts.
//!
//! ```text
//! cargo run --release -p grebe-tree --example copy -- SOURCE DESTINATION           the system copies the content
//! cargo run --release -p grebe-tree --example copy -- SOURCE DESTINATION pipes     all bytes go through pipes
//! ```
//!
//! A last argument `never`, `batch` or `file` sets the flush policy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use grebe_tree::{Cancel, Fsync, Options, Progress, ReceiveTree, Report, SendTree, copy, receive, send};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(source), Some(destination)) = (arguments.next(), arguments.next()) else {
        return Err("name a source and a destination".into());
    };
    let mut options = Options::archive();
    let mut is_piped = false;
    for argument in arguments {
        match argument.to_str() {
            Some("pipes") => is_piped = true,
            Some("never") => options.fsync = Fsync::Never,
            Some("batch") => options.fsync = Fsync::Batch,
            Some("file") => options.fsync = Fsync::File,
            _ => return Err("options after the paths: pipes, never, batch or file".into()),
        }
    }
    let tree = SendTree { sources: vec![PathBuf::from(source)], options: Some(options), is_fresh: false };
    let destination = PathBuf::from(destination);
    let began = Instant::now();
    let report = if is_piped {
        over_pipes(tree, destination)?
    } else {
        copy(&tree, &destination, &Arc::new(Progress::default()), &Cancel::default())?
    };
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seconds:.3} s: {} files, {} bytes copied; {} files there; {} bytes of files and {} in all travelled; {} left out",
        report.files_copied,
        report.bytes_copied,
        report.files_same,
        report.data_bytes,
        report.read_bytes + report.written_bytes,
        report.left_out_count
    );
    Ok(())
}

fn over_pipes(tree: SendTree, destination: PathBuf) -> Result<Report, Box<dyn std::error::Error>> {
    let (sent_out, sent_in) = std::io::pipe()?;
    let (said_out, said_in) = std::io::pipe()?;
    let sender =
        std::thread::spawn(move || send(said_out, sent_in, &tree, &Arc::default(), &Cancel::default()));
    let receiving = ReceiveTree { destination, options: None, is_fresh: false };
    let received = receive(sent_out, said_in, &receiving, &Arc::default(), &Cancel::default());
    sender.join().map_err(|_| "the sender panicked")??;
    Ok(received?)
}
