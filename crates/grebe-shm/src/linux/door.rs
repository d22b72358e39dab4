//! The thread that lets consumers in, hears their knocks, and notices when they hang up.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{SocketFlags, accept_with, bind, listen, sockopt};

use super::directory::{Directory, seqpacket};
use super::packet::{self, Packet};
use super::publisher::Hall;
use super::tried;
use crate::ShmError;
use crate::message::Message;

/// The listening socket, and who stands before it.
pub(super) struct Door {
    hall: Arc<Hall>,
    directory: Directory,
    path: PathBuf,
    listener: OwnedFd,
    epoll: OwnedFd,
    /// Connected, but has not said what it wants.
    guests: Vec<Guest>,
    next_id: u64,
}

struct Guest {
    id: u64,
    socket: OwnedFd,
    pid: u32,
    since: Instant,
}

impl Door {
    /// Binds the socket of the stream's name.
    ///
    /// # Errors
    /// Another producer has it, or the system refuses.
    pub(super) fn open(directory: Directory, hall: Arc<Hall>) -> Result<Self, ShmError> {
        let path = directory.socket_path(&hall.name)?;
        let address = directory.address(&hall.name)?;
        let listener = seqpacket()?;
        // Under the lock, a socket that refuses connections is dead and not just about to listen.
        let lock = directory.lock()?;
        if directory.sweep(&hall.name)? {
            return Err(ShmError::InUse { name: hall.name.clone() });
        }
        bind(&listener, &address).map_err(tried("bind the control socket"))?;
        let mode = if hall.options.allow_uids.is_empty() { 0o600 } else { 0o666 };
        let opened = fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(|source| ShmError::System { action: "protect the control socket", source })
            .and_then(|()| listen(&listener, BACKLOG).map_err(tried("listen on the control socket")))
            .and_then(|()| epoll::create(epoll::CreateFlags::CLOEXEC).map_err(tried("make an epoll")));
        drop(lock);
        let epoll = opened.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let watch = |fd: &OwnedFd, id| {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(id), epoll::EventFlags::IN)
                .map_err(tried("watch a socket"))
        };
        watch(&listener, LISTENER)?;
        watch(&hall.closing, CLOSING)?;
        Ok(Self { hall, directory, path, listener, epoll, guests: Vec::new(), next_id: FIRST_ID })
    }

    /// Until the publisher is gone.
    pub(super) fn keep(mut self) {
        let mut events = Vec::with_capacity(32);
        loop {
            events.clear();
            // Only who waits at the door needs the clock.
            let tick = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let timeout = (!self.guests.is_empty()).then_some(&tick);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            for event in &events {
                let event: &epoll::Event = event;
                match event.data.u64() {
                    LISTENER => self.accept(),
                    CLOSING => return,
                    id => self.attend(id),
                }
            }
            self.guests.retain(|guest| guest.since.elapsed() < PATIENCE);
        }
    }

    fn accept(&mut self) {
        while let Ok(socket) = accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            let Ok(peer) = sockopt::socket_peercred(&socket) else { continue };
            let (uid, own) = (peer.uid.as_raw(), rustix::process::getuid().as_raw());
            if uid != own && !self.hall.options.allow_uids.contains(&uid) {
                refuse(&socket, &format!("it is for user {own}, not for user {uid}"));
                continue;
            }
            if self.guests.len() >= self.hall.options.consumers_max + GUESTS_SPARE {
                refuse(&socket, "too many are at the door: try again");
                continue;
            }
            let id = self.next_id;
            let watched =
                epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(id), epoll::EventFlags::IN);
            if watched.is_ok() {
                self.next_id += 1;
                let pid = peer.pid.as_raw_nonzero().get() as u32;
                self.guests.push(Guest { id, socket, pid, since: Instant::now() });
            }
        }
    }

    fn attend(&mut self, id: u64) {
        let Some(at) = self.guests.iter().position(|guest| guest.id == id) else {
            return self.hall.attend(id);
        };
        let heard = packet::hear(&self.guests[at].socket);
        if let Packet::Nothing = heard {
            return;
        }
        let guest = self.guests.swap_remove(at);
        match heard {
            Packet::Message(Message::Hello(hello), _) => {
                if let Err((socket, why)) = self.hall.admit(id, guest.socket, hello, guest.pid) {
                    refuse(&socket, &why);
                }
            }
            Packet::Malformed(malformed) => refuse(&guest.socket, &malformed.to_string()),
            // It only looked whether somebody is there.
            Packet::HungUp | Packet::Nothing | Packet::Message(..) => {}
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Under the lock it is this door's socket: nobody binds the name while it is listened on.
        let _lock = self.directory.lock();
        let _ = fs::remove_file(&self.path);
    }
}

fn refuse(socket: &OwnedFd, why: &str) {
    // The hang-up that follows says it too.
    let _ = packet::say(socket, &Message::Refused(why.to_owned()), &[]);
}

const LISTENER: u64 = 0;
const CLOSING: u64 = 1;
const FIRST_ID: u64 = 2;
const BACKLOG: i32 = 16;
/// Connections that have said nothing yet, beside as many as there may be consumers.
const GUESTS_SPARE: usize = 4;
/// For how long a connection may say nothing.
const PATIENCE: Duration = Duration::from_secs(1);
