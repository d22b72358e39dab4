//! UDP features of the kernel, measured over loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use grebe_datagram::{Granted, Gso, Options, Receiver, Sender};

use super::check::{Check, line_of};

const AREA: &str = "udp";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = match over_loopback() {
        Ok(checks) => checks,
        Err(error) => {
            vec![Check::missing(
                AREA,
                "loopback",
                error.to_string(),
                "no stream can be sent or received here",
            )]
        }
    };
    checks.extend(interfaces());
    checks
}

fn over_loopback() -> Result<Vec<Check>, grebe_datagram::Error> {
    let plain = Options { gso: false, gro: false, recv_timeout: TIMEOUT, ..Options::default() };
    let (mut receiver, mut sender) = pair(&plain)?;
    let granted = receiver.granted();
    let (calls, together) = cross(&mut receiver, &mut sender, &plain)?;
    let offload = Options { recv_timeout: TIMEOUT, ..Options::default() };
    let (mut receiver, mut sender) = pair(&offload)?;
    let (_, coalesced) = cross(&mut receiver, &mut sender, &offload)?;
    let drops = receiver.recv(|| Some(vec![0; SLOT_BYTES]), |_, _| None)?.kernel_drops;
    Ok(vec![
        receive_buffer(granted),
        either(
            calls == 1 && together > 1,
            "many datagrams per call",
            "sent and received in batches",
            "one call each",
            "a third of the rate: a system call for every datagram",
        ),
        segmentation(sender.gso()),
        either(
            coalesced > Options::default().slots,
            "many datagrams per kernel buffer, receiving (GRO)",
            "works on loopback",
            "not here (Linux 5.12 has it)",
            "a receiver of small datagrams is several times slower",
        ),
        either(
            drops.is_some(),
            "drop counter",
            "drop counter of the kernel",
            "not on this system",
            "losses in the receive buffer look like network losses",
        ),
    ])
}

fn pair(options: &Options) -> Result<(Receiver<Vec<u8>>, Sender), grebe_datagram::Error> {
    let receiver = Receiver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
    let sender = Sender::connect(receiver.local_addr()?, options)?;
    Ok((receiver, sender))
}

/// Sends datagrams in one batch: the number of sending calls, and of datagrams in one receiving call.
fn cross(
    receiver: &mut Receiver<Vec<u8>>,
    sender: &mut Sender,
    options: &Options,
) -> Result<(u64, usize), grebe_datagram::Error> {
    let data = [0_u8; DATAGRAM_BYTES * DATAGRAMS];
    let mut batch = sender.batch();
    batch.push_run(&data, DATAGRAM_BYTES)?;
    batch.flush()?;
    drop(batch);
    let calls = sender.counters().syscalls;
    let mut most = 0;
    let mut seen = 0;
    while seen < DATAGRAMS {
        let slot_bytes = if options.gro { SLOT_BYTES } else { DATAGRAM_BYTES };
        let outcome = receiver.recv(|| Some(vec![0; slot_bytes]), |slot, _| Some(slot))?;
        if outcome.datagrams == 0 {
            break;
        }
        seen += outcome.datagrams;
        most = most.max(outcome.datagrams);
    }
    Ok((calls, most))
}

fn receive_buffer(granted: Granted) -> Check {
    let mib = granted.granted_bytes as f64 / f64::from(1 << 20);
    let stall_ms = granted.granted_bytes as f64 / 2e9 * 1e3;
    if !granted.is_clamped() {
        let how = if granted.forced { ", by this process's privilege" } else { "" };
        return Check::ok(AREA, "receive buffer", format!("{mib:.0} MiB{how}"));
    }
    let costs = format!("at 1 GS/s a receiver loses frames after a stall of {stall_ms:.1} ms");
    let check = Check::limited(AREA, "receive buffer", format!("{mib:.1} MiB"), &costs);
    match granted.to_string().split_once("limit: ") {
        Some((_, command)) => check.fixed_by(format!("sudo {command}")),
        None => check,
    }
}

fn segmentation(gso: Gso) -> Check {
    let name = "many datagrams per kernel buffer, sending (GSO)";
    let is_off = std::env::var_os("GREBE_NO_GSO").is_some_and(|value| value != "0");
    if gso != Gso::Active && is_off {
        return Check::limited(AREA, name, "turned off", "small datagrams are ten times slower")
            .fixed_by("unset GREBE_NO_GSO");
    }
    let missing = "not here (Linux 4.18 and Windows 10 2004 have it)";
    either(gso == Gso::Active, name, "works on loopback", missing, "small datagrams are ten times slower")
}

fn either(is_there: bool, name: &'static str, found: &str, missing: &str, costs: &str) -> Check {
    if is_there { Check::ok(AREA, name, found) } else { Check::missing(AREA, name, missing, costs) }
}

/// The active interfaces, if the system lists them.
fn interfaces() -> Vec<Check> {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut said: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let state = line_of(&format!("/sys/class/net/{name}/operstate"))?;
            let mtu = line_of(&format!("/sys/class/net/{name}/mtu"))?;
            (state != "down").then(|| format!("{name} {mtu}"))
        })
        .collect();
    said.sort();
    vec![Check::ok(
        AREA,
        "MTU",
        format!("{} (a datagram above it less 28 goes in fragments)", said.join(", ")),
    )]
}

const TIMEOUT: Duration = Duration::from_millis(50);
const DATAGRAMS: usize = 40;
const DATAGRAM_BYTES: usize = 1_400;
const SLOT_BYTES: usize = 65_536;
