//! Small files: each is written by one call and gets its name. Several threads do it, because that is the system's time and not
//! the disk's.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Receiver;

use crate::progress::add;
use crate::receive::content::{Copied, copy_local, dress};
use crate::receive::shared::{Pending, Receiving};
use crate::receive::stranger::is_too_much;
use crate::system::{self, Directory, Metadata};

/// Files that are written by one thread, one behind the other.
pub(super) struct Batch {
    /// What their content is in.
    pub(super) body: Arc<Vec<u8>>,
    pub(super) files: Vec<(Pending, Content)>,
}

/// Where the content of a file is.
pub(super) enum Content {
    Bytes {
        range: Range<usize>,
        later_ns: i64,
    },
    /// It is as that of the file that is there.
    Same,
    /// The sender hands it over.
    Local,
}

impl Batch {
    /// Files without content.
    pub(super) fn empty(files: Vec<Pending>) -> Self {
        let nothing = |file| (file, Content::Bytes { range: 0..0, later_ns: 0 });
        Self { body: Arc::default(), files: files.into_iter().map(nothing).collect() }
    }
}

/// Until no more come.
pub(super) fn write_small_files(receiving: &Receiving, batches: &Receiver<Batch>) {
    for batch in batches {
        let began = Instant::now();
        for (file, content) in batch.files {
            if receiving.is_stopped() {
                return;
            }
            if let Err(error) = one(receiving, &file, content, &batch.body) {
                receiving.file_failed(&file, &error);
            }
        }
        add(&receiving.done.disk_us, began.elapsed().as_micros() as u64);
    }
}

fn one(receiving: &Receiving, file: &Pending, content: Content, body: &[u8]) -> io::Result<()> {
    let directory = receiving.directories.open(file.place)?;
    let bytes = match content {
        Content::Same => {
            if let Some(adopted) = &file.adopted {
                return adopted.finish(receiving, file);
            }
            let open = directory.read_file(&file.name, false)?;
            if !receiving.replaces() {
                receiving.same(file);
                return Ok(());
            }
            // Setting what is set changes the time of change, by which the index knows the file.
            if !is_dressed(receiving, file, &system::metadata(&open)?) {
                dress(receiving, file, &open, 0)?;
            }
            receiving.same(file);
            return Ok(());
        }
        Content::Bytes { range, later_ns } => {
            let content = &body[range];
            if receiving.is_too_much(file, content.len() as u64) {
                return Err(is_too_much());
            }
            in_place(receiving, file, &directory, |open| {
                system::write_all_at(open, content, 0)?;
                dress(receiving, file, open, later_ns)?;
                Ok(Some(content.len() as u64))
            })?
        }
        Content::Local => {
            let from = receiving.handover.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into());
            let from = match from.and_then(|handover| handover.take(file.id)) {
                Ok(from) => from,
                Err(error) => {
                    receiving.name_failed(file.place, &file.name, "it cannot be read", &error);
                    return Ok(());
                }
            };
            in_place(receiving, file, &directory, |open| {
                Ok(match copy_local(receiving, file, &from, open, |_| ())? {
                    Copied::Good { bytes, later_ns } => {
                        dress(receiving, file, open, later_ns)?;
                        Some(bytes)
                    }
                    Copied::Changed => {
                        let path = receiving.directories.path_of(file.place, &file.name);
                        receiving.leave_out(path, "it changed each time that it was read".to_owned());
                        None
                    }
                    Copied::Stopped => None,
                })
            })?
        }
    };
    if let Some(bytes) = bytes {
        add(&receiving.progress.bytes_done, bytes);
        receiving.copied(file, bytes);
    }
    Ok(())
}

/// Whether a file has all that it is to get beside its content.
fn is_dressed(receiving: &Receiving, file: &Pending, there: &Metadata) -> bool {
    there.modified_ns == file.modified_ns
        && (!receiving.options.modes || there.mode == file.mode)
        && file.owner.is_none_or(|owner| owner == there.owner)
        && !receiving.options.attributes
}

/// Makes a file, has it filled, and gives it its name; it has none before, and gets none where `fill` has nothing for it.
fn in_place(
    receiving: &Receiving,
    file: &Pending,
    directory: &Arc<Directory>,
    fill: impl FnOnce(&std::fs::File) -> io::Result<Option<u64>>,
) -> io::Result<Option<u64>> {
    let (open, temporary) = receiving.partial.create(directory, file.mode)?;
    let named = fill(&open).and_then(|bytes| match bytes {
        Some(_) => {
            receiving.give_name(&temporary.directory, &temporary.name, directory, &file.name).map(|()| bytes)
        }
        None => Ok(None),
    });
    if !matches!(named, Ok(Some(_))) {
        let _ = temporary.directory.remove_file(&temporary.name);
    }
    named
}
