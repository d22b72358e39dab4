//! Receiving files: the options, the listener, and how one side connects to the other.

mod receiving;

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grebe_datagram::{Options, Receiver as Datagrams};
use grebe_packet::{Cancel, Purpose, Ticket};
use grebe_relay::{Side, Via};

use self::receiving::Receiving;
use super::connect::{self, Asking};
use super::finding::{Found, find};
use super::rendezvous::ByTcp;
use super::tcp::TcpDoor;
use super::{KEEP_TRYING, Notify, ReceiveProgress, ReceiveReport, Transport};
use crate::error::{Error, Result};
use crate::io::disk::Accept;
use crate::proto::handshake::{Responder, Role};
use crate::proto::wire::WINDOW_BYTES_MAX;

/// Waits for one sender: the one that has the ticket.
#[derive(Debug)]
pub struct ReceiveListener {
    datagrams: Datagrams<Vec<u8>>,
    /// A sender needs it to connect; where senders reach the listener by other addresses, put those in.
    pub ticket: Ticket,
    door: Option<TcpDoor>,
}

/// How files are received.
#[derive(Clone)]
pub struct ReceiveOptions {
    /// Replace files of the same names; directories are never replaced.
    pub overwrite: bool,
    /// Is called when it is known what is offered, and says whether that is taken. `None`: it is.
    pub accept: Option<Accept>,
    /// `accept` may take long: it asks a person.
    pub asks: bool,
    /// Where the key of this user's journals lies; `None`: where the user's programs keep such things.
    pub state: Option<PathBuf>,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// For how long a sender that was there may be silent.
    pub keep_trying: Duration,
    /// Memory that bytes may take which came before others that are missing, at least 48 MiB. Where the path holds more, the sender waits.
    pub memory_bytes_max: u64,
    /// Which ways are taken where the ticket names a relay.
    pub via: Via,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is called with what a user may want to know before the end.
    pub notify: Notify,
}

impl ReceiveListener {
    /// Listens at `address` (port 0: any) for at most `lifetime` until a sender connects. The ticket names `address` or,
    /// where that is any (`0.0.0.0`), the addresses of this host: where senders reach it by others, put those into [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers;
    /// [`Error::Ticket`] where this host has no address to name.
    pub fn bind(address: SocketAddr, lifetime: Duration) -> Result<Self> {
        let bind = |address| Ok(Datagrams::bind(address, &socket_options())?);
        let (datagrams, bound, door) =
            connect::bind_with_door(address, bind, |datagrams: &Datagrams<_>| Ok(datagrams.local_addr()?))?;
        let ticket = connect::new_ticket(Purpose::Transfer, bound, lifetime)?;
        Ok(Self { datagrams, ticket, door })
    }

    /// Waits for the sender and takes its files into `directory`. They lie in `.grebe-partial` there until all are whole, verified
    /// and on the disk.
    ///
    /// `on_progress` is called ten times per second once the sender has connected.
    ///
    /// # Errors
    /// [`Error::Expired`] where nobody connected in time; [`Error::File`], [`Error::Exists`], [`Error::NoRoom`], [`Error::Index`]
    /// where the files cannot be made; [`Error::Silent`]; [`Error::HashDiffers`]; [`Error::Ended`]; [`Error::Cancelled`];
    /// [`Error::Socket`].
    pub fn receive(
        self,
        directory: &Path,
        options: &ReceiveOptions,
        on_progress: impl FnMut(&ReceiveProgress),
    ) -> Result<ReceiveReport> {
        let Self { datagrams, ticket, door } = self;
        let mut receiving = Receiving::new(&datagrams, directory, options)?;
        receiving.door = door.filter(|_| options.via != Via::Relay);
        receiving.meet(&ticket, Side::Waits, options)?;
        receiving.answer(Responder::new(ticket.key.clone(), Role::Send), ticket.expires_unix_s);
        receiving.run(datagrams, options, on_progress)
    }
}

/// Takes the files of the sender that made the ticket into `directory`: see [`ReceiveListener::receive`].
///
/// # Errors
/// As [`ReceiveListener::receive`], and [`Error::NoAnswer`].
pub fn receive(
    ticket: &Ticket,
    directory: &Path,
    options: &ReceiveOptions,
    on_progress: impl FnMut(&ReceiveProgress),
) -> Result<ReceiveReport> {
    let bind = |local| {
        let datagrams = Datagrams::bind(local, &socket_options())?;
        let socket = another_handle(&datagrams)?;
        Ok((datagrams, socket))
    };
    let asking = Asking {
        role: Role::Receive,
        within: options.answer_within,
        transport: Transport::Any,
        cancel: &options.cancel,
        notify: &options.notify,
    };
    let Found { connected, datagrams, addresses, meeting, .. } =
        find(ticket, options.via, ByTcp::Untried, &asking, bind)?;
    let mut receiving = Receiving::new(&datagrams, directory, options)?;
    receiving.go_on(connected, addresses, meeting);
    receiving.run(datagrams, options, on_progress)
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            accept: None,
            asks: false,
            state: None,
            answer_within: Duration::from_secs(10),
            keep_trying: KEEP_TRYING,
            memory_bytes_max: WINDOW_BYTES_MAX,
            via: Via::Any,
            cancel: Cancel::default(),
            notify: Arc::new(|_| {}),
        }
    }
}

/// What is received at once still lies in the core's cache when it is opened, checked and written.
pub(super) fn socket_options() -> Options {
    Options { slots: 4, timestamps: true, ..Options::default() }
}

pub(super) fn another_handle(datagrams: &Datagrams<Vec<u8>>) -> Result<UdpSocket> {
    datagrams.try_clone_socket().map_err(|source| Error::from(grebe_datagram::Error::Receive { source }))
}
