//! Content and attributes of a new file: local content, mode, owner, extended attributes, time.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::progress::add;
use crate::receive::pending::Pending;
use crate::receive::session::Session;
use crate::receive::volumes::{Abilities, Of};
use crate::system::{
    self, Metadata, clone_content, copy_range, is_full, next_stretch, read_at, reason, regular, write_all_at,
};
use crate::wire::GROUP_BYTES;

/// Maximum attempts to copy a file that keeps changing.
const TRIES: u32 = 3;

/// Bytes per system call, after which cancellation takes effect.
const STEP_BYTES: u64 = 32 << 20;

/// Result of copying a local file.
pub(super) enum Copied {
    /// Length, and the difference of its modification time from the listed one.
    Good { bytes: u64, later_ns: i64 },
    /// The file changed at every attempt.
    Changed,
    /// The copy ends.
    Stopped,
}

/// Copies a file that the sender handed over, and reports progress to `step`.
pub(super) fn copy_local(
    session: &Session,
    file: &Pending,
    from: &File,
    to: &File,
    mut step: impl FnMut(u64),
) -> io::Result<Copied> {
    for tried in 0..TRIES {
        let before = regular(from)?;
        // A part of an earlier copy is valid only for an unchanged file.
        let is_as_listed = before.bytes == file.bytes && before.modified_ns == file.modified_ns;
        let start = if tried == 0 && is_as_listed { file.left_bytes } else { 0 };
        if tried > 0 || start != file.left_bytes {
            to.set_len(start)?;
        }
        if !copy_once(session, &before, from, to, start, &mut step)? {
            return Ok(Copied::Stopped);
        }
        if system::metadata(from)?.is_same_content(&before) {
            let later_ns = before.modified_ns.wrapping_sub(file.modified_ns);
            return Ok(Copied::Good { bytes: before.bytes, later_ns });
        }
    }
    Ok(Copied::Changed)
}

/// `false`: the copy was stopped.
fn copy_once(
    session: &Session,
    metadata: &Metadata,
    from: &File,
    to: &File,
    start: u64,
    step: &mut impl FnMut(u64),
) -> io::Result<bool> {
    let abilities = &session.abilities;
    let is_small = metadata.bytes <= GROUP_BYTES as u64 / 4;
    if start == 0 && !is_small && !abilities.cannot_clone.load(Ordering::Relaxed) {
        match clone_content(from, to) {
            Ok(()) => return Ok(true),
            Err(error) if is_full(&error) => return Err(error),
            Err(_) => abilities.cannot_clone.store(true, Ordering::Relaxed),
        }
    }
    let mut at = start;
    while let Some(stretch) = next_stretch(from, at, metadata.bytes, metadata)? {
        at = stretch.start;
        while at < stretch.end {
            if session.is_stopped() {
                return Ok(false);
            }
            let copied = copy_stretch(abilities, from, to, at..stretch.end.min(at + STEP_BYTES), is_small)?;
            if copied == 0 {
                // The file was truncated; the next check notices that.
                return Ok(true);
            }
            at += copied;
            add(&session.done.data_bytes, copied);
            add(&session.progress.data_bytes, copied);
            step(at);
        }
    }
    if metadata.is_sparse && to.metadata()?.len() < metadata.bytes {
        to.set_len(metadata.bytes)?;
    }
    Ok(true)
}

/// Number of bytes copied; 0 at the end of `from`.
fn copy_stretch(
    abilities: &Abilities,
    from: &File,
    to: &File,
    stretch: Range<u64>,
    is_small: bool,
) -> io::Result<u64> {
    let bytes = stretch.end - stretch.start;
    if !is_small && !abilities.cannot_copy.load(Ordering::Relaxed) {
        match copy_range(from, to, stretch.start, bytes) {
            Ok(copied) => return Ok(copied),
            Err(error) if is_full(&error) || error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(_) => abilities.cannot_copy.store(true, Ordering::Relaxed),
        }
    }
    let mut buffer = vec![0; bytes.min(GROUP_BYTES as u64) as usize];
    let read = read_at(from, &mut buffer, stretch.start)?;
    write_all_at(to, &buffer[..read], stretch.start)?;
    Ok(read as u64)
}

/// Gives a file everything but its name. Reports attributes that cannot be set; the file is good without
/// them.
pub(super) fn dress(session: &Session, file: &Pending, open: &File, later_ns: i64) -> io::Result<()> {
    let path = || session.directories.path_of(file.place, &file.name);
    let tell = |what: &str, error: &io::Error| {
        session.blemish(path(), format!("{what} cannot be set: {}", reason(error)));
    };
    // A look costs less than setting a value that is already right.
    let now = system::metadata(open)?;
    let volume = session.volume(now.device, file.place);
    let keeps = |of| volume.keeps(of, |why| session.blemish(path(), why));
    let new_owner = file.owner.filter(|owner| *owner != now.owner && keeps(Of::Owner));
    if let Some(owner) = new_owner
        && let Err(error) = system::set_owner(open, owner)
    {
        tell("its owner", &error);
    }
    // After the owner, because that clears bits of the mode.
    // New content does not get the set-user-id and similar bits of the old one.
    let kept = |mode: u16| mode & 0o777 | now.mode & 0o7000;
    let mode = if session.options.modes { Some(file.mode) } else { file.replaces.map(kept) };
    let sets_mode = |mode: &u16| *mode != now.mode || new_owner.is_some();
    let may_set = || if session.options.modes { keeps(Of::Mode) } else { volume.keeps_modes() };
    if let Some(mode) = mode.filter(|mode| sets_mode(mode) && may_set())
        && let Err(error) = system::set_mode(open, mode)
    {
        tell("its mode", &error);
    }
    if session.options.attributes
        && !file.attributes.is_empty()
        && let Err(error) = system::set_attributes(open, &file.attributes)
    {
        tell("its attributes", &error);
    }
    if !keeps(Of::Time) {
        return Ok(());
    }
    let set = if volume.takes_both_times() { system::set_both_times } else { system::set_modified };
    set(open, file.modified_ns.wrapping_add(later_ns))
}
