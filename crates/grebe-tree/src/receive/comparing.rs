//! Compares a listed file with the existing one.

use std::sync::Arc;

use crate::delta::{CHANGED_BYTES_MIN, ChunkSizes, Known, delta_pays};
use crate::name::PartNames;
use crate::receive::journal::Come;
use crate::receive::partial::identity;
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::volumes::Of;
use crate::stretch::Stretch;
use crate::system::{self, Directory, Metadata, reason};
use crate::wire::{ShortHash, TOUCHED_BYTES, short};

/// Corrects the attributes of a file whose content is right.
pub(super) fn mend(
    receiving: &Receiving,
    directory: Option<&Arc<Directory>>,
    file: &Pending,
    there: &Metadata,
) {
    let path = || receiving.directories.path_of(file.place, &file.name);
    let keeps = |of| {
        let volume = receiving.volume(there.device, file.place);
        volume.keeps(of, |why| receiving.blemish(path(), why))
    };
    let is_dry_run = receiving.options.dry_run;
    let is_same_mode = is_dry_run || !receiving.options.modes || there.mode == file.mode || !keeps(Of::Mode);
    let is_same_owner =
        is_dry_run || file.owner.is_none_or(|owner| owner == there.owner || !keeps(Of::Owner));
    let is_same_time =
        is_dry_run || file.bytes > 0 || there.modified_ns == file.modified_ns || !keeps(Of::Time);
    let is_mended = is_same_mode && is_same_owner && is_same_time && !receiving.options.attributes;
    let Some(directory) = directory.filter(|_| !is_dry_run && !is_mended) else {
        return;
    };
    let mended = directory.read_file(&file.name, false).and_then(|open| {
        if let Some(owner) = file.owner.filter(|_| !is_same_owner) {
            system::set_owner(&open, owner)?;
        }
        if receiving.options.modes && !(is_same_mode && is_same_owner) {
            system::set_mode(&open, file.mode)?;
        }
        if receiving.options.attributes && system::attributes(&open)? != **file.attributes {
            system::set_attributes(&open, &file.attributes)?;
        }
        if is_same_time { Ok(()) } else { system::set_modified(&open, file.modified_ns) }
    });
    if let Err(error) = mended {
        receiving.blemish(path(), format!("its mode, owner or attributes cannot be set: {}", reason(&error)));
    }
}

/// Amount of a file that an earlier copy left.
pub(super) fn left_part(
    receiving: &Receiving,
    into: Option<&Arc<Directory>>,
    file: &Pending,
) -> Option<Come> {
    if file.bytes < TOUCHED_BYTES {
        return None;
    }
    let folder = receiving.partial.find().ok().flatten()?;
    let names = PartNames::of(&receiving.directories.path_of(file.place, &file.name));
    let identity = identity(file.bytes, file.modified_ns, file.touched);
    let left = folder.left(&names, &identity, file.bytes)?;
    // A copy that was killed after renaming the part leaves only the journal.
    let beside = into.map_or(Ok(folder.directory.clone()), |into| receiving.partial.beside(into)).ok()?;
    let part = beside.read_file(&names.part, false).ok()?;
    if !folder.is_trusted(&beside, &part).unwrap_or(false) {
        return None;
    }
    let part_bytes = part.metadata().ok()?.len();
    (left.bytes() > 0 && left.bytes() <= file.bytes && left.prefix() <= part_bytes).then_some(left)
}

/// Chunk sizes for comparing a file with the existing one, if that pays.
pub(super) fn chunk_sizes(receiving: &Receiving, there_bytes: u64, bytes: u64) -> Option<ChunkSizes> {
    let options = &receiving.options;
    // Within one host the system copies faster than this code compares.
    if options.whole_file || options.dry_run || receiving.handover.is_some() || bytes < CHANGED_BYTES_MIN {
        return None;
    }
    let sizes = ChunkSizes::for_file(bytes.max(there_bytes), options.short_hashes)?;
    delta_pays(bytes, there_bytes, &receiving.measured.rates(), &receiving.bases.experience())
        .then_some(sizes)
}

/// Hash of an existing file, from the index if possible.
pub(super) fn hash(receiving: &Receiving, directory: &Directory, file: &Pending) -> Option<ShortHash> {
    let path = receiving.directories.path_of(file.place, &file.name);
    let open = directory.read_file(&file.name, false).ok()?;
    let before = system::metadata(&open).ok()?;
    if let Some(hash) = receiving.index.known(&path, &before).and_then(|known| known.hash) {
        return Some(hash);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(Stretch::whole(&open, || receiving.is_stopped())).ok()?;
    let hash = short(&hasher.finalize());
    if system::metadata(&open).is_ok_and(|now| now.is_same_content(&before)) {
        receiving.index.note(&path, &before, Known { hash: Some(hash), signature: None });
    }
    Some(hash)
}

/// Whether the existing time may be the listed one as rounded by a file system, judged by trailing zeros. A
/// dry run does not probe the resolution.
pub(super) fn may_be_same_time(there_ns: i64, listed_ns: i64) -> bool {
    let steps_ns = [1_000_000_000, 10_000_000, 1_000_000, 1_000, 100];
    let step_ns = steps_ns.into_iter().find(|step_ns| there_ns % step_ns == 0).unwrap_or(1);
    there_ns == listed_ns.div_euclid(step_ns).wrapping_mul(step_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_treats_a_coarser_time_as_equal() {
        const S: i64 = 1_000_000_000;
        assert!(may_be_same_time(5 * S, 5 * S) && may_be_same_time(5 * S, 5 * S + 999_999_999));
        assert!(!may_be_same_time(5 * S, 6 * S) && !may_be_same_time(5 * S, 5 * S - 1));
        assert!(may_be_same_time(5 * S + 700, 5 * S + 799) && !may_be_same_time(5 * S + 700, 5 * S + 800));
        assert!(may_be_same_time(5 * S + 701, 5 * S + 701) && !may_be_same_time(5 * S + 701, 5 * S + 702));
        assert!(may_be_same_time(-5 * S, -5 * S + 1) && !may_be_same_time(-5 * S, -5 * S - 1));
    }
}
