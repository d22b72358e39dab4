//! A probe without the command: `measure serve` at one end, `measure TICKET` at the other prints the report as JSON.

use std::time::Duration;

use grebe_probe::{Bounds, ProbeOptions, Probing, ServeOptions, Server, probe};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let what = std::env::args().nth(1).ok_or("give `serve` or a ticket")?;
    if what == "serve" {
        let bounds = Bounds { duration_max: Some(Duration::from_secs(60)), ..Bounds::default() };
        let bind = std::env::args().nth(2).as_deref().unwrap_or("127.0.0.1:0").parse()?;
        let server =
            Server::bind(&ServeOptions { bind, bounds, clients: 1, idle_max: Duration::from_secs(60) })?;
        println!("{}", server.ticket());
        server.run(&|| false, &mut |serving| eprintln!("{serving:?}"))?;
        return Ok(());
    }
    let mut told = |probing: Probing| eprintln!("{probing:?}");
    let report = probe(&what.parse()?, &ProbeOptions::default(), &|| false, &mut told)?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
