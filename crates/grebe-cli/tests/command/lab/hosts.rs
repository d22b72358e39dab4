//! Hosts as network namespaces of this machine, with a router between two of them. Only root can make them.
//!
//! ```text
//!  mast 10.97.1.2 --- 10.97.1.1 gate 10.97.2.1 --- 10.97.2.2 far
//! ```
//! The router of Zenoh's is at the gate, and so is a reader that has no router between the mast and itself.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::with_zenoh::Running;
use crate::support::{data, finish, grebe, text, wait_until};

/// The namespaces; they go with it.
struct Hosts {
    prefix: String,
}

impl Hosts {
    /// `None` with a note if network namespaces are unavailable.
    fn make() -> Option<Self> {
        let hosts = Self { prefix: format!("gl{}", std::process::id()) };
        match hosts.wire() {
            Ok(()) => Some(hosts),
            Err(why) => {
                println!("skipped: no network namespaces with links between: {why}");
                None
            }
        }
    }

    fn wire(&self) -> Result<(), String> {
        for host in HOSTS {
            ip(&["netns", "add", &self.name(host)])?;
            self.ip(host, "link set lo up")?;
        }
        for (number, host) in [(1, "mast"), (2, "far")] {
            let there = self.name(host);
            self.ip("gate", &format!("link add to_{host} type veth peer name lan netns {there}"))?;
            self.ip("gate", &format!("addr add 10.97.{number}.1/24 dev to_{host}"))?;
            self.ip("gate", &format!("link set to_{host} up"))?;
            self.ip(host, &format!("addr add 10.97.{number}.2/24 dev lan"))?;
            self.ip(host, "link set lan up")?;
            self.ip(host, &format!("route add default via 10.97.{number}.1"))?;
        }
        let forward = self.at("gate", Command::new("sysctl").args(["-q", "-w", "net.ipv4.ip_forward=1"]));
        done(forward)
    }

    fn ip(&self, host: &str, words: &str) -> Result<(), String> {
        let there = self.name(host);
        ip(&["-n", &there].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    }

    fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// The command, at a host.
    fn at(&self, host: &str, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &self.name(host)]);
        there.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        there.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        there
    }

    /// grebe, at a host that has joined the router.
    fn grebe(&self, host: &str, arguments: &[&str]) -> Command {
        let mut there = self.at(host, &grebe(arguments));
        there.env("GREBE_ROUTER", "tcp/10.97.1.1:7447");
        there
    }

    /// Records a part of a stream on a host, and returns its route.
    fn record(&self, host: &str, name: &str, file: &Path, more: &[&str]) -> String {
        let arguments =
            [&["record", name, file.to_str().unwrap(), "--overwrite", "--samples", "50k"], more].concat();
        let mut command = self.grebe(host, &arguments);
        let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(data(file).len(), 100_000, "{said}");
        said
    }

    /// Datagrams that have left a host.
    fn datagrams(&self, host: &str) -> u64 {
        let output = self.at(host, Command::new("cat").arg("/proc/net/snmp")).output().unwrap();
        let counts = text(&output.stdout);
        let [names, values] = counts.lines().filter(|line| line.starts_with("Udp: ")).collect::<Vec<_>>()[..]
        else {
            panic!("{counts}");
        };
        let at = names.split(' ').position(|name| name == "OutDatagrams").unwrap();
        values.split(' ').nth(at).unwrap().parse().unwrap()
    }

    /// Waits until no more datagrams leave a host.
    fn await_quiet(&self, host: &str) {
        let began = Instant::now();
        let mut before = self.datagrams(host);
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = self.datagrams(host);
            if now == before {
                return println!("quiet after {:.1} s", began.elapsed().as_secs_f64() - 0.3);
            }
            assert!(began.elapsed() < Duration::from_secs(30), "datagrams still leave {host}");
            before = now;
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in HOSTS {
            let _ =
                Command::new("ip").args(["netns", "del", &self.name(host)]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_reader_on_another_host_has_datagrams_sent_for_as_long_as_it_reads() {
    let Some(hosts) = Hosts::make() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("router.json5");
    let router = "{ mode: 'router', listen: { endpoints: ['tcp/0.0.0.0:7447'] }, \
        scouting: { multicast: { enabled: false } }, transport: { link: { tx: { lease: 1500, keep_alive: 6 } } } }";
    std::fs::write(&config, router).unwrap();
    let ls = grebe(&["ls", "-w", "--zenoh", config.to_str().unwrap()]);
    let _router = Running::of(hosts.at("gate", &ls)).says("watching");
    let name = "lab/mast/adc";
    let sg = ["sg", "--rate", "100k", "--name", name];
    let producer = Running::of(hosts.grebe("mast", &sg)).says("announced as");
    let file = folder.path().join("came.sigmf-meta");

    // Without a router between them, and beyond one if requested.
    let said = hosts.record("gate", name, &file, &[]);
    assert!(said.contains(" by udp on request"), "{said}");
    let said = hosts.record("far", name, &file, &[]);
    assert!(said.contains(" by zenoh://"), "{said}");
    let said = hosts.record("far", &format!("{name}?route=udp"), &file, &[]);
    assert!(said.contains(" by udp on request"), "{said}");
    let said = hosts.record("gate", name, &file, &["--no-udp-on-request"]);
    assert!(said.contains(" by zenoh://"), "{said}");
    let output = hosts.grebe("far", &["ls", name]).output().unwrap();
    assert!(text(&output.stdout).contains("udp on request, zenoh"), "{}", text(&output.stdout));

    // A stopped or killed reader gets no more data; a continued one does.
    let file = folder.path().join("long.sigmf-meta");
    let arguments = ["record", name, file.to_str().unwrap(), "--json"];
    let reader = Running::of(hosts.grebe("gate", &arguments)).says(" by udp on request");
    let size = || std::fs::metadata(file.with_extension("sigmf-data")).map_or(0, |of| of.len());
    let await_growth = || {
        let before = size();
        wait_until("nothing is recorded", || size() > before);
    };
    await_growth();
    reader.signal("-STOP");
    hosts.await_quiet("mast");
    reader.signal("-CONT");
    await_growth();
    reader.signal("-KILL");
    hosts.await_quiet("mast");

    // It ends with the stream.
    let file = folder.path().join("last.sigmf-meta");
    let arguments = ["record", name, file.to_str().unwrap()];
    let reader = Running::of(hosts.grebe("gate", &arguments)).says(" by udp on request");
    producer.signal("-INT");
    producer.finish();
    let (output, said) = reader.finish();
    assert_eq!(output.status.code(), Some(0), "{said}");
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(arguments);
    done(command)
}

fn done(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = text(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", said.trim())) }
}

const HOSTS: [&str; 3] = ["mast", "gate", "far"];
