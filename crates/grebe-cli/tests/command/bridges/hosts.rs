//! Two hosts with a cable between them, as network namespaces, which only root can make.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::text;

/// 10.77.0.1 and 10.77.0.2; they go with it.
pub(crate) struct Hosts([String; 2]);

impl Hosts {
    /// `None` with a note if network namespaces are unavailable.
    pub(crate) fn make() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let hosts = Self([1, 2].map(|number| format!("gb{}-{count}-{number}", std::process::id())));
        hosts.wire().map_err(|why| println!("skipped: {why}")).ok()?;
        Some(hosts)
    }

    fn wire(&self) -> Result<(), String> {
        for program in ["ip", "nft"] {
            let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found
                .map_err(|_| format!("there is no {program} (Debian: apt-get install iproute2 nftables)"))?;
        }
        for host in &self.0 {
            shell(&format!("ip netns add {host}"))
                .map_err(|error| format!("no network namespaces: {error}"))?;
        }
        let [one, two] = &self.0;
        shell(&format!(
            "ip -n {one} link add v type veth peer name v netns {two} &&
             ip -n {one} addr add 10.77.0.1/24 dev v && ip -n {two} addr add 10.77.0.2/24 dev v &&
             for host in {one} {two}; do ip -n $host link set v up; ip -n $host link set lo up; done"
        ))
    }

    pub(crate) fn address(number: usize) -> String {
        format!("10.77.0.{number}")
    }

    /// The command, at one of them.
    pub(crate) fn command(&self, number: usize, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.0[number - 1]]);
        inside.arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null());
        inside
    }

    /// Plugs the cable of the first one in, or out.
    pub(crate) fn set_link(&self, state: &str) {
        shell(&format!("ip -n {} link set v {state}", self.0[0])).unwrap();
    }

    /// Makes the first host drop its `matching` packets; the sender of datagrams gets EPERM.
    pub(crate) fn drop_output(&self, matching: &str) {
        let chain = "add chain inet t o { type filter hook output priority 0; }";
        let rules = format!("add table inet t; {chain}; add rule inet t o {matching} drop");
        shell(&format!("ip netns exec {} nft '{rules}'", self.0[0])).unwrap();
    }

    pub(crate) fn drop_nothing(&self) {
        shell(&format!("ip netns exec {} nft delete table inet t", self.0[0])).unwrap();
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
