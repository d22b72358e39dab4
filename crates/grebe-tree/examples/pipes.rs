//! Copies the contents of one directory into another over two pipes, as between two hosts, and reports the
//! traffic.
//!
//! `cargo run --release -p grebe-tree --example pipes -- FROM INTO`

use std::io::pipe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use grebe_tree::{Cancel, Options, Progress, ReceiveTree, SendTree, receive, send};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, into] = &arguments[..] else { return Err("name two directories: FROM INTO".into()) };
    let began = Instant::now();
    let (data_read, data_write) = pipe()?;
    let (answers_read, answers_write) = pipe()?;
    let tree = SendTree { sources: vec![from.join("")], options: Some(Options::archive()), is_fresh: false };
    let destination = ReceiveTree { destination: into.clone(), options: None, is_fresh: false };
    let progress = || Arc::new(Progress::default());
    let (sent, received) = std::thread::scope(|scope| {
        let sent = scope.spawn(|| send(answers_read, data_write, &tree, &progress(), &Cancel::default()));
        let received = receive(data_read, answers_write, &destination, &progress(), &Cancel::default());
        (sent.join(), received)
    });
    let (sent, received) = (sent.map_err(|_| "the sender panicked")??, received?);
    println!(
        "{:.2} s, {} files copied, {} the same, content {} bytes, stream {} bytes there and {} back",
        began.elapsed().as_secs_f64(),
        received.files_copied,
        received.files_same,
        received.data_bytes,
        sent.written_bytes,
        received.written_bytes,
    );
    Ok(())
}
