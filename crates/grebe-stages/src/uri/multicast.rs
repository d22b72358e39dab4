//! What a name says of multicast: `udp://239.1.2.3:5000?interface=eth0&ttl=4`.

use std::fmt;

/// How datagrams reach a group, or are heard of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Multicast {
    /// `interface=`: where they leave, or the group is joined; `None`: where the route leads.
    interface: Option<String>,
    /// `ttl=`: routers that they may cross, and one more; `None`: 1, which stays in the local network.
    ttl: Option<u8>,
    /// `loop=no`: receivers on this machine do not get them.
    is_kept_from_here: bool,
}

impl Multicast {
    /// Takes it out of a name of datagrams: what it says, and the name without it.
    pub(crate) fn take(text: &str) -> Result<(Self, String), String> {
        let mut multicast = Self::default();
        let is_datagrams = text.starts_with("udp://") || text.starts_with("vrt://");
        let Some((name, query)) = text.split_once('?').filter(|_| is_datagrams) else {
            return Ok((multicast, text.to_owned()));
        };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("interface", "")) => return Err("has interface= that names no interface".to_owned()),
                Some(("interface", interface)) => multicast.interface = Some(interface.to_owned()),
                Some(("ttl", ttl)) => {
                    let wrong = |_| {
                        format!("has ttl={ttl}: give 0 to 255 (0 stays on this machine, 1 in its network)")
                    };
                    multicast.ttl = Some(ttl.parse().map_err(wrong)?);
                }
                Some(("loop", "yes")) => multicast.is_kept_from_here = false,
                Some(("loop", "no")) => multicast.is_kept_from_here = true,
                Some(("loop", other)) => return Err(format!("has loop={other}: give yes or no")),
                _ => rest.push(pair),
            }
        }
        let is_untouched = multicast == Self::default();
        let rest = match rest.is_empty() {
            _ if is_untouched => text.to_owned(),
            true => name.to_owned(),
            false => format!("{name}?{}", rest.join("&")),
        };
        Ok((multicast, rest))
    }

    /// Puts it into the options of a socket.
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

    /// Writes it behind a name, in which it is the first of the query or not.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, is_first: bool) -> fmt::Result {
        let pairs = [
            self.interface.as_ref().map(|interface| format!("interface={interface}")),
            self.ttl.map(|ttl| format!("ttl={ttl}")),
            self.is_kept_from_here.then(|| "loop=no".to_owned()),
        ];
        let mut separator = if is_first { '?' } else { '&' };
        for pair in pairs.into_iter().flatten() {
            write!(f, "{separator}{pair}")?;
            separator = '&';
        }
        Ok(())
    }
}
