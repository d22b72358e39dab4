//! Measures a connection: N megabytes one way, for comparison with `grebe send` of a file of that size.
//!
//!     cargo run --release -p grebe-connection --example connection -- listen 127.0.0.1:0 > ticket
//!     cargo run --release -p grebe-connection --example connection -- send 1000 < ticket
//!     cargo run --release -p grebe-connection --example connection -- ask 200 < ticket
//!
//! `listen` accepts one connection, reads to the end and reports the number of bytes. `send` writes N
//! megabytes. `pieces` writes them in pieces of 4 KiB. `ask` sends N questions of a few bytes, one after the
//! other.

use std::error::Error;
use std::io::{self, BufRead, Read, Write};
use std::time::{Duration, Instant};

use grebe_connection::{Connection, ConnectionListener, ConnectionOptions, Purpose, Ticket, connect};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", address] => listen(address),
        ["send", megabytes] => send(megabytes.parse()?, 256 << 10),
        ["pieces", megabytes] => send(megabytes.parse()?, 4 << 10),
        ["ask", questions] => ask(questions.parse()?),
        _ => Err("listen ADDRESS | send MEGABYTES | pieces MEGABYTES | ask QUESTIONS".into()),
    }
}

fn listen(address: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let listener =
        ConnectionListener::bind(address.parse()?, Purpose::Connection, Duration::from_secs(3_600))?;
    println!("{}", *listener.ticket.word());
    io::stdout().flush()?;
    let Connection { mut reader, mut writer, status, .. } = listener.accept(&ConnectionOptions::default())?;
    let mut kind = [0; 1];
    reader.read_exact(&mut kind)?;
    if kind == *b"?" {
        let mut question = [0; 8];
        while reader.read(&mut question)? > 0 {
            writer.write_all(&question)?;
            writer.flush()?;
        }
    }
    let mut bytes = 0;
    loop {
        let there = reader.fill_buf()?.len();
        if there == 0 {
            break;
        }
        bytes += there;
        reader.consume(there);
    }
    // The other end measures until it reads this.
    writer.write_all(&(bytes as u64).to_be_bytes())?;
    writer.finish()?;
    status.close()?;
    eprintln!("{bytes} bytes came");
    Ok(())
}

fn begin() -> Result<(Instant, Connection), Box<dyn Error + Send + Sync>> {
    let mut word = String::new();
    io::stdin().read_line(&mut word)?;
    let ticket = Ticket::from_word(&word, Purpose::Connection)?;
    let start = Instant::now();
    Ok((start, connect(&ticket, &ConnectionOptions::default())?))
}

fn send(megabytes: usize, piece_bytes: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (start, Connection { mut reader, mut writer, status, .. }) = begin()?;
    let connected = start.elapsed();
    writer.write_all(b"!")?;
    let piece: Vec<u8> = (0..piece_bytes).map(|at| (at * 31) as u8).collect();
    let mut left = megabytes * 1_000_000;
    while left > 0 {
        let bytes = left.min(piece.len());
        writer.write_all(&piece[..bytes])?;
        left -= bytes;
    }
    writer.finish()?;
    let delivered = start.elapsed();
    let mut came = [0; 8];
    reader.read_exact(&mut came)?;
    let answered = start.elapsed();
    status.close()?;
    let progress = status.progress();
    println!(
        "{megabytes} MB: connected {:.3} s, delivered {:.3} s ({:.2} Gbit/s), answered {:.3} s, closed {:.3} s; {:.3} bytes on the wire per byte, {:.2} % lost",
        connected.as_secs_f64(),
        delivered.as_secs_f64(),
        megabytes as f64 * 8e-3 / delivered.as_secs_f64(),
        answered.as_secs_f64(),
        start.elapsed().as_secs_f64(),
        progress.wire_bytes as f64 / (megabytes as f64 * 1e6),
        progress.loss * 100.0,
    );
    Ok(())
}

fn ask(questions: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (_, Connection { mut reader, mut writer, status, .. }) = begin()?;
    writer.write_all(b"?")?;
    let mut took: Vec<Duration> = Vec::new();
    for number in 0..questions {
        let start = Instant::now();
        writer.write_all(&number.to_be_bytes())?;
        writer.flush()?;
        reader.read_exact(&mut [0; 8])?;
        took.push(start.elapsed());
    }
    writer.finish()?;
    reader.read_exact(&mut [0; 8])?;
    status.close()?;
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "{questions} questions: median {:?}, 99 of 100 within {:?}, slowest {:?}",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
