//! The receiving side of a run, in a process of its own or a thread.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::Receiver;

use super::options::{Technique, UdpTask};
use crate::error::{Error, Result};
use crate::peer;
use crate::stream::{Checker, Seen, Work};

/// Runs the receiver of one run as a process: it reports its address and, after the run, its counts.
pub(crate) fn peer(task: UdpTask) -> Result<()> {
    peer::end_with_input();
    let bound = Bound::open(task)?;
    peer::say(&bound.address)?;
    peer::say(&bound.receive()?)
}

/// A receiver that is bound and waits.
pub(super) struct Bound {
    pub address: SocketAddr,
    receiver: Receiver<Slot>,
    task: UdpTask,
}

impl Bound {
    pub(super) fn open(task: UdpTask) -> Result<Self> {
        let receiver = Receiver::bind(SocketAddr::new(task.host, 0), &task.socket_options())?;
        Ok(Self { address: receiver.local_addr()?, receiver, task })
    }

    /// Receives until the stream ends, or nothing comes for a second.
    pub(super) fn receive(self) -> Result<Seen> {
        let granted_bytes = self.receiver.granted().granted_bytes;
        let mut checker = Checker::new(
            self.task.plan.format,
            self.task.plan.channels,
            self.task.plan.block,
            Work::Compare,
        )?;
        if self.task.technique == Technique::OneCall {
            one_call(&self.receiver, &mut checker)?;
        } else {
            batched(self.receiver, &mut checker)?;
        }
        Ok(Seen { granted_bytes, ..checker.finish() })
    }
}

fn batched(mut receiver: Receiver<Slot>, checker: &mut Checker) -> Result<()> {
    let mut last = Instant::now();
    while !checker.is_over(last) {
        let outcome = receiver.recv(
            || Some(Slot::new()),
            |slot, received| {
                let now_ns = Checker::now_ns();
                for range in received.segments() {
                    checker.datagram(&slot.0.0[range], now_ns);
                }
                Some(slot)
            },
        )?;
        checker.call(outcome.kernel_drops);
        if outcome.datagrams > 0 {
            last = Instant::now();
        }
    }
    Ok(())
}

fn one_call(receiver: &Receiver<Slot>, checker: &mut Checker) -> Result<()> {
    let socket: UdpSocket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    socket.set_nonblocking(false).map_err(Error::io("make a socket block"))?;
    socket.set_read_timeout(Some(Duration::from_millis(50))).map_err(Error::io("set a timeout"))?;
    let mut slot = Slot::new();
    let mut last = Instant::now();
    loop {
        checker.call(None);
        match socket.recv(slot.as_mut()) {
            Ok(len) => {
                checker.datagram(&slot.0.0[..len], Checker::now_ns());
                // Looking at the clock for each frame would be charged to the baseline.
                if checker.seen.frames.is_multiple_of(1_024) {
                    last = Instant::now();
                }
                if checker.is_ended() && checker.is_over(last) {
                    return Ok(());
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if checker.is_over(last) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { action: "receive", source }),
        }
    }
}

/// A buffer for one message of the kernel, aligned to a cache line.
struct Slot(Box<Aligned>);

#[repr(align(64))]
struct Aligned([u8; 65_536]);

impl Slot {
    fn new() -> Self {
        Slot(Box::new(Aligned([0; 65_536])))
    }
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0.0
    }
}
