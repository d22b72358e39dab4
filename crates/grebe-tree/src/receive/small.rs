//! Small files: one call writes a file, then it gets its name. Several threads share the work, because the
//! time goes to system calls and not to the disk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Receiver;

use crate::progress::add;
use crate::receive::content::{Copied, copy_local, dress};
use crate::receive::flushing::{Then, Whole};
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::stranger::is_too_much;
use crate::system::{self, Metadata};

/// Consecutive files for one thread.
pub(super) struct Batch {
    /// Buffer with their content.
    pub(super) body: Arc<Vec<u8>>,
    pub(super) files: Vec<(Pending, Content)>,
}

/// Content of a file.
pub(super) enum Content {
    Bytes {
        range: Range<usize>,
        later_ns: i64,
    },
    /// Same content as the existing file.
    Same,
    /// The sender hands it over.
    Local,
}

impl Batch {
    /// Batch of empty files.
    pub(super) fn empty(files: Vec<Pending>) -> Self {
        let nothing = |file| (file, Content::Bytes { range: 0..0, later_ns: 0 });
        Self { body: Arc::default(), files: files.into_iter().map(nothing).collect() }
    }
}

/// Runs until no more batches arrive.
pub(super) fn write_small_files(receiving: &Receiving, batches: &Receiver<Batch>) {
    for batch in batches {
        let began = Instant::now();
        for (file, content) in batch.files {
            if receiving.is_stopped() {
                return;
            }
            match one(receiving, &file, content, &batch.body) {
                Ok(Some((open, bytes, then))) => {
                    add(&receiving.progress.bytes_done, bytes);
                    receiving.flushing.take(receiving, open, Whole { file, bytes, then });
                }
                Ok(None) => {}
                Err(error) => receiving.file_failed(&file, &error),
            }
        }
        add(&receiving.done.disk_us, began.elapsed().as_micros() as u64);
    }
}

/// Writes a file and returns its remaining step. `None`: nothing remains, or the file failed and was
/// reported.
fn one(
    receiving: &Receiving,
    file: &Pending,
    content: Content,
    body: &[u8],
) -> io::Result<Option<(File, u64, Then)>> {
    let directory = receiving.directories.open(file.place)?;
    if let Content::Same = content {
        if let Some(adopted) = &file.adopted {
            // The sender confirmed the copy, which lacks its attributes and its name.
            let temporary = adopted.take()?;
            let open = temporary.directory.write_file(&temporary.name)?;
            dress(receiving, file, &open, 0)?;
            add(&receiving.progress.bytes_same, file.bytes);
            return Ok(Some((open, file.bytes, Then::Name(temporary, None))));
        }
        let open = directory.read_file(&file.name, false)?;
        // Setting an unchanged value would alter the change time, by which the index identifies the file.
        let is_left_as_it_is = receiving.options.dry_run || !receiving.replaces();
        if is_left_as_it_is || is_dressed(receiving, file, &system::metadata(&open)?) {
            receiving.flushing.was_there(receiving, file.place, &file.name);
            receiving.same(file);
            return Ok(None);
        }
        return Ok(Some((open, 0, Then::Dress)));
    }
    let from = match &content {
        Content::Local => {
            let from = receiving.handover.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into());
            match from.and_then(|handover| handover.take(file.id)) {
                Ok(from) => Some(from),
                Err(error) => {
                    receiving.name_failed(file.place, &file.name, "it cannot be read", &error);
                    return Ok(None);
                }
            }
        }
        _ => None,
    };
    // It has no name yet, and gets none on failure.
    let (open, temporary) = receiving.partial.create(&directory, file.mode)?;
    let (bytes, later_ns) = match (content, from) {
        (Content::Bytes { range, later_ns }, _) => {
            let content = &body[range];
            if receiving.is_too_much(file, content.len() as u64) {
                return Err(is_too_much());
            }
            system::write_all_at(&open, content, 0)?;
            (content.len() as u64, later_ns)
        }
        (_, Some(from)) => match copy_local(receiving, file, &from, &open, |_| ())? {
            Copied::Good { bytes, later_ns } => (bytes, later_ns),
            Copied::Changed => {
                let path = receiving.directories.path_of(file.place, &file.name);
                receiving.leave_out(path, "it changed each time that it was read".to_owned());
                return Ok(None);
            }
            Copied::Stopped => return Ok(None),
        },
        _ => return Ok(None),
    };
    dress(receiving, file, &open, later_ns)?;
    Ok(Some((open, bytes, Then::Name(temporary, None))))
}

/// Whether a file has all its attributes.
fn is_dressed(receiving: &Receiving, file: &Pending, there: &Metadata) -> bool {
    there.modified_ns == file.modified_ns
        && (!receiving.options.modes || there.mode == file.mode)
        && file.owner.is_none_or(|owner| owner == there.owner)
        && !receiving.options.attributes
}
