//! Sockets of streams over UDP.

use std::net::{Ipv4Addr, SocketAddr};

use grebe_datagram::{Granted, Options, Receiver, Sender};

use super::host_port::HostPort;
use crate::error::Error;
use crate::open::{Notice, Notify, Transport};

/// Opens a receiver on an address. Returns the actual address.
pub(crate) fn listen<Slab: AsMut<[u8]>>(
    uri: &str,
    at: &HostPort,
    transport: &Transport,
    notify: Notify<'_>,
) -> Result<(Receiver<Slab>, SocketAddr), Error> {
    let options = transport.socket_options(at)?;
    let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
    let (address, otherwise) = at.to_listen()?;
    let bind = |address| Receiver::bind(address, &options);
    let receiver = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
    tell(receiver.granted(), notify);
    let address = receiver.local_addr().map_err(failed)?;
    Ok((receiver, address))
}

/// Opens a sender to an address.
pub(crate) fn send_to(
    uri: &str,
    to: &HostPort,
    transport: &Transport,
    notify: Notify<'_>,
) -> Result<Sender, Error> {
    let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
    // A graph neither waits for a link nor ends with it.
    let options = Options { leave_out_stalled: true, ..transport.socket_options(to)? };
    let sender = Sender::connect(to.to_send()?, &options).map_err(failed)?;
    tell(sender.granted(), notify);
    Ok(sender)
}

/// The address by which a program of this machine reaches a listener.
pub(crate) fn reachable(at: SocketAddr) -> SocketAddr {
    if at.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, at.port()).into() } else { at }
}

fn tell(granted: Granted, notify: Notify<'_>) {
    if granted.is_clamped() {
        notify(Notice::SmallBuffer(granted));
    }
}
