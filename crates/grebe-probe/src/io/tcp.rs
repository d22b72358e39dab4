//! TCP streams beside the datagrams: how much the system's own transport carries over the same path.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_packet::Cancel;
use socket2::SockRef;

use crate::proto::packet::{PACKET_MAX, Packet, TCP_BINS, TcpArrivals, TcpRequest};
use crate::proto::signing::Signer;

/// What a stream carried.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TcpMoved {
    pub(crate) bytes: u64,
    /// What arrived, where this is the receiving side.
    pub(crate) arrivals: Option<TcpArrivals>,
}

/// A stream on a thread of its own.
pub(crate) struct TcpThread {
    thread: JoinHandle<TcpMoved>,
    stop: Cancel,
}

impl TcpThread {
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn finish(self) -> TcpMoved {
        self.thread.join().unwrap_or_default()
    }
}

/// Opens a stream to the server, and sends or receives as `request` says.
pub(crate) fn connect(
    peer: SocketAddr,
    packet: Packet,
    signer: Signer,
    request: TcpRequest,
    rate_max_bps: f64,
    rtt: Duration,
) -> TcpThread {
    let stop = Cancel::default();
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let patience = Duration::from_secs(3) + rtt * 2;
        let Ok(mut socket) = TcpStream::connect_timeout(&peer, patience) else { return TcpMoved::default() };
        let mut buffer = [0; PACKET_MAX];
        let len = packet.encode(&signer, 0, &mut buffer);
        if socket.write_all(&buffer[..len]).is_err() {
            return TcpMoved::default();
        }
        match request.is_down {
            true => receive(&mut socket, &request, patience, &stopped),
            // The server stops counting after the duration; what this host's buffer holds then is thrown away.
            false => {
                let longer = TcpRequest { duration_ns: request.duration_ns + 10_000_000_000, ..request };
                send(&mut socket, &longer, rate_max_bps, &stopped)
            }
        }
    });
    TcpThread { thread, stop }
}

/// Writes for as long as was requested.
pub(crate) fn send(
    socket: &mut TcpStream,
    request: &TcpRequest,
    rate_max_bps: f64,
    stop: &Cancel,
) -> TcpMoved {
    let filler = vec![0; request.write_bytes as usize];
    let began = Instant::now();
    let mut bytes = 0;
    let _ = socket.set_write_timeout(Some(TICK));
    let _ = socket.set_nodelay(true);
    while began.elapsed().as_nanos() < u128::from(request.duration_ns)
        && bytes < request.bytes_max
        && !stop.is_cancelled()
    {
        match socket.write(&filler) {
            Ok(0) => break,
            Ok(written) => bytes += written as u64,
            Err(error) if is_timeout(&error) => {}
            Err(_) => break,
        }
        let ahead = bytes as f64 * 8.0 / rate_max_bps - began.elapsed().as_secs_f64();
        if ahead > 0.0005 {
            std::thread::sleep(Duration::from_secs_f64(ahead.min(0.05)));
        }
    }
    abandon(socket);
    TcpMoved { bytes, arrivals: None }
}

/// Reads for as long as was requested, from the first byte on.
pub(crate) fn receive(
    socket: &mut TcpStream,
    request: &TcpRequest,
    patience: Duration,
    stop: &Cancel,
) -> TcpMoved {
    let mut buffer = vec![0; 256 << 10];
    let bin_ns = (request.duration_ns / TCP_BINS as u64).max(1);
    let mut arrivals = TcpArrivals { bin_ns, ..TcpArrivals::default() };
    let asked = Instant::now();
    let mut began: Option<Instant> = None;
    let _ = socket.set_read_timeout(Some(TICK));
    while !stop.is_cancelled() && arrivals.bytes < request.bytes_max {
        let result = socket.read(&mut buffer);
        match began {
            None if asked.elapsed() > patience => break,
            Some(began) if began.elapsed().as_nanos() >= u128::from(request.duration_ns) => {
                arrivals.span_ns = request.duration_ns;
                break;
            }
            _ => {}
        }
        match result {
            Ok(0) => break,
            Ok(read) => {
                let began = *began.get_or_insert_with(Instant::now);
                arrivals.span_ns = began.elapsed().as_nanos() as u64;
                arrivals.bytes += read as u64;
                if let Some(bin) = arrivals.bin_bytes.get_mut((arrivals.span_ns / bin_ns) as usize) {
                    *bin = bin.saturating_add(read as u32);
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(_) => break,
        }
    }
    abandon(socket);
    TcpMoved { bytes: arrivals.bytes, arrivals: (arrivals.bytes > 0).then_some(arrivals) }
}

/// Ends the connection without sending what is still in its buffer.
pub(crate) fn abandon(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    let _ = socket.shutdown(std::net::Shutdown::Read);
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

const TICK: Duration = Duration::from_millis(50);
