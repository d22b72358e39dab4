//! `grebe save`: saves a range of a ring.

use anyhow::Result;
use grebe_recording::{RingStretch, save_ring};

use crate::cli::Save;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::{self, note};
use crate::saved_range::SavedRange;

/// Waits until the range is complete, and prints what was saved.
pub(crate) fn run(options: &Save) -> Result<Ending> {
    let stretch = RingStretch {
        before: options.last.unwrap_or_default(),
        after: options.after,
        overwrite: options.overwrite,
        ..RingStretch::default()
    };
    let saved = save_ring(&options.folder, options.to.as_deref(), &stretch, &interrupt::cancel())?;
    let kept = SavedRange::of(saved)?;
    if options.json {
        output::json(&kept.json())?;
    } else {
        note!("{}", kept.words());
    }
    let missing = kept.missing();
    if let Some(missing) = &missing {
        note!("grebe: {missing}");
    }
    match missing {
        _ if interrupt::is_pending() => Ok(Ending::Interrupted),
        Some(_) => Ok(Ending::Partial),
        None => Ok(Ending::Good),
    }
}
