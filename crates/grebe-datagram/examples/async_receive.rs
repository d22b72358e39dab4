//! Task of a tokio program that receives datagrams beside other work, and optionally relays them. Once per
//! second it prints the number of received datagrams and of kernel drops. Ctrl-C ends it:
//! `cargo run --release --features tokio --example async_receive -- 127.0.0.1:5000 [RELAY_TO]`.
//! Try it with `--example blast -- 127.0.0.1:5000`.

use std::net::SocketAddr;
use std::time::Duration;

use grebe_datagram::{AsyncReceiver, AsyncSender, Options};

/// Maximum length of a coalesced kernel buffer.
const SLOT_BYTES: usize = 65_536;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let at: SocketAddr = arguments.next().ok_or("where? for example 127.0.0.1:5000")?.parse()?;
    let relay_to: Option<SocketAddr> = arguments.next().map(|to| to.parse()).transpose()?;

    let mut receiver = AsyncReceiver::bind(at, &Options::default())?;
    println!("{}", receiver.granted());
    let mut relay = relay_to.map(|to| AsyncSender::connect(to, &Options::default())).transpose()?;
    let mut pool: Vec<Vec<u8>> = (0..16).map(|_| vec![0; SLOT_BYTES]).collect();
    let mut filled = Vec::with_capacity(pool.len());

    let mut report = tokio::time::interval(Duration::from_secs(1));
    let (mut datagrams, mut drops) = (0_usize, None);
    loop {
        tokio::select! {
            // Dropping this future, when another branch is ready first, loses nothing.
            outcome = receiver.recv(|| pool.pop(), |slot, received| { filled.push((slot, received)); None }) => {
                let outcome = outcome?;
                datagrams += outcome.datagrams;
                drops = outcome.kernel_drops;
                if let Some(relay) = &mut relay {
                    let all = filled.iter().flat_map(|(slot, received)| {
                        received.segments().map(move |range| (&slot[range], &[][..]))
                    });
                    relay.send(all).await?;
                }
                pool.extend(filled.drain(..).map(|(slot, _)| slot));
            }
            _ = report.tick() => {
                let drops = drops.map_or("unknown".to_owned(), |drops: u64| drops.to_string());
                println!("{datagrams} datagrams/s, {drops} kernel drops so far");
                datagrams = 0;
            }
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    if let Some(relay) = relay {
        println!("relayed: {:?}", relay.counters());
    }
    Ok(())
}
