//! Sockets of streams over UDP.

use std::net::SocketAddr;

use grebe_datagram::{Granted, Options, Receiver, Sender};

use super::Notice;
use crate::error::Error;
use crate::uri::{HostPort, Uri};

/// Listens there; with the address that it is.
pub(super) fn listen<Slab: AsMut<[u8]>>(
    uri: &Uri,
    at: &HostPort,
    options: &Options,
    notify: &mut dyn FnMut(Notice),
) -> Result<(Receiver<Slab>, SocketAddr), Error> {
    let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
    let (address, otherwise) = at.to_listen()?;
    let bind = |address| Receiver::bind(address, options);
    let receiver = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
    tell(receiver.granted(), notify);
    let address = receiver.local_addr().map_err(failed)?;
    Ok((receiver, address))
}

/// Sends there.
pub(super) fn send_to(
    uri: &Uri,
    to: &HostPort,
    options: &Options,
    notify: &mut dyn FnMut(Notice),
) -> Result<Sender, Error> {
    let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
    // A graph does not wait for a link, and does not end with it.
    let options = Options { leave_out_stalled: true, ..options.clone() };
    let sender = Sender::connect(to.to_send()?, &options).map_err(failed)?;
    tell(sender.granted(), notify);
    Ok(sender)
}

fn tell(granted: Granted, notify: &mut dyn FnMut(Notice)) {
    if granted.is_clamped() {
        notify(Notice::SmallBuffer(granted));
    }
}
