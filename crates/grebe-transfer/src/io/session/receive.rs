//! Receiving files: the options, the listener and the report.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use grebe_datagram::{Options, Receiver as Datagrams};
use grebe_packet::{Cancel, Ticket};

use super::connect::{self, Asking};
use super::receiving::Receiving;
use super::report::{Notice, ReceiveProgress, ReceiveReport};
use super::tcp_relay::TcpRelay;
use crate::error::Error;
use crate::proto::handshake::{Responder, Role};

/// Waits for one sender: the one that has the ticket.
#[derive(Debug)]
pub struct ReceiveListener {
    datagrams: Datagrams<Vec<u8>>,
    /// A sender needs it to connect; where senders reach the listener by other addresses, put those in.
    pub ticket: Ticket,
    relay: Option<TcpRelay>,
}

/// How files are received.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// Replace files of the same names; directories are never replaced.
    pub overwrite: bool,
    /// For how long an answer is waited for.
    pub answer_within: Duration,
    /// Stops the transfer.
    pub cancel: Cancel,
    /// Is called with what a user may want to know before the end.
    pub notify: fn(Notice),
}

impl ReceiveListener {
    /// Listens at `address` (port 0: any) for at most `lifetime` until a sender connects. The ticket names `address`: where
    /// senders reach it by other addresses, put those into [`ticket`](Self::ticket).
    ///
    /// # Errors
    /// [`Error::Socket`] where the address cannot be bound; [`Error::Keys`] where the system has no random numbers.
    pub fn bind(address: SocketAddr, lifetime: Duration) -> Result<Self, Error> {
        let datagrams = Datagrams::bind(address, &socket_options())?;
        let bound = datagrams.local_addr()?;
        let ticket = connect::new_ticket(bound, lifetime)?;
        Ok(Self { datagrams, ticket, relay: TcpRelay::open(bound, bound) })
    }

    /// Waits for the sender and takes its files into `directory`. Their names end in `.part` until all are whole and verified.
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
    ) -> Result<ReceiveReport, Error> {
        // The relay ends with the transfer.
        let Self { datagrams, ticket, relay: _relay } = self;
        let mut receiving = Receiving::new(&datagrams, directory, options.overwrite)?;
        receiving.answer(Responder::new(ticket.key.clone(), Role::Send), ticket.expires_unix_s);
        receiving.run(datagrams, &options.cancel, on_progress)
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
) -> Result<ReceiveReport, Error> {
    let addresses = connect::addresses_of(ticket)?;
    let datagrams = Datagrams::bind(connect::local_for(&addresses), &socket_options())?;
    let mut receiving = Receiving::new(&datagrams, directory, options.overwrite)?;
    let asking = Asking {
        role: Role::Receive,
        within: options.answer_within,
        cancel: &options.cancel,
        notify: options.notify,
    };
    let connected = connect::ask(receiving.socket(), ticket, &addresses, &asking)?;
    receiving.go_on(connected);
    receiving.run(datagrams, &options.cancel, on_progress)
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            answer_within: Duration::from_secs(10),
            cancel: Cancel::default(),
            notify: |_| {},
        }
    }
}

/// What is received at once still lies in the core's cache when it is opened, checked and written.
fn socket_options() -> Options {
    Options { slots: 4, timestamps: true, ..Options::default() }
}
