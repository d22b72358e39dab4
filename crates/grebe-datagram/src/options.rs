//! What is asked of a socket, and what of it was granted.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use crate::burst::MAX_BURST_DATAGRAMS;
use crate::side::Side;
use crate::sys;

/// How a socket is set up. Every field has a default that is right for a stream of samples.
///
/// ```
/// use grebe_datagram::Options;
/// let lowest_latency = Options { burst: 1, ..Options::default() };
/// let one_datagram_per_call = Options { batch: false, gso: false, gro: false, ..Options::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of the kernel's receive buffer to ask for. What was granted: [`Receiver::granted`](crate::Receiver::granted).
    pub recv_buffer_bytes: usize,
    /// Bytes of the kernel's send buffer to ask for.
    pub send_buffer_bytes: usize,
    /// Whether a privileged process (Linux: `CAP_NET_ADMIN`) goes beyond the system's limit for buffers.
    pub force_buffers: bool,
    /// Several datagrams per system call, where the system can.
    pub batch: bool,
    /// Many datagrams per kernel buffer when sending (Linux GSO, Windows USO). Probed; the environment variable `GREBE_NO_GSO`
    /// (any value but `0`) turns it off as well.
    pub gso: bool,
    /// Many datagrams per kernel buffer when receiving (Linux GRO). Slots must then hold 65,535 bytes, or messages are cut.
    pub gro: bool,
    /// Datagrams after which a batch flushes itself: 1 for the lowest latency, at most [`MAX_BURST_DATAGRAMS`].
    pub burst: usize,
    /// Datagrams up to this many bytes are copied together, so that one address range describes many (counted as copies).
    pub copy_below_bytes: usize,
    /// For how long a send is tried again while the kernel has no room, before it is an error.
    pub send_timeout: Duration,
    /// Leaves out what still has no room after that, and counts it in [`SendCounters::unsent`](crate::SendCounters::unsent), instead of
    /// failing: for streams, whose next samples matter more.
    pub leave_out_stalled: bool,
    /// Buffers that the receiver holds ready for one system call, 1 to 64.
    pub slots: usize,
    /// The end-to-end latency budget; the receiver sleeps at most half of it while the stream is fast.
    pub latency: Duration,
    /// [`Receiver::recv`](crate::Receiver::recv) returns empty after this long without a datagram.
    pub recv_timeout: Duration,
    /// Asks the kernel for each datagram's time of arrival (wall clock), where the system has one.
    pub timestamps: bool,
    /// Sets "don't fragment" on what is sent, whatever the route's MTU is believed to be: a datagram that a hop cannot carry is
    /// lost there, and one that the interface cannot carry is an [`Error::Send`](crate::Error::Send). On Linux, macOS and Windows.
    pub dont_fragment: bool,
    /// Lets several sockets bind the address (always on for multicast groups).
    pub reuse_address: bool,
    /// Routers that a datagram to one host may cross, and 1 for the last network: 1 stays on the local one. `None`: as many as the system
    /// has set.
    pub unicast_hops: Option<u32>,
    /// The interface that multicast leaves from, or joins on.
    pub multicast_interface: Interface,
    /// Routers that a multicast datagram may cross; 1 stays on the local network.
    pub multicast_ttl: u32,
    /// Whether receivers on this host see the multicast sent here.
    pub multicast_loopback: bool,
}

/// A network interface, to send or join multicast on.
///
/// ```
/// use grebe_datagram::Interface;
/// assert_eq!("192.168.1.20".parse(), Ok(Interface::Address([192, 168, 1, 20].into())));
/// assert_eq!("3".parse(), Ok(Interface::Index(3)));
/// assert!("no-such-interface".parse::<Interface>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interface {
    /// The one that the route to the group names.
    #[default]
    Default,
    /// The one with this address. For groups of IPv4; those of IPv6 take the default one.
    Address(Ipv4Addr),
    /// The one with this index (`if_nametoindex`). For groups of IPv4 on Linux and Windows only.
    Index(u32),
}

/// A name that no interface of this machine has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no network interface '{name}': give its name, its number or its IPv4 address")]
pub struct UnknownInterface {
    /// The name.
    pub name: String,
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    /// An IPv4 address, an index, or (not on Windows) a name, as `eth0`.
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
            // Facts: 2 ms stalls at 7 GB/s need some 16 MB; twice that leaves room for the kernel's own accounting.
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

/// What the kernel granted of a buffer that was asked for. Its text says how to get the rest.
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
    /// Which buffer.
    pub side: Side,
    /// Bytes that were asked for.
    pub asked_bytes: usize,
    /// Bytes that the kernel says it has (Linux: half of what it reports, which counts its own bookkeeping).
    pub granted_bytes: usize,
    /// Whether privilege carried it beyond the system's limit.
    pub forced: bool,
}

impl Granted {
    /// Whether less than what was asked for was granted.
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
