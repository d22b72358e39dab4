//! iperf3, where it is installed: it neither looks at what it receives nor stamps it, and sends one datagram a call.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Result of one iperf3 run.
pub struct Measured {
    /// Millions of 16-bit samples per second that its payload would carry, as received.
    pub msps: f64,
    pub lost: u64,
}

/// One run of `seconds` (whole ones: it takes no others) with datagrams of `bytes`; `None` where iperf3 is missing or fails.
pub fn run(bytes: usize, seconds: u32) -> Option<Measured> {
    let port =
        std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?.local_addr().ok()?.port().to_string();
    let server = Command::new("iperf3").args(["-s", "-1", "-p", &port]).stdout(Stdio::null()).spawn();
    let _server = Ended(server.ok()?);
    std::thread::sleep(Duration::from_millis(300));
    let output = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &port, "-u", "-b", "0", "-J"])
        .args(["-l", &bytes.to_string(), "-t", &seconds.to_string()])
        .output()
        .ok()?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let received = said.pointer("/end/sum_received")?;
    Some(Measured {
        msps: received.get("bits_per_second")?.as_f64()? / 16e6,
        lost: received.get("lost_packets")?.as_u64()?,
    })
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It ends with the run; where that failed, it is waiting for one.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
