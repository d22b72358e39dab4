//! Tests datagrams above the MTU, in a private network namespace whose loopback has an MTU of 1500 bytes.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::{Duration, Instant};

use grebe_datagram::{Gso, Options, Receiver, Sender};

/// Runs the test below again in the namespace.
#[test]
fn segments_above_the_mtu_arrive_and_gso_is_not_blamed() {
    let is_emulated = cfg!(target_arch = "aarch64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("vendor_id"));
    if is_emulated {
        println!("skipped: it needs a kernel that starts this program by itself, and this is qemu-user");
        return;
    }
    let inside = |command: &str| {
        let mut inside = Command::new("unshare");
        inside.args(["--map-root-user", "--net", "sh", "-c"]);
        inside.arg(format!("ip link set lo mtu 1500 up && {command}"));
        inside
    };
    if !inside("true").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no network namespace can be made here (it needs unshare, ip and the permission)");
        return;
    }
    let output = inside("exec \"$0\" --ignored --exact --nocapture with_a_loopback_of_1500_bytes")
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by the test above, in a namespace"]
fn with_a_loopback_of_1500_bytes() {
    let options = Options { recv_timeout: Duration::from_millis(20), ..Options::default() };
    let mut receiver = Receiver::bind(([127, 0, 0, 1], 0).into(), &options).unwrap();
    // A connected sender queries the route; an unconnected one learns from the refusal.
    let to = receiver.local_addr().unwrap();
    let senders = [
        Sender::connect(to, &options).unwrap(),
        Sender::unconnected(([127, 0, 0, 1], 0).into(), &options).unwrap(),
    ];
    for mut sender in senders {
        for bytes in [4_000, 1_400, 9_000, 1_472, 1_473] {
            let data: Vec<u8> = (0..20 * bytes).map(|at| (at / bytes + at) as u8).collect();
            let mut batch = sender.batch();
            for datagram in data.chunks(bytes) {
                let (head, rest) = datagram.split_at(64);
                batch.push_to(to, head, rest).unwrap();
            }
            batch.flush().unwrap();
            drop(batch);
            let mut got = Vec::new();
            let until = Instant::now() + Duration::from_secs(5);
            while got.len() < data.len() && Instant::now() < until {
                receiver
                    .recv(
                        || Some(vec![0; 65_536]),
                        |slot, received| {
                            assert!(received.segments().all(|range| range.len() == bytes));
                            got.extend_from_slice(&slot[..received.len]);
                            Some(slot)
                        },
                    )
                    .unwrap();
            }
            assert!(got == data, "{} of {} bytes of datagrams of {bytes} arrived", got.len(), data.len());
            assert_ne!(sender.gso(), Gso::Disabled, "after datagrams of {bytes} bytes");
        }
        assert_eq!(sender.gso(), Gso::Active, "those of 1,400 bytes travelled together");
    }
}
