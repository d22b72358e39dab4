//! TCP streams beside the datagrams: throughput of the system's own transport on the same path.
//!
//! At the server one thread accepts, and one thread per connection moves bytes. The server's own thread
//! decides.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grebe_packet::Cancel;
use socket2::SockRef;

use crate::proto::packet::{PACKET_MAX, Packet, TCP_BINS, TCP_OPENING_BYTES, TcpArrivals, TcpRequest};
use crate::proto::signing::Signer;

/// Result of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TcpMoved {
    pub(crate) bytes: u64,
    /// Arrivals, at the receiving side.
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

/// Opens a stream to the server, and sends or receives as `request` specifies.
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
            // The server stops counting after the duration. The rest of this host's buffer is discarded.
            false => {
                let longer = TcpRequest { duration_ns: request.duration_ns + 10_000_000_000, ..request };
                send(&mut socket, &longer, rate_max_bps, &stopped)
            }
        }
    });
    TcpThread { thread, stop }
}

/// Writes for the requested time.
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

/// Reads for the requested time after the first byte.
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

/// Closes the connection without sending its remaining buffer.
pub(crate) fn abandon(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    let _ = socket.shutdown(std::net::Shutdown::Read);
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

const TICK: Duration = Duration::from_millis(50);

/// Accepts connections until it is dropped.
pub(crate) struct Acceptor {
    messages: Option<Receiver<FromConnection>>,
    stop: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// Message from the thread of a connection to the server.
pub(crate) enum FromConnection {
    /// Its first bytes. The answer has the amount and rate, or is a refusal.
    Open { from: IpAddr, bytes: [u8; TCP_OPENING_BYTES], answer: Sender<Option<(TcpRequest, f64)>> },
    /// It is over.
    Done { id: u32, moved: TcpMoved },
}

impl Acceptor {
    pub(crate) fn start(listener: std::io::Result<TcpListener>) -> Self {
        let (tells, messages) = mpsc::sync_channel(CONNECTIONS_MAX);
        let stop = Cancel::default();
        let stopped = stop.clone();
        // Without a listener the probe continues without TCP.
        let thread =
            listener.ok().map(|listener| std::thread::spawn(move || accept(&listener, &tells, &stopped)));
        Self { messages: Some(messages), stop, thread }
    }

    /// Next message of a connection, if any.
    pub(crate) fn next(&self) -> Option<FromConnection> {
        self.messages.as_ref()?.try_recv().ok()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.cancel();
        // Unblocks a thread that waits for room in the channel.
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, tells: &SyncSender<FromConnection>, stop: &Cancel) {
    // Counts the connections, because each holds a clone.
    let connections = Arc::new(());
    while !stop.is_cancelled() {
        let Ok((socket, from)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        if Arc::strong_count(&connections) > CONNECTIONS_MAX {
            abandon(&socket);
            continue;
        }
        let (tells, stop, held) = (tells.clone(), stop.clone(), connections.clone());
        std::thread::spawn(move || {
            serve(socket, from, &tells, &stop);
            drop(held);
        });
    }
}

/// Serves one connection. Sends nothing until its first bytes have proven that it belongs to the session.
fn serve(mut socket: TcpStream, from: SocketAddr, tells: &SyncSender<FromConnection>, stop: &Cancel) {
    let mut bytes = [0; TCP_OPENING_BYTES];
    let is_heard = socket.set_nonblocking(false).is_ok()
        && socket.set_read_timeout(Some(OPENING_TIMEOUT)).is_ok()
        && socket.read_exact(&mut bytes).is_ok();
    let (answer, answered) = mpsc::channel();
    let from = from.ip().to_canonical();
    if !is_heard || tells.send(FromConnection::Open { from, bytes, answer }).is_err() {
        return abandon(&socket);
    }
    let Ok(Some((request, rate_max_bps))) = answered.recv() else { return abandon(&socket) };
    let moved = match request.is_down {
        true => send(&mut socket, &request, rate_max_bps, stop),
        false => receive(&mut socket, &request, OPENING_TIMEOUT, stop),
    };
    let _ = tells.send(FromConnection::Done { id: request.id, moved });
}

const CONNECTIONS_MAX: usize = 8;
const OPENING_TIMEOUT: Duration = Duration::from_secs(3);
