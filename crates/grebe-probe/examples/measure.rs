//! Minimal probe: `measure serve` at one end, `measure TICKET` at the other. The latter prints the report as
//! JSON.

use std::time::Duration;

use grebe_probe::{ProbeOptions, Purpose, ServeOptions, Server, Ticket, probe};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let what = std::env::args().nth(1).ok_or("give `serve` or a ticket")?;
    if what == "serve" {
        let bind = std::env::args().nth(2).as_deref().unwrap_or("127.0.0.1:0").parse().map(Some)?;
        let idle_max = Duration::from_secs(60);
        let server = Server::bind(&ServeOptions { bind, idle_max, ..ServeOptions::default() })?;
        println!("{}", *server.ticket().word());
        server.run(|event| eprintln!("{event:?}"))?;
        return Ok(());
    }
    let ticket = Ticket::from_word(&what, Purpose::Probe)?;
    let report = probe(&ticket, &ProbeOptions::default(), |event| eprintln!("{event:?}"))?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
