//! Sender and receiver for a tokio runtime.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error::{Error, Result};
use crate::options::{Granted, Options};
use crate::receive::{Receiver, RecvOutcome};
use crate::received::Received;
use crate::send::{Gso, SendCounters, Sender};

/// [`Receiver`] that waits in a tokio runtime instead of blocking a thread. After one wake-up it returns
/// batches until the socket is empty, and only then waits again.
///
/// A [`Receiver`] on its own thread is faster, because it may sleep instead of being woken.
#[derive(Debug)]
pub struct AsyncReceiver<S> {
    receiver: Receiver<S>,
    /// Second handle of the socket, for its readiness.
    readiness: UdpSocket,
}

impl<S: AsMut<[u8]>> AsyncReceiver<S> {
    /// Like [`Receiver::bind`], within a runtime.
    ///
    /// # Errors
    /// Those of [`Receiver::bind`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, like everything in `tokio::net`.
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self> {
        let receiver = Receiver::bind(address, options)?;
        let readiness = receiver
            .try_clone_socket()
            .and_then(UdpSocket::from_std)
            .map_err(|source| Error::Open { action: "watch", address, source })?;
        Ok(Self { receiver, readiness })
    }

    /// Like [`Receiver::recv`], without a timeout. Returns as soon as there are datagrams, or `starved` if
    /// `refill` has no slot and none is left. Cancel safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Receive`] if the system refuses.
    pub async fn recv(
        &mut self,
        mut refill: impl FnMut() -> Option<S>,
        mut deliver: impl FnMut(S, Received) -> Option<S>,
    ) -> Result<RecvOutcome> {
        loop {
            self.readiness.readable().await.map_err(|source| Error::Receive { source })?;
            let mut outcome = Ok(RecvOutcome::default());
            let ready = self.readiness.try_io(Interest::READABLE, || {
                outcome = self.receiver.try_recv(&mut refill, &mut deliver);
                match &outcome {
                    Ok(empty) if empty.slots == 0 && !empty.starved => Err(io::ErrorKind::WouldBlock.into()),
                    _ => Ok(()),
                }
            });
            match ready {
                // Spurious wake-up: the readiness is cleared, so wait for the next.
                Err(_) => {}
                Ok(()) => return outcome,
            }
        }
    }

    /// Local address of the socket.
    ///
    /// # Errors
    /// [`Error::Open`] if the system cannot provide it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.receiver.local_addr()
    }

    /// Receive buffer granted by the kernel.
    pub fn granted(&self) -> Granted {
        self.receiver.granted()
    }
}

/// [`Sender`] that waits for room in a tokio runtime instead of a thread.
#[derive(Debug)]
pub struct AsyncSender {
    sender: Sender,
    /// Second handle of the socket, for its readiness.
    readiness: UdpSocket,
}

impl AsyncSender {
    /// Like [`Sender::connect`], within a runtime. [`Options::send_timeout`] has no effect: a send waits for
    /// room, and the caller sets the timeout.
    ///
    /// # Errors
    /// Those of [`Sender::connect`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled, like everything in `tokio::net`.
    pub fn connect(peer: SocketAddr, options: &Options) -> Result<Self> {
        let sender = Sender::connect(peer, &Options { send_timeout: Duration::ZERO, ..options.clone() })?;
        let readiness = sender
            .try_clone_socket()
            .and_then(UdpSocket::from_std)
            .map_err(|source| Error::Open { action: "watch", address: peer, source })?;
        Ok(Self { sender, readiness })
    }

    /// Sends the datagrams `header ++ payload` in batches, like [`SendBatch::push`](crate::SendBatch::push)
    /// and [`flush`](crate::SendBatch::flush). If the future is dropped, pushed datagrams are tried once more
    /// and then count as unsent.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Send`] if the kernel refuses a datagram permanently.
    pub async fn send<'d>(
        &mut self,
        datagrams: impl IntoIterator<Item = (&'d [u8], &'d [u8])>,
    ) -> Result<()> {
        let mut batch = self.sender.batch();
        for (header, payload) in datagrams {
            loop {
                let before = batch.pending();
                match batch.push(header, payload) {
                    Err(Error::Stalled { .. }) => {
                        // A full batch is flushed before the datagram is added, or after.
                        let is_added = batch.pending() > before;
                        room(&self.readiness).await?;
                        if is_added {
                            break;
                        }
                    }
                    other => break other?,
                }
            }
        }
        loop {
            match batch.flush() {
                Err(Error::Stalled { .. }) => room(&self.readiness).await?,
                other => return other,
            }
        }
    }

    /// Counters so far.
    pub fn counters(&self) -> SendCounters {
        self.sender.counters()
    }

    /// State of segmentation offload.
    pub fn gso(&self) -> Gso {
        self.sender.gso()
    }

    /// Local address of the socket.
    ///
    /// # Errors
    /// [`Error::Open`] if the system cannot provide it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.sender.local_addr()
    }
}

/// Waits until the socket may accept more.
async fn room(socket: &UdpSocket) -> Result<()> {
    // It has just accepted nothing, whatever the runtime's cached readiness.
    let _: io::Result<()> = socket.try_io(Interest::WRITABLE, || Err(io::ErrorKind::WouldBlock.into()));
    match tokio::time::timeout(PAUSE, socket.writable()).await {
        // A full device queue does not show in the socket's readiness.
        Err(_) => Ok(()),
        Ok(ready) => ready.map_err(|source| Error::Send { bytes: 0, source }),
    }
}

const PAUSE: Duration = Duration::from_millis(1);
