//! Copies whose ends meet at a relay.

use super::{Sshd, path, run, there};
use crate::support::trees::{assert_same, plant};
use crate::support::{Killed, listening};

#[test]
fn a_copy_is_relayed_only_if_no_direct_route_works() {
    let Some(sshd) = Sshd::start() else { return };
    let (child, relay, _stderr) = listening(&["relay", "--listen", "127.0.0.1:0"]);
    let _relay = Killed(child);
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    plant(&from);
    for (via, way) in [("relay", "relay"), ("auto", "udp"), ("udp", "udp")] {
        let (to, back) = (folder.path().join(format!("to {via}")), folder.path().join(format!("back {via}")));
        let options = ["-a", "--json", "--via", via, "--relay", &relay];
        let pushed = run(&mut sshd.cp(&[&options[..], &[path(&from), &there(&to)]].concat()));
        assert_eq!(pushed.status, Some(0), "{via}: {}", pushed.said);
        assert_same(&from, &to, via);
        assert_eq!(pushed.event("route")["route"], way);
        assert_eq!(pushed.event("result")["route"], way);
        let pulled = run(&mut sshd.cp(&[&options[..], &[&there(&to), path(&back)]].concat()));
        assert_eq!(pulled.status, Some(0), "{via}: {}", pulled.said);
        assert_same(&from, &back, via);
    }
    // Also between two other machines, with a message.
    let to = folder.path().join("between");
    let target = format!("store:{}", to.display());
    let between = run(&mut sshd.cp(&["-a", "--via", "relay", "--relay", &relay, &there(&from), &target]));
    assert_eq!(between.status, Some(0), "{}", between.said);
    assert_same(&from, &to, "between two others");
    assert!(between.said.contains("by the relay"), "{}", between.said);
}

#[test]
fn an_unreachable_relay_does_not_prevent_another_route() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    let options = ["-a", "--json", "--relay", "no-such-relay.invalid"];
    let pushed = run(&mut sshd.cp(&[&options[..], &[path(&from), &there(&to)]].concat()));
    assert_eq!(pushed.status, Some(0), "{}", pushed.said);
    assert_same(&from, &to, "without the relay");
    assert_eq!(pushed.event("route")["route"], "udp");

    let without = run(&mut sshd.cp(&["-a", "--via", "relay", path(&from), &there(&to)]));
    assert_eq!(without.status, Some(2), "{}", without.said);
    assert!(without.said.contains("--relay HOST"), "{}", without.said);
}
