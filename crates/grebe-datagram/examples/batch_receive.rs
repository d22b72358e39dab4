//! Receives batches, and prints the number of received datagrams and of kernel drops once per second:
//! `cargo run --release --example batch_receive -- 127.0.0.1:5000`.

use std::time::{Duration, Instant};

use grebe_datagram::{Congestion, Options, Receiver};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let at = std::env::args().nth(1).ok_or("where? for example 127.0.0.1:5000")?.parse()?;
    let mut receiver = Receiver::bind(at, &Options::default())?;
    println!("{}", receiver.granted());

    let mut pool: Vec<Vec<u8>> = (0..16).map(|_| vec![0; 65_536]).collect();
    let (mut datagrams, mut bytes, mut since) = (0_usize, 0_usize, Instant::now());
    loop {
        let outcome = receiver.recv(
            || pool.pop(),
            |slot, received| {
                for datagram in received.segments() {
                    std::hint::black_box(&slot[datagram]);
                }
                Some(slot)
            },
        )?;
        datagrams += outcome.datagrams;
        bytes += outcome.bytes;
        match outcome.congestion {
            Some(Congestion::Began) => println!("the kernel drops: this program or its buffer is too small"),
            Some(Congestion::Cleared) => println!("the kernel drops no more"),
            None => {}
        }
        if since.elapsed() >= Duration::from_secs(1) {
            let drops = outcome.kernel_drops.map_or("unknown".to_owned(), |drops| drops.to_string());
            println!("{datagrams} datagrams/s, {:.3} GB/s, {drops} kernel drops", bytes as f64 / 1e9);
            (datagrams, bytes, since) = (0, 0, Instant::now());
        }
    }
}
