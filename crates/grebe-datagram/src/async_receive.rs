use std::io;
use std::net::SocketAddr;

use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error::{Error, Result};
use crate::granted::Granted;
use crate::options::Options;
use crate::receive::{Receiver, RecvOutcome};
use crate::received::Received;

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
