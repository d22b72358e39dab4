//! The black box: a recording on a disk that forgets its oldest samples, and of which stretches are kept for good.
//!
//! ```text
//!   DIR/ring_000041.sigmf-meta  .sigmf-data     the parts of the ring, each a recording; the oldest is removed
//!   DIR/ring_000042. ...
//!
//!   record ---- parts, closed and removed ----> DIR <---- Parts, held open ---- save ----> Assembler: a recording of its own
//! ```

mod parts;
mod plan;
mod save;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_ring::Cancel;

use crate::error::Error;
use crate::sample_file::SampleFile;
use crate::sigmf::Base;

use parts::Parts;
pub use plan::{RingLength, RingPlan};
pub use save::{RingLabel, RingSaved, RingStretch, save_ring};

/// Makes the folder of a ring, where it is not there; the recording that its parts belong to.
pub fn make_folder(folder: &Path) -> Result<PathBuf, Error> {
    if folder.extension().is_some_and(|extension| extension.to_string_lossy().starts_with("sigmf")) {
        let what = "a ring is a folder of recordings: name it without .sigmf-meta".to_owned();
        return Err(Error::Field { path: folder.into(), what });
    }
    fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    Ok(parts::recording_in(folder))
}

/// Paths of the current parts of a ring, oldest first; none of a folder without a ring. One that was just begun or
/// removed may not open.
pub fn ring_part_paths(folder: &Path) -> Vec<PathBuf> {
    let base = Base::of(&parts::recording_in(folder));
    parts::numbers_in(folder, &base).into_iter().map(|number| base.part(number).meta()).collect()
}

/// The current parts of a ring, oldest first, each a recording up to its known good end. A holder of a part
/// keeps its samples, even after the recorder has removed it.
///
/// # Errors
/// [`Error::Content`] where there are none.
pub fn ring_parts(folder: &Path) -> Result<Vec<SampleFile>, Error> {
    Ok(Parts::open(folder, Duration::ZERO, &Cancel::default())?.into_files())
}
