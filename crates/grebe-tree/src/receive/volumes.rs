//! Capabilities of a destination's file systems. Some have no owners or modes, or coarse times, and few
//! report that. So each is probed once with a file of ours.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::system::{self, Directory};
use crate::wire::Owner;

/// File systems met so far, by device number.
#[derive(Debug, Default)]
pub(super) struct Volumes(Mutex<Vec<(u64, Arc<Volume>)>>);

/// Limits of the file systems: a failed operation is not tried again.
#[derive(Debug, Default)]
pub(super) struct Abilities {
    pub(super) cannot_clone: AtomicBool,
    pub(super) cannot_copy: AtomicBool,
}

/// One file system.
#[derive(Debug)]
pub(super) struct Volume {
    keeps: Keeps,
    told: [AtomicBool; 3],
}

/// Result of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeps {
    /// Owner that it reports.
    pub(super) user: u32,
    /// Others have access, although the file was private.
    pub(super) is_open: bool,
    modes: bool,
    owners: bool,
    /// Time resolution in ns; `None` if it does not store times.
    time_step_ns: Option<i64>,
    /// It sets times only together with the access time.
    both_times: bool,
}

/// A property that may not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Mode,
    Owner,
    Time,
}

impl Volumes {
    /// File system of this device number. If the probe fails, it counts as capable.
    pub(super) fn of(&self, device: u64, probe: impl FnOnce() -> io::Result<Keeps>) -> Arc<Volume> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, volume)) = known.iter().find(|(known, _)| *known == device) {
            return volume.clone();
        }
        let keeps = probe().unwrap_or(EVERYTHING);
        let volume = Arc::new(Volume { keeps, told: Default::default() });
        known.push((device, volume.clone()));
        volume
    }

    /// A file system already probed.
    pub(super) fn known(&self, device: u64) -> Option<Arc<Volume>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| *known == device).map(|(_, volume)| volume.clone())
    }
}

impl Volume {
    /// Whether it keeps this property. Reports a missing one once, for the first affected name.
    pub(super) fn keeps(&self, of: Of, tell: impl FnOnce(String)) -> bool {
        let Keeps { modes, owners, time_step_ns, .. } = self.keeps;
        let (is_kept, what) = match of {
            Of::Mode => (modes, "modes"),
            Of::Owner => (owners, "owners"),
            Of::Time => (time_step_ns.is_some(), "times, and contents are compared instead"),
        };
        if !is_kept && !self.told[of as usize].swap(true, Ordering::Relaxed) {
            tell(format!("its file system does not store {what} (reported once)"));
        }
        is_kept
    }

    pub(super) fn keeps_modes(&self) -> bool {
        self.keeps.modes
    }

    pub(super) fn takes_both_times(&self) -> bool {
        self.keeps.both_times
    }

    pub(super) fn keeps_times(&self) -> bool {
        self.keeps.time_step_ns.is_some()
    }

    /// Whether the existing time is the listed one in this resolution.
    pub(super) fn is_same_time(&self, there_ns: i64, listed_ns: i64) -> bool {
        self.keeps.time_step_ns.is_some_and(|step_ns| there_ns.abs_diff(listed_ns) < step_ns as u64)
    }
}

/// Creates a private file, sets mode, time and owner, and reads them back.
pub(super) fn try_it(directory: &Directory, name: &[u8], with_owner: bool) -> io::Result<Keeps> {
    let file = directory.create_file(name, 0o600)?;
    let made = system::metadata(&file);
    let owner = Owner { user: OTHER, group: OTHER };
    let set_mode = system::set_mode(&file, TRIED_MODE);
    let set_owner = if with_owner { system::set_owner(&file, owner) } else { Ok(()) };
    let _ = system::write_all_at(&file, b"x", 0).and_then(|()| system::set_modified(&file, TRIED_NS));
    // Some write the time at close.
    drop(file);
    let step = || -> io::Result<_> {
        let found = directory.metadata(name)?;
        let off_ns = found.modified_ns.abs_diff(TRIED_NS);
        Ok((found, STEPS_NS.into_iter().find(|step_ns| off_ns < *step_ns as u64)))
    };
    let first = step();
    let both_times = matches!(first, Ok((_, None)))
        && directory.write_file(name).and_then(|file| system::set_both_times(&file, TRIED_NS)).is_ok();
    let found = if both_times { step() } else { first };
    directory.remove_file(name)?;
    let (made, (found, time_step_ns)) = (made?, found?);
    Ok(Keeps {
        user: made.owner.user,
        is_open: made.mode & 0o077 != 0,
        modes: set_mode.is_ok() && found.mode == TRIED_MODE || cfg!(not(unix)),
        owners: !with_owner || set_owner.is_ok() && found.owner == owner,
        time_step_ns,
        both_times,
    })
}

const EVERYTHING: Keeps =
    Keeps { user: 0, is_open: false, modes: true, owners: true, time_step_ns: Some(1), both_times: false };

/// An owner that no volume assigns by default.
const OTHER: u32 = 54_321;

const TRIED_MODE: u16 = 0o640;

/// For each possible resolution, its remainder exceeds the next finer one.
const TRIED_NS: i64 = 1_000_000_001_987_654_321;

/// The last one is FAT's.
const STEPS_NS: [i64; 7] = [1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_system_of_a_system_keeps_everything_and_nothing_of_ours_stays() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let keeps = try_it(&directory, b".grebe-t1-1", system::is_root()).unwrap();
        assert!(keeps.modes && keeps.owners && !keeps.is_open, "{keeps:?}");
        assert_eq!(keeps.user, directory.own_metadata().unwrap().owner.user);
        assert!(keeps.time_step_ns.is_some());
        assert!(directory.names().unwrap().is_empty());
    }

    #[test]
    fn an_interrupted_step_is_recognised_by_its_leftovers() {
        for step_ns in STEPS_NS {
            let kept_ns = TRIED_NS / step_ns * step_ns;
            let found = STEPS_NS.into_iter().find(|found| kept_ns.abs_diff(TRIED_NS) < *found as u64);
            assert_eq!(found, Some(step_ns));
            let keeps = Keeps { time_step_ns: Some(step_ns), ..EVERYTHING };
            let volume = Volume { keeps, told: Default::default() };
            assert!(
                volume.is_same_time(kept_ns, TRIED_NS) && !volume.is_same_time(kept_ns, kept_ns + step_ns)
            );
        }
    }
}
