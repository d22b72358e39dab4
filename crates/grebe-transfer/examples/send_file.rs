//! Sends a file between two processes over UDP, with a ticket.
//!
//!     cargo run --release -p grebe-transfer --example send_file -- recv DIR [ADDRESS:PORT] [TICKET_FILE]
//!     cargo run --release -p grebe-transfer --example send_file -- send FILE < TICKET_FILE
//!
//! The receiver prints its ticket; the sender reads it from standard input. Where senders reach the receiver by another address
//! than the one it listens at, it is to be given as `ADVERTISE=ADDRESS:PORT`.

use std::error::Error;
use std::path::Path;

use grebe_transfer::{Listener, Phase, SendOptions, Ticket, send_file};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recv", directory, ref rest @ ..] => {
            recv(Path::new(directory), rest.first().unwrap_or(&"0.0.0.0:0"), rest.get(1).copied())
        }
        ["send", file] => send(Path::new(file)),
        _ => {
            Err("send_file recv DIR [ADDRESS:PORT] [TICKET_FILE] | send_file send FILE < TICKET_FILE".into())
        }
    }
}

fn recv(directory: &Path, address: &str, ticket_file: Option<&str>) -> Result<(), Box<dyn Error>> {
    let listener = Listener::bind(address.parse()?, 600)?;
    let mut ticket = listener.ticket().clone();
    if let Ok(advertised) = std::env::var("ADVERTISE") {
        ticket.addresses = vec![advertised.parse()?];
    }
    match ticket_file {
        Some(path) => std::fs::write(path, ticket.word().as_bytes())?,
        None => println!("{}", *ticket.word()),
    }
    let received = listener.receive_into(directory, |_, _| {})?;
    eprintln!(
        "{} bytes in {:.3} s: {}",
        received.bytes,
        received.took.as_secs_f64(),
        received.path.display()
    );
    Ok(())
}

fn send(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut word = String::new();
    std::io::stdin().read_line(&mut word)?;
    let limit_bits_per_s =
        std::env::var("LIMIT_MBIT").ok().map(|mbit| mbit.parse::<f64>()).transpose()?.map(|mbit| mbit * 1e6);
    let options = SendOptions { limit_bits_per_s, ..SendOptions::default() };
    let sent = send_file(file, &Ticket::from_word(&word)?, &options, |progress| {
        if std::env::var_os("PROGRESS").is_some() {
            eprintln!(
                "{:>12} confirmed  {:>8.1} Mbit/s  rtt {:>6.1} ms  queue {:>6.1} ms  loss {:.3}  {:?}",
                progress.confirmed_bytes,
                progress.rate_bits_per_s / 1e6,
                progress.rtt_us as f64 / 1e3,
                progress.queue_us as f64 / 1e3,
                progress.loss,
                progress.limit
            );
        }
    })?;
    let seconds = sent.took.as_secs_f64();
    println!(
        "{seconds:.3} s  {:.1} Mbit/s  handshake {:.3} s  wire {:.4}  lost {}  late {}  datagrams of {}",
        sent.bytes as f64 * 8e-6 / seconds,
        sent.handshake.as_secs_f64(),
        sent.counters.wire_bytes as f64 / sent.bytes.max(1) as f64,
        sent.counters.lost,
        sent.counters.late,
        sent.datagram_bytes,
    );
    for (phase, cost) in
        [Phase::Train, Phase::Ramp, Phase::Cruise, Phase::Up, Phase::Down].iter().zip(sent.phases)
    {
        println!(
            "  {phase:?}: {} times, {} round trips, {:.2} s",
            cost.entries,
            cost.rounds,
            cost.time_us as f64 / 1e6
        );
    }
    Ok(())
}
