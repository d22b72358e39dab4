//! Allowed host names of requests.

use std::net::IpAddr;

/// Whether all `Host` headers of a request name this machine. A foreign web page in a user's browser could
/// point its own host name here and read the answer. Programs without such a header do not run foreign pages.
pub(crate) fn is_for_here(head: &str, given: Option<&str>) -> bool {
    let hosts = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts = hosts.filter(|(header, _)| header.trim().eq_ignore_ascii_case("host"));
    hosts.all(|(_, host)| {
        let name = name_of(host.trim());
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || given.is_some_and(|given| name.eq_ignore_ascii_case(given))
            || own_name().is_some_and(|own| name.eq_ignore_ascii_case(&own))
    })
}

/// Name in `NAME:PORT`, or address in `[ADDRESS]:PORT`.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Host name of this machine.
#[cfg(target_os = "linux")]
fn own_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Not queried on other systems: pass the name explicitly.
#[cfg(not(target_os = "linux"))]
fn own_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_s_name_does_not_lead_here() {
        let asks = |hosts: &[&str]| {
            let hosts: String = hosts.iter().map(|host| format!("{host}\r\n")).collect();
            is_for_here(&format!("GET /metrics HTTP/1.1\r\nAccept: a\r\n{hosts}\r\n"), Some("mast.example"))
        };
        for host in ["127.0.0.1:9464", "[::1]:9464", "10.0.0.7", "localhost:1", "MAST.example:9464"] {
            assert!(asks(&[&format!("Host: {host}")]), "{host}");
        }
        for host in [
            "evil.example:9464",
            "evil.example",
            "127.0.0.1.evil.example",
            "mast.example.evil.example",
            "",
            ":80",
        ] {
            assert!(!asks(&[&format!("hOst:{host}")]), "{host}");
        }
        assert!(asks(&[]) && !asks(&["Host: localhost", "Host: evil.example"]));
        if let Some(own) = own_name() {
            assert!(asks(&[&format!("Host: {own}:9464")]) && !asks(&[&format!("Host: {own}.evil.example")]));
        }
    }
}
