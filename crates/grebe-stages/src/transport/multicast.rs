//! Multicast options: `udp://239.1.2.3:5000?interface=eth0&ttl=4`.

use grebe_process::query::{Pairs, Query};

/// Options for sending to a group or joining it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Multicast {
    /// `interface=`: the interface to send or join by; `None`: by the routing table.
    interface: Option<String>,
    /// `ttl=`: maximum hops; `None`: 1, which stays in the local network.
    ttl: Option<u8>,
    /// `loop=no`: receivers on this machine do not get the datagrams.
    is_kept_from_here: bool,
}

impl Multicast {
    /// Parses the options of a query.
    ///
    /// # Errors
    /// An option is malformed.
    pub(crate) fn take(query: &mut Query<'_>) -> Result<Self, String> {
        Ok(Self {
            interface: query.text("interface", "a network interface, by name, number or address")?,
            ttl: query.value("ttl", "0 to 255 (0 stays on this machine, 1 in its network)", |ttl| {
                ttl.parse().ok()
            })?,
            is_kept_from_here: query.yes_or_no("loop")? == Some(false),
        })
    }

    /// Applies them to the options of a socket.
    pub(crate) fn set_options(&self, options: &mut grebe_datagram::Options) -> Result<(), String> {
        options.multicast_ttl = self.ttl.map_or(options.multicast_ttl, u32::from);
        options.multicast_loopback = !self.is_kept_from_here;
        if let Some(interface) = &self.interface {
            let found = interface.parse();
            options.multicast_interface = found
                .map_err(|error: grebe_datagram::UnknownInterface| format!("cannot be used: {error}"))?;
        }
        Ok(())
    }

    /// Adds them to a name.
    pub(crate) fn write(&self, pairs: Pairs) -> Pairs {
        pairs
            .add("interface", self.interface.as_ref())
            .add("ttl", self.ttl)
            .add("loop", self.is_kept_from_here.then_some("no"))
    }
}
