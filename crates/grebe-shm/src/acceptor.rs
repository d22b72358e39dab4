//! Acceptor: the producer's second thread. It admits consumers, reads their messages, and notices when they
//! hang up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::directory::Directory;
use crate::error::Error;
use crate::message::Message;
use crate::packet::{self, Packet};
use crate::platform::{Connection, Event, Listener, Peer};
use crate::state::PublisherState;

/// Listener, and connections that are not admitted yet.
pub(crate) struct Acceptor {
    state: Arc<PublisherState>,
    listener: Listener,
    pending: Vec<PendingConsumer>,
}

/// Connection without a hello so far.
struct PendingConsumer {
    id: u64,
    connection: Connection,
    pid: u32,
    since: Instant,
}

impl Acceptor {
    /// Takes the stream's name, and serves it on a thread until the publisher is gone.
    pub(crate) fn start(directory: Directory, state: Arc<PublisherState>) -> Result<JoinHandle<()>, Error> {
        let name = format!("shm {}", state.name);
        let closer = state.closer.clone();
        let listener =
            Listener::bind(directory.file(&state.name)?, &state.name, &state.options.allow_uids, closer)?;
        let acceptor = Self { state, listener, pending: Vec::new() };
        let thread = std::thread::Builder::new().name(name).spawn(move || acceptor.serve());
        thread.map_err(Error::tried("start a thread"))
    }

    /// Runs until the publisher and all consumers with lent chunks are gone.
    fn serve(mut self) {
        let mut events = Vec::with_capacity(32);
        while self.listener.is_open() || !self.state.lock().leaving.is_empty() {
            // Only pending connections time out.
            let tick = (!self.pending.is_empty()).then_some(Duration::from_millis(100));
            if self.listener.wait(&mut events, tick).is_err() {
                return;
            }
            for event in events.drain(..) {
                match event {
                    Event::Connected(id, connection, peer) => self.connected(id, connection, peer),
                    Event::Readable(id) => self.attend(id),
                    Event::Closing => self.close(),
                }
            }
            self.pending.retain(|pending| pending.since.elapsed() < HELLO_TIMEOUT);
        }
    }

    fn connected(&mut self, id: u64, connection: Connection, peer: Peer) {
        if let Some(why) = peer.refusal(&self.state.options.allow_uids) {
            refuse(&connection, &why);
        } else if self.pending.len() >= self.state.options.consumers_max + PENDING_SPARE {
            refuse(&connection, "too many connect at once: try again");
        } else {
            self.pending.push(PendingConsumer { id, connection, pid: peer.pid, since: Instant::now() });
        }
    }

    /// Frees the name, because the publisher is gone.
    fn close(&mut self) {
        self.pending.clear();
        self.listener.close();
        self.state.is_closed.store(true, Ordering::Release);
        self.state.signal.notify();
    }

    fn attend(&mut self, id: u64) {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else {
            return self.state.attend(id);
        };
        let heard = packet::receive(&self.pending[at].connection);
        if let Packet::Nothing = heard {
            return;
        }
        let pending = self.pending.swap_remove(at);
        match heard {
            Packet::Message(Message::Hello(hello), _) => {
                if let Err((connection, why)) = self.state.admit(id, pending.connection, hello, pending.pid) {
                    refuse(&connection, &why);
                }
            }
            Packet::Malformed(malformed) => refuse(&pending.connection, &malformed.to_string()),
            // Probably a listing that only checked for a producer.
            Packet::HungUp | Packet::Nothing | Packet::Message(..) => {}
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}

fn refuse(connection: &Connection, why: &str) {
    // The hang-up that follows says it too.
    let _ = packet::send_message(connection, &Message::Refused(why.to_owned()), &[]);
}

/// Maximum silent connections beyond the maximum number of consumers.
const PENDING_SPARE: usize = 4;
/// Maximum silence of a new connection.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
