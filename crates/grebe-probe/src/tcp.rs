//! TCP streams beside the datagrams: how much the system's own transport carries over the same path.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::key::Signer;
use crate::packet::{FLOW_BINS, Flow, PACKET_MAX, Packet, Stream};

/// What a stream moved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    pub bytes: u64,
    /// What was seen where it arrived.
    pub flow: Option<Flow>,
}

/// A stream on a thread of its own.
pub(crate) struct Running {
    thread: JoinHandle<Moved>,
    stop: Arc<AtomicBool>,
}

impl Running {
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn finish(self) -> Moved {
        self.thread.join().unwrap_or_default()
    }
}

/// Opens a stream to the server, and moves bytes.
pub(crate) fn connect(
    peer: SocketAddr,
    packet: Packet,
    signer: Signer,
    stream: Stream,
    rate_max_bps: f64,
    rtt: Duration,
) -> Running {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let patience = Duration::from_secs(3) + rtt * 2;
        let Ok(mut socket) = TcpStream::connect_timeout(&peer, patience) else { return Moved::default() };
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(&signer, 0, &mut buffer);
        if socket.write_all(&buffer[..len]).is_err() {
            return Moved::default();
        }
        match stream.down {
            true => receive(&mut socket, &stream, patience, &stopped),
            // The server stops counting after the duration; what the own buffer holds then is thrown away.
            false => {
                let longer = Stream { duration_ns: stream.duration_ns + 10_000_000_000, ..stream };
                send(&mut socket, &longer, rate_max_bps, &stopped)
            }
        }
    });
    Running { thread, stop }
}

/// Writes for the time of the stream.
pub(crate) fn send(socket: &mut TcpStream, stream: &Stream, rate_max_bps: f64, stop: &AtomicBool) -> Moved {
    let filler = vec![0; stream.write_bytes as usize];
    let began = Instant::now();
    let mut bytes = 0;
    let _ = socket.set_write_timeout(Some(TICK));
    let _ = socket.set_nodelay(true);
    while began.elapsed().as_nanos() < u128::from(stream.duration_ns)
        && bytes < stream.bytes_max
        && !stop.load(Ordering::Relaxed)
    {
        match socket.write(&filler) {
            Ok(0) => break,
            Ok(written) => bytes += written as u64,
            Err(error) if is_patience(&error) => {}
            Err(_) => break,
        }
        let ahead = bytes as f64 * 8.0 / rate_max_bps - began.elapsed().as_secs_f64();
        if ahead > 0.0005 {
            std::thread::sleep(Duration::from_secs_f64(ahead.min(0.05)));
        }
    }
    abandon(socket);
    Moved { bytes, flow: None }
}

/// Reads for the time of the stream, from the first byte on.
pub(crate) fn receive(
    socket: &mut TcpStream,
    stream: &Stream,
    patience: Duration,
    stop: &AtomicBool,
) -> Moved {
    let mut buffer = vec![0; 256 << 10];
    let bin_ns = (stream.duration_ns / FLOW_BINS as u64).max(1);
    let mut flow = Flow { bin_ns, ..Flow::default() };
    let asked = Instant::now();
    let mut began: Option<Instant> = None;
    let _ = socket.set_read_timeout(Some(TICK));
    while !stop.load(Ordering::Relaxed) && flow.bytes < stream.bytes_max {
        let result = socket.read(&mut buffer);
        match began {
            None if asked.elapsed() > patience => break,
            Some(began) if began.elapsed().as_nanos() >= u128::from(stream.duration_ns) => {
                flow.span_ns = stream.duration_ns;
                break;
            }
            _ => {}
        }
        match result {
            Ok(0) => break,
            Ok(read) => {
                let began = *began.get_or_insert_with(Instant::now);
                flow.span_ns = began.elapsed().as_nanos() as u64;
                flow.bytes += read as u64;
                if let Some(bin) = flow.bins.get_mut((flow.span_ns / bin_ns) as usize) {
                    *bin = bin.saturating_add(read as u32);
                }
            }
            Err(error) if is_patience(&error) => {}
            Err(_) => break,
        }
    }
    abandon(socket);
    Moved { bytes: flow.bytes, flow: (flow.bytes > 0).then_some(flow) }
}

/// Ends the connection without sending what is still in its buffer.
pub(crate) fn abandon(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    let _ = socket.shutdown(std::net::Shutdown::Read);
}

fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

const TICK: Duration = Duration::from_millis(50);
