//! The same within a tokio runtime: `cargo run --release --features tokio --example async_receive -- 127.0.0.1:5000`.

use grebe_datagram::{AsyncReceiver, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let at = std::env::args().nth(1).ok_or("where? for example 127.0.0.1:5000")?.parse()?;
    let mut receiver = AsyncReceiver::bind(at, &Options::default())?;
    let mut pool: Vec<Vec<u8>> = (0..16).map(|_| vec![0; 65_536]).collect();
    let mut total = 0;
    loop {
        let outcome = receiver.recv(|| pool.pop(), |slot, _| Some(slot)).await?;
        total += outcome.datagrams;
        println!("{} datagrams in this batch, {total} in all", outcome.datagrams);
    }
}
