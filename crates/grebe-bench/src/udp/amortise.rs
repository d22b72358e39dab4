//! What batches save a receiver: many small datagrams from several senders, taken one a call or many a call.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Receiver};
use serde::Serialize;

use crate::clock;
use crate::{Error, Result};

/// What one receiver managed.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Amortised {
    /// Sending threads.
    pub senders: usize,
    /// Datagrams a second that were sent.
    pub sent_per_sec: f64,
    /// Datagrams a second that were received.
    pub recv_per_sec: f64,
    /// Datagrams a receiving call.
    pub per_call: f64,
    /// Processor time a received datagram, nanoseconds; `None` where the system does not tell.
    pub cpu_ns: Option<f64>,
}

/// Bytes a datagram.
const BYTES: usize = 100;

/// Measures `senders` threads for `duration` against one call a datagram (blocking) and against batches of 32, in this order.
///
/// # Errors
/// Where a socket fails.
pub fn amortise(senders: usize, duration: Duration) -> Result<[Amortised; 2]> {
    let one = amortise_with(senders, duration, |socket, stop| {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let (mut buffer, mut count) = ([0; 2_048], 0);
        while !stop() {
            match socket.recv_from(&mut buffer) {
                Ok(_) => count += 1,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
        }
        Ok((count, count))
    })?;
    let options = Options { gro: false, slots: 32, ..options() };
    let mut receiver = bind(&options)?;
    let address = receiver.local_addr()?;
    let many = measure(senders, duration, address, |stop| {
        let (mut count, mut calls) = (0, 0);
        while !stop() {
            let outcome = receiver.recv(|| Some(vec![0; 2_048]), |slot, _| Some(slot))?;
            count += outcome.datagrams as u64;
            calls += 1;
        }
        Ok((count, calls))
    })?;
    Ok([one, many])
}

/// The same for another way to receive: it gets a socket that does not block, and whether it is to stop, and returns how many
/// datagrams came in how many calls.
///
/// # Errors
/// Where a socket fails, or `receive` says so.
pub fn amortise_with(
    senders: usize,
    duration: Duration,
    receive: impl FnOnce(UdpSocket, &dyn Fn() -> bool) -> io::Result<(u64, u64)>,
) -> Result<Amortised> {
    let receiver = bind(&options())?;
    let socket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    let address = receiver.local_addr()?;
    measure(senders, duration, address, |stop| receive(socket, stop).map_err(Error::io("receive")))
}

fn options() -> Options {
    Options { recv_timeout: Duration::from_millis(20), ..Options::default() }
}

fn bind(options: &Options) -> Result<Receiver<Vec<u8>>> {
    Ok(Receiver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?)
}

fn measure(
    senders: usize,
    duration: Duration,
    to: SocketAddr,
    receive: impl FnOnce(&dyn Fn() -> bool) -> Result<(u64, u64)>,
) -> Result<Amortised> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending: Vec<_> = (0..senders)
            .map(|_| {
                let stop = &stop;
                scope.spawn(move || {
                    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                    socket.connect(to)?;
                    let mut count = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        socket.send(&[7; BYTES])?;
                        count += 1;
                    }
                    Ok::<u64, io::Error>(count)
                })
            })
            .collect();
        let began = Instant::now();
        let cpu_before = clock::thread_cpu();
        let over = || began.elapsed() >= duration;
        let received = receive(&over);
        let elapsed = began.elapsed().as_secs_f64();
        let cpu = clock::thread_cpu().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
        stop.store(true, Ordering::Relaxed);
        let mut sent = 0;
        for sender in sending {
            let sender = sender
                .join()
                .map_err(|_| Error::Peer { side: "sender", reason: "its thread panicked".to_owned() })?;
            sent += sender.map_err(Error::io("send"))?;
        }
        let (count, calls) = received?;
        Ok(Amortised {
            senders,
            sent_per_sec: sent as f64 / elapsed,
            recv_per_sec: count as f64 / elapsed,
            per_call: count as f64 / calls.max(1) as f64,
            cpu_ns: cpu.map(|cpu| cpu.as_nanos() as f64 / count.max(1) as f64),
        })
    })
}
