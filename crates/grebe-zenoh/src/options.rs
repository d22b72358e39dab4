//! How a process joins the lab.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::Error;

/// How a process joins the lab. As it is by default, it finds streams of this machine and talks to nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOptions {
    /// Zenoh's own configuration file, used as it is; the rest does not count then.
    pub config: Option<PathBuf>,
    /// Routers, the first that answers of them: `tcp/HOST:7447`, `tls/HOST:7447`. Everything goes through it.
    pub routers: Vec<String>,
    /// Looks for others on the LAN by multicast (224.0.0.224:7446), and lets them connect.
    pub scouts: bool,
    /// Neither sends datagrams to readers that ask for them, nor asks for any. This counts beside a configuration file, too.
    pub no_udp_on_request: bool,
}

/// Handling of messages that a slow reader has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The oldest go.
    #[default]
    DropOldest,
    /// The new one goes.
    DropLatest,
    /// The link that brings them waits, and all that comes by it, for [4 s](Overflow::BLOCK_S_MAX) a message.
    Block,
}

impl Overflow {
    /// Seconds for which a message waits for room at most: one second less than after which Zenoh closes the link.
    pub const BLOCK_S_MAX: u64 = 4;
}

/// Says once how this process joins; without it, as the environment says ([`SessionOptions::from_environment`]).
pub fn configure(options: SessionOptions) {
    // The first call wins.
    let _ = OPTIONS.set(options);
}

impl SessionOptions {
    /// As `ZENOH_CONFIG` (a file), else `GREBE_ROUTER` (addresses with commas between) or `GREBE_SCOUT` (anything but nothing and 0)
    /// say; and `GREBE_NO_UDP_ON_REQUEST`.
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

    /// Whether somebody said how this process joins, by [`configure`] or the environment.
    pub fn is_said() -> bool {
        Self { no_udp_on_request: false, ..Self::of_this_process() } != Self::default()
    }

    /// How far this process looks, for people.
    pub fn reach(&self) -> String {
        match (&self.config, &self.routers[..]) {
            (Some(path), _) => format!("the configuration {}", path.display()),
            (None, [_, ..]) => format!("the router {}", self.routers.join(" or ")),
            (None, []) if self.scouts => "multicast on the LAN".to_owned(),
            (None, []) => "this machine alone (--scout searches the LAN, --router uses a router)".to_owned(),
        }
    }

    /// The address of a router as Zenoh writes it: a host and a port alone are TCP.
    ///
    /// # Errors
    /// It is none.
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
    fn how_far_a_process_looks_is_said() {
        let options = SessionOptions::default();
        assert!(options.reach().contains("--router"));
        assert_eq!(SessionOptions { scouts: true, ..options.clone() }.reach(), "multicast on the LAN");
        let routers = SessionOptions { routers: vec!["tcp/a:1".into(), "tcp/b:2".into()], ..options };
        assert_eq!(routers.reach(), "the router tcp/a:1 or tcp/b:2");
    }
}
