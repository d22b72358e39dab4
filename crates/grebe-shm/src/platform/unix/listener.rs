//! Listening socket of a stream's name.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{bind, listen};

use super::names;
use super::system::{Closer, Connection, Watch};
use crate::error::Error;
use crate::platform::Event;

/// Listening socket, and the watch over its connections.
pub(crate) struct Listener {
    directory: PathBuf,
    path: PathBuf,
    /// `None` after it was closed.
    socket: Option<OwnedFd>,
    watch: Watch,
    closer: Arc<Closer>,
    next_id: u64,
}

impl Listener {
    /// Takes the stream's name. Users beside the own one reach it only if some are admitted.
    pub(crate) fn bind(
        path: PathBuf,
        name: &str,
        allow_uids: &[u32],
        closer: Arc<Closer>,
    ) -> Result<Self, Error> {
        let directory = path.parent().unwrap_or(&path).to_owned();
        let address = names::address(&path)?;
        let socket = Connection::open().map_err(Error::tried("open a socket"))?.0;
        // Under the lock, a socket that refuses connections is dead, and not about to listen.
        let lock = names::lock(&directory)?;
        if names::has_producer(&path)? {
            return Err(Error::InUse(name.to_owned()));
        }
        bind(&socket, &address).map_err(Error::tried("bind the control socket"))?;
        let mode = if allow_uids.is_empty() { 0o600 } else { 0o666 };
        let opened = fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(Error::tried("protect the control socket"))
            .and_then(|()| listen(&socket, BACKLOG).map_err(Error::tried("listen on the control socket")))
            .and_then(|()| watch(&socket, &closer).map_err(Error::tried("watch the control socket")));
        drop(lock);
        let watch = opened.inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(Self { directory, path, socket: Some(socket), watch, closer, next_id: CLOSER + 1 })
    }

    /// Waits for events.
    pub(crate) fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let (mut connects, mut closes) = (false, false);
        self.watch.wait(timeout, |id| match id {
            LISTENER => connects = true,
            CLOSER => closes = true,
            id => events.push(Event::Readable(id)),
        })?;
        if connects {
            self.accept(events);
        }
        if closes {
            self.watch.remove_closer(&self.closer);
            events.push(Event::Closing);
        }
        Ok(())
    }

    fn accept(&mut self, events: &mut Vec<Event>) {
        while let Some(Ok(connection)) = self.socket.as_ref().map(Connection::accept) {
            if let Ok(peer) = connection.peer()
                && self.watch.add(&connection.0, self.next_id).is_ok()
            {
                events.push(Event::Connected(self.next_id, connection, peer));
                self.next_id += 1;
            }
        }
    }

    /// Whether the name is taken by this listener.
    pub(crate) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Frees the name.
    pub(crate) fn close(&mut self) {
        if self.socket.is_some() {
            // Under the lock this is the listener's own socket: nobody binds the name while it listens.
            let _lock = names::lock(&self.directory);
            let _ = fs::remove_file(&self.path);
            self.socket = None;
        }
    }
}

fn watch(socket: &OwnedFd, closer: &Closer) -> io::Result<Watch> {
    let watch = Watch::new()?;
    watch.add(socket, LISTENER)?;
    watch.add_closer(closer, CLOSER)?;
    Ok(watch)
}

const LISTENER: u64 = 0;
const CLOSER: u64 = 1;
/// On macOS a full queue looks like a dead socket.
const BACKLOG: i32 = 128;
