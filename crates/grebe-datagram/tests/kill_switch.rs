//! Tests the external switch for segmentation offload.

use std::process::Command;

use grebe_datagram::{Gso, Options, Sender};

/// Runs itself again with the variable set, because a process must not change its environment beside other
/// threads.
#[test]
fn the_environment_and_the_option_turn_gso_off() {
    let connect = |options: &Options| Sender::connect(([127, 0, 0, 1], 9).into(), options).unwrap().gso();
    if std::env::var_os("GREBE_NO_GSO").is_some() {
        assert_eq!(connect(&Options::default()), Gso::Disabled);
        return;
    }
    assert_eq!(connect(&Options { gso: false, ..Options::default() }), Gso::Disabled);
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        assert_eq!(connect(&Options::default()), Gso::Probe, "on where nobody objects");
    }
    if cfg!(target_arch = "aarch64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("vendor_id"))
    {
        println!(
            "skipped: the rest needs a kernel that starts this program by itself, and this is qemu-user"
        );
        return;
    }
    let again = Command::new(std::env::current_exe().unwrap()).env("GREBE_NO_GSO", "1").status().unwrap();
    assert!(again.success());
}
