//! Pipe of a stream's name, with an instance for the next client.

use std::fs::File;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_MESSAGE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_MESSAGE,
    PIPE_UNLIMITED_INSTANCES,
};

use super::connection::Connection;
use super::names;
use super::owned;
use super::port::{CLOSED, Port};
use super::transfer::{Outcome, Transfer};
use super::user::Access;
use crate::error::Error;
use crate::platform::Event;

/// Pipe, and the watch over its connections.
pub(crate) struct Listener {
    /// Holds the name; `None` after it was closed.
    file: Option<File>,
    path: Vec<u16>,
    access: Access,
    port: Arc<Port>,
    /// `None` if the system refused the last one.
    next: Option<Instance>,
    next_id: u64,
}

/// Instance of the pipe that waits for a client. Its transfers are reported under this number.
struct Instance {
    id: u64,
    connecting: Transfer,
    pipe: Arc<OwnedHandle>,
}

impl Listener {
    /// Takes the stream's name.
    pub(crate) fn bind(
        file: PathBuf,
        name: &str,
        allow_uids: &[u32],
        port: Arc<Port>,
    ) -> Result<Self, Error> {
        if !allow_uids.is_empty() {
            let (what, must) = ("number of further users", "on Windows a stream is for its own user only");
            return Err(Error::Setting { what, got: allow_uids.len() as u64, must });
        }
        let pipe = pipe_name();
        let path = names::pipe_path(&pipe).unwrap_or_default();
        let access = Access::own_user().map_err(Error::tried("make an access list"))?;
        let mut this = Self { file: None, path, access, port, next: None, next_id: CLOSED + 1 };
        this.prepare(FILE_FLAG_FIRST_PIPE_INSTANCE).map_err(Error::tried("make the control pipe"))?;
        this.file = Some(names::take(&file, name, &pipe)?);
        Ok(this)
    }

    /// Makes the instance for the next client.
    fn prepare(&mut self, flags: u32) -> io::Result<()> {
        let id = self.next_id;
        // SAFETY: the path ends with a zero; the access list outlives the call.
        let pipe = owned(unsafe {
            CreateNamedPipeW(
                self.path.as_ptr(),
                PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | flags,
                PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_REJECT_REMOTE_CLIENTS,
                PIPE_UNLIMITED_INSTANCES,
                BUFFER_BYTES,
                BUFFER_BYTES,
                0,
                &self.access.attributes(),
            )
        })?;
        self.port.add(&pipe, id)?;
        let pipe = Arc::new(pipe);
        let mut connecting = Transfer::new(pipe.clone(), true)?;
        if !connecting.connect() {
            // The system does not report a client that was faster.
            self.port.post(id);
        }
        self.next_id += 1;
        self.next = Some(Instance { id, connecting, pipe });
        Ok(())
    }

    /// Waits for events.
    pub(crate) fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let is_refused = self.is_open() && self.next.is_none() && self.prepare(0).is_err();
        let timeout = if is_refused { Some(RETRY) } else { timeout };
        let port = self.port.clone();
        port.wait(timeout, |id| match id {
            CLOSED => events.push(Event::Closing),
            id if self.next.as_ref().is_some_and(|next| next.id == id) => self.accept(events),
            id => events.push(Event::Readable(id)),
        })
    }

    fn accept(&mut self, events: &mut Vec<Event>) {
        let Some(Instance { id, mut connecting, pipe }) = self.next.take() else { return };
        if connecting.outcome() == Outcome::Pending {
            self.next = Some(Instance { id, connecting, pipe });
            return;
        }
        drop(connecting);
        // Refused by the system: `wait` tries again.
        let _ = self.prepare(0);
        if let Some(pipe) = Arc::into_inner(pipe)
            && let Ok(connection) = Connection::accepted(pipe, self.port.clone(), id)
        {
            let peer = connection.peer();
            events.push(Event::Connected(id, connection, peer));
        }
    }

    /// Whether the name is taken by this listener.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Frees the name.
    pub(crate) fn close(&mut self) {
        self.next = None;
        self.file = None;
    }
}

/// Name that no other pipe has. It need not be secret, because the access list protects the pipe.
fn pipe_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}{}-{count}-{:x}", names::PIPE_PREFIX, std::process::id(), since.as_nanos())
}

/// Several messages, so that a write does not wait for its reader.
const BUFFER_BYTES: u32 = 4096;
/// Interval of new tries to make an instance.
const RETRY: Duration = Duration::from_millis(100);
