//! Sender and receiver that wait in a tokio runtime.

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

/// A [`Receiver`] that waits in a tokio runtime instead of blocking a thread. After one wake-up it returns batches until the
/// socket is empty, and only then asks the runtime again.
///
/// A [`Receiver`] in a thread of its own is faster: it may sleep instead of being woken.
#[derive(Debug)]
pub struct AsyncReceiver<S> {
    receiver: Receiver<S>,
    /// Another handle on the same socket, for its readiness.
    readiness: UdpSocket,
}

impl<S: AsMut<[u8]>> AsyncReceiver<S> {
    /// As [`Receiver::bind`], within a runtime.
    ///
    /// # Errors
    /// As [`Receiver::bind`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled, as everything of `tokio::net`.
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self> {
        let receiver = Receiver::bind(address, options)?;
        let readiness = receiver
            .try_clone_socket()
            .and_then(UdpSocket::from_std)
            .map_err(|source| Error::Open { action: "watch", address, source })?;
        Ok(Self { receiver, readiness })
    }

    /// As [`Receiver::recv`], without a timeout: returns as soon as there are datagrams, or `starved` where `refill` has no slot
    /// and none is left. Nothing is lost where the future is dropped.
    ///
    /// # Errors
    /// [`Error::Receive`] where the system refuses.
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
                // A spurious wake-up: the readiness is cleared, wait for the next.
                Err(_) => {}
                Ok(()) => return outcome,
            }
        }
    }

    /// The address that datagrams come to.
    ///
    /// # Errors
    /// [`Error::Open`] where the system cannot say.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.receiver.local_addr()
    }

    /// The receive buffer that the kernel granted.
    pub fn granted(&self) -> Granted {
        self.receiver.granted()
    }
}

/// A [`Sender`] that waits for room in a tokio runtime instead of a thread.
#[derive(Debug)]
pub struct AsyncSender {
    sender: Sender,
    /// Another handle on the same socket, for its readiness.
    readiness: UdpSocket,
}

impl AsyncSender {
    /// As [`Sender::connect`], within a runtime. [`Options::send_timeout`] does not count here: a send waits for room, and the
    /// caller says for how long.
    ///
    /// # Errors
    /// As [`Sender::connect`].
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled, as everything of `tokio::net`.
    pub fn connect(peer: SocketAddr, options: &Options) -> Result<Self> {
        let sender = Sender::connect(peer, &Options { send_timeout: Duration::ZERO, ..options.clone() })?;
        let readiness = sender
            .try_clone_socket()
            .and_then(UdpSocket::from_std)
            .map_err(|source| Error::Open { action: "watch", address: peer, source })?;
        Ok(Self { sender, readiness })
    }

    /// Sends the datagrams `header ++ payload` in batches, as [`SendBatch::push`](crate::SendBatch::push) and
    /// [`flush`](crate::SendBatch::flush) do. Where the future is dropped, what was pushed is tried once more and then counted as unsent.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Send`] where the kernel refuses a datagram for good.
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

    /// What this sender has done so far.
    pub fn counters(&self) -> SendCounters {
        self.sender.counters()
    }

    /// The state of segmentation offload.
    pub fn gso(&self) -> Gso {
        self.sender.gso()
    }

    /// The address that datagrams come from.
    ///
    /// # Errors
    /// [`Error::Open`] where the system cannot say.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.sender.local_addr()
    }
}

/// Waits until the socket may take more.
async fn room(socket: &UdpSocket) -> Result<()> {
    // It just took nothing, whatever the runtime still believes.
    let _: io::Result<()> = socket.try_io(Interest::WRITABLE, || Err(io::ErrorKind::WouldBlock.into()));
    match tokio::time::timeout(PAUSE, socket.writable()).await {
        // A full queue of the device is no state of the socket: nothing tells when it has room.
        Err(_) => Ok(()),
        Ok(ready) => ready.map_err(|source| Error::Send { bytes: 0, source }),
    }
}

const PAUSE: Duration = Duration::from_millis(1);
