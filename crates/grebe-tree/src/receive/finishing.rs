//! Last steps after all content has arrived.

use std::io;
use std::sync::atomic::Ordering;

use crate::directories::Place;
use crate::receive::choosing::{Chosen, Facts, State};
use crate::receive::shared::Receiving;
use crate::receive::volumes::Of;
use crate::system::reason;

/// Makes links, deletes names, and last sets modes and times of directories, which earlier steps change.
/// `is_complete`: the sender has listed everything.
pub(super) fn finish(receiving: &Receiving, chosen: &Chosen, is_complete: bool) {
    chosen.links.make(receiving);
    if is_complete && !receiving.is_lacking.load(Ordering::Acquire) {
        if !chosen.deletions.is_empty() {
            // Flushes the replacements before the deletions.
            receiving.flushing.finish(receiving);
        }
        chosen.deletions.remove(receiving);
    } else if !chosen.deletions.is_empty() {
        let why = "--delete removes nothing, because some files were skipped";
        receiving.leave_out(b".".to_vec(), why.to_owned());
    }
    if receiving.options.dry_run {
        return;
    }
    if receiving.destination.new_name.is_none() {
        // The folder is in the top directory, whose time this changes.
        receiving.partial.clear();
    }
    // Contents first, because a directory may become inaccessible afterwards.
    for (place, facts) in chosen.facts.iter().enumerate().rev() {
        if receiving.is_stopped() {
            return;
        }
        if let Err(error) = directory(receiving, place as Place, facts) {
            let path = receiving.directories.path(place as Place);
            receiving
                .blemish(path, format!("the directory's mode or time cannot be set: {}", reason(&error)));
        }
    }
    receiving.flushing.finish(receiving);
    if receiving.flushing.is_broken() {
        // The resumed copy continues in them.
        return;
    }
    chosen.begun.iter().for_each(|name| receiving.partial.end_new(name));
}

fn directory(receiving: &Receiving, place: Place, facts: &Facts) -> io::Result<()> {
    let Some(finally) = facts.finally.filter(|_| facts.state != State::Refused) else { return Ok(()) };
    let directory = receiving.directories.open(place)?;
    receiving.flushing.names_changed(receiving, place);
    let now = directory.own_metadata()?;
    // An unknown file system counts as capable: creating a probe file now would change times.
    let volume = receiving.volumes.known(now.device);
    let tell = |why| receiving.blemish(receiving.directories.path(place), why);
    let keeps = |of| volume.as_ref().is_none_or(|volume| volume.keeps(of, tell));
    let new_owner = finally.owner.filter(|owner| *owner != now.owner && keeps(Of::Owner));
    if let Some(owner) = new_owner {
        directory.set_own_owner(owner)?;
    }
    let mode = match facts.state {
        _ if receiving.options.modes => finally.mode,
        State::There { mode } => mode,
        // It was created with more than the sender's mode minus this user's mask.
        _ => finally.mode & now.mode,
    };
    let may_set = || {
        if receiving.options.modes {
            keeps(Of::Mode)
        } else {
            volume.as_ref().is_none_or(|it| it.keeps_modes())
        }
    };
    if (mode != now.mode || new_owner.is_some()) && may_set() {
        directory.set_own_mode(mode)?;
    }
    if now.modified_ns != finally.modified_ns && keeps(Of::Time) {
        if volume.as_ref().is_some_and(|volume| volume.takes_both_times()) {
            directory.set_own_both_times(finally.modified_ns)?;
        } else {
            directory.set_own_modified(finally.modified_ns)?;
        }
    }
    Ok(())
}
