//! Links that are down for a while and firewalls that drop, under streams over UDP: in network namespaces, which only root can make.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{finish, grebe, text, until_listening};
use serde_json::Value;

/// Two hosts with a cable between them, 10.77.0.1 and 10.77.0.2; they go with it.
struct Hosts([String; 2]);

impl Hosts {
    /// `Err` says why there can be none here.
    fn make(name: &str) -> Result<Self, String> {
        let hosts = Self([1, 2].map(|number| format!("go{name}{}-{number}", std::process::id())));
        for program in ["ip", "nft"] {
            let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found
                .map_err(|_| format!("there is no {program} (Debian: apt-get install iproute2 nftables)"))?;
        }
        for host in &hosts.0 {
            shell(&format!("ip netns add {host}"))
                .map_err(|error| format!("no network namespaces: {error}"))?;
        }
        let [one, two] = &hosts.0;
        shell(&format!(
            "ip -n {one} link add v type veth peer name v netns {two} &&
             ip -n {one} addr add 10.77.0.1/24 dev v && ip -n {two} addr add 10.77.0.2/24 dev v &&
             ip -n {one} link set v up && ip -n {two} link set v up && ip -n {one} link set lo up"
        ))?;
        Ok(hosts)
    }

    /// The command at the first of them.
    fn grebe(&self, arguments: &[&str]) -> Command {
        let command = grebe(arguments);
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.0[0]]).arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null());
        inside
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.grebe(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.0 {
            let _ = shell(&format!("ip netns del {host}"));
        }
    }
}

fn shell(script: &str) -> Result<(), String> {
    let output = Command::new("sh").args(["-c", script]).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

fn hosts(name: &str) -> Option<Hosts> {
    Hosts::make(name).map_err(|why| eprintln!("skipped: {why}")).ok()
}

fn report(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[test]
fn a_link_that_is_down_for_a_second_ends_no_stream_and_no_recorder_beside_it() {
    let Some(hosts) = hosts("l") else { return };
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.toml");
    let file = folder.path().join("x.sigmf-meta");
    let stages = format!(
        r#"
        stage = [
            {{ id = "made", kind = "synth", params = {{ rate = "100k", samples = "600k" }} }},
            {{ id = "away", kind = "udp_out", params = {{ uri = "udp://10.77.0.2:5003" }} }},
            {{ id = "kept", kind = "record", params = {{ file = '{}' }} }},
        ]
        edge = [{{ from = "made", to = "away" }}, {{ from = "made", to = "kept" }}]"#,
        file.display()
    );
    std::fs::write(&graph, stages).unwrap();
    let streams = ["udp://10.77.0.2:5000", "udp://10.77.0.2:5001?format=i16", "vrt://10.77.0.2:5002"];
    let mut running: Vec<Child> = streams
        .iter()
        .map(|to| hosts.start(&["sg", "--rate", "100k", "--samples", "600k", "--json", "--to", to]))
        .collect();
    running.push(hosts.start(&["run", graph.to_str().unwrap(), "--json"]));
    std::thread::sleep(Duration::from_millis(1_000));
    shell(&format!("ip -n {} link set v down", hosts.0[0])).unwrap();
    std::thread::sleep(Duration::from_millis(1_000));
    shell(&format!("ip -n {} link set v up", hosts.0[0])).unwrap();
    for (number, child) in running.into_iter().enumerate() {
        let output = finish(child);
        let (said, report) = (text(&output.stderr), report(&output.stdout));
        assert_eq!(output.status.code(), Some(0), "{number}: {said}");
        assert!(report["losses"]["unsent_datagrams"].as_u64() > Some(10), "{number}: {report} {said}");
        assert_eq!(said.matches("cannot send to 10.77.0.2:").count(), 1, "{number}: {said}");
        assert_eq!(said.matches("sending again after ").count(), 1, "{number}: {said}");
        if number < streams.len() {
            assert_eq!(report["samples"], 600_000, "{number}: {report}");
        }
    }
    assert_eq!(crate::support::data(&file).len(), 1_200_000);
}

/// A graph of a host that has no route any more counts what it could not send, also where it ends then.
#[test]
fn what_was_not_sent_is_told_where_the_link_stays_down() {
    let Some(hosts) = hosts("d") else { return };
    let to = "udp://10.77.0.2:5000?format=i16";
    let sender = hosts.start(&["sg", "--rate", "100k", "--samples", "100k", "--json", "--to", to]);
    std::thread::sleep(Duration::from_millis(500));
    shell(&format!("ip -n {} link set v down", hosts.0[0])).unwrap();
    let output = finish(sender);
    let (said, report) = (text(&output.stderr), report(&output.stdout));
    assert_eq!((output.status.code(), report["samples"].as_u64()), (Some(0), Some(100_000)), "{said}");
    assert!(report["losses"]["unsent_datagrams"].as_u64() > Some(10), "{report} {said}");
}

#[test]
fn a_firewall_loses_what_it_drops_and_what_follows_comes_once_and_in_order() {
    let Some(hosts) = hosts("f") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let recorder = ["record", "udp://127.0.0.1:0", path(&file), "--json", "--idle-timeout", "20s"];
    let (recorder, said, _stderr) = until_listening(&mut hosts.grebe(&recorder));
    let address = said.rsplit("listening on ").next().unwrap().trim().to_owned();
    let to = format!("udp://{address}");
    // 300 Mbit/s in small datagrams, of which many share a message.
    let made =
        ["sg", "--rate", "18.75M", "--samples", "56M", "--datagram-size", "1400", "--json", "--to", &to];
    let sender = hosts.start(&made);
    std::thread::sleep(Duration::from_millis(1_000));
    let (host, port) = (&hosts.0[0], address.rsplit(':').next().unwrap());
    let drop = format!("add rule inet t o udp dport {port} drop");
    let chain = "add chain inet t o { type filter hook output priority 0; }";
    shell(&format!("ip netns exec {host} nft 'add table inet t; {chain}; {drop}'")).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    shell(&format!("ip netns exec {host} nft delete table inet t")).unwrap();
    let sender = finish(sender);
    let recorder = finish(recorder);
    let (sent, came) = (report(&sender.stdout), report(&recorder.stdout));
    assert_eq!(sender.status.code(), Some(0), "{}", text(&sender.stderr));
    assert_eq!(recorder.status.code(), Some(0), "{came}");
    let count = |report: &Value, name: &str| report["losses"][name].as_u64().unwrap_or(0);
    assert_eq!((count(&came, "duplicate_frames"), count(&came, "late_frames")), (0, 0), "{came}");
    let (unsent, lost) = (count(&sent, "unsent_datagrams"), count(&came, "network_frames"));
    assert!(unsent > 0 && lost > 0, "{sent} {came}");
    if count(&came, "kernel_drops") == 0 {
        // Descriptions are datagrams, too, and no frames.
        assert!(lost <= unsent && unsent - lost < 20, "{sent} {came}");
    }
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}
