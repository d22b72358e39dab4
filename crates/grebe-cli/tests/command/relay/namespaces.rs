//! Two hosts, each behind its own NAT, and a relay, as network namespaces of this machine. Needs root.
//!
//! ```text
//!  host 1 --- NAT 1 ---+--- NAT 2 --- host 2      hosts 10.0.N.2 and 2001:db8:N::2, NATs 203.0.113.1N
//!                      |
//!                    relay                        203.0.113.1 and 2001:db8::1
//! ```

use std::io::Write;
use std::process::{Command, Stdio};

/// Filter and mapping of a NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nat {
    /// A port that is passed on, whoever sends there.
    FullCone,
    /// Accepts packets from addresses that it has sent to: the default of Linux.
    Restricted,
    /// As before, and with another port for each destination.
    Symmetric,
}

/// The namespaces; they go with it.
pub(crate) struct Network {
    prefix: String,
}

impl Network {
    /// `Err`: the reason why it is not possible here.
    pub(crate) fn make(name: &str) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make network namespaces".into());
        }
        for program in ["ip", "nft"] {
            let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found
                .map_err(|_| format!("there is no {program} (Debian: apt-get install iproute2 nftables)"))?;
        }
        let network = Self { prefix: format!("gr{name}{}", std::process::id()) };
        for place in PLACES {
            let made = run(Command::new("ip").args(["netns", "add", &network.name(place)]));
            made.map_err(|error| format!("no network namespaces: {error}"))?;
        }
        network.wire().map_err(|error| format!("no links between network namespaces: {error}"))?;
        network.set_nats(Nat::Restricted, Nat::Restricted)?;
        Ok(network)
    }

    /// A program to be started at `host1`, `host2` or `relay`.
    pub(crate) fn command(&self, place: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(place), program]);
        command
    }

    pub(crate) fn set_nats(&self, one: Nat, two: Nat) -> Result<(), String> {
        for (number, nat) in [(1, one), (2, two)] {
            self.nft(number, &rules(number, nat))?;
        }
        Ok(())
    }

    /// Lets nothing pass directly any more; the way to the relay stays.
    pub(crate) fn cut_direct_way(&self) {
        for (number, other) in [(1, 2), (2, 1)] {
            let rules = format!(
                "table ip cut {{
                   chain forward {{
                     type filter hook forward priority -10;
                     ip saddr 203.0.113.1{other} drop; ip daddr 203.0.113.1{other} drop;
                   }}
                 }}"
            );
            self.nft(number, &rules).unwrap();
        }
    }

    /// Gives both hosts IPv6 without NAT, behind firewalls that admit only answers.
    pub(crate) fn add_ipv6(&self) -> Result<(), String> {
        self.ip("relay", "-6 addr add 2001:db8::1/64 dev wan nodad")?;
        for (number, other) in [(1, 2), (2, 1)] {
            let (nat, host) = (format!("nat{number}"), format!("host{number}"));
            self.ip(&nat, &format!("-6 addr add 2001:db8::1{number}/64 dev wan nodad"))?;
            self.ip(&nat, &format!("-6 addr add 2001:db8:{number}::1/64 dev lan nodad"))?;
            self.ip(&nat, &format!("-6 route add 2001:db8:{other}::/64 via 2001:db8::1{other}"))?;
            self.ip("relay", &format!("-6 route add 2001:db8:{number}::/64 via 2001:db8::1{number}"))?;
            self.ip(&host, &format!("-6 addr add 2001:db8:{number}::2/64 dev lan nodad"))?;
            self.ip(&host, &format!("-6 route add default via 2001:db8:{number}::1"))?;
            let forward = "net.ipv6.conf.all.forwarding=1";
            run(self.command(&nat, "sysctl").args(["-q", "-w", forward]))?;
            self.nft(number, FIREWALL_OF_IPV6)?;
        }
        Ok(())
    }

    fn wire(&self) -> Result<(), String> {
        for place in PLACES {
            // Addresses of IPv6 are good at once: nobody else can have them.
            let at_once = "net.ipv6.conf.default.accept_dad=0";
            let _ = run(self.command(place, "sysctl").args(["-q", "-w", at_once]));
        }
        self.ip("internet", "link add name bridge type bridge mcast_snooping 0")?;
        self.ip("internet", "link set bridge up")?;
        for (place, address) in [("relay", "203.0.113.1"), ("nat1", "203.0.113.11"), ("nat2", "203.0.113.12")]
        {
            let there = self.name(place);
            self.ip("internet", &format!("link add {place} type veth peer name wan netns {there}"))?;
            self.ip("internet", &format!("link set {place} master bridge up"))?;
            self.ip(place, &format!("addr add {address}/24 dev wan"))?;
            self.ip(place, "link set wan up")?;
        }
        for number in [1, 2] {
            let (nat, host) = (format!("nat{number}"), format!("host{number}"));
            let there = self.name(&host);
            self.ip(&nat, &format!("link add lan type veth peer name lan netns {there}"))?;
            self.ip(&nat, &format!("addr add 10.0.{number}.1/24 dev lan"))?;
            self.ip(&nat, "link set lan up")?;
            self.ip(&host, &format!("addr add 10.0.{number}.2/24 dev lan"))?;
            self.ip(&host, "link set lan up")?;
            self.ip(&host, "link set lo up")?;
            self.ip(&host, &format!("route add default via 10.0.{number}.1"))?;
            run(self.command(&nat, "sysctl").args(["-q", "-w", "net.ipv4.ip_forward=1"]))?;
        }
        Ok(())
    }

    fn ip(&self, place: &str, words: &str) -> Result<(), String> {
        run(Command::new("ip").args(["-n", &self.name(place)]).args(words.split(' ')))
    }

    fn nft(&self, number: u8, rules: &str) -> Result<(), String> {
        let mut nft = self.command(&format!("nat{number}"), "nft");
        let mut child = nft
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        child.stdin.take().unwrap().write_all(rules.as_bytes()).map_err(|error| error.to_string())?;
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(format!("nft: {said}")) }
    }

    fn name(&self, place: &str) -> String {
        format!("{}{place}", self.prefix)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for place in PLACES {
            let _ =
                Command::new("ip").args(["netns", "del", &self.name(place)]).stderr(Stdio::null()).status();
        }
    }
}

/// As in home routers: packets to the router are dropped, and packets to hosts pass only as answers.
fn rules(number: u8, nat: Nat) -> String {
    let (random, passed_on, lets_in) = match nat {
        Nat::FullCone => (
            "",
            format!("iifname \"wan\" meta l4proto udp dnat to 10.0.{number}.2"),
            "iifname \"wan\" accept",
        ),
        Nat::Restricted => ("", String::new(), ""),
        Nat::Symmetric => ("random,fully-random", String::new(), ""),
    };
    format!(
        "flush ruleset
         table ip nat {{
           chain prerouting {{ type nat hook prerouting priority -100; {passed_on}; }}
           chain postrouting {{ type nat hook postrouting priority 100; oifname \"wan\" masquerade {random}; }}
         }}
         table ip filter {{
           chain input {{ type filter hook input priority 0; iifname \"wan\" drop; }}
           chain forward {{
             type filter hook forward priority 0; policy drop;
             ct state established,related accept; iifname \"lan\" accept; {lets_in};
           }}
         }}"
    )
}

const FIREWALL_OF_IPV6: &str = "table ip6 filter {
  chain forward {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept; iifname \"lan\" accept;
  }
}";

const PLACES: [&str; 6] = ["internet", "relay", "nat1", "nat2", "host1", "host2"];

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
