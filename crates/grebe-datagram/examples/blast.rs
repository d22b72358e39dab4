//! Sends datagrams as fast as the machine accepts them:
//! `cargo run --release --example blast -- 127.0.0.1:5000 [BYTES] [SECONDS]`.
//! Start `batch_receive` first.

use std::time::{Duration, Instant};

use grebe_datagram::{Options, Sender};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let to = arguments.next().ok_or("where to? for example 127.0.0.1:5000")?.parse()?;
    let bytes: usize = arguments.next().map_or(Ok(1_400), |bytes| bytes.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;

    let mut sender = Sender::connect(to, &Options::default())?;
    let samples = vec![0_u8; bytes.saturating_sub(8).max(1)];
    let began = Instant::now();
    let mut sequence = 0_u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        let headers: [[u8; 8]; 256] = std::array::from_fn(|index| (sequence + index as u64).to_le_bytes());
        let mut batch = sender.batch();
        for header in &headers {
            // Header and samples stay in place until the flush.
            batch.push(header, &samples)?;
        }
        batch.flush()?;
        sequence += headers.len() as u64;
    }
    let (sent, rate) = (sender.counters(), sequence as f64 / began.elapsed().as_secs_f64());
    println!("{rate:.0} datagrams/s, {:.2} GB/s, GSO {:?}", rate * bytes as f64 / 1e9, sender.gso());
    println!("{sent:?}");
    Ok(())
}
