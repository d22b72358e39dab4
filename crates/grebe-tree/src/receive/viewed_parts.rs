//! Parts that arrive in blocks, and their viewers. A map beside each part lists the received blocks, and
//! requests that a viewer leaves there go to the sender.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::arriving::{MAP_HEAD_BYTES, WANTED_BYTES_MAX, decode_wanted, map_head};
use crate::blocks::BlockMap;
use crate::name::PartNames;
use crate::receive::session::Session;
use crate::system::{Directory, write_all_at};
use crate::wire::{EntryId, Kind, Want};

/// Map of a part for viewers. It runs ahead of the journal: its blocks are written but perhaps not on the
/// disk.
pub(super) struct LiveMap {
    file: File,
}

impl LiveMap {
    pub(super) fn create(
        folder: &Directory,
        names: &PartNames,
        map: &BlockMap,
        modified_ns: i64,
    ) -> io::Result<Self> {
        // A reader may still have an older map open, so it is replaced and not changed.
        match folder.remove_file(&names.map) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = folder.create_file(&names.map, 0o600)?;
        let mut bytes = map_head(map.blocks.bytes, modified_ns).to_vec();
        bytes.extend_from_slice(map.bits());
        write_all_at(&file, &bytes, 0)?;
        Ok(Self { file })
    }

    /// Marks a block as written.
    pub(super) fn come(&self, map: &BlockMap, block: u64) -> io::Result<()> {
        let (at, byte) = map.byte_of(block);
        write_all_at(&self.file, &[byte], (MAP_HEAD_BYTES + at) as u64)
    }
}

/// Parts that may have viewers.
#[derive(Default)]
pub(super) struct ViewedParts {
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Default)]
struct State {
    parts: HashMap<EntryId, ViewedPart>,
    is_closed: bool,
}

#[derive(Clone)]
struct ViewedPart {
    folder: Arc<Directory>,
    name: Vec<u8>,
    /// The last request that was passed on.
    said: Vec<u8>,
}

impl ViewedParts {
    pub(super) fn add(&self, id: EntryId, folder: &Arc<Directory>, names: &PartNames) {
        let looked = ViewedPart { folder: folder.clone(), name: names.wanted.clone(), said: Vec::new() };
        self.lock().parts.insert(id, looked);
    }

    pub(super) fn remove(&self, id: EntryId) {
        self.lock().parts.remove(&id);
    }

    /// Marks the end of incoming data.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.closed.notify_all();
    }

    /// Passes on the requests of viewers until the end.
    pub(super) fn tell(&self, session: &Session) {
        loop {
            let state = self.lock();
            if state.is_closed {
                return;
            }
            let waited = self.closed.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
            let parts: Vec<(EntryId, ViewedPart)> =
                waited.0.parts.iter().map(|(&id, looked)| (id, looked.clone())).collect();
            drop(waited);
            for (id, looked) in parts {
                let Ok(bytes) = read(&looked) else { continue };
                if bytes == looked.said {
                    continue;
                }
                if let Some(known) = self.lock().parts.get_mut(&id) {
                    known.said.clone_from(&bytes);
                }
                // The request of a viewer of another version is ignored.
                if let Some(stretches) = decode_wanted(&bytes) {
                    session.say(Kind::Want, Want { id, stretches }.encode());
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(looked: &ViewedPart) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    looked.folder.read_file(&looked.name, false)?.take(WANTED_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Poll interval: cheap, and short enough for a viewer.
const LOOK_EVERY: Duration = Duration::from_millis(100);
