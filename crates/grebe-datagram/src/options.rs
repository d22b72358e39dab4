//! Socket options, and the granted buffers.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use crate::burst::MAX_BURST_DATAGRAMS;
use crate::side::Side;
use crate::sys;

/// Options of a socket. The defaults suit a stream of samples.
///
/// ```
/// use grebe_datagram::Options;
/// let lowest_latency = Options { burst: 1, ..Options::default() };
/// let one_datagram_per_call = Options { batch: false, gso: false, gro: false, ..Options::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of the kernel's receive buffer to request. Granted size:
    /// [`Receiver::granted`](crate::Receiver::granted).
    pub recv_buffer_bytes: usize,
    /// Size of the kernel's send buffer to request.
    pub send_buffer_bytes: usize,
    /// Whether a privileged process (Linux: `CAP_NET_ADMIN`) exceeds the system's limit for buffers.
    pub force_buffers: bool,
    /// Several datagrams per system call, if the system supports it.
    pub batch: bool,
    /// Several datagrams per kernel buffer when sending (Linux GSO, Windows USO). Probed; the environment
    /// variable `GREBE_NO_GSO` (any value except `0`) also disables it.
    pub gso: bool,
    /// Several datagrams per kernel buffer when receiving (Linux GRO). Slots then need 65,535 bytes, or
    /// messages are truncated.
    pub gro: bool,
    /// Datagrams after which a batch flushes itself: 1 for the lowest latency, at most
    /// [`MAX_BURST_DATAGRAMS`].
    pub burst: usize,
    /// Datagrams up to this length are copied together, so that one address range covers many (counted as
    /// copies).
    pub copy_below_bytes: usize,
    /// Time to retry a send while the kernel has no room, before it is an error.
    pub send_timeout: Duration,
    /// Skips datagrams without room after that time and counts them in
    /// [`SendCounters::unsent`](crate::SendCounters::unsent), instead of failing. For streams, whose next
    /// samples matter more.
    pub leave_out_stalled: bool,
    /// Receive buffers per system call, 1 to 64.
    pub slots: usize,
    /// End-to-end latency budget. The receiver sleeps at most half of it while the stream is fast.
    pub latency: Duration,
    /// Time without a datagram after which [`Receiver::recv`](crate::Receiver::recv) returns empty.
    pub recv_timeout: Duration,
    /// Requests the kernel's arrival time of each datagram (wall clock), if available.
    pub timestamps: bool,
    /// Sets "don't fragment" on outgoing datagrams, whatever the assumed MTU of the route. A datagram too
    /// long for a hop is lost there; one too long for the interface is an
    /// [`Error::Send`](crate::Error::Send). On Linux, macOS and Windows.
    pub dont_fragment: bool,
    /// Allows several sockets to bind the address (always on for multicast groups).
    pub reuse_address: bool,
    /// Hop limit of a datagram to one host: 1 stays on the local network. `None`: the system's default.
    pub unicast_hops: Option<u32>,
    /// Interface for sending or joining multicast.
    pub multicast_interface: Interface,
    /// Hop limit of a multicast datagram: 1 stays on the local network.
    pub multicast_ttl: u32,
    /// Whether receivers on this host get the multicast sent here.
    pub multicast_loopback: bool,
}

/// Network interface for sending or joining multicast.
///
/// ```
/// use grebe_datagram::Interface;
/// assert_eq!("192.168.1.20".parse(), Ok(Interface::Address([192, 168, 1, 20].into())));
/// assert_eq!("3".parse(), Ok(Interface::Index(3)));
/// assert!("no-such-interface".parse::<Interface>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interface {
    /// The interface of the route to the group.
    #[default]
    Default,
    /// The interface with this address. For IPv4 groups; IPv6 groups use the default one.
    Address(Ipv4Addr),
    /// The interface with this index (`if_nametoindex`). For IPv4 groups only on Linux and Windows.
    Index(u32),
}

/// Unknown interface name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown network interface '{name}': give its name, its number or its IPv4 address")]
pub struct UnknownInterface {
    /// The name.
    pub name: String,
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    /// Parses an IPv4 address, an index, or (not on Windows) a name such as `eth0`.
    fn from_str(text: &str) -> Result<Self, UnknownInterface> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let index = text.parse().ok().or_else(|| sys::interface_index(text));
        index.map(Self::Index).ok_or_else(|| UnknownInterface { name: text.to_owned() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Stalls of 2 ms at 7 GB/s need some 16 MB; twice that leaves room for the kernel's own
            // accounting.
            recv_buffer_bytes: 32 << 20,
            send_buffer_bytes: 4 << 20,
            force_buffers: true,
            batch: true,
            gso: true,
            gro: true,
            burst: MAX_BURST_DATAGRAMS,
            copy_below_bytes: 512,
            send_timeout: Duration::from_millis(100),
            leave_out_stalled: false,
            slots: 8,
            latency: Duration::from_micros(500),
            recv_timeout: Duration::from_millis(100),
            timestamps: false,
            dont_fragment: false,
            reuse_address: false,
            unicast_hops: None,
            multicast_interface: Interface::Default,
            multicast_ttl: 1,
            multicast_loopback: true,
        }
    }
}

/// Buffer size granted by the kernel. Its `Display` explains how to get the rest.
///
/// ```
/// # use grebe_datagram::{Options, Receiver};
/// # fn main() -> Result<(), grebe_datagram::Error> {
/// let receiver: Receiver<Vec<u8>> = Receiver::bind("127.0.0.1:0".parse().unwrap(), &Options::default())?;
/// if receiver.granted().is_clamped() {
///     eprintln!("{}", receiver.granted());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Kind of buffer.
    pub side: Side,
    /// Requested bytes.
    pub asked_bytes: usize,
    /// Granted bytes (Linux: half of the reported size, which includes its own bookkeeping).
    pub granted_bytes: usize,
    /// Whether privilege exceeded the system's limit.
    pub forced: bool,
}

impl Granted {
    /// Whether less than the request was granted.
    pub fn is_clamped(&self) -> bool {
        self.granted_bytes < self.asked_bytes
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Receive => "receive",
            Side::Send => "send",
        };
        if !self.is_clamped() {
            return write!(f, "{side} buffer: {} bytes", self.granted_bytes);
        }
        write!(f, "{side} buffer: {} of {} bytes granted", self.granted_bytes, self.asked_bytes)?;
        let setting = match (cfg!(any(target_os = "linux", target_os = "android")), self.side) {
            (true, Side::Receive) => "net.core.rmem_max",
            (true, Side::Send) => "net.core.wmem_max",
            _ if cfg!(windows) => return Ok(()),
            _ => "kern.ipc.maxsockbuf",
        };
        write!(f, "; to lift the limit: sysctl -w {setting}={}", self.asked_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clamp_says_what_to_change() {
        let granted =
            Granted { side: Side::Receive, asked_bytes: 32 << 20, granted_bytes: 4 << 20, forced: false };
        assert!(granted.is_clamped());
        let text = granted.to_string();
        assert!(text.contains("4194304 of 33554432"), "{text}");
        if cfg!(target_os = "linux") {
            assert!(text.ends_with("sysctl -w net.core.rmem_max=33554432"), "{text}");
        }
    }
}
