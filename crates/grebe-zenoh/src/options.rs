//! Options for joining the lab.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::Error;

/// Options for joining the lab. The default finds streams of this machine only, without other hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOptions {
    /// Zenoh's configuration file. It replaces the other options.
    pub config: Option<PathBuf>,
    /// Routers `tcp/HOST:7447`, `tls/HOST:7447`; the first that answers carries all traffic.
    pub routers: Vec<String>,
    /// Finds hosts on the LAN by multicast (224.0.0.224:7446), and accepts their connections.
    pub scouts: bool,
    /// Neither sends nor requests datagrams on request. Also valid with a configuration file.
    pub no_udp_on_request: bool,
}

/// Handling of messages that a slow reader has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Drops the oldest.
    #[default]
    DropOldest,
    /// Drops the new one.
    DropLatest,
    /// Blocks the whole link, for up to [4 s](Overflow::BLOCK_S_MAX) per message.
    Block,
}

impl Overflow {
    /// Maximum seconds that a message waits: one second less than Zenoh's limit for the link.
    pub const BLOCK_S_MAX: u64 = 4;
}

/// Sets the options of this process, once. Default: from the environment ([`SessionOptions::from_environment`]).
pub fn configure(options: SessionOptions) {
    // The first call wins.
    let _ = OPTIONS.set(options);
}

impl SessionOptions {
    /// From `ZENOH_CONFIG` (a file), otherwise `GREBE_ROUTER` (addresses separated by commas) or `GREBE_SCOUT` (not
    /// empty and not 0); and `GREBE_NO_UDP_ON_REQUEST`.
    pub fn from_environment() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let is_on = |name| text(name).is_some_and(|text| text != "0");
        let routers = text("GREBE_ROUTER").unwrap_or_default();
        let routers = routers.split(',').filter(|router| !router.is_empty());
        Self {
            config: std::env::var_os("ZENOH_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from),
            routers: routers.map(str::to_owned).collect(),
            scouts: is_on("GREBE_SCOUT"),
            no_udp_on_request: is_on("GREBE_NO_UDP_ON_REQUEST"),
        }
    }

    /// Options of this process.
    pub(crate) fn of_this_process() -> Self {
        OPTIONS.get().cloned().unwrap_or_else(Self::from_environment)
    }

    /// Whether [`configure`] or the environment set the options.
    pub fn is_said() -> bool {
        Self { no_udp_on_request: false, ..Self::of_this_process() } != Self::default()
    }

    /// Scope of a search, for messages.
    pub fn reach(&self) -> String {
        match (&self.config, &self.routers[..]) {
            (Some(path), _) => format!("the configuration {}", path.display()),
            (None, [_, ..]) => format!("the router {}", self.routers.join(" or ")),
            (None, []) if self.scouts => "multicast on the LAN".to_owned(),
            (None, []) => "this machine alone; --scout searches the LAN, --router uses a router".to_owned(),
        }
    }

    /// The address of a router in Zenoh's notation. A host and a port alone mean TCP.
    ///
    /// # Errors
    /// It is invalid.
    pub fn endpoint(router: &str) -> Result<String, Error> {
        let wrong = || Error::Router { router: router.to_owned() };
        let (protocol, address) = router.split_once('/').unwrap_or(("tcp", router));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        // The rest after the port belongs to Zenoh: `#iface=eth0`.
        let port = port.split(['?', '#']).next().unwrap_or_default();
        let is_good = matches!(protocol, "tcp" | "tls") && !host.is_empty() && port.parse::<u16>().is_ok();
        if is_good { Ok(format!("{protocol}/{address}")) } else { Err(wrong()) }
    }
}

static OPTIONS: OnceLock<SessionOptions> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_an_address_of_tcp_or_tls() {
        for (text, endpoint) in [
            ("tcp/lab:7447", "tcp/lab:7447"),
            ("lab:7447", "tcp/lab:7447"),
            ("tls/[::1]:7447#iface=lo", "tls/[::1]:7447#iface=lo"),
        ] {
            assert_eq!(SessionOptions::endpoint(text).unwrap(), endpoint);
        }
        for text in ["", "lab", "udp/lab:7447", "tcp/:7447", "tcp/lab:x", "tcp://lab:7447"] {
            let error = SessionOptions::endpoint(text).unwrap_err().to_string();
            assert!(error.contains("write tcp/HOST:7447"), "{text}: {error}");
        }
    }

    #[test]
    fn a_process_reports_how_far_it_searches() {
        let options = SessionOptions::default();
        assert!(options.reach().contains("--router"));
        assert_eq!(SessionOptions { scouts: true, ..options.clone() }.reach(), "multicast on the LAN");
        let routers = SessionOptions { routers: vec!["tcp/a:1".into(), "tcp/b:2".into()], ..options };
        assert_eq!(routers.reach(), "the router tcp/a:1 or tcp/b:2");
    }
}
