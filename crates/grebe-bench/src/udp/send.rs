//! The sending side of a run.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use grebe_datagram::{MAX_DATAGRAM_BYTES, SendCounters, Sender};

use super::options::Technique;
use super::task::UdpTask;
use crate::error::{Error, Result};
use crate::stream::{FrameSender, Frames};

/// The sender of a technique of ours.
pub(super) fn open(task: &UdpTask, to: SocketAddr) -> Result<Box<dyn FrameSender>> {
    let sender = Sender::connect(to, &task.socket_options())?;
    match task.technique {
        Technique::Mmsg | Technique::Gso => Ok(Box::new(sender)),
        Technique::GsoRun => {
            let chunk = Vec::with_capacity(CHUNK_BYTES + MAX_DATAGRAM_BYTES);
            Ok(Box::new(Contiguous { sender, chunk }))
        }
        // The same socket, with the same buffers, as any program would use it.
        Technique::OneCall => {
            let socket = sender.try_clone_socket().map_err(Error::io("copy a socket"))?;
            socket.set_nonblocking(false).map_err(Error::io("make a socket block"))?;
            Ok(Box::new(OneCall { socket, frame: Vec::new(), counters: SendCounters::default() }))
        }
    }
}

/// Says the end five times, as a stream does.
pub(super) fn end(to: SocketAddr, end: &Frames) -> Result<()> {
    let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(Error::io("open a socket"))?;
    for (header, _) in std::iter::repeat_n(end, 5).flat_map(Frames::iter) {
        std::thread::sleep(Duration::from_millis(10));
        socket.send_to(header, to).map_err(Error::io("send the end of the stream"))?;
    }
    Ok(())
}

impl FrameSender for Sender {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        let mut batch = self.batch();
        for (header, payload) in frames.iter() {
            batch.push(header, payload)?;
        }
        Ok(batch.flush()?)
    }

    fn counters(&self) -> SendCounters {
        Sender::counters(self)
    }
}

/// Frames one behind the other in a chunk that stays in cache.
struct Contiguous {
    sender: Sender,
    chunk: Vec<u8>,
}

/// Bytes of frames that are written before they are sent: four kernel buffers, a quarter of a core's cache.
const CHUNK_BYTES: usize = 256 << 10;

impl FrameSender for Contiguous {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        for some in frames.chunks(CHUNK_BYTES) {
            self.chunk.resize(some.bytes(), 0);
            some.write(&mut self.chunk);
            let mut batch = self.sender.batch();
            batch.push_run(&self.chunk, some.frame_bytes())?;
            batch.flush()?;
        }
        Ok(())
    }

    fn counters(&self) -> SendCounters {
        self.sender.counters()
    }
}

/// `send` of `std`, from a buffer that each frame is copied into.
struct OneCall {
    socket: UdpSocket,
    frame: Vec<u8>,
    counters: SendCounters,
}

impl FrameSender for OneCall {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        self.frame.resize(frames.frame_bytes(), 0);
        for one in frames.chunks(1) {
            one.write(&mut self.frame);
            loop {
                self.counters.syscalls += 1;
                match self.socket.send(&self.frame) {
                    Ok(_) => break,
                    Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
                        self.counters.backoffs += 1;
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    Err(source) => return Err(Error::Io { action: "send", source }),
                }
            }
            self.counters.copies += 1;
            self.counters.datagrams += 1;
            self.counters.messages += 1;
            self.counters.bytes += self.frame.len() as u64;
        }
        Ok(())
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}

const NO_BUFFERS: i32 = match () {
    () if cfg!(windows) => 10_055,
    () if cfg!(any(target_os = "linux", target_os = "android")) => 105,
    () => 55,
};
