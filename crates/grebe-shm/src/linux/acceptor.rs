//! Acceptor: the producer's second thread. It admits consumers, reads their messages, and notices when they
//! hang up.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{SocketFlags, accept_with, bind, listen, sockopt};

use super::directory::{Directory, seqpacket};
use super::packet::{self, Packet};
use super::state::PublisherState;
use crate::error::Error;
use crate::message::Message;

/// Listening socket, and connections that are not admitted yet.
pub(super) struct Acceptor {
    state: Arc<PublisherState>,
    directory: Directory,
    path: PathBuf,
    /// `None` after the publisher is gone.
    listener: Option<OwnedFd>,
    epoll: OwnedFd,
    pending: Vec<PendingConsumer>,
    next_id: u64,
}

/// Connection without a hello so far.
struct PendingConsumer {
    id: u64,
    socket: OwnedFd,
    pid: u32,
    since: Instant,
}

impl Acceptor {
    /// Binds the socket of the stream's name, and serves it on a thread until the publisher is gone.
    pub(super) fn start(directory: Directory, state: Arc<PublisherState>) -> Result<JoinHandle<()>, Error> {
        let name = format!("shm {}", state.name);
        let acceptor = Self::bind(directory, state)?;
        let thread = std::thread::Builder::new().name(name).spawn(move || acceptor.serve());
        thread.map_err(|source| Error::System { action: "start a thread", source })
    }

    fn bind(directory: Directory, state: Arc<PublisherState>) -> Result<Self, Error> {
        let path = directory.socket_path(&state.name)?;
        let address = directory.address(&state.name)?;
        let listener = seqpacket()?;
        // Under the lock, a socket that refuses connections is dead, and not about to listen.
        let lock = directory.lock()?;
        if directory.sweep(&state.name)? {
            return Err(Error::InUse(state.name.clone()));
        }
        bind(&listener, &address).map_err(Error::tried("bind the control socket"))?;
        let mode = if state.options.allow_uids.is_empty() { 0o600 } else { 0o666 };
        let opened = fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(|source| Error::System { action: "protect the control socket", source })
            .and_then(|()| listen(&listener, BACKLOG).map_err(Error::tried("listen on the control socket")))
            .and_then(|()| epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::tried("make an epoll")));
        drop(lock);
        let epoll = opened.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let watch = |fd: &OwnedFd, id| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(id), epoll::EventFlags::IN)
                .map_err(Error::tried("watch a socket"))
        };
        watch(&listener, LISTENER)?;
        watch(&state.closing, CLOSING)?;
        Ok(Self {
            state,
            directory,
            path,
            listener: Some(listener),
            epoll,
            pending: Vec::new(),
            next_id: FIRST_ID,
        })
    }

    /// Runs until the publisher and all consumers with lent chunks are gone.
    fn serve(mut self) {
        let mut events = Vec::with_capacity(32);
        while self.listener.is_some() || !self.state.lock().leaving.is_empty() {
            events.clear();
            // Only pending connections time out.
            let tick = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let timeout = (!self.pending.is_empty()).then_some(&tick);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            for event in &events {
                let event: &epoll::Event = event;
                match event.data.u64() {
                    LISTENER => self.accept(),
                    CLOSING => self.close(),
                    id => self.attend(id),
                }
            }
            self.pending.retain(|pending| pending.since.elapsed() < HELLO_TIMEOUT);
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Some(Ok(socket)) = self.listener.as_ref().map(|listener| accept_with(listener, flags)) {
            let Ok(peer) = sockopt::socket_peercred(&socket) else { continue };
            let (uid, own) = (peer.uid.as_raw(), rustix::process::getuid().as_raw());
            if uid != own && !self.state.options.allow_uids.contains(&uid) {
                refuse(&socket, &format!("it is for user {own}, not for user {uid}"));
                continue;
            }
            if self.pending.len() >= self.state.options.consumers_max + PENDING_SPARE {
                refuse(&socket, "too many connect at once: try again");
                continue;
            }
            let id = self.next_id;
            let watched =
                epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(id), epoll::EventFlags::IN);
            if watched.is_ok() {
                self.next_id += 1;
                let pid = peer.pid.as_raw_nonzero().get() as u32;
                self.pending.push(PendingConsumer { id, socket, pid, since: Instant::now() });
            }
        }
    }

    /// Frees the name, because the publisher is gone.
    fn close(&mut self) {
        // Removed after one event, because it would stay readable.
        let _ = epoll::delete(&self.epoll, &self.state.closing);
        self.pending.clear();
        if self.listener.is_some() {
            // Under the lock this is the acceptor's own socket: nobody binds the name while it listens.
            let _lock = self.directory.lock();
            let _ = fs::remove_file(&self.path);
            self.listener = None;
        }
        self.state.is_closed.store(true, Ordering::Release);
        self.state.signal.notify();
    }

    fn attend(&mut self, id: u64) {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else {
            return self.state.attend(id);
        };
        let heard = packet::receive(&self.pending[at].socket);
        if let Packet::Nothing = heard {
            return;
        }
        let pending = self.pending.swap_remove(at);
        match heard {
            Packet::Message(Message::Hello(hello), _) => {
                if let Err((socket, why)) = self.state.admit(id, pending.socket, hello, pending.pid) {
                    refuse(&socket, &why);
                }
            }
            Packet::Malformed(malformed) => refuse(&pending.socket, &malformed.to_string()),
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

fn refuse(socket: &OwnedFd, why: &str) {
    // The hang-up that follows says it too.
    let _ = packet::send_message(socket, &Message::Refused(why.to_owned()), &[]);
}

const LISTENER: u64 = 0;
const CLOSING: u64 = 1;
const FIRST_ID: u64 = 2;
const BACKLOG: i32 = 16;
/// Maximum silent connections beyond the maximum number of consumers.
const PENDING_SPARE: usize = 4;
/// Maximum silence of a new connection.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
