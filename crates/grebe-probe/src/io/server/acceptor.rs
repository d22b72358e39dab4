//! TCP connections at the server: one thread accepts, one per connection moves bytes. The server's own thread decides.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use grebe_packet::Cancel;

use crate::io::tcp::{self, TcpMoved};
use crate::proto::packet::{TCP_OPENING_BYTES, TcpRequest};

/// Accepts connections until it is dropped.
pub(super) struct Acceptor {
    messages: Option<Receiver<FromConnection>>,
    stop: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of a connection tells the server.
pub(super) enum FromConnection {
    /// Its first bytes. The answer is what to move and how fast, or that it is refused.
    Open { from: IpAddr, bytes: [u8; TCP_OPENING_BYTES], answer: Sender<Option<(TcpRequest, f64)>> },
    /// It is over.
    Done { id: u32, moved: TcpMoved },
}

impl Acceptor {
    pub(super) fn start(listener: std::io::Result<TcpListener>) -> Self {
        let (tells, messages) = mpsc::sync_channel(CONNECTIONS_MAX);
        let stop = Cancel::default();
        let stopped = stop.clone();
        // Without a listener a probe goes on, without TCP.
        let thread =
            listener.ok().map(|listener| std::thread::spawn(move || accept(&listener, &tells, &stopped)));
        Self { messages: Some(messages), stop, thread }
    }

    /// The next message of a connection, if there is one.
    pub(super) fn next(&self) -> Option<FromConnection> {
        self.messages.as_ref()?.try_recv().ok()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.cancel();
        // A thread that waits for room in the channel goes on.
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, tells: &SyncSender<FromConnection>, stop: &Cancel) {
    // Each connection holds a clone.
    let connections = Arc::new(());
    while !stop.is_cancelled() {
        let Ok((socket, from)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        if Arc::strong_count(&connections) > CONNECTIONS_MAX {
            tcp::abandon(&socket);
            continue;
        }
        let (tells, stop, held) = (tells.clone(), stop.clone(), connections.clone());
        std::thread::spawn(move || {
            serve(socket, from, &tells, &stop);
            drop(held);
        });
    }
}

/// One connection. Nothing is sent before its first bytes have proved that it belongs to the session.
fn serve(mut socket: TcpStream, from: SocketAddr, tells: &SyncSender<FromConnection>, stop: &Cancel) {
    let mut bytes = [0; TCP_OPENING_BYTES];
    let is_heard = socket.set_nonblocking(false).is_ok()
        && socket.set_read_timeout(Some(OPENING_TIMEOUT)).is_ok()
        && socket.read_exact(&mut bytes).is_ok();
    let (answer, answered) = mpsc::channel();
    let from = from.ip().to_canonical();
    if !is_heard || tells.send(FromConnection::Open { from, bytes, answer }).is_err() {
        return tcp::abandon(&socket);
    }
    let Ok(Some((request, rate_max_bps))) = answered.recv() else { return tcp::abandon(&socket) };
    let moved = match request.is_down {
        true => tcp::send(&mut socket, &request, rate_max_bps, stop),
        false => tcp::receive(&mut socket, &request, OPENING_TIMEOUT, stop),
    };
    let _ = tells.send(FromConnection::Done { id: request.id, moved });
}

const CONNECTIONS_MAX: usize = 8;
const OPENING_TIMEOUT: Duration = Duration::from_secs(3);
